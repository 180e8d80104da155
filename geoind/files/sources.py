"""Files that rows come from, whatever their format; they can be read twice."""

import gc
import gzip
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Protocol, cast

from geoind.errors import InvalidInputError
from geoind.files.delimited import TextRows, delimited_rows
from geoind.files.dialects import Guess, Place
from geoind.files.formats import Kind, decompressed, opened
from geoind.files.geojson import geojson_rows
from geoind.files.gpx import GpxRows, gpx_rows
from geoind.files.jsonrows import JsonRows
from geoind.files.jsonvalues import chosen
from geoind.files.ndjson import ndjson_rows
from geoind.files.rows import Rows
from geoind.tables import LonLat, Points, Recipe
from geoind.tables.delivery import STANDARD

__all__ = ["Bytes", "Reading", "Source", "TextSource", "Wanted"]

EVERYTHING = -1

TRACE_BYTES = 8 << 20
"""Text of traces handled at once."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    r"""How a file is read, where its name and its beginning do not tell.

    Parameters
    ----------
    format : str, optional
        "csv", "tsv", "ndjson", "geojson", "gpx", "parquet" or "ogr" (what GDAL reads, by suffix).
    delimiter : str, optional
        Between the fields of a CSV file; by default what its first line suggests.
    quoting : bool, optional
        Whether double quotes may hide delimiters and line breaks; by default unless fields are between tabs.
    header : bool
        Whether the first line of a CSV or TSV file names the columns; if not, they are numbers, from 1.
    layer : str, optional
        The layer of a file that GDAL reads, where it has several.
    spreadsheet_safe : bool
        Whether a ' is written before each text of a CSV or TSV file that a spreadsheet would take for a formula.

    Examples
    --------
    >>> Reading(delimiter=";").delimiter
    ';'
    """

    format: str | None = None
    delimiter: str | None = None
    quoting: bool | None = None
    header: bool = True
    layer: str | None = None
    spreadsheet_safe: bool = False

    def fit(self, kind: Kind) -> "Reading":
        """Return itself, or refuse what makes no sense for a file of that kind."""
        usual = Reading()
        fits = {"csv": ("delimiter", "quoting", "header"), "ogr": ("layer",)}
        fits["tsv"] = fits["csv"]
        for name in ("delimiter", "quoting", "header", "layer"):
            if getattr(self, name) != getattr(usual, name) and name not in fits.get(kind.format, ()):
                raise InvalidInputError(f"{name} is not for {kind.format} files")
        return self

    def fit_target(self, kind: Kind) -> None:
        """Refuse what makes no sense for a file of reports of that kind."""
        if self.spreadsheet_safe and kind.format not in ("csv", "tsv"):
            raise InvalidInputError(
                f"spreadsheet_safe (--spreadsheet-safe) is for CSV and TSV output, not {kind.format}"
            )


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What of a file's rows is wanted.

    Parameters
    ----------
    places : tuple of LonLat or Points
        Where the places are; none for the usual names, or for what the file declares.
    named : tuple of str
        The columns of the record's identity and of the person.
    times : tuple of str
        The column of times, of a table of traces.
    drop : tuple of str
        The columns, or members, that are not passed on.
    every_column : bool
        Whether batches hold more than what reports are made of.
    at_once : bool
        Whether all rows come as one batch.
    """

    places: tuple[LonLat | Points, ...] = ()
    named: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    every_column: bool = True
    at_once: bool = False


class Source(Protocol):
    """What reads one file."""

    @property
    def unit(self) -> str:
        """What its records are counted in."""
        ...

    def rows(self) -> Iterator[Rows]:
        """Yield the file's rows from the beginning, in at least one batch."""
        ...

    def share(self) -> float | None:
        """Return how much of the file was read, None where nobody knows."""
        ...

    def recipe(self, recipe: Recipe, rows: Rows) -> Recipe:
        """Return a recipe that knows where in these rows the places are."""
        ...

    def finish(self, recipe: Recipe) -> None:
        """Refuse names of columns that were nowhere in the file, where that was not known before."""
        ...


