"""Google's location history: Records.json of Takeout, and Timeline.json that phones export."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from geoind.errors import InvalidInputError
from geoind.files.formats import BadRecord, Bytes, Rows, Source, text_schema

SCHEMA = text_schema(["lat", "lon", "time"])
READ = {
    *("locations", "latitudeE7", "longitudeE7", "timestamp", "timestampMs"),
    *("semanticSegments", "startTime", "timelinePath", "point", "time", "durationMinutesOffsetFromStartTime"),
    *("visit", "topCandidate", "placeLocation", "latLng"),
}
"""The members that are read."""
EPOCH = datetime.fromtimestamp(0, UTC)
NUMBER = r"(-?\d+(?:\.\d+)?(?:[eE]-?\d+)?)"
POINT = re.compile(rf"(?:geo:)?\s*{NUMBER}\s*°?\s*,\s*{NUMBER}\s*°?\s*", re.ASCII)


def open_google(data: Bytes) -> Source:
    """Return the points of a location history: lat, lon and time (UTC) as text, in the order of time.

    Points are the records of Records.json, and the paths and visits of Timeline.json (of Android and iOS). Raw
    signals, activities and records without a place are not read. Points are numbered in the order of time; those
    without a valid place or time come last. The whole file is held in memory.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "Timeline.json")
    ...     _ = path.write_text('[{"startTime": "2024-05-01T10:00:00+02:00", "timelinePath": '
    ...                         '[{"point": "geo:48.85,2.29", "durationMinutesOffsetFromStartTime": "3"}]}]')
    ...     [rows.batch.to_pylist() for rows in open_google(Bytes(path)).rows()]
    [[{'lat': '48.85', 'lon': '2.29', 'time': '2024-05-01T08:03:00.000Z'}]]
    """
    return Source(SCHEMA, partial(_read, data), "point")


def _read(data: Bytes, wanted: list[str]) -> Iterator[Rows]:
    with data.opened() as stream:
        text = stream.read()
    try:
        # Each object loses what is not needed as soon as it is parsed, which saves most of the memory.
        found = json.loads(text, object_hook=lambda item: {name: item[name] for name in item.keys() & READ})
    except (ValueError, RecursionError):
        # Not the parser's message: it may quote the text.
        raise InvalidInputError("the file must be JSON") from None
    history = found if isinstance(found, dict) else {"semanticSegments": found}
    if not any(isinstance(history.get(name), list) for name in ("locations", "semanticSegments")):
        raise InvalidInputError("the file must be a Records.json or a Timeline.json of Google")
    points, refused = [], []
    for item, place, time in _points(history):
        if place and time:
            points.append((time, *place))
        else:
            refused.append((f"has no valid {'time' if place else 'place'}", json.dumps(item)))
    # Times in UTC sort as text. Not by the place, too: the order of the rows must not depend on it.
    points.sort(key=itemgetter(0))
    columns = [pa.array([point[index] for point in points], pa.string()) for index in (1, 2, 0)]
    bad = [BadRecord(number, *why) for number, why in enumerate(refused, 1 + len(points))]
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    yield Rows(batch.select(wanted), np.arange(1, 1 + len(points)), bad)


def _points(history: dict[str, Any]) -> Iterator[tuple[Any, tuple[str, str] | None, str | None]]:
    """Yield each point of a history, its latitude and longitude, and its time; None where one is not valid."""
    for record in _objects(history.get("locations")):
        if "latitudeE7" in record or "longitudeE7" in record:
            lat, lon = _degrees(record.get("latitudeE7")), _degrees(record.get("longitudeE7"))
            yield (
                record,
                (lat, lon) if lat and lon else None,
                _time(record.get("timestamp", record.get("timestampMs"))),
            )
    for segment in _objects(history.get("semanticSegments")):
        start = segment.get("startTime")
        for point in _objects(segment.get("timelinePath")):
            minutes = point.get("durationMinutesOffsetFromStartTime", 0)
            time = _time(point["time"]) if "time" in point else _time(start, minutes)
            yield point, _place(point.get("point")), time
        for visit in _objects([segment.get("visit")]):
            for candidate in _objects([visit.get("topCandidate")]):
                place = candidate.get("placeLocation")
                yield candidate, _place(place.get("latLng") if isinstance(place, dict) else place), _time(start)


def _objects(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _degrees(value: Any) -> str | None:
    return f"{value / 1e7:.7f}" if type(value) is int and abs(value) <= 180 * 10**7 else None


def _place(text: Any) -> tuple[str, str] | None:
    found = POINT.fullmatch(text) if isinstance(text, str) else None
    return (found[1], found[2]) if found else None


def _time(start: Any, minutes: Any = 0) -> str | None:
    """Return the time some minutes after an ISO 8601 time or a number of milliseconds, in UTC."""
    try:
        since = re.fullmatch("[0-9]{1,15}", str(start))
        time = EPOCH + timedelta(milliseconds=int(start)) if since else datetime.fromisoformat(start)
        time = (time if time.tzinfo else time.replace(tzinfo=UTC)) + timedelta(minutes=float(minutes))
        return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    except (ValueError, TypeError, OverflowError):
        return None
