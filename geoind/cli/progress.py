"""A progress bar, on a terminal only."""

import sys
import time

__all__ = ["ProgressBar"]

WIDTH = 30
PAUSE = 0.1
"""Seconds between two pictures of the bar."""


class ProgressBar:
    """A line on standard error that tells how far the work is; nothing where nobody looks."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._shown = sys.stderr.isatty()
        self._start = self._last = time.monotonic()

    def __call__(self, count: int, share: float | None) -> None:
        """Show a count of things done and the share of the work that they are."""
        now = time.monotonic()
        if not self._shown or now - self._last < PAUSE:
            return
        self._last = now
        speed = count / (now - self._start)
        bar = "" if share is None else f"[{'#' * round(share * WIDTH):-<{WIDTH}}] {share:4.0%}  "
        print(f"\r{bar}{count:,} {self._unit}, {speed:,.0f} per second\x1b[K", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
