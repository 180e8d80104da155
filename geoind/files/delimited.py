"""CSV and TSV: every byte of a row stays as it is, but for its coordinates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoind.arrays import IntArray
from geoind.files.dialects import Guess, Layout
from geoind.files.rejects import BadRecord
from geoind.files.scan import Scan, line_of, scan

__all__ = ["BATCH_BYTES", "TextRows", "delimited_rows", "spreadsheet_safe"]

BLANK = "|".join(
    map(
        chr,
        (0x20, 0xA0, 0xAD, *range(0x2000, 0x2010), *range(0x2028, 0x2030), *range(0x205F, 0x2070), 0x3000, 0xFEFF),
    )
)
"""Spaces, and characters without width such as a byte order mark. In bytes, a class would match single bytes."""

FORMULA = rf'^"?({BLANK}|\x00)*([=+\-@]|＝|＋|－|＠|[\t\r\n])'
"""How a text begins that a spreadsheet runs, in quotes or not."""

BATCH_BYTES = 4 << 20
"""Text handled at once."""


def delimited_rows(stream: BinaryIO, guess: Guess, *, size: int = BATCH_BYTES) -> Iterator["TextRows"]:
    r"""Yield the rows of a table of text, some megabytes at a time; the first batch may be empty.

    Examples
    --------
    >>> import io
    >>> [rows.batch.to_pylist() for rows in delimited_rows(io.BytesIO(b"lat,lon\n1,2\n"), Guess())]
    [[{'lat': '1', 'lon': '2'}]]
    """
    text = stream.read(size)
    layout, start = guess.layout(text)
    header, text, line = text[:start], text[start:], 1 + text.count(b"\n", 0, start)
    more: bytes | None = None
    while more != b"":
        more = stream.read(size)
        text += more
        found = scan(text, layout.dialect, len(layout.names), line=line, final=not more)
        yield TextRows(layout, header, text[: found.used], found, line)
        line += text.count(b"\n", 0, found.used)
        header, text = b"", text[found.used :]


@dataclass(frozen=True, eq=False)
class TextRows:
    """Some rows of a table of text.

    Parameters
    ----------
    layout : Layout
        What the columns are.
    header : bytes
        What stands before the first row of the file, and nothing in later batches.
    text : bytes
        The rows, and records that are none.
    found : Scan
        Where in the text they are.
    first_line : int
        The number of the text's first line in the file.
    """

    layout: Layout
    header: bytes
    text: bytes
    found: Scan
    first_line: int

    @property
    def schema(self) -> pa.Schema:
        """All columns, as text."""
        return pa.schema([pa.field(name, pa.string()) for name in self.layout.names])

    @cached_property
    def batch(self) -> pa.RecordBatch:
        """The columns that are needed, as text; coordinates have a point."""
        return self._columns(self.text, self.found.bounds, self.layout.needed)

    def beside(self, rows: IntArray) -> pa.RecordBatch:
        """Return all columns of some rows, as text."""
        return self._columns(*_gathered(self.text, self.found.bounds[rows]), self.layout.names)

    @property
    def places(self) -> Sequence[tuple[str, str]]:
        """The columns of longitude and latitude."""
        return self.layout.places

    @property
    def problems(self) -> list[BadRecord]:
        """Records that are no rows."""
        return self.found.problems

    def line(self, row: int) -> int:
        """Return the line at which a row begins."""
        return line_of(self.text, int(self.found.bounds[row, 0, 0]), self.first_line)

    def record(self, row: int) -> bytes:
        """Return the text of a row, without its line break."""
        return self.text[self.found.bounds[row, 0, 0] : self.found.bounds[row, -1, 1]]

    def written(self, reports: pa.RecordBatch, rows: IntArray) -> bytes:
        """Return the text of some rows, with other coordinates, and the header before the first."""
        bounds = self.found.bounds
        pieces = _pieces(self.text, bounds)
        if self.found.problems or not np.array_equal(rows, np.arange(len(bounds))):
            pieces = self._only(pieces, rows)
        kept = np.array([name not in self.layout.drop for name in self.layout.names])
        filled = self._safe(self._filled(pieces, reports))
        return self._header(kept) + _joined(filled if kept.all() else filled.filter(_chosen(kept, len(rows))))

    def _columns(self, text: bytes, bounds: IntArray, names: Sequence[str]) -> pa.RecordBatch:
        numbers = [self.layout.names.index(name) for name in names]
        # Column after column, all at once: a call to Arrow for each would take longer than its fields.
        rows = len(self.layout.names) * np.arange(len(bounds))
        order = 1 + 2 * (np.array(numbers)[:, None] + rows).ravel()
        fields = _pieces(text, bounds).take(pa.array(order))
        if self.layout.dialect.quoting and b'"' in text:
            fields = _unquoted(fields)
        columns = []
        for name, number, column in zip(names, numbers, _as_strings(fields, len(names)), strict=True):
            if self.layout.decimal_comma and number in self.layout.spots:
                column = pc.replace_substring(column, ",", ".")
            if name in self.layout.named:
                column = pc.if_else(pc.equal(column, ""), None, column)
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, names=list(names))

    def _only(self, pieces: pa.Array, rows: IntArray) -> pa.Array:
        """Return the pieces of some rows, in that order, each with a line break, and nothing from between them."""
        width = len(self.layout.names)
        windows = self.text[:-1].find(b"\r\n") >= 0
        breaks = pa.array([b"", b"\r\n" if windows else b"\n"], pa.large_binary())
        first = len(pieces)
        order = 1 + 2 * width * rows[:, None] + np.arange(2 * width)
        order[:, -1] = first + 1
        return pa.concat_arrays([pieces, breaks]).take(pa.array(np.concatenate([[first], order.ravel()])))

    def _filled(self, pieces: pa.Array, reports: pa.RecordBatch) -> pa.Array:
        """Return the pieces with reports in place of coordinates; where there is no report, with nothing."""
        width, count = len(self.layout.names), len(reports)
        spots = sorted(self.layout.spots)
        if not count:
            return pieces
        columns = [reports.column(self.layout.names[spot]).cast(pa.large_binary()) for spot in spots]
        # Row by row, as they stand in the text.
        order = np.arange(count * len(spots)).reshape(len(spots), count).T.ravel()
        texts = pa.concat_arrays(columns).take(pa.array(order))
        texts = pc.fill_null(texts, b"")
        if self.layout.decimal_comma:
            texts = pc.replace_substring(texts, ".", ",")
            if self.layout.dialect.delimiter == b",":
                quote, nothing = pa.scalar(b'"', pa.large_binary()), pa.scalar(b"", pa.large_binary())
                quoted = pc.binary_join_element_wise(quote, texts, quote, nothing)
                texts = pc.if_else(pc.equal(texts, nothing), texts, quoted)
        holes = np.zeros(len(pieces), bool)
        at = (1 + 2 * (np.arange(count)[:, None] * width + np.array(spots))).ravel()
        holes[at] = True
        return pc.replace_with_mask(pieces, pa.array(holes), texts)

    def _header(self, kept: npt.NDArray[np.bool_]) -> bytes:
        if not self.header or (kept.all() and not self.layout.spreadsheet_safe):
            return self.header
        text = self.header.removeprefix(b"\xef\xbb\xbf")
        bounds = scan(text, self.layout.dialect, len(kept)).bounds
        mark = self.header[: len(self.header) - len(text)]
        return mark + _joined(self._safe(_pieces(text, bounds)).filter(_chosen(kept, 1)))

    def _safe(self, pieces: pa.Array) -> pa.Array:
        """Return the pieces, with fields that no spreadsheet runs if that is asked for."""
        if not self.layout.spreadsheet_safe:
            return pieces
        return pc.if_else(pa.array(np.arange(len(pieces)) % 2 == 1), spreadsheet_safe(pieces), pieces)


def spreadsheet_safe(fields: pa.Array) -> pa.Array:
    r"""Return fields of text, with a ' before each one that a spreadsheet would take for a formula.

    These are texts that begin with =, +, -, @, a tab or a line break, also after spaces or characters
    without width. Numbers stay as they are.

    Examples
    --------
    >>> spreadsheet_safe(pa.array(["=1+1", "-1.5", "-A1", '"@SUM(A1)"', "a=b"])).to_pylist()
    ["'=1+1", '-1.5', "'-A1", '"\'@SUM(A1)"', 'a=b']
    """
    formula = pc.match_substring_regex(fields, FORMULA)
    number = pc.match_substring_regex(fields, r'^"?[+-]?[0-9]+([.,][0-9]+)*([eE][+-]?[0-9]+)?"?$')
    marked = pc.replace_substring_regex(fields, '^("?)', r"\1'", max_replacements=1)
    return pc.if_else(pc.and_(formula, pc.invert(number)), marked, fields)


def _pieces(text: bytes, bounds: IntArray) -> pa.Array:
    """Return a text cut at the bounds of its fields: fields at odd places, what separates them at even ones."""
    offsets = np.concatenate([[0], bounds.ravel(), [len(text)]]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _gathered(text: bytes, bounds: IntArray) -> tuple[bytes, IntArray]:
    """Return the text of some records alone, and where in it their fields are."""
    starts, stops = bounds[:, 0, 0], bounds[:, -1, 1]
    moved = np.cumsum(stops - starts) - stops
    parts = [text[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
    return b"".join(parts), bounds + moved[:, None, None]


def _chosen(kept: npt.NDArray[np.bool_], rows: int) -> pa.Array:
    """Return which pieces stay when only some columns do."""
    first = int(np.argmax(kept))
    # A column that goes takes the separator before it along; those before the first that stays, the one after.
    row = np.ones((len(kept), 2), bool)
    row[~kept, 1] = False
    for number in np.flatnonzero(~kept):
        row[number if number > first else number + 1, 0] = False
    return pa.array(np.append(np.tile(row.ravel(), rows), True))


def _joined(pieces: pa.Array) -> bytes:
    _, offsets, data = pieces.buffers()
    if data is None:
        return b""
    ends = np.frombuffer(offsets, np.int64)
    return bytes(memoryview(data)[ends[pieces.offset] : ends[pieces.offset + len(pieces)]])


def _unquoted(column: pa.Array) -> pa.Array:
    quoted = pc.starts_with(column, b'"')
    if not pc.any(quoted).as_py():
        return column
    inside = pc.replace_substring(pc.binary_slice(column, 1, -1), b'""', b'"')
    return pc.if_else(quoted, inside, column)


def _as_strings(fields: pa.Array, count: int) -> list[pa.Array]:
    """Return bytes as so many columns of text."""
    rows = len(fields) // count
    try:
        fields = fields.cast(pa.string())
    except pa.ArrowInvalid:
        return [_as_string(fields.slice(rows * number, rows)) for number in range(count)]
    return [fields.slice(rows * number, rows) for number in range(count)]


def _as_string(column: pa.Array) -> pa.Array:
    """Return bytes as text; where they are not UTF-8, as if each were a character of its own."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value.decode("latin-1") for value in column.to_pylist()], pa.string())
