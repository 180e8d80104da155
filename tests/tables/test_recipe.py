"""What is done to a table, as keywords declare it: each arrives, and what does not go together is refused."""

import inspect
import pickle
from dataclasses import fields
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from geoind import EACH_ROW, InvalidInputError, Key, SphericalGaussian, SphericalLaplace, level_of_reports
from geoind.tables import ReleaseRecord
from geoind.tables.parts import Part
from geoind.tables.places import LonLat, Points, places_of
from geoind.tables.recipe import EACH_FILE, METHODS, Recipe, described, method_of, with_options
from geoind.tables.release import Release
from geoind.tables.table import Table
from geoind.traces import Independent, Predictive, SparseVector, Switching
from geoind.traces.session import TraceSession
from tests.tables.made_up import KEY, in_batches, lonlat, released


@pytest.mark.parametrize(
    ("given", "places"),
    [
        ((None, None, None, None), ()),
        (("a", "b", None, None), (LonLat("a", "b"),)),
        ((["a", "c"], ["b", "d"], None, None), (LonLat("a", "b"), LonLat("c", "d"))),
        ((None, None, "g", None), (Points("g", None),)),
        ((None, None, "g", "EPSG:2154"), (Points("g", "EPSG:2154"),)),
        ((None, None, None, "EPSG:2154"), (Points(None, "EPSG:2154"),)),
        (("a", None, "g", None), "give `lon=` and `lat=`, or `geometry=`, not both"),
        ((None, "b", "g", None), "give `lon=` and `lat=`, or `geometry=`, not both"),
        (("a", None, None, "EPSG:2154"), "`crs=` is the CRS of a geometry"),
        ((None, "b", None, "EPSG:2154"), "`crs=` is the CRS of a geometry"),
        (("a", None, None, None), "got 1 and 0 columns"),
        ((["a", "c"], "b", None, None), "got 2 and 1 columns"),
        (("a", "a", None, None), "must be different columns"),
        ((["a", "a"], ["b", "d"], None, None), "must be different columns"),
        ((["a", "c"], ["b", "a"], None, None), "must be different columns"),
    ],
)
def test_places_are_pairs_of_columns_or_one_geometry(given: Any, places: Any) -> None:
    if isinstance(places, str):
        with pytest.raises(InvalidInputError, match=places):
            places_of(*given)
    else:
        assert places_of(*given) == places


def test_a_place_has_the_names_of_its_columns() -> None:
    assert LonLat("a", "b").names == ("a", "b")
    assert Points("g", "EPSG:2154").names == ("g",)
    assert Points().names == Points(None, "EPSG:2154").names == ()


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
    bad: list[tuple[int, str]] = []
    part = Part(Table(recipe, given.schema), on_problems=lambda _, problems: bad.extend(problems.items()))
    count = part.count(in_batches(given, 4))
    assert [row for row, _ in bad] == [1]
    assert "'ana'" in bad[0][1]
    release = Release.of(recipe, count, part.table)
    made = pa.Table.from_batches([batch for batch, _, _ in part.draw(in_batches(given, 4), release)])
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
        batch
        for table, part in zip(tables, parts, strict=True)
        for batch, _, _ in Part(table, drawing).draw(in_batches(part), release)
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


USUAL_NOISE = SphericalLaplace(0.01)
USUAL: dict[str, Any] = {"epsilon": 0.01, "person": "who"}


@pytest.mark.parametrize("person", [None, 7, ["who"], True])
def test_a_recipe_without_a_declared_person_is_refused_with_the_choice(person: Any) -> None:
    with pytest.raises(InvalidInputError, match="whose reports these are") as caught:
        Recipe.of(epsilon=0.01, person=person)
    assert "EACH_ROW if no person has two rows, or EACH_FILE if each file is one person" in str(caught.value)
    with pytest.raises(InvalidInputError, match="whose reports these are"):
        Recipe.of(epsilon=0.01)


def test_a_recipe_of_an_epsilon_and_a_person_is_the_usual_one() -> None:
    usual = Recipe.of(**USUAL)
    assert usual == Recipe(mechanism=USUAL_NOISE, person="who")
    assert (usual.keep, usual.places, usual.missing, usual.order) == ((), (), "raise", "raise")
    others = {field.name for field in fields(Recipe)} - {
        "mechanism",
        "person",
        "keep",
        "places",
        "missing",
        "order",
    }
    assert {name for name in others if getattr(usual, name) not in (None, False)} == set()


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"epsilon": 0.02}, {"mechanism": SphericalLaplace(0.02)}),
        ({"epsilon": None, "mechanism": USUAL_NOISE}, {"mechanism": USUAL_NOISE}),
        (
            {"epsilon": None, "level": 2.0, "radius": 100.0},
            {"mechanism": SphericalLaplace(0.02), "level": 2.0, "radius": 100.0},
        ),
        ({"person": EACH_ROW}, {"person": EACH_ROW}),
        ({"person": EACH_FILE}, {"person": EACH_FILE}),
        ({"lon": "a", "lat": "b"}, {"places": (LonLat("a", "b"),)}),
        ({"geometry": "a", "crs": "b"}, {"places": (Points("a", "b"),)}),
        ({"key": KEY}, {"key": Key(KEY), "key_given": True}),
        ({"key": Key(KEY)}, {"key": Key(KEY), "key_given": True}),
        ({"id_column": "a"}, {"id_column": "a"}),
        ({"keep": ["b", "a", "b"]}, {"keep": ("b", "a")}),
        ({"keep": "ab"}, {"keep": ("ab",)}),
        ({"missing": "keep"}, {"missing": "keep"}),
        ({"order": "shuffle"}, {"order": "shuffle"}),
        ({"same_place": 100.0}, {"same_place": 100.0}),
        ({"reports_per_person": 3}, {"reports_per_person": 3}),
        ({"allow_total": 3.0}, {"allow_total": 3.0}),
        ({"time": "at", "method": "independent"}, {"time": "at", "method": Independent(0.01)}),
        ({"time": "at", "method": Independent(0.02)}, {"time": "at", "method": Independent(0.02)}),
        ({"time": "at"}, {"time": "at", "method": method_of(None, USUAL_NOISE)}),
    ],
)
def test_every_keyword_arrives_and_changes_nothing_else(options: dict[str, Any], parts: dict[str, Any]) -> None:
    made = Recipe.of(**USUAL | options)
    for name, value in parts.items():
        assert getattr(made, name) == value
    for field in fields(Recipe):
        if field.name not in {*parts, "mechanism"}:
            assert getattr(made, field.name) == getattr(Recipe.of(**USUAL), field.name)


