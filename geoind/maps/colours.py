"""One colour for where somebody is and one for what they report: in the demo, on maps and in the docs' figures."""

__all__ = ["REPORT", "TRUTH"]

TRUTH = "#b8124f"
"""Where somebody is; the pair differs in lightness, too, and for all eyes."""

REPORT = "#2460c8"
"""What they report."""
