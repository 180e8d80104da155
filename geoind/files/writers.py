"""Files of reports, in any format: record batches and reports in, bytes out."""

import io
import json
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, TypeAlias
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.files.formats import Kind, compressed, inner_name
from geoind.files.source import Dialect
from geoind.space.crs import LONLAT, from_lonlat, parsed_crs
from geoind.space.vector_files import SEQUENCES, driver_of
from geoind.tables.geoparquet import declared_crs, geometry_columns
from geoind.tables.places import is_text
from geoind.tables.where import LonLat, Points

__all__ = ["check_writable", "write"]

Part: TypeAlias = tuple[pa.RecordBatch, Sequence[FloatArray]]
Column: TypeAlias = tuple[pa.Field | None, pa.Array]
"""A column of a batch and its field; without a field it is a coordinate of the reports, as text."""

OPTIONS: dict[str, dict[str, str]] = {
    "GPKG": {},
    # An index would sort the features, and there would be none without a place.
    "FlatGeobuf": {"SPATIAL_INDEX": "NO"},
    "ESRI Shapefile": {},
    "LIBKML": {},
    "GML": {},
    "SQLite": {"LAUNDER": "NO"},
}
"""The drivers that write, and their options."""

WRITTEN = ".csv, .tsv, .ndjson, .geojson, .geojsonl, .gpx, .parquet, .gpkg, .fgb, .shp, .kml, .gml, .sqlite"

TEXT = pa.large_string()

BLANK = "|".join(
    map(
        chr,
        (0x20, 0xA0, 0xAD, *range(0x2000, 0x2010), *range(0x2028, 0x2030), *range(0x205F, 0x2070), 0x3000, 0xFEFF),
    )
)
"""Spaces and characters without width such as a byte order mark."""

FORMULA = rf'^"?({BLANK}|\x00)*([=+\-@]|＝|＋|－|＠|[\t\r\n])'
"""The beginning of a text that a spreadsheet takes for a formula, in quotes or not."""
NUMBER = r'^"?[+-]?[0-9]+([.,][0-9]+)*([eE][+-]?[0-9]+)?"?$'

WKB_POINT = np.dtype([("head", "u1", 5), ("xy", "<f8", 2)])

GPX_HEAD = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<gpx version="1.1" creator="geoind" xmlns="http://www.topografix.com/GPX/1/1">\n'
)

DEEPEST = 32
"""The most dots in a name that are nested objects in JSON."""


def check_writable(name: str, kind: Kind, schema: pa.Schema, places: Sequence[LonLat | Points]) -> None:
    """Raise if reports of that schema cannot be written to a file of that name: by writing a made-up row.

    Examples
    --------
    >>> schema, places = pa.schema({"lon": pa.string(), "lat": pa.string()}), [LonLat("lon", "lat")]
    >>> check_writable("out.csv", Kind("csv", ""), schema, places)
    >>> check_writable("out.plt", Kind("plt", ""), schema, places)
    Traceback (most recent call last):
    geoind.errors.InvalidInputError: plt files are not written: choose one of .csv, .tsv, .ndjson, ...
    """
    arrays = [pa.nulls(1, field.type) for field in schema]
    parts = [(pa.RecordBatch.from_arrays(arrays, names=schema.names), [np.zeros((1, 2))] * len(places))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, Path(name).name)
        target = path if kind.format == "vector" else io.BytesIO()
        write(target, Kind(kind.format, ""), iter(parts), schema=schema, places=places, decimals=5)
        if target == path and not path.is_file():
            raise InvalidInputError(f"GDAL does not write a file of the name {path.name!r}: choose another")


