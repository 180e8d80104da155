"""The optimal mechanism of the game that leaves the largest conditional entropy (Oya et al., CCS 2017).

With p(x, z) the joint probability of truth and report, maximise the concave

    H(truth | report) = - sum_xz p(x, z) log(p(x, z) / p(z)),   where   sum_z p(x, z) = mass(x),

over the mechanisms of expected loss at most L with an adversary error of at least its optimum V, up to an
allowance. The feasible set of these two bounds has almost no interior. The dual solution makes them well
conditioned: a strategy of the adversary, with error c(x, z) on average, and a price k of the loss, such that

    r(x, z) = u(x) - c(x, z) + k loss(x, z) >= 0   and   sum_x mass(x) u(x) + k L = V.

With t(z) the adversary's gain at report z over that strategy, the bound on the error reads

    sum_z t(z) + sum_xz p(x, z) r(x, z) + k (L - expected loss) <= allowance,
    t(z) + sum_x p(x, z) (error(x, guess) - c(x, z)) >= 0   for every guess,

a sum of small numbers without cancellation. As in the program of least loss, only a few sums couple the columns:
Newton's system has one small block per report and one Schur complement. Of the reports in one orbit of the
problem's symmetries only one has a block, and inputs in one orbit share a price: the entropy is concave, so some
optimum is symmetric. Its multipliers prove a bound: with
alpha >= 0 that sums to gamma over the guesses of each report, and beta + k gamma >= 0,

    H <= beta L + gamma allowance - sum_x mass(x) nu(x)   if, for every report z,
    log sum_x exp(nu(x) - beta loss(x, z) - gamma r(x, z) + sum_guess alpha(z, guess) (error - c)) <= 0.

Why a method of its own: on the problems of benchmarks/optimal.py with a skewed prior of 25 and 49 cells the
mechanism has 1.3 to 1.7 bits more entropy than the symmetric optimum, at the same loss and adversary error, in
0.1 to 0.2 s. The generic alternative, Frank-Wolfe steps with a linear program of HiGHS each, is still 0.03 to
0.05 bits below it after 60 programs and 8 to 18 times the CPU time (docs/benchmarks/optimal.md).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from geoind.arrays import FloatArray
from geoind.channels.metrics import conditional_entropy
from geoind.optimal.lapack import threads_for_blocks
from geoind.optimal.problem import YARDSTICK
from geoind.optimal.symmetry import Symmetry
from geoind.parallel import Threads

__all__ = ["most_entropy"]

ALLOWANCE = 3e-8
"""Relative shortfall of the adversary error with which a mechanism still counts as optimal."""
ACCURACY = 1e-7
"""Bits between entropy and bound at which the search ends."""
ITERATIONS = 200
PATIENCE = 20
"""Iterations without progress after which the search ends."""
NUDGE = 1e-13
"""Relative shift of a diagonal that keeps rounding from making its matrix singular; refinement undoes it."""
REFINEMENTS = 5


class _MostEntropy(NamedTuple):
    """A strategy f(z|x), its conditional entropy, and a bound on the distance to the largest one, in bits."""

    matrix: FloatArray
    entropy: float
    short: float


def most_entropy(
    mass: FloatArray,
    loss: FloatArray,
    error: FloatArray,
    symmetry: Symmetry,
    *,
    max_loss: float,
    matrix: FloatArray,
    strategy: FloatArray,
    loss_price: float,
) -> _MostEntropy:
    """Return the strategy of largest H(truth | report) among those optimal for the user.

    Parameters
    ----------
    mass : (n,) array
        The prior, positive everywhere.
    loss : (n, m) array
        Loss of the user for each report.
    error : (n, guesses) array
        Loss of the adversary for each guess.
    symmetry : Symmetry
        Of all of the above and of both strategies.
    max_loss : float
        Bound on the user's expected loss.
    matrix : (n, m) array
        Some optimal strategy of the user.
    strategy : (m, guesses) array
        The adversary's optimal strategy: probabilities of the guesses at each report.
    loss_price : float
        Derivative of the optimal error with respect to `max_loss`.
    """
    # Blocks are small, so BLAS with threads of its own would be slower.
    with threads_for_blocks(len(mass)) as team, np.errstate(all="ignore"):
        return _Method(mass, loss, error, symmetry, team, max_loss, strategy, loss_price).run(matrix)


class _Point(NamedTuple):
    """An iterate, or a direction; reports come first. The first three are slacks, then their multipliers."""

    p: FloatArray
    slack: FloatArray
    room: FloatArray
    w: FloatArray
    alpha: FloatArray
    prices: FloatArray
    t: FloatArray
    nu: FloatArray

    def pairs(self) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """Return the slacks and multipliers whose products vanish at the optimum."""
        return (self.p, self.w), (self.slack, self.alpha), (self.room, self.prices)

    def gap(self) -> float:
        """Return the sum of those products."""
        return sum(float((slack * multiplier).sum()) for slack, multiplier in self.pairs())

    def moved(self, direction: "_Point", length: float) -> "_Point":
        """Return the point at this length along a direction."""
        return _Point(*(here + length * change for here, change in zip(self, direction, strict=True)))

    def longest_step(self, direction: "_Point") -> float:
        """Return the longest step up to 1 that keeps slacks and multipliers positive."""
        steepest = max(float((-change / here).max()) for here, change in zip(self[:6], direction[:6], strict=True))
        return 1.0 if steepest <= 1 else 1 / steepest


class _Method:
    """Mehrotra's predictor-corrector."""

    def __init__(
        self,
        mass: FloatArray,
        loss: FloatArray,
        error: FloatArray,
        symmetry: Symmetry,
        team: Threads,
        max_loss: float,
        strategy: FloatArray,
        loss_price: float,
    ) -> None:
        loss_unit, error_unit = float(np.abs(loss).max()) or 1.0, float(np.abs(error).max()) or 1.0
        self.symmetry, self.team = symmetry, team
        chosen, size = symmetry.representatives()
        self.size, self.orbit = size[:, None], symmetry.orbit_of_inputs()
        self.mass, self.loss = mass, np.ascontiguousarray(loss.T) / loss_unit
        self.price = loss_price * loss_unit / error_unit
        average = strategy @ error.T / error_unit
        worst = (average - self.price * self.loss).max(axis=0)
        average, self.loss = average[chosen], self.loss[chosen]
        self.reduced = worst - average + self.price * self.loss
        value = float(mass @ worst) + self.price * max_loss / loss_unit
        self.bounds = np.array([max_loss / loss_unit, ALLOWANCE * max(value, YARDSTICK)])
        reports, n = loss.shape[1], len(mass)
        # From (p, t) of a report to the slacks of its guesses.
        self.faces = np.ones((len(chosen), n + 1, error.shape[1]))
        self.faces[:, :n] = error / error_unit - average[:, :, None]
        p = np.tile(mass / reports, (len(chosen), 1))
        t = 0.1 / reports - self._slack(p, np.zeros(len(p))).min(axis=1)
        room = np.maximum(self.bounds - [(self.size * p * self.loss).sum(), np.inf], 0.1)
        alpha = np.full((len(p), error.shape[1]), 1 / error.shape[1])
        nu = np.log(mass[np.unique(self.orbit, return_index=True)[1]])
        self.at = _Point(p, self._slack(p, t), room, np.ones_like(p), alpha, np.ones(2), t, nu)

    def _slack(self, p: FloatArray, t: FloatArray) -> FloatArray:
        return np.asarray((np.column_stack([p, t])[:, None, :] @ self.faces)[:, 0])

    def run(self, matrix: FloatArray) -> _MostEntropy:
        """Return the best strategy found when the bound proves its entropy, or when progress ends."""
        best = _MostEntropy(matrix, conditional_entropy(self.mass[:, None] * matrix), np.inf)
        bound, waited = conditional_entropy(self.mass[:, None]), 0
        for _ in range(ITERATIONS):
            bound = float(np.fmin(bound, self._bound()))
            scale = np.bincount(self.orbit, self.mass) / self._row_sums(self.at.p)
            joint = self.at.p * scale[self.orbit]
            strategy = self.symmetry.expand(joint / self.mass)
            reached = conditional_entropy(self.mass[:, None] * strategy)
            if self._optimal(joint) and reached > best.entropy:
                best = best._replace(matrix=strategy, entropy=reached)
            short = max(bound - best.entropy, 0.0)
            waited = 0 if best.matrix is matrix or short < 0.9 * best.short else waited + 1
            best = best._replace(short=short)
            if short < ACCURACY or waited > PATIENCE:
                break
            try:
                self._step()
            except (np.linalg.LinAlgError, ZeroDivisionError):
                break
            if not all(np.isfinite(part).all() for part in self.at):
                break
        return best

    def _row_sums(self, p: FloatArray) -> FloatArray:
        """Return the sum over all reports and over each orbit of inputs."""
        return np.bincount(self.orbit, (self.size * p).sum(axis=0)).astype(np.float64)

    def _optimal(self, joint: FloatArray) -> bool:
        """Return whether a joint distribution keeps both bounds, up to rounding."""
        room = self.bounds[0] - (self.size * joint * self.loss).sum()
        gains = -self._slack(joint, np.zeros(len(joint))).min(axis=1, keepdims=True)
        missed = (
            self.size * (gains + (joint * self.reduced).sum(axis=1, keepdims=True))
        ).sum() + self.price * room
        return bool(room > -1e-12 * (1 + self.bounds[0]) and missed <= 2 * self.bounds[1])

    def _bound(self) -> float:
        """Return an upper bound on the entropy of all optimal strategies, in bits."""
        gamma = self.at.prices[1]
        beta = self.at.prices[0] - self.price * gamma
        alpha = self.at.alpha * (gamma / self.at.alpha.sum(axis=1, keepdims=True))
        forced = (self.faces[:, :-1] @ alpha[:, :, None])[:, :, 0]
        nu = self.at.nu[self.orbit]
        exponent = nu - beta * self.loss - gamma * self.reduced + forced
        top = exponent.max(axis=1, keepdims=True)
        excess = float((top[:, 0] + np.log(np.exp(exponent - top).sum(axis=1))).max())
        nats = float(np.array([beta, gamma]) @ self.bounds - self.mass @ nu) + excess
        return nats / float(np.log(2))

    def _step(self) -> None:
        at, gap = self.at, self.at.gap()
        mean = gap / sum(slack.size for slack, _ in at.pairs())
        solve = self._newton()
        guess = solve([np.zeros(1)] * 3)
        affine = at.moved(guess, at.longest_step(guess)).gap()
        aim = mean * min(max((affine / gap) ** 3, 1e-3), 1.0)
        direction = solve([aim - change * other for change, other in guess.pairs()])
        self.at = at.moved(direction, min(1.0, 0.99 * at.longest_step(direction)))

    def _newton(self) -> Callable[[Sequence[FloatArray]], _Point]:
        """Factor Newton's system; return the function from aims for the products to the direction."""
        at, loss, reduced, faces = self.at, self.loss, self.reduced, self.faces
        n, k = len(self.mass), len(self.at.nu)
        total = at.p.sum(axis=1, keepdims=True)
        stiffness, give = at.alpha / at.slack, at.room / at.prices

        def inverted(start: int, stop: int) -> FloatArray:
            some = faces[start:stop]
            blocks = (some * stiffness[start:stop, None, :]) @ some.transpose(0, 2, 1)
            blocks[:, :n, :n] -= 1 / total[start:stop, :, None]
            blocks[:, range(n), range(n)] += ((1 + at.w) / at.p)[start:stop]
            return _balanced_inverse(blocks)

        inverse = np.concatenate(self.team.pieces(len(faces), inverted))

        def pull(y: FloatArray) -> FloatArray:
            """Return the action of the prices nu, beta, gamma on (p, t)."""
            return np.column_stack([y[:k][self.orbit] - y[k] * loss - y[-1] * reduced, np.full(len(loss), -y[-1])])

        def sums(step: FloatArray) -> FloatArray:
            """Return the sums of (p, t) in the rows and, negative, in the two bounds: the adjoint of `pull`."""
            p, t = step[:, :n], step[:, n:]
            bounds = [-(self.size * p * loss).sum(), -(self.size * p * reduced).sum() - (self.size * t).sum()]
            return np.append(self._row_sums(p), bounds)

        # The first slack counts in both bounds.
        slopes = np.array([[1.0, self.price], [0.0, 1.0]])
        schur = np.zeros((k + 2, k + 2))
        member = np.eye(k)[self.orbit]
        schur[:k, :k] = member.T @ np.tensordot(self.size[:, 0], inverse[:, :n, :n], 1) @ member
        for row in (k, k + 1):
            schur[row] = schur[:, row] = sums(_times(inverse, pull(np.eye(k + 2)[row])))
        schur[k:, k:] += slopes.T @ (give[:, None] * slopes)
        across = _balanced_inverse(schur[None])[0]

        beta = at.prices[0] - self.price * at.prices[1]
        slope = -pull(np.append(at.nu, [beta, at.prices[1]])) - _times(faces, at.alpha)
        slope[:, :n] += np.log(at.p / total) - at.w
        apart = self._slack(at.p, at.t) - at.slack
        missing = np.append(np.bincount(self.orbit, self.mass), -self.bounds) - sums(np.column_stack([at.p, at.t]))
        missing[k:] += slopes.T @ at.room

        def stiff(step: FloatArray) -> FloatArray:
            """Return the blocks times a step, without the rounding error of assembled blocks."""
            p = step[:, :n]
            pressed = _times(faces, stiffness * self._slack(p, step[:, n]))
            pressed[:, :n] += (1 + at.w) / at.p * p - p.sum(axis=1, keepdims=True) / total
            return pressed

        def solve(aims: Sequence[FloatArray]) -> _Point:
            to_w, to_alpha = aims[0] / at.p - at.w, aims[1] / at.slack - at.alpha
            to_room = aims[2] / at.prices - at.room
            right = _times(faces, to_alpha - stiffness * apart) - slope
            right[:, :n] += to_w
            wanted = missing + np.append(np.zeros(k), slopes.T @ to_room)
            step, y = np.zeros_like(right), np.zeros(k + 2)
            for _ in range(1 + REFINEMENTS):
                step += _times(inverse, right + pull(y) - stiff(step))
                given = np.append(np.zeros(k), slopes.T @ (give * (slopes @ y[k:])))
                more = across @ (wanted - sums(step) - given)
                y += more
                step += _times(inverse, pull(more))
            p, t, prices = step[:, :n], step[:, n], slopes @ y[k:]
            slack = self._slack(p, t) + apart
            return _Point(
                p,
                slack,
                to_room - give * prices,
                to_w - at.w / at.p * p,
                to_alpha - stiffness * slack,
                prices,
                t,
                y[:k],
            )

        return solve


def _times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return each matrix times its vector."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def _balanced_inverse(matrices: FloatArray) -> FloatArray:
    """Return the inverses of positive definite matrices of widely spread diagonals, which are overwritten."""
    size = matrices.shape[-1]
    scale = 1 / np.sqrt(matrices[:, range(size), range(size)])
    matrices *= scale[:, :, None]
    matrices *= scale[:, None, :]
    matrices[:, range(size), range(size)] += NUDGE
    inverse = np.linalg.inv(matrices)
    inverse *= scale[:, :, None]
    inverse *= scale[:, None, :]
    return np.asarray(inverse)
