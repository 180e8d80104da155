"""GPX: waypoints, routes and tracks, read and written some points at a time.

Expat reads the document as it comes. A document type is refused, so there are no entities to expand and no other
file to fetch; how deep and how long elements may be is limited.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import BinaryIO
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from geoind.arrays import IntArray
from geoind.errors import InvalidInputError
from geoind.files.rejects import BadRecord
from geoind.tables.policy import TELLS

__all__ = ["GpxRows", "gpx_rows"]

CHUNK = 1 << 16
"""Bytes read at once."""

BATCH_POINTS = 1 << 13
"""Points handled at once."""

LONGEST, DEEPEST = 1 << 20, 64
"""No element of a point may have more characters, and so many may lie inside each other."""

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<gpx version="1.1" creator="geoind" xmlns="http://www.topografix.com/GPX/1/1">\n'
)

POINTS = {("wpt",): "wpt", ("rte", "rtept"): "rtept", ("trk", "trkseg", "trkpt"): "trkpt"}
FRAMES = (("rte",), ("trk",), ("trk", "trkseg"))

BEFORE, AFTER = ("ele", "time"), ("sym", "type", "fix", "sat", "hdop", "vdop", "pdop", "ageofdgpsdata", "dgpsid")
NOTES = ("magvar", "geoidheight", "name", "cmt", "desc", "src")
ORDER = (*BEFORE, *NOTES, *AFTER)
"""What a point may have in GPX 1.1, in its order, but for links and extensions."""

PASSING = ("time", *AFTER)
"""What tells nothing about a place. Names and comments do; magnetic variation and geoid are functions of it."""


def gpx_rows(
    stream: BinaryIO,
    *,
    drop: frozenset[str] = frozenset(),
    person: str | None = None,
    moving: bool = False,
    size: int = BATCH_POINTS,
) -> Iterator["GpxRows"]:
    """Yield the points of a GPX document.

    What is said about the document, a route or a track (names, links, bounds) is left out.

    Parameters
    ----------
    stream : binary file
        The document.
    drop : frozenset of str
        Elements of points that are not wanted, and `wpt`, `rte` and `trk` for all such points.
    person : str, optional
        Whose document it is: the name of a column that says this name in every row.
    moving : bool
        Whether rows are traces; otherwise there may be no routes and tracks.
    size : int
        Points handled at once; -1 for all.

    Examples
    --------
    >>> import io
    >>> text = b'<gpx><wpt lat="48.8584" lon="2.2945"><time>2024-05-01T08:00:00Z</time></wpt></gpx>'
    >>> [rows.batch.to_pylist() for rows in gpx_rows(io.BytesIO(text))]
    [[{'lat': '48.8584', 'lon': '2.2945', 'time': '2024-05-01T08:00:00Z'}]]
    """
    document = _Document(drop, person, moving)
    for text in iter(lambda: stream.read(CHUNK), b""):
        document.feed(text)
        if 0 <= size < len(document.points):
            yield document.rows()
    document.feed(b"", last=True)
    yield document.rows(last=True)


@dataclass(frozen=True)
class _Point:
    """A point: its element, where it began, what stood before it, and what was said about it."""

    element: str
    line: int
    lead: str
    told: dict[str, str]


@dataclass(eq=False)
class GpxRows:
    """Some points of a document.

    Parameters
    ----------
    points : list of _Point
        The points.
    tail : str
        What stands after the last of them.
    nested : frozenset of str
        Elements with others inside them: they are not written.
    person : str, optional
        Whose points they are.
    dropped : frozenset of str
        What was there, so far, and is not wanted.
    """

    points: "list[_Point]"
    tail: str
    nested: frozenset[str]
    person: str | None = None
    dropped: frozenset[str] = frozenset()
    problems: list[BadRecord] = field(default_factory=list)

    @cached_property
    def batch(self) -> pa.RecordBatch:
        """One column per element, as text."""
        known = dict.fromkeys(name for point in self.points for name in point.told)
        names = list(dict.fromkeys(["lat", "lon", "time", *known]))
        columns = [pa.array([point.told.get(name) for point in self.points], pa.string()) for name in names]
        fields = [_field(name) for name in names]
        if self.person is not None:
            columns.append(pa.array([self.person] * len(self.points), pa.string()))
            fields.append(pa.field(self.person, pa.string()))
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        return self.batch.schema

    def beside(self, rows: IntArray) -> pa.RecordBatch:
        """Return all columns of some rows."""
        return self.batch.take(pa.array(rows))

    def line(self, row: int) -> int:
        """Return the line at which a point begins."""
        return self.points[row].line

    def record(self, row: int) -> bytes:
        """Return a point as a JSON object."""
        return json.dumps(self.points[row].told, ensure_ascii=False).encode()

    def refuse_nested(self, keep: Sequence[str]) -> None:
        """Refuse to keep what is not written."""
        for name in keep:
            if name in self.nested:
                raise InvalidInputError(f"{name!r} has elements inside it, which are not passed on: drop it")

    def written(self, reports: pa.RecordBatch, rows: IntArray) -> bytes:
        """Return the points of some rows with other coordinates, in their routes and tracks."""
        made = {name: reports.column(name).to_pylist() for name in reports.schema.names if name != self.person}
        place = dict(zip(rows.tolist(), range(len(rows)), strict=True))
        parts = []
        for row, point in enumerate(self.points):
            parts.append(point.lead)
            if row in place:
                told = {name: values[place[row]] for name, values in made.items()}
                parts.append(_written(point.element, told))
        return "".join([*parts, self.tail]).encode()


def _field(name: str) -> pa.Field:
    if name in ("lat", "lon", *PASSING):
        return pa.field(name, pa.string())
    return pa.field(name, pa.string(), metadata={TELLS: b"may tell the place in a GPX file"})


def _written(element: str, told: dict[str, str | None]) -> str:
    """Return a point as XML; a point without a place has no coordinates, which no GPX may have: it is left out."""
    if not told["lat"] or not told["lon"]:
        return ""
    known = "".join(f"<{name}>{escape(told[name] or '')}</{name}>" for name in ORDER if told.get(name))
    others = [name for name in told if name not in (*ORDER, "lat", "lon") and told[name]]
    more = "".join(f"<{name}>{escape(told[name] or '')}</{name}>" for name in others)
    inside = f"{known}<extensions>{more}</extensions>" if more else known
    return f"<{element} lat={quoteattr(told['lat'])} lon={quoteattr(told['lon'])}>{inside}</{element}>\n"


class _Document:
    """What is known of a document so far."""

    def __init__(self, drop: frozenset[str], person: str | None, moving: bool) -> None:
        self.points: list[_Point] = []
        self._drop, self._person, self._moving = drop, person, moving
        self._path: list[str] = []
        self._told: dict[str, str] | None = None
        self._lead, self._line, self._skipped = HEAD, 0, 0
        self._text: list[str] = []
        self._length = 0
        self._nested: set[str] = set()
        self._dropped: set[str] = set()
        if person in ("lat", "lon", "ele", *ORDER):
            raise InvalidInputError(
                f"a GPX file has no column of persons: say whose trace it is with a name of your choice, as in "
                f"trace='ana,time' (--trace ana,time), and not {person!r}, a word of the format"
            )
        self._parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters

    def feed(self, text: bytes, *, last: bool = False) -> None:
        """Read some more of the document."""
        try:
            self._parser.Parse(text, last)
        except expat.ExpatError as error:
            # Not its message: it may one day quote the document.
            raise InvalidInputError(f"line {error.lineno}: this is no proper XML") from None

    def rows(self, *, last: bool = False) -> GpxRows:
        """Return the points since the last time."""
        tail = f"{self._lead}</gpx>\n" if last else ""
        rows = GpxRows(self.points, tail, frozenset(self._nested), self._person, frozenset(self._dropped))
        self.points = []
        return rows

    def _doctype(self, *_: object) -> None:
        raise InvalidInputError("a GPX file must not have a document type: its entities could be anything")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rsplit(" ", 1)[-1]
        if not self._path and local != "gpx":
            raise InvalidInputError("this is no GPX file: its first element must be gpx")
        self._path.append(local)
        path = tuple(self._path[1:])
        if len(path) > DEEPEST:
            raise InvalidInputError(f"line {self._parser.CurrentLineNumber}: the elements are nested too deeply")
        if self._skipped or (len(path) == 1 and local in self._drop):
            self._skipped += 1
            self._dropped |= {local} if len(path) == 1 else set()
        elif self._told is not None:
            self._inside(path, attributes)
        elif path in POINTS:
            self._begin(path, attributes)
        elif path in FRAMES:
            self._lead += f"<{local}>\n"

    def _begin(self, path: tuple[str, ...], attributes: dict[str, str]) -> None:
        self._line = self._parser.CurrentLineNumber
        if len(path) > 1 and not self._moving:
            raise InvalidInputError(
                f"line {self._line}: a route or track is many reports of one person: say whose with "
                "trace='NAME,time' (--trace NAME,time), or drop rte and trk"
            )
        self._told = {"lat": attributes.get("lat", ""), "lon": attributes.get("lon", "")}

    def _inside(self, path: tuple[str, ...], attributes: dict[str, str]) -> None:
        point = _depth(path)
        if len(path) == point + 1:
            if path[point] in ("lat", "lon"):
                raise InvalidInputError(
                    f"line {self._line}: a point's lat and lon are its attributes, not elements inside it"
                )
            self._text, self._length = [], 0
        if len(path) > point + 1 or attributes:
            self._nested.add(path[point])

    def _characters(self, text: str) -> None:
        if self._told is None or self._skipped:
            return
        self._length += len(text)
        if self._length > LONGEST:
            raise InvalidInputError(f"line {self._line}: an element of a point is too long")
        self._text.append(text)

    def _end(self, _: str) -> None:
        path = tuple(self._path[1:])
        local = self._path.pop()
        if self._skipped:
            self._skipped -= 1
        elif self._told is not None and path in POINTS:
            self.points.append(_Point(POINTS[path], self._line, self._lead, self._told))
            self._told, self._lead = None, ""
        elif self._told is not None and len(path) == _depth(path) + 1:
            if local in self._drop:
                self._dropped.add(local)
            else:
                self._told[local] = "".join(self._text).strip()
            self._text, self._length = [], 0
        elif self._told is None and path in FRAMES:
            self._lead += f"</{local}>\n"


def _depth(path: tuple[str, ...]) -> int:
    """Return how deep the point lies in which a path ends."""
    return next(size for size in (1, 2, 3) if path[:size] in POINTS)
