"""The Newton systems of the interior-point methods: one n x n block per output and one Schur complement."""

import numpy as np

from geoind.arrays import FloatArray
from geoind.errors import SolverError
from geoind.optimal import lapack
from geoind.optimal.cones import ActivePairs, Program
from geoind.parallel import Threads

__all__ = ["BlockSystem", "NewtonSystem", "factor_block", "factor_schur", "solve_schur"]

NUDGES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)
"""Relative diagonal shifts, tried in turn where rounding makes a block indefinite."""


REFINEMENTS = 1
NEGLIGIBLE = 1e-12
"""Defect of the Newton equations, in units of the largest cost, that has no effect on the gap."""


class BlockSystem:
    """Solve H dv = right + spread(du), row_sums(dv) = residual, where H has one block per output.

    H = B' D B, with the constraints B of a cone and D such that D B v are the multipliers. Each block is scaled by
    v and written as differences to one reference input plus an overall scale. The scale is its nearly null
    direction: H v = B' multiplier is known exactly, and at the optimum v' H v tends to 0. Without this change of
    basis cancellation limits the gap.

    Parameters
    ----------
    program : Program
    team : Threads
    """

    def __init__(self, program: Program, team: Threads) -> None:
        self.program = program
        self.team = team
        self.reference = program.reference
        self.rows = np.arange(len(program.cost))
        self.v = self.scale = np.empty(program.cost.shape)
        self.spare = np.empty(len(program.cost))
        self._schur = np.empty(0), np.empty((0, 0))

    def _solve_blocks(self, right: FloatArray) -> FloatArray:
        """Return the solutions of the factored blocks, in differences to the reference."""
        raise NotImplementedError

    def _press(self, step: FloatArray) -> FloatArray:
        """Return H step."""
        raise NotImplementedError

    def _apply_inverse(self, right: FloatArray) -> FloatArray:
        """Return H^-1 right, block by block."""
        scaled = right * self.v
        along = (self.scale * scaled).sum(axis=1) / self.spare
        scaled[self.rows, self.reference] = 0.0
        result = self._solve_blocks(scaled)
        result += along[:, None] * self.scale
        return np.multiply(result, self.v)

    def solve(self, right: FloatArray, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (dv, du), refined on both equations: they limit the precision of the bound and the row sums."""
        step = np.zeros_like(right)
        prices = np.zeros(len(residual))
        defect = right
        for attempt in range(1 + REFINEMENTS):
            step = step + self._apply_inverse(defect)
            missing = residual - self.program.row_sums(step)
            more = solve_schur(self._schur, missing)
            prices += more
            step = step + self._apply_inverse(self.program.spread(more))
            if attempt < REFINEMENTS:
                defect = right + self.program.spread(prices) - self._press(step)
                missing = residual - self.program.row_sums(step)
                if np.abs(defect).max() < NEGLIGIBLE and np.abs(missing).max() < 1e-15:
                    break
        return step, prices


class NewtonSystem(BlockSystem):
    """The system of the pairs of inputs: D = diag(multiplier / slack), and dense blocks."""

    def __init__(self, program: Program, team: Threads) -> None:
        super().__init__(program, team)
        outputs, n = program.cost.shape
        self.factors = np.empty((outputs, n, n))

    def factor(self, pairs: ActivePairs, v: FloatArray, slack: FloatArray, multipliers: FloatArray) -> None:
        """Factor the blocks and the Schur complement at an iterate."""
        outputs, n = v.shape
        size = outputs * n
        flat = v.ravel()
        stiffness = multipliers / slack
        diagonal: FloatArray = np.bincount(pairs.to_entry, stiffness, size).astype(np.float64)
        diagonal += np.bincount(pairs.from_entry, pairs.a**2 * stiffness, size)
        diagonal = (diagonal * flat * flat).reshape(v.shape)
        coupling = -pairs.a * stiffness * flat[pairs.from_entry] * flat[pairs.to_entry]
        at = self.reference[pairs.owner]
        coupling[(pairs.giver == at) | (pairs.taker == at)] = 0.0
        pull = pairs.adjoint(multipliers) * v
        pull[self.rows, self.reference] = 0.0
        gap = np.bincount(pairs.owner, slack * multipliers, outputs).astype(np.float64)
        self.v = v
        self.scale = np.ones_like(v)
        self._pairs, self._stiffness = pairs, stiffness

        def share_of(start: int, stop: int) -> FloatArray:
            piece = slice(*pairs.start[[start, stop]])
            cells = pairs.cell[piece] - start * n * n
            blocks = self.factors[start:stop]
            blocks[:] = np.bincount(cells, coupling[piece], (stop - start) * n * n).reshape(blocks.shape)
            return self._factor_blocks(start, stop, diagonal, pull, gap)

        schur = sum(self.team.pieces(outputs, share_of))
        self._schur = factor_schur(np.asarray(schur))

    def _factor_blocks(
        self, start: int, stop: int, diagonal: FloatArray, pull: FloatArray, gap: FloatArray
    ) -> FloatArray:
        """Factor some blocks in place; return their share of the Schur complement, its lower triangle."""
        average, weight = self.program.average, self.program.weight
        share = np.zeros((len(self.program.orbit_size),) * 2)
        for j in range(start, stop):
            factor = factor_block(self.factors[j], diagonal[j], self.reference[j])
            shift = lapack.solve(factor, pull[j])
            self.scale[j] -= shift
            # The complement is positive in exact arithmetic; the lower limit keeps it positive in doubles.
            self.spare[j] = max(gap[j] - pull[j] @ shift, 1e-6 * gap[j])
            direction = self.v[j] * self.scale[j]
            if average is None:
                inverse = lapack.inverse(factor)
                inverse[self.reference[j], self.reference[j]] = 0.0
                inverse *= self.v[j][:, None]
                inverse *= self.v[j]
                share += inverse
            else:
                scaled = average * self.v[j]
                scaled[:, self.reference[j]] = 0.0
                half = lapack.half_solve(factor, scaled)
                share += weight[j] ** 2 * (half @ half.T)
                direction = average @ direction
            direction = direction * (weight[j] / np.sqrt(self.spare[j]))
            share += np.outer(direction, direction)
        return share

    def _solve_blocks(self, right: FloatArray) -> FloatArray:
        result = np.empty_like(right)

        def back_substitute(start: int, stop: int) -> None:
            for j in range(start, stop):
                result[j] = lapack.solve(self.factors[j], right[j])

        self.team.pieces(len(result), back_substitute)
        return result

    def _press(self, step: FloatArray) -> FloatArray:
        return self._pairs.adjoint(self._stiffness * self._pairs.slack(step))


def factor_block(block: FloatArray, diagonal: FloatArray, reference: int) -> FloatArray:
    """Return the Cholesky factor, in place, of a block whose lower triangle contains the couplings."""
    n = len(block)
    couplings = block.copy()
    for nudge in NUDGES:
        block[:] = couplings
        block.reshape(-1)[:: n + 1] = diagonal * (1 + nudge)
        block[reference, reference] = 1.0
        if lapack.factor(block):
            return block
    raise SolverError("a block of the Newton system could not be factored")


def factor_schur(schur: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a scale and the Cholesky factor of the scaled matrix, whose lower triangle is overwritten."""
    scale = 1 / np.sqrt(np.diag(schur))
    schur *= scale[:, None]
    schur *= scale
    rows = range(len(schur))
    # LAPACK leaves the upper triangle as it is. The other one is restored from there, without a second matrix.
    for row in rows:
        schur[:row, row] = schur[row, :row]
    for nudge in NUDGES[1:]:
        np.fill_diagonal(schur, 1 + 0.1 * nudge)
        if lapack.factor(schur):
            return scale, schur
        for row in rows:
            schur[row, :row] = schur[:row, row]
    raise SolverError("the Schur complement of the row sums could not be factored")


def solve_schur(factored: tuple[FloatArray, FloatArray], right: FloatArray) -> FloatArray:
    """Return the solution of a system that `factor_schur` factored."""
    scale, cholesky = factored
    return np.asarray(scale * lapack.solve(cholesky, scale * right))
