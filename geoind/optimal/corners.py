"""The corner constraints of a grid's interpolated columns, and their Newton system.

For output z let v(i) = K(z|i). At site i, with a neighbour e in its row and a neighbour n in its column, the slope
of the interpolated column is hypot(v(e) - v(i), v(n) - v(i)) / cell, and it may be epsilon v(i) at most: a
second-order cone for each corner of each square of sites. A block of the Newton system couples a site with the
eight around it only, so that it is block tridiagonal, with one block for each row of the grid.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from geoind.arrays import FloatArray
from geoind.errors import SolverError
from geoind.optimal.cones import Program
from geoind.optimal.newton import NUDGES, BlockSystem, factor_schur
from geoind.optimal.second_order import Scaling, dot
from geoind.parallel import Threads

__all__ = ["CornerSystem", "Corners"]

CHUNK = 1 << 18
"""Numbers of a block column of the inverses that are in memory at a time, for each thread."""


PART = 1 << 13
"""Cones that are computed with at a time."""


class Corners:
    """The cones of all corners, in arrays of shape (3, outputs, 4, rows - 1, columns - 1).

    Parameters
    ----------
    outputs, rows, columns : int
    step : float
        Epsilon times the side of a cell.
    """

    def __init__(self, outputs: int, rows: int, columns: int, step: float) -> None:
        self.rows, self.columns, self.step = rows, columns, step
        self.shape = outputs, 4, rows - 1, columns - 1

    def __len__(self) -> int:
        return int(np.prod(self.shape))

    def parts(self) -> list[slice]:
        """Return parts of the outputs, each with a few thousand cones."""
        height = max(1, PART // int(np.prod(self.shape[1:])))
        return [slice(start, start + height) for start in range(0, self.shape[0], height)]

    def of_sites(self, values: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield views of the values at each corner's site, its neighbour in the row, and that in the column."""
        table = values.reshape(len(values), self.rows, self.columns)
        for y, x in product((0, 1), (0, 1)):
            row, column = slice(y, self.rows - 1 + y), slice(x, self.columns - 1 + x)
            beyond, beside = slice(1 - y, self.rows - y), slice(1 - x, self.columns - x)
            yield table[:, row, column], table[:, row, beside], table[:, beyond, column]

    def slack(self, columns: FloatArray) -> FloatArray:
        """Return (step v(i), v(e) - v(i), v(n) - v(i)) for each corner."""
        result = np.empty((3, len(columns), *self.shape[1:]))
        for corner, (site, beside, beyond) in enumerate(self.of_sites(columns)):
            np.multiply(self.step, site, out=result[0, :, corner])
            np.subtract(beside, site, out=result[1, :, corner])
            np.subtract(beyond, site, out=result[2, :, corner])
        return result

    def adjoint(self, multipliers: FloatArray) -> FloatArray:
        """Return the transpose of `slack`."""
        result = np.zeros((multipliers.shape[1], self.rows * self.columns))
        at_site = self.step * multipliers[0] - multipliers[1] - multipliers[2]
        for corner, (site, beside, beyond) in enumerate(self.of_sites(result)):
            site += at_site[:, corner]
            beside += multipliers[1, :, corner]
            beyond += multipliers[2, :, corner]
        return result

    def blocks(self, stiffness: tuple[FloatArray, ...], v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the blocks of each row of the grid, and those below them, of some columns' B' D B scaled by v."""
        rows, columns, step, count = self.rows, self.columns, self.step, len(v)
        d00, d01, d02, d11, d12, d22 = stiffness
        itself = step * (step * d00 - 2 * (d01 + d02)) + d11 + 2 * d12 + d22
        sideways, upwards = step * d01 - d11 - d12, step * d02 - d12 - d22
        diagonal = np.zeros((count, rows, columns))
        in_row, in_column = np.zeros((count, rows, columns - 1)), np.zeros((count, rows - 1, columns))
        rising, falling = np.zeros((2, count, rows - 1, columns - 1))
        for corner, (site, beside, beyond) in enumerate(self.of_sites(diagonal)):
            y, x = divmod(corner, 2)
            site += itself[:, corner]
            beside += d11[:, corner]
            beyond += d22[:, corner]
            in_row[:, y : rows - 1 + y] += sideways[:, corner]
            in_column[:, :, x : columns - 1 + x] += upwards[:, corner]
            across = falling if y == x else rising
            across += d12[:, corner]
        table, at = v.reshape(diagonal.shape), np.arange(columns)
        here, below = np.zeros((count, rows, columns, columns)), np.zeros((count, rows - 1, columns, columns))
        here[:, :, at, at] = diagonal * table**2
        here[:, :, at[1:], at[:-1]] = here[:, :, at[:-1], at[1:]] = in_row * table[:, :, 1:] * table[:, :, :-1]
        below[:, :, at, at] = in_column * table[:, 1:] * table[:, :-1]
        below[:, :, at[1:], at[:-1]] = rising * table[:, 1:, 1:] * table[:, :-1, :-1]
        below[:, :, at[:-1], at[1:]] = falling * table[:, 1:, :-1] * table[:, :-1, 1:]
        return here, below


class CornerSystem(BlockSystem):
    """The Newton system of the corners: D = W^-2 of the scaling, and block tridiagonal blocks."""

    def __init__(self, program: Program, corners: Corners, team: Threads) -> None:
        super().__init__(program, team)
        self.corners = corners
        self.parts = corners.parts()
        self.scalings: list[Scaling] = []
        outputs, rows, columns = len(program.cost), corners.rows, corners.columns
        # The inverse of each pivot block, and that inverse times the block to its right.
        self.inverses = np.empty((outputs, rows, columns, columns))
        self.follow = np.empty((outputs, rows - 1, columns, columns))

    def factor(self, v: FloatArray, multipliers: FloatArray) -> None:
        """Factor the blocks and the Schur complement at an iterate."""
        n = v.shape[1]
        self.v = v

        def share_of(start: int, stop: int) -> tuple[list[Scaling], list[FloatArray], FloatArray]:
            scalings, gaps, share = list[Scaling](), list[FloatArray](), np.zeros((n, n))
            for part in self.parts[start:stop]:
                slack = self.corners.slack(v[part])
                scaling = Scaling(slack, multipliers[:, part])
                scalings.append(scaling)
                point = scaling.inverse(slack)
                gaps.append(dot(point, point).sum(axis=(1, 2, 3)))
                self._eliminate(part, scaling)
                self._add_inverse(part, share)
            return scalings, gaps, share

        pieces = self.team.pieces(len(self.parts), share_of)
        self.scalings = [scaling for scalings, _, _ in pieces for scaling in scalings]
        gap = np.concatenate([gap for _, gaps, _ in pieces for gap in gaps])
        schur = np.asarray(sum(share for _, _, share in pieces))
        pull = self.corners.adjoint(multipliers) * v
        pull[self.rows, self.reference] = 0.0
        shift = self._solve_blocks(pull)
        self.scale = 1 - shift
        # The complement is positive in exact arithmetic; the lower limit keeps it positive in doubles.
        self.spare = np.maximum(gap - (pull * shift).sum(axis=1), 1e-6 * gap)
        direction = v * self.scale * (self.program.weight / np.sqrt(self.spare))[:, None]
        schur += direction.T @ direction
        if (average := self.program.average) is not None:
            schur = average @ (np.tril(schur) + np.tril(schur, -1).T) @ average.T
        self._schur = factor_schur(schur)

    def _eliminate(self, part: slice, scaling: Scaling) -> None:
        """Factor the blocks of some outputs."""
        corners = self.corners
        here, below = corners.blocks(scaling.stiffness(), self.v[part])
        y, x = np.divmod(self.reference[part], corners.columns)
        output = np.arange(len(here))
        here[output, y, x] = here[output, y, :, x] = 0.0
        here[output, y, x, x] = 1.0
        above, last = y > 0, y == corners.rows - 1
        below[output[above], y[above] - 1, x[above]] = 0.0
        below[output[~last], y[~last], :, x[~last]] = 0.0
        if self._pivot(part, here, below, 0.0):
            return
        for j in output:
            one = slice(part.start + j, part.start + j + 1)
            if not any(self._pivot(one, here[j : j + 1], below[j : j + 1], nudge) for nudge in NUDGES):
                raise SolverError("a block of the Newton system could not be factored")

    def _pivot(self, part: slice, here: FloatArray, below: FloatArray, nudge: float) -> bool:
        """Eliminate row by row; return whether every pivot block is positive definite."""
        inverses, follow, rows = self.inverses[part], self.follow[part], self.corners.rows
        at = np.arange(self.corners.columns)
        for y in range(rows):
            pivot = here[:, y] - below[:, y - 1] @ follow[:, y - 1] if y else here[:, 0].copy()
            pivot[:, at, at] += nudge * here[:, y, at, at]
            try:
                root = np.linalg.inv(np.linalg.cholesky(pivot))
            except np.linalg.LinAlgError:
                return False
            np.matmul(root.transpose(0, 2, 1), root, out=inverses[:, y])
            if y < rows - 1:
                np.matmul(inverses[:, y], below[:, y].transpose(0, 2, 1), out=follow[:, y])
        return True

    def _add_inverse(self, part: slice, share: FloatArray) -> None:
        """Add the block lower triangles of weight^2 V H^-1 V, in differences to the reference, to the share."""
        rows, columns = self.corners.rows, self.corners.columns
        table = self.v[part].reshape(-1, rows, columns)
        free = self.v[part].copy()
        free[np.arange(len(free)), self.reference[part]] = 0.0
        free = free.reshape(table.shape)
        weight = self.program.weight[part, None, None, None]
        pivots = self.inverses[part] * free[:, :, :, None] * free[:, :, None] * weight**2
        follow = -(self.follow[part] * free[:, :-1, :, None] / table[:, 1:, None])
        # Each block column of the inverse comes from the next one.
        one, other = np.empty((2, len(free), rows * columns, columns))
        for y in reversed(range(rows)):
            start, after = y * columns, (y + 1) * columns
            one[:, start:after] = pivots[:, y]
            if y < rows - 1:
                np.matmul(other[:, after:], follow[:, y].transpose(0, 2, 1), out=one[:, after:])
                one[:, start:after] += follow[:, y] @ one[:, after : after + columns]
            share[start:, start:after] += one[:, start:].sum(axis=0)
            one, other = other, one

    def _solve_blocks(self, right: FloatArray) -> FloatArray:
        rows, columns = self.corners.rows, self.corners.columns
        result = right.reshape(-1, rows, columns, 1).copy()

        def substitute(here: slice) -> None:
            part, inverses, follow = result[here], self.inverses[here], self.follow[here]
            for y in range(rows - 1):
                part[:, y + 1] -= follow[:, y].transpose(0, 2, 1) @ part[:, y]
            part[:] = inverses @ part
            for y in reversed(range(rows - 1)):
                part[:, y] -= follow[:, y] @ part[:, y + 1]

        list(self.team.each(substitute, self.parts))
        return result.reshape(right.shape)

    def _press(self, step: FloatArray) -> FloatArray:
        def press(number: int) -> FloatArray:
            return self.corners.adjoint(self.scalings[number].press(self.corners.slack(step[self.parts[number]])))

        return np.concatenate(list(self.team.each(press, range(len(self.parts)))))
