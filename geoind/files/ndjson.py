"""NDJSON files: an object per line, a column per member."""

import json
from collections.abc import Iterator
from json.encoder import encode_basestring
from typing import IO, Any, BinaryIO

import numpy as np
import pyarrow as pa

from geoind.errors import InvalidInputError
from geoind.files.formats import MOST_COLUMNS, BadRecord, Bytes, Rows, Source
from geoind.files.writers import Layout, Part, bytes_of, is_json, joined, json_of, object_of
from geoind.tables.columns import JSON_TEXT

BATCH_BYTES = 1 << 20
"""Text handled at once, and in which members are looked for."""
LEAST_LINES = 1000
"""Lines in which members are looked for, also if they have more bytes."""
LONGEST = 64 << 20
"""Bytes of a line."""
BATCH_CELLS = 1 << 22
LONGEST_NAME = 1000
"""Characters of the names of objects around a member."""
DEEPEST = 32
"""The most dots in a name that are nested objects in JSON."""
TWICE = "a member occurs twice in one object"


class _Number(str):
    """The digits of a number, as they are written."""

    __slots__ = ()


class _Refused(Exception):  # noqa: N818
    """The message is the reason and never quotes the record."""


def _constant(_: str) -> None:
    raise _Refused("NaN and Infinity are not numbers in JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _Refused(TWICE)
    return members


DECODE = json.JSONDecoder(
    parse_float=_Number, parse_int=_Number, parse_constant=_constant, object_pairs_hook=_object
).decode


def open_ndjson(data: Bytes) -> Source:
    r"""Return the objects of a file, as columns of JSON text.

    The columns are the members of the first 1000 lines, or of the first megabyte if that is more. A member that
    occurs only later is no column. A member of a nested object has a dotted name; an array is one JSON text.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "trips.ndjson")
    ...     _ = path.write_text('{"who": "Ana", "home": {"lat": 48.850, "lon": 2}}\n{"who": NaN}\n')
    ...     for rows in open_ndjson(Bytes(path)).rows():
    ...         print(rows.batch.to_pylist(), rows.numbers, rows.bad[0].reason)
    [{'who': '"Ana"', 'home.lat': '48.850', 'home.lon': '2'}] [1] NaN and Infinity are not numbers in JSON
    """
    names: dict[str, None] = {}
    objects = size = 0
    reason = "the file is empty"
    with data.opened() as stream:
        for count, (_, line) in enumerate(_lines(stream), 1):
            record = _record(line)
            if isinstance(record, str):
                reason = f"none of the first lines is one ({record})"
            else:
                names |= dict.fromkeys(record)
                objects += 1
            size += len(line)
            if len(names) > MOST_COLUMNS:
                raise InvalidInputError(f"the first lines have more than {MOST_COLUMNS} different members")
            if count >= LEAST_LINES and size >= BATCH_BYTES:
                break
    if not objects:
        raise InvalidInputError(f"the file must have a JSON object per line; {reason}")
    schema = pa.schema([pa.field(name, pa.string(), metadata={JSON_TEXT: b"1"}) for name in names])

    def read(wanted: list[str]) -> Iterator[Rows]:
        part = pa.schema([schema.field(name) for name in wanted])
        held: list[tuple[int, bytes]] = []
        size = 0
        with data.opened() as stream:
            for number, line in _lines(stream):
                held.append((number, line))
                size += len(line)
                if size > BATCH_BYTES or len(held) * len(wanted) > BATCH_CELLS:
                    yield _rows(held, part)
                    held, size = [], 0
        if held:
            yield _rows(held, part)

    return Source(schema, read, "line")


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers."""
    for number, line in enumerate(iter(lambda: stream.readline(LONGEST + 1), b""), 1):
        if len(line) > LONGEST:
            raise InvalidInputError(f"line {number}: the line is longer than {LONGEST >> 20} MB")
        body = (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip(b" \t\r\n")
        if body:
            yield number, body


def _rows(lines: list[tuple[int, bytes]], schema: pa.Schema) -> Rows:
    numbers, records, bad = [], [], []
    for number, line in lines:
        record = _record(line)
        if isinstance(record, str):
            bad.append(BadRecord(number, record, line.decode(errors="replace")))
        else:
            numbers.append(number)
            records.append(record)
    columns = [pa.array([record.get(name) for record in records], pa.string()) for name in schema.names]
    # A batch without columns has a number of rows if it is a part of another.
    wider = schema.append(pa.field("", pa.null()))
    batch = pa.RecordBatch.from_arrays([*columns, pa.nulls(len(records))], schema=wider)
    return Rows(batch.select(range(len(columns))), np.array(numbers, np.int64), bad)


def _record(line: bytes) -> dict[str, str | None] | str:
    """Return the JSON texts of the members of an object, or why the line is no record."""
    try:
        text = line.decode()
        found = DECODE(text)
        if type(found) is not dict:
            return "not a JSON object"
        if "\\u" in text:
            # An escape for half a character is not text: a UnicodeEncodeError, which is a ValueError.
            _json(found).encode()
        return _flatten(found, {})
    except _Refused as error:
        return str(error)
    except RecursionError:
        return "the values are nested too deeply"
    except ValueError:
        # Not the decoder's message: it may quote the text.
        return "not a JSON object"


def _flatten(members: dict[str, Any], found: dict[str, str | None], prefix: str = "") -> dict[str, str | None]:
    if len(prefix) > LONGEST_NAME or len(members) > MOST_COLUMNS:
        raise _Refused("an object has too many members, or too long names")
    for name, value in members.items():
        path = prefix + name
        if type(value) is dict and value:
            _flatten(value, found, f"{path}.")
        elif path in found:
            raise _Refused(TWICE)
        else:
            found[path] = None if value is None else _json(value)
    return found


def _json(value: Any) -> str:
    """Return a value as JSON text."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, str):
        return str(encode_basestring(value))
    if isinstance(value, list):
        return f"[{','.join(map(_json, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{encode_basestring(name)}:{_json(inner)}' for name, inner in value.items())}}}"
    return json.dumps(value)


def write_ndjson(stream: IO[bytes], parts: Iterator[Part], layout: Layout) -> None:
    """Write an object per line; a dotted name is a nested object, if it was one when it was read."""
    names = set(layout.columns(layout.empty))
    nested = {field.name for field in layout.schema if is_json(field) and field.name.count(".") <= DEEPEST}
    for part in parts:
        tree: dict[str, Any] = {}
        for name, column in layout.columns(part).items():
            *parents, last = name.split(".") if name in nested else [name]
            if any(".".join(parents[: size + 1]) in names for size in range(len(parents))):
                # The parent is a column of its own.
                parents, last = [], name
            inner = tree
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[last] = json_of(*column)
        stream.write(bytes_of(joined(*object_of(tree), "\n")))
