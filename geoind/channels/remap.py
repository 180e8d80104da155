"""Remapping: reports moved to locations of smaller expected loss. Post-processing does not change epsilon.

`bayes_remap` is for channels, `PosteriorRemap` for continuous noise with a prior of up to a million places.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_points, as_positive
from geoind.channels.channel import Channel
from geoind.channels.priors import Prior
from geoind.distances import Distance, euclidean, squared
from geoind.errors import InvalidInputError, SolverError
from geoind.mechanisms.planar import PlanarLaplace
from geoind.mechanisms.protocol import Space
from geoind.space.sites import Sites, as_plane

__all__ = ["PosteriorRemap", "bayes_remap", "geometric_median"]


def bayes_remap(
    channel: Channel, prior: Prior, *, loss: Distance = euclidean, outputs: Sites | None = None
) -> Channel:
    """Return the deterministic channel that, after `channel`, minimises the expected loss.

    It reads reports only, so `channel @ bayes_remap(channel, prior)` has at most the epsilon of the channel. A
    report that cannot occur under the prior goes to the closest output, or, where reports and outputs have
    different numbers of columns, to the best output without a report.

    Parameters
    ----------
    channel, prior : Channel, Prior
    loss : Distance
        Between truth and report.
    outputs : Sites, optional
        The possible targets; default: the channel's outputs.

    Examples
    --------
    >>> from geoind import Grid, expected_loss
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> home = Prior(street, [0.9, 0.1])
    >>> better = coin @ bayes_remap(coin, home)
    >>> round(expected_loss(coin, home), 6), round(expected_loss(better, home), 6)
    (25.0, 10.0)
    """
    places = channel.outputs if outputs is None else outputs
    joint = channel.joint(prior)
    losses = loss(channel.inputs.xy, places.xy)
    if places.xy.shape[1] == channel.outputs.xy.shape[1]:
        otherwise = places.nearest(channel.outputs.xy)
    else:
        otherwise = np.full(len(channel.outputs), np.argmin(prior.mass @ losses))
    targets = np.where(joint.any(axis=0), np.argmin(joint.T @ losses, axis=1), otherwise)
    return Channel.deterministic(channel.outputs, places, targets)


NEIGHBOURS = 32
"""Closest places from which the posterior's total is bounded from below."""

TILE = 4.0
"""Side of a square of reports handled together, in scales 1 / epsilon of the noise."""

BLOCK = 100_000
"""Pairs of a report and a place handled at once; their temporaries fit the processor's cache."""


