"""From columns on neighbourhoods to a private matrix whose rows sum to 1.

A column that is known at some inputs is extended to all by k(x) = max over known y of a(y, x) k(y), the least
extension whose logarithm is epsilon-Lipschitz (McShane). Its rows sum to nearly 1. Entries are then lowered or
raised within their cones, and one column, which belongs to the best report for all inputs, takes the remaining
difference.
"""

from contextlib import suppress

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray, IntArray
from geoind.channels.channel import Channel
from geoind.channels.extended import ExtendedMatrix
from geoind.distances import euclidean
from geoind.errors import InvalidInputError
from geoind.optimal.block_program import Blocks
from geoind.parallel import Threads, available_cores
from geoind.space.sites import Sites

__all__ = ["extended_channel", "private_matrix", "row_sums"]

SWEEPS = 12
EXACT = 1e-9
"""Difference of a row sum from 1 that the last column takes without a noticeable loss."""
IMPLIED = 1e-14
"""Relative difference up to which an entry is the one that another entry asks for: rounding."""


def extended_channel(
    inputs: Sites, outputs: Sites, matrix: FloatArray, kept: tuple[Blocks, float, int]
) -> Channel | None:
    """Return the channel of a matrix, stored as an `ExtendedMatrix`; None if its entries are too small for it.

    `kept` is that of a `Solution` for Euclidean distances. Of its entries those remain that no other one of the
    column asks for; the others follow from the triangle inequality.
    """
    blocks, epsilon, report = kept
    value = matrix[blocks.member, blocks.owner]

    def work(start: int, stop: int) -> list[npt.NDArray[np.bool_]]:
        found = []
        for j in range(start, stop):
            here = blocks.entries(j)
            xy, column = inputs.xy[blocks.member[here]], value[here]
            asked = np.exp(-epsilon * euclidean(xy, xy)) * column[:, None]
            np.fill_diagonal(asked, 0.0)
            found.append(column > asked.max(axis=0) * (1 + IMPLIED))
        return found

    with Threads(available_cores()) as team:
        needed = np.concatenate([some for part in team.pieces(len(blocks), work) for some in part])
    needed &= blocks.owner != report
    entries = blocks.member[needed], blocks.owner[needed], value[needed]
    with suppress(InvalidInputError):
        return Channel(
            inputs, outputs, ExtendedMatrix(inputs, len(blocks), epsilon, entries, report, matrix[:, report])
        )
    return None


def private_matrix(
    blocks: Blocks, v: FloatArray, ratio: FloatArray, cost: FloatArray, entry_cost: FloatArray, team: Threads
) -> tuple[FloatArray, int]:
    """Return the (inputs, outputs) matrix of columns that are known on their blocks, and the report of the rest.

    Parameters
    ----------
    blocks : Blocks
    v : (entries,) array
        The columns, positive.
    ratio : (n, n) array
        K(x, z) >= ratio[y, x] K(y, z) holds for all pairs of inputs and all outputs of the result.
    cost : (inputs, outputs) array
        Prior mass times loss.
    entry_cost : (entries,) array
        The same for the entries.
    team : Threads
    """
    # McShane's formula also mends pairs of kept inputs that the solver left out.
    columns = np.empty((len(blocks), len(ratio)))
    matrix = columns.T
    _extend(blocks, v, ratio, columns, team)
    order = np.lexsort((entry_cost, blocks.member))
    for sweep in range(SWEEPS):
        v = matrix[blocks.member, blocks.owner]
        missing = 1 - matrix.sum(axis=1)
        if np.abs(missing).max() < EXACT:
            break
        # Lowering keeps the cones because it ends at max a(y, x) k(y), and that only falls; raising likewise.
        low, high = _room(blocks, v, ratio, team)
        if sweep % 2 == 0:
            v = v - _take(blocks.member, low, np.maximum(-missing, 0.0), order[::-1])
        else:
            v = v + _take(blocks.member, high, np.maximum(missing, 0.0), order)
        _extend(blocks, v, ratio, columns, team)
    report = int(np.argmin(cost.sum(axis=0)))
    return _with_rows_of_one(matrix, ratio, report), report


