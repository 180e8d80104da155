import os
import time

import pytest

from geoind.parallel import Threads, available_cores, in_processes


def test_only_the_cores_that_the_system_grants_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert available_cores() == 3


@pytest.mark.parametrize(("counted", "cores"), [(4, 4), (None, 1)])
def test_where_the_system_does_not_say_all_of_them_count(
    monkeypatch: pytest.MonkeyPatch, counted: int | None, cores: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: counted)
    assert available_cores() == cores


@pytest.mark.parametrize("number", [0, 1, 3])
def test_threads_return_what_each_item_gives_in_its_order(number: int) -> None:
    with Threads(number) as threads:
        assert list(threads.each(lambda item: 2 * item, range(50))) == list(range(0, 100, 2))


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("count", [1, 3, 100])
def test_pieces_cover_everything_once_and_in_order(number: int, count: int) -> None:
    with Threads(number) as threads:
        pieces = threads.pieces(count, lambda start, stop: list(range(start, stop)))
    assert [row for piece in pieces for row in piece] == list(range(count))
    assert all(pieces)
    assert len(pieces) >= min(count, number)


def test_work_that_fails_in_a_thread_fails_for_the_caller() -> None:
    with pytest.raises(ZeroDivisionError), Threads(2) as threads:
        list(threads.each(lambda item: 1 // item, [1, 0, 1]))


def test_other_processes_do_their_share_and_nothing_is_done_twice_or_lost() -> None:
    made = list(in_processes(2, _with_process, [(number,) for number in range(12)]))
    assert sorted(number for number, _ in made) == list(range(12))
    assert os.getpid() in {process for _, process in made}


def _with_process(number: int) -> tuple[int, int]:
    time.sleep(0.2)
    return number, os.getpid()