def test_a_promise_for_several_reports_keeps_its_numbers() -> None:
    made = Recipe.of(person="who", level=1.5, radius=200.0, delta=1e-5, reports=2)
    assert (made.level, made.radius, made.delta, made.reports) == (1.5, 200.0, 1e-5, 2)
    assert level_of_reports(made.mechanism, reports=2, radius=200.0, delta=1e-5) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "drop"}, "`missing=` must be 'raise' or 'keep', got 'drop'"),
        ({"order": "sort"}, "`order=` must be 'raise', 'shuffle' or 'keep', got 'sort'"),
        ({"keep": ["a", None]}, "`keep=` must be names of columns"),
        ({"lon": [7], "lat": "lat"}, "`lon=` must be names of columns"),
        ({"epsilon": None}, "epsilon"),
        ({"method": "sparse"}, "`method=` is for traces: give `time=`"),
        ({"time": "at", "method": "magic"}, "`method=` must be one of switching, sparse"),
        ({"time": "at", "id_column": "id"}, "leave `id_column=` out"),
        ({"time": "at", "person": EACH_ROW}, "a trace has several rows of a person"),
        ({"time": "who"}, "must be two columns"),
        ({"time": "at", "order": "shuffle"}, "cannot be shuffled"),
        ({"time": "at", "lon": ["a", "c"], "lat": ["b", "d"]}, "a step of a trace is one place"),
        ({"time": "at", "reports_per_person": 3}, "are for single places"),
        ({"reports_per_person": 0}, "must be a whole number from 1, got 0"),
        ({"reports_per_person": 2.5}, "must be a whole number from 1, got 2.5"),
        ({"reports_per_person": True}, "must be a whole number from 1, got True"),
        ({"reports_per_person": 1, "lon": ["a", "c"], "lat": ["b", "d"]}, "must be at least 2: a row has as many"),
        ({"reports_per_person": 3, "person": EACH_ROW}, "needs the persons: with EACH_ROW each has one row"),
        ({"same_place": 100.0, "person": EACH_ROW}, "`same_place=` needs `person=`"),
        ({"same_place": 100.0, "time": "at"}, "goes without `time=`"),
        ({"same_place": 100.0, "reports_per_person": 3}, "goes without `time=` and `reports_per_person=`"),
        ({"same_place": 100.0, "lon": ["a", "c"], "lat": ["b", "d"]}, "one place per row"),
        ({"same_place": 100.0, "epsilon": None, "mechanism": SphericalGaussian(500.0)}, "needs `epsilon=`"),
        ({"allow_total": 0}, "`allow_total=` must be"),
        ({"allow_total": float("nan")}, "`allow_total=` must be"),
        ({"allow_total": "much"}, "`allow_total=` must be"),
        (
            {"epsilon": None, "level": 1.5, "radius": 200.0, "delta": 1e-5, "reports": 2, "person": EACH_ROW},
            "`reports=` is for several reports of a person",
        ),
        ({"same_place": -1.0}, "`same_place=` must be positive"),
        ({"key": b"short"}, "32 bytes"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Recipe.of(**USUAL | options)


def test_a_column_that_names_a_record_or_a_person_is_not_published_unless_it_is_kept_or_of_a_trace() -> None:
    assert Recipe.of(**USUAL, id_column="id").published == ()
    assert Recipe.of(**USUAL, id_column="id", keep=["id"]).published == ("id",)
    assert Recipe.of(**USUAL, time="at", keep=["fare"]).published == ("fare", "who", "at")
    assert Recipe.of(epsilon=0.01, person=EACH_FILE, time="at").published == ("at",)


def test_a_key_is_made_where_there_is_none_and_never_shown() -> None:
    own = Recipe.of(**USUAL, key=KEY)
    assert own.with_key() is own
    first, second = Recipe.of(**USUAL).with_key(), Recipe.of(**USUAL).with_key()
    assert first.key is not None
    assert second.key is not None
    assert first.key != second.key
    for recipe in (own, first):
        assert recipe.key is not None
        assert recipe.key.read().hex() not in repr(recipe)
        assert str(recipe.key.read()) not in repr(recipe)
        assert pickle.loads(pickle.dumps(recipe)) == recipe


@pytest.mark.parametrize("name", ["drop", "key_given", "places"])
def test_an_unknown_keyword_is_an_error(name: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        Recipe.of(epsilon=0.01, person=EACH_ROW, **{name: cast(Any, True)})


def test_functions_with_options_show_all_keywords_in_their_signature() -> None:
    @with_options
    def own(frame: object, *, ledger: object = None, **options: Any) -> None:
        """Do nothing."""

    shown = inspect.signature(own).parameters
    assert list(shown)[:2] == ["frame", "ledger"]
    assert set(inspect.signature(Recipe.of).parameters) <= set(shown)
    assert "options" not in shown
