"""The point of the plane with the smallest weighted sum of distances, for many sets of weights at once."""

import numpy as np

from geoind.arrays import FloatArray

__all__ = ["geometric_median"]

STEPS = 2000


def geometric_median(points: FloatArray, weights: FloatArray, *, tolerance: float = 1e-9) -> FloatArray:
    """Return for each row of weights the point with the smallest weighted sum of distances.

    Weiszfeld's iteration with the step of Vardi and Zhang (2000), which leaves a data point that is not the
    median; a data point is accepted by its optimality condition, not by closeness.

    Parameters
    ----------
    points : (n, 2) array
    weights : (m, n) array
        Not negative, each row with a positive sum.
    tolerance : float
        A row is done when a step is shorter than this times the spread of the points.

    Examples
    --------
    >>> corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> geometric_median(corners, np.array([[1.0, 1.0, 1.0, 1.0], [5.0, 1.0, 1.0, 1.0]])).round(6)
    array([[1., 1.],
           [0., 0.]])
    """
    weights = weights / weights.sum(axis=1, keepdims=True)
    apart = np.hypot(points[:, None, 0] - points[None, :, 0], points[:, None, 1] - points[None, :, 1])
    heaviest = np.argmin(weights @ apart, axis=1)
    result: FloatArray = points[heaviest].copy()
    pull, own = _pull(points, weights, result)[:2]
    open_rows = np.flatnonzero(np.hypot(pull[:, 0], pull[:, 1]) > own)
    result[open_rows] = (weights @ points)[open_rows]
    limit = tolerance * max(1e-300, float(np.ptp(points, axis=0).max()))
    for _ in range(STEPS):
        if not open_rows.size:
            break
        here = result[open_rows]
        pull, own, stiffness = _pull(points, weights[open_rows], here)
        length = np.hypot(pull[:, 0], pull[:, 1])
        share = np.maximum(0.0, 1 - np.divide(own, length, out=np.ones_like(own), where=length > 0))
        step = pull / np.maximum(stiffness, 1e-300)[:, None] * share[:, None]
        result[open_rows] = here + step
        open_rows = open_rows[np.hypot(step[:, 0], step[:, 1]) > limit]
    return result


def _pull(points: FloatArray, weights: FloatArray, here: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the sum of weighted unit vectors towards the points, the weight at `here`, and the sum of w / d."""
    east = points[None, :, 0] - here[:, None, 0]
    north = points[None, :, 1] - here[:, None, 1]
    distance = np.hypot(east, north)
    away = distance > 0
    rate = np.divide(weights, distance, out=np.zeros_like(distance), where=away)
    pull = np.column_stack([(rate * east).sum(axis=1), (rate * north).sum(axis=1)])
    return pull, np.where(away, 0.0, weights).sum(axis=1), rate.sum(axis=1)
