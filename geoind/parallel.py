"""How many cores this process may use."""

import os

__all__ = ["available_cores"]


def available_cores() -> int:
    """Return the number of cores: those that the system grants this process, where it says so.

    Examples
    --------
    >>> available_cores() >= 1
    True
    """
    granted = getattr(os, "sched_getaffinity", None)
    return len(granted(0)) if granted is not None else os.cpu_count() or 1
