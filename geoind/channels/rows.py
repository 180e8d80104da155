"""Computations on the rows of a stochastic matrix: exact draws, reach, and the largest ratio between two rows.

Draws: a double is a rational number, and so is every sum of doubles, so the output of a uniform number can be
found without rounding. Doubles decide almost every draw. Where the number is too close to a border, or in the tail
that doubles cannot resolve, integers decide, with more bits of the same number where needed.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from geoind.arrays import FloatArray, IntArray, as_unit
from geoind.distances import euclidean
from geoind.errors import InvalidInputError
from geoind.keys import Words
from geoind.parallel import Threads, available_cores
from geoind.space.sites import Grid, Sites

if TYPE_CHECKING:
    from geoind.channels.extended import ExtendedMatrix

__all__ = [
    "Rows",
    "as_grid",
    "choose",
    "choose_each",
    "choose_exactly",
    "choose_one",
    "partial_sums",
    "parts_of",
    "reach_of_rows",
    "shares_within",
    "steepest_ratio",
    "steepest_slope",
]

UNIT = 2**1074
"""Every double is a whole multiple of 1 / UNIT."""

LONGEST = 256
"""Pairs of words. Only a source that always returns the same words would need more."""

Rows: TypeAlias = "FloatArray | ExtendedMatrix"
"""A matrix of which some rows are read at a time."""


def parts_of(rows: Rows) -> Iterator[tuple[slice, FloatArray]]:
    """Yield consecutive rows, about a million entries at a time, with their slice."""
    count, width = rows.shape
    height = max(1, ROWS // width)
    for start in range(0, count, height):
        part = slice(start, start + height)
        yield part, rows[part]


def partial_sums(rows: FloatArray) -> FloatArray:
    """Return the partial sums of a row, or of each row, divided by the last.

    The sum of a row may differ from 1 by rounding; probabilities are relative to it.
    """
    sums = np.cumsum(rows, axis=-1)
    sums /= sums[..., -1:]
    return sums


def choose(cumulative: FloatArray, words: Words, terms: int | None = None) -> tuple[IntArray, IntArray]:
    """Return the outputs of the words by doubles, and the rows of the words that doubles do not decide.

    `cumulative` holds the partial sums of a row divided by the last, or some of them, each within 2^-53 times the
    number of terms, by default as many as sums.
    """
    uniform = _uniform(words)
    outputs = np.minimum(np.searchsorted(cumulative, uniform, side="right"), len(cumulative) - 1)
    room = _room(terms or len(cumulative))
    below = np.where(outputs > 0, cumulative[outputs - 1], -1.0)
    undecided = ~((uniform - below > room) & (cumulative[outputs] - uniform > room))
    return outputs, np.flatnonzero(undecided)


def choose_one(cumulative: Sequence[float] | FloatArray, word: int, terms: int | None = None) -> int | None:
    """Return what `choose` does for one word, without arrays; None if doubles do not decide."""
    uniform, room = (word >> 1) * 2.0**-63, _room(terms or len(cumulative))
    output = min(bisect_right(cumulative, uniform), len(cumulative) - 1)
    below = cumulative[output - 1] if output else -1.0
    return output if uniform - below > room and cumulative[output] - uniform > room else None


def choose_each(weights: FloatArray, words: Words) -> tuple[IntArray, IntArray]:
    """Return what `choose` does for a row of weights of its own for each word; the weights sum to 1, rounded."""
    uniform = _uniform(words)[:, None]
    borders = np.cumsum(weights, axis=1)[:, :-1]
    undecided = (np.abs(uniform - borders) <= _room(weights.shape[1])).any(axis=1)
    return (uniform >= borders).sum(axis=1), np.flatnonzero(undecided)


def _uniform(words: Words) -> FloatArray:
    return np.asarray((words >> np.uint64(1)).view(np.int64).astype(np.float64) * 2.0**-63)


def _room(count: int) -> float:
    """Return more than the error of a partial sum of so many probabilities and of a uniform number."""
    return 2.0**-52 * (count + 8)


def choose_exactly(row: FloatArray, word: int, further: Callable[[int], tuple[int, int]]) -> int:
    """Return the output for a uniform number, where each output has the probability entry / sum of the row.

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


