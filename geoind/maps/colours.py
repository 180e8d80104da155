"""The colours of true locations and of reports, on maps, in the demo and in the figures of the documentation."""

__all__ = ["REPORT", "TRUTH"]

TRUTH = "#b8124f"
"""True locations. The two colours also differ in lightness, for readers who cannot distinguish the hues."""

REPORT = "#2460c8"
"""Reports."""
