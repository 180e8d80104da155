"""Arrow columns that hold places, to and from (n, 2) coordinates: lon and lat, WKB, GeoArrow points."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.tables.names import listed

__all__ = [
    "Flags",
    "GeometryColumn",
    "LonLatColumns",
    "column_of",
    "finite",
    "is_binary",
    "is_text",
    "nulls",
    "picked",
    "rows_of",
    "without_views",
]

Flags = npt.NDArray[np.bool_]

SWAPPED = "are lat and lon swapped?"

WKB_POINT = np.frombuffer(b"\x01\x01\x00\x00\x00", np.uint8)
"""How a little-endian WKB point begins; its two doubles follow."""
WKB_BYTES = 21

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""What other readers of a text file take for a number, too."""
DECIMAL_COMMA = r"^([+-]?[0-9]+),([0-9]+)$"


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the column of that name, which must be there exactly once."""
    if batch.schema.names.count(name) != 1:
        raise InvalidInputError(f"column {name!r} must exist once, the columns are {listed(batch.schema.names)}")
    return batch.column(batch.schema.get_field_index(name))


def rows_of(batch: pa.RecordBatch, rows: IntArray) -> pa.RecordBatch:
    """Return some rows of a batch."""
    indices = pa.array(rows)
    try:
        return batch.take(indices)
    except pa.ArrowNotImplementedError:
        pass
    return pa.RecordBatch.from_arrays([picked(column, indices) for column in batch.columns], schema=batch.schema)


def picked(column: pa.Array, indices: pa.Array) -> pa.Array:
    """Return some values of a column; Arrow cannot pick views yet, nor what contains them."""
    try:
        return column.take(indices)
    except pa.ArrowNotImplementedError:
        plain = without_views(column)
        if plain is not column:
            return plain.take(indices).cast(column.type)
        return pa.array([column[row].as_py() for row in indices.to_pylist()], column.type)


def without_views(column: pa.Array) -> pa.Array:
    """Return a column of string or binary views in a type from which Arrow can pick rows; others as they are."""
    if not (pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type)):
        return column
    return column.cast(pa.large_string() if is_text(column.type) else pa.large_binary())


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Return whether a type is bytes."""
    return any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view))


def finite(coordinates: FloatArray) -> Flags:
    """Return which of the (n, 2) coordinates are numbers, both of them."""
    # Not all(axis=1), which numpy does row by row.
    return np.asarray(np.isfinite(coordinates[:, 0]) & np.isfinite(coordinates[:, 1]))


def nulls(column: pa.Array) -> Flags:
    """Return which rows are null."""
    if not column.null_count:
        return np.zeros(len(column), bool)
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)


@dataclass(frozen=True)
class LonLatColumns:
    """Two columns of numbers, or of numbers as text. A row lacks its place when either is null or empty."""

    batch: pa.RecordBatch
    lon: str
    lat: str

    @cached_property
    def missing(self) -> Flags:
        """Which rows have no place."""
        return self._axes[0][1] | self._axes[1][1]

    def gaps(self) -> Iterator[tuple[Flags, str]]:
        """Yield which rows have no place, and what is empty there."""
        yield self._axes[1][1], "latitude"
        yield self._axes[0][1], "longitude"

    @cached_property
    def coordinates(self) -> FloatArray:
        """(n, 2) degrees, NaN in rows without a place or with text that is no number."""
        result = np.column_stack([self._axes[0][0], self._axes[1][0]])
        if self.missing.any():
            result[self.missing] = np.nan
        return result

    def problems(self) -> Iterator[tuple[Flags, str]]:
        """Yield which rows hold no place on Earth, and why."""
        for values, name, limit in zip(self.coordinates.T, ("longitude", "latitude"), (180, 90), strict=True):
            finite = np.isfinite(values)
            yield ~finite & ~self.missing, f"{name} must be a finite number"
            yield finite & (np.abs(values) > limit), f"{name} must be between -{limit} and {limit}: {SWAPPED}"

    def written(self, coordinates: FloatArray, decimals: int | None) -> dict[str, pa.Array]:
        """Return both columns with other coordinates: where they are text, with so many decimals or as numbers."""
        result = {}
        for name, values in zip((self.lon, self.lat), coordinates.T, strict=True):
            kind = column_of(self.batch, name).type
            gone = np.isnan(values)
            if is_text(kind) and decimals is not None:
                result[name] = _decimal_text(values, gone, decimals).cast(kind)
            else:
                mask = gone if gone.any() else None
                column = pa.array(np.ascontiguousarray(values), pa.float64(), mask=mask)
                result[name] = column if is_text(kind) else column.cast(kind)
        return result

    @cached_property
    def _axes(self) -> tuple[tuple[FloatArray, Flags], tuple[FloatArray, Flags]]:
        return self._numbers(self.lon), self._numbers(self.lat)

    def _numbers(self, name: str) -> tuple[FloatArray, Flags]:
        """Return the numbers of a column, and which rows have none."""
        column = column_of(self.batch, name)
        if is_text(column.type):
            return _parsed(column)
        # Whole numbers cannot hold the reports; half floats cannot hold degrees.
        kind = column.type
        if not (pa.types.is_float32(kind) or pa.types.is_float64(kind) or pa.types.is_decimal(kind)):
            raise InvalidInputError(f"column {name!r} must be float, decimal or text, got {kind}")
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64), nulls(column)


