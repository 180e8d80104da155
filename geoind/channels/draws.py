"""Exact draws from the rows of a matrix.

A double is a rational number, and so is every sum of doubles: which output a uniform number falls on can be
decided without rounding. Doubles decide almost every draw; where the number is too close to a border, or in the
tail that doubles cannot resolve, whole numbers decide, with more bits of the same number as long as they matter.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.randomness import Words

__all__ = ["choose", "choose_exactly"]

UNIT = 2**1074
"""Every double is a whole multiple of 1 / UNIT."""

LONGEST = 256
"""Pairs of words: more are never needed, but by a source that returns the same words for ever."""


def choose(cumulative: FloatArray, words: Words) -> tuple[IntArray, IntArray]:
    """Return the outputs that doubles find for the words, and the rows of the words that they do not decide.

    `cumulative` holds the partial sums of a row over their last, each within 2^-53 times their number.
    """
    uniform = (words >> np.uint64(1)).view(np.int64).astype(np.float64) * 2.0**-63
    outputs = np.minimum(np.searchsorted(cumulative, uniform, side="right"), len(cumulative) - 1)
    room = 2.0**-52 * (len(cumulative) + 8)
    below = np.where(outputs > 0, cumulative[outputs - 1], -1.0)
    undecided = ~((uniform - below > room) & (cumulative[outputs] - uniform > room))
    return outputs, np.flatnonzero(undecided)


def choose_exactly(row: FloatArray, word: int, further: Callable[[int], tuple[int, int]]) -> int:
    """Return the output of probability entry / sum of the row on which a uniform number falls.

    The number begins with the 64 bits of `word`; `further` maps 0, 1, 2, ... to its next 128 bits.

    Examples
    --------
    >>> choose_exactly(np.array([1e-300, 1.0]), 0, lambda number: (0, 2**64 - 1 if number == 3 else 0))
    1
    >>> choose_exactly(np.array([1e-300, 1.0]), 0, lambda number: (0, 1 if number == 8 else 0))
    0
    """
    borders = list(accumulate(numerator * (UNIT // denominator) for numerator, denominator in _ratios(row)))
    total, number, bits = borders[-1], word, 64
    for more in range(LONGEST):
        lowest = bisect_right(borders, number * total >> bits)
        highest = bisect_left(borders, -(-(number + 1) * total >> bits))
        if lowest == highest:
            return lowest
        first, second = further(more)
        number, bits = number << 128 | first << 64 | second, bits + 128
    raise RuntimeError("the random source always returns the same bits")


def _ratios(row: FloatArray) -> list[tuple[int, int]]:
    return [entry.as_integer_ratio() for entry in row.tolist()]
