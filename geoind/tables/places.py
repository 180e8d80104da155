"""The places of a table: their columns are found by the schema, read to degrees, written with reports."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.space.crs import CODE, LONLAT, as_crs, from_lonlat, parsed_crs, same_crs, to_lonlat
from geoind.tables import columns as arrow
from geoind.tables.columns import Flags, column_of, is_binary, is_text, listed, nulls, only_column

LAT_NAMES = ("lat", "latitude")
LON_NAMES = ("lon", "lng", "long", "longitude")

EMPTY = " is empty"
"""The end of the reason why a row has no place."""
SWAPPED = "are lat and lon swapped?"

WKB_POINT = np.dtype([("head", "u1", 5), ("xy", "<f8", 2)])
"""A little-endian WKB point."""
WKB_HEAD = (1, 1, 0, 0, 0)

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""What other readers of a text file take for a number, too."""
DECIMAL_COMMA = r"^([+-]?[0-9]+),([0-9]+)$"

Flaws = list[tuple[Flags, str]]
"""Which rows have no valid place, and why."""


@dataclass(frozen=True)
class LonLat:
    """A place in two columns of degrees, as numbers or text. A row lacks it where either is null or empty."""

    lon: str
    lat: str

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return (self.lon, self.lat)

    def read(self, batch: pa.RecordBatch) -> tuple[FloatArray, Flaws]:
        """Return (n, 2) degrees, NaN in rows without a place or with text that is no number, and bad rows."""
        (lons, no_lon), (lats, no_lat) = (_numbers(batch, name) for name in self.names)
        degrees, missing = np.column_stack([lons, lats]), no_lon | no_lat
        if missing.any():
            degrees[missing] = np.nan
        flaws = [(no_lat, f"latitude{EMPTY}"), (no_lon, f"longitude{EMPTY}")]
        for values, name, limit in zip(degrees.T, ("longitude", "latitude"), (180, 90), strict=True):
            known = np.isfinite(values)
            flaws.append((~known & ~missing, f"{name} must be a finite number"))
            far = known & (np.abs(values) > limit)
            flaws.append((far, f"{name} must be between -{limit} and {limit}: {SWAPPED}"))
        return degrees, flaws

    def written(self, batch: pa.RecordBatch, degrees: FloatArray, decimals: int) -> dict[str, pa.Array]:
        """Return both columns with other places: where they are text, with so many decimals."""
        result = {}
        for name, values in zip(self.names, degrees.T, strict=True):
            kind = column_of(batch, name).type
            if is_text(kind):
                result[name] = decimals_of(values, decimals).cast(pa.large_string()).fill_null("").cast(kind)
            else:
                result[name] = numbers_of(values).cast(kind)
        return result