def _parsed(column: pa.Array) -> tuple[FloatArray, Flags]:
    """Return the numbers that a column of text holds, NaN where it holds none, and which rows are empty."""
    column = column.cast(pa.large_string())
    try:
        # Nearly always all rows are numbers; a column that has others is looked at a second time.
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False)), nulls(column)
    except pa.ArrowInvalid:
        # JSON members are texts in quotes where they are texts.
        trimmed = pc.utf8_trim(column, characters=' "\t')
        trimmed = pc.replace_substring_regex(trimmed, DECIMAL_COMMA, r"\1.\2")
        empty = np.asarray(pc.equal(trimmed, "").fill_null(True).to_numpy(zero_copy_only=False), bool)
        number = pc.match_substring_regex(trimmed, NUMBER)
        values = pc.if_else(number, trimmed, None).cast(pa.float64())
        return np.asarray(values.to_numpy(zero_copy_only=False), np.float64), empty


def _decimal_text(values: FloatArray, gone: Flags, decimals: int) -> pa.Array:
    """Return numbers written with so many decimals, empty text where they are gone."""
    whole = np.rint(np.where(gone, 0.0, values) * 10.0**decimals).astype(np.int64)
    words = np.column_stack([whole, whole >> 63])
    text = pa.Array.from_buffers(pa.decimal128(18, decimals), len(whole), [None, pa.py_buffer(words)])
    text = text.cast(pa.string())
    return pc.if_else(pa.array(gone), "", text) if gone.any() else text


