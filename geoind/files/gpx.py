"""GPX files: the points of waypoints, routes and tracks, read by expat.

A document type is refused, so there are no entities to expand and no other file to read. The depth and the
length of elements are limited.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.parsers import expat

import numpy as np
import pyarrow as pa

from geoind.errors import InvalidInputError
from geoind.files.source import Dialect, Rows, Source

if TYPE_CHECKING:
    from geoind.files.formats import Bytes

__all__ = ["open_gpx"]

CHUNK, BATCH_POINTS = 1 << 16, 1 << 14
"""Bytes parsed at once, and points of a batch."""

LONGEST, DEEPEST = 1 << 20, 64
"""The most characters of an element, and the most elements inside each other."""

COLUMNS = ("lat", "lon", "time", "name", "ele")
POINTS = (("wpt",), ("rte", "rtept"), ("trk", "trkseg", "trkpt"))
PARENTS = (("rte",), ("trk",))
TEXTS = {(*point, name) for point in POINTS for name in ("time", "ele")} | {
    (*named, "name") for named in (*PARENTS, ("wpt",))
}
"""The elements whose text is read, by their paths. All others are skipped."""


def open_gpx(data: "Bytes") -> Source:
    """Return the points of a GPX file, as text: lat, lon, time, name (of the track, route or waypoint), ele."""
    return _GpxSource(data)


@dataclass
class _GpxSource:
    data: "Bytes"
    unit: str = "point"
    dialect: Dialect | None = None

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, pa.string()) for name in COLUMNS])

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Rows]:
        schema = pa.schema([field for field in self.schema if columns is None or field.name in columns])
        document, done, more = _Document(), 0, True
        with self.data.opened() as stream:
            while more:
                more = document.parse(stream.read(CHUNK))
                if more and len(document.points) < BATCH_POINTS:
                    continue
                points, document.points = document.points, []
                numbers = np.arange(done + 1, done + len(points) + 1)
                done += len(points)
                yield Rows(pa.RecordBatch.from_pylist(points, schema=schema), numbers)


class _Document:
    """The state of a parser: the path of the current element, and what was read of its point."""

    def __init__(self) -> None:
        self.points: list[dict[str, str | None]] = []
        self._path: list[str] = []
        self._point: dict[str, str | None] = {}
        self._parent_name: str | None = None
        self._text: list[str] = []
        self._length = 0
        self._parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters

    def parse(self, text: bytes) -> bool:
        """Parse the next bytes; no bytes are the end of the document. Return whether there can be more."""
        try:
            self._parser.Parse(text, not text)
        except InvalidInputError:
            raise
        except (expat.ExpatError, LookupError, ValueError):
            # Not its message: it may quote the document. The last two are for unknown encodings.
            raise InvalidInputError(f"line {self._parser.CurrentLineNumber}: invalid XML") from None
        return bool(text)

    def _doctype(self, *_: object) -> None:
        raise InvalidInputError("a GPX file must not have a document type, which can define entities")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rsplit(" ", 1)[-1]
        if not self._path and local != "gpx":
            raise InvalidInputError("this is not a GPX file: its first element must be gpx")
        self._path.append(local)
        if len(self._path) > DEEPEST:
            raise InvalidInputError(f"line {self._parser.CurrentLineNumber}: more than {DEEPEST} nested elements")
        path = tuple(self._path[1:])
        if path in PARENTS:
            self._parent_name = None
        elif path in POINTS:
            name_of_parent = None if path == ("wpt",) else self._parent_name
            self._point = {"lat": attributes.get("lat"), "lon": attributes.get("lon"), "name": name_of_parent}
        self._text, self._length = [], 0

    def _characters(self, text: str) -> None:
        self._length += len(text)
        if self._length > LONGEST:
            raise InvalidInputError(
                f"line {self._parser.CurrentLineNumber}: more than {LONGEST} characters in an element"
            )
        self._text.append(text)

    def _end(self, _: str) -> None:
        path = tuple(self._path[1:])
        local = self._path.pop()
        if path in POINTS:
            self.points.append(self._point)
        elif path in TEXTS and path[0] != "wpt" and local == "name":
            self._parent_name = "".join(self._text)
        elif path in TEXTS:
            text = "".join(self._text)
            self._point[local] = text if local == "name" else text.strip()
        self._text, self._length = [], 0
