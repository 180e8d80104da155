"""Where bad records go: nowhere, so that the first stops the work, or to a file of their own."""

import json
from collections.abc import Iterable
from typing import IO, NamedTuple

from geoind.errors import InvalidInputError

__all__ = ["BadRecord", "Rejects"]


class BadRecord(NamedTuple):
    """A bad record: where it starts, why it is bad, and what it is."""

    line: int
    reason: str
    record: bytes


class Rejects:
    """The bad records of a file, one JSON object per line: line (or row), reason and the record itself.

    The file holds true places, so it is as private as the input.
    """

    def __init__(self, file: IO[bytes] | None = None, unit: str = "line") -> None:
        self._file = file
        self._unit = unit
        self.count = 0

    def add(self, problems: Iterable[BadRecord]) -> None:
        """Write the problems down, or raise the first."""
        for line, reason, record in problems:
            if self._file is None:
                raise InvalidInputError(f"{self._unit} {line}: {reason}")
            told = {self._unit: line, "reason": reason, "record": record.decode("utf-8", "backslashreplace")}
            self._file.write(json.dumps(told, ensure_ascii=False).encode() + b"\n")
            self.count += 1
