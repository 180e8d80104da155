"""A primal-dual interior-point method for the program of least loss.

Mehrotra's predictor-corrector with Gondzio's centrality correctors, on the structure of `Program`. The Newton
system contains an active set of constraints only; the ratio test runs over all of them, so every iterate satisfies
all constraints strictly. A constraint that blocks a step joins the active set. Constraints outside it have the
multiplier 0, so the dual bound of every iterate is valid as well.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray, IntArray
from geoind.errors import SolverError
from geoind.optimal.cones import ActivePairs, Program
from geoind.optimal.lapack import threads_for_blocks
from geoind.optimal.newton import NewtonSystem
from geoind.parallel import Threads

if TYPE_CHECKING:
    from geoind.channels.channel import Channel
    from geoind.optimal.block_program import Blocks

__all__ = ["Found", "Iterate", "Method", "Solution", "Stopped", "longest_step", "minimise", "outliers"]

CORRECTORS = 4
LOOK_AHEAD = 1.5
"""Constraints that would block a step this many times as long join the active set as well."""
CLOSE = 0.03
"""Gap below which a tight bound matters more than speed."""
JOINING, JOINING_CLOSE = 0.2, 1e-12
"""Largest multiplier of a constraint that joins, in units of the largest cost. A large one is soon in balance, but
weakens the bound until then, and in a column that vanishes permanently."""
PATIENCE = 15
"""Iterations without a better gap, once it is small, before the method ends as stuck."""
SHARES = 0.9, 0.5, 0.1
"""Shares of a start in the first columns that are tried; the rest are equal rows, far inside."""
ROUNDING = float(np.finfo(float).eps)

Stopped: TypeAlias = Literal["optimal", "time limit", "memory", "stuck", "spanner"]
"""Why a search ended: proven, out of time or memory, no progress in doubles, or only a spanner's pairs."""

Found: TypeAlias = tuple[FloatArray, "Iterate", Stopped]
"""The best columns, strictly inside every cone, the last iterate, and why the search ended."""


@dataclass(frozen=True)
class Iterate:
    """State of the method after an iteration; both bounds are valid at any time.

    Attributes
    ----------
    iteration : int
    objective, bound : float
        Loss of the best channel so far, and a lower bound on the least loss.
    seconds : float
    yardstick : float
        The gap is relative to the objective, or to this where it is larger.
    memory : float
        Bytes that the search takes, about, with neighbourhoods of the present size.
    """

    iteration: int
    objective: float
    bound: float
    seconds: float
    yardstick: float
    memory: float = 0.0

    @property
    def gap(self) -> float:
        """Largest possible excess over the optimum, relative to the objective or to the yardstick if larger."""
        apart = self.objective - self.bound
        if apart == 0:
            return 0.0
        # Both are rounded sums, so no smaller gap is proven.
        return max(apart / max(abs(self.objective), self.yardstick), ROUNDING)


@dataclass(frozen=True)
class Solution:
    """A private matrix, its proven bounds, how it was found, and why the search ended."""

    matrix: FloatArray
    last: Iterate
    method: str
    stopped: Stopped
    kept: "tuple[Blocks, float, int] | Channel | None" = None
    """The entries from which the columns of the matrix were extended, the epsilon of the extension, and the output
    that takes the rest of every row; or the private channel of the matrix, if there is one already."""


class _Cones(Protocol):
    """The constraints of a program: linear functions of each column, in a cone that is its own dual."""

    def __len__(self) -> int:
        """Return the number of constraints."""

    def slack(self, columns: FloatArray) -> FloatArray:
        """Return the linear functions, one or more for each constraint."""

    def adjoint(self, multipliers: FloatArray) -> FloatArray:
        """Return the transpose of `slack`: the sum of the constraints' multipliers on each entry."""


