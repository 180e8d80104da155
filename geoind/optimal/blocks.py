"""An interior-point method for columns that are defined on some inputs only.

The structure is that of `interior`: one block of the Newton system per output, and one Schur complement of the
equations. The blocks here have the size of a neighbourhood, the equations are any sparse matrix, and each of them
has a remainder that is not negative. Slacks are variables of their own, so a constraint that joins the active set
may be broken for some iterations.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray, IntArray
from geoind.errors import SolverError
from geoind.optimal.block_newton import BlockNewton
from geoind.optimal.block_program import BlockProgram, Pairs
from geoind.optimal.extension import row_sums
from geoind.optimal.interior import outliers
from geoind.parallel import Threads

__all__ = ["BlockMethod"]

CORRECTORS = 3
MOST_ITERATIONS = 150
JOINING = 1e-6
"""Multiplier of a pair that joins, in units of balance: a larger one weakens the bound for many iterations."""
CLOSE = 0.1
"""Relative defect at which the conjugate gradients of a direction end, in units of the tolerance."""
FILLINGS, FILLED, LEAST_LEFT = 8, 1e-4, 0.2
"""Most last steps, for the rows only; what may be missing in a row, and what a step leaves of an entry."""
SETTLE_EVERY = 3
"""Iterations between two calls of `settle`."""
OWN_STEPS, CAREFUL = 0.1, 0.5
"""Share of the outputs, and of the equations, that may take shorter steps than all others: among many there is
always one that allows a short step only. Rows do not sum to 1 then, and some prices are too high: the next steps
correct both. Columns take this part of such a step where the rows lack more than the products, and prices where
the products are within the tolerance."""


@dataclass(frozen=True)
class _State:
    """An iterate: columns, prices, remainders, and the slacks and multipliers of the pairs."""

    v: FloatArray
    price: FloatArray
    rest: FloatArray
    rest_multiplier: FloatArray
    slack: FloatArray
    multiplier: FloatArray
    cells: IntArray


class _Lengths:
    """The lengths of a step that keep all products positive: a common one, and shorter ones of some groups.

    A group is an output with its pairs, or an equation with its remainder.

    Parameters
    ----------
    relative : (pairs + equations,) array
        Change of every slack or multiplier in a step of length 1, relative to its value.
    start : (outputs + 1,) array of int
        The first pair of each output; every output has one.
    part : float
        The common length is this part of what all but a tenth of the groups allow, or what all of them allow if
        that is longer.
    """

    def __init__(self, relative: FloatArray, start: IntArray, part: float = 1.0) -> None:
        worst = np.minimum.reduceat(relative[: start[-1]], start[:-1])
        self.own, self.rest = (-1 / np.minimum(some, -1.0) for some in (worst, relative[start[-1] :]))
        self.common = min(
            max(float(some.min()), part * float(np.quantile(some, OWN_STEPS))) for some in (self.own, self.rest)
        )
        self.count = np.diff(start)

    def of(self, fraction: float) -> tuple[float, FloatArray, FloatArray]:
        """Return the common length, that of each output, and that of each product, for this part of a step."""
        common = min(1.0, fraction * self.common)
        own = np.minimum(common, fraction * self.own)
        return common, own, np.concatenate([np.repeat(own, self.count), np.minimum(common, fraction * self.rest)])


class BlockMethod:
    """Mehrotra's predictor-corrector with Gondzio's correctors on a `BlockProgram`.

    Parameters
    ----------
    program : BlockProgram
        Costs in units of the largest.
    near : (n, n) array of bool
        Pairs of different inputs that are active from the beginning.
    start : (entries,) array
        The first columns, positive.
    team : Threads
    """

    def __init__(
        self, program: BlockProgram, near: npt.NDArray[np.bool_], start: FloatArray, team: Threads
    ) -> None:
        self.program, self.team = program, team
        blocks, n = program.blocks, len(program.right)
        self.newton: BlockNewton
        self.chosen = np.zeros(blocks.corner[-1], dtype=bool)
        for j in range(len(blocks)):
            kept = blocks.member[blocks.entries(j)]
            square = blocks.square(self.chosen, j)
            square[:] = near[kept[:, None], kept]
            reference = blocks.reference[j] - blocks.start[j]
            square[reference] = True
            # The entry of the reference needs a constraint of its own, too.
            square[:, reference] |= not square[:, reference].sum() > 1
            square[reference, reference] = False
        self.pairs = Pairs(program, np.flatnonzero(self.chosen))
        self.early: _State | None = None
        self.close = CLOSE
        self.v = start * (0.95 / (program.equations @ start))[blocks.member]
        self.rest = np.full(n, 0.05)
        self.price = np.full(n, -1.0)
        self.rest_multiplier = program.rest_cost - self.price
        self.slack = np.maximum(self.pairs.slack(self.v), 0.05 * self.v[self.pairs.target])
        self.multiplier = self._first_multipliers()

    def _first_multipliers(self) -> FloatArray:
        """Return multipliers that make the first prices feasible: lambda(i, k) = l(k), from a dominant system."""
        blocks, program = self.program.blocks, self.program
        wanted = program.cost - program.adjoint @ self.price
        found = np.empty_like(wanted)

        def dominant(start: int, stop: int) -> None:
            for j in range(start, stop):
                here, chosen = blocks.entries(j), blocks.square(self.chosen, j)
                kept = blocks.member[here]
                ratio = np.where(chosen, program.ratio[kept[:, None], kept], 0.0)
                some = np.linalg.solve(np.diag(chosen.sum(axis=0).astype(np.float64)) - ratio, wanted[here])
                found[here] = some if some.min() > 0 else np.abs(some).mean()

        self.team.pieces(len(blocks), dominant)
        return np.asarray(found[self.pairs.target])

    # ------------------------------------------------------------------------------------------------- the search
    def run(
        self,
        tolerance: float,
        *,
        enough: float,
        deadline: float,
        progress: Callable[[float], None],
        settle: Callable[[FloatArray], BlockProgram] | None = None,
    ) -> None:
        """Iterate until the bound is enough, the gap is within the tolerance or the time is over.

        Parameters
        ----------
        tolerance : float
            Relative gap of the program.
        enough : float
            A bound to stop at; minus infinity to stop where the products are within the tolerance: no bounds are
            computed then, and rows need not sum to 1.
        deadline : float
            Time of `perf_counter`.
        progress : callable
            Called with the best bound after each iteration.
        settle : callable, optional
            Returns the program with rows for the present columns; called while the gap is large.
        """
        self.newton = BlockNewton(self.program.blocks, self.team)
        best, lacking, bounded = -np.inf, np.inf, enough > -np.inf
        self.close = CLOSE * tolerance
        for iteration in range(MOST_ITERATIONS):
            objective = float(self.program.cost @ self.v + self.program.rest_cost @ self.rest)
            if bounded:
                bound, lacking = self._bound()
                best = max(best, bound)
            products = float(self.multiplier @ self.slack + self.rest_multiplier @ self.rest)
            # What the sums of the rows are away from 1, in units of the objective.
            missing = float(np.abs(self._residual()) @ np.abs(self.price))
            progress(best)
            if self.early is None and products < 0.1 * objective:
                self.early = self._state()
            # The products of slacks and multipliers are the gap of columns and prices that are both feasible.
            close = products < tolerance * objective
            proven = best >= enough if bounded else close
            tight = close and missing + lacking < tolerance * objective
            if proven or tight or time.perf_counter() > deadline:
                break
            if settle is not None and products > 0.05 * objective and iteration % SETTLE_EVERY == 2:
                self.program = settle(self.v)
            if products > 0.5 * tolerance * objective:
                self._join(self._broken())
            least = 0.05 * tolerance * objective / len(self.pairs)
            try:
                # Near the optimum numbers may overflow; every bound is checked, and so is every channel.
                with np.errstate(all="ignore"):
                    behind = bounded and missing > products
                    self._step(least, CAREFUL if behind else 1.0, CAREFUL if close else 1.0)
            except SolverError:
                break

    def columns(self, settle: Callable[[FloatArray], BlockProgram]) -> FloatArray:
        """Return the columns after more Newton steps, for the row sums only, each with rows for its columns.

        Their length is 1, so some pairs of small entries may be broken. They are mended before the next step,
        which corrects what that adds to the rows.
        """
        v, self.close = self.v, CLOSE / 100
        best, least = v, np.inf
        with suppress(SolverError), np.errstate(all="ignore"):
            self._factor()
            zero, no_rest = np.zeros_like(v), np.zeros_like(self.rest)
            for left in reversed(range(FILLINGS + 1)):
                # Of the extended columns: on a large map what is far away from an output adds up, too.
                missing = 1 - row_sums(self.program.blocks, v, self.program.ratio, self.team)
                worst = float(np.abs(missing).max())
                if worst < least:
                    best, least = v, worst
                if not (left and FILLED < worst < np.inf):
                    break
                self.program = settle(v)
                step, _, _ = self.newton.solve(self.program, zero, no_rest, missing, self.close)
                v = self._mended(np.maximum(v + step, LEAST_LEFT * v))
        # They take more memory than the matrix that is made of the columns. Only `reopen` may follow.
        del self.newton, self.program
        return best

    def _mended(self, v: FloatArray) -> FloatArray:
        """Return the least columns above these that satisfy all pairs of the blocks."""
        blocks, ratio, found = self.program.blocks, self.program.ratio, np.empty_like(v)

        def work(start: int, stop: int) -> None:
            for j in range(start, stop):
                here = blocks.entries(j)
                kept = blocks.member[here]
                found[here] = (ratio[kept[:, None], kept] * v[here][:, None]).max(axis=0)

        self.team.pieces(len(blocks), work)
        return found

    def _bound(self) -> tuple[float, float]:
        """Return a bound on the program, and by how much prices were lowered until they are dual feasible.

        The equations of the inputs have no negative entries, so a lower price only relaxes the other conditions.
        """
        program, n = self.program, len(self.program.ratio)
        # Lower prices of the other equations change the conditions, which are computed with them.
        price = np.append(self.price[:n], np.minimum(self.price, program.rest_cost)[n:])
        left = program.cost - program.adjoint @ price - self.pairs.adjoint(self.multiplier)
        short = np.maximum(0.0, price - program.rest_cost)
        np.maximum.at(short, program.blocks.member, -left)
        lost = float(short @ program.right)
        return (float(price @ program.right) - lost, lost) if np.isfinite(short).all() else (-np.inf, np.inf)

    def _broken(self) -> IntArray:
        """Return the cells of the pairs that the present columns break and that are not active yet."""
        blocks, ratio = self.program.blocks, self.program.ratio

        def search(start: int, stop: int) -> list[IntArray]:
            found = []
            for j in range(start, stop):
                here = blocks.entries(j)
                kept, v = blocks.member[here], self.v[here]
                asked = ratio[kept[:, None], kept] * v[:, None]
                np.fill_diagonal(asked, 0.0)
                if (asked.max(axis=0) >= v).any():
                    broken = (asked >= v) & ~blocks.square(self.chosen, j)
                    found.append(blocks.corner[j] + np.flatnonzero(broken))
            return found

        parts = [part for some in self.team.pieces(len(blocks), search) for part in some]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def _join(self, cells: IntArray) -> None:
        """Add pairs with a slack of their own and nearly no multiplier: a primal residual, but no dual one."""
        if not len(cells):
            return
        self.chosen[cells] = True
        added = Pairs(self.program, cells)
        balance = float(self.multiplier @ self.slack) / len(self.pairs)
        slack = np.maximum(0.2 * self.v[added.target], added.slack(self.v))
        every = np.concatenate([self.pairs.cells, cells])
        order = np.argsort(every, kind="stable")
        self.slack = np.concatenate([self.slack, slack])[order]
        self.multiplier = np.concatenate([self.multiplier, JOINING * balance / slack])[order]
        self.pairs = Pairs(self.program, every[order], np.concatenate([self.pairs.a, added.a])[order])

    # ------------------------------------------------------------------------------------------- another program
    def _state(self) -> _State:
        return _State(
            self.v,
            self.price,
            self.rest,
            self.rest_multiplier,
            self.slack,
            self.multiplier,
            self.pairs.cells,
        )

    def reopen(self, program: BlockProgram) -> None:
        """Continue with a program of other costs of the rest and more equations.

        The iteration begins at an earlier iterate, which is well centred, with all pairs that are active now.
        """
        state, cells = self.early or self._state(), self.pairs.cells
        self.program, self.v, self.slack, self.multiplier = program, state.v, state.slack, state.multiplier
        self.pairs = Pairs(program, state.cells)
        self._join(cells[~np.isin(cells, state.cells)])
        balance = float(self.multiplier @ self.slack) / len(self.pairs)
        first = len(state.rest)
        multiplier = np.maximum(program.rest_cost[:first] - state.price, balance / 0.05)
        room = np.maximum((program.right - program.equations @ self.v)[first:], 0.05)
        small = 1e-2 * balance / room
        self.price = np.concatenate([state.price, -small])
        self.rest_multiplier = np.concatenate([multiplier, small])
        self.rest = np.concatenate([np.maximum(balance / multiplier, 1e-6), room])

    # ---------------------------------------------------------------------------------------------------- a step
    def _factor(self) -> None:
        """Factor Newton's system at the present iterate."""
        stiffness, softness = self.multiplier / self.slack, self.rest / self.rest_multiplier
        self.newton.factor(self.program, self.pairs, self.v, stiffness, softness)

    def _residual(self) -> FloatArray:
        """Return what is missing in the equations."""
        return np.asarray(self.program.right - self.program.equations @ self.v - self.rest)

    def _step(self, least: float, part: float, dual_part: float) -> None:
        """Move to the next iterate.

        `least` is the smallest product of slack and multiplier to aim at. `part` and `dual_part` are those of
        `_Lengths`, for columns and for prices.
        """
        program, pairs, count = self.program, self.pairs, len(self.pairs)
        blocks = program.blocks
        slack = np.concatenate([self.slack, self.rest])
        multiplier = np.concatenate([self.multiplier, self.rest_multiplier])
        mean = float(slack @ multiplier) / len(slack)
        self._factor()
        residual = self._residual()
        missing = np.concatenate([pairs.slack(self.v) - self.slack, np.zeros(len(self.rest))])
        dual = program.adjoint @ self.price - program.cost
        rest_dual = self.price - program.rest_cost

        def direction(product: FloatArray, whole: bool) -> tuple[FloatArray, ...]:
            """Return (dv, dprice, dslack, dmultiplier) for wanted changes of the products slack * multiplier."""
            pushed = ((product - multiplier * missing) if whole else product) / slack
            right, rest_right = pairs.adjoint(pushed[:count]), pushed[count:]
            if whole:
                right, rest_right = right + dual, rest_right + rest_dual
            wanted = residual if whole else np.zeros_like(residual)
            dv, drest, dprice = self.newton.solve(program, right, rest_right, wanted, self.close)
            dslack = np.concatenate([pairs.slack(dv), drest]) + (missing if whole else 0.0)
            return dv, dprice, dslack, (product - multiplier * dslack) / slack - (multiplier if whole else 0.0)

        def lengths(found: tuple[FloatArray, ...]) -> tuple[_Lengths, _Lengths]:
            return (
                _Lengths(found[2] / slack, pairs.start, part),
                _Lengths(found[3] / multiplier, pairs.start, dual_part),
            )

        found = direction(np.zeros_like(slack), True)
        (_, _, primal), (_, _, step) = (some.of(1.0) for some in lengths(found))
        ahead = float((slack + primal * found[2]) @ (multiplier + step * found[3])) / len(slack)
        aim = min(max((max(ahead, 0.0) / mean) ** 3 * mean, 1e-6 * mean, least), max(mean, least))
        found = direction(aim - found[2] * found[3], True)
        allowed = lengths(found)
        for _ in range(CORRECTORS):
            if min(some.common for some in allowed) > 0.9:
                break
            (_, _, primal), (_, _, step) = (some.of(1.0) for some in allowed)
            ahead_slack = slack + np.minimum(1.0, 1.5 * primal + 0.1) * found[2]
            ahead_multiplier = multiplier + np.minimum(1.0, 1.5 * step + 0.1) * found[3]
            more = direction(outliers(ahead_slack * ahead_multiplier, aim), False)
            better = tuple(one + other for one, other in zip(found, more, strict=True))
            further = lengths(better)
            if sum(some.common for some in further) <= 1.02 * sum(some.common for some in allowed):
                break
            allowed, found = further, better
        if not all(np.isfinite(part).all() for part in found):
            raise SolverError("the Newton system has no finite solution")
        fraction = 0.9 if min(some.common for some in allowed) < 0.9 else 0.99
        (_, own, primal), (common, _, step) = (some.of(fraction) for some in allowed)
        dv, dprice, dslack, dmultiplier = found
        slack, multiplier = slack + primal * dslack, multiplier + step * dmultiplier
        inside = _Lengths(np.append(dv / self.v, 0.0), blocks.start).own
        self.v = self.v + np.minimum(own, 0.9 * inside)[blocks.owner] * dv
        self.price = self.price + common * dprice
        self.slack, self.rest = slack[:count], slack[count:]
        self.multiplier, self.rest_multiplier = multiplier[:count], multiplier[count:]
