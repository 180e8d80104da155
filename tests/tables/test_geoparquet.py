"""What a schema declares about its geometries is read, and only what reports need of it is published."""

import json
from typing import Any

import pyarrow as pa
import pyproj
import pytest

from geoind import InvalidInputError
from geoind.tables.geoparquet import declared_crs, geometry_columns, published_schema

LAMBERT = pyproj.CRS("EPSG:2154").to_json_dict()


class Place(pa.ExtensionType):  # type: ignore[misc]
    """A type of its own, as GeoArrow's are when they are registered."""

    def __init__(self, name: str = "geoarrow.wkb", notes: bytes = b'{"crs": "EPSG:2154"}') -> None:
        self._notes = notes
        super().__init__(pa.binary(), name)

    def __arrow_ext_serialize__(self) -> bytes:
        return self._notes

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, notes: bytes) -> "Place":
        return cls(notes=notes)


def extension(name: str, metadata: str | None = None) -> pa.Field:
    notes = {"ARROW:extension:name": name}
    notes |= {} if metadata is None else {"ARROW:extension:metadata": metadata}
    return pa.field("p", pa.binary(), metadata=notes)


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
        (pa.field("p", Place(notes=b"")), None),
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


SECRET = "48.8584"
ABOUT: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Point"], "crs": LAMBERT, "edges": "planar"}


def all_bytes(given: pa.Schema) -> bytes:
    """Return the metadata of a schema and of its fields."""
    entries = [given.metadata or {}, *(field.metadata or {} for field in given)]
    return b" ".join(part for entry in entries for pair in entry.items() for part in pair)


def test_a_schema_of_reports_declares_its_places_and_has_nothing_else_of_the_metadata() -> None:
    spoilt = {**ABOUT, "bbox": [2, SECRET], "covering": {"bbox": {"xmin": ["box", SECRET]}}, "centre": SECRET}
    geo = {
        "version": "1.1.0",
        "primary_column": "place",
        "columns": {"place": spoilt, "home": spoilt, "gone": spoilt},
        "bbox": [SECRET],
        "creator": {"lat": SECRET},
    }
    noted = pa.field("note", pa.string(), metadata={"PARQUET:field_id": "7", "from": SECRET, SECRET: "x"})
    given = schema(geo, noted, pandas=SECRET, author=SECRET, PANDAS_ATTRS=SECRET)
    made = published_schema(given, ["id", "place", "note"], ["place"])
    assert made.names == ["id", "place", "note"]
    assert made.types == [given.field(name).type for name in made.names]
    assert SECRET.encode() not in all_bytes(made)
    assert b"home" not in all_bytes(made)
    assert b"gone" not in all_bytes(made)
    assert geometry_columns(made) == ["place"]
    assert declared_crs(made, "place") == declared_crs(given, "place")
    about = json.loads(made.metadata[b"geo"])["columns"]["place"]
    assert about.items() <= ABOUT.items()


def test_the_primary_column_of_reports_is_one_that_they_have() -> None:
    given = schema({"version": "1.1.0", "primary_column": "place", "columns": {"place": ABOUT, "home": ABOUT}})
    assert geometry_columns(published_schema(given, ["id", "home"], ["home"])) == ["home"]
    assert geometry_columns(published_schema(given, ["home", "place"], ["home", "place"])) == ["place", "home"]
    assert published_schema(given, ["id"], []).metadata is None


@pytest.mark.parametrize(
    "field",
    [extension("geoarrow.wkb", json.dumps({"crs": LAMBERT})), pa.field("p", Place())],
    ids=["notes", "type"],
)
def test_the_crs_of_geoarrow_goes_with_the_reports(field: pa.Field) -> None:
    spoilt = field.with_metadata({**(field.metadata or {}), b"centre": SECRET.encode()})
    made = published_schema(schema(None, spoilt), ["p"], ["p"])
    assert declared_crs(made, "p") == declared_crs(schema(None, field), "p")
    assert SECRET.encode() not in all_bytes(made)


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
