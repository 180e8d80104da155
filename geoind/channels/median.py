"""The point of the plane with the smallest weighted sum of distances, for many sets of weights at once."""

from typing import NamedTuple

import numpy as np

from geoind.arrays import FloatArray
from geoind.distances import squared
from geoind.errors import SolverError

__all__ = ["geometric_median"]

STEPS = 3000
"""A bound that only a data point which is almost the median comes near."""

SETTLING = {2, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560}
"""Steps at which the data point that pulls most is tried itself."""


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
        A guess; default: the weighted means.

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
    # Around the middle of the points, so that their moments can be taken apart without losing digits.
    middle = points.mean(axis=0)
    points = points - middle
    x, y = points.T
    # A point closer than this counts as being at the place itself, which changes no value by more.
    touching = tolerance / 1000
    tolerance -= 2 * touching
    field = _Field(points, np.column_stack([np.ones_like(x), x, y, x * x, x * y]), touching)
    weights = weights / weights.sum(axis=1, keepdims=True)
    result: FloatArray = weights @ points if start is None else start - middle
    rows = np.arange(len(weights))
    # The value where the last Newton step started, and where Weiszfeld would have gone instead.
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
    """What pulls at each place: sum f of weighted distances, its slope, curvature, and the weight right there."""

    value: FloatArray
    pull: FloatArray
    stiffness: FloatArray
    curvature: FloatArray
    own: FloatArray
    rate: FloatArray

    @property
    def excess(self) -> FloatArray:
        """By how much the pull exceeds what the weight at the place itself can hold."""
        return np.asarray(np.maximum(np.hypot(*self.pull.T) - self.own, 0.0))

    @property
    def gap(self) -> FloatArray:
        """An upper bound on how much smaller the value can become."""
        return 2 * self.excess * self.value

    def steps(self) -> tuple[FloatArray, FloatArray]:
        """Return Weiszfeld's and Newton's step; the former twice where the latter is not to be trusted."""
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
    """The points, their moments 1, x, y, x x, x y, and how close a point is as good as there."""

    points: FloatArray
    moments: FloatArray
    touching: float

    def at(self, here: FloatArray, weights: FloatArray) -> _Forces:
        """Return what pulls at each place of `here`, by its own row of weights."""
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
