"""A JSON document that is read as it is needed, however long it is."""

import codecs
import json
from collections.abc import Callable
from typing import Any, BinaryIO, TypeVar

from geoind.errors import InvalidInputError
from geoind.files.members import DECODER, SPACE, Member, members_of

__all__ = ["JsonText"]

CHUNK = 1 << 20
LARGEST = 64 << 20
"""No value that is read at once may have more characters."""

Parsed = TypeVar("Parsed")


class JsonText:
    """The part of a document that is in memory, and a position in it.

    Examples
    --------
    >>> import io
    >>> text = JsonText(io.BytesIO(b'{"type": "FeatureCollection"}'))
    >>> text.take("{")
    >>> text.value()
    ('type', '"type"')
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.buffer = ""
        self.at = 0
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._lines = 1
        self._ended = False

    def line_at(self, position: int) -> int:
        """Return the line of a position in the buffer."""
        return self._lines + self.buffer.count("\n", 0, position)

    def peek(self) -> str:
        """Return the next character that is not a space."""
        while True:
            match = SPACE.match(self.buffer, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            if not self._more():
                raise self._malformed("the document ends too early")

    def take(self, sign: str) -> None:
        """Go past a sign."""
        if self.peek() != sign:
            raise self._malformed(f"a {sign} is missing")
        self.at += 1

    def value(self) -> tuple[Any, str]:
        """Return the next value and its text."""
        value, start, end = self._parsed(DECODER.raw_decode)
        return value, self.buffer[start:end]

    def members(self) -> tuple[list[Member], int, int]:
        """Return the members of the next value, an object, and where in the buffer it starts and ends."""
        return self._parsed(members_of)

    def finish(self) -> None:
        """Make sure that nothing follows."""
        while not self.buffer[self.at :].strip():
            self.at = len(self.buffer)
            if not self._more():
                return
        raise self._malformed("something follows the document")

    def _parsed(self, parse: Callable[[str, int], tuple[Parsed, int]]) -> tuple[Parsed, int, int]:
        self.peek()
        if self.at > CHUNK:
            self._lines += self.buffer.count("\n", 0, self.at)
            self.buffer = self.buffer[self.at :]
            self.at = 0
        while True:
            try:
                value, end = parse(self.buffer, self.at)
            except json.JSONDecodeError as error:
                # Reading on can cure an error at the end of what was read, and a string without an end.
                curable = error.pos > len(self.buffer) - 16 or error.msg.startswith("Unterminated string")
                if not curable or len(self.buffer) - self.at > LARGEST or not self._more():
                    raise self._malformed("this is no proper JSON") from None
            except RecursionError:
                raise self._malformed("the values are nested too deeply") from None
            else:
                # A number may go on beyond the buffer.
                if end < len(self.buffer) or not self._more():
                    start, self.at = self.at, end
                    return value, start, end

    def _more(self) -> bool:
        """Read on, more each time, and return whether there was anything."""
        if self._ended:
            return False
        data = self._stream.read(max(CHUNK, len(self.buffer) - self.at))
        self._ended = not data
        try:
            self.buffer += self._decode(data, self._ended)
        except UnicodeDecodeError:
            raise self._malformed("this is not UTF-8") from None
        return bool(data)

    def _malformed(self, reason: str) -> InvalidInputError:
        return InvalidInputError(f"line {self.line_at(self.at)}: {reason}")
