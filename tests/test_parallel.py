import os

import pytest

from geoind.parallel import available_cores


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
