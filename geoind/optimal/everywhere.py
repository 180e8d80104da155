"""The least loss of a grid's channel whose bilinear interpolation is private between any two places.

The same program and frame as in `interior`, with a second-order cone for each corner in place of the constraints
between pairs: a primal-dual method with the scaling of Nesterov and Todd, Mehrotra's predictor-corrector, and
centrality correctors on the eigenvalues of the products. All cones are in the Newton system.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from geoind.arrays import FloatArray
from geoind.channels.channel import Channel
from geoind.channels.interpolated import Interpolated
from geoind.errors import InvalidInputError
from geoind.optimal.cones import Program
from geoind.optimal.corners import Corners, CornerSystem
from geoind.optimal.interior import CORRECTORS, Found, Iterate, Method, outliers
from geoind.optimal.lapack import threads_for_blocks
from geoind.optimal.second_order import Scaling, divide, eigenvalues, from_eigenvalues, product, steepest
from geoind.parallel import Threads
from geoind.space.sites import Grid, Sites

__all__ = ["as_squares", "interpolated_epsilon", "memory_needed", "minimise_everywhere"]

Result = TypeVar("Result")

HALVINGS = 10


CONES_IN_MEMORY = 16
"""Elements of each cone that are in memory at a time."""


def minimise_everywhere(
    program: Program,
    grid: Grid,
    *,
    epsilon: float,
    offset: float,
    yardstick: float,
    tolerance: float,
    time_limit: float,
    progress: Callable[[Iterate, FloatArray], None],
) -> Found:
    """Return columns on a grid of at least two rows and columns, as `minimise` does."""
    rows, columns = grid.rows, grid.columns
    order = np.arange(len(grid))
    if rows < columns:
        # Blocks are factored row by row: short rows take less time.
        order = order.reshape(rows, columns).T.ravel()
        rows, columns = columns, rows
    rank = np.argsort(order)
    # Orbits are numbered by their first inputs: without symmetry as the inputs are.
    _, first, orbit = np.unique(program.orbit[order], return_index=True, return_inverse=True)
    turned = replace(
        program,
        cost=np.ascontiguousarray(program.cost[:, order]),
        orbit=np.argsort(np.argsort(first))[orbit],
        reference=rank[program.reference],
        start=None if program.start is None else np.ascontiguousarray(program.start[:, order]),
    )
    with threads_for_blocks(len(grid)) as team:
        corners = Corners(len(program.cost), rows, columns, epsilon * grid.cell)
        method = _CornerMethod(turned, offset, yardstick, corners, team)
        found, last, stopped = method.run(tolerance, time_limit, lambda now, v: progress(now, v[:, rank]))
    return found[:, rank], last, stopped


def as_squares(sites: Sites) -> Grid:
    """Return sites with squares between them."""
    if not isinstance(sites, Grid) or min(sites.rows, sites.columns) < 2:
        raise InvalidInputError("everywhere needs a prior on a Grid of at least two rows and columns")
    return sites


def interpolated_epsilon(channel: Channel) -> float:
    """Return the privacy loss per metre between any two places, if the channel is interpolated."""
    return Interpolated(channel).epsilon


def memory_needed(outputs: int, grid: Grid) -> float:
    """Return the bytes that `minimise_everywhere` takes."""
    # The factors of the blocks; the elements of the cones, four at each site; the Schur complement.
    width = min(grid.rows, grid.columns)
    return 8.0 * len(grid) * (outputs * (2 * width + 4 * 3 * CONES_IN_MEMORY) + 4 * len(grid))


@dataclass(frozen=True)
class _Change:
    """Scaled changes of slack and multiplier, and the longest steps up to 1 that they allow."""

    ds: FloatArray
    dl: FloatArray
    primal: float
    dual: float


class _CornerMethod(Method):
    def __init__(self, program: Program, offset: float, yardstick: float, corners: Corners, team: Threads) -> None:
        super().__init__(program, offset, yardstick, team)
        self.cones = self.corners = corners
        self.newton = CornerSystem(program, corners, team)
        self._begin()
        # Low enough for positive multipliers: below the costs of each input, and all a little more.
        highest = np.zeros(len(program.orbit_size))
        np.maximum.at(highest, program.orbit, (self.cost / program.weight[:, None]).max(axis=0))
        self.u = -(highest + 0.1 * highest.mean()) * program.orbit_size
        self.multipliers = self._first_multipliers()

    def _first_multipliers(self) -> FloatArray:
        """Return dual feasible multipliers on the axes of the cones, equal at the corners of a site."""
        multipliers = np.zeros((3, *self.corners.shape))
        multipliers[0] = 1.0
        per_site = (self.cost - self.program.spread(self.u)) / self.corners.adjoint(multipliers)
        for corner, (site, _, _) in enumerate(self.corners.of_sites(per_site)):
            multipliers[0, :, corner] = site
        return multipliers

    def _step(self, least_mu: float) -> None:
        newton, count = self.newton, len(self.corners)
        newton.factor(self.v, self.multipliers)
        # In scaled coordinates slack and multiplier are the same element, and a step changes both.
        point = np.empty_like(self.multipliers)

        def scale(part: slice, scaling: Scaling) -> float:
            point[:, part] = scaling.inverse(self.corners.slack(self.v[part]))
            return float((point[:, part] ** 2).sum())

        mu = sum(self._each(scale)) / count
        residual = 1.0 - self.program.row_sums(self.v)
        right = self.program.spread(self.u) - self.cost

        guess, _ = newton.solve(right, residual)
        change = self._respond(guess, -point, point)
        target = self._target(change, point, mu, least_mu)

        def second_order(part: slice) -> FloatArray:
            wanted = -product(change.ds[:, part], change.dl[:, part])
            wanted[0] += target
            return divide(point[:, part], wanted)

        def centring(change: _Change, part: slice) -> FloatArray:
            ahead = product(
                point[:, part] + min(1.0, 1.5 * change.primal + 0.1) * change.ds[:, part],
                point[:, part] + min(1.0, 1.5 * change.dual + 0.1) * change.dl[:, part],
            )
            low, high = (outliers(values, target) for values in eigenvalues(ahead))
            return divide(point[:, part], from_eigenvalues(low, high, ahead))

        wanted, pressure = self._correction(second_order)
        dv, du = newton.solve(right + pressure, residual)
        change = self._respond(dv, wanted - point, point)
        for _ in range(CORRECTORS):
            if min(change.primal, change.dual) > 0.95:
                break
            wanted, pressure = self._correction(partial(centring, change))
            dv_more, du_more = newton.solve(pressure, np.zeros_like(residual))
            further = self._respond(dv_more, wanted, point, change)
            if further.primal + further.dual <= 1.02 * (change.primal + change.dual):
                break
            change, dv, du = further, dv + dv_more, du + du_more
        self._move(dv, du, change)

    def _each(self, work: Callable[[slice, Scaling], Result]) -> list[Result]:
        """Return the results of `work` for each part of the outputs, in order, computed in threads."""
        return list(
            self.team.each(lambda pair: work(*pair), zip(self.newton.parts, self.newton.scalings, strict=True))
        )

    def _correction(self, wanted_of: Callable[[slice], FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Return the wanted change of slack plus multiplier, scaled, and its contribution to each entry."""
        wanted, pressure = np.empty_like(self.multipliers), np.empty_like(self.v)

        def correct(part: slice, scaling: Scaling) -> None:
            wanted[:, part] = wanted_of(part)
            pressure[part] = self.corners.adjoint(scaling.inverse(wanted[:, part]))

        self._each(correct)
        return wanted, pressure

    def _respond(
        self, dv: FloatArray, wanted: FloatArray, point: FloatArray, before: _Change | None = None
    ) -> _Change:
        """Return the changes of slack and multiplier for a change of the columns, added to those before."""
        ds, dl = np.empty_like(wanted), wanted

        def respond(part: slice, scaling: Scaling) -> tuple[float, float]:
            ds[:, part] = scaling.inverse(self.corners.slack(dv[part]))
            dl[:, part] -= ds[:, part]
            if before is not None:
                ds[:, part] += before.ds[:, part]
                dl[:, part] += before.dl[:, part]
            return steepest(point[:, part], ds[:, part]), steepest(point[:, part], dl[:, part])

        primal, dual = np.max(self._each(respond), axis=0)
        return _Change(ds, dl, 1 / max(primal, 1.0), 1 / max(dual, 1.0))

    def _target(self, change: _Change, point: FloatArray, mu: float, least: float) -> float:
        """Return the target of the complementarity, by Mehrotra's rule from the affine direction."""

        def left(part: slice, _: Scaling) -> float:
            slack = point[:, part] + change.primal * change.ds[:, part]
            return float((slack * (point[:, part] + change.dual * change.dl[:, part])).sum())

        cubed = (max(sum(self._each(left)) / len(self.corners), 0.0) / mu) ** 3 * mu
        return min(max(cubed, 1e-8 * mu, least), max(mu, least))

    def _move(self, dv: FloatArray, du: FloatArray, change: _Change) -> None:
        """Take the longest steps, halved while rounding puts them on the border of a cone."""
        fraction = 0.9 if min(change.primal, change.dual) < 0.9 else 0.999
        primal, dual = min(1.0, fraction * change.primal), min(1.0, fraction * change.dual)

        def unscale(part: slice, scaling: Scaling) -> None:
            change.dl[:, part] = scaling.inverse(change.dl[:, part])

        self._each(unscale)
        for _ in range(HALVINGS):
            moved = self.v + primal * dv
            if self._inside(partial(self._slack_of, moved)):
                self.v = moved
                break
            primal /= 2
        for _ in range(HALVINGS):
            changed = self.multipliers + dual * change.dl
            if self._inside(partial(_part_of, changed)):
                self.u, self.multipliers = self.u + dual * du, changed
                break
            dual /= 2

    def _contains(self, columns: FloatArray) -> bool:
        slacks = (self.corners.slack(columns[part]) for part in self.newton.parts)
        return all((eigenvalues(slack)[0] > 0).all() for slack in slacks)

    def _slack_of(self, columns: FloatArray, part: slice) -> FloatArray:
        return self.corners.slack(columns[part])

    def _inside(self, element_of: Callable[[slice], FloatArray]) -> bool:
        """Return whether all elements are strictly inside their cones."""
        return all(self._each(lambda part, _: bool((eigenvalues(element_of(part))[0] > 0).all())))


def _part_of(elements: FloatArray, part: slice) -> FloatArray:
    return elements[:, part]
