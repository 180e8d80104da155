"""Records and fields of delimited text in which double quotes may hide delimiters and line breaks (RFC 4180)."""

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from geoind.errors import InvalidInputError

__all__ = ["Record", "Splitter", "unquoted"]

LONGEST = 16 << 20
"""A record that is longer is one whose quote was never closed."""


class Record(NamedTuple):
    """A record: the line it starts at, its fields with their quotes, its text, and the line break after it."""

    line: int
    fields: list[bytes]
    text: bytes
    ending: bytes


class Splitter:
    r"""What splits lines, counting them.

    Examples
    --------
    >>> import io
    >>> splitter = Splitter(b",")
    >>> [record.fields for record in splitter.records(iter([b'1,"a\n', b'b",2\n', b"3,4,5"]), io.BytesIO())]
    [[b'1', b'"a\nb"', b'2'], [b'3', b'4', b'5']]
    """

    def __init__(self, delimiter: bytes) -> None:
        if len(delimiter) != 1 or delimiter in b'"\r\n':
            raise InvalidInputError("the delimiter must be a single character, and no quote")
        self.delimiter = delimiter
        self.line = 1
        d = re.escape(delimiter)
        # Possessive, so that a quote that is never closed fails at once.
        self._field = re.compile(rb'"(?:[^"]++|"")*+"[^%b]*+|[^%b"][^%b]*+|' % (d, d, d))

    def records(self, lines: Iterator[bytes], stream: BinaryIO) -> Iterator[Record]:
        """Return the records of some lines; the last one may go on in the stream that they are from."""
        for line in lines:
            text = _body(line)
            fields = text.split(self.delimiter) if b'"' not in text else self._quoted(text)
            while fields is None:
                more = _through_next_quote(lines, stream)
                if not more or len(line) > LONGEST:
                    raise InvalidInputError(f"line {self.line}: a quote is never closed")
                line += more
                text = _body(line)
                fields = self._quoted(text)
            yield Record(self.line, fields, text, line[len(text) :])
            self.line += line.count(b"\n")

    def _quoted(self, text: bytes) -> list[bytes] | None:
        """Return the fields of a text with quotes; None where a quote is open at its end."""
        at, fields = 0, []
        while True:
            match = self._field.match(text, at)
            end = match.end() if match else at
            if end < len(text) and text[end : end + 1] != self.delimiter:
                return None
            fields.append(text[at:end])
            if end == len(text):
                return fields
            at = end + 1


def unquoted(field: bytes) -> bytes:
    """Return what a field says.

    Examples
    --------
    >>> unquoted(b'"a ""b"" c"'), unquoted(b"d")
    (b'a "b" c', b'd')
    """
    if field.startswith(b'"') and field.endswith(b'"') and len(field) > 1:
        return field[1:-1].replace(b'""', b'"')
    return field


def _body(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line


def _through_next_quote(lines: Iterator[bytes], stream: BinaryIO) -> bytes:
    """Return the lines up to and including the next one with a quote."""
    found, size = [], 0
    while size <= LONGEST:
        line = next(lines, b"") or stream.readline()
        found.append(line)
        size += len(line)
        if not line or b'"' in line:
            break
    return b"".join(found)
