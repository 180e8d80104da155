"""Tables of traces: a session per person answers, batch after batch and part after part."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoind import InvalidInputError, SphericalLaplace
from geoind.tables.recipe import EACH_FILE, Recipe
from geoind.tables.record import ReleaseRecord
from geoind.tables.release import Part, Release
from geoind.tables.table import Table
from geoind.tables.tracing import METHODS, described, method_of
from geoind.traces import Independent, Predictive, SparseVector, Switching
from geoind.traces.session import TraceSession
from tests.tables.made_up import KEY, in_batches, lonlat, released

NOISE = SphericalLaplace(0.001)
TRUTH = lonlat(8)
PERSONS = ["ana", "ben", "ana", "ana", "ben", "ana", "ben", "ben"]
TIMES = [0.0, 0.0, 60.0, 120.0, 60.0, 180.0, 120.0, 180.0]


def traces(**changed: Any) -> pa.Table:
    columns = {"who": PERSONS, "at": TIMES, "lon": TRUTH[:, 0], "lat": TRUTH[:, 1]}
    return pa.table({**columns, **changed})


def alone(rows: list[int], method: Any = None) -> np.ndarray:
    """Return what a session of each person answers to these rows, one after the other."""
    chosen = method_of(method or "independent", NOISE)
    sessions = {name: TraceSession(chosen, key=KEY, person_id=name) for name in ("ana", "ben")}
    answers = []
    for row in rows:
        lon, lat = TRUTH[row].tolist()
        answer = sessions[PERSONS[row]].report(lat=lat, lon=lon, time=TIMES[row])
        answers.append((answer.lon, answer.lat))
    return np.array(answers)


def reports(table: pa.Table) -> np.ndarray:
    return np.column_stack([table["lon"], table["lat"]])


TRACED: dict[str, Any] = {"person": "who", "time": "at", "key": KEY}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [8, 3])
def test_a_table_in_batches_is_answered_as_each_persons_own_session_does(method: Any, size: int) -> None:
    [made] = released(traces(), size=size, method=method, **TRACED)[1]
    np.testing.assert_array_equal(reports(made), alone(list(range(8)), method))


@pytest.mark.parametrize("people", [pa.array(PERSONS).dictionary_encode(), pa.array(PERSONS, pa.string_view())])
def test_persons_are_the_same_in_every_type(people: pa.Array) -> None:
    [made] = released(traces(who=people), method="independent", **TRACED)[1]
    np.testing.assert_array_equal(reports(made), alone(list(range(8))))
    assert made["who"].to_pylist() == PERSONS


def test_without_a_key_answers_are_fresh() -> None:
    [first], [second] = (released(traces(), person="who", time="at")[1] for _ in range(2))
    assert (reports(first) != reports(second)).any()


def test_rows_that_go_back_in_time_are_bad_also_after_the_batch_before_and_rows_without_a_place_are_no_steps() -> (
    None
):
    at, lon = list(TIMES), [*TRUTH[:, 0].tolist()]
    at[1], lon[1], at[5] = 1e9, None, 61.0
    recipe = Recipe.of(epsilon=0.001, method="independent", missing="keep", **TRACED)
    given = traces(at=at, lon=lon)
    part = Part(Table(recipe, given.schema))
    bad: list[tuple[int, str]] = []
    count = part.count(in_batches(given, 4), on_problems=lambda _, problems: bad.extend(problems))
    assert [row for row, _ in bad] == [1]
    assert "'ana'" in bad[0][1]
    release = Release.of(recipe, count, part.table)
    made = pa.Table.from_batches(
        [batch.batch for batch in part.draw(in_batches(given, 4), release, on_problems=lambda *_: None)]
    )
    found = reports(made)
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(np.delete(found, 1, axis=0), alone([0, 2, 3, 4, 6, 7]))
    assert release.record.busiest is not None
    assert (release.record.persons, release.record.busiest.reports) == (2, 3)


def test_a_trace_goes_on_in_the_next_part_where_sessions_are_shared() -> None:
    from geoind.traces.many import TraceSessions

    recipe = Recipe.of(epsilon=0.001, method="switching", **TRACED)
    assert recipe.method is not None
    parts = [traces().slice(0, 5), traces().slice(5)]
    counting, drawing = (TraceSessions(recipe.method, KEY) for _ in range(2))
    tables = [Table(recipe, part.schema, path) for part, path in zip(parts, "ab", strict=True)]
    count = Part(tables[0], counting).count(in_batches(parts[0]))
    count.merge(Part(tables[1], counting).count(in_batches(parts[1])), None)
    release = Release.of(recipe, count, tables[0])
    made = [
        batch.batch
        for table, part in zip(tables, parts, strict=True)
        for batch in Part(table, drawing).draw(in_batches(part), release)
    ]
    np.testing.assert_array_equal(reports(pa.Table.from_batches(made)), alone(list(range(8)), "switching"))
    [whole] = [released(traces(), method="switching", **TRACED)[0]]
    assert whole.record.busiest == release.record.busiest


def test_each_file_may_be_the_trace_of_one_person() -> None:
    given = traces().filter(pa.array([name == "ana" for name in PERSONS])).drop_columns("who")
    release, made = released(given, given, person=EACH_FILE, time="at", paths=("ana", "other"), key=KEY)
    np.testing.assert_array_equal(reports(made[0]), alone([0, 2, 3, 5], "switching"))
    assert (reports(made[0]) != reports(made[1])).any(axis=1).all()
    assert release.record.persons == 2
    assert release.record.unit == "each file"


def test_a_method_by_its_name_is_made_for_the_mechanisms_epsilon() -> None:
    metres = float(NOISE.radius_quantile(0.9))
    sparse = SparseVector(0.001, 0.001, 3 * metres, 0.0005)
    made = {name: method_of(name, NOISE) for name in METHODS}
    assert made["independent"] == Independent(0.001)
    assert made["sparse"] == sparse
    assert made["switching"] == method_of(None, NOISE) == Switching(sparse)
    assert isinstance(made["predictive"], Predictive)
    assert method_of(sparse, NOISE) is sparse
    with pytest.raises(InvalidInputError, match="`method=` must be one of switching, sparse, predictive"):
        method_of("magic", NOISE)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="noise on the globe"):
        method_of(None, object())  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="a session reports with 5 decimals, not 3"):
        method_of("independent", SphericalLaplace(0.01, decimals=3))


@pytest.mark.parametrize("method", METHODS)
def test_the_record_describes_a_method_by_its_numbers_without_addresses(method: Any) -> None:
    release, _ = released(traces(), method=method, **TRACED)
    record = release.record
    assert record.session == described(method_of(method, NOISE))
    assert "0x" not in record.session
    assert "0.001" in record.session
    assert record.mechanism == record.session.partition("(")[0]
    assert record.fresh == 0.001
    assert ReleaseRecord.from_json(record.to_json()) == record