def minimise(
    program: Program,
    ratio: FloatArray,
    *,
    offset: float,
    yardstick: float,
    near: npt.NDArray[np.bool_],
    tolerance: float,
    time_limit: float,
    progress: Callable[[Iterate, FloatArray], None],
) -> Found:
    """Return columns whose relative gap to the optimum is proven to be within the tolerance, or the best in time.

    Parameters
    ----------
    program : Program
    ratio : (n, n) array
        As in `ActivePairs`.
    offset : float
        A constant of the objective that is not part of the program; gaps are relative to the sum.
    yardstick : float
        Gaps are relative to this where the objective is smaller.
    near : (n, n) array of bool
        The initial active set of every output.
    tolerance, time_limit
        As in `min_loss_given_epsilon`.
    progress : callable
        Called before each step with the iterate and its columns, which are strictly inside every cone.
    """
    with threads_for_blocks(len(near)) as team:
        return _PairMethod(program, ratio, offset, yardstick, near, team).run(tolerance, time_limit, progress)


class Method:
    """The frame of an interior-point method: it begins inside all cones, and both bounds are valid at any time.

    Parameters
    ----------
    program : Program
    offset, yardstick : float
        As in `minimise`.
    team : Threads
    """

    cones: _Cones
    multipliers: FloatArray
    """Strictly inside the dual cone."""

    def __init__(self, program: Program, offset: float, yardstick: float, team: Threads) -> None:
        self.began = time.perf_counter()
        self.close = False
        self.team = team
        self.unit = float(program.cost.max())
        self.offset = offset
        self.yardstick = yardstick
        self.program = program
        self.cost = program.cost / self.unit * program.weight[:, None]
        self.v = np.full(program.cost.shape, 1 / program.weight.sum())
        self.u = -float((self.cost / program.weight[:, None]).max()) * program.orbit_size

    def run(self, tolerance: float, time_limit: float, progress: Callable[[Iterate, FloatArray], None]) -> Found:
        """Return the best iterate when the gap is within the tolerance, the time is over, or progress ends."""
        best_v, best_objective, best_bound = self.v, np.inf, -np.inf
        best_gap, stuck, iteration = np.inf, 0, 0
        while True:
            objective = float((self.cost * self.v).sum()) * self.unit + self.offset
            if objective < best_objective:
                best_v, best_objective = self.v, objective
            best_bound = max(best_bound, self._bound())
            now = Iterate(iteration, best_objective, best_bound, time.perf_counter() - self.began, self.yardstick)
            progress(now, best_v)
            stuck = 0 if now.gap < best_gap * 0.9 else stuck + 1
            self.close = now.gap < CLOSE
            best_gap = min(best_gap, now.gap)
            if now.gap <= tolerance:
                return best_v, now, "optimal"
            if now.seconds > time_limit:
                return best_v, now, "time limit"
            if stuck > (PATIENCE if best_gap < 1e-3 else 10 * PATIENCE):
                return best_v, now, "stuck"
            aim = 0.1 * tolerance * max(best_objective, self.yardstick) / self.unit
            try:
                # At the limit of precision numbers may overflow; the best iterate is kept, later ones are checked.
                with np.errstate(all="ignore"):
                    self._step(aim / len(self.cones))
            except SolverError:
                return best_v, now, "stuck"
            iteration += 1

    def _begin(self) -> None:
        """Begin as close to the program's start, and as far from equal rows, as is strictly inside all cones."""
        if self.program.start is None:
            return
        for share in SHARES:
            columns = share * self.program.start + (1 - share) * self.v
            if self._contains(columns):
                self.v = columns
                break

    def _contains(self, columns: FloatArray) -> bool:
        """Return whether columns are strictly inside all cones."""
        raise NotImplementedError

    def _bound(self) -> float:
        """Return a lower bound: prices lowered until the multipliers are dual feasible."""
        program = self.program
        left = self.cost - program.spread(self.u) - self.cones.adjoint(self.multipliers)
        short = np.maximum(0.0, -(left / program.weight[:, None])).max(axis=0)
        per_orbit = np.zeros(len(program.orbit_size))
        np.maximum.at(per_orbit, program.orbit, short)
        return float(self.u.sum() - (per_orbit * program.orbit_size).sum()) * self.unit + self.offset

    def _step(self, least_mu: float) -> None:
        """Take a step towards the optimum; the aim for the product of slack and multiplier is not below this."""
        raise NotImplementedError


