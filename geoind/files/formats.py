"""Which format a file has: by its name, or by --format for standard input and output."""

import gzip
import io
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from geoind.errors import InvalidInputError

__all__ = ["FORMATS", "STANDARD", "Kind", "compressed", "decompressed", "kind_of", "opened"]

STANDARD = "-"
"""The name of standard input and output."""

FORMATS = ("csv", "tsv", "ndjson", "geojson", "parquet", "ogr")

SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".geojsonl": "ndjson",
    ".geojsonseq": "ndjson",
    ".geojson": "geojson",
    ".json": "geojson",
    ".parquet": "parquet",
    ".geoparquet": "parquet",
    ".pq": "parquet",
}
"""Whatever is not here is for pyogrio to read and write."""

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


class Kind(NamedTuple):
    """What a file is: its format, and the compression around it ("" for none)."""

    format: str
    compression: str


def kind_of(name: str, chosen: str | None = None) -> Kind | None:
    """Return what a file is, by the chosen format and its name; None for a nameless stream.

    Examples
    --------
    >>> kind_of("trips.csv.gz")
    Kind(format='csv', compression='gzip')
    >>> kind_of("-") is None
    True
    """
    if name == STANDARD:
        return None if chosen is None else Kind(chosen, "")
    path = Path(name)
    compression = COMPRESSIONS.get(path.suffix.lower(), "")
    suffix = Path(path.stem).suffix if compression else path.suffix
    kind = Kind(chosen or SUFFIXES.get(suffix.lower(), "ogr"), compression)
    if compression and kind.format in ("parquet", "ogr"):
        raise InvalidInputError(f"{kind.format} files cannot be compressed from outside: {path.name}")
    return kind


def opened(name: str) -> AbstractContextManager[BinaryIO]:
    """Return the bytes of a file, or of standard input, to be closed by a `with`."""
    if name == STANDARD:
        return nullcontext(cast(BinaryIO, sys.stdin.buffer))
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise InvalidInputError(f"cannot read {name}: {error.strerror}") from None


def decompressed(stream: BinaryIO, compression: str) -> BinaryIO:
    """Return the plain bytes of a stream."""
    if compression == "gzip":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb"))
    if compression == "zstd":
        import pyarrow

        return io.BufferedReader(pyarrow.CompressedInputStream(stream, "zstd"))
    return stream


def compressed(stream: IO[bytes], compression: str) -> IO[bytes]:
    """Return a stream that compresses into another; closing it finishes the compression only."""
    if compression == "gzip":
        # Neither name nor time of the input goes into the header.
        return cast(IO[bytes], gzip.GzipFile("", "wb", 6, stream, mtime=0))
    if compression == "zstd":
        import pyarrow

        # On a descriptor of its own, because Arrow closes what it writes to.
        own = os.fdopen(os.dup(stream.fileno()), "wb")
        return cast(IO[bytes], pyarrow.CompressedOutputStream(own, "zstd"))
    return stream
