"""The one place that knows the version."""

__all__ = ["__version__"]

__version__ = "0.1.0"
