"""GeoJSON and the other files that GDAL reads: one layer, read by `geoind.space.vector_files`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from geoind.errors import InvalidInputError
from geoind.files.formats import Source
from geoind.space.vector_files import VectorFile

__all__ = ["open_vector"]

JSON = {b"geoind:json": b"1"}
"""The metadata of a column of JSON texts."""


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
        known = ", ".join(map(repr, names[:20])) or "none: the file has no geometries"
        raise InvalidInputError(f"`layer=` must be one of {known}")
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
