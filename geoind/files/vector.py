"""GeoJSON and the other files that GDAL reads: one layer, read by `geoind.space.vector_files`."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geoind.errors import InvalidInputError
from geoind.files.source import Dialect, Reading, Rows, Source
from geoind.space.vector_files import VectorFile

__all__ = ["open_vector"]

JSON = {b"geoind:json": b"1"}
"""The metadata of a column of JSON texts."""

SOLID = [b"\x01" + number.to_bytes(4, "little") for number in (1001, 2001, 3001, 0x8000_0001)]
"""How WKB points with a height or a measure begin; x and y follow."""
FLAT = b"\x01\x01\x00\x00\x00"


def open_vector(path: str | Path, reading: Reading) -> Source:
    """Return the features of a layer: a column per attribute, and the geometry as WKB without heights.

    GDAL gives a column one type. A GeoJSON property with values of several types is read as JSON, where the text
    "1" and the number 1 are the same, or as numbers if the types are bool, int and float.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "in.geojson")
    ...     _ = path.write_text('{"type": "Feature", "properties": {"n": 1}, "geometry": null}')
    ...     next(open_vector(path, Reading()).rows()).batch.to_pylist()
    [{'n': 1, 'geometry': None}]
    """
    return _VectorSource(Path(path), reading)


@dataclass
class _VectorSource:
    path: Path
    reading: Reading
    unit: str = "feature"
    dialect: Dialect | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        with VectorFile(self.path) as file:
            about, reader = file.read(self._layer(file))
        fields = list(map(_field, reader.schema))
        # The geometry is the last column, whatever attributes are called.
        name = about["geometry_name"] or "geometry"
        while name in reader.schema.names[:-1]:
            name = f"{name}_"
        notes = {
            "ARROW:extension:name": "geoarrow.wkb",
            "ARROW:extension:metadata": json.dumps({"crs": about["crs"]}),
        }
        return pa.schema([*fields[:-1], pa.field(name, pa.binary(), metadata=notes)])

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Rows]:
        *names, geometry = self.schema.names
        wanted = set(self.schema.names if columns is None else columns)
        schema = pa.schema([field for field in self.schema if field.name in wanted])
        # GDAL confuses names that differ by case only when it leaves columns out.
        clear = len({name.lower() for name in names}) == len(names)
        attributes = [name for name in names if name in wanted or not clear]
        done = 0
        with VectorFile(self.path) as file:
            shapes = geometry in wanted or not attributes
            _, reader = file.read(self._layer(file), columns=attributes, geometry=shapes)
            for batch in reader:
                places = [-1 if name == geometry else batch.schema.names.index(name) for name in schema.names]
                arrays = [_converted(batch.column(at), field) for at, field in zip(places, schema, strict=True)]
                numbers = np.arange(done + 1, done + len(batch) + 1)
                done += len(batch)
                yield Rows(pa.RecordBatch.from_arrays(arrays, schema=schema), numbers)

    def _layer(self, file: VectorFile) -> str:
        names = [name for name, kind in file.layers.items() if kind is not None]
        if self.reading.layer is None and len(names) == 1:
            return names[0]
        if self.reading.layer is None or self.reading.layer not in names:
            known = ", ".join(map(repr, names[:20])) or "none: the file has no geometries"
            raise InvalidInputError(f"`layer=` must be one of {known}")
        return self.reading.layer


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
    return _without_heights(column) if field.metadata else column


def _json(text: str) -> str:
    """Return a value as JSON: GDAL leaves the quotes of a string out where others are objects or numbers."""
    try:
        # int refuses NaN and Infinity.
        json.loads(text, parse_constant=int)
    except (ValueError, RecursionError):
        return json.dumps(text, ensure_ascii=False)
    return text


def _without_heights(shapes: pa.Array) -> pa.Array:
    """Return WKB whose points have two coordinates."""
    for beginning in SOLID:
        flat = pc.binary_join_element_wise(FLAT, pc.binary_slice(shapes, 5, 21), b"")
        shapes = pc.if_else(pc.starts_with(shapes, beginning), flat, shapes)
    return shapes
