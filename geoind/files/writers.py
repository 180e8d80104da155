"""How files are written, complete or not at all, and reports in any format: its module has the writer of each."""

import io
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.files.formats import READ_ONLY, STANDARD, WRITTEN, Kind, compressed, empty_batch, module_of
from geoind.mechanisms.noise import DECIMALS, snap_lonlat
from geoind.space.vector_files import SEQUENCES
from geoind.tables.columns import JSON_TEXT
from geoind.tables.places import LonLat, Points, decimals_of, numbers_of

Part: TypeAlias = tuple[pa.RecordBatch, Sequence[FloatArray]]
"""Kept columns, and the reports of each place in degrees, longitude first, NaN where a row has none."""
Column: TypeAlias = tuple[pa.Field, pa.Array]
"""A column of a batch and its field. In text formats the coordinates of reports are decimal numbers."""

TEXT = pa.large_string()

QUOTED = json.JSONEncoder(ensure_ascii=False).encode
DUMPED = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str).encode
SEVERAL_PLACES = ("csv", "tsv", "ndjson", "parquet")
"""The formats whose records may have several places."""
BARE = (pa.types.is_nested, pa.types.is_boolean, pa.types.is_integer, pa.types.is_decimal)
"""The types whose text is their JSON."""
SPOOL = 16 << 20
"""Bytes for standard output that stay in memory; more go to an unnamed temporary file."""


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
    r"""Write reports to a file, a binary one or that of a path.

    Kept values stay equal. In text formats, null and empty text are the same. Numbers that are not finite are null
    in JSON. A Shapefile keeps 15 digits of a number, and no spaces around text.

    The formats of GDAL need a path.

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


class AtomicWriter:
    """A context whose files appear together when it ends without an error.

    Each file is written to a hidden directory with mode 0700 next to its place and renamed from there; after an
    error or an interrupt nothing is left. Standard output is written at the end too. The file that was opened
    first is renamed last: if it exists, the others exist and belong to the same job.

    Parameters
    ----------
    within : path, optional
        The folder of a `WorkFolder`, for the hidden directories of files next to that job's target; by
        default each is next to its file.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with AtomicWriter() as writer:
    ...         _ = writer.open(f"{folder}/reports.csv").write(b"lon,lat")
    ...         before = os.path.exists(f"{folder}/reports.csv")
    ...     before, os.path.exists(f"{folder}/reports.csv")
    (False, True)
    """

    def __init__(self, within: Path | None = None) -> None:
        self._within = within
        self._places: list[tuple[Path, Path]] = []
        self._files: list[IO[bytes]] = []
        self._spool: IO[bytes] | None = None

    def open(self, name: str | Path, *, private: bool = False) -> IO[bytes]:
        """Return a file to write the content of a name ("-" for standard output).

        Parameters
        ----------
        name : path
            Where the file will appear.
        private : bool
            Whether it holds true locations: then its mode is 0600.
        """
        if str(name) == STANDARD:
            if sys.stdout is None:
                raise InvalidInputError("standard output is closed: nothing can be written there")
            self._spool = cast(IO[bytes], tempfile.SpooledTemporaryFile(SPOOL))  # noqa: SIM115
            return self._spool
        path = self.path(name)
        file: IO[bytes] = os.fdopen(
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666), "w+b"
        )
        self._files.append(file)
        return file

    def path(self, name: str | Path) -> Path:
        """Return where to write a file, and its companions next to it, that will appear under the name."""
        place = Path(name).resolve()
        if place.exists() and (not place.is_file() or _is_stream(place)):
            raise InvalidInputError(
                f"{name} must be a regular file, and no standard stream (- is standard output)"
            )
        folder = place.parent
        if self._within is not None and self._within.parent.parent == folder:
            folder = self._within
        aside = folder / f".{place.name}.{secrets.token_hex(4)}.partial"
        # Stored before it is created: a signal right afterwards must find it to remove it.
        self._places.append((aside, place))
        try:
            aside.mkdir(mode=0o700)
        except OSError as error:
            self._places.pop()
            raise InvalidInputError(f"cannot write {name}: {error.strerror}") from None
        return aside / place.name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._deliver()
        finally:
            for file in (*self._files, self._spool):
                # A full disk must not prevent the removal of the rest; the first error is raised anyway.
                with suppress(OSError):
                    if file is not None:
                        file.close()
            for aside, _ in self._places:
                shutil.rmtree(aside, ignore_errors=True)

    def _deliver(self) -> None:
        for file in self._files:
            file.close()
        parts = []
        for aside, place in reversed(self._places):
            # The main file last: the companions of a shapefile are useless without it.
            for part in sorted(aside.iterdir(), key=lambda part: part.name == place.name):
                with part.open("rb") as written:
                    os.fsync(written.fileno())
                parts.append((part, place.parent / part.name))
        if len(parts) > 1:
            # The old file goes first: a job that is killed now must not leave it next to a new release record.
            parts[-1][1].unlink(missing_ok=True)
        for part, end in parts:
            part.replace(end)
        if self._spool is not None:
            self._spool.seek(0)
            shutil.copyfileobj(self._spool, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def refuse_unwritable(names: Iterable[str | Path], within: Path | None = None) -> None:
    """Raise if there is a file that cannot be written. Nothing is written here, so nothing appears."""
    with AtomicWriter(within) as trial:
        for name in names:
            trial.open(name) if str(name) == STANDARD else trial.path(name)


def private_folder(path: str | Path) -> Path:
    """Return a folder; it and its missing parents are created with mode 0700."""
    folder = Path(path)
    if not folder.is_dir():
        private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _is_stream(place: Path) -> bool:
    """Return whether a file is this process's standard input, output or error."""
    for number in range(3):
        with suppress(OSError):
            if os.path.samestat(os.fstat(number), place.stat()):
                return True
    return False