class _PairMethod(Method):
    def __init__(
        self,
        program: Program,
        ratio: FloatArray,
        offset: float,
        yardstick: float,
        near: npt.NDArray[np.bool_],
        team: Threads,
    ) -> None:
        super().__init__(program, offset, yardstick, team)
        outputs, n = program.cost.shape
        self.ratio = ratio
        self._begin()
        self.newton = NewtonSystem(program, team)
        chosen = np.broadcast_to(near, (outputs, n, n)).copy()
        chosen[np.arange(outputs), program.reference] |= ratio[program.reference] > 0
        self.cones = self.pairs = ActivePairs(ratio, chosen)
        self.multipliers = self._first_multipliers()

    def _first_multipliers(self) -> FloatArray:
        """Return dual feasible multipliers of the active set: lambda(i, k) = l(k), from a dominant system."""
        outputs, n = self.cost.shape
        wanted = self.cost - self.program.spread(self.u)
        per_input = np.empty((outputs, n))

        def dominant(start: int, stop: int) -> None:
            for j in range(start, stop):
                chosen = self.pairs.chosen[j]
                system = np.diag(chosen.sum(axis=0).astype(np.float64)) - np.where(chosen, self.ratio, 0.0)
                found = np.linalg.solve(system, wanted[j])
                per_input[j] = found if found.min() > 0 else np.abs(found).mean()

        self.team.pieces(outputs, dominant)
        return np.asarray(per_input.ravel()[self.pairs.to_entry])

    def _step(self, least_mu: float) -> None:
        pairs, newton, multipliers = self.pairs, self.newton, self.multipliers
        slack = pairs.slack(self.v)
        products = slack * multipliers
        mu = float(products.sum()) / len(pairs)
        newton.factor(pairs, self.v, slack, multipliers)
        residual = 1.0 - self.program.row_sums(self.v)
        right = self.program.spread(self.u) - self.cost

        guess, _ = newton.solve(right, residual)
        relative = pairs.slack(guess) / slack
        target = _centring(relative, products, mu, least_mu)
        second_order = -relative * multipliers * (1 + relative)
        right = right + pairs.adjoint(target / slack - second_order)
        dv, du = newton.solve(right, residual)
        ds = pairs.slack(dv)
        dl = target / slack - multipliers * (1 + ds / slack) - second_order
        primal, dual = longest_step(ds / slack), longest_step(dl / multipliers)
        for _ in range(CORRECTORS):
            if min(primal, dual) > 0.95:
                break
            outside = outliers(
                (slack + min(1.0, 1.5 * primal + 0.1) * ds) * (multipliers + min(1.0, 1.5 * dual + 0.1) * dl),
                target,
            )
            dv_more, du_more = newton.solve(pairs.adjoint(outside / slack), np.zeros_like(residual))
            ds_more = pairs.slack(dv_more)
            dl_more = (outside - multipliers * ds_more) / slack
            further = longest_step((ds + ds_more) / slack), longest_step((dl + dl_more) / multipliers)
            if sum(further) <= 1.02 * (primal + dual):
                break
            (primal, dual), dv, du, ds, dl = further, dv + dv_more, du + du_more, ds + ds_more, dl + dl_more
        self._move(dv, du, dl, primal, dual, target)

    def _move(
        self, dv: FloatArray, du: FloatArray, dl: FloatArray, primal: float, dual: float, target: float
    ) -> None:
        """Take the longest step that all constraints allow; blocking constraints join the active set."""
        allowed, blocking = self._ratio_test(dv, primal)
        fraction = 0.9 if min(primal, dual) < 0.9 else 0.999
        self.v = self._inside(dv, min(1.0, fraction * allowed))
        self.u = self.u + min(1.0, fraction * dual) * du
        self.multipliers = self.multipliers + min(1.0, fraction * dual) * dl
        if len(blocking):
            owner, giver, taker = blocking.T
            slack = self.v[owner, taker] - self.ratio[giver, taker] * self.v[owner, giver]
            most = JOINING_CLOSE if self.close else JOINING
            new = np.minimum(target / slack, most * self.cost.max())
            self.multipliers = self.pairs.extend(blocking, self.multipliers, new)

    def _contains(self, columns: FloatArray) -> bool:
        def check(start: int, stop: int) -> bool:
            return all(((self.ratio * v[:, None]).max(axis=0) < v).all() for v in columns[start:stop])

        return all(self.team.pieces(len(columns), check))

    def _inside(self, dv: FloatArray, step: float) -> FloatArray:
        """Return the columns after a step, halved while rounding puts them on the border of a cone."""
        for _ in range(10):
            moved = self.v + step * dv
            if self.pairs.slack(moved).min() > 0:
                return moved
            step /= 2
        return self.v

    def _ratio_test(self, dv: FloatArray, primal: float) -> tuple[float, IntArray]:
        """Return the longest step inside *all* cones, and the inactive pairs that shorten it."""
        v, ratio = self.v, self.ratio
        horizon = min(1.0, LOOK_AHEAD * primal)
        trial = v + horizon * dv

        def search(start: int, stop: int) -> tuple[float, list[IntArray]]:
            longest, found = primal, []
            product = np.empty_like(ratio)
            for j in range(start, stop):
                np.multiply(ratio, trial[j][:, None], out=product)
                if (product.max(axis=0) < trial[j]).all():
                    continue
                slack = v[j] - ratio * v[j][:, None]
                change = dv[j] - ratio * dv[j][:, None]
                giver, taker = np.nonzero((slack + horizon * change <= 0) & (ratio > 0) & ~self.pairs.chosen[j])
                if len(giver):
                    longest = min(longest, float((-slack[giver, taker] / change[giver, taker]).min()))
                    found.append(np.column_stack([np.full(len(giver), j), giver, taker]))
            return longest, found

        results = self.team.pieces(len(v), search)
        allowed = min(longest for longest, _ in results)
        found = [pairs for _, some in results for pairs in some]
        if allowed >= 0.999999 * primal or not found:
            return allowed, np.empty((0, 3), dtype=np.int64)
        return allowed, np.concatenate(found)


def longest_step(relative_change: FloatArray) -> float:
    """Return the longest step up to 1 that keeps what changes at this relative rate from becoming negative."""
    worst = float(relative_change.min())
    return 1.0 if worst >= -1 else -1 / worst


def _centring(relative: FloatArray, products: FloatArray, mu: float, least: float) -> float:
    """Return the target of the complementarity, by Mehrotra's rule from the affine direction."""
    primal, dual = longest_step(relative), min(1.0, 1 / max(1 + float(relative.max()), 1e-300))
    gap, first, second = products.sum(), relative @ products, (relative * relative) @ products
    affine = gap - dual * (gap + first) + primal * first - primal * dual * (first + second)
    cubed = (max(float(affine) / len(products), 0.0) / mu) ** 3 * mu
    return min(max(cubed, 1e-8 * mu, least), max(mu, least))


def outliers(products: FloatArray, target: float) -> FloatArray:
    """Return Gondzio's correction towards [0.1, 10] times the target."""
    low, high = 0.1 * target, 10 * target
    correction = np.where(products > high, np.maximum(high - products, -high), 0.0)
    return np.where(products < low, low - products, correction)
