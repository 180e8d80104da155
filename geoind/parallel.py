"""How many cores this process may use, and work shared among threads or processes of their own."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, TypeVar

__all__ = ["available_cores", "in_processes", "over_blocks"]

Result = TypeVar("Result")

BLOCK = 8192
"""Rows handled at once: their temporaries stay in the processor's cache."""

SHARED_BLOCK = 32768
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


def in_processes(
    workers: int | None, function: Callable[..., Result], items: Sequence[tuple[Any, ...]]
) -> Iterator[Result]:
    """Yield what the function returns for each item, in any order, from this process and workers beside it.

    Parameters
    ----------
    workers : int, optional
        Processes, this one among them; by default one per core.
    function, items : callable and sequence of tuples
        What to call, and with which arguments; both travel to the workers.

    Examples
    --------
    >>> sorted(in_processes(1, pow, [(2, 3), (2, 4)]))
    [8, 16]
    """
    others = min(workers or available_cores(), len(items)) - 1
    if others <= 0:
        yield from (function(*item) for item in items)
        return
    # Spawned, not forked: a fork in the middle of another thread's work can hang.
    with ProcessPoolExecutor(others, mp_context=get_context("spawn"), initializer=die_with_parent) as pool:
        try:
            jobs = {pool.submit(function, *item): item for item in items}
            # The others need a second to start. This process works from the other end of the queue meanwhile.
            for job in reversed(list(jobs)):
                if job.cancel():
                    yield function(*jobs.pop(job))
            for job in as_completed(jobs):
                yield job.result()
        finally:
            pool.shutdown(cancel_futures=True)


def die_with_parent() -> None:
    """End this worker when the job is killed; it would wait for work for ever."""
    parent = parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()
