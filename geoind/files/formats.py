"""Which format a file has, and the compression around it: by its name, or as told."""

import gzip
import io
import os
import sys
import zipfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

import pyarrow as pa

from geoind.errors import InvalidInputError
from geoind.space.vector_files import DRIVERS, driver_of
from geoind.tables.delivery import STANDARD

__all__ = [
    "FORMATS",
    "TEXT",
    "Kind",
    "compressed",
    "decompressed",
    "inner_name",
    "is_known",
    "kind_of",
    "kinds_of",
    "opened",
]

TEXT = ("csv", "tsv", "ndjson", "geojson", "gpx")
FORMATS = (*TEXT, "parquet", "ogr")
CONVERTIBLE = ("csv", "tsv", "ndjson", "parquet")

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
    ".gpx": "gpx",
    ".parquet": "parquet",
    ".geoparquet": "parquet",
    ".pq": "parquet",
}
"""What is not here is read and written by GDAL, if its suffix is in `vector_files.DRIVERS`."""

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zip": "zip"}


class Kind(NamedTuple):
    """What a file is: its format, and the compression around it ("" for none)."""

    format: str
    compression: str


def kind_of(name: str | Path, chosen: str | None = None) -> Kind | None:
    """Return what a file is, by the chosen format and its name; None for a nameless stream.

    Examples
    --------
    >>> kind_of("trips.csv.gz")
    Kind(format='csv', compression='gzip')
    >>> kind_of("-") is None
    True
    """
    if chosen is not None and chosen not in FORMATS:
        raise InvalidInputError(f"format must be one of {', '.join(FORMATS)}, got {chosen!r}")
    if str(name) == STANDARD:
        return None if chosen is None else Kind(chosen, "")
    path = Path(name)
    compression = COMPRESSIONS.get(path.suffix.lower(), "")
    suffix = Path(path.stem).suffix if compression else path.suffix
    found = chosen or SUFFIXES.get(suffix.lower())
    if compression == "zip" and found is None:
        # GDAL reads shapefiles in archives; a single table of text is ours.
        inside = _only_member(path)
        found = SUFFIXES.get(Path(inside).suffix.lower()) if inside else None
        if found not in TEXT:
            return Kind("ogr", "")
    kind = Kind(found or "ogr", compression)
    if compression and kind.format not in TEXT:
        raise InvalidInputError(f"{kind.format} files cannot be compressed from outside: {path.name}")
    return kind


def is_known(path: Path) -> bool:
    """Return whether a file in a folder is taken for one of places: by its suffix."""
    packed = path.suffix.lower() in COMPRESSIONS
    suffix = (Path(path.stem).suffix if packed else path.suffix).lower()
    return suffix in SUFFIXES or (suffix in DRIVERS and not packed)


def opened(name: str | Path) -> AbstractContextManager[BinaryIO]:
    """Return the bytes of a file, or of standard input, to be closed by a `with`."""
    if str(name) == STANDARD:
        if sys.stdin is None:
            raise InvalidInputError("standard input is closed: nothing can be read there")
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
        return io.BufferedReader(pa.CompressedInputStream(stream, "zstd"))
    if compression == "zip":
        archive = _archive(stream)
        names = _members(archive)
        if len(names) != 1:
            raise InvalidInputError(f"a .zip archive must hold one file, this one holds {len(names)}")
        return cast(BinaryIO, archive.open(names[0]))
    return stream


def compressed(stream: IO[bytes], compression: str, name: str) -> IO[bytes]:
    """Return a stream that compresses into another, for a file of that name; closing it leaves the other open."""
    if compression == "gzip":
        # Neither name nor time of the input goes into the header.
        return cast(IO[bytes], gzip.GzipFile("", "wb", 6, stream, mtime=0))
    if compression == "zstd":
        return cast(IO[bytes], _Zstandard(stream))
    if compression == "zip":
        return cast(IO[bytes], _ZipMember(stream, name))
    return stream


class _Zstandard:
    """A compressed stream on a descriptor of its own, because Arrow closes what it writes to."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._own = os.fdopen(os.dup(stream.fileno()), "wb")
        self._packed = pa.CompressedOutputStream(self._own, "zstd")

    def write(self, data: bytes) -> int:
        return int(self._packed.write(data))

    def close(self) -> None:
        try:
            self._packed.close()
        finally:
            self._own.close()


class _ZipMember:
    """The one member of an archive, whose end is the archive's end."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._archive = zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED)
        about = zipfile.ZipInfo(name)
        about.compress_type = zipfile.ZIP_DEFLATED
        self._member = self._archive.open(about, "w", force_zip64=True)

    def write(self, data: bytes) -> int:
        return self._member.write(data)

    def close(self) -> None:
        try:
            self._member.close()
        finally:
            # Also after an error, such as a full disk: an archive that is left open tries again at its end.
            self._archive.close()


def _archive(stream: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stream)
    except zipfile.BadZipFile:
        raise InvalidInputError("the input is not, or not completely, a compressed file") from None


def _members(archive: zipfile.ZipFile) -> list[str]:
    # macOS adds a folder of its own.
    return [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]


def _only_member(path: Path) -> str | None:
    if not path.is_file():
        return None
    with opened(path) as stream:
        names = _members(_archive(stream))
    return names[0] if len(names) == 1 else None


def kinds_of(source: str, target: str, chosen: str | None) -> tuple[Kind, Kind]:
    """Return what the two files are; a nameless one is what the other is."""
    known = [kind_of(source, chosen), kind_of(target)]
    named = [kind for kind in known if kind is not None]
    if not named:
        raise InvalidInputError("standard input and output do not tell their format: give format")
    first, second = (kind or Kind(named[0].format, "") for kind in known)
    if second.format == "ogr" and first.format in TEXT and (chosen or Path(target).suffix.lower() == ".zip"):
        second = Kind(first.format, "zip" if Path(target).suffix.lower() == ".zip" else "")
    if first.format != second.format and not {first.format, second.format} <= set(CONVERTIBLE):
        raise InvalidInputError(_other_format(source, target, first))
    if first.format == "ogr" and len(named) < 2:
        raise InvalidInputError("GDAL's formats need files with names, not standard input or output")
    if first.format == "ogr":
        driver_of(source)
        driver_of(target)
    return first, second


def _other_format(source: str, target: str, kind: Kind) -> str:
    """Return why a file cannot become the target."""
    if kind.format in CONVERTIBLE:
        stays = f"{kind.format} can only become {', '.join(CONVERTIBLE)}"
    elif kind.format == "ogr" and Path(source).suffix.lower() == ".zip":
        stays = "an archive must hold one file of text, or a shapefile that stays one"
    elif kind.format == "ogr":
        stays = "what GDAL reads can only become another of its formats, such as .gpkg or .fgb"
    elif kind.format == "geojson":
        stays = "geojson can only stay geojson; a file with an object per line is NDJSON (--format ndjson)"
    else:
        stays = f"{kind.format} can only stay {kind.format}"
    return f"the output's name must end as its format does, and {stays}; got {Path(target).name!r}"


def inner_name(target: str, kind: Kind) -> str:
    """Return what the member of an archive is called."""
    stem = Path(target).stem
    return stem if Path(stem).suffix else f"{stem}.{kind.format}"
