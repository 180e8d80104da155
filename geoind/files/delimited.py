"""CSV and TSV files, and GeoLife's .plt files, which are only read: every column as text, by pyarrow."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import IO, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from geoind.errors import InvalidInputError
from geoind.files.formats import MOST_COLUMNS, BadRecord, Bytes, Reading, Rows, Source, empty_batch, text_schema
from geoind.files.writers import TEXT, Layout, Part, bytes_of, having, joined, text_of

DELIMITERS = "\t;|,"
BLOCK = 4 << 20
"""Bytes that are parsed at once. No record may be longer."""
MOST_BAD = 1 << 18
"""Bad rows that are held at once."""
HEAD = 1 << 20
"""Bytes of the first records, from which the delimiter and the decimal comma are detected."""

NOT_UTF8 = "the text must be UTF-8, not UTF-16 or another encoding"
COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
FRACTION = re.compile(r"\s*[+-]?\d+[.,]\d+\s*")

BLANK = r"[\x00 \x{a0}\x{ad}\x{2000}-\x{200f}\x{2028}-\x{202f}\x{205f}-\x{206f}\x{3000}\x{feff}]"
"""Spaces and characters without width such as a byte order mark."""
FORMULA = rf'^"?{BLANK}*[=+\-@＝＋－＠\t\r\n]'
"""The beginning of a text that a spreadsheet takes for a formula, in quotes or not."""
NUMBER = r'^"?[+-]?[0-9]+([.,][0-9]+)*([eE][+-]?[0-9]+)?"?$'


def open_csv(data: Bytes, reading: Reading, *, quoting: bool = True) -> Source:
    r"""Return the rows of a CSV file; its delimiter and its decimal comma are detected from the first rows.

    Rows are numbered from 1, without the header and empty lines.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "trips.csv")
    ...     _ = path.write_text("name;lat;lon\nEiffel;48,8584;2,2945\nLouvre;48,86\n")
    ...     source = open_csv(Bytes(path), Reading())
    ...     for rows in source.rows(["lat"]):
    ...         print(rows.batch.to_pylist(), rows.numbers, [record.reason for record in rows.bad])
    [{'lat': '48,8584'}] [1] ['has 2 fields, the header has 3']
    >>> source.delimiter, source.decimal_comma
    (';', True)
    """
    with data.opened() as stream:
        head = _Utf8(stream).read(HEAD)
    mark = len(codecs.BOM_UTF8) * head.startswith(codecs.BOM_UTF8)
    # The last character may be cut off.
    text = head[mark:].decode(errors="ignore")
    if "\0" in text[:4]:
        raise InvalidInputError(NOT_UTF8)
    if not text.strip("\r\n"):
        raise InvalidInputError("line 1: the file is empty, where a header should name the columns")
    delimiter = _delimiter(reading.delimiter, text, quoting)
    records, second = _records(text, delimiter, quoting)
    if not records or (second == len(text) and len(head) >= HEAD - 1):
        raise InvalidInputError(f"line 1: the line is longer than {HEAD >> 20} MB, or a field than 128 KB")
    if len(records[0]) > MOST_COLUMNS:
        raise InvalidInputError(f"line 1: there are more than {MOST_COLUMNS} columns")
    if reading.header and _looks_like_record(records[0]):
        raise InvalidInputError("line 1: the first line looks like a record: give `header=False` if it is one")
    if reading.header:
        names, start, pattern = _unique(records.pop(0)), mark + len(text[:second].encode()), "the header"
    else:
        names, start, pattern = [str(1 + index) for index in range(len(records[0]))], mark, "the first row"
    comma = delimiter != "," and any(sum(map(bool, map(COMMA.fullmatch, record))) > 1 for record in records)
    read = partial(_rows, data, names, delimiter, start, quoting, pattern)
    schema = text_schema(names)
    return Source(schema, read, "row", delimiter, comma) if quoting else Source(schema, read)


def open_tsv(data: Bytes, reading: Reading) -> Source:
    """Return the rows of a TSV file: as a CSV file, but quotes are characters like others."""
    return open_csv(data, reading, quoting=False)


def open_plt(data: Bytes) -> Source:
    r"""Return the points of a GeoLife .plt file: lat, lon, altitude (in feet) and time (UTC).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "20081023025304.plt")
    ...     _ = path.write_text("Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255\n0\n"
    ...                         "39.984702,116.318417,0,492,39744.1201851852,2008-10-23,02:53:04\n")
    ...     [rows.batch.to_pylist() for rows in open_plt(Bytes(path)).rows(["lon", "time"])]
    [[{'lon': '116.318417', 'time': '2008-10-23T02:53:04Z'}]]
    """
    with data.opened() as stream:
        header = stream.read(HEAD).splitlines(keepends=True)[:6]
    if len(header) < 6 or not header[0].lower().startswith(b"geolife"):
        raise InvalidInputError("a .plt file must begin with the 6 header lines of GeoLife")
    names = ["lat", "lon", "0", "altitude", "days", "date", "clock"]

    def read(wanted: list[str]) -> Iterator[Rows]:
        for rows in _rows(data, names, ",", sum(map(len, header)), False, "a point", names):
            time = pc.binary_join_element_wise(rows.batch["date"], "T", rows.batch["clock"], "Z", "")
            yield Rows(rows.batch.append_column("time", time).select(wanted), rows.numbers, rows.bad)

    return Source(text_schema(["lat", "lon", "altitude", "time"]), read, "point")


def _rows(
    data: Bytes, names: list[str], delimiter: str, start: int, quoting: bool, pattern: str, wanted: list[str]
) -> Iterator[Rows]:
    """Yield the records after the first `start` bytes; `pattern` names what has the right number of fields."""
    count, bad = len(names), list[BadRecord]()
    # A last row with one field too many. If a quote is not closed, it is not found.
    last = delimiter * count
    # No column at all would be every column for Arrow.
    read = wanted or names[:1]

    def skip(row: pa.csv.InvalidRow) -> str:
        fields = f"{row.actual_columns} field{'s' * (row.actual_columns != 1)}"
        bad.append(BadRecord(row.number, f"has {fields}, {pattern} has {count}", row.text))
        return "skip" if len(bad) <= MOST_BAD else "error"

    # With threads Arrow does not know the numbers of rows.
    reading = pa.csv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=names)
    parsing = pa.csv.ParseOptions(
        delimiter=delimiter,
        quote_char='"' if quoting else False,
        newlines_in_values=quoting,
        invalid_row_handler=skip,
    )
    texts = pa.csv.ConvertOptions(
        include_columns=read, column_types=dict.fromkeys(read, pa.string()), check_utf8=False
    )
    first = 1
    try:
        with data.opened() as stream:
            stream.read(start)
            with pa.csv.open_csv(_Utf8(stream, f"\n{last}\n".encode()), reading, parsing, texts) as reader:
                for batch in reader:
                    # How many rows of the batch come before each bad one.
                    before = np.array([record.row - first - index for index, record in enumerate(bad)], np.int64)
                    order = np.arange(batch.num_rows)
                    numbers = first + order + np.searchsorted(before, order, side="right")
                    first = int(numbers[-1]) + 1 if len(numbers) else first
                    passed = sum(record.row < first for record in bad)
                    # Also the bad rows that follow, so that they do not pile up. The last one is held back.
                    while passed < len(bad) - 1 and bad[passed].row == first:
                        passed, first = passed + 1, first + 1
                    if batch.num_rows or passed:
                        yield Rows(batch.select(wanted), numbers, bad[:passed])
                    del bad[:passed]
    except pa.ArrowException:
        # Not Arrow's message: it may quote the text.
        if len(bad) > MOST_BAD:
            reason = f"row {bad[-1].row} {bad[-1].reason}, as many rows before it: is the delimiter right?"
            raise InvalidInputError(reason) from None
        raise InvalidInputError(f"a row is longer than {BLOCK >> 20} MB: is a quote not closed?") from None
    if not bad or bad.pop().record != last:
        raise InvalidInputError("the last row has no end: a quote is not closed")
    if bad:
        yield Rows(empty_batch(text_schema(wanted)), np.arange(0), bad)


class _Utf8:
    """A stream of UTF-8 text, with some bytes after its end.

    No part ends with a carriage return: Arrow leaves out a line feed at the beginning of the next part, also in a
    quoted field, and takes a part of a single line feed for the end of the file.
    """

    closed = False

    def __init__(self, stream: BinaryIO, end: bytes = b"") -> None:
        self._stream = stream
        self._end = end
        self._held = b""
        self._decode = codecs.getincrementaldecoder("utf-8")().decode

    def read(self, size: int) -> bytes:
        fresh = self._stream.read(size - len(self._held))
        room = size - len(self._held) - len(fresh)
        try:
            self._decode(fresh, room > 0)
        except UnicodeDecodeError:
            raise InvalidInputError(NOT_UTF8) from None
        data = self._held + fresh + self._end[:room]
        self._end = self._end[room:]
        self._held = b"\r" if data.endswith(b"\r") else b""
        return data.removesuffix(b"\r")

    def close(self) -> None:
        self.closed = True


def _delimiter(given: str | None, text: str, quoting: bool) -> str:
    """Return the given delimiter, or that for which most of the first records have as many fields as the first."""
    if given is not None:
        sign = "\t" if given in ("tab", "\\t") else given
        if len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in '"\r\n\0':
            raise InvalidInputError(f"delimiter must be one ASCII character such as , or ; or tab, got {given!r}")
        return sign

    def agreement(delimiter: str) -> float:
        counts = [len(record) for record in _records(text, delimiter, True)[0]]
        return counts.count(counts[0]) / len(counts) if counts and counts[0] > 1 else 0

    best = max(DELIMITERS, key=agreement) if quoting else "\t"
    return best if not quoting or agreement(best) else " " if agreement(" ") == 1 else ","


def _records(text: str, delimiter: str, quoting: bool) -> tuple[list[list[str]], int]:
    """Return the first records of a text, and where the second begins."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE)
    records: list[list[str]] = []
    second = 0
    # A field of more than 128 KB is an error of the csv module, but not of Arrow.
    with suppress(csv.Error):
        for record in islice(filter(None, reader), 20):
            second = second or lines.tell()
            records.append(record)
    return records, second


