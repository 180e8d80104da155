"""JSON objects as rows: two members with coordinates, or a GeoJSON feature."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from geoind.arrays import IntArray
from geoind.errors import InvalidInputError
from geoind.files.jsontext import (
    BadRecordError,
    Span,
    cuts,
    members,
    object_in,
    refuse_half_characters,
    spliced,
    values_at,
)
from geoind.files.jsonvalues import as_columns, chosen, flattened, is_number
from geoind.files.rejects import BadRecord

__all__ = ["FEATURE_PLACE", "Form", "JsonRows", "Row"]

FEATURE_PLACE = ("geometry.coordinates[0]", "geometry.coordinates[1]")
"""What the coordinates of a feature's point are called."""

SHAPES = ("LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")

SPACE = r"[ \t\n\r]*"
NUMBERS = rf"\[{SPACE}([-+.0-9eE]+){SPACE},{SPACE}([-+.0-9eE]+)([^\]]*?){SPACE}\]"
POINT = re.compile(NUMBERS)
"""A list of two numbers, and what comes after the second."""
A_FEATURE = ("type", "Feature")
KEY = '"coordinates"'
FEATURE = re.compile(KEY + SPACE + ":" + SPACE + NUMBERS)
ESCAPED = re.compile(r"\\u00[2-7]")
"""How a letter of a name may be written: then the name cannot be searched for."""


class Row(NamedTuple):
    """An object of a file.

    Parameters
    ----------
    text : str
        What it is.
    spots : sequence of (int, int)
        Where in the text its coordinates are; none where it has no place.
    lost : sequence of str
        The paths of members that are never written.
    """

    text: str
    spots: Sequence[Span]
    lost: Sequence[str] = ()
    height: Span | None = None


@dataclass(frozen=True)
class Form:
    """Where in an object its places are.

    Parameters
    ----------
    places : sequence of (str, str)
        The paths of longitude and latitude.
    feature : bool
        Whether the object is a GeoJSON feature, whose point is its place.
    """

    places: Sequence[tuple[str, str]]
    feature: bool = False

    def taken_apart(self, text: str, pairs: tuple[tuple[str, Any], ...]) -> tuple[Row, dict[str, Any]]:
        """Return an object, and its values by their paths, the coordinates as text."""
        record = members(pairs)
        if self.feature:
            return self._feature(text, record)
        flat = flattened(pairs)
        spots = [self._spot(text, record, path) for path in self.paths]
        for path, (start, end) in zip(self.paths, spots, strict=True):
            value = flat.get(path)
            flat[path] = value if isinstance(value, str) else _number(text[start:end])
        return Row(text, spots), flat

    @cached_property
    def paths(self) -> list[str]:
        """The paths of all coordinates."""
        return [path for place in self.places for path in place]

    @cached_property
    def _searches(self) -> dict[str, re.Pattern[str]]:
        """How the number or text at a path is found in an object that has its name once: by far the fastest."""
        scalar = rf'{SPACE}:{SPACE}("[^"\\]*"|[-+.0-9eE]+|null)'
        simple = [path for path in self.paths if path.isascii() and path.isidentifier()]
        return {path: re.compile(f'"{path}"{scalar}') for path in simple}

    def _spot(self, text: str, record: dict[str, Any], path: str) -> Span:
        """Return where in an object the value at a path is."""
        if path in record and path in self._searches and _is_once(f'"{path}"', text):
            found = self._searches[path].search(text)
            if found is not None:
                return found.span(1)
        spots = values_at(text, path)
        if len(spots) != 1:
            raise BadRecordError(f"the member {path!r} is {'there twice' if spots else 'missing'}")
        return spots[0]

    def _feature(self, text: str, record: dict[str, Any]) -> tuple[Row, dict[str, Any]]:
        if "geometry" not in record:
            raise BadRecordError("the feature has no geometry")
        rest = [pair for pair in record.items() if pair[0] not in ("geometry", "bbox") and pair != A_FEATURE]
        flat = flattened(rest)
        geometry = _point(record["geometry"])
        # A point's box is the point; whatever else a geometry holds goes with it, and a height, too.
        lost = [f"geometry.{name}" for name in geometry if name not in ("type", "coordinates")]
        if "bbox" in record:
            lost.append("bbox")
        flat[FEATURE_PLACE[0]] = flat[FEATURE_PLACE[1]] = None
        if not geometry.get("coordinates"):
            return Row(text, (), lost), flat
        found = FEATURE.search(text) if _is_once(KEY, text) else None
        if found is None:
            spots = values_at(text, "geometry.coordinates")
            if len(spots) != 1:
                raise BadRecordError("the member 'geometry.coordinates' is there twice")
            found = POINT.match(text, spots[0][0])
        if found is None or (found[3] and not all(map(is_number, geometry["coordinates"]))):
            raise BadRecordError("the coordinates must be numbers")
        flat[FEATURE_PLACE[0]], flat[FEATURE_PLACE[1]] = found[1], found[2]
        return Row(text, (found.span(1), found.span(2)), lost, found.span(3) if found[3] else None), flat