def write(
    target: Path | IO[bytes],
    kind: Kind,
    parts: Iterator[Part],
    *,
    schema: pa.Schema,
    places: Sequence[LonLat | Points],
    decimals: int,
    dialect: Dialect | None = None,
    spreadsheet_safe: bool = False,
    layer: str | None = None,
) -> None:
    r"""Write reports to a file.

    Parameters
    ----------
    target : Path or binary file
        Where to write; the formats of GDAL need a path.
    kind : Kind
        The format and the compression.
    parts : iterator of (pyarrow.RecordBatch, list of (n, 2) arrays)
        Kept columns and columns of places, and the reports of each place in degrees, longitude first, NaN where
        a row has none. Columns of places that are text have the reports, too. Parquet files have the columns of numbers or WKB
        of the batch, the formats of GDAL those of WKB.
    schema : pyarrow.Schema
        The schema of the batches. Of its metadata, only b"geoind" is written, and only to Parquet files.
    places : sequence of LonLat or Points
        The columns of the places.
    decimals : int
        Decimals of a degree in text.
    dialect : Dialect, optional
        How a CSV file is written; by default with commas between fields.
    spreadsheet_safe : bool
        Whether a ' is put before text of a CSV or TSV file that a spreadsheet takes for a formula.
    layer : str, optional
        The name of the layer in a GeoPackage or SQLite file; by default the name of the file.

    Examples
    --------
    >>> batch = pa.record_batch({"name": ["Ana", "Bo"], "lon": [0.0, 0.0], "lat": [0.0, 0.0]})
    >>> reports = np.array([[2.35, 48.86], [2.3, 48.8]])
    >>> file, places = io.BytesIO(), [LonLat("lon", "lat")]
    >>> write(file, Kind("csv", ""), iter([(batch, [reports])]), schema=batch.schema, places=places, decimals=5)
    >>> file.getvalue()
    b'name,lon,lat\nAna,2.35000,48.86000\nBo,2.30000,48.80000\n'
    """
    layout = _Layout(schema, places, decimals)
    suffix = target.suffix.lower() if isinstance(target, Path) else ""
    if kind.format == "vector" and suffix not in SEQUENCES:
        _write_vector(target, parts, layout, layer)
        return
    with ExitStack() as stack:
        stream = stack.enter_context(target.open("wb")) if isinstance(target, Path) else target
        if kind.compression:
            name = target.name if isinstance(target, Path) else f"reports.{kind.compression}"
            stream = stack.enter_context(closing(compressed(stream, kind.compression, inner_name(name, kind))))
        try:
            if kind.format == "parquet":
                _write_parquet(stream, parts, layout)
            elif kind.format in ("csv", "tsv"):
                _write_delimited(stream, parts, layout, dialect, tabs=kind.format == "tsv", safe=spreadsheet_safe)
            elif kind.format == "ndjson":
                _write_objects(stream, parts, layout)
            elif kind.format in ("geojson", "vector"):
                _write_features(stream, parts, layout, collection=kind.format == "geojson")
            elif kind.format == "gpx":
                _write_gpx(stream, parts, layout)
            else:
                raise InvalidInputError(f"{kind.format} files are not written: choose one of {WRITTEN}")
        except pa.ArrowException as error:
            # Not its message: it may quote a value.
            reason = type(error).__name__
            raise InvalidInputError(f"the reports cannot be written as {kind.format} ({reason})") from None


@dataclass
class _Layout:
    """Which columns are places."""

    schema: pa.Schema
    places: Sequence[LonLat | Points]
    decimals: int

    def __post_init__(self) -> None:
        self.spots: dict[str, list[tuple[str, int, int]]] = {}
        for number, place in enumerate(self.places):
            if isinstance(place, LonLat):
                self.spots |= {name: [(name, number, axis)] for axis, name in enumerate(place.names)}
            else:
                self.spots[self.geometry(place)] = [("lon", number, 0), ("lat", number, 1)]

    def geometry(self, place: Points) -> str:
        """Return the column of a place."""
        names = [*place.names, *geometry_columns(self.schema)]
        if not names or names[0] not in self.schema.names:
            raise InvalidInputError("the schema must declare a column of geometries")
        return names[0]

    def crs(self, place: LonLat | Points) -> str | None:
        """Return the CRS of a place."""
        if isinstance(place, LonLat):
            return LONLAT
        return place.crs or declared_crs(self.schema, self.geometry(place))

    def columns(self, part: Part, *, flat: bool = True) -> dict[str, Column]:
        """Return the columns of a part: places as lon and lat, or without places."""
        batch, reports = part
        found: list[tuple[str, Column]] = []
        for field, column in zip(self.schema, batch.columns, strict=True):
            if field.name not in self.spots:
                found.append((field.name, (field, column)))
            elif flat:
                for name, number, axis in self.spots[field.name]:
                    values = reports[number][:, axis]
                    ready = name == field.name and is_text(column.type) and not np.isnan(values).any()
                    text = column.cast(TEXT) if ready else _degrees(values, self.decimals)
                    found.append((name, (None, text)))
        result = dict(found)
        if len(result) < len(found):
            names = [name for name, _ in found]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInputError(f"the output would have two columns {twice!r}: keep only one of them")
        return result

    def empty(self) -> Part:
        """Return a part without rows."""
        return pa.RecordBatch.from_pylist([], schema=self.schema), [np.empty((0, 2))] * len(self.places)

    def only_place(self) -> LonLat | Points:
        """Return the place, for a format whose records have one."""
        if len(self.places) != 1:
            raise InvalidInputError(f"this format has one place per record, the reports have {len(self.places)}")
        return self.places[0]

    def shapes(self, part: Part, place: LonLat | Points, crs: str | None) -> pa.Array:
        """Return the places as WKB: those of the batch, or made from the reports."""
        batch, reports = part
        if isinstance(place, Points) and crs == self.crs(place):
            column = batch.column(batch.schema.get_field_index(self.geometry(place)))
            column = getattr(column, "storage", column)
            if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
                return column.cast(pa.binary())
        lonlat = reports[self.places.index(place)]
        points = np.zeros(len(lonlat), WKB_POINT)
        points["head"][:, :2] = 1
        points["xy"] = from_lonlat(lonlat, crs or LONLAT)
        shapes = pa.Array.from_buffers(pa.binary(WKB_POINT.itemsize), len(points), [None, pa.py_buffer(points)])
        return pc.if_else(pa.array(np.isnan(lonlat[:, 0])), None, shapes.cast(pa.binary()))


