"""Where the records and fields of delimited text begin and end, by a strict reading of RFC 4180.

A quote opens a field at its first character or not at all, and closes it right before a delimiter, a line break or
the end. A line break is LF or CRLF. What a strict reader could split in another way is a problem, never a guess.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geoind.arrays import IntArray
from geoind.errors import InvalidInputError
from geoind.files.rejects import BadRecord

__all__ = ["Dialect", "Scan", "first_record", "line_of", "scan", "unquoted"]

LONGEST = 16 << 20
"""A record that is longer is one whose quote was never closed, or text without line breaks."""

WINDOW = 1 << 12
"""So many bytes are read after a misplaced quote, which leaves in doubt what follows; then twice as many, ..."""

LF, CR, QUOTE = b'\n\r"'

MISPLACED = (
    "a quote that neither opens nor closes a field: a field with quotes must be quoted and its own doubled, "
    "or turn quoting off"
)
UNCLOSED = "a quote is never closed"
STRAY = {CR: "a carriage return without a line feed", 0: "a NUL byte: the text must be UTF-8"}


class Dialect(NamedTuple):
    """What separates fields, and whether double quotes may hide separators."""

    delimiter: bytes
    quoting: bool

    def checked(self) -> "Dialect":
        """Return itself, if it can be read."""
        if len(self.delimiter) != 1 or self.delimiter in b'"\r\n\0':
            raise InvalidInputError("the delimiter must be a single character of one byte, and no quote")
        return self


@dataclass(frozen=True)
class Scan:
    """The records of some text.

    Attributes
    ----------
    bounds : (records, fields, 2) array of int
        Where each field begins and ends, with its quotes.
    problems : list of BadRecord
        The records that are none, in order.
    used : int
        Bytes that are understood; the rest goes on in text to come.
    """

    bounds: IntArray
    problems: list[BadRecord]
    used: int


class _Part(NamedTuple):
    """Text up to the first misplaced quote: its separators, which of them end records, and stray bytes."""

    separators: IntArray
    ends: npt.NDArray[np.bool_]
    stray: IntArray
    misplaced: int | None
    unclosed: int | None


def scan(text: bytes, dialect: Dialect, width: int, *, line: int = 1, final: bool = True) -> Scan:
    r"""Return where the records of a text are.

    Parameters
    ----------
    text : bytes
        From the beginning of a record.
    dialect : Dialect
        How to read it.
    width : int
        How many fields a record has.
    line : int
        The number of the first line.
    final : bool
        Whether nothing follows the text; otherwise a last record without its line break is left for later.

    Examples
    --------
    >>> text = b'1,"a\nb"\n2,c\n3\n'
    >>> found = scan(text, Dialect(b",", True), 2)
    >>> [[text[start:end] for start, end in record] for record in found.bounds.tolist()]
    [[b'1', b'"a\nb"'], [b'2', b'c']]
    >>> found.problems[0].line, found.problems[0].reason
    (4, '1 field, where the first line has 2')
    """
    data = np.frombuffer(text, np.uint8)
    bounds: list[IntArray] = []
    problems: list[BadRecord] = []
    at, window = 0, len(text)
    while at < len(text):
        stop = min(len(text), at + window)
        whole = final and stop == len(text)
        part = _part(data, at, stop, dialect, whole)
        end = _end_of_records(part, at)
        if end > at:
            good, bad = _records(text, data, part, at, end, width)
            bounds.append(good)
            problems += [
                BadRecord(line_of(text, begin, line), why, text[begin:stop_at]) for begin, stop_at, why in bad
            ]
            at = min(end, stop)
        wrong = part.unclosed if part.misplaced is None and whole else part.misplaced
        if wrong is not None:
            # The record up to the end of the line with the quote; what it hides is anybody's guess.
            stop = text.find(b"\n", wrong) + 1
            if not stop and not final:
                break
            stop = stop or len(text)
            why = UNCLOSED if part.misplaced is None else MISPLACED
            problems.append(BadRecord(line_of(text, at, line), why, text[at:stop].rstrip(b"\r\n")))
            at, window = stop, WINDOW
        elif stop == len(text):
            break
        else:
            window *= 2
    if len(text) - at > LONGEST:
        what = UNCLOSED if dialect.quoting and b'"' in text[at:] else "the line has no end"
        raise InvalidInputError(f"line {line_of(text, at, line)}: {what}")
    return Scan(np.concatenate([np.empty((0, width, 2), np.int64), *bounds]), problems, at)


def first_record(text: bytes, dialect: Dialect) -> tuple[list[str], int]:
    r"""Return what the fields of the first record say, and where the next one begins.

    Examples
    --------
    >>> first_record(b'lat,"lon"\n1,2\n', Dialect(b",", True))
    (['lat', 'lon'], 10)
    """
    data = np.frombuffer(text, np.uint8)
    part = _part(data, 0, len(text), dialect, True)
    if not part.ends.any():
        raise InvalidInputError(f"line 1: {MISPLACED if part.misplaced is not None else UNCLOSED}")
    end = int(part.separators[np.argmax(part.ends)]) + 1
    good, bad = _records(text, data, part, 0, end, None)
    for _, _, why in bad:
        raise InvalidInputError(f"line 1: {why}")
    fields = [unquoted(text[start:stop]) for start, stop in good[0].tolist()] if len(good) else [""]
    return fields, min(end, len(text))


def unquoted(field: bytes) -> str:
    """Return what a field says."""
    if field[:1] == b'"' and field[-1:] == b'"' and len(field) > 1:
        field = field[1:-1].replace(b'""', b'"')
    return field.decode("utf-8", "backslashreplace")


def _part(data: npt.NDArray[np.uint8], at: int, stop: int, dialect: Dialect, whole: bool) -> _Part:
    inside = data[at:stop]
    separators = np.flatnonzero((inside == dialect.delimiter[0]) | (inside == LF)) + at
    stray = np.flatnonzero((inside == CR) | (inside == 0)) + at
    # Of a carriage return at the very end, text to come decides, unless none will come.
    stray = stray[(data[stray] == 0) | (data[np.minimum(stray + 1, len(data) - 1)] != LF)]
    misplaced, unclosed = None, None
    if dialect.quoting:
        quotes = np.flatnonzero(inside == QUOTE) + at
        if len(quotes):
            misplaced = _misplaced(data, at, stop, quotes, dialect.delimiter[0])
            unclosed = int(quotes[-1]) if len(quotes) % 2 else None
            separators = separators[np.searchsorted(quotes, separators) % 2 == 0]
            stray = stray[(data[stray] == 0) | (np.searchsorted(quotes, stray) % 2 == 0)]
    if misplaced is not None:
        separators = separators[separators < misplaced]
    elif whole and unclosed is None and inside.size and inside[-1] != LF:
        # The last record may do without a line break.
        separators = np.append(separators, stop)
    is_end = np.ones(len(separators), bool)
    within = separators < stop
    is_end[within] = data[separators[within]] == LF
    return _Part(separators, is_end, stray, misplaced, unclosed)


def _misplaced(data: npt.NDArray[np.uint8], at: int, stop: int, quotes: IntArray, delimiter: int) -> int | None:
    """Return the first quote that neither opens nor closes a field; a doubled quote closes and opens again."""
    opening, closing = quotes[0::2], quotes[1::2]
    before = data[np.maximum(opening - 1, 0)]
    opens = (opening == at) | (before == delimiter) | (before == LF) | (before == QUOTE)
    after = data[np.minimum(closing + 1, stop - 1)]
    then = data[np.minimum(closing + 2, stop - 1)]
    closes = (closing + 1 >= stop) | (after == delimiter) | (after == LF) | (after == QUOTE)
    closes |= (after == CR) & ((then == LF) | (closing + 2 >= stop))
    wrong = np.concatenate([opening[~opens], closing[~closes]])
    return int(wrong.min()) if len(wrong) else None


def _end_of_records(part: _Part, at: int) -> int:
    """Return where the last whole record ends, behind its line break."""
    ends = part.separators[part.ends]
    return int(ends[-1]) + 1 if len(ends) else at


def _records(
    text: bytes,
    data: npt.NDArray[np.uint8],
    part: _Part,
    at: int,
    end: int,
    width: int | None,
) -> tuple[IntArray, list[tuple[int, int, str]]]:
    """Return the fields of the records between two positions; where the others are, and what is wrong there."""
    count = int(np.searchsorted(part.separators, end))
    separators, is_end = part.separators[:count], part.ends[:count]
    last = np.flatnonzero(is_end)
    breaks = separators[last]
    starts = np.concatenate([[at], breaks[:-1] + 1])
    stops = breaks - ((breaks > starts) & (data[np.maximum(breaks - 1, 0)] == CR))
    fields = np.diff(last, prepend=-1)
    blank = stops == starts
    if width is None:
        width = int(fields[0])
    reasons = {
        row: f"{_fields(fields[row])}, where the first line has {width}"
        for row in np.flatnonzero((fields != width) & ~blank).tolist()
    }
    stray = part.stray[part.stray < end]
    for spot, row in zip(stray.tolist(), (np.searchsorted(starts, stray, side="right") - 1).tolist(), strict=True):
        reasons[row] = STRAY[text[spot]]
    right = ~blank
    right[list(reasons)] = False
    first = last[right] - width + 1
    inner = separators[first[:, None] + np.arange(width - 1)]
    begins = np.column_stack([starts[right], inner + 1])
    ends = np.column_stack([inner, stops[right]])
    wrong = [(int(starts[row]), int(stops[row]), reasons[row]) for row in sorted(reasons)]
    return np.stack([begins, ends], axis=2), wrong


def _fields(count: int) -> str:
    return f"{count} field" + ("" if count == 1 else "s")


def line_of(text: bytes, at: int, line: int) -> int:
    """Return the number of the line at a position, in a text whose first line has a number."""
    return line + text.count(b"\n", 0, at)