def row_sums(blocks: Blocks, v: FloatArray, ratio: FloatArray, team: Threads) -> FloatArray:
    """Return the sums of the rows of the extended columns, which are not kept."""

    def work(start: int, stop: int) -> FloatArray:
        total = np.zeros(len(ratio))
        for j in range(start, stop):
            total += _extended(blocks, j, v, ratio)
        return total

    return np.asarray(np.sum(team.pieces(len(blocks), work), axis=0))


def _extend(blocks: Blocks, v: FloatArray, ratio: FloatArray, columns: FloatArray, team: Threads) -> None:
    """Write the extended columns."""

    def work(start: int, stop: int) -> None:
        for j in range(start, stop):
            columns[j] = _extended(blocks, j, v, ratio)

    team.pieces(len(blocks), work)


def _extended(blocks: Blocks, j: int, v: FloatArray, ratio: FloatArray) -> FloatArray:
    """Return the least column above the known entries of an output that satisfies every pair."""
    here, column, asked = blocks.entries(j), np.zeros(len(ratio)), np.empty(len(ratio))
    for number, entry in zip(blocks.member[here].tolist(), v[here].tolist(), strict=True):
        # One row at a time stays in the processor's cache. The ratio is symmetric, and rows are contiguous.
        np.multiply(ratio[number], entry, out=asked)
        np.maximum(column, asked, out=column)
    return column


def _room(blocks: Blocks, v: FloatArray, ratio: FloatArray, team: Threads) -> tuple[FloatArray, FloatArray]:
    """Return how far each entry may be lowered, or raised, while the others stay."""
    low, high = np.empty_like(v), np.empty_like(v)

    def work(start: int, stop: int) -> None:
        for j in range(start, stop):
            here = blocks.entries(j)
            kept, column = blocks.member[here], v[here]
            between = ratio[kept[:, None], kept]
            np.fill_diagonal(between, 0.0)
            low[here] = column - (between * column[:, None]).max(axis=0)
            np.fill_diagonal(between, 1e-300)
            high[here] = (column[:, None] / between).min(axis=0) - column

    team.pieces(len(blocks), work)
    # A little less than the room, because it is a rounded difference.
    return np.maximum(low, 0.0) * (1 - 1e-9), np.maximum(high, 0.0) * (1 - 1e-9)


def _take(row: IntArray, room: FloatArray, amount: FloatArray, order: IntArray) -> FloatArray:
    """Return how much of each entry's room is used to collect an amount in every row, in the given order."""
    by_row = order[np.argsort(row[order], kind="stable")]
    rows, rooms = row[by_row], room[by_row]
    total = np.cumsum(rooms)
    first = np.searchsorted(rows, np.arange(len(amount)))
    before = np.concatenate([[0.0], total])[first]
    used = np.clip(amount[rows] - (total - rooms - before[rows]), 0.0, rooms)
    taken = np.empty_like(room)
    taken[by_row] = used
    return taken


def _with_rows_of_one(matrix: FloatArray, ratio: FloatArray, report: int) -> FloatArray:
    """Return the matrix scaled to rows of at most 1, with the rest of every row at one report.

    The rest f need not be in the cone, but f + t is if t (1 - a) >= a f(y) - f(x) for all pairs.
    """
    matrix /= max(1.0, float(matrix.sum(axis=1).max()))
    rest = np.maximum(1 - matrix.sum(axis=1), 0.0)
    constant = 0.0
    for x, row in enumerate(ratio):
        lacking = row * rest[x] - rest
        needed = np.flatnonzero(lacking > 0)
        constant = max(constant, float((lacking[needed] / (1 - row[needed])).max(initial=0.0)))
    matrix[:, report] += rest + constant
    matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix
