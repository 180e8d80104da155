"""Writers of reports in every format: record batches and reports in, bytes out."""

import html
import io
import json
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.files.formats import Kind, compressed, empty_batch
from geoind.space.crs import LONLAT, parsed_crs
from geoind.space.vector_files import SEQUENCES, driver_of, gdal_path
from geoind.tables.places import LonLat, Points, crs_metadata, crs_of, decimal_text, geo_metadata, numbers_of

__all__ = ["check_writable", "write"]

Part: TypeAlias = tuple[pa.RecordBatch, Sequence[FloatArray]]
Buffer: TypeAlias = bytes | memoryview
Column: TypeAlias = tuple[pa.Field | None, pa.Array]
"""A column of a batch and its field; without a field it is a coordinate of the reports, as text."""

TEXT = pa.large_string()

WRITTEN = ".csv, .tsv, .ndjson, .geojson, .geojsonl, .gpx, .parquet, .gpkg, .fgb, .shp"

# The index of FlatGeobuf would sort the features, and cannot hold one without a place.
OPTIONS = {"GPKG": {}, "FlatGeobuf": {"SPATIAL_INDEX": "NO"}, "ESRI Shapefile": {}}
"""The drivers that write. Others change values, lose columns, or do not escape names."""

BLANK = r"[\x00 \x{a0}\x{ad}\x{2000}-\x{200f}\x{2028}-\x{202f}\x{205f}-\x{206f}\x{3000}\x{feff}]"
"""Spaces and characters without width such as a byte order mark."""
FORMULA = rf'^"?{BLANK}*[=+\-@＝＋－＠\t\r\n]'
"""The beginning of a text that a spreadsheet takes for a formula, in quotes or not."""
NUMBER = r'^"?[+-]?[0-9]+([.,][0-9]+)*([eE][+-]?[0-9]+)?"?$'

GPX = b'<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="geoind" %s>\n'
GPX %= b'xmlns="http://www.topografix.com/GPX/1/1"'

QUOTED = json.JSONEncoder(ensure_ascii=False).encode
DUMPED = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str).encode
BARE = (pa.types.is_nested, pa.types.is_boolean, pa.types.is_integer, pa.types.is_decimal)
"""The types whose text is their JSON."""

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
    try:
        arrays = [pa.nulls(1, field.type) for field in schema]
    except pa.ArrowException:
        raise InvalidInputError("columns of a rare type cannot be written: do not keep them") from None
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
    delimiter: str = ",",
    decimal_comma: bool = False,
    spreadsheet_safe: bool = False,
) -> None:
    r"""Write reports to a file.

    Kept values stay equal. In text, nothing and empty text are the same. Numbers that are not finite are null in
    JSON. A Shapefile keeps 15 digits of a number, and no spaces around text.

    Parameters
    ----------
    target : Path or binary file
        Where to write; the formats of GDAL need a path.
    kind : Kind
        The format and the compression.
    parts : iterator of (pyarrow.RecordBatch, list of (n, 2) arrays)
        Kept columns, and the reports of each place in degrees, longitude first, NaN where a row has none.
    schema : pyarrow.Schema
        The columns of the file: those kept, and those of places. Of its metadata, only b"geoind" is written, and
        only to Parquet files.
    places : sequence of LonLat or Points
        The columns of the places.
    decimals : int
        Decimals of a degree in text.
    delimiter, decimal_comma : str, bool
        How a CSV file is written.
    spreadsheet_safe : bool
        Whether a ' is put before text of a CSV or TSV file that a spreadsheet takes for a formula.

    Examples
    --------
    >>> batch = pa.record_batch({"name": ["Ana", "Bo"], "lon": [0.0, 0.0], "lat": [0.0, 0.0]})
    >>> reports = np.array([[2.35, 48.86], [2.3, 48.8]])
    >>> file, places = io.BytesIO(), [LonLat("lon", "lat")]
    >>> write(file, Kind("csv", ""), iter([(batch, [reports])]), schema=batch.schema, places=places, decimals=5)
    >>> file.getvalue()
    b'name,lon,lat\nAna,2.35000,48.86000\nBo,2.30000,48.80000\n'
    """
    delimiter = delimiter if kind.format == "csv" else "\t"
    layout = _Layout(kind.format, schema, places, decimals, delimiter, decimal_comma, spreadsheet_safe)
    if kind.format == "vector" and not (isinstance(target, Path) and target.suffix.lower() in SEQUENCES):
        return _write_vector(target, parts, layout)
    with ExitStack() as stack:
        stream = stack.enter_context(target.open("wb")) if isinstance(target, Path) else target
        name = target.name if isinstance(target, Path) else "reports"
        stream = stack.enter_context(compressed(stream, kind, name))
        try:
            if kind.format == "parquet":
                return _write_parquet(stream, parts, layout)
            if kind.format not in TEXTS:
                raise InvalidInputError(f"{kind.format} files are not written: choose one of {WRITTEN}")
            for text in TEXTS[kind.format](parts, layout):
                stream.write(text)
        except pa.ArrowException as error:
            # Not its message: it may quote a value.
            reason = type(error).__name__
            raise InvalidInputError(f"the reports cannot be written as {kind.format} ({reason})") from None