def _degrees(values: FloatArray, decimals: int) -> pa.Array:
    """Return numbers as text with so many decimals, null where they are NaN."""
    gone = np.isnan(values)
    whole = np.rint(np.where(gone, 0.0, values) * 10.0**decimals).astype(np.int64)
    words = pa.py_buffer(np.column_stack([whole, whole >> 63]))
    text = pa.Array.from_buffers(pa.decimal128(18, decimals), len(whole), [None, words]).cast(TEXT)
    return pc.if_else(pa.array(gone), None, text) if gone.any() else text


def _is_json(field: pa.Field | None) -> bool:
    """Return whether a column holds JSON as text."""
    if field is None:
        return False
    return b"geoind:json" in (field.metadata or {}) or getattr(field.type, "extension_name", "") == "arrow.json"


def _text(field: pa.Field | None, column: pa.Array) -> pa.Array:
    """Return a column as text, null where it has no value."""
    if field is None:
        return column
    column = getattr(column, "storage", column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if _is_json(field):
        return _unquoted(field.name, column.cast(TEXT))
    if any(check(kind) for check in BYTES):
        raise InvalidInputError(
            f"column {field.name!r} holds bytes, which this format cannot hold: do not keep it"
        )
    if pa.types.is_nested(kind):
        return pa.array(
            [None if value is None else _dumped(field.name, value) for value in column.to_pylist()], TEXT
        )
    if pa.types.is_timestamp(kind):
        # ISO 8601, in UTC if there is a time zone.
        utc = column if kind.tz is None else column.cast(pa.timestamp(kind.unit, "UTC"))
        return pc.replace_substring(utc.cast(TEXT), " ", "T")
    try:
        return column.cast(TEXT)
    except pa.ArrowNotImplementedError:
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], TEXT)


BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)


def _dumped(name: str, value: Any) -> str:
    """Return a list or struct as JSON."""

    def plain(inside: Any) -> str:
        if isinstance(inside, (date, time, Decimal)):
            return str(inside)
        raise ValueError

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain)
    except ValueError:
        raise InvalidInputError(f"column {name!r} holds lists or structs that JSON cannot hold") from None


def _unquoted(name: str, text: pa.Array) -> pa.Array:
    """Return JSON values as text: strings without their quotes."""
    quoted = pc.starts_with(text, '"')
    plain = pc.if_else(quoted, pc.utf8_slice_codeunits(text, 1, -1), text)
    escaped = pc.fill_null(pc.and_(quoted, pc.match_substring(text, "\\")), False)
    if not pc.any(escaped).as_py():
        return plain
    try:
        return pc.replace_with_mask(
            plain, escaped, pa.array(map(json.loads, text.filter(escaped).to_pylist()), TEXT)
        )
    except UnicodeError:
        raise InvalidInputError(f"column {name!r} holds text that is not valid Unicode") from None


