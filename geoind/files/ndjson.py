"""NDJSON: an object per line, with two coordinates or a GeoJSON feature; the rest of its text stays as it is."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from geoind.files.columns import coordinate_columns, telling_columns
from geoind.files.feature import add_feature, identity_of, is_number, telling_properties
from geoind.files.members import Member, members_of
from geoind.files.textbatch import BATCH_BYTES, BadRecordError, Problem, TextBatch, degrees, place

__all__ = ["LineJson"]

LON_FIRST, LAT_FIRST = (1, 3), (3, 1)

SEPARATOR = b"\x1e"
"""Before each record of a GeoJSON text sequence (RFC 8142)."""


@dataclass
class LineJson:
    """Objects, one per line.

    Parameters
    ----------
    lon, lat, identity : str, optional
        The members with the coordinates and the record's identity; a feature needs no coordinate names.
    keep_missing : bool
        Whether a record with two nulls, or with a null geometry, stays as it is.
    """

    lon: str | None = None
    lat: str | None = None
    identity: str | None = None
    keep_missing: bool = False
    left: list[str] = field(default_factory=list)

    def batches(self, stream: BinaryIO) -> Iterator[TextBatch]:
        """Return the file's records in batches."""
        batch = TextBatch()
        for number, line in enumerate(stream, start=1):
            body = line.strip(b" \t\r\n" + SEPARATOR)
            if not body:
                batch.add_text(line)
                continue
            before, after = line.split(body, 1)
            count = len(batch.records)
            batch.add_text(before)
            try:
                self._add(batch, body)
                batch.add_text(after)
            except BadRecordError as error:
                batch.drop_from(count)
                batch.problems.append(Problem(number, str(error), body))
            batch.size += len(body)
            if batch.size > BATCH_BYTES:
                yield batch
                batch = TextBatch()
        yield batch

    def _add(self, batch: TextBatch, body: bytes) -> None:
        try:
            text = body.decode("utf-8-sig")
            members, end = members_of(text)
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
            raise BadRecordError("not a JSON object") from None
        if end != len(text):
            raise BadRecordError("not a single JSON object")
        by_name = {member.name: member for member in members}
        if self.lon is None and self.lat is None and "geometry" in by_name:
            self.left = self.left or telling_properties(members)
            add_feature(batch, text, 0, end, members, keep_missing=self.keep_missing, identity=self.identity)
        else:
            self._add_flat(batch, text, members)

    def _add_flat(self, batch: TextBatch, text: str, members: Sequence[Member]) -> None:
        names = [member.name for member in members]
        if self.lon is None or self.lat is None:
            self.lon, self.lat = coordinate_columns(names, self.lon, self.lat)
            self.left = telling_columns([name for name in names if name not in (self.lon, self.lat)])
        for name in (self.lon, self.lat):
            if names.count(name) != 1:
                raise BadRecordError(f"the member {name!r} occurs {names.count(name)} times")
        lon, lat = members[names.index(self.lon)], members[names.index(self.lat)]
        if self.keep_missing and lon.value is None and lat.value is None:
            batch.add_text(text.encode())
            return
        truth = place(_number(lon.value), _number(lat.value))
        if self.identity is not None:
            found = [member.value for member in members if member.name == self.identity]
            batch.labels.append(identity_of(found[-1] if found else None))
        first, second = sorted((lon, lat), key=lambda member: member.value_at)
        quotes = [b'"' if isinstance(member.value, str) else b"" for member in (first, second)]
        pieces = [
            text[: first.value_at].encode() + quotes[0],
            b"",
            quotes[0] + text[first.end : second.value_at].encode() + quotes[1],
            b"",
            quotes[1] + text[second.end :].encode(),
        ]
        batch.add_place(pieces, LON_FIRST if first is lon else LAT_FIRST, *truth)


def _number(value: object) -> float:
    if isinstance(value, str):
        return degrees(value.encode("utf-8", "replace"))
    try:
        return float(value) if is_number(value) else float("nan")  # type: ignore[arg-type]
    except OverflowError:
        return float("nan")