class Bytes:
    """The bytes of a file, or of standard input, from the beginning each time.

    Parameters
    ----------
    name : str
        The file; "-" is standard input.
    again : bool
        Whether they are read more than once, or not in order.
    """

    def __init__(self, name: str, *, again: bool = False) -> None:
        self.name = name
        self._again = again
        self._kept: BinaryIO | None = None
        self._stream: BinaryIO | None = None
        self._size = 0

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Return the bytes, in a `with`."""
        with opened(self.name) as stream:
            self._stream = self._seekable(stream) if self._again else stream
            self._size = _size(self._stream)
            yield self._stream
        self._stream = None

    def share(self) -> float | None:
        """Return how much was read."""
        return self._stream.tell() / self._size if self._stream is not None and self._size else None

    def _seekable(self, stream: BinaryIO) -> BinaryIO:
        if self.name != STANDARD and stream.seekable():
            return stream
        if self._kept is None:
            # A file without a name: nobody else can open it.
            self._kept = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
            shutil.copyfileobj(stream, self._kept)
        self._kept.seek(0)
        return self._kept


@dataclass
class TextSource:
    """A file of text.

    Parameters
    ----------
    data : Bytes
        Where the text is.
    kind : Kind
        What it is.
    reading : Reading
        How to read it.
    wanted : Wanted
        What of it.
    """

    data: Bytes
    kind: Kind
    reading: Reading
    wanted: Wanted = field(default_factory=Wanted)
    _found: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.reading.fit(self.kind)
        if any(isinstance(place, Points) for place in self.wanted.places):
            raise InvalidInputError(f"geometry and crs are not for {self.kind.format} files")
        if self.kind.format in ("geojson", "gpx") and self.wanted.places:
            raise InvalidInputError(
                f"lon and lat are not for {self.kind.format} files: their points are the places"
            )

    @property
    def unit(self) -> str:
        """What records are counted in."""
        return "feature" if self.kind.format == "geojson" else "line"

    def rows(self) -> Iterator[Rows]:
        """Yield the file's rows."""
        with self.data.opened() as stream, _no_search_for_cycles():
            try:
                yield from self._rows(decompressed(stream, self.kind.compression))
            except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile):
                raise InvalidInputError("the input is not, or not completely, a compressed file") from None
            except OSError as error:
                if self.kind.compression != "zstd" or error.errno is not None:
                    raise
                raise InvalidInputError("the input is not, or not completely, a compressed file") from None

    def _rows(self, stream: BinaryIO) -> Iterator[Rows]:
        wanted, drop = self.wanted, frozenset(self.wanted.drop)
        size = {"size": EVERYTHING} if wanted.at_once else {}
        if self.kind.format == "gpx":
            return self._gpx(stream, size)
        if self.kind.format == "geojson":
            return geojson_rows(stream, drop=drop, named=wanted.named, times=wanted.times, **size)
        places: Sequence[Place] = [(place.lon, place.lat) for place in wanted.places if isinstance(place, LonLat)]
        places = places or [(None, None)]
        if self.kind.format == "ndjson":
            return ndjson_rows(stream, places, drop=drop, named=wanted.named, times=wanted.times, **size)
        tabs = self.kind.format == "tsv"
        guess = Guess(
            delimiter="\t" if tabs and self.reading.delimiter is None else self.reading.delimiter,
            quoting=self.reading.quoting,
            header=self.reading.header,
            places=places,
            drop=drop,
            named=(*wanted.named, *wanted.times),
            every_column=wanted.every_column,
            spreadsheet_safe=self.reading.spreadsheet_safe,
        )
        if wanted.times and not wanted.at_once:
            # Sessions of many persons are answered at once: the more of them, the less each costs.
            size = {"size": TRACE_BYTES}
        return delimited_rows(stream, guess, **size)

    def _gpx(self, stream: BinaryIO, size: dict[str, int]) -> Iterator[Rows]:
        wanted = self.wanted
        if len(wanted.named) > 1 or wanted.times not in ((), ("time",)):
            raise InvalidInputError("a GPX file has no columns but those of its points: give trace as 'NAME,time'")
        person = wanted.named[0] if wanted.named else None
        drop, moving = frozenset(wanted.drop), bool(wanted.times)
        return gpx_rows(stream, drop=drop, person=person, moving=moving, **size)

    def share(self) -> float | None:
        """Return how much of the file was read."""
        return self.data.share()

    def recipe(self, recipe: Recipe, rows: Rows) -> Recipe:
        """Return a recipe that knows where in these rows the places are, and which members may pass."""
        if isinstance(rows, GpxRows):
            rows.refuse_nested(recipe.keep)
            keep = tuple(name for name in recipe.keep if name in rows.schema.names)
            self._found.update(keep, rows.dropped)
            return replace(recipe, places=(LonLat("lon", "lat"),), drop=(), keep=keep)
        if not isinstance(rows, JsonRows):
            return replace(recipe, places=_lonlat(rows)) if isinstance(rows, TextRows) else recipe
        lost = chosen([*rows.form.paths, *self.wanted.named, *self.wanted.times], self.wanted.drop)
        if lost:
            raise InvalidInputError(f"{lost[0]!r} is needed: it cannot be dropped")
        identity, person = (
            None if name is None else rows.resolved([name])[0] for name in (recipe.id_column, recipe.person_column)
        )
        trace = recipe.trace
        if trace is not None:
            trace = replace(trace, person=person or trace.person, time=rows.resolved([trace.time])[0])
        # Objects have members of members, and not all of them the same: a path stands for all below it.
        keep = tuple(chosen(rows.schema.names, rows.resolved(recipe.keep)))
        named = {*recipe.drop, *recipe.keep} - self._found
        self._found.update(name for name in named if rows.has(name))
        return replace(
            recipe,
            places=_lonlat(rows),
            drop=(),
            keep=keep,
            id_column=identity,
            person_column=person,
            trace=trace,
        )

    def finish(self, recipe: Recipe) -> None:
        """Refuse names of members that no object had."""
        missing = [name for name in (*recipe.drop, *recipe.keep) if name not in self._found]
        if missing and self.kind.format in ("ndjson", "geojson", "gpx"):
            raise InvalidInputError(f"there is no member {missing[0]!r} to drop or keep")


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Keep Python from looking for cycles: objects of JSON are trees, and looking took 40 % of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _lonlat(rows: TextRows | JsonRows) -> tuple[LonLat, ...]:
    return tuple(LonLat(*place) for place in rows.places)


def _size(stream: BinaryIO) -> int:
    """Return how many bytes there are, 0 where nobody knows."""
    if not stream.seekable():
        return 0
    start = stream.tell()
    size = stream.seek(0, os.SEEK_END)
    stream.seek(start)
    return size