@dataclass
class _Layout:
    """Which columns are places, and how they are written."""

    format: str
    schema: pa.Schema
    places: Sequence[LonLat | Points]
    decimals: int
    delimiter: str
    decimal_comma: bool
    spreadsheet_safe: bool

    def __post_init__(self) -> None:
        self.spots: dict[str, list[tuple[str, int, int]]] = {}
        for name, after in pairwise(sorted(self.schema.names)):
            if name == after:
                raise InvalidInputError(f"the output would have two columns {name!r}: keep only one")
        for number, place in enumerate(self.places):
            sources = place.names if isinstance(place, LonLat) else place.names * 2
            names = place.names if isinstance(place, LonLat) else ("lon", "lat")
            for axis, (source, name) in enumerate(zip(sources, names, strict=True)):
                self.spots.setdefault(source, []).append((name, number, axis))

    def only_place(self) -> LonLat | Points:
        """Return the place, for a format with one per record."""
        if len(self.places) != 1:
            raise InvalidInputError(f"this format has one place per record, the reports have {len(self.places)}")
        return self.places[0]

    def empty(self) -> Part:
        """Return a part without rows."""
        return empty_batch(self.schema), [np.empty((0, 2))] * len(self.places)

    def columns(self, part: Part, *, places: bool = True) -> dict[str, Column]:
        """Return the columns of a part: with places as lon and lat, or without places."""
        columns: dict[str, Column] = {}
        for field in self.schema:
            if field.name in self.spots:
                spots = self.spots[field.name] if places else []
                found = [(name, (None, self.degrees(part, at, axis))) for name, at, axis in spots]
            else:
                found = [(field.name, (field, part[0].column(field.name)))]
            for name, one in found:
                if name in columns:
                    raise InvalidInputError(f"the output would have two columns {name!r}: keep only one")
                columns[name] = one
        return columns

    def degrees(self, part: Part, place: int, axis: int) -> pa.Array:
        """Return longitudes or latitudes of a place as text, null where there is none."""
        return decimal_text(part[1][place][:, axis], self.decimals)

    def shapes(self, part: Part, place: LonLat | Points) -> pa.Array:
        """Return the reports of a place as WKB in its CRS."""
        points = place if isinstance(place, Points) else Points()
        return points.wkb(part[1][self.places.index(place)])


def _is_json(field: pa.Field) -> bool:
    """Return whether a column holds JSON as text."""
    return b"geoind:json" in (field.metadata or {})


def _text(field: pa.Field | None, column: pa.Array) -> pa.Array:
    """Return a column as text, null where it has no value."""
    if field is None:
        return column
    column = getattr(column, "storage", column)
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    kind, name = column.type, field.name
    if _is_json(field):
        return _unquoted(name, column)
    if _has_bytes(kind):
        raise InvalidInputError(f"column {name!r} holds bytes, which this format cannot hold: do not keep it")
    if pa.types.is_timestamp(kind):
        # ISO 8601, in UTC if there is a time zone.
        utc = column if kind.tz is None else column.cast(pa.timestamp(kind.unit, "UTC"))
        return pc.replace_substring(utc.cast(TEXT), " ", "T")
    if pa.types.is_nested(kind):
        try:
            return pa.array((None if value is None else DUMPED(value) for value in column.to_pylist()), TEXT)
        except ValueError:
            raise InvalidInputError(f"column {name!r} holds NaN in lists, which JSON cannot hold") from None
    try:
        return column.cast(TEXT)
    except pa.ArrowNotImplementedError:
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], TEXT)


