"""The game between a user and an adversary (Shokri et al., CCS 2012) as a linear program.

The user chooses f(z|x); the adversary observes z and guesses. With e_z the adversary's error at report z,

    e_z <= sum_x mass(x) f(z|x) error(x, guess)   for every guess,
    sum_xz mass(x) f(z|x) loss(x, z) <= max_loss,   sum_z f(z|x) = 1.

Pairs (x, z) in one orbit of the problem's symmetries share a variable. Of many guesses only those near the
report, and those good without any report, are constraints from the start; others are added when the solution
violates them.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from geoind.arrays import FloatArray, IntArray
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.distances import Distance, euclidean
from geoind.errors import InfeasibleError, SolverError
from geoind.optimal.problem import as_loss
from geoind.optimal.symmetry import Symmetry, symmetry_of
from geoind.space.sites import Sites

__all__ = ["Game", "least_worst_loss"]

ROUNDING = 1e-14


class Game:
    """The game between a user and adversaries with the given priors, restricted to inputs that have mass.

    Parameters
    ----------
    priors : list of Prior
        On the same sites; the first one is the user's.
    outputs : Sites or None
        The possible reports; default: the priors' sites.
    loss, adversary_loss : Distance
    symmetric : bool
        Whether strategies must have the problem's symmetries.
    """

    def __init__(
        self,
        priors: list[Prior],
        outputs: Sites | None,
        loss: Distance,
        adversary_loss: Distance,
        *,
        symmetric: bool,
    ) -> None:
        self.inputs = priors[0].sites
        self.outputs = self.inputs if outputs is None else outputs
        n, m = len(self.inputs), len(self.outputs)
        cost = as_loss(loss(self.inputs.xy, self.outputs.xy), (n, m))
        error = as_loss(adversary_loss(self.inputs.xy, self.inputs.xy), (n, n), "adversary_loss")
        masses = np.column_stack([prior.mass for prior in priors])
        whole = Symmetry(np.arange(n)[None], np.arange(m)[None])
        if symmetric:
            whole = symmetry_of(self.inputs, self.outputs, error, cost, masses)
        self.support = np.flatnonzero(masses.any(axis=1))
        number = np.full(n, -1)
        number[self.support] = np.arange(len(self.support))
        self.masses = list(np.ascontiguousarray(masses[self.support].T))
        self.loss, self.error = cost[self.support], error[self.support]
        restricted = Symmetry(number[whole.inputs[:, self.support]], whole.outputs)
        self.program = _GameProgram(self.masses, self.loss, self.error, restricted, whole.inputs, cost)

    def expected_loss(self, matrix: FloatArray) -> float:
        """Return the expected loss of a strategy under the first prior."""
        return float(self.masses[0] @ (matrix * self.loss).sum(axis=1))

    def adversary_error(self, matrix: FloatArray, turn: int = 0) -> float:
        """Return the error of the best guesses under one of the priors."""
        joint = self.masses[turn][:, None] * matrix
        return float((joint.T @ self.error).min(axis=1).sum())

    def error_without_report(self) -> float:
        """Return the error of the best single guess under the first prior."""
        return float((self.masses[0] @ self.error).min())

    def cheapest_reports(self) -> FloatArray:
        """Return the strategy that always sends the report of least loss."""
        matrix = np.zeros_like(self.loss)
        matrix[np.arange(len(matrix)), self.loss.argmin(axis=1)] = 1.0
        return matrix

    def within_loss(self, matrix: FloatArray, max_loss: float) -> FloatArray:
        """Return the strategy, mixed with as much of the cheapest one as brings the loss within bounds."""
        cheap = self.cheapest_reports()
        # The rounding of a sum of products depends on the order of its terms, so a margin is left.
        max_loss -= ROUNDING * abs(max_loss)
        over, least = self.expected_loss(matrix) - max_loss, self.expected_loss(cheap)
        share = over / max(over + max_loss - least, np.finfo(float).tiny)
        while over > 0:
            mixed = (1 - share) * matrix + share * cheap
            if self.expected_loss(mixed) <= max_loss or share >= 1:
                return mixed
            share = min(1.0, 2 * share)
        return matrix

    def with_error(self, matrix: FloatArray, min_error: float) -> FloatArray:
        """Return the strategy, mixed with as much of a constant report as brings the error within bounds."""
        silent = np.zeros_like(matrix)
        min_error += ROUNDING * abs(min_error)
        silent[:, int(np.argmin(self.masses[0] @ self.loss))] = 1.0
        under, most = min_error - self.adversary_error(matrix), self.error_without_report()
        share = under / max(under + most - min_error, np.finfo(float).tiny)
        while under > 0:
            mixed = (1 - share) * matrix + share * silent
            if self.adversary_error(mixed) >= min_error or share >= 1:
                return mixed
            share = min(1.0, 2 * share)
        return matrix

    def strategy(self, prices: FloatArray) -> FloatArray:
        """Return the adversary's strategy, (outputs, inputs), from the multipliers of its guesses."""
        prices = np.maximum(prices, 0.0)
        total = prices.sum(axis=1, keepdims=True)
        anything = np.zeros(prices.shape[1])
        anything[int(np.argmin(self.masses[0] @ self.error))] = 1.0
        return np.where(total > 0, prices / np.where(total > 0, total, 1.0), anything)

    def channel(self, matrix: FloatArray) -> Channel:
        """Return a strategy as a channel; an input without mass gets the row of the closest input with mass."""
        away = euclidean(self.inputs.xy, self.inputs.xy[self.support])
        return Channel(self.inputs, self.outputs, matrix[away.argmin(axis=1)])


