"""The formats of files: which one a file has, its bytes, and its records in record batches."""

import io
import os
import re
import shutil
import sys
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

import numpy as np
import pyarrow as pa

from geoind.arrays import IntArray
from geoind.errors import InvalidInputError
from geoind.space.vector_files import DRIVERS

STANDARD = "-"
"""The name of standard input and output."""

NAMED = {
    "csv": (".csv", ".txt"),
    "tsv": (".tsv", ".tab"),
    "ndjson": (".ndjson", ".jsonl"),
    "geojson": (".geojson", ".json"),
    "gpx": (".gpx",),
    "parquet": (".parquet", ".geoparquet", ".pq"),
    "plt": (".plt",),
}
FORMATS = (*NAMED, "google", "vector")
WRITTEN = ".csv, .tsv, .ndjson, .geojson, .geojsonl, .gpx, .parquet, .gpkg, .fgb, .shp"
READ_ONLY = ("plt", "google")
SUFFIXES = {suffix: name for name, suffixes in NAMED.items() for suffix in suffixes}
"""The format by the suffix. Other suffixes of `vector_files.DRIVERS` are "vector": read and written by GDAL."""

MOST_COLUMNS = 1 << 14
"""Columns of a table of text, as in spreadsheets."""
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zip": "zip"}
DAMAGED = "the input is damaged, incomplete or not compressed as its name says"

GOOGLE = re.compile(
    rb'(\xef\xbb\xbf)?\s*(\{\s*"locations"\s*:\s*\[(\s*\]|.*"(latitudeE7|timestamp))'
    rb'|\{\s*"(semanticSegments|rawSignals|userLocationProfile)"\s*:|\[\s*\{.*"(startTime|timelinePath)")',
    re.DOTALL,
)
"""The first 64 KiB of Google's Records.json and Timeline.json."""

