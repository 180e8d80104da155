"""A source of words that a test chooses, for draws whose every bit is known."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from geoind.arrays import FloatArray
from geoind.keys import Words

WORD = 1 << 64


@dataclass
class GivenWords:
    """Numbers between 0 and 1 for each record, as 64-bit words: the first of each, then all the others."""

    numbers: Sequence[tuple[int, ...]]
    """For each record its words in the order in which they are drawn."""
    asked: list[int] = field(default_factory=list)
    """The records that needed more than their first words."""
    first: int = 2
    """How many words each record was asked for at first."""

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:  # noqa: ARG002
        self.first = count
        return np.array([words[:count] for words in self.numbers], np.uint64).reshape(-1, count)

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:  # noqa: ARG002
        self.asked.append(row)
        start = self.first + 2 * number
        first, second = self.numbers[row][start : start + 2]
        return first, second


def pairs_of(first: int, second: int, words: int) -> tuple[int, ...]:
    """Return the words of two numbers of 64 * words bits, in the order in which a record draws them."""
    shifts = range(64 * (words - 1), -1, -64)
    return tuple(number >> shift & WORD - 1 for shift in shifts for number in (first, second))