def _has_bytes(kind: pa.DataType) -> bool:
    inside = (kind.field(number).type for number in range(kind.num_fields))
    return any(map(_has_bytes, inside)) if kind.num_fields else "binary" in str(kind)


def _unquoted(name: str, column: pa.Array) -> pa.Array:
    """Return JSON values as text: strings without their quotes."""
    texts = (text if text is None or text[:1] != '"' else json.loads(text) for text in column.to_pylist())
    try:
        return pa.array(texts, TEXT)
    except UnicodeError:
        raise InvalidInputError(f"column {name!r} holds text that is not valid Unicode") from None


def _json(field: pa.Field | None, column: pa.Array) -> pa.Array:
    """Return a column as JSON values, null where it has none."""
    if field is None:
        return column
    if _is_json(field):
        return column.cast(TEXT)
    text, kind = _text(field, column), column.type
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), text, None)
    if any(check(kind) for check in BARE):
        return text
    return pa.array((None if value is None else QUOTED(value) for value in text.to_pylist()), TEXT)


def _joined(*pieces: Any) -> pa.Array:
    """Return the pieces of each row, columns and constants, as one text."""
    scalars = [pa.scalar(piece, TEXT) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(*scalars, pa.scalar("", TEXT))


def _bytes(texts: pa.Array) -> memoryview:
    """Return all texts of a column, one after the other."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset :]
    return memoryview(data or b"")[ends[0] : ends[len(texts)]]


def _delimited(parts: Iterator[Part], layout: _Layout) -> Iterator[Buffer]:
    options = pa.csv.WriteOptions(include_header=False, delimiter=layout.delimiter, quoting_style="none")

    def lines(columns: dict[str, pa.Array]) -> Any:
        if layout.spreadsheet_safe:
            columns = {name: _spreadsheet_safe(column) for name, column in columns.items()}
        buffer = pa.BufferOutputStream()
        try:
            pa.csv.write_csv(pa.table(columns), buffer, options)
            return buffer.getvalue()
        except pa.ArrowInvalid:
            # Some fields need quotes. pyarrow would put them around all fields.
            fields = [_field(name, column, layout) for name, column in columns.items()]
            between = [piece for field in fields for piece in (layout.delimiter, field)]
            return _bytes(_joined(*between[1:], "\n"))

    yield lines({name: _one(name) for name in layout.columns(layout.empty())})
    for part in parts:
        texts = {}
        for name, (field, column) in layout.columns(part).items():
            comma = field is None and layout.decimal_comma
            texts[name] = pc.replace_substring(column, ".", ",") if comma else _text(field, column)
        yield lines(texts)


def _one(text: str) -> pa.Array:
    """Return a column with one text; pa.array would import pandas, which takes long."""
    data = text.encode()
    return pa.Array.from_buffers(TEXT, 1, [None, pa.py_buffer(np.array([0, len(data)])), pa.py_buffer(data)])


def _field(name: str, column: pa.Array, layout: _Layout) -> pa.Array:
    """Return the fields of a column, in quotes where they need them."""
    texts = pc.fill_null(column, "")
    characters = "\t\r\n" if layout.format == "tsv" else f'"\r\n{layout.delimiter}'
    special = _having(texts, characters)
    if layout.format == "tsv" and pc.any(special).as_py():
        raise InvalidInputError(f"column {name!r} holds tabs or line breaks, which TSV cannot hold: write CSV")
    return pc.if_else(special, _joined('"', pc.replace_substring(texts, '"', '""'), '"'), texts)


def _having(texts: pa.Array, characters: str) -> pa.Array:
    """Return which texts have one of some ASCII characters."""
    return pc.match_substring_regex(texts, "[" + "".join(rf"\x{ord(one):02x}" for one in characters) + "]")


def _spreadsheet_safe(texts: pa.Array) -> pa.Array:
    """Return texts with a ' before each one that a spreadsheet takes for a formula, but not before numbers."""
    formula = pc.and_not(pc.match_substring_regex(texts, FORMULA), pc.match_substring_regex(texts, NUMBER))
    marked = pc.replace_substring_regex(texts, '^("?)', r"\1'", max_replacements=1)
    return pc.if_else(formula, marked, texts)


def _objects(parts: Iterator[Part], layout: _Layout) -> Iterator[Buffer]:
    names = set(layout.columns(layout.empty()))
    nested = {field.name for field in layout.schema if _is_json(field) and field.name.count(".") <= DEEPEST}
    for part in parts:
        tree: dict[str, Any] = {}
        for name, column in layout.columns(part).items():
            *parents, last = name.split(".") if name in nested else [name]
            if any(".".join(parents[: size + 1]) in names for size in range(len(parents))):
                # The parent is a column of its own.
                parents, last = [], name
            inner = tree
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[last] = _json(*column)
        yield _bytes(_joined(*_object(tree), "\n"))


def _object(members: dict[str, Any]) -> list[Any]:
    """Return the pieces of a JSON object."""
    pieces: list[Any] = []
    for name, values in members.items():
        inner = _object(values) if isinstance(values, dict) else [pc.fill_null(values, "null")]
        pieces += [f"{', ' if pieces else ''}{QUOTED(name)}: ", *inner]
    return ["{", *pieces, "}"]


def _features(parts: Iterator[Part], layout: _Layout) -> Iterator[Buffer]:
    number, collection = layout.places.index(layout.only_place()), layout.format == "geojson"
    yield b'{"type": "FeatureCollection", "features": [' if collection else b""
    first = True
    for part in parts:
        lon, lat = (layout.degrees(part, number, axis) for axis in range(2))
        point = pc.fill_null(_joined('{"type": "Point", "coordinates": [', lon, ", ", lat, "]}"), "null")
        members = {name: _json(*column) for name, column in layout.columns(part, places=False).items()}
        pieces = ['{"type": "Feature", "properties": ', *_object(members), ', "geometry": ', point, "}"]
        texts = _bytes(_joined(",\n", *pieces) if collection else _joined(*pieces, "\n"))
        yield texts[1:] if first and collection else texts
        first = first and not len(lon)
    yield b"\n]}\n" if collection else b""


def _write_parquet(stream: IO[bytes], parts: Iterator[Part], layout: _Layout) -> None:
    # It loads file systems of several clouds.
    import pyarrow.parquet as pq

    points = [place for place in layout.places if isinstance(place, Points)]

    def converted(part: Part) -> pa.Table:
        columns = {}
        for name, (field, column) in layout.columns(part, places=False).items():
            columns[name] = _text(field, column).cast(pa.string()) if _is_json(field) else column
        for place, reports in zip(layout.places, part[1], strict=True):
            made = [place.wkb(reports)] if isinstance(place, Points) else map(numbers_of, reports.T)
            columns |= dict(zip(place.names, made, strict=True))
        return pa.table({name: columns[name] for name in layout.schema.names})

    metadata = {key: value for key, value in (layout.schema.metadata or {}).items() if key == b"geoind"}
    if points:
        metadata |= geo_metadata({name: crs_metadata(place.crs) for place in points for name in place.names})
    fields = converted(layout.empty()).schema
    schema = pa.schema([(field.name, field.type) for field in fields], metadata)
    # A dictionary of numbers that are all different takes more time and space than the numbers.
    numbers = {field.name for field in schema if pa.types.is_primitive(field.type)} | set(layout.spots)
    repeated = [name for name in schema.names if name not in numbers]
    with pq.ParquetWriter(stream, schema, use_dictionary=repeated) as writer:
        for part in parts:
            writer.write_table(converted(part))


def _write_vector(target: Path | IO[bytes], parts: Iterator[Part], layout: _Layout) -> None:
    import pyogrio.raw

    if not isinstance(target, Path):
        raise InvalidInputError("the formats of GDAL need files with names, not standard output")
    place, driver = layout.only_place(), driver_of(target)
    if driver not in OPTIONS or target.suffix.lower() == ".zip":
        raise InvalidInputError(f"{target.suffix} files are not written: choose one of {WRITTEN}")
    crs, geometry = crs_of(place), "geometry" if isinstance(place, LonLat) else place.names[0]
    kept = [field.name.lower() for field in layout.schema if field.name not in layout.spots]
    while isinstance(place, LonLat) and geometry in kept:
        geometry += "_"
    # GDAL ignores case: it would read a column as the geometry, or as the number of a feature.
    if twice := {name for name in kept if [*kept, geometry.lower(), "ogc_fid"].count(name) > 1}:
        raise InvalidInputError(
            f"{driver} cannot hold the columns {sorted(twice)}: names must differ by more than case"
        )
    failure: list[BaseException] = []

    def converted(part: Part) -> pa.RecordBatch:
        columns = {name: _for_gdal(driver, *one) for name, one in layout.columns(part, places=False).items()}
        return pa.record_batch(columns | {geometry: layout.shapes(part, place)})

    def guarded() -> Iterator[pa.RecordBatch]:
        try:
            yield from map(converted, parts)
        except BaseException as error:
            # On its way through GDAL the error would become another.
            failure.append(error)
            raise

    try:
        reader = pa.RecordBatchReader.from_batches(converted(layout.empty()).schema, guarded())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pyogrio.raw.write_arrow(
                reader,
                gdal_path(target),
                driver=driver,
                geometry_name=geometry,
                geometry_type="Point",
                crs=parsed_crs("EPSG:4326" if crs == LONLAT else crs).to_wkt(),
                **OPTIONS[driver],
            )
    except InvalidInputError:
        raise
    except Exception as error:
        if failure and not isinstance(failure[0], pa.ArrowException):
            raise failure[0] from None
        # Not its message: GDAL's may quote a value.
        raise InvalidInputError(f"GDAL cannot write this as {driver} ({type(error).__name__})") from None
    if any(issubclass(warning.category, RuntimeWarning) for warning in caught):
        raise InvalidInputError(f"{driver} cannot hold all names and values as they are: choose .gpkg or .parquet")


def _for_gdal(driver: str, field: pa.Field, column: pa.Array) -> pa.Array:
    """Return a column in a type that the driver keeps; other values become text."""
    kind = column.type
    kept = any(check(kind) for check in (pa.types.is_boolean, pa.types.is_floating, pa.types.is_integer))
    if driver == "GPKG":
        kept |= pa.types.is_date32(kind) or pa.types.is_binary(kind)
        # GDAL's times have milliseconds.
        kept |= pa.types.is_timestamp(kind) and kind.unit in ("s", "ms")
    if kept and kind != pa.uint64() and not _is_json(field):
        return column
    texts = _text(field, column)
    if pc.any(_having(texts, "\0")).as_py():
        raise InvalidInputError(f"column {field.name!r} holds null characters, which GDAL cannot write")
    return texts


def _gpx(parts: Iterator[Part], layout: _Layout) -> Iterator[Buffer]:
    number = layout.places.index(layout.only_place())
    names = list(layout.columns(layout.empty(), places=False))
    label = "name" if "name" in names else "person"
    if others := [name for name in names if name not in ("time", label)]:
        raise InvalidInputError(f"GPX files have the columns time and name, not {', '.join(map(repr, others))}")
    yield GPX
    track: str | None = None
    for part in parts:
        lon, lat = (layout.degrees(part, number, axis).to_pylist() for axis in range(2))
        texts = {name: _elements(*column) for name, column in layout.columns(part, places=False).items()}
        nothing = [""] * len(lon)
        lines = []
        for x, y, at, name in zip(lon, lat, texts.get("time", nothing), texts.get(label, nothing), strict=True):
            if x is None:
                # No point of a GPX file is without coordinates.
                continue
            if "time" not in names:
                lines.append(f'<wpt lat="{y}" lon="{x}">{name}</wpt>\n')
                continue
            if name != track:
                lines += ["" if track is None else "</trkseg></trk>\n", f"<trk>{name}<trkseg>\n"]
                track = name
            lines.append(f'<trkpt lat="{y}" lon="{x}">{at}</trkpt>\n')
        yield "".join(lines).encode()
    yield b"</gpx>\n" if track is None else b"</trkseg></trk>\n</gpx>\n"


def _elements(field: pa.Field, column: pa.Array) -> list[str]:
    """Return times or names as XML elements, nothing where there is no value."""
    texts = _text(field, column)
    if pc.any(pc.match_substring_regex(texts, r"[\x00-\x08\x0b\x0c\x0e-\x1f\x{fffe}\x{ffff}]")).as_py():
        raise InvalidInputError(f"column {field.name!r} holds control characters, which GPX cannot hold")
    tag = "time" if field.name == "time" else "name"
    escaped = (text and html.escape(text, quote=False).replace("\r", "&#13;") for text in texts.to_pylist())
    return ["" if text is None else f"<{tag}>{text}</{tag}>" for text in escaped]


TEXTS = {
    "csv": _delimited,
    "tsv": _delimited,
    "ndjson": _objects,
    "geojson": _features,
    "vector": _features,
    "gpx": _gpx,
}
