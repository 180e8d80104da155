"""Reports of continuous noise moved to where the truth probably is, at the scale of a city."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.spatial import cKDTree

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_points, as_positive
from geoind.channels.median import geometric_median
from geoind.channels.priors import Prior
from geoind.distances import Distance, euclidean, squared
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarLaplace
from geoind.mechanisms.protocol import Space
from geoind.space.sites import as_plane

__all__ = ["PosteriorRemap"]

NEIGHBOURS = 32
"""Closest places from which the posterior's total is estimated, from below."""

TILE = 4.0
"""Side of a square of reports handled together, in scales 1 / epsilon of the noise."""

BLOCK = 100_000
"""Pairs of a report and a place handled at once: their temporaries stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class PosteriorRemap:
    """A step for `PostProcessed` that moves a report to the place with the smallest expected loss.

    After report z the truth is at place p with probability proportional to mass(p) * exp(-epsilon |z - p|). The
    best report is the posterior's geometric median (Euclidean loss) or mean (squared loss). It depends on z only,
    so the promise stays as it is (Chatzikokolakis et al., PoPETs 2017).

    Places so far away that they cannot matter are left out: what is returned is proven to lose at most
    `tolerance` metres against the best place (squared loss: to lie within `tolerance` metres of the posterior
    mean). A report never leaves the convex hull of the prior's places, and moves at most twice the posterior's
    mean distance from it.

    Parameters
    ----------
    prior : Prior
        Up to a million weighted places, in metres.
    mechanism : PlanarLaplace
        What made the reports.
    loss : Distance
        `distances.euclidean` or `distances.squared`.
    tolerance : float
        Largest loss against the best place, in metres; 0, the default, stands for 0.02 / epsilon, a hundredth of
        the mean noise.

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
        """Return how far from a truth among the places a report lies after the step: anywhere among them, at most.

        A bound for every prior, and a wide one: whoever knows the prior may know better.
        """
        return float(np.hypot(*np.ptp(self._buckets.xy, axis=0)))

    def check_inside(self, points: FloatArray) -> None:
        """Refuse truths outside the bounding box of the prior's places."""
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
                # A quarter each for what `_cutoff` and `_near` leave out, and a twentieth for that they do so.
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
        of the posterior, by Jensen's inequality. Leaving out places that hold a share s of the posterior changes
        the slope of the mean distance f by at most s, hence f at the result by at most 2 s f, as in
        `geometric_median`; and it moves the posterior's mean by s times the distance of those places from it.
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
        """Return for each report a distance r beyond which places shift the loss by less than tolerance / 4.

        They hold a mass of at most one, at distances d with d exp(-epsilon d) <= r exp(-epsilon r) as soon as
        r > 1 / epsilon, and the result stays within r of the report. So they add at most
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
            # A little beyond the fixed point, so that it is passed and not only approached.
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
    """Places sorted into squares, row by row; for each square that is not empty what it looks like from afar."""

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
