"""Symmetric matrices whose entries far from the diagonal are left out, and their Cholesky factors."""

from collections.abc import Callable
from functools import cache
from threading import Lock

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view
from scipy.linalg.lapack import dpbtrf, dpbtrs

from geoind.arrays import FloatArray, IntArray
from geoind.errors import SolverError

__all__ = ["Band", "lower_triangle"]

NUDGES = 1e-15, 1e-13, 1e-11, 1e-9, 1e-7
"""Relative shifts of the diagonal, tried in turn where rounding makes the matrix indefinite."""


@cache
def lower_triangle(size: int) -> npt.NDArray[np.bool_]:
    """Return which cells of a square matrix are on or below its diagonal; computed once for each size."""
    return np.tri(size, dtype=bool)


class Band:
    """The sum of small square matrices, at most `width` away from the diagonal.

    Parameters
    ----------
    order : (count,) array of int
        The place of each row on the diagonal: rows that belong together are close.
    width : int

    Examples
    --------
    >>> band = Band(np.arange(4), width=2)
    >>> band.add(np.array([0, 1]), 0, np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> band.add(np.array([2, 3]), 2, np.array([[4.0, 0.0], [0.0, 4.0]]))
    >>> band.factor()(np.array([3.0, 3.0, 4.0, 4.0])).round(6)
    array([1., 1., 1., 1.])
    """

    def __init__(self, order: IntArray, width: int) -> None:
        self.order, self.width = order, min(width, len(order) - 1)
        # Row j has the entries (j, j), (j + 1, j), ...: the columns of LAPACK's lower form.
        self.cells = np.zeros((len(order), self.width + 1))
        self.lock = Lock()

    def add(self, number: IntArray, centre: int, square: FloatArray) -> None:
        """Add a matrix of these rows; of rows farther than half the width from `centre` only the diagonal.

        Both parts of a positive semidefinite matrix are positive semidefinite, and so is the sum.
        """
        place = self.order[number]
        limit = self.width if self.width < len(self.order) - 1 else 2 * len(self.order)
        far = 2 * np.abs(place - self.order[centre]) > limit
        if far.any() or (np.diff(place) < 0).any():
            with self.lock:
                np.add.at(self.cells[:, 0], place[far], square[far, far])
            near = np.flatnonzero(~far)
            near = near[np.argsort(place[near], kind="stable")]
            place, square = place[near], square[near[:, None], near]
        # Entry (i, j) is cell i - j of row j: number j * width + i. Zeros above the diagonal may go anywhere.
        cell, entries = np.add.outer(place, place * self.width), square * lower_triangle(len(square))
        with self.lock:
            np.add.at(self.cells.reshape(-1), cell.reshape(-1), entries.reshape(-1))

    def factor(self) -> Callable[[FloatArray], FloatArray]:
        """Return a function that solves the system for one right-hand side."""
        count, width, order = len(self.cells), self.width, self.order
        scale = 1 / np.sqrt(self.cells[:, 0])
        self.cells *= scale[:, None]
        self.cells *= sliding_window_view(np.append(scale, np.zeros(width)), width + 1)[:count]
        for nudge in NUDGES:
            self.cells[:, 0] = 1 + nudge
            cholesky, failed = dpbtrf(self.cells.T.copy(order="F"), lower=1, overwrite_ab=1)
            if not failed:
                break
        else:
            raise SolverError("the Schur complement of the row sums could not be factored")

        def solve(right: FloatArray) -> FloatArray:
            along = np.empty_like(right)
            along[order] = right
            solution, _ = dpbtrs(cholesky, scale * along, lower=1, overwrite_b=1)
            return np.asarray((scale * solution)[order])

        return solve