def _json(field: pa.Field | None, column: pa.Array) -> pa.Array:
    """Return a column as JSON values, null where it has none."""
    if field is None:
        return column
    if _is_json(field):
        return getattr(column, "storage", column).cast(TEXT)
    text, kind = _text(field, column), column.type
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), text, None)
    if (
        pa.types.is_nested(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_decimal(kind)
    ):
        return text
    quoted = _joined('"', text, '"')
    special = pc.fill_null(pc.match_substring_regex(text, r'[\x00-\x1f"\\]'), False)
    if not pc.any(special).as_py():
        return quoted
    dumped = [json.dumps(value, ensure_ascii=False) for value in text.filter(special).to_pylist()]
    return pc.replace_with_mask(quoted, special, pa.array(dumped, TEXT))


def _joined(*pieces: Any) -> pa.Array:
    """Return the pieces of each row, columns and constants, as one text."""
    scalars = [pa.scalar(piece, TEXT) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(*scalars, pa.scalar("", TEXT))


def _bytes(texts: pa.Array) -> memoryview:
    """Return all texts of a column, one after the other."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)
    return memoryview(data or b"")[ends[texts.offset] : ends[texts.offset + len(texts)]]


def _write_delimited(
    stream: IO[bytes], parts: Iterator[Part], layout: _Layout, dialect: Dialect | None, *, tabs: bool, safe: bool
) -> None:
    delimiter, decimal_comma = Dialect("\t") if tabs else dialect or Dialect()

    def lines(columns: dict[str, pa.Array]) -> Any:
        if safe:
            columns = {name: _spreadsheet_safe(column) for name, column in columns.items()}
        buffer = pa.BufferOutputStream()
        options = pa.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
        try:
            pa.csv.write_csv(pa.table(columns), buffer, options)
            return buffer.getvalue()
        except pa.ArrowInvalid:
            # Some fields need quotes. pyarrow would put them around all fields.
            fields = [_field(name, column, delimiter, tabs=tabs) for name, column in columns.items()]
            between = [part for field in fields for part in (field, delimiter)][:-1]
            return _bytes(_joined(*between, "\n"))

    stream.write(lines({name: pa.array([name], TEXT) for name in layout.columns(layout.empty())}))
    for part in parts:
        columns = {}
        for name, (field, column) in layout.columns(part).items():
            comma = field is None and decimal_comma
            columns[name] = pc.replace_substring(column, ".", ",") if comma else _text(field, column)
        stream.write(lines(columns))


def _field(name: str, column: pa.Array, delimiter: str, *, tabs: bool) -> pa.Array:
    """Return the fields of a column, in quotes where they need them."""
    texts = pc.fill_null(column, "")
    special = pc.match_substring_regex(texts, r"[\t\r\n]" if tabs else rf'["\r\n{delimiter}]')
    if not pc.any(special).as_py():
        return texts
    if tabs:
        raise InvalidInputError(f"column {name!r} holds tabs or line breaks, which TSV cannot hold: write CSV")
    return pc.if_else(special, _joined('"', pc.replace_substring(texts, '"', '""'), '"'), texts)


def _spreadsheet_safe(texts: pa.Array) -> pa.Array:
    """Return texts with a ' before each one that a spreadsheet takes for a formula. Numbers stay as they are.

    These are texts that begin with =, +, -, @, a tab or a line break, also after spaces or characters
    without width.
    """
    formula = pc.and_not(pc.match_substring_regex(texts, FORMULA), pc.match_substring_regex(texts, NUMBER))
    marked = pc.replace_substring_regex(texts, '^("?)', r"\1'", max_replacements=1)
    return pc.if_else(formula, marked, texts)


def _write_objects(stream: IO[bytes], parts: Iterator[Part], layout: _Layout) -> None:
    names = set(layout.columns(layout.empty()))
    json_names = {field.name for field in layout.schema if _is_json(field) and field.name.count(".") <= DEEPEST}
    for part in parts:
        tree: dict[str, Any] = {}
        for name, (field, column) in layout.columns(part).items():
            *parents, last = name.split(".") if name in json_names else [name]
            if any(".".join(parents[:size]) in names for size in range(1, len(parents) + 1)):
                parents, last = [], name
            inner = tree
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[last] = _json(field, column)
        stream.write(_bytes(_joined(pc.fill_null(_object(tree, len(part[0])), "{}"), "\n")))


def _object(members: dict[str, Any], count: int) -> pa.Array:
    """Return a JSON object per row, null where no member has a value."""
    pieces: list[Any] = []
    empty = pa.array(np.ones(count, bool))
    for name, member in members.items():
        values = _object(member, count) if isinstance(member, dict) else member
        empty = pc.and_(empty, pc.is_null(values))
        pieces += [
            ", " if pieces else "{",
            f"{json.dumps(name, ensure_ascii=False)}: ",
            pc.fill_null(values, "null"),
        ]
    return pc.if_else(empty, pa.scalar(None, TEXT), _joined(*pieces, "}")) if pieces else pa.nulls(count, TEXT)


def _write_features(stream: IO[bytes], parts: Iterator[Part], layout: _Layout, *, collection: bool) -> None:
    number = layout.places.index(layout.only_place())
    stream.write(b'{"type": "FeatureCollection", "features": [' if collection else b"")
    first = 1
    for part in parts:
        count = len(part[0])
        lon, lat = (_degrees(values, layout.decimals) for values in part[1][number].T)
        geometry = _joined('{"type": "Point", "coordinates": [', lon, ", ", lat, "]}")
        properties = {name: _json(*column) for name, column in layout.columns(part, flat=False).items()}
        members = {
            "type": pa.repeat(pa.scalar('"Feature"', TEXT), count),
            "properties": properties,
            "geometry": geometry,
        }
        features = _object(members, count)
        texts = _bytes(_joined(",\n", features) if collection else _joined(features, "\n"))
        stream.write(texts[first:] if collection and count else texts)
        first = 0 if count else first
    stream.write(b"\n]}\n" if collection else b"")


def _write_parquet(stream: IO[bytes], parts: Iterator[Part], layout: _Layout) -> None:
    def converted(part: Part) -> pa.Table:
        batch, reports = part
        arrays = {}
        for field, column in zip(layout.schema, batch.columns, strict=True):
            for _, number, axis in layout.spots.get(field.name, ())[:1]:
                place = layout.places[number]
                if isinstance(place, Points):
                    column = layout.shapes(part, place, layout.crs(place))
                elif not (pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)):
                    values = reports[number][:, axis]
                    column = pa.array(values, pa.float64(), mask=np.isnan(values))
            arrays[field.name] = _text(field, column).cast(pa.string()) if _is_json(field) else column
        return pa.table(arrays)

    layout.columns(layout.empty(), flat=False)
    metadata = {key: value for key, value in (layout.schema.metadata or {}).items() if key == b"geoind"}
    shapes = {layout.geometry(place): layout.crs(place) for place in layout.places if isinstance(place, Points)}
    if shapes:
        columns = {name: _geoparquet(crs) for name, crs in shapes.items()}
        geo = {"version": "1.1.0", "primary_column": next(iter(columns)), "columns": columns}
        metadata[b"geo"] = json.dumps(geo).encode()
    schema = converted(layout.empty()).schema.with_metadata(metadata)
    # Reports hardly repeat: a dictionary of them would only cost time.
    repeated = [name for name in schema.names if name not in layout.spots]
    with pq.ParquetWriter(stream, schema, compression="snappy", use_dictionary=repeated) as writer:
        for part in parts:
            writer.write_table(converted(part).replace_schema_metadata(metadata))


def _geoparquet(crs: str | None) -> dict[str, Any]:
    """Return the metadata of a column of WKB points; no CRS in it means lon/lat."""
    about: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Point"]}
    if crs != LONLAT:
        about["crs"] = None if crs is None else parsed_crs(crs).to_json_dict()
    return about


def _write_vector(target: Path | IO[bytes], parts: Iterator[Part], layout: _Layout, layer: str | None) -> None:
    import pyogrio.raw

    if not isinstance(target, Path):
        raise InvalidInputError("the formats of GDAL need files with names, not standard output")
    place, driver = layout.only_place(), driver_of(target)
    if driver not in OPTIONS or target.suffix.lower() == ".zip":
        raise InvalidInputError(f"{target.suffix} files are not written: choose one of {WRITTEN}")
    crs = layout.crs(place) if driver != "LIBKML" else LONLAT
    geometry = layout.geometry(place) if isinstance(place, Points) else "geometry"
    failure: list[BaseException] = []

    def converted(part: Part) -> pa.RecordBatch:
        columns = {name: _for_gdal(driver, *column) for name, column in layout.columns(part, flat=False).items()}
        if geometry in columns:
            raise InvalidInputError(f"the output would have two columns {geometry!r}: keep only one of them")
        return pa.record_batch(columns | {geometry: layout.shapes(part, place, crs)})

    def guarded() -> Iterator[pa.RecordBatch]:
        try:
            yield from map(converted, parts)
        except BaseException as error:
            # On its way through GDAL the error would become another.
            failure.append(error)
            raise

    try:
        with warnings.catch_warnings(record=True) as changed:
            warnings.simplefilter("always")
            pyogrio.raw.write_arrow(
                pa.RecordBatchReader.from_batches(converted(layout.empty()).schema, guarded()),
                target,
                layer=layer if driver in ("GPKG", "SQLite") else None,
                driver=driver,
                geometry_name=geometry,
                geometry_type="Point",
                crs=None if crs is None else parsed_crs("EPSG:4326" if crs == LONLAT else crs).to_wkt(),
                **OPTIONS[driver],
            )
    except InvalidInputError:
        raise
    except Exception as error:
        if failure:
            raise failure[0] from None
        # Not its message: GDAL's may quote a value.
        raise InvalidInputError(f"GDAL cannot write this as {driver} ({type(error).__name__})") from None
    if changed:
        raise InvalidInputError(f"{driver} cannot hold all names and values as they are: choose .gpkg or .parquet")


def _for_gdal(driver: str, field: pa.Field, column: pa.Array) -> pa.Array:
    """Return a column in a type that the driver keeps; other values become text."""
    kind = column.type
    if not _is_json(field):
        if driver == "GPKG" and pa.types.is_timestamp(kind):
            try:
                return column.cast(pa.timestamp("ms", kind.tz))
            except pa.ArrowInvalid:
                reason = f"column {field.name!r} has times finer than a millisecond, which GDAL cannot write"
                raise InvalidInputError(reason) from None
        same = pa.types.is_boolean(kind) or pa.types.is_signed_integer(kind) or pa.types.is_floating(kind)
        if same or (driver == "GPKG" and (pa.types.is_binary(kind) or pa.types.is_date32(kind))):
            return column
        if pa.types.is_unsigned_integer(kind) and kind.bit_width < 64:
            return column.cast(pa.int64())
    return _text(field, column)


def _write_gpx(stream: IO[bytes], parts: Iterator[Part], layout: _Layout) -> None:
    number = layout.places.index(layout.only_place())
    names = list(layout.columns(layout.empty(), flat=False))
    label = next((name for name in ("name", "person") if name in names), None)
    if others := [name for name in names if name not in ("time", label)]:
        raise InvalidInputError(f"GPX files have the columns time and name, not {', '.join(map(repr, others))}")
    stream.write(GPX_HEAD)
    track = False
    last: str | None = None
    for part in parts:
        lon, lat = (_degrees(values, layout.decimals).to_pylist() for values in part[1][number].T)
        texts = {name: _xml(name, *column) for name, column in layout.columns(part, flat=False).items()}
        nothing = [None] * len(lon)
        lines = []
        for x, y, at, name in zip(lon, lat, texts.get("time", nothing), texts.get(label, nothing), strict=True):
            if x is None:
                # No point of a GPX file is without coordinates.
                continue
            named = f"<name>{name}</name>" if name is not None else ""
            timed = f"<time>{at}</time>" if at is not None else ""
            if "time" not in names:
                lines.append(f'<wpt lat="{y}" lon="{x}">{named}</wpt>\n')
                continue
            if not track or name != last:
                lines.append(("</trkseg></trk>\n" if track else "") + f"<trk>{named}<trkseg>\n")
                track, last = True, name
            lines.append(f'<trkpt lat="{y}" lon="{x}">{timed}</trkpt>\n')
        stream.write("".join(lines).encode())
    stream.write(b"</trkseg></trk>\n</gpx>\n" if track else b"</gpx>\n")


def _xml(name: str, field: pa.Field | None, column: pa.Array) -> list[str | None]:
    texts = _text(field, column)
    if pc.any(pc.match_substring_regex(texts, r"[\x00-\x08\x0b\x0c\x0e-\x1f\x{fffe}\x{ffff}]")).as_py():
        raise InvalidInputError(f"column {name!r} holds control characters, which GPX cannot hold")
    return [None if text is None else escape(text, {"\r": "&#13;"}) for text in texts.to_pylist()]
