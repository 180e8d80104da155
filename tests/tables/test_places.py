"""Places are read from whatever columns hold them, and reports are written in the same form."""

import json
from contextlib import nullcontext
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyproj
import pytest
import shapely

from geoind import InvalidInputError
from geoind.tables.columns import column_of, finite, nulls, rows_of
from geoind.tables.places import EMPTY, LonLat, Points, declared_crs, geometry_columns, published_schema

LONLAT = np.array([[2.25, 48.5], [3.5, -49.75], [-4.125, 50.0], [5.0, 51.5]])
OTHER = np.array([[-1.5, 40.25], [0.5, 41.0], [12.25, -42.5], [179.5, 43.0]])
POINTS = shapely.points(LONLAT)
XY = pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.float64())])


def wkb(shapes: Any, **options: Any) -> list[bytes | None]:
    return [None if shape is None else shapely.to_wkb(shape, **options) for shape in shapes]


class Place(pa.ExtensionType):  # type: ignore[misc]
    """A type of its own over a pair of numbers."""

    def __init__(self) -> None:
        super().__init__(XY, "tests.place")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, found: bytes) -> "Place":
        return cls()


FORMS: dict[str, Any] = {
    "WKB": lambda shapes: pa.array(wkb(shapes), pa.binary()),
    "large WKB": lambda shapes: pa.array(wkb(shapes), pa.large_binary()),
    "viewed WKB": lambda shapes: pa.array(wkb(shapes), pa.binary_view()),
    "big-endian WKB": lambda shapes: pa.array(wkb(shapes, byte_order=0), pa.binary()),
    "EWKB": lambda shapes: pa.array(wkb(shapely.set_srid(shapes, 4326), include_srid=True), pa.binary()),
    "struct": lambda shapes: pa.array(
        [None if shape is None else {"x": shape.x, "y": shape.y} for shape in shapes], XY
    ),
    "list": lambda shapes: pa.array(
        [None if shape is None else [shape.x, shape.y] for shape in shapes], pa.list_(pa.float64(), 2)
    ),
    "single precision": lambda shapes: pa.array(
        [None if shape is None else {"x": shape.x, "y": shape.y} for shape in shapes],
        pa.struct([pa.field("x", pa.float32()), pa.field("y", pa.float64())]),
    ),
    "single precision in a list": lambda shapes: pa.array(
        [None if shape is None else [shape.x, shape.y] for shape in shapes], pa.list_(pa.float32(), 2)
    ),
    "a type of its own": lambda shapes: pa.ExtensionArray.from_storage(Place(), FORMS["struct"](shapes)),
}


class Column(NamedTuple):
    """The column or columns of a place in a batch."""

    place: LonLat | Points
    batch: pa.RecordBatch

    @property
    def coordinates(self) -> np.ndarray:
        return self.place.read(self.batch)[0]

    @property
    def missing(self) -> np.ndarray:
        gaps = [flags for flags, reason in self.place.read(self.batch)[1] if reason.endswith(EMPTY)]
        return np.asarray(np.logical_or.reduce(gaps))

    def problems(self) -> list[tuple[np.ndarray, str]]:
        return [(flags, reason) for flags, reason in self.place.read(self.batch)[1] if not reason.endswith(EMPTY)]

    def written(self, coordinates: np.ndarray, decimals: int) -> dict[str, pa.Array]:
        return self.place.written(self.batch, coordinates, decimals)


