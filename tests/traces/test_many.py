"""Sessions of many persons answer what each person's own session answers."""

from itertools import pairwise

import numpy as np
import pytest

from geoind import InvalidInputError, TraceSession
from geoind.arrays import FloatArray
from geoind.traces import Independent, Predictive, Rationed, SparseVector, Switching, TraceMethod
from geoind.traces.many import Positions, TraceSessions
from geoind.traces.vectors import VectorSessions

KEY = bytes(range(32))
SPARSE = SparseVector.for_accuracy(500)
METHODS: dict[str, TraceMethod] = {
    "independent": Independent(0.008),
    "without memory": SparseVector(SPARSE.fresh, SPARSE.test, SPARSE.limit),
    "with memory": SPARSE,
    "two places": SparseVector(SPARSE.fresh, SPARSE.test, SPARSE.limit, SPARSE.choice, 2),
    "switching": Switching(SPARSE),
    "switching soon": Switching(SPARSE, 2),
    "predictive": Predictive.for_accuracy(500),
    "rationed": Rationed(Switching(SPARSE), 0.02),
}
NAMES = [f"p{number}" for number in range(6)]


def crowd(every: float, count: int = 150) -> Positions:
    """Return people who stay, who never stay, and who do both, mixed by time."""
    rng = np.random.default_rng(int(every))
    codes, times, places = [], [], []
    for person in range(len(NAMES)):
        walk = np.cumsum(rng.normal(0, 0.02, (count, 2)), axis=0) + np.array([2.3, 48.8])
        steps = np.arange(count)[:, None]
        home = np.where(steps // 20 % 2 == 0, [2.29, 48.85], [2.35, 48.9]) + rng.normal(0, 1e-4, (count, 2))
        places.append([home, walk, np.where(steps // 50 % 2 == 0, home, walk)][person % 3])
        times.append(np.cumsum(rng.exponential(every, count)) + rng.uniform(0, 5000))
        codes.append(np.full(count, person))
    order = np.argsort(np.concatenate(times), kind="stable")
    return Positions(
        NAMES, np.concatenate(codes)[order], np.concatenate(times)[order], np.concatenate(places)[order]
    )


def each_alone(method: TraceMethod, steps: Positions) -> tuple[FloatArray, dict[str, float]]:
    sessions = [TraceSession(method, key=KEY, person_id=name) for name in steps.names]
    reports = []
    for code, time, (lon, lat) in zip(
        steps.codes.tolist(), steps.times.tolist(), steps.lonlat.tolist(), strict=True
    ):
        answer = sessions[code].report(lat=lat, lon=lon, time=time)
        reports.append((answer.lon, answer.lat))
    return np.array(reports), {name: session.spent for name, session in zip(steps.names, sessions, strict=True)}


def in_batches(sessions: TraceSessions, steps: Positions, borders: list[int]) -> FloatArray:
    parts = [np.arange(begin, end) for begin, end in pairwise([0, *borders, len(steps.codes)])]
    return np.concatenate([sessions.report(steps.only(part)) for part in parts])


@pytest.mark.parametrize("every", [20.0, 300.0])
@pytest.mark.parametrize("name", METHODS)
def test_many_persons_get_what_each_gets_alone_in_batches_of_any_size(name: str, every: float) -> None:
    method, steps = METHODS[name], crowd(every)
    expected, spent = each_alone(method, steps)
    for borders in ([], [1, 2, 300, 310, 700]):
        sessions = TraceSessions(method, KEY)
        assert np.array_equal(in_batches(sessions, steps, borders), expected)
        assert sessions.spent == spent
        sums = {
            name: sum(cost * count for cost, count in counts.items()) for name, counts in sessions.costs.items()
        }
        assert sums == pytest.approx(spent)


@pytest.mark.parametrize("name", ["without memory", "with memory", "switching"])
def test_exact_comparisons_decide_what_doubles_decide(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = crowd(300.0, 40)
    expected = TraceSessions(METHODS[name], KEY).report(steps)
    # So that no double is trusted.
    for module in ("rounds", "comparison"):
        monkeypatch.setattr(f"geoind.traces.{module}.CLOSE", 1e9)
    assert np.array_equal(TraceSessions(METHODS[name], KEY).report(steps), expected)


def test_noise_in_the_tail_is_left_to_exact_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = crowd(300.0, 40)
    expected = TraceSessions(SPARSE, KEY).report(steps)
    for module in ("rounds", "comparison"):
        monkeypatch.setattr(f"geoind.traces.{module}.TAIL", 0.7)
    assert np.array_equal(TraceSessions(SPARSE, KEY).report(steps), expected)


def test_persons_come_and_go() -> None:
    steps = crowd(300.0)
    half = len(steps.codes) // 2
    few = Positions(NAMES[:3], steps.codes, steps.times, steps.lonlat).only(np.flatnonzero(steps.codes[:half] < 3))
    rest = steps.only(np.flatnonzero((np.arange(len(steps.codes)) >= half) | (steps.codes >= 3)))
    sessions = TraceSessions(SPARSE, KEY)
    made = np.concatenate([sessions.report(few), sessions.report(rest)])
    both = np.concatenate(
        [
            np.flatnonzero(steps.codes[:half] < 3),
            np.flatnonzero((np.arange(len(steps.codes)) >= half) | (steps.codes >= 3)),
        ]
    )
    assert np.array_equal(made, each_alone(SPARSE, steps)[0][both])


@pytest.mark.parametrize("name", METHODS)
def test_the_same_row_again_gets_the_same_answer_free_of_charge(name: str) -> None:
    steps = crowd(300.0, 30)
    twice = steps.only(np.repeat(np.arange(len(steps.codes)), 2))
    once, again = TraceSessions(METHODS[name], KEY), TraceSessions(METHODS[name], KEY)
    made = in_batches(again, twice, [101, 103])
    assert np.array_equal(made[::2], once.report(steps))
    assert np.array_equal(made[1::2], made[::2])
    assert once.costs == again.costs


def test_a_time_that_goes_back_or_a_second_place_is_a_flaw_and_nothing_is_answered() -> None:
    sessions = TraceSessions(Independent(0.01), KEY)
    place = np.array([[2.3, 48.8]])
    sessions.report(Positions(["ana"], np.array([0]), np.array([60.0]), place))
    back = Positions(["bea", "ana"], np.array([0, 1]), np.array([0.0, 59.0]), np.repeat(place, 2, axis=0))
    assert sessions.flaws(back) == {1: "timestamps must increase for person 'ana': sort the rows by time"}
    with pytest.raises(InvalidInputError, match="row 1: timestamps must increase"):
        sessions.report(back)
    other = Positions(["ana"], np.array([0]), np.array([60.0]), place + 1)
    [(row, reason)] = sessions.flaws(other).items()
    assert (row, "merge rows of the same time" in reason) == (0, True)
    assert sessions.spent == {"ana": 0.01}


def test_methods_of_ones_own_have_no_arrays() -> None:
    class Mine(SparseVector):
        """Another answer."""

    assert VectorSessions.fit(SPARSE)
    assert not VectorSessions.fit(Mine(0.01, 0.01, 1000.0))
    assert not VectorSessions.fit(Switching(Mine(0.01, 0.01, 1000.0)))


def test_no_rows_are_no_answers() -> None:
    sessions = TraceSessions(SPARSE, KEY)
    assert sessions.report(Positions([], np.empty(0, np.int64), np.empty(0), np.empty((0, 2)))).shape == (0, 2)
    assert sessions.spent == {}
