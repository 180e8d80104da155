"""The game between a user and an adversary (Shokri et al., CCS 2012) as a linear program.

The user chooses f(z|x); the adversary observes z and guesses. With e_z the adversary's error at report z,

    e_z <= sum_x mass(x) f(z|x) error(x, guess)   for every guess,
    sum_xz mass(x) f(z|x) loss(x, z) <= max_loss,   sum_z f(z|x) = 1.

Pairs (x, z) in one orbit of the problem's symmetries share a variable. Of many guesses only those near the
report, and those good without any report, are constraints from the start; others are added when the solution
violates them. Of many reports only those of little loss, and the best constant one, are variables from the start;
others are added when the multipliers show that they improve the optimum. With the same loss for both sides none
do: the optimum is `max_loss`, or the error without any report, and truth or constant report reach it. Such a
program has so many optima that HiGHS needs 30 s for 15x15 cells with all variables, and less than 1 s with these.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from geoind.arrays import FloatArray, IntArray
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.distances import Distance, euclidean
from geoind.errors import InfeasibleError, SolverError
from geoind.optimal.problem import as_loss, ends_of
from geoind.optimal.symmetry import Symmetry, symmetry_of
from geoind.space.sites import Sites

__all__ = ["Game"]

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
        self.inputs, self.outputs = ends_of(priors[0], outputs, loss=loss, adversary_loss=adversary_loss)
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
        over, room = self.expected_loss(matrix) - max_loss, max_loss - self.expected_loss(cheap)
        return _mixed(matrix, cheap, over, room, lambda mixed: self.expected_loss(mixed) <= max_loss)

    def with_error(self, matrix: FloatArray, min_error: float) -> FloatArray:
        """Return the strategy, mixed with as much of a constant report as brings the error within bounds."""
        silent = np.zeros_like(matrix)
        silent[:, int(np.argmin(self.masses[0] @ self.loss))] = 1.0
        min_error += ROUNDING * abs(min_error)
        under, room = min_error - self.adversary_error(matrix), self.error_without_report() - min_error
        return _mixed(matrix, silent, under, room, lambda mixed: self.adversary_error(mixed) >= min_error)

    def optimum(self, max_loss: float) -> "_Optimum":
        """Return an optimal strategy within a loss, and the adversary's strategy that proves it."""
        # Two strategies need no program: the best guess without any report, and, where both losses are equal, the
        # report itself. If one of them is optimal, reports that improve nothing need not be searched.
        known: list[tuple[FloatArray, float]] = [
            (self.strategy(np.zeros((self.loss.shape[1], self.error.shape[1]))), 0.0)
        ]
        if self.loss.shape == self.error.shape and np.allclose(self.loss, self.error, rtol=1e-13, atol=0):
            known.append((np.eye(self.loss.shape[1]), 1.0))
        enough = min(self.error_bound(max_loss, *each) for each in known)
        found = self.program.solve(prize=(1.0,), max_loss=max_loss, enough=enough - ACCURACY * abs(enough))
        known.append((self.strategy(found.guess_price), found.loss_price))
        strategy, price = min(known, key=lambda each: self.error_bound(max_loss, *each))
        bound = self.error_bound(max_loss, strategy, price)
        return _Optimum(found.matrix, found.value, bound, strategy, price, found.rounds)

    def error_bound(self, max_loss: float, strategy: FloatArray, price: float) -> float:
        """Return a bound on the error of all users within a loss, by weak duality."""
        worst = (self.error @ strategy.T - price * self.loss).max(axis=1)
        return float(self.masses[0] @ worst) + price * max_loss

    def least_worst_loss(self, max_loss: float, optimum: "_Optimum") -> FloatArray:
        """Return the optimal strategy with the smallest largest loss, by bisection over the losses that occur."""
        levels = np.unique(self.loss[self.masses[0] > 0])
        # Losses that differ only by rounding are one level.
        levels = levels[np.append(np.diff(levels) > 1e-9 * levels[-1], True)]
        least = optimum.value - ACCURACY * abs(optimum.value)
        low, high, best = -1, len(levels) - 1, optimum.matrix
        while high - low > 1:
            middle = (low + high) // 2
            try:
                found = self.program.solve(
                    prize=(1.0,),
                    max_loss=max_loss,
                    allowed=self.loss <= levels[middle] * (1 + 1e-9),
                    enough=least,
                    needed=least,
                )
            except InfeasibleError:
                low = middle
                continue
            if found.value >= least:
                high, best = middle, found.matrix
            else:
                low = middle
        return best

    def strategy(self, prices: FloatArray) -> FloatArray:
        """Return the adversary's strategy, (outputs, inputs), from the multipliers of its guesses."""
        prices = np.maximum(prices, 0.0)
        total = prices.sum(axis=1, keepdims=True)
        images = self.program.guess_images[:, int(np.argmin(self.masses[0] @ self.error))]
        anything = np.bincount(images, minlength=prices.shape[1]) / len(images)
        return np.where(total > 0, prices / np.where(total > 0, total, 1.0), anything)

    def channel(self, matrix: FloatArray) -> Channel:
        """Return a strategy as a channel; an input without mass gets the row of the closest input with mass."""
        away = euclidean(self.inputs.xy, self.inputs.xy[self.support])
        return Channel(self.inputs, self.outputs, matrix[away.argmin(axis=1)])


