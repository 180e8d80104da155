"""How reports are written in any format: the writer of each is in the module of its format."""

import io
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.files.formats import READ_ONLY, Kind, compressed, empty_batch, module_of
from geoind.mechanisms.noise import DECIMALS, snap_lonlat
from geoind.space.vector_files import SEQUENCES
from geoind.tables.columns import JSON_TEXT
from geoind.tables.places import LonLat, Points, decimals_of, numbers_of

Part: TypeAlias = tuple[pa.RecordBatch, Sequence[FloatArray]]
"""Kept columns, and the reports of each place in degrees, longitude first, NaN where a row has none."""
Column: TypeAlias = tuple[pa.Field, pa.Array]
"""A column of a batch and its field. In text formats the coordinates of reports are decimal numbers."""

TEXT = pa.large_string()

WRITTEN = ".csv, .tsv, .ndjson, .geojson, .geojsonl, .gpx, .parquet, .gpkg, .fgb, .shp"

QUOTED = json.JSONEncoder(ensure_ascii=False).encode
DUMPED = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str).encode
SEVERAL_PLACES = ("csv", "tsv", "ndjson", "parquet")
"""The formats whose records may have several places."""
BARE = (pa.types.is_nested, pa.types.is_boolean, pa.types.is_integer, pa.types.is_decimal)
"""The types whose text is their JSON."""


def check_writable(name: str, layout: "Layout", rows: pa.RecordBatch | None = None) -> None:
    """Raise if rows cannot be written to a file of that name: by writing them, or a made-up one, elsewhere.

    Examples
    --------
    >>> schema, places = pa.schema({"lon": pa.string(), "lat": pa.string()}), [LonLat("lon", "lat")]
    >>> check_writable("out.csv", Layout(Kind("csv", ""), schema, places))
    >>> check_writable("out.plt", Layout(Kind("plt", ""), schema, places))
    Traceback (most recent call last):
    geoind.errors.InvalidInputError: plt files are not written: choose one of .csv, .tsv, .ndjson, ...
    """
    if rows is None:
        arrays = []
        for field in layout.fields:
            try:
                arrays.append(pa.nulls(1, field.type))
            except pa.ArrowException:
                raise InvalidInputError(
                    f"column {field.name!r} has type {field.type}, which cannot be written: do not keep it"
                ) from None
        rows = pa.RecordBatch.from_arrays(arrays, names=layout.fields.names)
    else:
        layout = replace(layout, cells=None)
    parts = [(rows, [np.zeros((len(rows), 2))] * len(layout.places))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, Path(name).name)
        target = path if layout.format == "vector" else io.BytesIO()
        write(target, iter(parts), replace(layout, kind=Kind(layout.format, "")))
        if target == path and not path.is_file():
            raise InvalidInputError(f"GDAL does not write a file of the name {path.name!r}: choose another")


def write(target: Path | IO[bytes], parts: Iterator[Part], layout: "Layout") -> None:
    r"""Write reports to a file.

    Kept values stay equal. In text formats, null and empty text are the same. Numbers that are not finite are null
    in JSON. A Shapefile keeps 15 digits of a number, and no spaces around text.

    Parameters
    ----------
    target : Path or binary file
        Where to write; the formats of GDAL need a path.
    parts : iterator of (pyarrow.RecordBatch, list of (n, 2) arrays)
        Kept columns, and the reports of each place in degrees, longitude first, NaN where a row has none.
    layout : Layout
        The format, and the columns of the file.

    Examples
    --------
    >>> batch = pa.record_batch({"name": ["Ana", "Bo"], "lon": [0.0, 0.0], "lat": [0.0, 0.0]})
    >>> reports = np.array([[2.35, 48.86], [2.3, 48.8]])
    >>> file, places = io.BytesIO(), [LonLat("lon", "lat")]
    >>> write(file, iter([(batch, [reports])]), Layout(Kind("csv", ""), batch.schema, places))
    >>> file.getvalue()
    b'name,lon,lat\nAna,2.35000,48.86000\nBo,2.30000,48.80000\n'
    """
    name, path = layout.format, target if isinstance(target, Path) else None
    module, sequence = module_of(name), path is not None and path.suffix.lower() in SEQUENCES
    if name == "vector" and not sequence:
        module.write_vector(target, parts, layout)
        return
    with ExitStack() as stack:
        stream = stack.enter_context(target.open("wb")) if isinstance(target, Path) else target
        stream = stack.enter_context(compressed(stream, layout.kind, "reports" if path is None else path.name))
        try:
            getattr(module, f"write_{'geojson' if sequence else name}")(stream, parts, layout)
        except pa.ArrowException as error:
            # Not its message: it may quote a value.
            reason = type(error).__name__
            raise InvalidInputError(f"the reports cannot be written as {name} ({reason})") from None


