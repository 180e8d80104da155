"""Run numpy and LAPACK work on several cores, one block each, without the cores fighting over one block."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import scipy.linalg  # noqa: F401  (only a library that is loaded can be held to one thread)
from threadpoolctl import threadpool_limits

from geoind.parallel import available_cores

__all__ = ["Workers", "workers"]

Result = TypeVar("Result")


class Workers:
    """A pool that splits `range(count)` into consecutive pieces, a few per core."""

    def __init__(self, pool: ThreadPoolExecutor, cores: int) -> None:
        self._pool = pool
        self._cores = cores

    def over(self, count: int, work: Callable[[int, int], Result]) -> list[Result]:
        """Return `work(start, stop)` of every piece, in order."""
        pieces = min(count, 4 * self._cores) if self._cores > 1 else 1
        edges = [count * piece // pieces for piece in range(pieces + 1)]
        if pieces == 1:
            return [work(0, count)]
        return list(self._pool.map(work, edges[:-1], edges[1:]))


SMALL = 200
"""Blocks of fewer rows take less time than it takes to hand them from thread to thread."""


@contextmanager
def workers(rows: int) -> Iterator[Workers]:
    """Yield a pool with one thread per core that this process may use, for blocks of so many rows.

    BLAS is held to one thread meanwhile: its own threads slow small factorisations down several times.
    """
    cores = 1 if rows < SMALL else available_cores()
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(cores) as pool:
        yield Workers(pool, cores)
