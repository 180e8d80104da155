"""Nothing about a place passes by accident, and ordinary columns pass."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from geoind.errors import InvalidInputError
from geoind.tables import Recipe
from tests.tables import cases

RECIPE = Recipe.of(epsilon=0.01)


def obfuscated(table: pa.Table, recipe: Recipe = RECIPE) -> pa.RecordBatch:
    return recipe.obfuscate(table.combine_chunks().to_batches()[0])


@pytest.mark.parametrize("way", [*cases.BY_VALUE, *cases.BY_TYPE])
@pytest.mark.parametrize("count", [60, 2000])
def test_a_column_that_repeats_the_place_is_refused_and_named(way: str, count: int) -> None:
    truth = cases.lonlat(count)
    table = cases.table_with(truth, {**cases.BY_VALUE, **cases.BY_TYPE}[way](truth))
    with pytest.raises(InvalidInputError, match=r"'note' .*drop=\['note'\].*--drop.*keep=\['note'\].*--keep"):
        obfuscated(table)


@pytest.mark.parametrize("name", cases.PLAIN)
@pytest.mark.parametrize("count", [1, 5, 60, 2000])
def test_an_ordinary_column_passes_unchanged(name: str, count: int) -> None:
    table = cases.table_with(cases.lonlat(count), cases.PLAIN[name](cases.lonlat(count)))
    assert obfuscated(table)["note"].to_pylist() == table["note"].to_pylist()


@pytest.mark.parametrize("name", cases.TELLING_NAMES)
def test_a_name_that_tells_a_place_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="by its name"):
        obfuscated(pa.table({"x9": [2.35], "y8": [48.86], name: ["a"]}), RECIPE_XY)


RECIPE_XY = Recipe.of(epsilon=0.01, lon="x9", lat="y8")


@pytest.mark.parametrize("name", cases.PLAIN_NAMES)
def test_an_ordinary_name_passes(name: str) -> None:
    table = pa.table({"x9": [2.35], "y8": [48.86], name: ["a"]})
    assert obfuscated(table, RECIPE_XY)[name].to_pylist() == ["a"]


def test_one_row_is_judged_by_its_digits() -> None:
    one = np.array([[2.294512, 48.858412]])
    for column in ([48.858412], ["at 48.85841"], [48858412], [np.float32(2.294512)]):
        with pytest.raises(InvalidInputError, match="'note' repeats"):
            obfuscated(cases.table_with(one, column))
    assert obfuscated(cases.table_with(one, [48.86]))["note"].to_pylist() == [48.86]


def test_a_place_that_never_changes_is_found_by_its_digits() -> None:
    still = np.full((500, 2), [2.294512, 48.858412])
    with pytest.raises(InvalidInputError, match="'note' repeats"):
        obfuscated(cases.table_with(still, np.full(500, 48.858412)))
    assert obfuscated(cases.table_with(still, np.full(500, 48.0))).num_rows == 500


def test_what_is_dropped_is_gone_and_what_is_kept_is_told() -> None:
    truth = cases.lonlat()
    table = cases.table_with(truth, truth[:, 1]).append_column("street", pa.array(["Rue"] * 60))
    batch = obfuscated(table, Recipe.of(epsilon=0.01, drop=["note"], keep=["street"]))
    assert batch.schema.names == ["trip", "lon", "lat", "street"]
    assert b'"kept": ["street"]' in batch.schema.metadata[b"geoind"]
    assert b"note" not in batch.schema.metadata[b"geoind"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": ["typo"]}, "no column 'typo'"),
        ({"keep": ["typo"]}, "no column 'typo'"),
        ({"drop": ["lon"], "lon": "lon", "lat": "lat"}, "'lon' is needed"),
        ({"drop": ["note"], "keep": ["note"]}, "not both"),
    ],
)
def test_a_column_cannot_be_dropped_or_kept_by_mistake(options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        obfuscated(cases.table_with(cases.lonlat(), ["a"] * 60), Recipe.of(epsilon=0.01, **options))


def test_a_second_geometry_beside_degrees_is_refused() -> None:
    truth = cases.lonlat()
    table = cases.table_with(truth, [b"a"] * 60, "other")
    geo = b'{"version": "1.1.0", "primary_column": "other", "columns": {"other": {"encoding": "WKB"}}}'
    with pytest.raises(InvalidInputError, match="'other' holds geometries"):
        obfuscated(table.replace_schema_metadata({b"geo": geo}), Recipe.of(epsilon=0.01, lon="lon", lat="lat"))


def test_metadata_that_speaks_of_a_place_is_refused_dropped_or_kept() -> None:
    table = cases.table_with(cases.lonlat(), ["a"] * 60).replace_schema_metadata(
        {"extent": "2 48 3 49", "by": "us"}
    )
    with pytest.raises(InvalidInputError, match="'extent' in the metadata"):
        obfuscated(table)
    dropped = obfuscated(table, Recipe.of(epsilon=0.01, drop=["extent"]))
    assert b"extent" not in dropped.schema.metadata
    assert dropped.schema.metadata[b"by"] == b"us"
    assert obfuscated(table, Recipe.of(epsilon=0.01, keep=["extent"])).schema.metadata[b"extent"] == b"2 48 3 49"


@pytest.mark.parametrize("note", ['{"seen": 1, "made": [{"extent": [2, 48, 3, 49]}]}', '[["us"], {"extent": 2}]'])
def test_a_member_that_speaks_of_a_place_is_found_however_deep_in_the_metadata(note: str) -> None:
    table = cases.table_with(cases.lonlat(), ["a"] * 60)
    with pytest.raises(InvalidInputError, match="'note' in the metadata"):
        obfuscated(table.replace_schema_metadata({"note": note}))
    plain = note.replace("extent", "author")
    assert obfuscated(table.replace_schema_metadata({"note": plain})).schema.metadata[b"note"] == plain.encode()


def test_notes_of_a_field_are_judged_and_those_of_the_place_are_gone() -> None:
    fields = [pa.field("lon", pa.float64(), metadata={"seen": "2.3"}), pa.field("lat", pa.float64())]
    columns = [pa.array([2.3]), pa.array([48.8]), pa.array(["a"])]
    for notes, telling in (({"extent": "2 48 3 49"}, True), ({"unit": "one"}, False)):
        schema = pa.schema([*fields, pa.field("note", pa.string(), metadata=notes)])
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        if telling:
            with pytest.raises(InvalidInputError, match="'note' has metadata that speak of a place"):
                RECIPE.obfuscate(batch)
        else:
            report = RECIPE.obfuscate(batch).schema
            assert not report.field("lon").metadata
            assert report.field("note").metadata == {b"unit": b"one"}


def test_a_column_into_which_nobody_looks_is_refused() -> None:
    truth = cases.lonlat(20)
    table = cases.table_with(truth, ["a"] * 20)
    with pytest.raises(InvalidInputError, match="'note' is of a type into which nobody looks"):
        obfuscated(table.set_column(3, "note", pc.run_end_encode(pa.array(truth[:, 1]))))


@pytest.mark.parametrize("case", cases.BY_ARROW)
def test_times_maps_and_bytes_that_hold_coordinates_are_refused(case: str) -> None:
    truth = cases.lonlat()
    with pytest.raises(InvalidInputError, match=r"'note' (repeats|holds)"):
        obfuscated(cases.table_with(truth, cases.BY_ARROW[case](truth)))


def test_entries_of_a_dictionary_that_no_row_has_are_refused() -> None:
    truth = cases.lonlat()
    entries = pa.array([*(str(lat) for _, lat in truth), "x"])
    column = pa.DictionaryArray.from_arrays(pa.array([60] * 60, pa.int32()), entries)
    with pytest.raises(InvalidInputError, match="'note' repeats coordinates in its dictionary"):
        obfuscated(cases.table_with(truth, column))
    plain = pa.DictionaryArray.from_arrays(
        pa.array([0] * 60, pa.int32()), pa.array([f"x{row}" for row in range(60)])
    )
    assert obfuscated(cases.table_with(truth, plain)).num_rows == 60


def test_lists_of_the_newest_kind_are_looked_into() -> None:
    truth = cases.lonlat()
    column = pa.array([[lat, 1.0, 2.0] for _, lat in truth], pa.list_view(pa.float64()))
    with pytest.raises(InvalidInputError, match="'note' repeats the latitude"):
        obfuscated(cases.table_with(truth, column))


def test_coordinates_of_the_row_before_are_found_in_a_long_table_of_the_world() -> None:
    rng = np.random.default_rng(3)
    truth = np.round(rng.uniform([-180, -80], [180, 80], (20_000, 2)), 6)
    with pytest.raises(InvalidInputError, match="'note' repeats coordinates of other rows"):
        obfuscated(cases.table_with(truth, np.roll(truth[:, 1], 3)))
    assert obfuscated(cases.table_with(truth, np.round(rng.uniform(-80, 80, 20_000), 6))).num_rows == 20_000