@dataclass(frozen=True, eq=False)
class PosteriorRemap:
    """A step for `PostProcessed` that moves a report to the location of smallest expected loss.

    After report z the truth is at place p with probability proportional to `mass(p) * exp(-epsilon |z - p|)`. The
    best report is the posterior's geometric median (Euclidean loss) or mean (squared loss). It depends on z only,
    so epsilon is unchanged (Chatzikokolakis et al., PoPETs 2017).

    Places too far away to matter are ignored. The expected loss of the result is proven to exceed the smallest one
    by at most `tolerance` metres (squared loss: the result is within `tolerance` metres of the posterior mean). A
    report moves into the convex hull of the prior's places, and by at most twice the posterior's mean distance.

    Parameters
    ----------
    prior : Prior
        Up to a million weighted places, in metres.
    mechanism : PlanarLaplace
        The mechanism of the reports.
    loss : Distance
        `distances.euclidean` or `distances.squared`.
    tolerance : float
        Largest excess over the smallest expected loss, in metres; 0, the default, means 0.02 / epsilon, a
        hundredth of the mean noise.

    Examples
    --------
    >>> from geoind import Places, PostProcessed
    >>> noise = PlanarLaplace(0.01)
    >>> shops = Prior.uniform(Places([[0, 0], [20, 0], [0, 20], [9000, 9000]]))
    >>> better = PostProcessed(noise, PosteriorRemap(shops, noise))
    >>> better.epsilon
    0.01
    >>> PosteriorRemap(shops, noise)([[8700.0, 8900.0]]).round()
    array([[9000., 9000.]])
    """

    prior: Prior
    mechanism: PlanarLaplace
    _: KW_ONLY
    loss: Distance = euclidean
    tolerance: float = 0.0

    space: ClassVar[Space] = "xy"

    def __post_init__(self) -> None:
        if not isinstance(self.prior, Prior):
            raise InvalidInputError(f"prior must be a Prior, got {type(self.prior).__name__}")
        as_plane(self.prior.sites, "the prior's places")
        if not isinstance(self.mechanism, PlanarLaplace):
            raise InvalidInputError(f"mechanism must be a PlanarLaplace, got {type(self.mechanism).__name__}")
        if self.loss not in (euclidean, squared):
            raise InvalidInputError("loss must be distances.euclidean or distances.squared")
        tolerance = self.tolerance or 0.02 / self.mechanism.epsilon
        object.__setattr__(self, "tolerance", as_positive(tolerance, "tolerance"))

    def __call__(self, reports: ArrayLike) -> FloatArray:
        """Return the best place for each of the (n, 2) reports, in metres."""
        points = as_points(reports, "reports")
        result = np.empty_like(points)
        for rows in self._tiles(points):
            result[rows] = self._best(points[rows])
        return result

    def reach_after(self, reach: float) -> float:  # noqa: ARG002
        """Return a bound on the distance from a truth among the places to its report: the extent of the places.

        It holds for every prior, and is wide.
        """
        return float(np.hypot(*np.ptp(self._buckets.xy, axis=0)))

    def check_inside(self, points: FloatArray) -> None:
        """Raise an error for truths outside the bounding box of the prior's places."""
        xy = self._buckets.xy
        inside = ((points >= xy.min(axis=0)) & (points <= xy.max(axis=0))).all(axis=1)
        if not inside.all():
            raise InvalidInputError(f"row {np.argmin(inside)} lies outside the places of the prior")

    def _best(self, reports: FloatArray) -> FloatArray:
        """Return the best places for a few reports close to each other."""
        epsilon, buckets = self.mechanism.epsilon, self._buckets
        near = self._near(reports)
        members = buckets.members(near)
        places = buckets.xy[members]
        result = np.empty_like(reports)
        if self.loss is euclidean:
            typical = np.sqrt(squared(reports, buckets.centre[near]) + buckets.variance[near])
            coarse = self._weights(typical, buckets.mass[near])
            result = geometric_median(buckets.centre[near], coarse, tolerance=0.1 / epsilon)
        size = max(1, BLOCK // len(places))
        for start in range(0, len(reports), size):
            part = slice(start, start + size)
            weights = self._weights(np.sqrt(squared(reports[part], places)), buckets.weight[members])
            if self.loss is squared:
                result[part] = weights @ places
            else:
                # A quarter of the tolerance each is for the places that `_cutoff` and `_near` ignore, a twentieth
                # for their interaction.
                result[part] = geometric_median(
                    places, weights, tolerance=0.45 * self.tolerance, start=result[part]
                )
        return result

    def _weights(self, distance: FloatArray, mass: FloatArray) -> FloatArray:
        """Return the posterior over places, row by row."""
        weights = distance - distance.min(axis=1, keepdims=True)
        weights *= -self.mechanism.epsilon
        np.exp(weights, out=weights)
        weights *= mass
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(weights)

    def _near(self, reports: FloatArray) -> IntArray:
        """Return the buckets that matter to a few reports.

        A bucket of mass M, centre c and variance v adds at least M exp(-epsilon sqrt(|z - c|^2 + v)) to the total
        of the posterior, by Jensen's inequality. Ignoring places with a share s of the posterior changes the slope
        of the mean distance f by at most s, hence f at the result by at most 2 s f, as in `geometric_median`; and
        it moves the posterior's mean by s times the distance of those places from it.
        """
        epsilon, buckets = self.mechanism.epsilon, self._buckets
        cutoff = self._cutoff(reports).max()
        near = buckets.within(reports.min(axis=0) - cutoff, reports.max(axis=0) + cutoff)
        apart = squared(reports, buckets.centre[near])
        typical = np.sqrt(apart + buckets.variance[near])
        closest = typical.min(axis=1, keepdims=True)
        total = (buckets.mass[near] * np.exp(epsilon * (closest - typical))).sum(axis=1, keepdims=True)
        distance = np.sqrt(apart)
        nearest = np.maximum(distance - buckets.radius[near], 0.0)
        share = buckets.mass[near] * np.exp(epsilon * (closest - nearest)) / total
        farthest = distance + buckets.radius[near]
        mean = (share * farthest).sum(axis=1, keepdims=True) + self.tolerance
        most = (share * (2 * mean if self.loss is euclidean else farthest + mean)).max(axis=0)
        order = np.argsort(most)
        kept = order[np.searchsorted(np.cumsum(most[order]), self.tolerance / 4, side="right") :]
        return near[np.sort(kept)]

    def _cutoff(self, reports: FloatArray) -> FloatArray:
        """Return for each report a distance r beyond which places change the loss by less than tolerance / 4.

        Their mass is at most one, at distances d with d exp(-epsilon d) <= r exp(-epsilon r) as soon as
        r > 1 / epsilon, and the result is within r of the report. So they add at most
        2 r exp(-epsilon (r - closest)) / total, where the total is bounded from below by the closest places.
        """
        epsilon, buckets = self.mechanism.epsilon, self._buckets
        count = min(NEIGHBOURS, len(buckets.xy))
        found = buckets.tree.query(reports, k=np.arange(1, count + 1))
        distance, number = np.asarray(found[0]), np.asarray(found[1])
        closest = distance[:, 0]
        total = (buckets.weight[number] * np.exp(epsilon * (closest[:, None] - distance))).sum(axis=1)
        radius = closest + 1 / epsilon
        while True:
            needed = closest + np.log(8 * radius / (self.tolerance * total)) / epsilon
            if (needed <= radius).all():
                return radius
            # A little beyond the fixed point, so that the loop ends.
            radius = np.maximum(radius, needed + 0.1 / epsilon)

    def _tiles(self, reports: FloatArray) -> Iterator[IntArray]:
        """Yield the rows of reports that lie in the same square."""
        if not len(reports):
            return
        square = np.floor(reports * (self.mechanism.epsilon / TILE))
        order = np.lexsort(square.T)
        borders = np.flatnonzero((np.diff(square[order], axis=0) != 0).any(axis=1)) + 1
        yield from np.split(order, borders)

    @cached_property
    def _buckets(self) -> "_Buckets":
        possible = self.prior.mass > 0
        return _Buckets(self.prior.sites.xy[possible], self.prior.mass[possible], 1 / self.mechanism.epsilon)


class _Buckets:
    """Places sorted into squares, row by row, with mass, centre, variance and radius of each non-empty square."""

    def __init__(self, xy: FloatArray, weight: FloatArray, side: float) -> None:
        self.side = side
        square = np.floor((xy - xy.min(axis=0)) / side)
        self.origin = xy.min(axis=0)
        order = np.lexsort(square.T)
        self.xy, self.weight = xy[order], weight[order]
        self.tree = cKDTree(self.xy)
        square = square[order]
        first = np.flatnonzero((np.diff(square, axis=0, prepend=np.nan) != 0).any(axis=1))
        self.starts = np.append(first, len(xy))
        self.column, self.row = square[first].T
        self.mass = np.add.reduceat(self.weight, first)
        self.centre = np.add.reduceat(self.weight[:, None] * self.xy, first) / self.mass[:, None]
        apart = self.xy - np.repeat(self.centre, np.diff(self.starts), axis=0)
        squares = np.einsum("ij,ij->i", apart, apart)
        self.variance = np.add.reduceat(self.weight * squares, first) / self.mass
        self.radius = np.sqrt(np.maximum.reduceat(squares, first))

    def within(self, low: FloatArray, high: FloatArray) -> IntArray:
        """Return the numbers of the buckets that meet a rectangle."""
        first, last = (np.floor((corner - self.origin) / self.side) for corner in (low, high))
        rows = slice(*np.searchsorted(self.row, [first[1], last[1] + 1]))
        column = self.column[rows]
        return np.asarray(rows.start + np.flatnonzero((column >= first[0]) & (column <= last[0])), dtype=np.int64)

    def members(self, buckets: IntArray) -> IntArray:
        """Return the numbers of the places in the buckets."""
        sizes = self.starts[buckets + 1] - self.starts[buckets]
        before = np.cumsum(sizes) - sizes
        return np.asarray(np.repeat(self.starts[buckets] - before, sizes) + np.arange(sizes.sum()), dtype=np.int64)


STEPS = 3000
"""Largest number of steps; reached only where a data point is almost the median."""

SETTLING = {2, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560}
"""Steps at which the data point with the largest pull is tried as the median."""


def geometric_median(
    points: FloatArray,
    weights: FloatArray,
    *,
    tolerance: float | None = None,
    start: FloatArray | None = None,
) -> FloatArray:
    """Return for each row of weights a point whose mean distance is within `tolerance` of the smallest.

    Newton's steps, with Weiszfeld's (in the form of Vardi and Zhang, 2000) wherever Newton's does not descend.
    Where the mean distance f has slope g, its smallest value is at least f - 2 |g| f, because the median y obeys
    |y - x| <= f(x) + f(y). A row is done when that proves the tolerance.

    Parameters
    ----------
    points : (n, 2) array
    weights : (m, n) array
        Not negative, each row with a positive sum.
    tolerance : float, optional
        In the unit of the points; default: 1e-9 of their spread.
    start : (m, 2) array, optional
        Starting points; default: the weighted means.

    Examples
    --------
    >>> corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> geometric_median(corners, np.array([[1.0, 1.0, 1.0, 1.0], [5.0, 1.0, 1.0, 1.0]])).round(6)
    array([[1., 1.],
           [0., 0.]])
    """
    if not len(weights):
        return np.empty((0, 2))
    if tolerance is None:
        tolerance = 1e-9 * max(float(np.ptp(points, axis=0).max()), 1e-300)
    # Relative to the middle of the points, to avoid cancellation in their moments.
    middle = points.mean(axis=0)
    points = points - middle
    x, y = points.T
    # A data point closer than this counts as distance 0, which changes no value by more.
    touching = tolerance / 1000
    tolerance -= 2 * touching
    field = _Field(points, np.column_stack([np.ones_like(x), x, y, x * x, x * y]), touching)
    weights = weights / weights.sum(axis=1, keepdims=True)
    result: FloatArray = weights @ points if start is None else start - middle
    rows = np.arange(len(weights))
    # The value at the start of the last Newton step, and the end of Weiszfeld's step from there.
    value_before, instead = np.full(len(rows), np.inf), result.copy()
    for step in range(STEPS):
        at = field.at(result[rows], weights)
        worse = at.value > value_before
        result[rows[worse]] = instead[worse]
        value_before[worse] = np.inf
        done = ~worse & (at.gap <= tolerance)
        if step in SETTLING:
            strongest = points[np.argmax(at.rate, axis=1)]
            settled = ~done & (field.at(strongest, weights).gap <= tolerance)
            result[rows[settled]] = strongest[settled]
            done |= settled
        if done.all():
            return np.asarray(result + middle)
        going = ~worse & ~done
        weiszfeld, newton = at.steps()
        here = result[rows[going]]
        result[rows[going]] = here + newton[going]
        instead[going] = here + weiszfeld[going]
        value_before[going] = at.value[going]
        if done.any():
            rows, value_before, instead = rows[~done], value_before[~done], instead[~done]
            weights = weights[~done]
    raise SolverError(f"the geometric median did not come within {tolerance:g} of its smallest value")


class _Forces(NamedTuple):
    """Weighted sum f of distances at each location, its slope and curvature, and the weight at the location."""

    value: FloatArray
    pull: FloatArray
    stiffness: FloatArray
    curvature: FloatArray
    own: FloatArray
    rate: FloatArray

    @property
    def excess(self) -> FloatArray:
        """Length of the slope in excess of the weight at the location itself."""
        return np.asarray(np.maximum(np.hypot(*self.pull.T) - self.own, 0.0))

    @property
    def gap(self) -> FloatArray:
        """An upper bound on the value minus its minimum."""
        return 2 * self.excess * self.value

    def steps(self) -> tuple[FloatArray, FloatArray]:
        """Return Weiszfeld's and Newton's step; the former twice where the Hessian is nearly singular."""
        length = np.hypot(*self.pull.T)
        share = np.divide(self.excess, length, out=np.zeros_like(length), where=length > 0)
        stiffness = np.maximum(self.stiffness, 1e-300)
        weiszfeld = self.pull * (share / stiffness)[:, None]
        # The Hessian is [[stiffness - a, -b], [-b, a]].
        a, b = self.curvature.T
        determinant = (stiffness - a) * a - b * b
        sound = (determinant > 1e-9 * stiffness**2) & (self.own == 0)
        x, y = self.pull.T
        adjugate = np.column_stack([a * x + b * y, b * x + (stiffness - a) * y])
        newton = adjugate / np.where(sound, determinant, 1.0)[:, None]
        return weiszfeld, np.where(sound[:, None], newton, weiszfeld)


class _Field(NamedTuple):
    """The points, their moments 1, x, y, x x, x y, and the distance that counts as 0."""

    points: FloatArray
    moments: FloatArray
    touching: float

    def at(self, here: FloatArray, weights: FloatArray) -> _Forces:
        """Return the forces at each location of `here`, with its own row of weights."""
        x, y = here.T
        squares = squared(here, self.points)
        own = np.zeros(len(here))
        if not squares.min() > self.touching**2:
            there = squares <= self.touching**2
            own = np.where(there, weights, 0.0).sum(axis=1)
            weights, squares = np.where(there, 0.0, weights), np.where(there, 1.0, squares)
        distance = np.sqrt(squares)
        value = np.einsum("ij,ij->i", weights, distance)
        rate = np.divide(weights, distance, out=distance)
        stiffness, east, north = (rate @ self.moments[:, :3]).T
        pull = np.column_stack([east - x * stiffness, north - y * stiffness])
        s, s_x, s_y, s_xx, s_xy = (np.divide(rate, squares, out=squares) @ self.moments).T
        curvature = np.column_stack([s_xx - 2 * x * s_x + x * x * s, s_xy - x * s_y - y * s_x + x * y * s])
        return _Forces(value, pull, stiffness, curvature, own, rate)
