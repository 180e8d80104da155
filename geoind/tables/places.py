"""The columns of true places: found by the schema, read to degrees, written with reports."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.space.crs import CODE, LONLAT, as_crs, from_lonlat, parsed_crs, same_crs, to_lonlat
from geoind.tables.columns import JSON_TEXT, Flags, column_of, finite, is_binary, is_text, nulls, plain_type
from geoind.tables.recipe import LonLat, Points, coordinate_columns, listed

__all__ = [
    "EMPTY",
    "GeometryColumn",
    "Locations",
    "LonLatColumns",
    "crs_of",
    "declared_crs",
    "geometry_columns",
    "published_schema",
]

SWAPPED = "are lat and lon swapped?"

WKB_POINT = np.frombuffer(b"\x01\x01\x00\x00\x00", np.uint8)
"""How a little-endian WKB point begins; its two doubles follow."""
WKB_BYTES = 21

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""What other readers of a text file take for a number, too."""
DECIMAL_COMMA = r"^([+-]?[0-9]+),([0-9]+)$"


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


EMPTY = " is empty"
"""The end of the reason why a row has no place."""


@dataclass(frozen=True)
class Locations:
    """Where the places of a table are.

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"lat": ["48.86", "x"], "lon": ["2.35", "2.35"]})
    >>> truths, problems = Locations.of(batch.schema, ()).read(batch)
    >>> truths[0][0].tolist(), problems
    ([2.35, 48.86], {1: 'latitude must be a finite number'})
    """

    places: tuple[LonLat | Points, ...]

    @classmethod
    def of(cls, schema: pa.Schema, given: tuple[LonLat | Points, ...]) -> "Locations":
        """Return the given columns, or those that the schema declares, or those with the usual names."""
        declared = geometry_columns(schema)
        if not given and not declared:
            return cls((LonLat(*coordinate_columns(schema.names)),))
        if not given or given[0] == Points(None, getattr(given[0], "crs", None)):
            if not declared:
                raise InvalidInputError("`crs=` is the CRS of a geometry, and no column is declared to be one")
            given = (Points(declared[0], given[0].crs if given and isinstance(given[0], Points) else None),)
        return cls(
            tuple(
                Points(place.geometry, _crs(schema, place)) if isinstance(place, Points) else place
                for place in given
            )
        )

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [name for place in self.places for name in place.names]

    def read(self, batch: pa.RecordBatch, *, missing: bool = False) -> tuple[list[FloatArray], dict[int, str]]:
        """Return (n, 2) degrees for each place of a row, and which rows are bad, and why.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            At least the columns of the places.
        missing : bool
            Whether rows without a place are good.
        """
        truths, reasons = [], dict[int, str]()
        for place in self.places:
            column = _column(batch, place)
            truth = _degrees(place, column)
            truths.append(truth)
            which = f"{' and '.join(place.names)}: " if len(self.places) > 1 else ""
            flaws = list(column.problems())
            if not missing:
                flaws += [(rows, what + EMPTY) for rows, what in column.gaps()]
            if isinstance(place, Points):
                flaws.append(
                    (finite(column.coordinates) & ~_on_earth(truth), "point must lie on Earth in its CRS")
                )
            for rows, reason in flaws:
                for row in np.flatnonzero(rows).tolist():
                    reasons.setdefault(row, which + reason)
        return truths, reasons

    def written(
        self, batch: pa.RecordBatch, reports: Sequence[FloatArray], decimals: int | None
    ) -> dict[str, pa.Array]:
        """Return the columns, in their own types, with other places; without decimals, numbers instead of text."""
        columns: dict[str, pa.Array] = {}
        for place, made in zip(self.places, reports, strict=True):
            coordinates = from_lonlat(made, crs_of(place))
            if np.isinf(coordinates).any():
                raise InvalidInputError("the CRS has no coordinates for some reports: use one that covers them")
            columns |= _column(batch, place).written(coordinates, decimals)
        return columns


def crs_of(place: LonLat | Points) -> str:
    """Return the CRS of a place's columns."""
    return place.crs or LONLAT if isinstance(place, Points) else LONLAT


def _crs(schema: pa.Schema, place: Points) -> str:
    if place.geometry is None or schema.names.count(place.geometry) != 1:
        raise InvalidInputError(
            f"column {place.geometry!r} must exist once, the columns are {listed(schema.names)}"
        )
    crs = as_crs(declared_crs(schema, place.geometry) or place.crs, f"column {place.geometry!r}")
    if place.crs is not None and not same_crs(crs, as_crs(place.crs, "crs")):
        raise InvalidInputError(f"column {place.geometry!r} declares another CRS than `crs=`")
    return crs


def _column(batch: pa.RecordBatch, place: LonLat | Points) -> LonLatColumns | GeometryColumn:
    if isinstance(place, LonLat):
        return LonLatColumns(batch, place.lon, place.lat)
    return GeometryColumn(batch, place.geometry or "")


def _degrees(place: LonLat | Points, column: LonLatColumns | GeometryColumn) -> FloatArray:
    if isinstance(column, LonLatColumns):
        return column.coordinates
    if any(not same_crs(crs_of(place), f"EPSG:{srid}") for srid in column.srids):
        raise InvalidInputError(f"column {column.name!r} has another CRS than its own geometries")
    return to_lonlat(column.coordinates, crs_of(place))


def _on_earth(lonlat: FloatArray) -> Flags:
    return np.asarray((np.abs(lonlat[:, 0]) <= 180) & (np.abs(lonlat[:, 1]) <= 90))


