"""One recipe for one schema: which columns are read and leave, and what is wrong with a row."""

import hashlib
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoind import InvalidInputError, KeyedRandomness, PlanarLaplace, Projected, Projection, SphericalLaplace
from geoind.keys import Key, key_of_place
from geoind.tables.columns import JSON_TEXT, NO_TIME
from geoind.tables.recipe import EACH_FILE, EACH_ROW, Recipe
from geoind.tables.table import Table
from tests.tables.made_up import KEY, lonlat, released, table_of

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "who": pa.string(),
        "at": pa.float64(),
        "fare": pa.float64(),
        "lon": pa.float64(),
        "lat": pa.float64(),
        "other": pa.string(),
    }
)


def table(schema: pa.Schema = SCHEMA, path: str = "", one_of_several: bool = False, **options: Any) -> Table:
    usual: dict[str, Any] = {"epsilon": 0.01, "person": EACH_ROW}
    return Table(Recipe.of(**usual | options), schema, path, one_of_several)


@pytest.mark.parametrize(
    ("options", "needed", "leaving"),
    [
        ({}, ["lon", "lat"], ["lon", "lat"]),
        ({"keep": ["fare"]}, ["fare", "lon", "lat"], ["fare", "lon", "lat"]),
        ({"person": "who"}, ["who", "lon", "lat"], ["lon", "lat"]),
        ({"id_column": "id", "key": KEY}, ["id", "lon", "lat"], ["lon", "lat"]),
        ({"person": "who", "keep": ["who", "id"]}, ["id", "who", "lon", "lat"], ["id", "who", "lon", "lat"]),
        ({"person": "who", "time": "at"}, ["who", "at", "lon", "lat"], ["who", "at", "lon", "lat"]),
    ],
)
def test_the_columns_that_leave_are_the_reports_and_those_that_are_named(
    options: dict[str, Any], needed: list[str], leaving: list[str]
) -> None:
    made = table(**options)
    assert made.needed == needed
    assert made.reported_schema.names == leaving
    assert sorted([*made.left_out, *leaving]) == sorted(SCHEMA.names)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": ["gone"]}, "column 'gone': the columns are id, who"),
        ({"person": "gone"}, "no column 'gone'"),
        ({"person": "who", "time": "gone"}, "no column 'gone'"),
        ({"id_column": "gone"}, "no column 'gone'"),
        ({"lon": "gone", "lat": "lat"}, "no column 'gone'"),
        ({"keep": ["lat"]}, "column 'lat' holds the true place"),
        ({"person": "lon"}, "column 'lon' holds the true place"),
        ({"id_column": "lon"}, "column 'lon' holds the true place"),
        ({"person": EACH_FILE}, "EACH_FILE is for files"),
        ({"geometry": "other"}, "'other'"),
    ],
)
def test_columns_that_are_missing_or_hold_the_place_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        table(**options)


def test_of_several_tables_one_may_lack_a_kept_column_and_no_other() -> None:
    made = table(one_of_several=True, keep=["gone", "fare"])
    assert made.reported_schema.names == ["fare", "lon", "lat"]
    for options in ({"person": "gone"}, {"id_column": "gone"}, {"lon": "gone", "lat": "lat"}):
        with pytest.raises(InvalidInputError, match="no column 'gone'"):
            table(one_of_several=True, **options)


def test_a_name_that_may_be_a_coordinate_is_not_shown() -> None:
    schema = pa.schema({"48.8584": pa.string(), "2.2945": pa.string()})
    with pytest.raises(InvalidInputError, match="the columns are") as caught:
        table(schema)
    assert "48.8584" not in str(caught.value)


def test_each_bad_row_has_a_reason_and_the_others_are_examined() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "id": [1, 2, 3, 4, None, 6, 7],
            "lon": ["2.35", "x", "181", "2.36", "2.37", "", "1_0"],
            "lat": ["48.85", "48.85", "48.85", "nan", "48.85", "48.85", "1"],
        }
    )
    examined = table(batch.schema, key=KEY, id_column="id").examine(batch)
    assert dict(examined.problems) == {
        1: "longitude must be a finite number",
        2: "longitude must be between -180 and 180: are lat and lon swapped?",
        3: "latitude must be a finite number",
        4: "identity is missing in column 'id'",
        5: "longitude is empty",
        6: "longitude must be a finite number",
    }
    assert examined.rows.tolist() == [0]
    assert examined.truths[0].tolist() == [[2.35, 48.85]]
    with pytest.raises(InvalidInputError, match=r"row 1: longitude must be .* \(6 such rows\)"):
        released(pa.Table.from_batches([batch]), person=EACH_ROW, key=KEY, id_column="id")


def test_a_row_without_person_or_time_has_a_reason() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "who": [" ana", "ben", None, "ana", "ana", "ana"],
            "at": ["0", "0", "60", None, "soon", "120"],
            "lon": [2.3] * 6,
            "lat": [48.8] * 6,
        }
    )
    examined = table(batch.schema, person="who", time="at").examine(batch)
    assert dict(examined.problems) == {
        0: "person must be a name without space around it",
        2: "person is missing in column 'who'",
        3: "time is missing in column 'at'",
        4: NO_TIME,
    }
    assert examined.times is not None
    assert examined.times.tolist() == [0.0, 120.0]
    assert examined.codes is not None
    assert [examined.names[code] for code in examined.codes] == ["ben", "ana"]


