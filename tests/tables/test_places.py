"""Places are read from whatever columns hold them, and reports are written in the same form."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from geoind import InvalidInputError
from geoind.tables.places import GeometryColumn, LonLatColumns, column_of, finite, nulls, rows_of

LONLAT = np.array([[2.25, 48.5], [3.5, -49.75], [-4.125, 50.0], [5.0, 51.5]])
OTHER = np.array([[-1.5, 40.25], [0.5, 41.0], [12.25, -42.5], [179.5, 43.0]])
POINTS = shapely.points(LONLAT)
XY = pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.float64())])


def wkb(shapes: Any, **options: Any) -> list[bytes | None]:
    return [None if shape is None else shapely.to_wkb(shape, **options) for shape in shapes]


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
}


def geometry(column: pa.Array) -> GeometryColumn:
    return GeometryColumn(pa.RecordBatch.from_arrays([column], names=["place"]), "place")


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
    assert written.type == FORMS[form](shapes).type
    again = geometry(written)
    np.testing.assert_array_equal(again.coordinates, np.where(gone[:, None], np.nan, OTHER)[part])
    assert nulls(written).tolist() == gone[part].tolist()
    assert column.srids == again.srids == ({4326} if form == "EWKB" and not gone[part].all() else set())


def test_each_row_that_holds_no_finite_point_is_told_why() -> None:
    shapes = [shapely.Point(1, 2), shapely.LineString([(0, 0), (1, 1)]), shapely.Point(np.inf, 2), shapely.Point()]
    given = [*wkb(shapes), None, b"nonsense", shapely.to_wkb(shapely.Point(3, 4), byte_order=0)]
    column = geometry(pa.array(given))
    told = {reason: np.flatnonzero(flags).tolist() for flags, reason in column.problems()}
    assert told == {
        "the geometry must be WKB": [5],
        "the geometry must be a point": [1],
        "the point must be finite": [2],
    }
    assert np.flatnonzero(column.missing).tolist() == [3, 4]
    assert np.flatnonzero(finite(column.coordinates)).tolist() == [0, 6]


@pytest.mark.parametrize("form", ["WKB", "struct", "list"])
def test_half_a_point_is_a_problem_and_none_at_all_is_missing(form: str) -> None:
    column = geometry(FORMS[form](shapely.points([[1.0, np.nan], [np.nan, 2.0], [3.0, 4.0], [-np.inf, 1.0]])))
    [(flags, reason)] = [(flags, reason) for flags, reason in column.problems() if flags.any()]
    assert (flags.tolist(), reason) == ([True, True, False, True], "the point must be finite")
    assert not column.missing.any()
    pairs = {"struct": [{"x": np.nan, "y": np.nan}], "list": [[np.nan, np.nan]]}.get(form)
    if pairs is not None:
        empty = geometry(pa.array(pairs, FORMS[form](POINTS).type))
        assert empty.missing.tolist() == [True]
        assert not any(flags.any() for flags, _ in empty.problems())


def test_an_empty_point_stays_one_beside_reports() -> None:
    column = geometry(pa.array(wkb([shapely.Point(1, 2), shapely.Point(), None])))
    [written] = column.written(np.array([[5.0, 6.0], [np.nan, np.nan], [np.nan, np.nan]]), 5).values()
    first, second, third = written.to_pylist()
    assert shapely.from_wkb(first) == shapely.Point(5, 6)
    assert shapely.from_wkb(second).is_empty
    assert third is None


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


def degrees(lon: Any, lat: Any) -> LonLatColumns:
    return LonLatColumns(pa.RecordBatch.from_arrays([pa.array(lon), pa.array(lat)], names=["a", "b"]), "a", "b")


def test_degrees_in_text_are_numbers_or_a_problem_or_missing() -> None:
    for spoilt in ("x", "1_0", "0x1", "inf", "nan", "1 2"):
        column = degrees(["+1.5", " 2 ", ".5e1", "", None, spoilt, "4."], ["1"] * 7)
        np.testing.assert_array_equal(column.coordinates[:, 0], [1.5, 2, 5, *[np.nan] * 3, 4])
        assert column.missing.tolist() == [False, False, False, True, True, False, False]
        told = {reason: np.flatnonzero(flags).tolist() for flags, reason in column.problems() if flags.any()}
        assert told == {"the longitude must be a finite number": [5]}
    np.testing.assert_array_equal(degrees(["1.5", None], ["2", "3"]).coordinates, [[1.5, 2.0], [np.nan, np.nan]])


def test_degrees_end_at_the_poles_and_the_antimeridian() -> None:
    over = float(np.nextafter(180, 200)), float(np.nextafter(90, 100))
    column = degrees([180.0, -180.0, over[0], -over[0], 0.0, 0.0], [90.0, -90.0, 0.0, 0.0, over[1], -over[1]])
    told = {reason: np.flatnonzero(flags).tolist() for flags, reason in column.problems() if flags.any()}
    assert told == {"|longitude| must be at most 180": [2, 3], "|latitude| must be at most 90": [4, 5]}
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
    for name in ("a", "c"):
        with pytest.raises(InvalidInputError, match=f"'{name}' must be there once, the columns are a, b, a"):
            column_of(batch, name)
    columns = {
        "views": pa.array(["a", "b", None, "d"], pa.string_view()),
        "bytes": pa.array([b"a", b"b", None, b"d"], pa.binary_view()),
        "numbers": pa.array([1, 2, None, 4]),
    }
    picked = rows_of(pa.RecordBatch.from_pydict(columns), np.array([3, 0, 2]))
    assert picked.schema.types == [column.type for column in columns.values()]
    assert picked.to_pydict() == {"views": ["d", "a", None], "bytes": [b"d", b"a", None], "numbers": [4, 1, None]}