FIRST_GUESSES = 200
"""Half of them near the report, half of them good without any report; fewer would need more rounds."""
GUESSES_PER_ROUND = 5
ACCURACY = 1e-9
"""Accepted violation of a guess constraint, relative to the largest error; also the tolerance of HiGHS."""


@dataclass(frozen=True)
class _Equilibrium:
    """An optimal strategy of the user and the multipliers that prove it.

    Attributes
    ----------
    matrix : (n, m) array
        f(z|x), not negative; rows sum to 1 to rounding.
    value : float
        Value of the objective.
    guess_price : (m, guesses) array
        Multipliers of the first adversary's guess constraints: its strategy, up to scale.
    loss_price, error_price : float
        Multipliers of the bounds on the loss and on the first adversary's error.
    rounds : int
    """

    matrix: FloatArray
    value: float
    guess_price: FloatArray
    loss_price: float
    error_price: float
    rounds: int


@dataclass
class _Adversary:
    """One prior, its position among the variables, and the guesses that are constraints so far."""

    mass: FloatArray
    first: int
    guesses: list[list[int]] = field(default_factory=list)

    def cuts(self) -> tuple[IntArray, IntArray]:
        """Return the number of the report and of the guess of each constraint."""
        report = np.repeat(np.arange(len(self.guesses)), [len(some) for some in self.guesses])
        return report, np.array([guess for some in self.guesses for guess in some], dtype=np.int64)