def _mixed(
    matrix: FloatArray, other: FloatArray, short: float, room: float, fits: Callable[[FloatArray], bool]
) -> FloatArray:
    """Return a strategy that is `short` of a bound, mixed with just enough of another that has `room`."""
    if short <= 0:
        return matrix
    share = short / max(short + room, short)
    while True:
        mixed = (1 - share) * matrix + share * other
        if fits(mixed) or share >= 1:
            return mixed
        share = min(1.0, 2 * share)


FIRST_GUESSES = 60
"""Half of them near the report, half of them good without any report; fewer would need more rounds."""
FIRST_REPORTS = 20
"""Reports of least loss of each input whose variables are in the program from the start."""
PATIENCE = 4
"""Rounds after which all guesses join, if some are violated."""
ACCURACY = 1e-9
"""Accepted violation of a constraint or of a price, relative to the largest error; also the tolerance of HiGHS."""


class _Optimum(NamedTuple):
    """An optimal strategy, its error, and the adversary's strategy and the price of the loss that bound it."""

    matrix: FloatArray
    value: float
    bound: float
    strategy: FloatArray
    loss_price: float
    rounds: int


class _Equilibrium(NamedTuple):
    """An optimal strategy f(z|x), the value of the objective, and multipliers that prove it.

    `guess_prices` has an (m, guesses) array for each adversary that takes part: its strategy, up to scale.
    `believed` has the errors at each report that the program assumes. `loss_price` and `error_price` are the
    multipliers of the bounds on the loss and on the first adversary's error.
    """

    matrix: FloatArray
    value: float
    guess_prices: list[FloatArray]
    believed: list[FloatArray]
    loss_price: float
    error_price: float
    rounds: int

    @property
    def guess_price(self) -> FloatArray:
        """Return the multipliers of the first adversary's guesses."""
        return self.guess_prices[0]


