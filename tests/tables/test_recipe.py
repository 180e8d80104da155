"""What is done to a table, as keywords say it: each arrives, and what does not go together is refused."""

import logging
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoind import InvalidInputError, KeyedRandomness, SphericalGaussian, SphericalLaplace
from geoind.tables import Recipe
from geoind.tables.keys import Key
from geoind.tables.tracing import tracing_of
from geoind.tables.where import LonLat, Points
from geoind.traces import Independent
from tests.tables import cases

KEY = bytes(range(32))
NOISE = SphericalLaplace(0.01)
TRUTH = cases.lonlat(6)
BATCH = pa.RecordBatch.from_pydict({"id": np.arange(6), "lon": TRUTH[:, 0], "lat": TRUTH[:, 1]})
TRACE = tracing_of("who,when", "independent", NOISE)


def lonlat(batch: pa.RecordBatch) -> np.ndarray:
    return np.column_stack([batch["lon"].to_numpy(), batch["lat"].to_numpy()])


def test_a_recipe_of_an_epsilon_alone_is_the_usual_one() -> None:
    assert Recipe.of(epsilon=0.01) == Recipe(mechanism=NOISE)
    usual = {field.name: getattr(Recipe(mechanism=NOISE), field.name) for field in fields(Recipe)}
    assert usual == {
        "mechanism": NOISE,
        "places": (),
        "drop": (),
        "keep": (),
        "missing": "raise",
        "order": "raise",
        **dict.fromkeys(("key", "id_column", "person_column", "level", "radius", "delta", "reports", "trace")),
    }


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"epsilon": 0.02}, {"mechanism": SphericalLaplace(0.02)}),
        ({"mechanism": NOISE}, {"mechanism": NOISE}),
        (
            {"level": 2.0, "radius": 100.0},
            {"mechanism": SphericalLaplace(0.02), "level": 2.0, "radius": 100.0},
        ),
        (
            {"level": 1.5, "radius": 200.0, "delta": 1e-5, "reports": 2, "mechanism": SphericalGaussian(5000.0)},
            {
                "level": 1.5,
                "radius": 200.0,
                "delta": 1e-5,
                "reports": 2,
                "mechanism": SphericalGaussian(5000.0),
            },
        ),
        ({"epsilon": 0.01, "lon": "a", "lat": "b"}, {"places": (LonLat("a", "b"),)}),
        ({"epsilon": 0.01, "geometry": "a", "crs": "b"}, {"places": (Points("a", "b"),)}),
        ({"epsilon": 0.01, "key": KEY}, {"key": Key(KEY)}),
        ({"epsilon": 0.01, "key": Key(KEY)}, {"key": Key(KEY)}),
        ({"epsilon": 0.01, "id_column": "a"}, {"id_column": "a"}),
        ({"epsilon": 0.01, "person_column": "a"}, {"person_column": "a"}),
        ({"epsilon": 0.01, "drop": ["a", "b"]}, {"drop": ("a", "b")}),
        ({"epsilon": 0.01, "drop": "ab"}, {"drop": ("ab",)}),
        ({"epsilon": 0.01, "keep": ("a",)}, {"keep": ("a",)}),
        ({"epsilon": 0.01, "missing": "keep"}, {"missing": "keep"}),
        ({"epsilon": 0.01, "order": "shuffle"}, {"order": "shuffle"}),
        (
            {"epsilon": 0.01, "trace": "who,when", "method": "independent"},
            {"trace": TRACE, "person_column": "who"},
        ),
        (
            {"epsilon": 0.01, "trace": ("who", "when"), "method": Independent(0.01), "person_column": "who"},
            {"trace": TRACE, "person_column": "who"},
        ),
        ({"epsilon": 0.01, "trace": "who,when"}, {"trace": tracing_of("who,when", None, NOISE)}),
        (
            {"epsilon": 0.01, "trace": "who,when", "lon": "a", "lat": "b"},
            {"trace": tracing_of("who,when", None, NOISE), "places": (LonLat("a", "b"),)},
        ),
    ],
)
def test_every_keyword_arrives_and_changes_nothing_else(options: dict[str, Any], parts: dict[str, Any]) -> None:
    made = Recipe.of(**options)
    for name, value in parts.items():
        assert getattr(made, name) == value
    if "trace" in options:
        parts = {**parts, "person_column": "who"}
    for field in fields(Recipe):
        if field.name not in {*parts, "mechanism"}:
            assert getattr(made, field.name) == getattr(Recipe(mechanism=NOISE), field.name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "drop"}, "missing must be 'raise' or 'keep', got 'drop'"),
        ({"order": "sort"}, "order must be 'raise', 'shuffle' or 'keep', got 'sort'"),
        ({"drop": ["a", "c"], "keep": ["b", "c"]}, "column 'c' must be dropped or kept, not both"),
        ({"drop": [7]}, "drop must be names of columns"),
        ({"keep": ["a", None]}, "keep must be names of columns"),
        ({"lon": [7], "lat": "lat"}, "lon must be names of columns"),
        ({"method": "sparse"}, "method is for traces: give trace"),
        ({"zeta": 1, "alpha": 1}, "there is no option 'alpha'"),
        ({"trace": "who,when", "id_column": "id"}, "leave id_column out"),
        ({"trace": "who,when", "person_column": "id"}, "leave person_column out"),
        ({"trace": "who,when", "order": "shuffle"}, "cannot be shuffled"),
        ({"trace": "who,when", "lon": ["a", "c"], "lat": ["b", "d"]}, "a step of a trace is one place"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Recipe.of(epsilon=0.01, **options)


def test_the_columns_that_name_records_persons_and_times_are_told() -> None:
    assert Recipe.of(epsilon=0.01).named == ()
    assert Recipe.of(epsilon=0.01, id_column="id", person_column="who").named == ("id", "who")
    assert Recipe.of(epsilon=0.01, person_column="who").named == ("who",)
    assert Recipe.of(epsilon=0.01, trace="who,when").named == ("who", "when")


def test_a_key_is_made_where_there_is_none_and_a_log_line_tells_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "geoind"):
        own = Recipe.of(epsilon=0.01, key=KEY)
        assert own.with_key() is own
        assert not caplog.records
        bare = Recipe.of(epsilon=0.01, id_column="id")
        made = bare.with_key()
    assert made.key is not None
    assert len(made.key.read()) == 32
    assert (made.mechanism, made.id_column, bare.key) == (bare.mechanism, "id", None)
    assert f"no key was given: made {made.key!r}" in caplog.text


