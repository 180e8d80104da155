"""How many cores this process may use, and rows shared among them."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["available_cores", "over_blocks"]

Result = TypeVar("Result")

BLOCK = 8192
"""Rows handled at once: their temporaries stay in the processor's cache."""

SHARED_BLOCK = 16384
"""The same for several threads: longer, so that they wait less for one another."""

ROWS_PER_THREAD = 1 << 17
"""Fewer rows are not worth a thread."""


def available_cores() -> int:
    """Return the number of cores: those that the system grants this process, where it says so.

    Examples
    --------
    >>> available_cores() >= 1
    True
    """
    granted = getattr(os, "sched_getaffinity", None)
    return len(granted(0)) if granted is not None else os.cpu_count() or 1


def over_blocks(work: Callable[[slice], Result], count: int) -> list[Result]:
    """Return what `work` returns for each block of `count` rows, in order; many rows are shared among threads.

    For numpy, which lets go of the interpreter while it computes; what comes out must not depend on the blocks.

    Examples
    --------
    >>> over_blocks(lambda part: part.stop - part.start, 20_000)
    [8192, 8192, 3616]
    """
    threads = min(available_cores(), count // ROWS_PER_THREAD)
    size = BLOCK if threads < 2 else SHARED_BLOCK
    parts = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    if threads < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, parts))
