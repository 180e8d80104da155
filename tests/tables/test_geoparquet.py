"""What a schema says of its places is read whole, and nothing of it that speaks of the truth is passed on."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyproj
import pytest

from geoind import InvalidInputError
from geoind.tables.geoparquet import (
    box_columns,
    covering_of,
    declared_crs,
    extension_name,
    geometry_columns,
    published_field,
    published_metadata,
    telling_metadata,
)

LAMBERT = {"type": "ProjectedCRS", "id": {"authority": "EPSG", "code": 2154}}
SIDES = ("xmin", "ymin", "xmax", "ymax")
COVERING = {"bbox": {side: ["box", side] for side in SIDES}}


class Place(pa.ExtensionType):  # type: ignore[misc]
    """A type of its own, as GeoArrow's are when they are registered."""

    def __init__(self, name: str = "geoarrow.wkb", told: bytes = b'{"crs": "EPSG:2154"}') -> None:
        self._told = told
        super().__init__(pa.binary(), name)

    def __arrow_ext_serialize__(self) -> bytes:
        return self._told

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, told: bytes) -> "Place":
        return cls(told=told)


def extension(name: str, told: str | None = None) -> pa.Field:
    notes = {"ARROW:extension:name": name}
    return pa.field(
        "p", pa.binary(), metadata=notes if told is None else notes | {"ARROW:extension:metadata": told}
    )


def schema(geo: Any = None, *fields: pa.Field, **more: str) -> pa.Schema:
    """Return a schema of the columns id, place and home, and what GeoParquet says of them."""
    usual = [pa.field("id", pa.int64()), pa.field("place", pa.binary()), pa.field("home", pa.binary())]
    notes = dict(more) if geo is None else {"geo": json.dumps(geo), **more}
    return pa.schema([*usual, *fields], notes or None)


@pytest.mark.parametrize(
    ("geo", "fields", "names"),
    [
        (None, [], []),
        ({}, [], []),
        ({"primary_column": "place"}, [], ["place"]),
        ({"columns": {"home": {}, "place": {}}}, [], ["home", "place"]),
        ({"primary_column": "place", "columns": {"home": {}, "place": {}}}, [], ["place", "home"]),
        ({"primary_column": "gone", "columns": {"home": {}, "away": {}}}, [], ["home"]),
        (None, [extension("geoarrow.point")], ["p"]),
        (None, [extension("arrow.json")], []),
        ({"primary_column": "home"}, [pa.field("q", Place()), extension("geoarrow.wkb")], ["home", "q", "p"]),
    ],
)
def test_geometries_are_those_that_the_schema_declares_the_primary_one_first(
    geo: Any, fields: list[pa.Field], names: list[str]
) -> None:
    assert geometry_columns(schema(geo, *fields)) == names


@pytest.mark.parametrize(
    ("about", "crs"),
    [
        ({}, "OGC:CRS84"),
        ({"crs": None}, None),
        ({"crs": "EPSG:2154"}, "EPSG:2154"),
        ({"crs": LAMBERT}, json.dumps(LAMBERT)),
    ],
)
def test_the_crs_of_geoparquet_is_degrees_unless_it_says_another_or_that_none_is_known(
    about: dict[str, Any], crs: str | None
) -> None:
    given = schema({"primary_column": "place", "columns": {"place": about}})
    assert declared_crs(given, "place") == crs
    assert declared_crs(given, "home") is None
    assert declared_crs(schema(), "place") is None


@pytest.mark.parametrize(
    ("field", "crs"),
    [
        (extension("geoarrow.wkb", '{"crs": "EPSG:2154"}'), "EPSG:2154"),
        (extension("geoarrow.wkb", json.dumps({"crs": LAMBERT})), json.dumps(LAMBERT)),
        (extension("geoarrow.wkb", "{}"), None),
        (extension("geoarrow.wkb", ""), None),
        (extension("geoarrow.wkb"), None),
        (extension("arrow.json", '{"crs": "EPSG:2154"}'), None),
        (pa.field("p", Place()), "EPSG:2154"),
        (pa.field("p", Place("other.place")), None),
        (pa.field("p", Place(told=b"")), None),
    ],
)
def test_the_crs_of_geoarrow_is_in_the_fields_own_notes_and_geoparquets_must_be_the_same(
    field: pa.Field, crs: str | None
) -> None:
    assert declared_crs(schema(None, field), "p") == crs
    both = schema({"columns": {"p": {"crs": "EPSG:3035"}}}, field)
    if crs is None:
        assert declared_crs(both, "p") == "EPSG:3035"
    else:
        with pytest.raises(InvalidInputError):
            declared_crs(both, "p")


@pytest.mark.parametrize("text", ["{", "[]", "7", "null"])
def test_notes_that_are_no_json_object_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="metadata of the schema is not"):
        geometry_columns(schema().with_metadata({"geo": text}))
    with pytest.raises(InvalidInputError, match="metadata of the schema is not"):
        declared_crs(schema(None, extension("geoarrow.wkb", text)), "p")


