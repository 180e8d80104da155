"""The format of a file and the compression around it, and its bytes, which can be read several times."""

import gzip
import io
import os
import re
import shutil
import sys
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

import pyarrow as pa

from geoind.atomic import STANDARD
from geoind.errors import InvalidInputError
from geoind.files.source import Dialect, Rows
from geoind.space.vector_files import DRIVERS

__all__ = [
    "FORMATS",
    "READ_ONLY",
    "Bytes",
    "Kind",
    "StreamSource",
    "compressed",
    "inner_name",
    "is_known",
    "kind_of",
]

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
READ_ONLY = ("plt", "google")
SUFFIXES = {suffix: name for name, suffixes in NAMED.items() for suffix in suffixes}
"""The format by the suffix. Other suffixes of `vector_files.DRIVERS` are "vector": read and written by GDAL."""

MOST_COLUMNS = 1 << 14
"""Columns of a table of text, as in spreadsheets."""
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zip": "zip"}

GOOGLE = re.compile(
    rb'(\xef\xbb\xbf)?\s*(\{\s*"locations"\s*:\s*\[(\s*\]|.*"(latitudeE7|timestamp))'
    rb'|\{\s*"(semanticSegments|rawSignals|userLocationProfile)"\s*:|\[\s*\{.*"(startTime|timelinePath)")',
    re.DOTALL,
)
"""The first 64 KiB of Google's Records.json and Timeline.json."""


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
    if compression == "zip" and suffix not in SUFFIXES and exists:
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
            stream = self._copy or self._seekable(stack)
            stream.seek(0)
            try:
                yield _decompressed(stream, self.compression)
            except (EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
                # Errors of gzip and Arrow have no number, errors of the disk have one.
                if not self.compression or getattr(error, "errno", None) is not None:
                    raise
                raise InvalidInputError("the input is not, or not completely, a compressed file") from None

    def _seekable(self, stack: ExitStack) -> BinaryIO:
        if self.name == STANDARD:
            if sys.stdin is None:
                raise InvalidInputError("standard input is closed: nothing can be read there")
            stream = cast(BinaryIO, sys.stdin.buffer)
        else:
            try:
                stream = stack.enter_context(Path(self.name).open("rb"))  # noqa: SIM115
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or "it is not a path"
                raise InvalidInputError(f"cannot read {self.name}: {reason}") from None
            if stream.seekable():
                return stream
        copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
        weakref.finalize(self, copy.close)
        shutil.copyfileobj(stream, copy)
        self._copy = copy
        return copy


@dataclass
class StreamSource:
    """A `Source` whose records are read from a stream of bytes.

    Parameters
    ----------
    data : Bytes
        The file.
    schema : pyarrow.Schema
        All columns.
    read : callable
        Takes the stream and the names of the wanted columns, in the order of the schema, and yields rows.
    unit : str
        What a record is called in messages.
    dialect : Dialect, optional
        How a CSV file is written.
    """

    data: Bytes
    schema: pa.Schema
    read: Callable[[BinaryIO, list[str]], Iterator[Rows]]
    unit: str
    dialect: Dialect | None = None

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Rows]:
        """Yield the records from the beginning; only some of the columns, in the order of the schema."""
        chosen = set(self.schema.names if columns is None else columns)
        with self.data.opened() as stream:
            yield from self.read(stream, [name for name in self.schema.names if name in chosen])


def _decompressed(stream: BinaryIO, compression: str) -> BinaryIO:
    if compression == "gzip":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb"))
    if compression == "zstd":
        return io.BufferedReader(pa.CompressedInputStream(stream, "zstd"))
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
        raise InvalidInputError("the input is not, or not completely, a compressed file") from None
    # macOS adds a folder of its own.
    return archive, [part for part in archive.infolist() if not part.is_dir() and "__MACOSX/" not in part.filename]


def inner_name(target: str, kind: Kind) -> str:
    """Return the name of the member of an archive.

    Examples
    --------
    >>> inner_name("trips.zip", Kind("csv", "zip")), inner_name("trips.txt.zip", Kind("csv", "zip"))
    ('trips.csv', 'trips.txt')
    """
    stem = Path(target).stem
    return stem if Path(stem).suffix else f"{stem}.{kind.format}"


class _Compressor(NamedTuple):
    write: Callable[[bytes], int]
    close: Callable[[], None]


def compressed(stream: IO[bytes], compression: str, name: str) -> IO[bytes]:
    """Return a stream that compresses into another, for a file of that name; closing it leaves the other open."""
    stack = ExitStack()
    packed: IO[bytes]
    if compression == "gzip":
        # Neither name nor time of the input goes into the header.
        packed = cast(IO[bytes], stack.enter_context(gzip.GzipFile("", "wb", 6, stream, mtime=0)))
    elif compression == "zstd":
        # A descriptor of its own, because Arrow closes what it writes to.
        own = stack.enter_context(os.fdopen(os.dup(stream.fileno()), "wb"))
        packed = stack.enter_context(pa.CompressedOutputStream(own, "zstd"))
    elif compression == "zip":
        about = zipfile.ZipInfo(name)
        about.compress_type = zipfile.ZIP_DEFLATED
        archive = stack.enter_context(zipfile.ZipFile(stream, "w"))
        packed = stack.enter_context(archive.open(about, "w", force_zip64=True))
    else:
        return stream
    return cast(IO[bytes], _Compressor(packed.write, stack.close))