def geometry(column: pa.Array) -> Column:
    return Column(Points("place"), pa.RecordBatch.from_arrays([column], names=["place"]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hole", [None, 0, 2])
@pytest.mark.parametrize(("start", "size"), [(0, 4), (1, 3), (2, 1), (0, 0)])
def test_points_of_every_form_are_read_and_written_hole_or_not_whole_or_in_part(
    form: str, hole: int | None, start: int, size: int
) -> None:
    shapes = np.array(POINTS, dtype=object)
    gone = np.zeros(4, bool)
    if hole is not None:
        shapes[hole], gone[hole] = None, True
    part = slice(start, start + size)
    column = geometry(FORMS[form](shapes).slice(start, size))
    np.testing.assert_array_equal(column.coordinates, np.where(gone[:, None], np.nan, LONLAT)[part])
    assert column.missing.tolist() == gone[part].tolist()
    assert not any(flags.any() for flags, _ in column.problems())
    [written] = column.written(np.where(gone[:, None], np.nan, OTHER)[part], 5).values()
    assert written.type == (FORMS[form](shapes).type if "WKB" in form else pa.binary())
    again = geometry(written)
    np.testing.assert_array_equal(again.coordinates, np.where(gone[:, None], np.nan, OTHER)[part])
    assert nulls(written).tolist() == gone[part].tolist()


def test_each_row_without_a_finite_point_has_a_reason() -> None:
    shapes = [shapely.Point(1, 2), shapely.LineString([(0, 0), (1, 1)]), shapely.Point(np.inf, 2), shapely.Point()]
    given = [*wkb(shapes), None, b"nonsense", shapely.to_wkb(shapely.Point(3, 4), byte_order=0)]
    column = geometry(pa.array(given))
    found = {reason: np.flatnonzero(flags).tolist() for flags, reason in column.problems() if flags.any()}
    assert found == {
        "geometry must be WKB": [5],
        "geometry must be a point": [1],
        "point must be finite": [2],
    }
    assert np.flatnonzero(column.missing).tolist() == [3, 4]
    assert np.flatnonzero(finite(column.coordinates)).tolist() == [0, 6]


def test_bytes_as_long_as_a_point_are_none_and_bytes_after_a_point_change_nothing() -> None:
    [point] = wkb([shapely.Point(3, 4)])
    assert point is not None
    for given, places, bad in (
        ([b"\xff" * 21], [[np.nan, np.nan]], [True]),
        ([b"\xff" * 21, point], [[np.nan, np.nan], [3.0, 4.0]], [True, False]),
        ([point + b"\x00"], [[3.0, 4.0]], [False]),
        ([point + b"\x00", point], [[3.0, 4.0], [3.0, 4.0]], [False, False]),
    ):
        column = geometry(pa.array(given))
        np.testing.assert_array_equal(column.coordinates, places)
        found = {reason: flags.tolist() for flags, reason in column.problems() if flags.any()}
        assert found == ({"geometry must be WKB": bad} if any(bad) else {})


@pytest.mark.parametrize("form", ["WKB", "struct", "list"])
def test_half_a_point_is_a_problem_and_none_at_all_is_missing(form: str) -> None:
    column = geometry(FORMS[form](shapely.points([[1.0, np.nan], [np.nan, 2.0], [3.0, 4.0], [-np.inf, 1.0]])))
    [(flags, reason)] = [(flags, reason) for flags, reason in column.problems() if flags.any()]
    assert (flags.tolist(), reason) == ([True, True, False, True], "point must be finite")
    assert not column.missing.any()
    pairs = {"struct": [{"x": np.nan, "y": np.nan}], "list": [[np.nan, np.nan]]}.get(form)
    if pairs is not None:
        empty = geometry(pa.array(pairs, FORMS[form](POINTS).type))
        assert empty.missing.tolist() == [True]
        assert not any(flags.any() for flags, _ in empty.problems())


def test_an_empty_point_is_null_beside_reports() -> None:
    column = geometry(pa.array(wkb([shapely.Point(1, 2), shapely.Point(), None])))
    [written] = column.written(np.array([[5.0, 6.0], [np.nan, np.nan], [np.nan, np.nan]]), 5).values()
    first, second, third = written.to_pylist()
    assert shapely.from_wkb(first) == shapely.Point(5, 6)
    assert (second, third) == (None, None)


def test_an_empty_geometry_of_any_kind_is_no_place() -> None:
    shapes = [
        shapely.LineString(),
        shapely.Point(1, 2),
        shapely.MultiPoint(),
        shapely.set_srid(shapely.Point(), 4326),
    ]
    given = wkb(shapes, include_srid=True)
    column = geometry(pa.array(given))
    assert column.missing.tolist() == [True, False, True, True]
    assert not any(flags.any() for flags, _ in column.problems())
    [written] = column.written(np.array([[np.nan] * 2, [5.0, 6.0], [np.nan] * 2, [np.nan] * 2]), 5).values()
    assert written.to_pylist() == [None, shapely.to_wkb(shapely.Point(5, 6)), None, None]


def test_what_lies_under_a_null_is_no_place() -> None:
    mask = pa.array([False, True, False, True])
    parts = [pa.array(axis) for axis in LONLAT.T.copy()]
    for storage in (
        pa.StructArray.from_arrays(parts, ["x", "y"], mask=mask),
        pa.FixedSizeListArray.from_arrays(pa.array(LONLAT.ravel()), 2, mask=mask),
    ):
        for start in (0, 1):
            column = geometry(storage.slice(start))
            gone = np.array(mask.to_pylist())[start:]
            np.testing.assert_array_equal(column.coordinates, np.where(gone[:, None], np.nan, LONLAT[start:]))
            assert column.missing.tolist() == gone.tolist()
    lon = pa.Array.from_buffers(pa.float64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([2.5, 3.5]))])
    np.testing.assert_array_equal(degrees(lon, [48.0, 49.0]).coordinates, [[2.5, 48.0], [np.nan, np.nan]])


