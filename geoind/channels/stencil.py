"""Matrices on a grid whose entries depend only on how far the report is from the truth, column-wise and row-wise.

Noise that ignores where it started gives every pair of cells at the same offset the same probability, but a cell
on the border also takes what falls outside. So a matrix of (columns * rows)^2 entries has only about
4 * columns * rows different ones. Along one axis of n cells these *cases* are numbered

    k      (0 <= k < n)   an inner cell k steps away
    n + k  (0 <= k < n)   the border cell k steps away, with everything beyond it
    2 n                   the only cell of an axis of length one: the whole line
"""

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.mechanisms.precision import SMALLEST_ENTRY, matrix_epsilon
from geoind.space.sites import Grid

__all__ = ["axis_cases", "loss_per_step", "spread_over"]


def loss_per_step(grid: Grid, epsilon: float) -> float:
    """Return the privacy loss per step of the lattice with which a matrix on the grid keeps epsilon per metre.

    Formulas speak of an ideal lattice. The grid's centres are doubles, and where coordinates are large (a national
    grid) two neighbours may be a little closer than a cell: what counts is how close they are.

    Examples
    --------
    >>> here, there = (Grid(x, 0, cell=0.1, columns=3, rows=1) for x in (0, 5e6))
    >>> loss_per_step(there, 1.0) < loss_per_step(here, 1.0) < 0.1
    True
    """
    west_to_east, south_to_north = grid.xy[: grid.columns, 0], grid.xy[:: grid.columns, 1]
    steps = np.concatenate([np.diff(west_to_east), np.diff(south_to_north)])
    # No distance on the grid is shorter, relative to the lattice's, than the shortest of its steps.
    shortest = float(steps.min(initial=grid.cell))
    if not shortest > 0:
        raise InvalidInputError(f"cell {grid.cell:g} is too small: coordinates as doubles do not tell cells apart")
    return matrix_epsilon(epsilon, closest=shortest) * shortest


def axis_cases(count: int) -> IntArray:
    """Return the case of each pair (truth, report) along an axis of `count` cells.

    Examples
    --------
    >>> axis_cases(3)
    array([[3, 1, 5],
           [4, 0, 4],
           [5, 1, 3]])
    """
    if count == 1:
        return np.array([[2]])
    place = np.arange(count)
    steps: IntArray = np.abs(place[:, None] - place)
    steps[:, [0, -1]] += count
    return steps


def spread_over(grid: Grid, masses: FloatArray) -> FloatArray:
    """Return the matrix on the grid from `masses[case along x, case along y]`.

    No entry is smaller than `SMALLEST_ENTRY`, so that nothing underflows to zero.
    """
    columns, rows = axis_cases(grid.columns), axis_cases(grid.rows)
    matrix = masses[columns[None, :, None, :], rows[:, None, :, None]].reshape(len(grid), len(grid))
    return np.maximum(matrix, SMALLEST_ENTRY)
