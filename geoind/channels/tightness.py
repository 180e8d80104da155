"""The largest log-ratio between two rows of a matrix per unit of their distance: exact, in bounded memory."""

import math
from typing import NamedTuple

import numpy as np

from geoind.arrays import FloatArray

__all__ = ["Steepest", "steepest_ratio", "steepest_slope"]

TILE = 20_000
"""Numbers in a tile of rows: it and its temporary stay in the processor's cache."""

SMALLEST_NORMAL = 2.0**-1021
"""Below this an inverse overflows."""


class Steepest(NamedTuple):
    """Where a table changes fastest: its rate, the two rows (upper first) and the column."""

    rate: float
    row: int
    other: int
    column: int


def steepest_ratio(matrix: FloatArray, apart: FloatArray) -> Steepest:
    """Return the largest ln(matrix[x, z] / matrix[y, z]) / apart[x, y] and where it is attained.

    Columns that are zero for some rows only make the rate infinite; columns of zeros say nothing. Pairs are
    compared by products with inverses, whose logarithm is good to 3e-16, and not by differences of logarithms,
    which lose 1e-14 where the entries are as small as 1e-40.
    """
    if (clash := _at_no_distance(matrix, apart)) is not None:
        return clash
    possible = matrix > 0
    mixed = np.flatnonzero(possible.any(axis=0) & ~possible.all(axis=0))
    if mixed.size:
        column = int(mixed[0])
        row, other = int(np.argmax(possible[:, column])), int(np.argmin(possible[:, column]))
        return Steepest(math.inf, row, other, column)
    columns = np.flatnonzero(possible.all(axis=0))
    table = matrix if len(columns) == matrix.shape[1] else matrix[:, columns]
    if table.size and table.min() >= SMALLEST_NORMAL:
        found = _search(table, 1 / table, np.multiply, np.log, apart)
    else:
        logs = np.log(table)
        found = _search(logs, -logs, np.add, np.positive, apart)
    if found is None:
        return Steepest(0.0, 0, 0, 0)
    row, other = found
    with np.errstate(over="ignore"):
        column = int(columns[np.argmax(matrix[row, columns] / matrix[other, columns])])
    gain = _log_ratio(float(matrix[row, column]), float(matrix[other, column]))
    return Steepest(gain / float(apart[row, other]), row, other, column)


def steepest_slope(table: FloatArray, apart: FloatArray) -> Steepest:
    """Return the largest (table[x, z] - table[y, z]) / apart[x, y] and where it is attained."""
    if (clash := _at_no_distance(table, apart)) is not None:
        return clash
    found = _search(table, -table, np.add, np.positive, apart)
    if found is None:
        return Steepest(0.0, 0, 0, 0)
    row, other = found
    column = int(np.argmax(table[row] - table[other]))
    gain = float(table[row, column] - table[other, column])
    return Steepest(gain / float(apart[row, other]), row, other, column)


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


def _rates(gains: FloatArray, apart: FloatArray) -> FloatArray:
    return np.divide(gains, apart, out=np.zeros_like(gains), where=apart > 0)


def _at_no_distance(table: FloatArray, apart: FloatArray) -> Steepest | None:
    """Return two different rows that are no distance apart, if there are any."""
    for row, other in np.argwhere(apart == 0):
        difference = table[row] - table[other]
        if (difference > 0).any():
            return Steepest(math.inf, int(row), int(other), int(np.argmax(difference)))
    return None


def _log_ratio(large: float, small: float) -> float:
    if large <= 2 * small:
        # The difference is exact here, so that a ratio close to one keeps all of its digits.
        return math.log1p((large - small) / small)
    ratio = large / small
    return math.log(ratio) if ratio < math.inf else math.log(large) - math.log(small)
