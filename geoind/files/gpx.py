"""GPX files: the points of waypoints, routes and tracks.

They are read by expat. A document type is refused, so there are no entities to expand and no other file to read.
The depth and the length of elements are limited.
"""

import html
from collections.abc import Iterator
from typing import IO
from xml.parsers import expat

import pyarrow as pa
import pyarrow.compute as pc

from geoind.errors import InvalidInputError
from geoind.files.formats import Bytes, Source, text_schema
from geoind.files.writers import TEXT, Layout, Part, text_of

CHUNK, BATCH_POINTS = 1 << 16, 1 << 14
"""Bytes parsed at once, and points of a batch."""

LONGEST, DEEPEST = 1 << 20, 64
"""The most characters of an element, and the most elements inside each other."""

HEADER = b'<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="geoind" %s>\n'
HEADER %= b'xmlns="http://www.topografix.com/GPX/1/1"'

POINTS = (("wpt",), ("rte", "rtept"), ("trk", "trkseg", "trkpt"))
NAMED = (("wpt", "name"), ("rte", "name"), ("trk", "name"))


def open_gpx(data: Bytes) -> Source:
    """Return the points of a GPX file, as text: lat, lon, time, name (of the track, route or waypoint), ele.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "in.gpx")
    ...     _ = path.write_text('<gpx><wpt lat="48.8584" lon="2.2945"><name>Tower</name></wpt></gpx>')
    ...     next(open_gpx(Bytes(path)).rows(["lat", "lon", "name"])).batch.to_pylist()
    [{'lat': '48.8584', 'lon': '2.2945', 'name': 'Tower'}]
    """

    def read(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        document, more = _Document(), True
        with data.opened() as stream:
            while more:
                more = document.parse(stream.read(CHUNK))
                if not more or len(document.points) >= BATCH_POINTS:
                    points, document.points = document.points, []
                    yield pa.RecordBatch.from_pylist(points, schema=text_schema(wanted))

    return Source(text_schema(["lat", "lon", "time", "name", "ele"]), read, "point")


class _Document:
    """A parser, the path of its current element, and the points so far."""

    def __init__(self) -> None:
        self.points: list[dict[str, str | None]] = []
        self._path: list[str] = []
        self._point: dict[str, str | None] = {}
        self._name: str | None = None
        self._text: list[str] = []
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
            raise self._error("invalid XML") from None
        return bool(text)

    def _error(self, reason: str) -> InvalidInputError:
        return InvalidInputError(f"line {self._parser.CurrentLineNumber}: {reason}")

    def _doctype(self, *_: object) -> None:
        raise self._error("a GPX file must not have a document type, which can define entities")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name.rsplit(" ", 1)[-1])
        if self._path[0] != "gpx":
            raise self._error("this is not a GPX file: its first element must be gpx")
        if len(self._path) > DEEPEST:
            raise self._error(f"more than {DEEPEST} nested elements")
        path = tuple(self._path[1:])
        if len(path) == 1:
            self._name = None
        if path in POINTS:
            self._point = {"lat": attributes.get("lat"), "lon": attributes.get("lon")}
        self._text = []

    def _characters(self, text: str) -> None:
        self._text.append(text)
        if sum(map(len, self._text)) > LONGEST:
            raise self._error(f"more than {LONGEST} characters in an element")

    def _end(self, _: str) -> None:
        path, text = tuple(self._path[1:]), "".join(self._text)
        local = self._path.pop()
        if path in POINTS:
            self.points.append(self._point | {"name": self._name})
        elif path[:-1] in POINTS and local in ("time", "ele"):
            self._point[local] = text.strip()
        elif path in NAMED:
            self._name = text
        self._text = []


def write_gpx(stream: IO[bytes], parts: Iterator[Part], layout: Layout) -> None:
    """Write tracks if there are times, else waypoints."""
    names = list(layout.columns(layout.empty))
    label = "name" if "name" in names else "person"
    if others := [name for name in names if name not in ("time", label)]:
        raise InvalidInputError(f"GPX files have the columns time and name, not {', '.join(map(repr, others))}")
    stream.write(HEADER)
    track: str | None = None
    for part in parts:
        lon, lat = (axis.cast(TEXT).to_pylist() for axis in layout.decimal(part[1][0]))
        texts = {name: _elements(*column) for name, column in layout.columns(part).items()}
        nothing = [""] * len(lon)
        lines = []
        for x, y, at, name in zip(lon, lat, texts.get("time", nothing), texts.get(label, nothing), strict=True):
            if x is None:
                # No point of a GPX file is without coordinates.
                continue
            if "time" not in names:
                lines.append(f'<wpt lat="{y}" lon="{x}">{name}</wpt>\n')
                continue
            if name != track:
                lines += ["" if track is None else "</trkseg></trk>\n", f"<trk>{name}<trkseg>\n"]
                track = name
            lines.append(f'<trkpt lat="{y}" lon="{x}">{at}</trkpt>\n')
        stream.write("".join(lines).encode())
    stream.write(b"</gpx>\n" if track is None else b"</trkseg></trk>\n</gpx>\n")


def _elements(field: pa.Field, column: pa.Array) -> list[str]:
    """Return times or names as XML elements, nothing where there is no value."""
    texts = text_of(field, column)
    if pc.any(pc.match_substring_regex(texts, r"[\x00-\x08\x0b\x0c\x0e-\x1f\x{fffe}\x{ffff}]")).as_py():
        raise InvalidInputError(f"column {field.name!r} holds control characters, which GPX cannot hold")
    tag = "time" if field.name == "time" else "name"
    escaped = (text and html.escape(text, quote=False).replace("\r", "&#13;") for text in texts.to_pylist())
    return ["" if text is None else f"<{tag}>{text}</{tag}>" for text in escaped]