@pytest.mark.parametrize(
    ("given", "valid"),
    [([(1, 4326), (2, 2154), (3, 0)], False), ([(1, 4326), (2, 0)], True), ([(1, 2154), (2, 2154)], False)],
)
def test_the_codes_that_geometries_carry_must_be_those_of_the_crs(
    given: list[tuple[int, int]], valid: bool
) -> None:
    shapes = [shapely.set_srid(shapely.Point(at, at), code) for at, code in given]
    column = geometry(pa.array([*wkb(shapes, include_srid=True, byte_order=0), None]))
    with nullcontext() if valid else pytest.raises(InvalidInputError, match="another CRS than its own geometries"):
        _ = column.coordinates
    [written] = column.written(np.array([*([5.0, 6.0] for _ in given), [np.nan, np.nan]]), 5).values()
    again = shapely.from_wkb(written.to_pylist())
    assert again[:-1].tolist() == [shapely.Point(5, 6)] * len(given)
    assert again[-1] is None


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([{"x": 1.0, "y": 2.0, "z": 3.0}]), r"x and y only, got a struct of \['x', 'y', 'z'\]"),
        (pa.array([{"x": 1.0}]), r"x and y only, got a struct of \['x'\]"),
        (pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.float64(), 3)), "x and y only, got lists of 3"),
        (pa.array([[1.0, 2.0]]), "must hold WKB or GeoArrow points, got list"),
        (pa.array(["POINT (1 2)"]), "must hold WKB or GeoArrow points, got string"),
    ],
)
def test_columns_of_anything_else_are_no_points(column: pa.Array, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _ = geometry(column).coordinates


def degrees(lon: Any, lat: Any) -> Column:
    return Column(LonLat("a", "b"), pa.RecordBatch.from_arrays([pa.array(lon), pa.array(lat)], names=["a", "b"]))


def test_degrees_in_text_are_numbers_or_a_problem_or_missing() -> None:
    for spoilt in ("x", "1_0", "0x1", "inf", "nan", "1 2"):
        column = degrees(["+1.5", " 2 ", ".5e1", "", None, spoilt, "4."], ["1"] * 7)
        np.testing.assert_array_equal(column.coordinates[:, 0], [1.5, 2, 5, *[np.nan] * 3, 4])
        assert column.missing.tolist() == [False, False, False, True, True, False, False]
        found = {reason: np.flatnonzero(flags).tolist() for flags, reason in column.problems() if flags.any()}
        assert found == {"longitude must be a finite number": [5]}
    np.testing.assert_array_equal(degrees(["1.5", None], ["2", "3"]).coordinates, [[1.5, 2.0], [np.nan, np.nan]])


def test_degrees_end_at_the_poles_and_the_antimeridian() -> None:
    over = float(np.nextafter(180, 200)), float(np.nextafter(90, 100))
    column = degrees([180.0, -180.0, over[0], -over[0], 0.0, 0.0], [90.0, -90.0, 0.0, 0.0, over[1], -over[1]])
    found = {reason: np.flatnonzero(flags).tolist() for flags, reason in column.problems() if flags.any()}
    assert found == {
        "longitude must be between -180 and 180: are lat and lon swapped?": [2, 3],
        "latitude must be between -90 and 90: are lat and lon swapped?": [4, 5],
    }
    assert not any(flags.any() for flags, _ in degrees([180.0, -180.0], [90.0, -90.0]).problems())
    assert not any(flags.any() for flags, _ in degrees(np.empty(0), np.empty(0)).problems())


@pytest.mark.parametrize("decimals", [2, 5])
@pytest.mark.parametrize("hole", [False, True])
def test_degrees_are_written_in_the_type_that_they_came_in(decimals: int, hole: bool) -> None:
    lon, lat = OTHER.round(decimals).T.copy()
    gone = np.array([False, hole, False, False])
    lon[gone], lat[gone] = np.nan, np.nan
    wanted = [None if flag else value for value, flag in zip(lon.tolist(), gone, strict=True)]
    for values, kind in (
        ([2.5] * 4, pa.float64()),
        ([2.5] * 4, pa.float32()),
        ([Decimal("2.50")] * 4, pa.decimal128(9, 4)),
    ):
        made = degrees(pa.array(values, kind), [48.5] * 4).written(np.column_stack([lon, lat]), decimals)
        assert list(made) == ["a", "b"]
        assert made["a"].type == kind
        assert [None if value is None else float(value) for value in made["a"].to_pylist()] == wanted
    for kind in (pa.string(), pa.large_string()):
        made = degrees(pa.array(["2.5"] * 4, kind), ["48.5"] * 4).written(np.column_stack([lon, lat]), decimals)
        assert made["a"].type == kind
        texts = ["" if flag else f"{value:.{decimals}f}" for value, flag in zip(lon, gone, strict=True)]
        assert made["a"].to_pylist() == texts


@pytest.mark.parametrize("kind", [pa.int64(), pa.float16(), pa.bool_()])
def test_columns_that_cannot_hold_reports_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match=f"'a' must be float, decimal or text, got {kind}"):
        _ = degrees(pa.array([1, 0]).cast(kind) if kind != pa.float16() else np.ones(2, "f2"), [1.0, 2.0]).missing