def test_an_extension_type_has_a_name_and_others_have_none() -> None:
    assert extension_name(Place("other.place")) == "other.place"
    assert extension_name(pa.uuid()) == "arrow.uuid"
    assert extension_name(pa.int64()) == ""


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({}, []),
        ({"extent": "2 48", "author": "ana"}, ["extent"]),
        ({"author": '{"bbox": [2, 48]}'}, ["author"]),
        ({"author": '{"a": {"b": [{"latitude": 48}]}}'}, ["author"]),
        ({"author": '[1, [{"latitude": 48}]]'}, ["author"]),
        ({"author": '{"a": ["latitude", 7, null]}'}, []),
        ({"author": '"latitude"'}, []),
        ({"author": "the latitude, {"}, []),
        (
            dict.fromkeys(
                ("geo", "pandas", "geoind", "ARROW:schema", "gdal:schema", "PANDAS_ATTRS"), '{"lat": 1}'
            ),
            [],
        ),
        ({"org.apache.spark.version": '{"lat": 1}'}, []),
        ({"org.apache.other": '{"lat": 1}', "z": "{}", "home_lat": "1"}, ["org.apache.other", "home_lat"]),
    ],
)
def test_entries_of_the_metadata_that_speak_of_a_place_are_named(
    metadata: dict[str, str], told: list[str]
) -> None:
    assert telling_metadata(pa.schema({"a": pa.int64()}, metadata or None)) == told


def test_an_entry_whose_name_is_no_text_is_judged_by_what_can_be_read_of_it() -> None:
    [told] = telling_metadata(pa.schema({"a": pa.int64()}, {b"latitude_\xff": b"1"}))
    assert told == "latitude_\N{REPLACEMENT CHARACTER}"
    assert telling_metadata(pa.schema({"a": pa.int64()}, {b"\xff": b"\xff"})) == []


ABOUT: dict[str, Any] = {
    "encoding": "WKB",
    "geometry_types": ["Point"],
    "crs": LAMBERT,
    "edges": "planar",
    "orientation": "counterclockwise",
    "epoch": 2020.5,
    "covering": COVERING,
}