@dataclass(frozen=True)
class Points:
    """A place in one column of points: WKB, or GeoArrow's struct or list of x and y. An empty point is no place.

    Without a name it is the geometry that the schema declares.
    """

    geometry: str | None = None
    crs: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The column."""
        return () if self.geometry is None else (self.geometry,)

    def read(self, batch: pa.RecordBatch) -> tuple[FloatArray, Flaws]:
        """Return (n, 2) degrees, NaN in rows without a point, and bad rows."""
        column = column_of(batch, self.geometry or "")
        storage = column.storage if isinstance(column, pa.ExtensionArray) else column
        values, flaws = self._of_wkb(storage) if is_binary(storage.type) else (self._of_geoarrow(storage), Flaws())
        values[nulls(storage)] = np.nan
        bad = np.logical_or.reduce([rows for rows, _ in flaws])
        missing = np.asarray(np.isnan(values[:, 0]) & np.isnan(values[:, 1]) & ~bad)
        degrees = to_lonlat(values, crs_of(self))
        on_earth = (np.abs(degrees[:, 0]) <= 180) & (np.abs(degrees[:, 1]) <= 90)
        return degrees, [
            *flaws,
            (missing, f"geometry{EMPTY}"),
            (~(missing | bad | arrow.finite(values)), "point must be finite"),
            (arrow.finite(values) & ~on_earth, "point must lie on Earth in its CRS"),
        ]

    def written(self, batch: pa.RecordBatch, degrees: FloatArray, decimals: int) -> dict[str, pa.Array]:  # noqa: ARG002
        """Return the column with other places as WKB, without heights; an empty point is null."""
        return {self.names[0]: self.wkb(degrees).cast(reported_type(column_of(batch, self.names[0]).type))}

    def wkb(self, degrees: FloatArray) -> pa.Array:
        """Return places as WKB in the CRS of the column, null where they are NaN."""
        coordinates, points = from_lonlat(degrees, crs_of(self)), np.zeros(len(degrees), WKB_POINT)
        if np.isinf(coordinates).any():
            raise InvalidInputError("the CRS has no coordinates for some reports: use one that covers them")
        points["head"], points["xy"] = WKB_HEAD, coordinates
        buffers = [_valid(degrees[:, 0]), pa.py_buffer(points)]
        return pa.Array.from_buffers(pa.binary(WKB_POINT.itemsize), len(points), buffers).cast(pa.binary())

    def _of_wkb(self, storage: pa.Array) -> tuple[FloatArray, Flaws]:
        """Return (n, 2) coordinates, NaN where there are none, and which rows hold no point, and why."""
        values, gone = np.full((len(storage), 2), np.nan), nulls(storage)
        if (plain := _plain_wkb(storage)) is not None:
            values[~gone] = plain["xy"]
            return values, []
        # Slow to import, and seldom needed.
        import shapely

        texts = np.asarray(storage.to_pylist(), dtype=object)
        shapes = np.asarray(shapely.force_2d(shapely.from_wkb(texts, on_invalid="ignore")), dtype=object)
        srids = [srid for srid in np.unique(shapely.get_srid(shapes)) if srid > 0]
        if not all(same_crs(crs_of(self), f"EPSG:{srid}") for srid in srids):
            raise InvalidInputError(f"column {self.geometry!r} has another CRS than its own geometries")
        kinds, present = shapely.get_type_id(shapes), ~(gone | np.asarray(shapely.is_empty(shapes)))
        points = (kinds == 0) & present
        values[points] = shapely.get_coordinates(shapes[points])
        invalid, other = (kinds == -1) & present, (kinds > 0) & present
        return values, [(invalid, "geometry must be WKB"), (other, "geometry must be a point")]

    def _of_geoarrow(self, storage: pa.Array) -> FloatArray:
        """Return (n, 2) coordinates of GeoArrow points; any numbers where they are null."""
        kind = storage.type
        # A height or a measure (time, distance along a road) shows the place, so it must not pass.
        refusal = f"column {self.geometry!r} must hold points of x and y only, got "
        if pa.types.is_struct(kind):
            names = [kind.field(number).name for number in range(kind.num_fields)]
            if names != ["x", "y"]:
                raise InvalidInputError(f"{refusal}a struct of {names}")
            return np.column_stack([arrow.floats_of(storage.field(number)) for number in range(2)])
        if pa.types.is_fixed_size_list(kind):
            if not pa.types.is_floating(kind.value_type) or kind.list_size != 2:
                size = kind.list_size if pa.types.is_floating(kind.value_type) else kind.value_type
                raise InvalidInputError(f"{refusal}lists of {size}")
            flat = storage.values.slice(2 * storage.offset, 2 * len(storage)).cast(pa.float64())
            return np.array(flat.to_numpy(zero_copy_only=False).reshape(-1, 2), np.float64)
        raise InvalidInputError(f"column {self.geometry!r} must hold WKB or GeoArrow points, got {kind}")


def places_of(
    lon: str | Sequence[str] | None, lat: str | Sequence[str] | None, geometry: str | None, crs: str | None
) -> tuple[LonLat | Points, ...]:
    """Return the places that keywords name; none where they do not."""
    if geometry is not None and (lon is not None or lat is not None):
        raise InvalidInputError("give `lon=` and `lat=`, or `geometry=`, not both")
    if crs is not None and (lon is not None or lat is not None):
        raise InvalidInputError("`crs=` is the CRS of a geometry: lon and lat are degrees")
    if geometry is not None or crs is not None:
        return (Points(geometry, crs),)
    lons, lats = column_names(lon, "lon"), column_names(lat, "lat")
    if len(lons) != len(lats):
        raise InvalidInputError(
            f"`lon=` and `lat=` must be given together: got {len(lons)} and {len(lats)} columns"
        )
    if len({*lons, *lats}) < len((*lons, *lats)):
        raise InvalidInputError("`lon=` and `lat=` must be different columns")
    return tuple(LonLat(*pair) for pair in zip(lons, lats, strict=True))


def column_names(names: str | Sequence[str] | None, what: str) -> tuple[str, ...]:
    """Return the names of columns that were given as none, one or several."""
    result = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(name, str) for name in result):
        raise InvalidInputError(f"`{what}=` must be names of columns")
    return tuple(dict.fromkeys(result)) if what == "keep" else result


def places_in(schema: pa.Schema, given: tuple[LonLat | Points, ...] = ()) -> tuple[LonLat | Points, ...]:
    """Return the given places with their CRS, else the one that the schema declares, else the usual columns.

    Examples
    --------
    >>> places_in(pa.schema({"id": pa.int64(), "Latitude": pa.string(), "Longitude": pa.string()}))
    (LonLat(lon='Longitude', lat='Latitude'),)
    """
    declared = geometry_columns(schema)
    if not given and not declared:
        return (LonLat(_only(schema.names, LON_NAMES, "lon"), _only(schema.names, LAT_NAMES, "lat")),)
    if not given or given[0] == Points(None, getattr(given[0], "crs", None)):
        if not declared:
            raise InvalidInputError("`crs=` is the CRS of a geometry, and no column is declared to be one")
        given = (Points(declared[0], getattr(given[0], "crs", None) if given else None),)
    return tuple(
        Points(place.geometry, _crs(schema, place)) if isinstance(place, Points) else place for place in given
    )


def _only(names: Sequence[str], usual: Sequence[str], option: str) -> str:
    found = [name for name in names if name.strip().lower().rpartition(".")[2] in usual]
    if len(found) == 1:
        return found[0]
    problem = "no column is" if not found else "several columns are"
    raise InvalidInputError(
        f"{problem} called {', '.join(usual[:-1])} or {usual[-1]}: name the column with `{option}=`; "
        f"the columns are {listed(names)}"
    )


def _crs(schema: pa.Schema, place: Points) -> str:
    name = only_column(schema, place.geometry or "")
    crs = as_crs(declared_crs(schema, name) or place.crs, f"column {name!r}")
    if place.crs is not None and not same_crs(crs, as_crs(place.crs, "crs")):
        raise InvalidInputError(f"column {name!r} declares another CRS than `crs=`")
    return crs


def crs_of(place: LonLat | Points) -> str:
    """Return the CRS of a place's columns."""
    return place.crs or LONLAT if isinstance(place, Points) else LONLAT


