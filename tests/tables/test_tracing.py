"""Tables of traces: who and when are read from columns, and a session per person answers, batch after batch."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from geoind.tables.rows import Examined, Problem

from geoind import InvalidInputError, SphericalLaplace
from geoind.tables import Recipe
from geoind.tables.times import NO_TIME
from geoind.tables.tracing import METHODS, Tracing, answered, in_order, steps_of, tracing_of
from geoind.traces import Independent, Predictive, SparseVector, Switching
from geoind.traces.session import TraceSession
from tests.tables import cases

KEY = bytes(range(32))
NOISE = SphericalLaplace(0.01)
TRUTH = cases.lonlat(8)
PERSONS = ["ana", "ben", "ana", "ana", "ben", "ana", "ben", "ben"]
TIMES = [0.0, 0.0, 60.0, 120.0, 60.0, 180.0, 120.0, 180.0]
INDEPENDENT = Tracing("who", "when", Independent(0.01))


def batch(**changed: Any) -> pa.RecordBatch:
    columns = {"who": PERSONS, "when": TIMES, "lon": TRUTH[:, 0], "lat": TRUTH[:, 1]}
    return pa.RecordBatch.from_pydict({**columns, **changed})


def alone(rows: list[int], method: Any = INDEPENDENT.method) -> np.ndarray:
    """Return what a session of each person answers to these rows, one after the other."""
    sessions = {name: TraceSession(method, key=KEY, person=name) for name in ("ana", "ben")}
    answers = []
    for row in rows:
        lon, lat = TRUTH[row].tolist()
        answer = sessions[PERSONS[row]].report(lat=lat, lon=lon, time=TIMES[row])
        answers.append((answer.lon, answer.lat))
    return np.array(answers)


def test_steps_tell_whose_rows_they_are_and_when() -> None:
    for who in (pa.array(PERSONS), pa.array(PERSONS).dictionary_encode(), pa.array(PERSONS, pa.string_view())):
        steps, flaws = steps_of(batch(who=who), INDEPENDENT, TRUTH)
        assert flaws == {}
        assert [steps.names[code] for code in steps.codes] == PERSONS
        assert steps.times.tolist() == TIMES
        assert steps.lonlat is TRUTH
    steps, _ = steps_of(batch(who=[7, 8, 7, 7, 8, 7, 8, 8]), INDEPENDENT, TRUTH)
    assert [steps.names[code] for code in steps.codes] == ["7", "8", "7", "7", "8", "7", "8", "8"]


def test_one_name_written_in_two_ways_is_one_person() -> None:
    steps, flaws = steps_of(batch(who=["Zoe\u0308", "Zo\u00eb", "x"] + ["Zo\u00eb"] * 5), INDEPENDENT, TRUTH)
    assert (flaws, list(steps.names), steps.codes.tolist()) == ({}, ["Zo\u00eb", "x"], [0, 0, 1, 0, 0, 0, 0, 0])


def test_rows_without_a_person_or_a_time_are_flaws_that_say_why_and_the_others_keep_their_own() -> None:
    who = [" ana", "ben", None, "ana", "", "ana", "ben", None]
    when = ["0", "0", "60", None, "60", "soon", "120", "soon"]
    steps, flaws = steps_of(batch(who=who, when=when), INDEPENDENT, TRUTH)
    assert flaws.pop(4).startswith("person must")
    assert flaws == {
        0: "person must be a name without space around it",
        2: "there is no person in column 'who'",
        3: "there is no time in column 'when'",
        5: NO_TIME,
        7: "there is no person in column 'who'",
    }
    assert [steps.names[steps.codes[row]] for row in (1, 3, 5, 6)] == ["ben", "ana", "ana", "ben"]
    assert steps.times[[1, 6]].tolist() == [0.0, 120.0]


@pytest.mark.parametrize("who", [[7.0] * 8, [True] * 8, [b"a"] * 8, [None] * 8])
def test_persons_of_another_kind_are_refused(who: list[Any]) -> None:
    with pytest.raises(InvalidInputError, match="'who' must name persons in text or whole numbers"):
        steps_of(batch(who=who), INDEPENDENT, TRUTH)


def test_no_rows_are_no_steps_whatever_type_their_persons_have() -> None:
    empty = pa.RecordBatch.from_pydict({"who": pa.array([], pa.null()), "when": pa.array([], pa.float64())})
    steps, flaws = steps_of(empty, INDEPENDENT, np.empty((0, 2)))
    assert (len(steps.codes), flaws) == (0, {})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cut", [8, 3])
def test_a_table_in_batches_is_answered_as_each_persons_own_session_does(method: Any, cut: int) -> None:
    recipe = Recipe.of(epsilon=0.01, trace=("who", "when"), method=method, key=KEY)
    assert recipe.trace is not None
    table, sessions = recipe.table(batch().schema), recipe.sessions()
    found = []
    for start in range(0, 8, cut):
        examined = table.examine(batch().slice(start, cut), sessions=sessions)
        assert examined.problems == ()
        found.append(table.report(examined, sessions=sessions).reports[0])
    np.testing.assert_array_equal(np.vstack(found), alone(list(range(8)), recipe.trace.method))


def test_without_sessions_of_batches_before_a_table_is_answered_by_new_ones() -> None:
    recipe = Recipe.of(epsilon=0.01, trace="who,when", method="independent", key=KEY)
    table = recipe.table(batch().schema)
    np.testing.assert_array_equal(table.report(table.examine(batch())).reports[0], alone(list(range(8))))


def test_rows_that_go_back_in_time_are_problems_also_after_the_batch_before() -> None:
    recipe = Recipe.of(epsilon=0.01, trace="who,when", method="independent", key=KEY, missing="keep")
    table, sessions = recipe.table(batch().schema), recipe.sessions()
    # A row without a place is nobody's step, whatever its time.
    when, lon = list(TIMES), [*TRUTH[:, 0].tolist()]
    when[1], lon[1], when[5] = 1e9, None, 61.0
    given = batch(when=when, lon=lon)
    first = table.examine(given.slice(0, 4), sessions=sessions)
    made = table.report(first, sessions=sessions)
    np.testing.assert_array_equal(made.reports[0][[0, 2, 3]], alone([0, 2, 3]))
    assert np.isnan(made.reports[0][1]).all()
    second = table.examine(given.slice(4), sessions=sessions)
    assert second.problems == (Problem(1, "the time goes back for person 'ana'"),)
    assert second.rows.tolist() == [0, 2, 3]
    np.testing.assert_array_equal(
        table.report(second, sessions=sessions).reports[0], alone([0, 2, 3, 4, 6, 7])[3:]
    )


def test_bad_rows_are_no_steps() -> None:
    recipe = Recipe.of(epsilon=0.01, trace="who,when", method="independent", key=KEY)
    table = recipe.table(batch().schema)
    examined = table.examine(batch(who=[None, *PERSONS[1:]], lon=[*TRUTH[:5, 0], 200.0, *TRUTH[6:, 0]]))
    assert [problem.row for problem in examined.problems] == [0, 5]
    np.testing.assert_array_equal(table.report(examined).reports[0], alone([1, 2, 3, 4, 6, 7]))


def test_rows_that_are_no_steps_stay_as_they_are_and_have_no_answer() -> None:
    sessions = Recipe.of(epsilon=0.01, trace="who,when").sessions()
    examined = Examined(batch(), np.arange(8), (), (TRUTH,))
    assert in_order(examined, sessions) is examined
    with pytest.raises(InvalidInputError, match="no steps of traces"):
        answered(examined, sessions)


@pytest.mark.parametrize(
    "columns", ["who", "who,when,where", "who,", ",when", "who,who", ("who",), ("who", 7), ["a", ""]]
)
def test_a_trace_is_named_by_two_columns(columns: Any) -> None:
    with pytest.raises(InvalidInputError, match="must name two columns"):
        tracing_of(columns, None, NOISE)


@pytest.mark.parametrize("columns", ["who,when", ("who", "when"), ["who", "when"]])
def test_two_columns_may_be_named_in_a_text_or_in_a_pair(columns: Any) -> None:
    made = tracing_of(columns, INDEPENDENT.method, NOISE)
    assert made == INDEPENDENT
    assert made.told == "Independent(epsilon=0.01)"


def test_a_method_by_its_name_is_made_for_the_mechanisms_epsilon() -> None:
    metres = float(NOISE.radius_quantile(0.9))
    sparse = SparseVector(0.01, 0.01, 3 * metres, 0.005)
    usual = Predictive.for_accuracy(metres, confidence=0.9)
    made = {name: tracing_of("who,when", name, NOISE).method for name in METHODS}
    assert made == {
        "switching": Switching(sparse),
        "sparse": sparse,
        "predictive": Predictive(usual.test, 0.01, usual.limit),
        "independent": Independent(0.01),
    }
    assert tracing_of("who,when", None, NOISE).method == Switching(sparse)
    with pytest.raises(InvalidInputError, match="method must be one of switching, sparse, predictive"):
        tracing_of("who,when", "magic", NOISE)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="noise on the globe"):
        tracing_of("who,when", None, object())  # type: ignore[arg-type]


def test_what_is_told_of_a_method_names_its_numbers_and_functions_without_addresses() -> None:
    told = tracing_of("who,when", "switching", NOISE).told
    assert told.startswith("Switching(stays=SparseVector(fresh=0.01, test=0.01, limit=")
    assert tracing_of("who,when", "predictive", NOISE).told.endswith(", predictor=last_report)")


def test_a_coarser_lattice_is_refused_since_a_session_would_not_keep_to_it() -> None:
    with pytest.raises(InvalidInputError, match="a session reports with 5 decimals, not 3"):
        tracing_of("who,when", "independent", SphericalLaplace(0.01, decimals=3))
