"""Arrow columns that hold places, to and from (n, 2) coordinates: lon and lat, WKB, GeoArrow points."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Flags", "GeometryColumn", "LonLatColumns", "PlaceColumns", "column_of"]

Flags = npt.NDArray[np.bool_]

WKB_POINT = np.frombuffer(b"\x01\x01\x00\x00\x00", np.uint8)
"""How a little-endian WKB point begins; its two doubles follow."""
WKB_BYTES = 21


class PlaceColumns(Protocol):
    """The columns of a batch in which places are written."""

    @property
    def missing(self) -> Flags:
        """Which rows have no place."""
        ...

    @property
    def coordinates(self) -> FloatArray:
        """(n, 2) coordinates, NaN in rows without a place."""
        ...

    def written(self, coordinates: FloatArray) -> "dict[str, pa.Array]":
        """Return the columns, in their own types, with other coordinates; missing rows stay missing."""
        ...


def column_of(batch: "pa.RecordBatch", name: str) -> "pa.Array":
    """Return the column of that name, which must be there exactly once."""
    if batch.schema.names.count(name) != 1:
        raise InvalidInputError(f"column {name!r} must be there once, the columns are {batch.schema.names}")
    return batch.column(batch.schema.get_field_index(name))


@dataclass(frozen=True)
class LonLatColumns:
    """Two columns of numbers. A row lacks its place when either is null; then neither is passed on."""

    batch: "pa.RecordBatch"
    lon: str
    lat: str

    @cached_property
    def missing(self) -> Flags:
        """Which rows have no place."""
        return _nulls(column_of(self.batch, self.lon)) | _nulls(column_of(self.batch, self.lat))

    @cached_property
    def coordinates(self) -> FloatArray:
        """(n, 2) coordinates, NaN in rows without a place."""
        result = np.column_stack([self._numbers(self.lon), self._numbers(self.lat)])
        if self.missing.any():
            result[self.missing] = np.nan
        return result

    def written(self, coordinates: FloatArray) -> "dict[str, pa.Array]":
        """Return both columns with other coordinates."""
        import pyarrow as pa

        mask = self.missing if self.missing.any() else None
        names = (self.lon, self.lat)
        return {
            name: pa.array(np.ascontiguousarray(values), pa.float64(), mask=mask).cast(
                column_of(self.batch, name).type
            )
            for name, values in zip(names, coordinates.T, strict=True)
        }

    def _numbers(self, name: str) -> FloatArray:
        import pyarrow as pa

        column = column_of(self.batch, name)
        # Whole numbers cannot hold the reports; half floats cannot hold degrees.
        if not (pa.types.is_float32(column.type) or pa.types.is_float64(column.type) or _is_decimal(column.type)):
            raise InvalidInputError(f"column {name!r} must be float or decimal, got {column.type}")
        numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return np.asarray(numbers, np.float64)


@dataclass(frozen=True)
class GeometryColumn:
    """One column of points: WKB, or GeoArrow's struct or list of x and y. An empty point is no place."""

    batch: "pa.RecordBatch"
    name: str

    @cached_property
    def missing(self) -> Flags:
        """Which rows have no place."""
        return _nulls(self._storage) | np.isnan(self._values).all(axis=1)

    @property
    def coordinates(self) -> FloatArray:
        """(n, 2) coordinates, NaN in rows without a place."""
        return self._values

    @cached_property
    def srids(self) -> set[int]:
        """The EPSG codes that EWKB geometries carry."""
        if not self._is_binary or self._plain_wkb is not None:
            return set()
        import shapely

        return {int(srid) for srid in np.unique(shapely.get_srid(self._shapes)) if srid > 0}

    def written(self, coordinates: FloatArray) -> "dict[str, pa.Array]":
        """Return the column with other coordinates."""
        import pyarrow as pa

        column = column_of(self.batch, self.name)
        nulls = _nulls(self._storage)
        storage = self._wkb(coordinates, nulls) if self._is_binary else self._native(coordinates, nulls)
        if isinstance(column, pa.ExtensionArray):
            return {self.name: pa.ExtensionArray.from_storage(column.type, storage)}
        return {self.name: storage}

    @cached_property
    def _storage(self) -> "pa.Array":
        import pyarrow as pa

        column = column_of(self.batch, self.name)
        return column.storage if isinstance(column, pa.ExtensionArray) else column

    @property
    def _is_binary(self) -> bool:
        import pyarrow as pa

        kind = self._storage.type
        return any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view))

    @cached_property
    def _values(self) -> FloatArray:
        import pyarrow as pa

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
            if kind.list_size != 2:
                raise InvalidInputError(_refusal(self.name, f"lists of {kind.list_size}"))
            start = 2 * self._storage.offset
            flat = self._storage.values.slice(start, 2 * len(self._storage)).cast(pa.float64())
            values = flat.to_numpy(zero_copy_only=False).reshape(-1, 2).copy()
        else:
            raise InvalidInputError(f"column {self.name!r} must hold WKB or GeoArrow points, got {kind}")
        values[_nulls(self._storage)] = np.nan
        return np.asarray(values, np.float64)

    def _native(self, coordinates: FloatArray, nulls: Flags) -> "pa.Array":
        import pyarrow as pa

        kind = self._storage.type
        mask = pa.array(nulls) if nulls.any() else None
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
    def _plain_wkb(self) -> "npt.NDArray[np.uint8] | None":
        """The bytes of the values that are not null, in rows of 21; None unless all are plain points."""
        import pyarrow as pa

        array = self._storage.cast(pa.large_binary()).drop_null()
        offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
        if not (np.diff(offsets) == WKB_BYTES).all():
            return None
        data = np.frombuffer(array.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]].reshape(-1, WKB_BYTES)
        return data if (data[:, :5] == WKB_POINT).all() else None

    @cached_property
    def _shapes(self) -> "npt.NDArray[np.object_]":
        import shapely

        try:
            shapes = shapely.from_wkb(np.asarray(self._storage.to_pylist(), dtype=object))
        except shapely.errors.ShapelyError as error:
            raise InvalidInputError(f"column {self.name!r} must hold WKB points") from error
        shapes = np.asarray(shapes, dtype=object)
        kinds = shapely.get_type_id(shapes)
        other = (kinds != -1) & (kinds != 0)
        if other.any():
            row = int(np.argmax(other))
            raise InvalidInputError(
                f"column {self.name!r} must hold points, row {row} is a {shapes[row].geom_type}"
            )
        if (shapely.get_coordinate_dimension(shapes) > 2).any():
            raise InvalidInputError(_refusal(self.name, "points with a height or a measure"))
        return shapes

    def _wkb_coordinates(self) -> FloatArray:
        if self._plain_wkb is not None:
            present = np.ascontiguousarray(self._plain_wkb[:, 5:]).view("<f8")
            if not self._storage.null_count:
                return np.asarray(present, np.float64)
            values = np.full((len(self._storage), 2), np.nan)
            values[~_nulls(self._storage)] = present
            return values
        import shapely

        values = np.full((len(self._storage), 2), np.nan)
        place = ~(shapely.is_missing(self._shapes) | shapely.is_empty(self._shapes))
        values[place] = shapely.get_coordinates(self._shapes[place])
        return values

    def _wkb(self, coordinates: FloatArray, nulls: Flags) -> "pa.Array":
        import pyarrow as pa

        if self._plain_wkb is not None:
            data = np.empty((len(self._plain_wkb), WKB_BYTES), np.uint8)
            data[:, :5] = WKB_POINT
            present = coordinates[~nulls] if nulls.any() else coordinates
            data[:, 5:] = np.ascontiguousarray(present, "<f8").view(np.uint8)
            offsets = np.concatenate([[0], np.cumsum(np.where(nulls, 0, WKB_BYTES))]).astype(np.int64)
            valid = pa.array(~nulls).buffers()[1] if nulls.any() else None
            buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
            return pa.Array.from_buffers(pa.large_binary(), len(nulls), buffers).cast(self._storage.type)
        import shapely

        shapes = np.asarray(shapely.points(coordinates), dtype=object)
        shapes = shapely.set_srid(shapes, shapely.get_srid(np.where(nulls, shapes, self._shapes)))
        shapes[self.missing & ~nulls] = self._shapes[self.missing & ~nulls]
        shapes[nulls] = None
        return pa.array(shapely.to_wkb(shapes, include_srid=True), self._storage.type)


def _nulls(column: "pa.Array") -> Flags:
    if not column.null_count:
        return np.zeros(len(column), bool)
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)


def _is_decimal(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_decimal(kind))


def _refusal(name: str, what: str) -> str:
    # A height or a measure (time, distance along a road) tells the place, so it must not pass by unchanged.
    return f"column {name!r} must hold points of x and y only, got {what}: drop the rest first"