def degrees_of(
    places: Sequence[LonLat | Points], batch: pa.RecordBatch, *, missing: bool = False
) -> tuple[list[FloatArray], dict[int, str]]:
    """Return (n, 2) degrees for each place of a row, and which rows are bad, and why.

    Parameters
    ----------
    places : sequence of LonLat or Points
        What `places_in` returned.
    batch : pyarrow.RecordBatch
        At least the columns of the places.
    missing : bool
        Whether rows without a place are good.

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"lat": ["48.86", "x"], "lon": ["2.35", "2.35"]})
    >>> truths, problems = degrees_of(places_in(batch.schema), batch)
    >>> truths[0][0].tolist(), problems
    ([2.35, 48.86], {1: 'latitude must be a finite number'})
    """
    truths, reasons = [], dict[int, str]()
    for place in places:
        truth, flaws = place.read(batch)
        truths.append(truth)
        which = f"{' and '.join(place.names)}: " if len(places) > 1 else ""
        for rows, reason in flaws:
            if not (missing and reason.endswith(EMPTY)):
                for row in np.flatnonzero(rows).tolist():
                    reasons.setdefault(row, which + reason)
    return truths, reasons


def _numbers(batch: pa.RecordBatch, name: str) -> tuple[FloatArray, Flags]:
    """Return the numbers of a column, and which rows have none."""
    column = column_of(batch, name)
    kind = column.type
    if is_text(kind):
        return _parsed(column)
    # Whole numbers cannot hold the reports; half floats cannot hold degrees.
    if not (pa.types.is_float32(kind) or pa.types.is_float64(kind) or pa.types.is_decimal(kind)):
        raise InvalidInputError(f"column {name!r} must be float, decimal or text, got {kind}")
    return arrow.floats_of(column), nulls(column)


