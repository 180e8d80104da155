"""How far a command is: one line, on a terminal only."""

import sys
import time
from types import TracebackType

__all__ = ["Progress"]

WIDTH = 30
PAUSE = 0.1
"""Seconds between two pictures of the line."""


class Progress:
    """A line on standard error that renews itself until the end of a `with`; nothing where nobody looks."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._start = time.monotonic()
        self._last = -PAUSE

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._print("")

    def show(self, what: str, share: float | None = None) -> None:
        """Say what was done last and, where it is known, the share of the work that is done."""
        now = time.monotonic()
        if now - self._last < PAUSE:
            return
        self._last = now
        bar = "" if share is None else f"[{'#' * round(share * WIDTH):-<{WIDTH}}] {share:4.0%}  "
        self._print(f"{bar}{what}")

    def count(self, number: int, unit: str, share: float | None = None) -> None:
        """Say how many things were done, and how fast."""
        speed = number / max(time.monotonic() - self._start, 1e-3)
        self.show(f"{number:,} {unit}, {speed:,.0f} per second", share)

    def _print(self, line: str) -> None:
        if self._shown:
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)