def _looks_like_record(fields: Sequence[str]) -> bool:
    counted = all(field.isdecimal() and len(field) < 7 for field in fields)
    if counted and sorted(set(map(int, fields))) == list(map(int, fields)):
        # The header of a file that was made from one without a header.
        return False
    numbers = [field for field in fields if field.strip() and not any(map(str.isalpha, field))]
    return len(numbers) == len(fields) or len([field for field in fields if FRACTION.fullmatch(field)]) > 1


def _unique(fields: Sequence[str]) -> list[str]:
    """Return a name for each column, each once."""
    names: dict[str, None] = {}
    times: Counter[str] = Counter()
    for field in fields:
        name = field
        while name in names:
            times[field] += 1
            name = f"{field} ({1 + times[field]})"
        names[name] = None
    return list(names)


def write_csv(stream: IO[bytes], parts: Iterator[Part], layout: Layout) -> None:
    """Write rows; fields are quoted where they need it."""
    delimiter = layout.delimiter if layout.format == "csv" else "\t"
    options = pa.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")

    def lines(columns: dict[str, pa.Array]) -> Any:
        if layout.spreadsheet_safe:
            columns = {name: _spreadsheet_safe(column) for name, column in columns.items()}
        buffer = pa.BufferOutputStream()
        try:
            pa.csv.write_csv(pa.table(columns), buffer, options)
            return buffer.getvalue()
        except pa.ArrowInvalid:
            # Some fields need quotes. pyarrow would put them around all fields.
            fields = [_field(name, column, layout) for name, column in columns.items()]
            between = [piece for field in fields for piece in (delimiter, field)]
            return bytes_of(joined(*between[1:], "\n"))

    stream.write(lines({name: _one(name) for name in layout.columns(layout.empty)}))
    for part in parts:
        texts = {}
        for name, (field, column) in layout.columns(part).items():
            text, comma = text_of(field, column), layout.decimal_comma and pa.types.is_decimal(field.type)
            texts[name] = pc.replace_substring(text, ".", ",") if comma else text
        stream.write(lines(texts))


