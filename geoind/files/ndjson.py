"""NDJSON: an object per line, with two coordinates or a GeoJSON feature."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from geoind.errors import InvalidInputError
from geoind.files.dialects import Place
from geoind.files.jsonrows import FEATURE_PLACE, Form, JsonRows
from geoind.files.jsontext import BadRecordError, object_in
from geoind.files.jsonvalues import flattened
from geoind.files.rejects import BadRecord
from geoind.tables.names import coordinate_columns

__all__ = ["ndjson_rows"]

BATCH_BYTES = 1 << 20
"""Text handled at once."""

LONGEST = 64 << 20
"""No line may have more bytes."""

BOM = b"\xef\xbb\xbf"

SEPARATOR = b"\x1e"
"""Before each record of a GeoJSON text sequence (RFC 8142)."""


def ndjson_rows(
    stream: BinaryIO,
    places: Sequence[Place] = ((None, None),),
    *,
    drop: frozenset[str] = frozenset(),
    named: Sequence[str] = (),
    times: Sequence[str] = (),
    size: int = BATCH_BYTES,
) -> Iterator[JsonRows]:
    r"""Yield the rows of a file with an object per line, a megabyte at a time.

    Parameters
    ----------
    stream : binary file
        The text.
    places : sequence of (str or None, str or None)
        The members with longitude and latitude, for each place; None for the usual names, or for the geometry of
        features.
    drop : frozenset of str
        The paths of members that are not written.
    named : sequence of str
        The paths of the record's identity and of the person.
    times : sequence of str
        The paths of times.
    size : int
        Bytes handled at once; -1 for all.

    Examples
    --------
    >>> import io
    >>> [rows.batch.to_pylist() for rows in ndjson_rows(io.BytesIO(b'{"lat": 1, "lon": 2.5}\n'))]
    [[{'lat': '1', 'lon': '2.5'}]]
    """
    form: Form | None = None
    lines: list[bytes] = []
    held, first, mark = 0, 1, b""
    for line in iter(lambda: stream.readline(LONGEST), b""):
        if len(line) == LONGEST:
            raise InvalidInputError(f"line {first + len(lines)}: the line has no end")
        if first == 1 and not lines and line.startswith(BOM):
            mark, line = BOM, line[len(BOM) :]
        lines.append(line)
        held += len(line)
        if 0 <= size < held:
            form = form or _form(lines, places)
            yield _rows(lines, first, mark, JsonRows(form, drop=drop, named=named, times=times))
            lines, held, first, mark = [], 0, first + len(lines), b""
    form = form or _form(lines, places)
    yield _rows(lines, first, mark, JsonRows(form, drop=drop, named=named, times=times))


def _form(lines: Sequence[bytes], places: Sequence[Place]) -> Form:
    """Return where the places are, by the first object."""
    for line in lines:
        try:
            pairs = object_in(_body(line).decode())
            names = list(flattened(pairs))
        except (BadRecordError, RecursionError, UnicodeDecodeError):
            continue
        if "geometry" in dict(pairs) and all(name is None for place in places for name in place):
            return Form([FEATURE_PLACE], feature=True)
        return Form([coordinate_columns(names, *place) for place in places])
    return Form([FEATURE_PLACE], feature=True)


def _rows(lines: Sequence[bytes], first: int, mark: bytes, rows: JsonRows) -> JsonRows:
    around = _Around(mark)
    rows.frame = around.framed
    for number, line in enumerate(lines, first):
        body = _body(line)
        if not body:
            around.add_blank(line)
            continue
        try:
            text = body.decode()
        except UnicodeDecodeError:
            rows.problems.append(BadRecord(number, "not a JSON object", body))
            continue
        if rows.add(number, text):
            around.add(line, body)
    return rows


def _body(line: bytes) -> bytes:
    return line.strip(b" \t\r\n" + SEPARATOR)


@dataclass
class _Around:
    """What stands before the first object, and after each: white space, line breaks and record separators."""

    start: bytes = b""
    before: list[bytes] = field(default_factory=list)
    after: list[bytes] = field(default_factory=list)

    def add(self, line: bytes, body: bytes) -> None:
        at = line.index(body)
        self.before.append(line[:at])
        self.after.append(line[at + len(body) :])

    def add_blank(self, line: bytes) -> None:
        if self.after:
            self.after[-1] += line
        else:
            self.start += line

    def framed(self, rows: list[int], texts: list[str]) -> bytes:
        pieces = [
            self.before[row] + text.encode() + self.after[row] for row, text in zip(rows, texts, strict=True)
        ]
        # The last line of a file may do without a line break, until it is another's turn to be the last.
        pieces[:-1] = [piece if piece.endswith(b"\n") else piece + b"\n" for piece in pieces[:-1]]
        return self.start + b"".join(pieces)