@dataclass(frozen=True)
class GeometryColumn:
    """One column of points: WKB, or GeoArrow's struct or list of x and y. An empty point is no place."""

    batch: pa.RecordBatch
    name: str

    @cached_property
    def missing(self) -> Flags:
        """Which rows have no place."""
        if self._is_binary and self._plain_wkb is None:
            return nulls(self._storage) | np.asarray(shapely.is_empty(self._shapes))
        x, y = self.coordinates.T
        return np.asarray(nulls(self._storage) | (np.isnan(x) & np.isnan(y)))

    def gaps(self) -> Iterator[tuple[Flags, str]]:
        """Yield which rows have no place, and what is empty there."""
        yield self.missing, "geometry"

    @cached_property
    def coordinates(self) -> FloatArray:
        """(n, 2) coordinates, NaN in rows without a point."""
        kind = self._storage.type
        if self._is_binary:
            return self._wkb_coordinates()
        if pa.types.is_struct(kind):
            names = [kind.field(number).name for number in range(kind.num_fields)]
            if names != ["x", "y"]:
                raise InvalidInputError(_refusal(self.name, f"a struct of {names}"))
            parts = [self._storage.field(number).cast(pa.float64()) for number in range(2)]
            values = np.column_stack([part.to_numpy(zero_copy_only=False) for part in parts])
        elif pa.types.is_fixed_size_list(kind):
            if not pa.types.is_floating(kind.value_type):
                raise InvalidInputError(_refusal(self.name, f"lists of {kind.value_type}"))
            if kind.list_size != 2:
                raise InvalidInputError(_refusal(self.name, f"lists of {kind.list_size}"))
            start = 2 * self._storage.offset
            flat = self._storage.values.slice(start, 2 * len(self._storage)).cast(pa.float64())
            values = flat.to_numpy(zero_copy_only=False).reshape(-1, 2).copy()
        else:
            raise InvalidInputError(f"column {self.name!r} must hold WKB or GeoArrow points, got {kind}")
        values[nulls(self._storage)] = np.nan
        return np.asarray(values, np.float64)

    @cached_property
    def srids(self) -> set[int]:
        """The EPSG codes that EWKB geometries carry."""
        if not self._is_binary or self._plain_wkb is not None:
            return set()
        return {int(srid) for srid in np.unique(shapely.get_srid(self._shapes)) if srid > 0}

    def problems(self) -> Iterator[tuple[Flags, str]]:
        """Yield which rows hold no point, and why."""
        place = ~self.missing
        if self._is_binary and self._plain_wkb is None:
            kinds = shapely.get_type_id(self._shapes)
            yield (kinds == -1) & place, "geometry must be WKB"
            yield (kinds > 0) & place, "geometry must be a point"
            place = place & (kinds == 0)
        yield place & ~finite(self.coordinates), "point must be finite"

    def written(self, coordinates: FloatArray, decimals: int | None) -> dict[str, pa.Array]:  # noqa: ARG002
        """Return the column with other coordinates, without heights."""
        column = column_of(self.batch, self.name)
        gone = nulls(self._storage)
        storage = self._wkb(coordinates, gone) if self._is_binary else self._native(coordinates, gone)
        if isinstance(column, pa.ExtensionArray):
            return {self.name: pa.ExtensionArray.from_storage(column.type, storage)}
        return {self.name: storage}

    @cached_property
    def _storage(self) -> pa.Array:
        column = column_of(self.batch, self.name)
        return column.storage if isinstance(column, pa.ExtensionArray) else column

    @property
    def _is_binary(self) -> bool:
        return is_binary(self._storage.type)

    def _native(self, coordinates: FloatArray, gone: Flags) -> pa.Array:
        kind = self._storage.type
        mask = pa.array(gone) if gone.any() else None
        if pa.types.is_struct(kind):
            fields = [kind.field(0), kind.field(1)]
            parts = [
                pa.array(np.ascontiguousarray(values)).cast(field.type)
                for values, field in zip(coordinates.T, fields, strict=True)
            ]
            return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
        flat = pa.array(np.ascontiguousarray(coordinates).ravel()).cast(kind.value_type)
        return pa.FixedSizeListArray.from_arrays(flat, type=kind, mask=mask)

    @cached_property
    def _plain_wkb(self) -> npt.NDArray[np.uint8] | None:
        """The bytes of the values that are not null, in rows of 21; None unless all are plain points."""
        array = self._storage.cast(pa.large_binary()).drop_null()
        offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
        if not (np.diff(offsets) == WKB_BYTES).all():
            return None
        data = np.frombuffer(array.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]].reshape(-1, WKB_BYTES)
        return data if (data[:, :5] == WKB_POINT).all() else None

    @cached_property
    def _shapes(self) -> npt.NDArray[np.object_]:
        """The geometries, None where the bytes are null or no WKB."""
        texts = np.asarray(self._storage.to_pylist(), dtype=object)
        return np.asarray(shapely.force_2d(shapely.from_wkb(texts, on_invalid="ignore")), dtype=object)

    def _wkb_coordinates(self) -> FloatArray:
        values = np.full((len(self._storage), 2), np.nan)
        if self._plain_wkb is not None:
            present = np.ascontiguousarray(self._plain_wkb[:, 5:]).view("<f8")
            if not self._storage.null_count:
                return np.asarray(present, np.float64)
            values[~nulls(self._storage)] = present
            return values
        points = (shapely.get_type_id(self._shapes) == 0) & ~shapely.is_empty(self._shapes)
        values[points] = shapely.get_coordinates(self._shapes[points])
        return values

    def _wkb(self, coordinates: FloatArray, gone: Flags) -> pa.Array:
        if self._plain_wkb is not None:
            data = np.empty((len(self._plain_wkb), WKB_BYTES), np.uint8)
            data[:, :5] = WKB_POINT
            present = coordinates[~gone] if gone.any() else coordinates
            data[:, 5:] = np.ascontiguousarray(present, "<f8").view(np.uint8)
            offsets = np.concatenate([[0], np.cumsum(np.where(gone, 0, WKB_BYTES))]).astype(np.int64)
            valid = pa.array(~gone).buffers()[1] if gone.any() else None
            buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
            return pa.Array.from_buffers(pa.large_binary(), len(gone), buffers).cast(self._storage.type)
        shapes = np.asarray(shapely.points(coordinates), dtype=object)
        shapes = shapely.set_srid(shapes, shapely.get_srid(np.where(gone, shapes, self._shapes)))
        empty = self.missing & ~gone
        shapes[empty] = self._shapes[empty]
        shapes[gone] = None
        return pa.array(shapely.to_wkb(shapes, include_srid=True), self._storage.type)


def _refusal(name: str, what: str) -> str:
    # A height or a measure (time, distance along a road) shows the place, so it must not pass.
    return f"column {name!r} must hold points of x and y only, got {what}"