MODULES = {"csv": "delimited", "tsv": "delimited", "plt": "delimited", "geojson": "vector"}
"""The module with the reader and the writer of a format, if it has another name."""
OPTIONS = {"delimiter": ("csv", "tsv"), "header": ("csv", "tsv"), "layer": ("vector", "geojson")}
"""The formats for which an option of `Reading` is."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    r"""How a file is read, where its name and its first bytes do not show it.

    Parameters
    ----------
    format : str, optional
        One of `geoind.files.formats.FORMATS`.
    delimiter : str, optional
        Between the fields of a CSV file; detected by default.
    header : bool
        Whether the first line of a CSV file names the columns; if not, they are numbers, from 1.
    layer : str, optional
        The layer of a file that GDAL reads, where it has several.

    Examples
    --------
    >>> Reading(delimiter=";").delimiter
    ';'
    """

    format: str | None = None
    delimiter: str | None = None
    header: bool = True
    layer: str | None = None


class BadRecord(NamedTuple):
    """A record that cannot have a report: its number in the file, why, and its text."""

    row: int
    reason: str
    record: str


@dataclass(frozen=True)
class Rows:
    """Some records of a file.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The records that could be read.
    numbers : (n,) array of int
        The number of each of them in the file, from 1. Records that could not be read are counted, too.
    bad : list of BadRecord
        The records between them that could not be read.
    """

    batch: pa.RecordBatch
    numbers: IntArray
    bad: list[BadRecord] = field(default_factory=list)


@dataclass
class Source:
    """A file of records, which can be read any number of times.

    Parameters
    ----------
    schema : pyarrow.Schema
        All columns. A geometry has the GeoArrow extension name and its CRS in the metadata of its field.
    read : callable
        Takes the names of the wanted columns, in the order of the schema, and yields rows from the beginning, or
        batches if every record can be read.
    unit : str
        What a record is called in messages: "row", "line", "feature" or "point".
    delimiter, decimal_comma : str, bool
        How a CSV file is written.
    """

    schema: pa.Schema
    read: Callable[[list[str]], Iterator[Rows | pa.RecordBatch]]
    unit: str = "row"
    delimiter: str = ","
    decimal_comma: bool = False

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Rows]:
        """Yield the records from the beginning; only some of the columns, in the order of the schema."""
        chosen = set(self.schema.names if columns is None else columns)
        done = 0
        for part in self.read([name for name in self.schema.names if name in chosen]):
            if isinstance(part, Rows):
                yield part
            else:
                yield Rows(part, np.arange(done + 1, done + len(part) + 1))
                done += len(part)


def text_schema(names: Sequence[str]) -> pa.Schema:
    """Return a schema of columns of text."""
    return pa.schema([(name, pa.string()) for name in names])


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows. Other functions of pyarrow for it import pandas, which takes long."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def open_source(path: str | Path, reading: Reading) -> Source:
    r"""Return the records of a file; "-" is standard input.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trips.csv")
    ...     _ = path.write_text("lat,lon\n48.85,2.29\n")
    ...     open_source(path, Reading()).schema.names
    ['lat', 'lon']
    """
    kind = kind_of(path, reading.format)
    for name, formats in OPTIONS.items():
        if getattr(reading, name) != getattr(Reading(), name) and kind.format not in formats:
            raise InvalidInputError(f"`{name}=` is not for {kind.format} files")
    data = Bytes(path, kind.compression)
    if kind.format in ("geojson", "vector"):
        return _open_vector(data, reading, kind)
    arguments = (data, reading) if kind.format in OPTIONS["delimiter"] else (data,)
    source: Source = getattr(module_of(kind.format), f"open_{kind.format}")(*arguments)
    return source


def module_of(name: str) -> Any:
    """Return the module with the functions `open_NAME` and `write_NAME` of a format.

    It is loaded when it is needed: a command that reads CSV loads no XML parser.
    """
    return import_module(f"geoind.files.{MODULES.get(name, name)}")


def _open_vector(data: "Bytes", reading: Reading, kind: "Kind") -> Source:
    from geoind.files.vector import open_vector

    if kind.format == "vector" or (not kind.compression and data.name.lower().endswith(tuple(DRIVERS))):
        return open_vector(Path(data.name), reading.layer)
    # GDAL reads no streams, so a private folder holds a plain file.
    folder = tempfile.TemporaryDirectory(prefix="geoind-")
    path = Path(folder.name, "input.geojson")
    with data.opened() as stream, path.open("wb") as file:
        shutil.copyfileobj(stream, file)
    source = open_vector(path, reading.layer)
    weakref.finalize(source, folder.cleanup)
    return source


class Kind(NamedTuple):
    """The format of a file, and the compression around it ("" for none)."""

    format: str
    compression: str


def kind_of(name: str | Path, chosen: str | None = None) -> Kind:
    """Return the format and the compression of a file, by the chosen format, its name and its first bytes.

    Examples
    --------
    >>> kind_of("trips.csv.gz")
    Kind(format='csv', compression='gzip')
    >>> kind_of("-", "ndjson")
    Kind(format='ndjson', compression='')
    """
    if chosen is not None and chosen not in FORMATS:
        raise InvalidInputError(f"`format=` must be one of {', '.join(FORMATS)}, got {chosen!r}")
    if str(name) == STANDARD:
        if chosen is None:
            raise InvalidInputError("standard input and output have no name to show the format: give `format=`")
        return Kind(chosen, "")
    path = Path(name)
    compression, suffix = _suffixes(path)
    # Also False for a name that no file can have.
    exists = os.path.isfile(path)  # noqa: PTH113
    if chosen is None and compression == "zip" and suffix not in SUFFIXES and exists:
        with Bytes(path).opened() as stream:
            members = _archive(stream)[1]
        suffix = Path(members[0].filename).suffix.lower() if len(members) == 1 else suffix
    found = chosen or SUFFIXES.get(suffix, "vector")
    if found == "vector":
        if not path.name.lower().endswith(tuple(DRIVERS)):
            known = ", ".join({**SUFFIXES, **DRIVERS})
            raise InvalidInputError(f"{path.name!r} must end in one of {known}, or `format=` must be given")
        # GDAL reads an archive of a shapefile as it is.
        return Kind(found, "")
    if compression and found == "parquet":
        raise InvalidInputError(f"a Parquet file cannot be compressed as a whole: {path.name!r}")
    if chosen is None and suffix == ".json" and exists:
        with Bytes(path, compression).opened() as stream:
            found = "google" if GOOGLE.match(stream.read(1 << 16)) else found
    return Kind(found, compression)


def kinds_of(source: str, target: str, chosen: str | None = None) -> tuple[Kind, Kind]:
    """Return the formats of a file, which may be chosen, and of the file of its reports."""
    place = Path(target)
    if source == STANDARD and target != STANDARD:
        chosen = chosen or kind_of(place).format
    # An archive without another suffix.
    bare = place.suffix.lower() == ".zip" and not place.with_suffix("").suffix
    if target != STANDARD and not bare and not is_known(place):
        # `format=` is that of the input.
        raise InvalidInputError(f"the output {place.name!r} must end in one of {WRITTEN}")
    first = kind_of(source, chosen)
    usual = "csv" if first.format in READ_ONLY else first.format
    follows = target == STANDARD or (bare and usual not in ("parquet", "vector"))
    return first, kind_of(place, usual if follows else None)


def refuse_urls(*paths: str | Path) -> None:
    """Raise if a path is an address such as s3://bucket/trips, which would be taken for a local folder."""
    for path in map(str, paths):
        # A Path has one slash of two; a drive of Windows has one letter.
        if re.match(r"[a-z][a-z0-9+.-]+:/", path, re.IGNORECASE):
            raise InvalidInputError(
                f"{path!r} is an address, and only local files are read and written: copy or mount them, or give "
                "the table of another reader to geoind.tables.obfuscate"
            )