ENCODINGS = ("WKB", "point")
EDGES = ("planar", "spherical")
VERSION = re.compile(r"[0-9.]{1,16}")


def geometry_columns(schema: pa.Schema) -> list[str]:
    """Return the names of the columns that the schema declares to hold geometries, the primary one first."""
    geo = _geo(schema)
    names = [geo["primary_column"]] if isinstance(geo.get("primary_column"), str) else []
    names += _columns(geo)
    names += [field.name for field in schema if _extension_of(field).startswith("geoarrow.")]
    return [name for name in dict.fromkeys(names) if name in schema.names]


def declared_crs(schema: pa.Schema, name: str) -> str | None:
    """Return the CRS that the schema declares for a geometry column, None where it says nothing."""
    crs = _text(_extension_metadata(schema.field(name)).get("crs"))
    column = _columns(_geo(schema)).get(name)
    if column is None:
        return crs
    # GeoParquet: no entry means lon/lat, an entry of null means unknown.
    stored = _text(column.get("crs", LONLAT))
    if crs is None or stored is None:
        return crs or stored
    if not same_crs(crs, stored):
        raise InvalidInputError(f"column {name!r} declares two CRS: one in its type, another one in 'geo'")
    return crs


def published_schema(schema: pa.Schema, names: Iterable[str], places: Iterable[str]) -> pa.Schema:
    """Return the schema of reports: some columns, and of all metadata what a geometry needs to be read.

    Examples
    --------
    >>> schema = pa.schema({"a": pa.int64(), "b": pa.int64()}, {"author": "ana"})
    >>> published_schema(schema, ["a"], []).metadata is None
    True
    """
    wanted, points = set(names), set(places)
    fields = [_bare(field, geometry=field.name in points) for field in schema if field.name in wanted]
    geo = _geo(schema)
    about = {name: _about(column) for name, column in _columns(geo).items() if name in points}
    if not about:
        return pa.schema(fields)
    primary = geo["primary_column"] if geo.get("primary_column") in about else next(iter(about))
    version = geo.get("version")
    known = isinstance(version, str) and VERSION.fullmatch(version)
    kept = {"version": version if known else "1.1.0", "primary_column": primary, "columns": about}
    return pa.schema(fields, {b"geo": json.dumps(kept).encode()})


def _about(column: dict[str, Any]) -> dict[str, Any]:
    """Return what GeoParquet says of a column that is true of its reports, too, in values that it defines."""
    about = {"encoding": column.get("encoding"), "geometry_types": ["Point"]}
    if about["encoding"] not in ENCODINGS:
        about["encoding"] = ENCODINGS[0]
    about |= {"crs": _without_notes(column["crs"])} if "crs" in column else {}
    return about | {key: column[key] for key in ("edges",) if column.get(key) in EDGES}


def _bare(field: pa.Field, *, geometry: bool) -> pa.Field:
    """Return a field without metadata, but for the CRS of a geometry and the mark of JSON values."""
    metadata = {key: value for key, value in (field.metadata or {}).items() if key == JSON_TEXT}
    if (
        geometry
        and _extension_of(field).startswith("geoarrow.")
        and not isinstance(field.type, pa.BaseExtensionType)
    ):
        known = _extension_metadata(field)
        about = {"crs": _without_notes(known["crs"])} if "crs" in known else {}
        about |= {"edges": known["edges"]} if known.get("edges") in EDGES else {}
        metadata = {"ARROW:extension:name": _extension_of(field), "ARROW:extension:metadata": json.dumps(about)}
    return pa.field(field.name, plain_type(field.type), field.nullable, metadata or None)


def _without_notes(crs: Any) -> Any:
    """Return a CRS by its code, or as PROJJSON without the notes of its author."""
    text = _text(crs)
    return crs if text is None or CODE.fullmatch(text) else parsed_crs(text).to_json_dict()


def _text(crs: Any) -> str | None:
    if crs is None or isinstance(crs, str):
        return crs
    if isinstance(crs, dict):
        return json.dumps(crs)
    raise InvalidInputError("the CRS in the geometry metadata must be text or an object")


def _geo(schema: pa.Schema) -> dict[str, Any]:
    return _json((schema.metadata or {}).get(b"geo", b"{}"))


def _columns(geo: dict[str, Any]) -> dict[str, dict[str, Any]]:
    columns = geo.get("columns", {})
    if not isinstance(columns, dict) or not all(isinstance(column, dict) for column in columns.values()):
        raise InvalidInputError("the geometry metadata of the schema must have an object per column")
    return columns


def _extension_of(field: pa.Field) -> str:
    named: bytes = (field.metadata or {}).get(b"ARROW:extension:name", b"")
    return str(getattr(field.type, "extension_name", "")) or named.decode(errors="replace")


def _extension_metadata(field: pa.Field) -> dict[str, Any]:
    if not _extension_of(field).startswith("geoarrow."):
        return {}
    if hasattr(field.type, "__arrow_ext_serialize__"):
        return _json(field.type.__arrow_ext_serialize__())
    return _json((field.metadata or {}).get(b"ARROW:extension:metadata", b""))


def _json(text: bytes) -> dict[str, Any]:
    try:
        result = json.loads(text or b"{}")
    except (ValueError, RecursionError) as error:
        raise InvalidInputError("the geometry metadata of the schema is not JSON") from error
    if not isinstance(result, dict):
        raise InvalidInputError("the geometry metadata of the schema is not a JSON object")
    return result