@dataclass(eq=False)
class JsonRows:
    """Some objects of a file.

    Parameters
    ----------
    form : Form
        Where their places are.
    frame : callable
        Returns the text of some rows, given their numbers and their objects as they are to be written.
    drop : frozenset of str
        The paths of members that are not written.
    named : sequence of str
        The paths of the record's identity and of the person: text, or whole numbers.
    times : sequence of str
        The paths of times: text, or numbers.
    about : callable, optional
        Returns what is known of the whole file, by its paths: the same in every row.
    """

    form: Form
    frame: Callable[[list[int], list[str]], bytes] = field(init=False)
    drop: frozenset[str] = frozenset()
    named: Sequence[str] = ()
    times: Sequence[str] = ()
    about: Callable[[], dict[str, Any]] = dict
    records: list[Row] = field(default_factory=list)
    flat: list[dict[str, Any]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    problems: list[BadRecord] = field(default_factory=list)

    def add(self, line: int, text: str, pairs: tuple[tuple[str, Any], ...] | None = None) -> bool:
        """Add an object, or what is wrong with it, and return whether it is a row.

        Parameters
        ----------
        line : int
            Where it is in the file.
        text : str
            What it is.
        pairs : tuple of (str, value), optional
            Its members, if they are known.
        """
        try:
            pairs = object_in(text) if pairs is None else pairs
            refuse_half_characters(text, pairs)
            row, flat = self.form.taken_apart(text, pairs)
        except BadRecordError as error:
            self.problems.append(BadRecord(line, str(error), text.encode()))
        except RecursionError:
            self.problems.append(BadRecord(line, "the values are nested too deeply", text.encode()))
        else:
            self.flat.append(flat)
            self.records.append(row)
            self.lines.append(line)
            return True
        return False

    @cached_property
    def batch(self) -> pa.RecordBatch:
        """One column per path."""
        columns = as_columns(self.flat, self.about())
        for path in self.form.paths:
            columns[path] = pa.array([record[path] for record in self.flat], pa.string())
        for path in self.resolved(self.named, columns):
            columns[path] = _names([record.get(path) for record in self.flat], path)
        for path in self.resolved(self.times, columns):
            columns[path] = pa.array([_time(record.get(path)) for record in self.flat], pa.string())
        gone = set(chosen(columns, self.resolved(self.drop, columns)))
        names = [path for path in columns if path not in gone]
        return pa.RecordBatch.from_arrays([columns[path] for path in names], names=names)

    @property
    def schema(self) -> pa.Schema:
        """One field per path."""
        return self.batch.schema

    def beside(self, rows: IntArray) -> pa.RecordBatch:
        """Return all columns of some rows."""
        return self.batch.take(pa.array(rows))

    def resolved(self, names: Iterable[str], paths: Iterable[str] | None = None) -> tuple[str, ...]:
        """Return names as paths: what a feature itself does not have is one of its properties."""
        known = self.batch.schema.names if paths is None else paths
        return tuple(
            name
            if not self.form.feature or name.startswith("properties.") or _below(name, known)
            else f"properties.{name}"
            for name in names
        )

    def has(self, name: str) -> bool:
        """Return whether any object has a member of that name, or below it."""
        lost = (row.lost for row in self.records)
        paths = {path: None for some in (*self.flat, self.about(), *lost) for path in some}
        return bool(chosen(paths, self.resolved([name], paths)))

    @property
    def places(self) -> Sequence[tuple[str, str]]:
        """The paths of longitude and latitude."""
        return self.form.places

    def line(self, row: int) -> int:
        """Return the number of the line, or of the feature."""
        return self.lines[row]

    def record(self, row: int) -> bytes:
        """Return the text of an object."""
        return self.records[row].text.encode()

    def written(self, reports: pa.RecordBatch, rows: IntArray) -> bytes:
        """Return the text of some objects, with other coordinates."""
        columns = [reports.column(path).to_pylist() for path in self.form.paths]
        known = {path for flat in self.flat for path in flat} if self.drop else ()
        drop = self.resolved(self.drop, known)
        numbers = rows.tolist()
        texts = [_written(self.records[row], report, drop) for row, *report in zip(numbers, *columns, strict=True)]
        return self.frame(numbers, texts)


def _written(row: Row, reports: Sequence[str | None], drop: Sequence[str]) -> str:
    """Return the text of an object with other coordinates, and without what is not written."""
    changes = []
    for (start, end), report in zip(row.spots, reports, strict=False):
        if row.text[start] == '"':
            changes.append((start, end, f'"{report or ""}"'))
        else:
            changes.append((start, end, report or "null"))
    if row.height is not None:
        changes.append((*row.height, ""))
    if drop or row.lost:
        changes += [(*span, "") for span in cuts(row.text, (*drop, *row.lost))]
    return spliced(row.text, changes)


def _is_once(key: str, text: str) -> bool:
    """Return whether a member's name is there only once: wherever it is, it is no other member, and no text."""
    return text.count(key) == 1 and not ("\\u" in text and ESCAPED.search(text))


def _below(name: str, paths: Iterable[str]) -> bool:
    """Return whether a path is there, or something below it."""
    return bool(chosen(paths, [name]))


def _names(values: Sequence[Any], path: str) -> pa.Array:
    """Return what texts, or whole numbers, name; nothing else does."""
    named = [isinstance(value, (int, str)) and not isinstance(value, bool) and value != "" for value in values]
    if len({type(value) for value, is_name in zip(values, named, strict=True) if is_name}) > 1:
        raise InvalidInputError(f"{path!r} must be text in all records or whole numbers in all of them, not both")
    return pa.array(
        [str(value) if is_name else None for value, is_name in zip(values, named, strict=True)], pa.string()
    )


def _time(value: Any) -> str | None:
    """Return a time as text: a text, or a number."""
    return value or None if isinstance(value, str) else str(value) if is_number(value) else None


def _number(text: str) -> str | None:
    """Return a coordinate as text, None where there is none; whatever is no number is not one later, either."""
    return None if text == "null" else text


def _point(geometry: Any) -> dict[str, Any]:
    """Return the members of a point; null has none."""
    if geometry is None:
        return {}
    inside = members(geometry) if type(geometry) is tuple else {}
    kind = inside.get("type")
    if kind != "Point":
        raise BadRecordError(f"the geometry must be a Point, not a {kind}" if kind in SHAPES else "not a Point")
    if type(inside.get("coordinates")) is not list:
        raise BadRecordError("the coordinates must be numbers")
    return inside
