"""Sessions of many persons answer what each person's own session answers."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from geoind import InvalidInputError, Ledger, TraceSession
from geoind.arrays import FloatArray, IntArray
from geoind.traces import (
    GuardedPlace,
    History,
    Independent,
    Predictive,
    Rationed,
    SparseVector,
    Switching,
    TraceMethod,
    commuter,
    obfuscate_traces,
    trace_costs,
)
from geoind.traces.many import TraceSessions
from geoind.traces.questions import arc_length

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


class Steps(NamedTuple):
    names: list[str]
    codes: IntArray
    times: FloatArray
    lonlat: FloatArray

    def only(self, rows: IntArray) -> "Steps":
        return self._replace(codes=self.codes[rows], times=self.times[rows], lonlat=self.lonlat[rows])


def crowd(every: float, count: int = 150) -> Steps:
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
    return Steps(NAMES, np.concatenate(codes)[order], np.concatenate(times)[order], np.concatenate(places)[order])


def each_alone(method: TraceMethod, steps: Steps) -> tuple[FloatArray, dict[str, float]]:
    sessions = [TraceSession(method, key=KEY, person_id=name) for name in steps.names]
    reports = []
    for code, time, (lon, lat) in zip(
        steps.codes.tolist(), steps.times.tolist(), steps.lonlat.tolist(), strict=True
    ):
        answer = sessions[code].report(lat=lat, lon=lon, time=time)
        reports.append((answer.lon, answer.lat))
    return np.array(reports), {name: session.spent for name, session in zip(steps.names, sessions, strict=True)}


def in_batches(sessions: TraceSessions, steps: Steps, borders: list[int]) -> FloatArray:
    parts = [np.arange(begin, end) for begin, end in pairwise([0, *borders, len(steps.codes)])]
    return np.concatenate([sessions.report(*steps.only(part)) for part in parts])


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


def test_an_answer_that_stays_the_same_by_chance_is_no_move_and_is_forgotten_as_in_a_session() -> None:
    # So little noise that reports of a place are mostly equal; the moves are 120 answers ago within the hour.
    method = Switching(SparseVector(50.0, 0.02, 300.0), 2)
    lon = np.array([2.3, 2.4, 2.5, *[2.6] * 297])
    steps = Steps(["ana"], np.zeros(300, np.int64), np.arange(0.0, 3000.0, 10.0), np.column_stack([lon, lon + 46]))
    expected, spent = each_alone(method, steps)
    for borders in ([], [5, 6, 50]):
        sessions = TraceSessions(method, KEY)
        assert np.array_equal(in_batches(sessions, steps, borders), expected)
        assert sessions.spent == spent


@pytest.mark.parametrize("name", ["without memory", "with memory", "switching"])
def test_exact_comparisons_decide_what_doubles_decide(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = crowd(300.0, 40)
    expected = TraceSessions(METHODS[name], KEY).report(*steps)
    # So that no double is trusted.
    monkeypatch.setattr("geoind.traces.questions.CLOSE", 1e9)
    assert np.array_equal(TraceSessions(METHODS[name], KEY).report(*steps), expected)


def test_noise_in_the_tail_is_left_to_exact_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = crowd(300.0, 40)
    expected = TraceSessions(SPARSE, KEY).report(*steps)
    monkeypatch.setattr("geoind.traces.questions.TAIL", 0.7)
    assert np.array_equal(TraceSessions(SPARSE, KEY).report(*steps), expected)


def test_persons_come_and_go() -> None:
    steps = crowd(300.0)
    half = len(steps.codes) // 2
    few = Steps(NAMES[:3], steps.codes, steps.times, steps.lonlat).only(np.flatnonzero(steps.codes[:half] < 3))
    rest = steps.only(np.flatnonzero((np.arange(len(steps.codes)) >= half) | (steps.codes >= 3)))
    sessions = TraceSessions(SPARSE, KEY)
    made = np.concatenate([sessions.report(*few), sessions.report(*rest)])
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
    assert np.array_equal(made[::2], once.report(*steps))
    assert np.array_equal(made[1::2], made[::2])
    assert once.costs == again.costs


def test_a_time_that_goes_back_or_a_second_place_is_a_flaw_and_nothing_is_answered() -> None:
    sessions = TraceSessions(Independent(0.01), KEY)
    place = np.array([[2.3, 48.8]])
    sessions.report(*Steps(["ana"], np.array([0]), np.array([60.0]), place))
    back = Steps(["bea", "ana"], np.array([0, 1]), np.array([0.0, 59.0]), np.repeat(place, 2, axis=0))
    assert sessions.flaws(*back) == {1: "timestamps must increase for person 'ana': sort the rows by time"}
    with pytest.raises(InvalidInputError, match="row 1: timestamps must increase"):
        sessions.report(*back)
    other = Steps(["ana"], np.array([0]), np.array([60.0]), place + 1)
    [(row, reason)] = sessions.flaws(*other).items()
    assert (row, "merge rows of the same time" in reason) == (0, True)
    assert sessions.spent == {"ana": 0.01}


@pytest.mark.parametrize(("window", "largest"), [(2, 2), (3, 1000), (1000, 1000)])
@pytest.mark.parametrize("name", ["without memory", "with memory", "switching", "switching soon"])
def test_how_many_rows_are_tested_at_once_changes_no_answer(
    name: str, window: int, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = crowd(300.0, 60)
    expected = TraceSessions(METHODS[name], KEY).report(*steps)
    monkeypatch.setattr("geoind.traces.vectors.WINDOW", window)
    monkeypatch.setattr("geoind.traces.vectors.LARGEST", largest)
    assert np.array_equal(TraceSessions(METHODS[name], KEY).report(*steps), expected)


class Own(SparseVector):
    """A subclass that answers otherwise."""

    def answer(self, history: History, place: GuardedPlace) -> tuple[History, tuple[float, float]]:
        super().answer(history, place)
        return history, (1.0, 2.0)


@pytest.mark.parametrize(
    "method", [Own(0.01, 0.01, 1000.0), Switching(Own(0.01, 0.01, 1000.0))], ids=["own", "switching"]
)
def test_a_subclass_of_a_method_answers_in_its_own_way(method: TraceMethod) -> None:
    assert (TraceSessions(method, KEY).report(*crowd(300.0, 5)) == (1.0, 2.0)).all()


def test_each_kind_of_charge_is_counted_at_its_own_price() -> None:
    steps = crowd(300.0, 60)
    fresh, sparse = TraceSessions(Independent(0.008), KEY), TraceSessions(SPARSE, KEY)
    fresh.report(*steps)
    sparse.report(*steps)
    assert fresh.costs == {name: {0.008: 60} for name in NAMES}
    expected = {}
    for name in NAMES:
        alone = TraceSession(SPARSE, key=KEY, person_id=name)
        own = steps.codes == NAMES.index(name)
        for time, (lon, lat) in zip(steps.times[own].tolist(), steps.lonlat[own].tolist(), strict=True):
            alone.report(lat=lat, lon=lon, time=time)
        expected[name] = alone.costs
    assert sparse.costs == expected


def test_no_rows_are_no_answers() -> None:
    sessions = TraceSessions(SPARSE, KEY)
    assert sessions.report(*Steps([], np.empty(0, np.int64), np.empty(0), np.empty((0, 2)))).shape == (0, 2)
    assert sessions.spent == {}


@pytest.mark.parametrize("method", [Independent(0.01), SparseVector.for_accuracy(500)], ids=["fresh", "sparse"])
def test_mixed_rows_get_what_each_persons_own_session_answers(method: TraceMethod) -> None:
    times, lonlat = commuter(days=1, every=1800.0)
    rng = np.random.default_rng(0)
    persons = rng.choice(["ana", "bea", "cem"], len(times)).tolist()
    reports, spent = obfuscate_traces(lonlat, persons=persons, times=times, method=method, key=KEY)
    for person in ("ana", "bea", "cem"):
        session = TraceSession(method, key=KEY, person_id=person)
        rows = [row for row, name in enumerate(persons) if name == person]
        alone = [session.report(lat=lonlat[row, 1], lon=lonlat[row, 0], time=times[row]) for row in rows]
        assert reports[rows].tolist() == [[answer.lon, answer.lat] for answer in alone]
        assert spent[person] == session.spent


def test_the_costs_of_traces_are_those_of_each_persons_session() -> None:
    times, lonlat = commuter(days=1, every=1800.0)
    rows = {"person": ["ana", "bea"] * (len(times) // 2), "lon": lonlat[:, 0], "lat": lonlat[:, 1]}
    table = pd.DataFrame(rows | {"time": pd.to_datetime(times, unit="s", utc=True)})
    # In any order; of two positions at the same time the first one counts.
    mixed = pd.concat([table.iloc[::-1], table.iloc[:4].assign(lat=0.0)])
    found = trace_costs(mixed, {"fresh": Independent(0.01), "session": SPARSE}, key=KEY).set_index("method")
    steps = Steps(["ana", "bea"], np.arange(len(times)) % 2, times, lonlat)
    for name, method in (("fresh", Independent(0.01)), ("session", SPARSE)):
        reports, spent = each_alone(method, steps)
        errors = [arc_length(*there, *here) for there, here in zip(reports, lonlat, strict=True)]
        assert found["mean_error"][name] == pytest.approx(np.mean(errors), rel=0.01)
        assert found["error_90"][name] == pytest.approx(np.quantile(errors, 0.9), rel=0.01)
        assert found["largest"][name] == max(spent.values())
        assert found["median"][name] == pytest.approx(np.mean([*spent.values()]))
        assert found["share"][name] == pytest.approx(sum(spent.values()) / (0.01 * len(times)))


def test_costs_need_positions_and_one_baseline() -> None:
    table = pd.DataFrame({"person": ["ana"], "lon": 2.0, "lat": 48.0, "time": pd.to_datetime([0], utc=True)})
    for rows, methods, message in (
        (table, {"session": SPARSE}, "one Independent"),
        (table, {"a": Independent(0.01), "b": Independent(0.02)}, "one Independent"),
        (table.iloc[:0], {"a": Independent(0.01)}, "at least one position"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            trace_costs(rows, methods, key=KEY)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"times": [0, 0, 1]}, "row 1"),
        ({"times": [5, 6, 1]}, "row 2"),
        ({"times": [0, np.nan, 1]}, "NaN|finite"),
        ({"times": [0, 1]}, "one per row"),
        ({"persons": ["ana", "ana"]}, "one per row"),
        ({"persons": ["ana", "", "ana"]}, "person"),
        ({"lonlat": [[2, 48], [2, 91], [2, 48]]}, "latitude"),
        ({"key": b"short"}, "32 bytes"),
    ],
)
def test_bad_tables_are_refused_before_anything_is_charged(changed: dict[str, object], message: str) -> None:
    table = {"lonlat": [[2.0, 48.0]] * 3, "persons": ["ana"] * 3, "times": [0, 1, 2], "key": KEY}
    with Ledger("sqlite://", budget=1) as ledger:
        with pytest.raises(InvalidInputError, match=message):
            obfuscate_traces(**(table | changed), method=Independent(0.01), ledger=ledger)  # type: ignore[arg-type]
        assert ledger.spent("ana") == 0


def test_one_person_written_in_two_ways_is_one_person() -> None:
    _, spent = obfuscate_traces(
        [[2.0, 48.0]] * 2, persons=["Zoe\u0308", "Zo\u00eb"], times=[0, 1], method=Independent(0.01), key=KEY
    )
    assert list(spent.values()) == [0.02]