def as_grid(sites: Sites) -> Grid:
    """Return the sites if they are a grid; only a grid bounds the distance of a truth to its closest site."""
    if not isinstance(sites, Grid):
        raise InvalidInputError(
            f"the distance from a truth to the closest of these {type(sites).__name__} has no bound: "
            "use a Grid, or pass a bound of your own (report_reach)"
        )
    return sites


def reach_of_rows(matrix: Rows, inputs: Sites, outputs: Sites, confidence: float) -> float:
    """Return the metres within which a report lies of any truth in the input grid with at least this probability.

    The sum of the largest quantile over the true sites, which is exact, and the radius of a cell.
    """
    cell_radius = as_grid(inputs).cell_radius
    return float(reaches(matrix, inputs, outputs, confidence).max()) + cell_radius


def reaches(matrix: Rows, inputs: Sites, outputs: Sites, confidence: float) -> FloatArray:
    """Return for each input the metres within which a report lies of it with at least this probability."""
    confidence, result = as_unit(confidence, "confidence"), np.empty(len(inputs))
    for part, rows in parts_of(matrix):
        apart = euclidean(inputs.xy[part], outputs.xy)
        order = np.argsort(apart, axis=1)
        within = np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
        # The sum of a row may be rounded to just below the confidence; then its farthest report is the bound.
        enough = np.minimum((within < confidence).sum(axis=1), apart.shape[1] - 1)
        result[part] = np.take_along_axis(apart, order, axis=1)[np.arange(len(apart)), enough]
    return result