def test_a_column_is_there_once_and_rows_are_picked_of_every_type() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "b", "a"])
    assert column_of(batch, "b").to_pylist() == [2]
    for name, reason in {
        "a": "several columns are called 'a'",
        "c": "no column 'c': the columns are a, b, a",
    }.items():
        with pytest.raises(InvalidInputError, match=reason):
            column_of(batch, name)
    columns = {
        "views": pa.array(["a", "b", None, "d"], pa.string_view()),
        "bytes": pa.array([b"a", b"b", None, b"d"], pa.binary_view()),
        "numbers": pa.array([1, 2, None, 4]),
    }
    picked = rows_of(pa.RecordBatch.from_pydict(columns), np.array([3, 0, 2]))
    assert picked.schema.types == [column.type for column in columns.values()]
    assert picked.to_pydict() == {"views": ["d", "a", None], "bytes": [b"d", b"a", None], "numbers": [4, 1, None]}


def test_every_problem_with_degrees_is_named_for_its_own_axis() -> None:
    inf, nan = np.inf, np.nan
    column = degrees([0.0, nan, inf, 200.0, None, 1.0], [0.0, 1.0, 2.0, 3.0, 200.0, -inf])
    found = [(reason, np.flatnonzero(flags).tolist()) for flags, reason in column.problems()]
    assert found == [
        ("longitude must be a finite number", [1, 2]),
        ("longitude must be between -180 and 180: are lat and lon swapped?", [3]),
        ("latitude must be a finite number", [5]),
        ("latitude must be between -90 and 90: are lat and lon swapped?", []),
    ]
    assert column.missing.tolist() == [False, False, False, False, True, False]


@pytest.mark.parametrize("decimals", [0, 1, 5])
def test_degrees_in_text_are_rounded_to_the_nearest_of_so_many_decimals(decimals: int) -> None:
    values = np.array([-179.123456789, 179.99999999, -0.00000001, 12.5, -90.0, 89.000004999])
    made = degrees(["1"] * 6, ["1"] * 6).written(np.column_stack([values, values[::-1]]), decimals)
    for name, wanted in (("a", values), ("b", values[::-1])):
        found = made[name].to_pylist()
        assert [float(text) for text in found] == np.round(wanted, decimals).tolist()
        assert all(len(text.partition(".")[2]) == decimals for text in found)
        assert all(("." in text) == (decimals > 0) for text in found)


LAMBERT = pyproj.CRS("EPSG:2154").to_json_dict()


class DeclaredPlace(pa.ExtensionType):  # type: ignore[misc]
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
        (
            {"primary_column": "home"},
            [pa.field("q", DeclaredPlace()), extension("geoarrow.wkb")],
            ["home", "q", "p"],
        ),
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
        (pa.field("p", DeclaredPlace()), "EPSG:2154"),
        (pa.field("p", DeclaredPlace("other.place")), None),
        (pa.field("p", DeclaredPlace(notes=b"")), None),
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


def published(given: pa.Schema, names: list[str], places: list[str]) -> pa.Schema:
    return published_schema(given, names, [Points(name, declared_crs(given, name)) for name in places])


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
    made = published(given, ["id", "place", "note"], ["place"])
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
    assert geometry_columns(published(given, ["id", "home"], ["home"])) == ["home"]
    assert geometry_columns(published(given, ["home", "place"], ["home", "place"])) == ["place", "home"]
    assert published(given, ["id"], []).metadata is None


@pytest.mark.parametrize(
    "field",
    [extension("geoarrow.wkb", json.dumps({"crs": LAMBERT})), pa.field("p", DeclaredPlace())],
    ids=["notes", "type"],
)
def test_the_crs_of_geoarrow_goes_with_the_reports(field: pa.Field) -> None:
    spoilt = field.with_metadata({**(field.metadata or {}), b"centre": SECRET.encode()})
    made = published(schema(None, spoilt), ["p"], ["p"])
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