@dataclass(frozen=True)
class Layout:
    """The format of a file of reports, and how its columns are written.

    Parameters
    ----------
    kind : Kind
        The format and the compression.
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
    cells : str, optional
        The kind of cells as which reports are written, such as `h3:9`.
    """

    kind: Kind
    schema: pa.Schema
    places: Sequence[LonLat | Points]
    decimals: int = DECIMALS
    delimiter: str = ","
    decimal_comma: bool = False
    spreadsheet_safe: bool = False
    cells: str | None = None

    def __post_init__(self) -> None:
        if self.format in READ_ONLY:
            raise InvalidInputError(f"{self.format} files are not written: choose one of {WRITTEN}")
        if self.format not in SEVERAL_PLACES and len(self.places) != 1:
            raise InvalidInputError(
                f"this format has one location per record, and the reports have {len(self.places)}: write CSV, "
                "NDJSON or Parquet"
            )
        if self.spreadsheet_safe and self.format not in ("csv", "tsv"):
            raise InvalidInputError(f"`spreadsheet_safe=` is for CSV and TSV output, not {self.format}")
        _refuse_twice(self.fields.names)

    @property
    def format(self) -> str:
        """The name of the format."""
        return self.kind.format

    @cached_property
    def fields(self) -> pa.Schema:
        """The columns of the file, with the names of cells, a column per place."""
        count = 0 if self.cells is None else len(self.places)
        names = ["cell"] if count == 1 else [f"cell_{number}" for number in range(1, count + 1)]
        return pa.schema([*self.schema, *(pa.field(name, pa.string()) for name in names)])

    def in_cells(self, batch: pa.RecordBatch, reports: Sequence[FloatArray]) -> Part:
        """Return reports as cells: moved to the centres, with the names in new columns. It reads the reports only.

        Without a kind of cells they stay as they are.
        """
        if self.cells is None:
            return batch, reports
        # Cells load scipy, which takes long.
        from geoind.space.cells import cell_centres, cell_names

        moved = []
        for field, places in zip(list(self.fields)[len(self.schema) :], reports, strict=True):
            there = ~np.isnan(places[:, 0])
            names, values = cell_names(places[there], self.cells), np.full(len(places), None, dtype=object)
            centres = places.copy()
            values[there], centres[there] = names, snap_lonlat(cell_centres(names), self.decimals)
            # Not `append_column`: a batch without columns has no rows.
            schema = batch.schema.append(field)
            batch = pa.RecordBatch.from_arrays([*batch.columns, pa.array(values, pa.string())], schema=schema)
            moved.append(centres)
        return batch, moved

    def columns(self, part: Part) -> dict[str, Column]:
        """Return the columns of a part; where a format has one place per record, without the place."""
        spots: dict[str, list[Column]] = {name: [] for place in self.places for name in place.names}
        for place, degrees in zip(self.places, part[1], strict=True):
            for source, name, array in self._written(place, degrees):
                spots[source].append((pa.field(name, array.type), array))
        found: list[Column] = []
        for field in self.fields:
            found += spots[field.name] if field.name in spots else [(field, part[0].column(field.name))]
        _refuse_twice([field.name for field, _ in found])
        return {field.name: (field, column) for field, column in found}

    def _written(self, place: LonLat | Points, degrees: FloatArray) -> Iterable[tuple[str, str, pa.Array]]:
        """Return what is written for a place: its own column, the name of the written one, and the values."""
        if self.format not in SEVERAL_PLACES:
            return ()
        if isinstance(place, Points) and self.format == "parquet":
            return zip(place.names, place.names, [place.wkb(degrees)], strict=True)
        arrays = map(numbers_of, degrees.T) if self.format == "parquet" else self.decimal(degrees)
        if isinstance(place, Points):
            return zip(place.names * 2, ("lon", "lat"), arrays, strict=True)
        return zip(place.names, place.names, arrays, strict=True)

    def decimal(self, degrees: FloatArray) -> list[pa.Array]:
        """Return longitudes and latitudes as decimal numbers, null where there are none."""
        return [decimals_of(values, self.decimals) for values in degrees.T]

    @property
    def empty(self) -> Part:
        """A part without rows."""
        return empty_batch(self.fields), [np.empty((0, 2))] * len(self.places)