def test_sessions_are_for_traces_under_the_recipes_key_or_a_new_one() -> None:
    recipe = Recipe.of(epsilon=0.01, trace="who,when", method="independent", key=KEY)
    batch = pa.RecordBatch.from_pydict({"who": ["ana"], "when": [0.0], "lon": [2.3], "lat": [48.8]})

    def reports(recipe: Recipe) -> Any:
        table, sessions = recipe.table(batch.schema), recipe.sessions()
        return table.report(table.examine(batch, sessions=sessions), sessions=sessions).reports[0].tolist()

    assert reports(recipe) == reports(recipe)
    bare = Recipe.of(epsilon=0.01, trace="who,when", method="independent")
    assert reports(bare) != reports(bare)
    with pytest.raises(InvalidInputError, match="there are no traces: give trace"):
        Recipe.of(epsilon=0.01).sessions()


def test_what_comes_in_parts_is_neither_shuffled_nor_a_trace() -> None:
    for order in ("raise", "keep"):
        recipe = Recipe.of(epsilon=0.01, order=order)
        assert recipe.in_parts("sort it") is recipe
    with pytest.raises(InvalidInputError, match=r"needs the whole table at once, .* in parts: sort it"):
        Recipe.of(epsilon=0.01, order="shuffle").in_parts("sort it")
    with pytest.raises(InvalidInputError, match="trace needs a person's rows together"):
        Recipe.of(epsilon=0.01, trace="who,when").in_parts("sort it")


def test_traces_need_their_rows_together_at_every_door_of_a_batch() -> None:
    recipe = Recipe.of(epsilon=0.01, trace="who,when", key=KEY)
    batch = pa.RecordBatch.from_pydict({"who": ["ana"], "when": [0.0], "lon": [2.3], "lat": [48.8]})
    for act in (lambda: recipe.refuse_traces(), lambda: recipe.obfuscate(batch)):
        with pytest.raises(InvalidInputError, match="trace needs a person's rows together"):
            act()
    Recipe.of(epsilon=0.01).refuse_traces()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "a ledger needs person_column"),
        ({"key": KEY}, "a ledger needs person_column"),
        ({"person_column": "who"}, None),
        ({"person_column": "who", "key": KEY}, None),
        ({"trace": "who,when"}, "trace with a ledger needs key"),
        ({"trace": "who,when", "key": KEY}, None),
    ],
)
def test_a_ledger_needs_persons_and_for_traces_a_key(options: dict[str, Any], message: str | None) -> None:
    recipe = Recipe.of(epsilon=0.01, **options)
    recipe.refuse_ledger_without_persons(None)
    if message is None:
        recipe.refuse_ledger_without_persons(object())
    else:
        with pytest.raises(InvalidInputError, match=message):
            recipe.refuse_ledger_without_persons(object())


def test_a_batch_is_obfuscated_by_names_or_by_file_and_row() -> None:
    named = Recipe.of(epsilon=0.01, key=KEY, id_column="id").obfuscate(BATCH)
    np.testing.assert_array_equal(lonlat(named), NOISE.sample(TRUTH, rng=KeyedRandomness(KEY, np.arange(6))))
    rows = [9, 4, 1, 7, 3, 2]
    table = Recipe.of(epsilon=0.01, key=KEY).table(BATCH.schema)
    found = table.obfuscate(BATCH, path="a/b", rows=np.array(rows)).batch
    source = KeyedRandomness(Key(KEY).for_file("a/b"), np.array(rows))
    np.testing.assert_array_equal(lonlat(found), NOISE.sample(TRUTH, rng=source))


def test_a_table_is_a_whole_one_in_no_folder_unless_it_is_said() -> None:
    recipe = Recipe.of(epsilon=0.01, drop=["gone"])
    with pytest.raises(InvalidInputError, match="there is no column 'gone' to drop or keep"):
        recipe.table(BATCH.schema)
    table = recipe.table(BATCH.schema, open_ended=True, path="day=1/a.parquet")
    assert (table.recipe, table.schema, table.open_ended) == (recipe, BATCH.schema, True)
    assert table.path == "day=1/a.parquet"
    plain = Recipe.of(epsilon=0.01).table(BATCH.schema)
    assert (plain.open_ended, plain.path) == (False, "")
