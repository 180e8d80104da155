"""The game of Shokri et al. (CCS 2012) as a linear program, over orbits and with guesses generated on demand.

The user picks f(z|x); the adversary sees z and guesses. With e_z the adversary's error at report z,

    e_z <= sum_x mass(x) f(z|x) error(x, guess)   for every guess,
    sum_xz mass(x) f(z|x) loss(x, z) <= max_loss,   sum_z f(z|x) = 1.

Pairs (x, z) in one orbit of the problem's symmetries share a variable. Of many guesses only those near the report,
and those good without any report, are constraints from the start; others join when the solution violates them.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InfeasibleError, SolverError
from geoind.optimal.symmetry import Symmetry

__all__ = ["Equilibrium", "GameProgram"]

FIRST_GUESSES = 200
"""Half of them near the report, half of them good without any report: fewer cost more rounds than they save."""
GUESSES_PER_ROUND = 5
ACCURACY = 1e-9
"""Violation of a guess constraint that is accepted, relative to the largest error; HiGHS is asked for the same."""


@dataclass(frozen=True)
class Equilibrium:
    """An optimal strategy of the user and the prices that prove it.

    Attributes
    ----------
    matrix : (n, m) array
        f(z|x), not negative; rows sum to 1 to rounding.
    value : float
        What was maximised.
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


class GameProgram:
    """The linear program between a user and adversaries.

    Parameters
    ----------
    masses : list of (n,) arrays
        The prior of each adversary; the first one's is also that of the expected loss.
    loss : (n, m) array
        What a report costs the user.
    error : (n, guesses) array
        What a guess costs an adversary.
    symmetry : Symmetry
        Of all of the above; it acts on inputs and outputs.
    guess_images : (group, guesses) array of int
        How it acts on guesses.
    guess_loss : (guesses, m) array
        What a report would cost at the place of a guess: the guesses near a report come first.
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
    ) -> Equilibrium:
        """Return what maximises `reward` per entry of f plus `prize` per unit of each adversary's error.

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
        """Make constraints of the best guesses that the solution overlooks; return how many."""
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
    ) -> tuple[Equilibrium, FloatArray]:
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
        return Equilibrium(matrix, value, guess_price, loss_price, error_price, rounds), answer.x

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
