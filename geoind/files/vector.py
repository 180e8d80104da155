"""GeoJSON and the other files of GDAL: one layer, read by `geoind.space.vector_files`."""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from geoind.errors import InvalidInputError
from geoind.files.formats import WRITTEN, Source
from geoind.files.writers import (
    TEXT,
    Layout,
    Part,
    bytes_of,
    having,
    is_json,
    joined,
    json_of,
    object_of,
    text_of,
)
from geoind.space.crs import LONLAT, parsed_crs
from geoind.space.vector_files import VectorFile, driver_of, gdal_path
from geoind.tables.columns import JSON_TEXT
from geoind.tables.places import LonLat, Points, crs_of

JSON = {JSON_TEXT: b"1"}
"""The metadata of a column of JSON texts."""

# The index of FlatGeobuf would sort the features, and cannot hold one without a place.
OPTIONS = {"GPKG": {}, "FlatGeobuf": {"SPATIAL_INDEX": "NO"}, "ESRI Shapefile": {}}
"""The drivers that write. Others change values, lose columns, or do not escape names."""


def open_vector(path: str | Path, layer: str | None = None) -> Source:
    """Return the features of a layer: a column per attribute, and the geometry as WKB.

    GDAL gives a column one type. A GeoJSON property with values of several types is read as JSON, where the text
    "1" and the number 1 are the same, or as numbers if the types are bool, int and float.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "in.geojson")
    ...     _ = path.write_text('{"type": "Feature", "properties": {"n": 1}, "geometry": null}')
    ...     next(open_vector(path).rows()).batch.to_pylist()
    [{'n': 1, 'geometry': None}]
    """
    with VectorFile(path) as file:
        layer = _layer(file, layer)
        about, reader = file.read(layer)
    *attributes, shapes = map(_field, reader.schema)
    # The geometry is the last column, whatever attributes are called.
    geometry = about["geometry_name"] or "geometry"
    while geometry in reader.schema.names[:-1]:
        geometry += "_"
    notes = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": json.dumps({"crs": about["crs"]})}
    schema = pa.schema([*attributes, pa.field(geometry, shapes.type, metadata=notes)])

    def read(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        names = schema.names[:-1]
        # GDAL confuses names that differ by case only when it leaves columns out.
        clear = len({name.lower() for name in names}) == len(names)
        columns = [name for name in names if name in wanted or not clear]
        chosen = pa.schema([field for field in schema if field.name in wanted])
        with VectorFile(path) as file:
            _, reader = file.read(layer, columns=columns, geometry=geometry in wanted or not columns)
            for batch in reader:
                places = [-1 if name == geometry else batch.schema.names.index(name) for name in chosen.names]
                arrays = [_converted(batch.column(at), field) for at, field in zip(places, chosen, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=chosen)

    return Source(schema, read, "feature")


def _layer(file: VectorFile, wanted: str | None) -> str:
    names = [name for name, kind in file.layers.items() if kind is not None]
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None or wanted not in names:
        if not names:
            raise InvalidInputError("the file has no layer with geometries")
        raise InvalidInputError(f"`layer=` must be one of {', '.join(map(repr, names[:20]))}")
    return wanted


def _field(field: pa.Field) -> pa.Field:
    """Return the field of an attribute, without its notes; JSON is text."""
    notes = field.metadata or {}
    name = getattr(field.type, "extension_name", notes.get(b"ARROW:extension:name", b"").decode())
    kind = getattr(field.type, "storage_type", field.type)
    return pa.field(field.name, kind, metadata=JSON if name == "arrow.json" else None)


def _converted(column: pa.Array, field: pa.Field) -> pa.Array:
    column = getattr(column, "storage", column)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise InvalidInputError(f"column {field.name!r} has invalid text or geometries") from None
    if field.metadata == JSON:
        return pa.array([None if text is None else _json(text) for text in column.to_pylist()], field.type)
    return column.cast(field.type)


def _json(text: str) -> str:
    """Return a value as JSON: GDAL leaves the quotes of a string out where others are objects or numbers."""
    try:
        # int refuses NaN and Infinity.
        json.loads(text, parse_constant=int)
    except (ValueError, RecursionError):
        return json.dumps(text, ensure_ascii=False)
    return text


def write_geojson(stream: IO[bytes], parts: Iterator[Part], layout: Layout) -> None:
    """Write a FeatureCollection, or a feature per line."""
    collection = layout.format == "geojson"
    stream.write(b'{"type": "FeatureCollection", "features": [' if collection else b"")
    first = True
    for part in parts:
        lon, lat = (axis.cast(TEXT) for axis in layout.decimal(part[1][0]))
        point = pc.fill_null(joined('{"type": "Point", "coordinates": [', lon, ", ", lat, "]}"), "null")
        members = {name: json_of(*column) for name, column in layout.columns(part).items()}
        pieces = ['{"type": "Feature", "properties": ', *object_of(members), ', "geometry": ', point, "}"]
        texts = bytes_of(joined(",\n", *pieces) if collection else joined(*pieces, "\n"))
        stream.write(texts[1:] if first and collection else texts)
        first = first and not len(lon)
    stream.write(b"\n]}\n" if collection else b"")


def write_vector(target: Path | IO[bytes], parts: Iterator[Part], layout: Layout) -> None:
    """Write a layer of points by GDAL, with the driver of the suffix; the target must be a path."""
    import pyogrio.raw

    if not isinstance(target, Path):
        raise InvalidInputError("the formats of GDAL need files with names, not standard output")
    place, driver = layout.places[0], driver_of(target)
    if driver not in OPTIONS or target.suffix.lower() == ".zip":
        raise InvalidInputError(f"{target.suffix} files are not written: choose one of {WRITTEN}")
    crs, geometry = crs_of(place), "geometry" if isinstance(place, LonLat) else place.names[0]
    kept = [name.lower() for name in layout.columns(layout.empty)]
    while isinstance(place, LonLat) and geometry in kept:
        geometry += "_"
    # GDAL ignores case: it would read a column as the geometry, or as the number of a feature.
    if twice := {name for name in kept if [*kept, geometry.lower(), "ogc_fid"].count(name) > 1}:
        raise InvalidInputError(
            f"{driver} cannot hold the columns {sorted(twice)}: names must differ by more than case"
        )
    failure: list[BaseException] = []

    def converted(part: Part) -> pa.RecordBatch:
        columns = {name: _for_gdal(driver, *one) for name, one in layout.columns(part).items()}
        shapes = place if isinstance(place, Points) else Points()
        return pa.record_batch(columns | {geometry: shapes.wkb(part[1][0])})

    def guarded() -> Iterator[pa.RecordBatch]:
        try:
            yield from map(converted, parts)
        except BaseException as error:
            # On its way through GDAL the error would become another.
            failure.append(error)
            raise

    try:
        reader = pa.RecordBatchReader.from_batches(converted(layout.empty).schema, guarded())
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
    if kept and kind != pa.uint64() and not is_json(field):
        return column
    texts = text_of(field, column)
    if pc.any(having(texts, "\0")).as_py():
        raise InvalidInputError(f"column {field.name!r} holds null characters, which GDAL cannot write")
    return texts