class _GameProgram:
    """The linear program between a user and adversaries.

    Parameters
    ----------
    masses : list of (n,) arrays
        The prior of each adversary; the first one is also that of the expected loss.
    loss : (n, m) array
        Loss of the user for each report.
    error : (n, guesses) array
        Loss of an adversary for each guess.
    symmetry : Symmetry
        Of all of the above; it acts on inputs and outputs.
    guess_images : (group, guesses) array of int
        Its action on guesses.
    guess_loss : (guesses, m) array
        Loss of a report at the site of a guess; guesses near a report become constraints first.
    """

    def __init__(
        self,
        masses: list[FloatArray],
        loss: FloatArray,
        error: FloatArray,
        symmetry: Symmetry,
        guess_images: IntArray,
        guess_loss: FloatArray,
    ) -> None:
        self.loss, self.error = loss, error
        self.symmetry, self.guess_images = symmetry, guess_images
        n, m = loss.shape
        least = np.full(n * m, n * m)
        for image_in, image_out in zip(symmetry.inputs, symmetry.outputs, strict=True):
            least = np.minimum(least, (image_in[:, None] * m + image_out).ravel())
        self.pair = np.unique(least, return_inverse=True)[1].reshape(n, m)
        self.variables = int(self.pair.max()) + 1
        self.reports, self.report_size = symmetry.representatives()
        self.unit = float(np.abs(error).max()) or 1.0
        order = np.argsort(guess_loss[:, self.reports], axis=0, kind="stable")
        likely = np.argsort(masses[0] @ error, kind="stable")
        near = [
            np.unique(np.concatenate([column[: FIRST_GUESSES // 2], likely[: FIRST_GUESSES // 2]])).tolist()
            for column in order.T
        ]
        self.adversaries = [
            _Adversary(mass, self.variables + turn * len(self.reports), [list(some) for some in near])
            for turn, mass in enumerate(masses)
        ]

    def collect(self, entries: FloatArray) -> FloatArray:
        """Return the sum of an (n, m) array over each orbit of pairs."""
        return np.bincount(self.pair.ravel(), entries.ravel()).astype(np.float64)

    def solve(
        self,
        *,
        reward: FloatArray | None = None,
        prize: tuple[float, ...] = (),
        max_loss: float | None = None,
        min_error: float | None = None,
        allowed: npt.NDArray[np.bool_] | None = None,
    ) -> _Equilibrium:
        """Return the maximum of `reward` per entry of f plus `prize` per unit of each adversary's error.

        Parameters
        ----------
        reward : (n, m) array, optional
        prize : tuple of float
            One for each adversary.
        max_loss, min_error : float, optional
            Bounds on the expected loss and on the error of the first adversary.
        allowed : (n, m) array of bool, optional
            Entries of f that need not be 0.
        """
        wanted = np.zeros(self.variables + len(self.adversaries) * len(self.reports))
        if reward is not None:
            wanted[: self.variables] = self.collect(reward)
        for adversary, weight in zip(self.adversaries, prize, strict=False):
            wanted[adversary.first : adversary.first + len(self.reports)] = weight * self.unit * self.report_size
        upper = np.full(len(wanted), np.inf)
        if allowed is not None:
            upper[: self.variables] = np.where(self.collect((~allowed).astype(np.float64)) > 0, 0.0, np.inf)
        involved = [
            adversary
            for turn, adversary in enumerate(self.adversaries)
            if any(prize[turn : turn + 1]) or (turn == 0 and min_error is not None)
        ]
        for rounds in range(1, 200):
            found, entries = self._solve_once(wanted, upper, involved, max_loss, min_error, rounds)
            if not sum(self._add_guesses(adversary, found.matrix, entries) for adversary in involved):
                return found
        raise SolverError("the adversary's guesses did not settle in 200 rounds")

    def _add_guesses(self, adversary: _Adversary, matrix: FloatArray, entries: FloatArray) -> int:
        """Add constraints for the best guesses that the solution violates; return their number."""
        joint = adversary.mass[:, None] * matrix[:, self.reports]
        errors = joint.T @ self.error / self.unit
        believed = entries[adversary.first : adversary.first + len(self.reports)]
        added = 0
        for report, known in enumerate(adversary.guesses):
            overlooked = np.flatnonzero(errors[report] < believed[report] - ACCURACY)
            best = overlooked[np.argsort(errors[report][overlooked])][:GUESSES_PER_ROUND]
            new = [guess for guess in best.tolist() if guess not in known]
            known.extend(new)
            added += len(new)
        return added

    def _solve_once(
        self,
        wanted: FloatArray,
        upper: FloatArray,
        involved: list[_Adversary],
        max_loss: float | None,
        min_error: float | None,
        rounds: int,
    ) -> tuple[_Equilibrium, FloatArray]:
        """Return the optimum over the guesses so far, and all variables of the program."""
        m = self.loss.shape[1]
        rows = [self._guess_rows(adversary, len(wanted)) for adversary in involved]
        limits = [np.zeros(row.shape[0]) for row in rows]
        first = self.adversaries[0]
        if max_loss is not None:
            cost = np.zeros((1, len(wanted)))
            cost[0, : self.variables] = self.collect(first.mass[:, None] * self.loss)
            scale = float(cost.max()) or 1.0
            rows.append(csr_array(cost / scale))
            limits.append(np.array([max_loss / scale]))
        if min_error is not None:
            total = np.zeros((1, len(wanted)))
            total[0, first.first : first.first + len(self.reports)] = -self.report_size
            rows.append(csr_array(total))
            limits.append(np.array([-min_error / self.unit]))
        orbit = self.symmetry.orbit_of_inputs()
        chosen = np.unique(orbit, return_index=True)[1]
        sums = csr_array(
            (
                np.ones(len(chosen) * m),
                (np.repeat(np.arange(len(chosen)), m), self.pair[chosen].ravel()),
            ),
            shape=(len(chosen), len(wanted)),
        )
        largest = float(np.abs(wanted).max()) or 1.0
        lower = np.where(np.arange(len(wanted)) < self.variables, 0.0, -np.inf)
        program: dict[str, Any] = {
            "A_ub": vstack(rows).tocsr() if rows else None,
            "b_ub": np.concatenate(limits) if rows else None,
            "A_eq": sums,
            "b_eq": np.ones(len(chosen)),
            "bounds": np.column_stack([lower, upper]),
            "options": {"primal_feasibility_tolerance": ACCURACY, "dual_feasibility_tolerance": ACCURACY},
        }
        answer: Any = linprog(-wanted / largest, method="highs", **program)
        if answer.status == 2:
            raise InfeasibleError("no mechanism keeps both bounds")
        if answer.status != 0:
            raise SolverError(f"HiGHS stopped: {answer.message}")
        matrix = np.maximum(answer.x[self.pair], 0.0)
        matrix /= matrix.sum(axis=1, keepdims=True)
        prices = -np.asarray(answer.ineqlin.marginals) * largest
        guess_price = np.zeros((m, self.error.shape[1]))
        if involved and involved[0] is first:
            report, guess = first.cuts()
            guess_price = self._spread_prices(report, guess, prices[: len(report)])
        at = sum(len(adversary.cuts()[0]) for adversary in involved)
        loss_price = float(prices[at]) / scale if max_loss is not None else 0.0
        error_price = float(prices[-1]) / self.unit if min_error is not None else 0.0
        value = -float(answer.fun) * largest
        return _Equilibrium(matrix, value, guess_price, loss_price, error_price, rounds), answer.x

    def _guess_rows(self, adversary: _Adversary, width: int) -> "csr_array[Any, tuple[int, int]]":
        """Return the constraints e_z - sum_x mass(x) f(z|x) error(x, guess) <= 0 of the guesses so far."""
        report, guess = adversary.cuts()
        count, n = len(report), len(self.loss)
        weights = -(adversary.mass * self.error[:, guess].T) / self.unit
        values = np.concatenate([weights.ravel(), np.ones(count)])
        row = np.concatenate([np.repeat(np.arange(count), n), np.arange(count)])
        column = np.concatenate([self.pair[:, self.reports[report]].T.ravel(), adversary.first + report])
        return csr_array((values, (row, column)), shape=(count, width))

    def _spread_prices(self, report: IntArray, guess: IntArray, prices: FloatArray) -> FloatArray:
        """Return the multipliers of representatives' guesses, shared among the images of each pair."""
        m, guesses = self.loss.shape[1], self.error.shape[1]
        table = np.zeros((m, guesses))
        for image_out, image_guess in zip(self.symmetry.outputs, self.guess_images, strict=True):
            np.add.at(table, (image_out[self.reports[report]], image_guess[guess]), prices)
        return table


def _optimal_error(optimum: _Equilibrium) -> float:
    """Return the least error that counts as optimal: the optimum minus the tolerance of the solver."""
    return optimum.value - 1e-9 * abs(optimum.value)


def least_worst_loss(program: _GameProgram, max_loss: float, optimum: _Equilibrium) -> FloatArray:
    """Return the optimal strategy with the smallest largest loss, by bisection over the losses that occur."""
    levels = np.unique(program.loss[program.adversaries[0].mass > 0])
    # Losses that differ only by rounding are one level.
    levels = levels[np.append(np.diff(levels) > 1e-9 * levels[-1], True)]
    low, high, best = -1, len(levels) - 1, optimum.matrix
    while high - low > 1:
        middle = (low + high) // 2
        try:
            found = program.solve(
                prize=(1.0,),
                max_loss=max_loss,
                allowed=program.loss <= levels[middle] * (1 + 1e-9),
            )
        except InfeasibleError:
            low = middle
            continue
        if found.value >= _optimal_error(optimum):
            high, best = middle, found.matrix
        else:
            low = middle
    return best
