"""The parts of a round, against what they mean; how rows are cut into rounds changes no answer."""

import math

import numpy as np
import pytest

from geoind.distances import EARTH_RADIUS
from geoind.traces.comparison import arc_length
from geoind.traces.many import TraceSessions
from geoind.traces.rounds import _arcs, _signed, _sines, _until
from tests.goodness import fits
from tests.traces.test_many import KEY, METHODS, crowd


@pytest.mark.parametrize(("window", "largest"), [(2, 2), (2, 4), (3, 1000), (1000, 1000)])
@pytest.mark.parametrize("name", ["without memory", "with memory", "switching", "switching soon"])
def test_how_many_rows_are_tested_at_once_changes_no_answer(
    name: str, window: int, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = crowd(300.0, 60)
    expected = TraceSessions(METHODS[name], KEY).report(steps)
    monkeypatch.setattr("geoind.traces.rounds.WINDOW", window)
    monkeypatch.setattr("geoind.traces.rounds.LARGEST", largest)
    sessions = TraceSessions(METHODS[name], KEY)
    assert np.array_equal(sessions.report(steps), expected)


def test_rows_are_counted_up_to_the_first_flag_of_each_owner() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        sizes = rng.integers(0, 6, 5)
        owner = np.repeat(np.arange(5), sizes)
        flags = rng.random(len(owner)) < 0.3
        wanted = []
        for one in range(5):
            own = flags[owner == one].tolist()
            wanted.append(own.index(True) if True in own else len(own))
        assert _until(flags, owner, 5).tolist() == wanted


def test_signed_noise_has_laplaces_law_and_tells_where_its_bits_are_few() -> None:
    words = np.random.default_rng(5).integers(0, 2**64, (20_000, 2), dtype=np.uint64)
    noise, tail = _signed(words, 30.0)
    assert not tail.any()
    assert fits(np.abs(noise), lambda size: 1 - np.exp(-size / 30))
    assert not fits(np.abs(noise) * 1.05, lambda size: 1 - np.exp(-size / 30))
    assert ((noise < 0) == (words[:, 0] & np.uint64(1) == 1)).all()
    few = np.array([[0, 0], [1, 1]], np.uint64)
    noise, tail = _signed(few, 30.0)
    assert tail.all()
    assert noise[0] == math.inf
    assert noise[1] == pytest.approx(-30 * 64 * math.log(2))


def test_arcs_are_those_of_a_session() -> None:
    rng = np.random.default_rng(7)
    one = np.column_stack([rng.uniform(-180, 180, 200), rng.uniform(-90, 90, 200)])
    other = one + rng.normal(0, 10.0 ** rng.uniform(-7, 1, (200, 1)), (200, 2))
    other[:3] = one[:3]
    found = _arcs(_sines(one), _sines(other), other[:, 0] - one[:, 0])
    wanted = [arc_length(*here, *there) for here, there in zip(one.tolist(), other.tolist(), strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-6)
    assert found.max() < math.pi * EARTH_RADIUS