def _parsed(column: pa.Array) -> tuple[FloatArray, Flags]:
    """Return the numbers that a column of text holds, NaN where it holds none, and which rows are empty."""
    column = column.cast(pa.large_string())
    try:
        # Nearly always all rows are numbers; a column that has others is looked at a second time.
        return arrow.floats_of(column.cast(pa.float64())), nulls(column)
    except pa.ArrowInvalid:
        # JSON members are texts in quotes where they are texts.
        trimmed = pc.utf8_trim(column, characters=' "\t')
        trimmed = pc.replace_substring_regex(trimmed, DECIMAL_COMMA, r"\1.\2")
        empty = np.asarray(pc.equal(trimmed, "").fill_null(True).to_numpy(zero_copy_only=False), bool)
        number = pc.match_substring_regex(trimmed, NUMBER)
        values = pc.if_else(number, trimmed, None).cast(pa.float64())
        return arrow.floats_of(values), empty


def decimals_of(values: FloatArray, decimals: int) -> pa.Array:
    """Return numbers with so many decimals, null where they are NaN."""
    whole = np.rint(np.nan_to_num(values) * 10.0**decimals).astype(np.int64)
    buffers = [_valid(values), pa.py_buffer(np.column_stack([whole, whole >> 63]))]
    return pa.Array.from_buffers(pa.decimal128(18, decimals), len(whole), buffers)


def numbers_of(values: FloatArray) -> pa.Array:
    """Return numbers, null where they are NaN."""
    buffers = [_valid(values), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.float64(), len(values), buffers)


def _valid(values: FloatArray) -> pa.Buffer | None:
    """Return Arrow's bits of the values that are not NaN; None if all are."""
    gone = np.isnan(values)
    return pa.py_buffer(np.packbits(~gone, bitorder="little")) if gone.any() else None


def _plain_wkb(storage: pa.Array) -> npt.NDArray[np.void] | None:
    """Return the values that are not null; None unless all are plain points."""
    array = storage.cast(pa.large_binary()).drop_null()
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    if not (np.diff(offsets) == WKB_POINT.itemsize).all():
        return None
    points = np.frombuffer(array.buffers()[2] or b"", WKB_POINT, len(array), int(offsets[0]))
    return points if (points["head"] == WKB_HEAD).all() else None


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


def reported_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the reports of a column of points: GeoArrow's points become WKB."""
    stored = getattr(kind, "storage_type", kind)
    return stored if is_binary(stored) else pa.binary()


def published_schema(schema: pa.Schema, names: Iterable[str], places: Iterable[LonLat | Points]) -> pa.Schema:
    """Return the schema of reports: some columns, and of all metadata what a geometry needs to be read.

    Examples
    --------
    >>> schema = pa.schema({"a": pa.int64(), "b": pa.int64()}, {"author": "ana"})
    >>> published_schema(schema, ["a"], []).metadata is None
    True
    """
    points = {place.geometry or "": place.crs for place in places if isinstance(place, Points)}
    fields, wanted, geo = [], set(names), _geo(schema)
    for each in (field for field in schema if field.name in wanted):
        kind = arrow.plain_type(each.type)
        metadata: dict[str, str] | None = (
            {arrow.JSON_TEXT.decode(): "1"} if arrow.JSON_TEXT in (each.metadata or {}) else None
        )
        if each.name in points:
            kind = reported_type(each.type)
            about = json.dumps({"crs": _without_notes(points[each.name])})
            notes = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": about}
            metadata = notes if _extension_of(each) else None
        fields.append(pa.field(each.name, kind, each.nullable, metadata))
    stored = {name: crs_metadata(points[name]) for name in points if name in _columns(geo)}
    return pa.schema(fields, geo_metadata(stored, geo.get("primary_column")) if stored else None)


def crs_metadata(crs: str | None) -> dict[str, Any]:
    """Return what GeoParquet says of the CRS of a column: nothing means lon/lat."""
    return {} if crs in (None, LONLAT) else {"crs": parsed_crs(crs or "").to_json_dict()}


def geo_metadata(columns: Mapping[str, dict[str, Any]], primary: object = None) -> dict[bytes, bytes]:
    """Return the metadata of GeoParquet for columns of points, with what is not usual about each."""
    first = primary if isinstance(primary, str) and primary in columns else next(iter(columns))
    about = {name: {"encoding": "WKB", "geometry_types": ["Point"]} | column for name, column in columns.items()}
    return {b"geo": json.dumps({"version": "1.1.0", "primary_column": first, "columns": about}).encode()}


def _without_notes(crs: str | None) -> Any:
    """Return a CRS by its code, or as PROJJSON without the notes of its author."""
    return crs if crs is None or CODE.fullmatch(crs) else parsed_crs(crs).to_json_dict()


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