def published(given: pa.Schema, names: list[str], drop: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the metadata that goes with the reports, read."""
    made = published_metadata(given, names, drop)
    return {name.decode(): json.loads(value) for name, value in made.items()}


def test_geoparquet_says_of_the_reports_what_is_true_of_them_too_and_nothing_of_columns_that_are_gone() -> None:
    spoilt = {**ABOUT, "bbox": [2, 48, 3, 49], "centre": [2.3, 48.8]}
    geo = {
        "version": "1.1.0",
        "primary_column": "place",
        "columns": {"place": spoilt, "home": spoilt, "gone": spoilt},
        "bbox": [2, 48, 3, 49],
        "creator": {"lat": 48},
    }
    kept = {"version": "1.1.0", "primary_column": "place"}
    assert published(schema(geo), ["id", "place", "home"]) == {
        "geo": kept | {"columns": {"place": ABOUT, "home": ABOUT}}
    }
    assert published(schema(geo), ["id", "place"], ("home",)) == {"geo": kept | {"columns": {"place": ABOUT}}}
    # Without the primary column a reader would look for what is not there.
    assert published(schema(geo), ["id", "home"], ("place",)) == {}
    assert published(schema({"columns": {"place": ABOUT}}), ["id", "place"]) == {}
    old = {"primary_column": "place", "columns": {"place": ABOUT}}
    assert published(schema(old), ["place"]) == {"geo": old}
    assert published(schema({"primary_column": "place"}), ["place"]) == {
        "geo": {"primary_column": "place", "columns": {}}
    }


def test_other_entries_pass_unless_they_are_dropped_or_a_frames_own() -> None:
    given = schema(None, owner='"us"', extent="[2]", PANDAS_ATTRS='{"lat": 48}')
    assert published(given, ["id"], ("extent",)) == {"owner": "us"}
    assert published(given, ["id"]) == {"owner": "us", "extent": [2]}
    assert published(schema(), ["id"]) == {}
    assert published(schema({}), ["id"]) == {"geo": {}}


def test_pandas_is_told_of_the_columns_that_are_left_and_of_no_notes() -> None:
    columns = [{"name": name, "field_name": name} for name in ("id", "home", "cell")]
    span = {"kind": "range", "start": 0, "stop": 9, "step": 1}
    frame = {
        "index_columns": ["cell", span, "id"],
        "column_indexes": [],
        "columns": columns,
        "creator": {"library": "pyarrow", "version": "1"},
        "pandas_version": "3",
        "partition_columns": ["day"],
    }
    given = schema(None, pandas=json.dumps(frame | {"attributes": {"centre": [2, 48]}}))
    assert published(given, ["id", "home"], ("cell",)) == {
        "pandas": frame | {"index_columns": [span, "id"], "columns": columns[:2]}
    }
    assert published(schema(None, pandas="{}"), ["id"]) == {"pandas": {"columns": [], "index_columns": []}}


def with_boxes(kinds: dict[str, pa.DataType], covering: Any = COVERING, name: str = "box") -> pa.RecordBatch:
    """Return three rows with a column of boxes, which are all zero."""
    parts = [pa.array([0.0, 0.0, 0.0]).cast(kind) for kind in kinds.values()]
    fields = [pa.field(side, kind) for side, kind in kinds.items()]
    geo = {"primary_column": "place", "columns": {"place": {"covering": covering}, "home": {}}}
    batch = pa.RecordBatch.from_pydict(
        {"place": [b"x"] * 3, "home": [b"y"] * 3, name: pa.StructArray.from_arrays(parts, fields=fields)}
    )
    return batch.replace_schema_metadata({"geo": json.dumps(geo)})


REPORTS = np.array([[2.123456789, -48.987654321], [np.nan, np.nan], [-0.1, 0.3]])


@pytest.mark.parametrize("order", [SIDES, tuple(reversed(SIDES))])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_boxes_are_made_anew_around_the_reports(kind: pa.DataType, order: tuple[str, ...]) -> None:
    batch = with_boxes(dict.fromkeys(order, kind))
    assert covering_of(batch.schema, "place") == "box"
    [(name, boxes)] = box_columns(batch, "place", REPORTS).items()
    assert name == "box"
    assert boxes.type == batch["box"].type
    assert boxes[1].as_py() is None
    for row in (0, 2):
        box = boxes[row].as_py()
        for axis, value in zip("xy", REPORTS[row], strict=True):
            low, high = box[f"{axis}min"], box[f"{axis}max"]
            if kind == pa.float64():
                assert low == value == high
            else:
                assert low < value < high
                assert high - low <= 2.5 * np.spacing(np.float32(abs(value)))


def test_a_row_with_half_a_report_has_a_box_still() -> None:
    batch = with_boxes(dict.fromkeys(SIDES, pa.float64()))
    [boxes] = box_columns(batch, "place", np.array([[1.0, np.nan], [np.nan, 1.0], [np.nan, np.nan]])).values()
    assert boxes.is_null().to_pylist() == [False, False, True]


def test_geometries_without_boxes_have_none_made() -> None:
    batch = with_boxes(dict.fromkeys(SIDES, pa.float64()))
    assert covering_of(batch.schema, "home") is None
    assert covering_of(batch.schema, "nowhere") is None
    assert box_columns(batch, "home", REPORTS) == {}
    # What is declared and not there is no column.
    assert box_columns(with_boxes(dict.fromkeys(SIDES, pa.float64()), name="other"), "place", REPORTS) == {}
    assert covering_of(schema(), "place") is None
    assert covering_of(schema({"columns": {"place": {"covering": {}}}}), "place") is None


@pytest.mark.parametrize("sides", [SIDES[:3], (*SIDES, "zmin"), ("a", "b", "c", "d")])
def test_boxes_with_other_sides_than_are_declared_cannot_be_made_anew(sides: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError, match=r"column 'box' holds boxes of the true places .* drop it"):
        box_columns(with_boxes(dict.fromkeys(sides, pa.float64())), "place", REPORTS)


def test_boxes_that_are_no_struct_cannot_be_made_anew() -> None:
    batch = with_boxes(dict.fromkeys(SIDES, pa.float64()))
    columns = [batch["place"], pa.array([[0.0] * 4] * 3)]
    listed = pa.RecordBatch.from_arrays(columns, names=["place", "box"]).replace_schema_metadata(
        batch.schema.metadata
    )
    with pytest.raises(InvalidInputError, match="column 'box' holds boxes of the true places"):
        box_columns(listed, "place", REPORTS)


def test_the_field_of_a_place_keeps_notes_of_the_format_alone() -> None:
    format_notes = {b"ARROW:extension:name": b"geoarrow.wkb", b"PARQUET:field_id": b"7"}
    for notes in (None, format_notes):
        field = pa.field("p", pa.binary(), nullable=False, metadata=notes)
        assert published_field(field) is field
    spoilt = pa.field(
        "p", pa.binary(), nullable=False, metadata={**format_notes, b"centre": b"2 48", b"arrow": b""}
    )
    made = published_field(spoilt)
    assert made.metadata == format_notes
    assert (made.name, made.type, made.nullable) == ("p", pa.binary(), False)


def test_one_crs_may_be_written_in_two_ways() -> None:
    field = extension("geoarrow.wkb", '{"crs": "EPSG:2154"}')
    geo = {"primary_column": "p", "columns": {"p": {"crs": pyproj.CRS("EPSG:2154").to_json_dict()}}}
    assert declared_crs(schema(geo, field), "p") == "EPSG:2154"


@pytest.mark.parametrize("stored", ["EPSG:3857", {"proj": "longlat", "nadgrids": "/dev/null"}, 7])
def test_two_crs_for_one_column_are_refused(stored: object) -> None:
    field = extension("geoarrow.wkb", '{"crs": "EPSG:2154"}')
    geo = {"primary_column": "p", "columns": {"p": {"encoding": "WKB", "crs": stored}}}
    with pytest.raises(InvalidInputError, match="CRS"):
        declared_crs(schema(geo, field), "p")
