"""JSON objects as rows: two members with coordinates, or a GeoJSON feature."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from geoind.arrays import IntArray
from geoind.files.jsonvalues import (
    BadRecordError,
    Digits,
    as_columns,
    chosen,
    flattened,
    is_number,
    number_text,
    without,
    writer,
)
from geoind.files.rejects import Problem

__all__ = ["FEATURE_PLACE", "Form", "JsonRows"]

FEATURE_PLACE = ("geometry.coordinates[0]", "geometry.coordinates[1]")
"""What the coordinates of a feature's point are called."""

write = writer()

SHAPES = ("LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")


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

    def taken_apart(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the values of an object by their paths, the coordinates as text."""
        if not self.feature:
            flat = flattened(record)
            for path in self.paths:
                flat[path] = number_text(_at(record, path))
            return flat
        if "geometry" not in record:
            raise BadRecordError("the feature has no geometry")
        lon, lat = _point(record["geometry"])
        # A point's box is the point; a height, and whatever else a geometry holds, goes with it.
        rest = {name: value for name, value in record.items() if name not in ("geometry", "bbox", "type")}
        return {FEATURE_PLACE[0]: number_text(lon), FEATURE_PLACE[1]: number_text(lat), **flattened(rest)}

    def put_together(self, record: dict[str, Any], reports: Sequence[str | None]) -> dict[str, Any]:
        """Return an object with other coordinates, in the order of the paths; None or "" for none."""
        if self.feature:
            geometry = None
            if all(reports):
                geometry = {"type": "Point", "coordinates": [Digits(report) for report in reports]}
            elif record["geometry"] is not None:
                geometry = {"type": "Point", "coordinates": []}
            made = {**record, "geometry": geometry}
            made.pop("bbox", None)
            return made
        result = record
        for path, report in zip(self.paths, reports, strict=True):
            result = _with(result, path, report)
        return result

    @property
    def paths(self) -> list[str]:
        """The paths of all coordinates."""
        return [path for place in self.places for path in place]


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
    frame: Callable[[list[int], list[dict[str, Any]]], bytes] = field(init=False)
    drop: frozenset[str] = frozenset()
    named: Sequence[str] = ()
    times: Sequence[str] = ()
    about: Callable[[], dict[str, Any]] = dict
    records: list[dict[str, Any]] = field(default_factory=list)
    flat: list[dict[str, Any]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(self, line: int, record: dict[str, Any]) -> bool:
        """Add an object, or what is wrong with it, and return whether it is a row."""
        try:
            self.flat.append(self.form.taken_apart(record))
        except BadRecordError as error:
            self.problems.append(Problem(line, str(error), write(record).encode()))
        except RecursionError:
            self.problems.append(Problem(line, "the values are nested too deeply", b""))
        else:
            self.records.append(record)
            self.lines.append(line)
            return True
        return False

    @cached_property
    def batch(self) -> pa.RecordBatch:
        """One column per path."""
        about = self.about()
        columns = as_columns([about | record for record in self.flat] if about else self.flat)
        for path in self.form.paths:
            columns[path] = pa.array([record[path] for record in self.flat], pa.string())
        for path in self.resolved(self.named, columns):
            columns[path] = pa.array([_name(record.get(path)) for record in self.flat], pa.string())
        for path in self.resolved(self.times, columns):
            columns[path] = pa.array([number_text(record.get(path)) or None for record in self.flat], pa.string())
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
        paths = {path: None for flat in (*self.flat, self.about()) for path in flat}
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
        return write(self.records[row]).encode()

    def written(self, reports: pa.RecordBatch, rows: IntArray) -> bytes:
        """Return the text of some objects, with other coordinates."""
        columns = [reports.column(path).to_pylist() for path in self.form.paths]
        objects = []
        known = {path for flat in self.flat for path in flat} if self.drop else ()
        drop = frozenset(self.resolved(self.drop, known))
        for row, *report in zip(rows.tolist(), *columns, strict=True):
            record = without(self.records[row], drop) if drop else self.records[row]
            objects.append(self.form.put_together(record, report))
        return self.frame(rows.tolist(), objects)


def _below(name: str, paths: Iterable[str]) -> bool:
    """Return whether a path is there, or something below it."""
    return bool(chosen(paths, [name]))


def _name(value: Any) -> str | None:
    """Return what a text or a whole number names; nothing else does."""
    return str(value) if isinstance(value, (int, str)) and not isinstance(value, bool) and value != "" else None


def _point(geometry: Any) -> tuple[Any, Any]:
    """Return the coordinates of a point; two times None if it is null or empty."""
    if geometry is None:
        return None, None
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind != "Point":
        raise BadRecordError(f"the geometry must be a Point, not a {kind}" if kind in SHAPES else "not a Point")
    coordinates = geometry.get("coordinates")
    if not isinstance(coordinates, list) or len(coordinates) == 1 or not all(map(is_number, coordinates)):
        raise BadRecordError("the coordinates must be numbers")
    return (coordinates[0], coordinates[1]) if coordinates else (None, None)


def _at(record: dict[str, Any], path: str) -> Any:
    """Return the value at a path: of a member of that name, or of a member of a member."""
    if path in record:
        return record[path]
    name, _, rest = path.partition(".")
    inner = record.get(name)
    if not rest or not isinstance(inner, dict):
        raise BadRecordError(f"the member {path!r} is missing")
    return _at(inner, rest)


def _with(record: dict[str, Any], path: str, report: str | None) -> dict[str, Any]:
    """Return an object with a report at a path: as text, where text was."""
    if path in record:
        if isinstance(record[path], str):
            return {**record, path: report or ""}
        return {**record, path: Digits(report) if report else None}
    name, _, rest = path.partition(".")
    return {**record, name: _with(record[name], rest, report)}