def shares_within(
    matrix: Rows, inputs: Sites, outputs: Sites, beyond: FloatArray, classes: int
) -> tuple[FloatArray, FloatArray]:
    """Return distances, and for each the least share, over the inputs, of reports within it less `beyond[input]`.

    Distances are rounded up to multiples of the largest one over `classes`.
    """
    radius = float(max(np.ptp(np.concatenate([inputs.xy, outputs.xy]), axis=0).sum() + beyond.max(), 1e-300))
    least, height = np.ones(classes + 1), max(1, ROWS // max(len(outputs), classes))
    for start in range(0, len(inputs), height):
        part = slice(start, start + height)
        apart = euclidean(inputs.xy[part], outputs.xy) + beyond[part, None]
        numbers = np.ceil(apart * (classes / radius)).astype(np.int64)
        numbers += np.arange(len(numbers))[:, None] * (classes + 1)
        counts = np.bincount(numbers.ravel(), matrix[part].ravel(), minlength=len(numbers) * (classes + 1))
        np.minimum(least, np.cumsum(counts.reshape(len(numbers), -1), axis=1).min(axis=0), out=least)
    return np.linspace(0, radius, classes + 1), least


ROWS = 1 << 20
"""Entries of the rows that are read at a time."""

TILE = 20_000
"""Numbers in a tile of rows; the tile and its temporary fit the processor's cache."""

MANY = 1e10
"""Comparisons from which differences of logarithms are used."""

TALL, WIDE = 128, 512
"""Rows and columns of a tile of differences."""

SMALLEST_NORMAL = 2.0**-1021
"""The inverse of a smaller number overflows."""


class _Steepest(NamedTuple):
    """The largest rate of change of a table, the two rows (larger entry first) and the column."""

    rate: float
    row: int
    other: int
    column: int


def steepest_ratio(matrix: FloatArray, apart: FloatArray) -> _Steepest:
    """Return the largest ln(matrix[x, z] / matrix[y, z]) / apart[x, y] and where it is attained.

    A column that is zero for some rows but not for all makes the rate infinite; columns of zeros are ignored.
    Pairs are compared by products with inverses, whose logarithm has an error of 3e-16. Differences of logarithms
    take less time and are used for many pairs; their error is 3e-14 where entries are as small as 1e-40.
    """
    if (clash := _at_no_distance(matrix, apart)) is not None:
        return clash
    possible = matrix > 0
    mixed = np.flatnonzero(possible.any(axis=0) & ~possible.all(axis=0))
    if mixed.size:
        column = int(mixed[0])
        row, other = int(np.argmax(possible[:, column])), int(np.argmin(possible[:, column]))
        return _Steepest(math.inf, row, other, column)
    columns = np.flatnonzero(possible.all(axis=0))
    table = matrix if len(columns) == matrix.shape[1] else matrix[:, columns]
    if len(table) ** 2 * len(columns) > MANY and np.array_equal(apart, apart.T):
        found = _search_many(table, apart)
    elif table.size and table.min() >= SMALLEST_NORMAL:
        found = _search(table, 1 / table, np.multiply, np.log, apart)
    else:
        logs = np.log(table)
        found = _search(logs, -logs, np.add, np.positive, apart)
    if found is None:
        return _Steepest(0.0, 0, 0, 0)
    row, other = found
    with np.errstate(over="ignore"):
        column = int(columns[np.argmax(matrix[row, columns] / matrix[other, columns])])
    gain = _log_ratio(float(matrix[row, column]), float(matrix[other, column]))
    return _Steepest(gain / float(apart[row, other]), row, other, column)


def steepest_slope(table: FloatArray, apart: FloatArray) -> _Steepest:
    """Return the largest (table[x, z] - table[y, z]) / apart[x, y] and where it is attained."""
    if (clash := _at_no_distance(table, apart)) is not None:
        return clash
    found = _search(table, -table, np.add, np.positive, apart)
    if found is None:
        return _Steepest(0.0, 0, 0, 0)
    row, other = found
    column = int(np.argmax(table[row] - table[other]))
    gain = float(table[row, column] - table[other, column])
    return _Steepest(gain / float(apart[row, other]), row, other, column)


def _search(
    table: FloatArray, inverse: FloatArray, combine: np.ufunc, finish: np.ufunc, apart: FloatArray
) -> tuple[int, int] | None:
    """Return the pair of rows with the largest rate, each unordered pair visited once; None if no rate is > 0."""
    count, width = table.shape
    height = max(1, TILE // max(1, width))
    best, found = 0.0, None
    for start in range(0, count, height):
        tile = inverse[start : start + height]
        block = np.empty_like(tile)
        stop = start + len(tile)
        up, down = np.empty((stop, len(tile))), np.empty((stop, len(tile)))
        for x in range(stop):
            combine(tile, table[x], out=block)
            np.maximum.reduce(block, axis=1, out=up[x])
            np.minimum.reduce(block, axis=1, out=down[x])
        forth = _rates(finish(up), apart[:stop, start:stop])
        back = _rates(-finish(down), apart[start:stop, :stop].T)
        for rates, forward in ((forth, True), (back, False)):
            row, column = divmod(int(np.argmax(rates)), rates.shape[1])
            if rates[row, column] > best:
                best = float(rates[row, column])
                found = (row, start + column) if forward else (start + column, row)
    return found


def _search_many(table: FloatArray, apart: FloatArray) -> tuple[int, int] | None:
    """Return the pair of rows with the largest difference of logarithms per distance, which is symmetric."""
    from scipy.spatial.distance import cdist

    count, width = table.shape
    largest = np.zeros((count, count))
    for first in range(0, width, WIDE):
        logs = np.log(table[:, first : first + WIDE])

        def compare(start: int, logs: FloatArray = logs) -> None:
            stop = min(start + TALL, count)
            part = largest[start:stop, :stop]
            np.maximum(part, cdist(logs[start:stop], logs[:stop], "chebyshev"), out=part)

        with Threads(available_cores()) as threads:
            # The last tiles are the longest.
            list(threads.each(compare, range(0, count, TALL)[::-1]))
    # In place: a matrix of 10 000 sites takes 800 MB.
    rates = np.divide(largest, apart, out=largest, where=apart > 0)
    one, other = np.unravel_index(int(np.argmax(rates)), rates.shape)
    if not rates[one, other] > 0:
        return None
    up, down = (float((table[x] / table[y]).max()) for x, y in ((one, other), (other, one)))
    return (int(one), int(other)) if up >= down else (int(other), int(one))


def _rates(gains: FloatArray, apart: FloatArray) -> FloatArray:
    return np.divide(gains, apart, out=np.zeros_like(gains), where=apart > 0)


def _at_no_distance(table: FloatArray, apart: FloatArray) -> _Steepest | None:
    """Return two different rows at distance 0, if there are any."""
    for row, other in np.argwhere(apart == 0):
        difference = table[row] - table[other]
        if (difference > 0).any():
            return _Steepest(math.inf, int(row), int(other), int(np.argmax(difference)))
    return None


def _log_ratio(large: float, small: float) -> float:
    if large <= 2 * small:
        # The difference is exact here, so a ratio close to one keeps full precision.
        return math.log1p((large - small) / small)
    ratio = large / small
    return math.log(ratio) if ratio < math.inf else math.log(large) - math.log(small)