def _refuse_twice(names: Sequence[str]) -> None:
    for name, after in pairwise(sorted(names)):
        if name == after:
            raise InvalidInputError(f"the output would have two columns {name!r}: keep only one")


def is_json(field: pa.Field) -> bool:
    """Return whether a column holds JSON as text."""
    return JSON_TEXT in (field.metadata or {})


def text_of(field: pa.Field, column: pa.Array) -> pa.Array:
    """Return a column as text, null where it has no value."""
    column = getattr(column, "storage", column)
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    kind, name = column.type, field.name
    if is_json(field):
        return _unquoted(name, column)
    if _has_bytes(kind):
        raise InvalidInputError(f"column {name!r} holds bytes, which this format cannot hold: do not keep it")
    if pa.types.is_timestamp(kind):
        # ISO 8601, in UTC if there is a time zone.
        utc = column if kind.tz is None else column.cast(pa.timestamp(kind.unit, "UTC"))
        return pc.replace_substring(utc.cast(TEXT), " ", "T")
    nested = pa.types.is_nested(kind)
    if not nested:
        with suppress(pa.ArrowNotImplementedError):
            return column.cast(TEXT)
    form = DUMPED if nested else str
    try:
        return pa.array((None if value is None else form(value) for value in column.to_pylist()), TEXT)
    except (ValueError, OverflowError, pa.ArrowException):
        # Not the message: it may quote a value.
        raise InvalidInputError(
            f"column {name!r} holds values that text cannot hold, such as NaN in lists or the year 10000: do not "
            "keep it"
        ) from None


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


def json_of(field: pa.Field, column: pa.Array) -> pa.Array:
    """Return a column as JSON values, null where it has none."""
    if is_json(field):
        return column.cast(TEXT)
    text, kind = text_of(field, column), column.type
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), text, None)
    if any(check(kind) for check in BARE):
        return text
    return pa.array((None if value is None else QUOTED(value) for value in text.to_pylist()), TEXT)


def joined(*pieces: Any) -> pa.Array:
    """Return the pieces of each row, columns and constants, as one text."""
    scalars = [pa.scalar(piece, TEXT) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(*scalars, pa.scalar("", TEXT))


def bytes_of(texts: pa.Array) -> memoryview:
    """Return all texts of a column, one after the other."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset :]
    return memoryview(data or b"")[ends[0] : ends[len(texts)]]


def having(texts: pa.Array, characters: str) -> pa.Array:
    """Return which texts have one of some ASCII characters."""
    return pc.match_substring_regex(texts, "[" + "".join(rf"\x{ord(one):02x}" for one in characters) + "]")


def object_of(members: dict[str, Any]) -> list[Any]:
    """Return the pieces of a JSON object."""
    pieces: list[Any] = []
    for name, values in members.items():
        inner = object_of(values) if isinstance(values, dict) else [pc.fill_null(values, "null")]
        pieces += [f"{', ' if pieces else ''}{QUOTED(name)}: ", *inner]
    return ["{", *pieces, "}"]