class _Adversary(NamedTuple):
    """One prior, the position of its errors among the variables, and which guesses are constraints so far."""

    mass: FloatArray
    first: int
    guesses: npt.NDArray[np.bool_]


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
        self.first_inputs = np.unique(symmetry.orbit_of_inputs(), return_index=True)[1]
        self.active = np.zeros(self.variables, dtype=bool)
        self.active[self.pair[_smallest(loss, FIRST_REPORTS)]] = True
        self.active[self.pair[:, np.argmin(masses[0] @ loss)]] = True
        near = _smallest(guess_loss[:, self.reports].T, FIRST_GUESSES // 2)
        near[:, np.argsort(masses[0] @ error, kind="stable")[: FIRST_GUESSES // 2]] = True
        self.adversaries = [
            _Adversary(mass, self.variables + turn * len(self.reports), near.copy())
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
        enough: float = np.inf,
        needed: float = -np.inf,
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
        enough : float
            Value at which the search for better reports ends.
        needed : float
            The search ends where the optimum is proven to be smaller.
        """
        reward = np.zeros_like(self.loss) if reward is None else reward
        weights = np.array([*prize, *[0.0] * (len(self.adversaries) - len(prize))])
        barred = np.zeros(self.variables, dtype=bool)
        if allowed is not None:
            barred[self.pair[~allowed]] = True
        involved = [
            adversary
            for turn, adversary in enumerate(self.adversaries)
            if weights[turn] or (turn == 0 and min_error is not None)
        ]
        for rounds in range(1, 200):
            try:
                found = self._solve_once(
                    reward, weights, involved, max_loss, min_error, self.active & ~barred, rounds
                )
            except InfeasibleError:
                if self.active[~barred].all():
                    raise
                self.active[~barred] = True
                continue
            worth = reward - found.loss_price * self.adversaries[0].mass[:, None] * self.loss
            for adversary, price in zip(involved, found.guess_prices, strict=True):
                worth += adversary.mass[:, None] * (self.error @ price.T)
            bound = np.where(barred[self.pair], -np.inf, worth).max(axis=1).sum()
            bound += found.loss_price * (max_loss or 0.0) - found.error_price * (min_error or 0.0)
            if bound < needed:
                return found
            added = sum(
                self._add_guesses(adversary, found.matrix, errors, everything=rounds > PATIENCE)
                for adversary, errors in zip(involved, found.believed, strict=True)
            )
            if found.value < enough:
                added += self._add_reports(worth, barred, everything=rounds > 1)
            if not added:
                return found
        raise SolverError("the program's guesses and reports did not settle in 200 rounds")

    def _add_guesses(
        self, adversary: _Adversary, matrix: FloatArray, believed: FloatArray, everything: bool
    ) -> int:
        """Add constraints for all guesses at the reports where some are violated; return the number of reports."""
        joint = adversary.mass[:, None] * matrix[:, self.reports]
        errors = np.where(adversary.guesses, np.inf, joint.T @ self.error / self.unit)
        violated = errors.min(axis=1) < believed - ACCURACY
        if violated.any():
            adversary.guesses[violated | everything] = True
        return int(violated.sum())

    def _add_reports(self, worth: FloatArray, barred: npt.NDArray[np.bool_], everything: bool) -> int:
        """Add variables for reports if some are worth more than all reports so far; return their number."""
        active = (self.active & ~barred)[self.pair]
        best = np.where(active, worth, -np.inf).max(axis=1, keepdims=True)
        better = ~barred[self.pair] & (worth > best + ACCURACY * self.unit / len(worth))
        if better.any():
            self.active[self.pair[better | (everything & ~barred[self.pair])]] = True
        return int(better.sum())

    def _solve_once(
        self,
        reward: FloatArray,
        weights: FloatArray,
        involved: list[_Adversary],
        max_loss: float | None,
        min_error: float | None,
        active: npt.NDArray[np.bool_],
        rounds: int,
    ) -> _Equilibrium:
        """Return the optimum over the variables and guesses so far."""
        m, count = self.loss.shape[1], len(self.reports)
        width = self.variables + len(self.adversaries) * count
        wanted = np.append(self.collect(reward), np.outer(weights, self.unit * self.report_size))
        rows = [self._guess_rows(adversary, width) for adversary in involved]
        limits = [np.zeros(row.shape[0]) for row in rows]
        first = self.adversaries[0]
        if max_loss is not None:
            cost = np.zeros((1, width))
            cost[0, : self.variables] = self.collect(first.mass[:, None] * self.loss)
            scale = float(cost.max()) or 1.0
            rows.append(csr_array(cost / scale))
            limits.append(np.array([max_loss / scale]))
        if min_error is not None:
            total = np.zeros((1, width))
            total[0, first.first : first.first + count] = -self.report_size
            rows.append(csr_array(total))
            limits.append(np.array([-min_error / self.unit]))
        chosen = self.first_inputs
        sums = csr_array(
            (
                np.ones(len(chosen) * m),
                (np.repeat(np.arange(len(chosen)), m), self.pair[chosen].ravel()),
            ),
            shape=(len(chosen), width),
        )
        largest = float(np.abs(wanted).max()) or 1.0
        kept = np.append(active, np.ones(width - self.variables, dtype=bool))
        lower = np.where(np.arange(width) < self.variables, 0.0, -np.inf)[kept]
        program: dict[str, Any] = {
            "A_ub": vstack(rows).tocsc()[:, kept] if rows else None,
            "b_ub": np.concatenate(limits) if rows else None,
            "A_eq": sums.tocsc()[:, kept],
            "b_eq": np.ones(len(chosen)),
            "bounds": np.column_stack([lower, np.full(len(lower), np.inf)]),
            "options": {"primal_feasibility_tolerance": ACCURACY, "dual_feasibility_tolerance": ACCURACY},
        }
        answer: Any = linprog(-wanted[kept] / largest, method="highs", **program)
        if answer.status == 2:
            raise InfeasibleError("no mechanism keeps both bounds")
        if answer.status != 0:
            raise SolverError(f"HiGHS stopped: {answer.message}")
        entries = np.zeros(width)
        entries[kept] = answer.x
        matrix = np.maximum(entries[self.pair], 0.0)
        matrix /= matrix.sum(axis=1, keepdims=True)
        multipliers = -np.asarray(answer.ineqlin.marginals) * largest
        prices = []
        for adversary in involved:
            price, multipliers = np.split(multipliers, [int(adversary.guesses.sum())])
            prices.append(self._spread_prices(adversary, price))
        loss_price = float(multipliers[0]) / scale if max_loss is not None else 0.0
        error_price = float(multipliers[-1]) / self.unit if min_error is not None else 0.0
        value = -float(answer.fun) * largest
        believed = [entries[adversary.first : adversary.first + count] for adversary in involved]
        return _Equilibrium(matrix, value, prices, believed, loss_price, error_price, rounds)

    def _guess_rows(self, adversary: _Adversary, width: int) -> "csr_array[Any, tuple[int, int]]":
        """Return the constraints e_z - sum_x mass(x) f(z|x) error(x, guess) <= 0 of the guesses so far."""
        report, guess = np.nonzero(adversary.guesses)
        count, n = len(report), len(self.loss)
        weights = -(adversary.mass * self.error[:, guess].T) / self.unit
        values = np.concatenate([weights.ravel(), np.ones(count)])
        row = np.concatenate([np.repeat(np.arange(count), n), np.arange(count)])
        column = np.concatenate([self.pair[:, self.reports[report]].T.ravel(), adversary.first + report])
        return csr_array((values, (row, column)), shape=(count, width))

    def _spread_prices(self, adversary: _Adversary, prices: FloatArray) -> FloatArray:
        """Return the price of each guess at each report, in units of the objective per unit of error."""
        report, guess = np.nonzero(adversary.guesses)
        table = np.zeros((self.loss.shape[1], self.error.shape[1]))
        prices = prices / (self.unit * len(self.guess_images))
        for image_out, image_guess in zip(self.symmetry.outputs, self.guess_images, strict=True):
            np.add.at(table, (image_out[self.reports[report]], image_guess[guess]), prices)
        return table


def _smallest(values: FloatArray, count: int) -> npt.NDArray[np.bool_]:
    """Return which entries are among the `count` smallest ones of their row."""
    chosen = np.zeros(values.shape, dtype=bool)
    np.put_along_axis(chosen, np.argsort(values, axis=1, kind="stable")[:, :count], True, axis=1)
    return chosen
