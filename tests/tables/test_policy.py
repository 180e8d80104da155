"""Nothing about a place passes by accident, and ordinary columns pass."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import shapely

from geoind.errors import InvalidInputError
from geoind.tables import Recipe
from geoind.tables.cells import geohash, s2_leaf
from geoind.tables.policy import TELLS, refuse, telling_entries, telling_schema, telling_values
from geoind.tables.values import Sample
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


NUMBER, TEXT, FIXED = pa.float64(), pa.string(), pa.list_(pa.float64(), 2)
SCHEMAS: list[tuple[list[pa.Field], dict[str, str]]] = [
    ([pa.field("lat", TEXT), pa.field("note", TEXT)], {"lat": "tells a place by its name"}),
    ([pa.field("lat", pa.bool_())], {}),
    ([pa.field("note", TEXT, metadata={TELLS: "holds a way"})], {"note": "holds a way"}),
    ([pa.field("note", TEXT, metadata={"extent": "1"})], {"note": "has metadata that speak of a place"}),
    ([pa.field("note", TEXT, metadata={"ARROW:extent": "1", "PARQUET:lat": "2", "unit": "one"})], {}),
    ([pa.field("a", pa.struct([("b", NUMBER), ("c", NUMBER)]))], {"a": "holds pairs of numbers"}),
    ([pa.field("a", pa.struct([("b", NUMBER), ("c", TEXT)]))], {}),
    ([pa.field("a", pa.struct([("b", NUMBER), ("c", NUMBER), ("d", NUMBER)]))], {}),
    ([pa.field("a", FIXED)], {"a": "holds pairs of numbers"}),
    ([pa.field("a", pa.list_(NUMBER, 3))], {}),
    ([pa.field("a", pa.list_(TEXT, 2))], {}),
    ([pa.field("a", pa.list_(NUMBER))], {}),
    (
        [pa.field("a", pa.struct([("b", TEXT), ("c", pa.struct([("d", TEXT), ("lon", TEXT)]))]))],
        {"a": "tells a place by the name of its member 'a.c.lon'"},
    ),
    *(
        ([pa.field("a", kind)], {"a": "tells a place by the name of its member 'a.lat'"})
        for kind in (
            pa.list_(pa.struct([("lat", TEXT)])),
            pa.large_list(pa.struct([("b", TEXT), ("lat", TEXT)])),
            pa.map_(TEXT, pa.struct([("lat", TEXT)])),
            pa.list_(pa.list_(pa.struct([("lat", TEXT), ("lon", TEXT)]))),
        )
    ),
    ([pa.field("a", pa.dictionary(pa.int32(), TEXT)), pa.field("b", pa.map_(TEXT, TEXT))], {}),
    ([pa.field("a", pa.run_end_encoded(pa.int32(), NUMBER))], {"a": "is of a type into which nobody looks"}),
    ([pa.field("a", pa.sparse_union([pa.field("b", NUMBER)]))], {"a": "is of a type into which nobody looks"}),
    (
        [pa.field("x", NUMBER), pa.field("y", pa.int32())],
        dict.fromkeys("xy", "is one of two coordinates by its name"),
    ),
    (
        [pa.field("x", TEXT), pa.field("y", pa.large_string())],
        dict.fromkeys("xy", "is one of two coordinates by its name"),
    ),
    ([pa.field("x", NUMBER), pa.field("y", pa.binary())], {}),
    (
        [pa.field("geo_x", NUMBER), pa.field("geo_y", NUMBER)],
        dict.fromkeys(("geo_x", "geo_y"), "tells a place by its name"),
    ),
    ([pa.field("speed", NUMBER)], {}),
]


@pytest.mark.parametrize(("fields", "wanted"), SCHEMAS, ids=lambda case: str(case)[:60])
def test_a_column_tells_a_place_by_its_name_its_type_and_its_notes(fields: Any, wanted: dict[str, str]) -> None:
    told = telling_schema(pa.schema(fields), [field.name for field in fields])
    assert told.keys() == wanted.keys()
    assert all(told[name].startswith(how) for name, how in wanted.items())
    assert telling_schema(pa.schema(fields), []) == {}


def test_motion_is_told_of_traces_alone() -> None:
    schema = pa.schema([pa.field("speed", NUMBER), pa.field("fare", NUMBER)])
    assert telling_schema(schema, ["speed", "fare"], moving=True) == {
        "speed": "tells how somebody moved, by its name"
    }
    assert telling_schema(schema, ["speed", "fare"]) == {}


def test_geometries_are_known_by_what_the_file_declares_and_by_their_extension() -> None:
    geo = b'{"version": "1.1.0", "primary_column": "a", "columns": {"a": {"encoding": "WKB"}}}'
    schema = pa.schema([pa.field("a", pa.binary()), pa.field("b", pa.binary())], metadata={b"geo": geo})
    assert telling_schema(schema, ["a", "b"]) == {"a": "holds geometries"}


def values_told(truth: Any, places: int = 1, **columns: Any) -> dict[str, str]:
    batch = pa.RecordBatch.from_pydict(columns)
    # Where a row has several places, the last one is this one.
    samples = [*[Sample(truth + 7.7 * place) for place in range(1, places)], Sample(truth)]
    return telling_values(samples, batch, list(columns))


@pytest.mark.parametrize("places", [1, 2])
def test_every_way_in_which_values_tell_is_named(places: int) -> None:
    truth = cases.lonlat(100)
    lat = truth[:, 1]
    s2 = [s2_leaf(*place) for place in truth.tolist()]
    gaps = [None if row % 3 else number for row, number in enumerate(s2)]
    columns: dict[str, tuple[Any, str | None]] = {
        "numbers": (lat, "repeats the latitude in degrees"),
        "texts": ([f"at {one}" for one in lat], "repeats the latitude in degrees"),
        "member": ([{"p": "x", "q": [one]} for one in lat], "repeats the latitude in degrees in 'member.q'"),
        "others": (np.roll(lat, 1), "repeats coordinates of other rows"),
        "cells": (s2, "holds S2 cells"),
        "gaps": (pa.array(gaps, pa.int64()), "holds S2 cells"),
        "shapes": ([shapely.Point(place).wkb for place in truth], "holds geometries"),
        "hexed": ([geohash(*place).encode().hex() for place in truth.tolist()], None),
        "bytes": ([s.encode() for s in map(str, s2)], "holds S2 cells"),
        "words": ([f"seen at {one}".encode() for one in lat], "repeats the latitude in degrees"),
        "pairs": (pa.array(truth[:, ::-1].tolist()), "holds pairs of numbers"),
        "threes": (pa.array([[1.0, 2.0, 3.0]] * 100), None),
        "plain": (np.arange(100) * 0.5, None),
        "whole": (np.arange(100), None),
        "blobs": ([bytes([255, row]) * 4 for row in range(100)], None),
        "empty": (pa.array([None] * 100, pa.string()), None),
    }
    told = values_told(truth, places, **{name: column for name, (column, _) in columns.items()})
    assert told == {name: how for name, (_, how) in columns.items() if how is not None}


def test_a_place_in_a_note_that_never_changes_is_told_whichever_row_it_is_of() -> None:
    truth = cases.lonlat(100)
    note = f"{truth[77, 1]} {truth[77, 0]}"
    assert values_told(truth, note=[note] * 100) == {"note": "repeats coordinates of other rows"}
    # Up to fifteen different numbers are few.
    for more, told in ((13, True), (14, False)):
        numbers = np.tile([*truth[77], *(1000.5 + np.arange(more))], 8)[:100]
        assert bool(values_told(truth, note=numbers)) == told


def test_lists_of_two_numbers_are_pairs_as_far_as_anybody_looks() -> None:
    truth = cases.lonlat(70)
    for place, told in ((63, False), (64, True)):
        column: list[list[float] | None] = [[1000.5, 2000.5]] * 70
        column[place] = [1.0]
        column[5] = None
        assert bool(values_told(truth, note=pa.array(column))) == told


def test_only_the_columns_that_would_pass_are_looked_at_and_no_rows_tell_nothing() -> None:
    truth = cases.lonlat(20)
    batch = pa.RecordBatch.from_pydict({"a": truth[:, 1], "b": truth[:, 0]})
    assert telling_values([Sample(truth)], batch, ["b"]).keys() == {"b"}
    assert telling_values([Sample(truth[:0])], batch[:0], ["a", "b"]) == {}
    assert telling_values([], batch, ["a", "b"]) == {}


def test_nothing_is_refused_where_nothing_tells_and_entries_that_are_dropped_or_kept_do_not() -> None:
    refuse({})
    schema = pa.schema([], metadata={"extent": "1", "bbox": "2", "centroid": "3", "by": "us"})
    assert telling_entries(schema, ["bbox"], ["centroid"]) == {"extent": "in the metadata speaks of a place"}