def refuse_overwriting(used: Iterable[str | Path], targets: Iterable[str | Path | None]) -> None:
    """Raise if a file that is used would be written over, or two would be written into one."""
    taken = [Path(name).resolve() for name in used if str(name) != STANDARD]
    for path in (Path(name).resolve() for name in targets if name is not None and str(name) != STANDARD):
        if any(path == other or (path.exists() and other.exists() and path.samefile(other)) for other in taken):
            raise InvalidInputError(
                f"{path.name} would be overwritten: input, output, rejects, key and ledger must be different files"
            )
        taken.append(path)


def is_known(path: Path) -> bool:
    """Return whether a file in a folder is read, by its suffix."""
    compression, suffix = _suffixes(path)
    return suffix in SUFFIXES or (suffix in DRIVERS and not compression)


def _suffixes(path: Path) -> tuple[str, str]:
    compression = COMPRESSIONS.get(path.suffix.lower(), "")
    return compression, (Path(path.stem) if compression else path).suffix.lower()


class Bytes:
    """The decompressed bytes of a file or of standard input, from the beginning at each reading.

    Parameters
    ----------
    name : str or Path
        The file; "-" is standard input. What cannot be read twice is copied to an unnamed temporary file.
    compression : str
        "gzip", "zstd", "zip" or "" for none.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trips.csv")
    ...     _ = path.write_bytes(b"lat,lon")
    ...     data = Bytes(path)
    ...     for _ in range(2):
    ...         with data.opened() as stream:
    ...             print(stream.read(3))
    b'lat'
    b'lat'
    """

    def __init__(self, name: str | Path, compression: str = "") -> None:
        self.name = str(name)
        self.compression = compression
        self._copy: BinaryIO | None = None

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Return the bytes, in a `with`. Damaged compressed bytes are an `InvalidInputError`, also while read."""
        with ExitStack() as stack:
            stream = self._seekable(stack)
            stream.seek(0)
            try:
                yield _decompressed(stream, self.compression)
            except (EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
                # Errors of Arrow have no number, errors of the disk have one.
                if not self.compression or getattr(error, "errno", None) is not None:
                    raise
                raise InvalidInputError(DAMAGED) from None

    def _seekable(self, stack: ExitStack) -> BinaryIO:
        if self._copy is None and self.name != STANDARD:
            try:
                stream: BinaryIO = stack.enter_context(Path(self.name).open("rb"))  # noqa: SIM115
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or "it is not a path"
                raise InvalidInputError(f"cannot read {self.name}: {reason}") from None
            if stream.seekable():
                return stream
        elif self._copy is None:
            if sys.stdin is None:
                raise InvalidInputError("standard input is closed: nothing can be read there")
            stream = cast(BinaryIO, sys.stdin.buffer)
        if self._copy is None:
            self._copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
            weakref.finalize(self, self._copy.close)
            shutil.copyfileobj(stream, self._copy)
            self._copy.flush()
        # A descriptor of its own, because Arrow closes what it reads from.
        return stack.enter_context(os.fdopen(os.dup(self._copy.fileno()), "rb"))


def _decompressed(stream: BinaryIO, compression: str) -> BinaryIO:
    if compression in ("gzip", "zstd"):
        return io.BufferedReader(pa.CompressedInputStream(stream, compression))
    if compression == "zip":
        archive, members = _archive(stream)
        if len(members) != 1:
            raise InvalidInputError(f"a .zip archive must hold one file, this one holds {len(members)}")
        if members[0].flag_bits & 1 or members[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InvalidInputError("a .zip archive must be compressed by deflate, without a password")
        try:
            return cast(BinaryIO, archive.open(members[0]))
        except (NotImplementedError, OSError, RuntimeError, ValueError):
            raise zipfile.BadZipFile from None
    return stream


def _archive(stream: BinaryIO) -> tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]:
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        raise InvalidInputError(DAMAGED) from None
    # macOS adds a folder of its own.
    return archive, [part for part in archive.infolist() if not part.is_dir() and "__MACOSX/" not in part.filename]


@contextmanager
def compressed(stream: IO[bytes], kind: Kind, target: str) -> Iterator[IO[bytes]]:
    """Return a stream that compresses into another, for a file of that name; the other stays open."""
    if kind.compression in ("gzip", "zstd"):
        # A descriptor of its own, because Arrow closes what it writes to.
        with (
            os.fdopen(os.dup(stream.fileno()), "wb") as own,
            pa.CompressedOutputStream(own, kind.compression) as packed,
        ):
            yield packed
    elif kind.compression == "zip":
        stem = Path(target).stem
        about = zipfile.ZipInfo(stem if Path(stem).suffix else f"{stem}.{kind.format}")
        about.compress_type = zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(stream, "w") as archive, archive.open(about, "w", force_zip64=True) as member:
            yield member
    else:
        yield stream