def test_a_place_outside_the_domain_of_a_mechanism_is_refused() -> None:
    mechanism = Projected(PlanarLaplace(0.01), Projection.from_crs("EPSG:2154"))
    batch = table_of(3).to_batches()[0]
    made = Table(Recipe.of(mechanism=mechanism, person=EACH_ROW), batch.schema)
    assert made.examine(batch).problems == {}
    far = pa.RecordBatch.from_pydict({"lon": [139.7], "lat": [35.7]})
    examined = made.examine(far)
    assert not len(examined.rows)
    assert examined.problems == {0: "the place lies outside the domain of the mechanism"}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_and_numbers_of_the_same_places_get_the_same_reports(kind: pa.DataType) -> None:
    numbers = table_of(300, id=np.arange(300))
    texts = {name: pa.array(map(repr, numbers[name].to_pylist()), kind) for name in ("lon", "lat")}
    options: dict[str, Any] = {"person": EACH_ROW, "key": KEY, "id_column": "id"}
    [by_number] = released(numbers, **options)[1]
    [by_text] = released(pa.table({"id": np.arange(300), **texts}), **options)[1]
    assert by_text.schema.types == [kind, kind]
    for name in ("lon", "lat"):
        assert [float(text) for text in by_text[name].to_pylist()] == by_number[name].to_pylist()
        assert all(len(text.partition(".")[2]) == 5 for text in by_text[name].to_pylist())


def test_members_of_json_are_read_as_the_values_that_they_are() -> None:
    notes = {JSON_TEXT: b"1"}
    names = ("who", "at", "lon", "lat")
    schema = pa.schema([pa.field(name, pa.string(), metadata=notes) for name in names])
    rows = [('"ana"', "1700000000", "2.35", "48.85"), ("7", '"2024-05-01T08:00:00Z"', '"2.35"', '"48.85"')]
    batch = pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], schema=schema)
    examined = table(schema, person="who", time="at").examine(batch)
    assert examined.problems == {}
    assert list(examined.names) == ["ana", "7"]
    assert examined.times is not None
    assert examined.times.tolist() == [1.7e9, 1714550400.0]
    assert examined.truths[0].tolist() == [[2.35, 48.85]] * 2


PLACES: dict[str, Any] = {"lon": ["a_lon", "b_lon"], "lat": ["a_lat", "b_lat"]}


def two_places(count: int = 500) -> pa.Table:
    """Return rows with the same place twice."""
    truth = lonlat(count)
    return pa.table(
        {name: truth[:, axis] for place in "ab" for axis, name in enumerate((f"{place}_lon", f"{place}_lat"))}
    )


@pytest.mark.parametrize("options", [{}, {"key": KEY}])
def test_several_places_of_a_row_have_noise_of_their_own(options: dict[str, Any]) -> None:
    given = two_places()
    [made] = released(given, person=EACH_ROW, **PLACES, **options)[1]
    noise = {name: made[name].to_numpy() - given[name].to_numpy() for name in given.column_names}
    assert (noise["a_lon"] != noise["b_lon"]).mean() > 0.99
    correlations = np.corrcoef(list(noise.values()))
    assert np.abs(correlations[np.triu_indices(4, 1)]).max() < 0.2


def test_a_place_that_is_missing_leaves_the_other_of_its_row() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"a_lon": [2.3, None], "a_lat": [48.8, 48.9], "b_lon": [2.4, 2.5], "b_lat": [48.7, 48.6]}
    )
    [made] = released(pa.Table.from_batches([batch]), person=EACH_ROW, missing="keep", **PLACES)[1]
    # The half of a place that was there is gone, too.
    assert [made[name].null_count for name in made.column_names] == [1, 1, 0, 0]
    problems = table(batch.schema, **PLACES).examine(batch).problems
    assert problems == {1: "a_lon and a_lat: longitude is empty"}


def test_noise_depends_on_the_record_its_file_its_place_and_the_key_alone() -> None:
    given = table_of(50, id=np.arange(50))
    mechanism, truth = SphericalLaplace(0.001), lonlat(50)

    def reports(**options: Any) -> np.ndarray:
        [made] = released(given, person=EACH_ROW, paths=("b/a.csv",), **{"key": KEY} | options)[1]
        return np.column_stack([made["lon"], made["lat"]])

    named = mechanism.sample(truth, rng=KeyedRandomness(KEY, np.arange(50)))
    by_row = mechanism.sample(truth, rng=KeyedRandomness(Key(KEY).for_file("b/a.csv"), np.arange(50)))
    np.testing.assert_array_equal(reports(id_column="id"), named)
    np.testing.assert_array_equal(reports(id_column="id", size=7), named)
    np.testing.assert_array_equal(reports(), by_row)
    np.testing.assert_array_equal(reports(size=7, keep=["id"]), by_row)
    assert (reports(key=None) != by_row).any(axis=1).all()
    assert (reports(key=bytes(32)) != by_row).any(axis=1).all()


def test_the_keys_of_files_and_places_are_frozen() -> None:
    """Known answers: another key for a file or a place would be a second release of the same records."""
    secret = hashlib.sha256(b"a key for tests").digest()
    assert Key(secret).for_file("day=1/b.parquet").hex() == FILE_KEY
    assert key_of_place(secret, 1).hex() == PLACE_KEY
    words = KeyedRandomness(Key(secret).for_file("day=1/b.parquet"), [0, 1]).words(
        np.array([[2.2945, 48.8584]] * 2), 2, "known answers"
    )
    assert [[f"{word:016x}" for word in row] for row in words.tolist()] == WORDS


FILE_KEY = "80a00cf28dbe3d36bd138b5b33e1d507af9891670e2db3e7d8408038fa0ad867"
PLACE_KEY = "b7cd2315c63f835ad50b21fbfa4a5ec033909ee20aa790fae56fd615ba9cbd0e"
WORDS = [["754829b6fd5c37d0", "b24e841b9ab44916"], ["e4548141d4d9340e", "15716213c8a20d96"]]
