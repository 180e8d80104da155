"""Threads for LAPACK work, one block each, without the cores fighting over one block."""

from collections.abc import Iterator
from contextlib import contextmanager

import scipy.linalg  # noqa: F401  (only a library that is loaded can be held to one thread)
from threadpoolctl import threadpool_limits

from geoind.parallel import Threads, available_cores

__all__ = ["threads_for_blocks"]

SMALL = 200
"""Blocks of fewer rows take less time than it takes to hand them from thread to thread."""


@contextmanager
def threads_for_blocks(rows: int) -> Iterator[Threads]:
    """Yield one thread per core that this process may use, for blocks of so many rows.

    BLAS is held to one thread meanwhile: its own threads slow small factorisations down several times.
    """
    with (
        threadpool_limits(limits=1, user_api="blas"),
        Threads(1 if rows < SMALL else available_cores()) as threads,
    ):
        yield threads
