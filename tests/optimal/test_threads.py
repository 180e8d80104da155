import pytest
from threadpoolctl import threadpool_info

from geoind.optimal import threads
from geoind.optimal.threads import SMALL, threads_for_blocks


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize(("rows", "number"), [(SMALL - 1, 1), (SMALL, 7)])
def test_large_blocks_get_a_thread_per_core_and_small_ones_none(
    rows: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "available_cores", lambda: 7)
    with threads_for_blocks(rows) as team:
        assert team.number == number


def test_blas_has_one_thread_meanwhile_and_its_own_ones_afterwards() -> None:
    before = blas_threads()
    with threads_for_blocks(10):
        assert blas_threads() == {1}
    assert blas_threads() == before