write_tsv = write_csv


def _one(text: str) -> pa.Array:
    """Return a column with one text; pa.array would import pandas, which takes long."""
    data = text.encode()
    return pa.Array.from_buffers(TEXT, 1, [None, pa.py_buffer(np.array([0, len(data)])), pa.py_buffer(data)])


def _field(name: str, column: pa.Array, layout: Layout) -> pa.Array:
    """Return the fields of a column, in quotes where they need them."""
    texts = pc.fill_null(column, "")
    characters = "\t\r\n" if layout.format == "tsv" else f'"\r\n{layout.delimiter}'
    special = having(texts, characters)
    if layout.format == "tsv" and pc.any(special).as_py():
        raise InvalidInputError(f"column {name!r} holds tabs or line breaks, which TSV cannot hold: write CSV")
    return pc.if_else(special, joined('"', pc.replace_substring(texts, '"', '""'), '"'), texts)


def _spreadsheet_safe(texts: pa.Array) -> pa.Array:
    """Return texts with a ' before each one that a spreadsheet takes for a formula, but not before numbers."""
    formula = pc.and_not(pc.match_substring_regex(texts, FORMULA), pc.match_substring_regex(texts, NUMBER))
    marked = pc.replace_substring_regex(texts, '^("?)', r"\1'", max_replacements=1)
    return pc.if_else(formula, marked, texts)
