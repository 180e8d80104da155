"""The cores available to this process, and work distributed over threads or processes."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import pairwise
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, TypeAlias, TypeVar

from geoind.errors import GeoindError

__all__ = ["OnReports", "OnShare", "Threads", "available_cores", "in_processes"]

Item = TypeVar("Item")
Result = TypeVar("Result")

OnReports: TypeAlias = Callable[[int, float | None], None]
"""Progress callback: called with the number of reports so far, and the share of the work done, if known."""

OnShare: TypeAlias = Callable[[str, float], None]
"""Progress callback: called with a description of the finished part, and the share of the work done."""


def available_cores() -> int:
    """Return the number of cores that this process may use.

    Examples
    --------
    >>> available_cores() >= 1
    True
    """
    granted = getattr(os, "sched_getaffinity", None)
    return len(granted(0)) if granted is not None else os.cpu_count() or 1


class Threads:
    """A pool of threads for the duration of a `with` block; with one thread, the caller does the work.

    Examples
    --------
    >>> with Threads(2) as threads:
    ...     list(threads.each(str, [1, 2, 3])), threads.pieces(10, lambda start, stop: stop - start)
    (['1', '2', '3'], [1, 1, 1, 2, 1, 1, 1, 2])
    """

    def __init__(self, number: int) -> None:
        self.number = max(1, number)
        self._pool = ThreadPoolExecutor(self.number) if self.number > 1 else None

    def __enter__(self) -> "Threads":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Return an iterator over the results of `work` for each item, in order."""
        return map(work, items) if self._pool is None else self._pool.map(work, items)

    def pieces(self, count: int, work: Callable[[int, int], Result]) -> list[Result]:
        """Return `work(start, stop)` of consecutive pieces of `range(count)`, in order: a few for each thread."""
        pieces = min(count, 4 * self.number) if self.number > 1 else 1
        edges = [count * piece // pieces for piece in range(pieces + 1)]
        return list(self.each(lambda ends: work(*ends), pairwise(edges)))


def in_processes(
    workers: int | None, function: Callable[..., Result], items: Sequence[tuple[Any, ...]]
) -> Iterator[Result]:
    """Yield the results of a function for each item, in any order, computed in this process and in workers.

    Parameters
    ----------
    workers : int, optional
        Number of processes, including this one; default: one per core.
    function, items : callable and sequence of tuples
        The function and its arguments; both must be picklable.

    Examples
    --------
    >>> sorted(in_processes(1, pow, [(2, 3), (2, 4)]))
    [8, 16]
    """
    others = min(workers or available_cores(), len(items)) - 1
    if others <= 0:
        yield from (function(*item) for item in items)
        return
    # Spawned, not forked: a fork while another thread holds a lock can hang.
    with ProcessPoolExecutor(others, mp_context=get_context("spawn"), initializer=die_with_parent) as pool:
        waiting, running = deque(items), set[Future[Result]]()
        try:
            while waiting or running:
                # Two items per worker, so that none waits while this process is busy. Submitted items are not
                # cancelled: a pool that breaks afterwards would print a traceback.
                while waiting and len(running) < 2 * others:
                    running.add(pool.submit(function, *waiting.popleft()))
                ready = {job for job in running if job.done()}
                if not ready and waiting:
                    # Workers need a second to start; meanwhile this process takes items from the end of the queue.
                    yield function(*waiting.pop())
                    continue
                ready = ready or wait(running, return_when=FIRST_COMPLETED).done
                running -= ready
                yield from (job.result() for job in ready)
        except BrokenProcessPool:
            raise GeoindError(
                "a worker process ended before its work was done: was it killed, or is there too little memory?"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def die_with_parent() -> None:
    """End this worker when its parent is killed; otherwise it would wait for work indefinitely."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=watch, daemon=True).start()
