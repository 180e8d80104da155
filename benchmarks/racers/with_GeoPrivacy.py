"""GeoPrivacy in the comparison: noise in the plane."""

import math

import numpy as np
from GeoPrivacy.mechanism import batch_laplace_noise, optql, random_laplace_noise

PLANE = True


def sample(points: np.ndarray, epsilon: float) -> np.ndarray:
    """Return reports for many points by its batch function."""
    return np.asarray(points + batch_laplace_noise(len(points), epsilon))


def one(x: float, y: float, epsilon: float) -> tuple[float, float]:
    """Return a report for one point."""
    noise_x, noise_y = random_laplace_noise(epsilon)
    return x + noise_x, y + noise_y


def reports(x: float, y: float, count: int, epsilon: float) -> np.ndarray:
    """Return independent reports of one point."""
    return sample(np.tile([[x, y]], (count, 1)), epsilon)


def repeats() -> bool:
    """Return whether two calls with default arguments give the same noise."""
    return one(0.0, 0.0, 0.01) == one(0.0, 0.0, 0.01)


def optimal_matrix(side: int, cell: float, epsilon: float) -> np.ndarray:
    """Return the optimal mechanism as a matrix."""
    cells = [(cell * (k % side), cell * (k // side)) for k in range(side * side)]
    return np.asarray(optql(cells, [1] * len(cells), lambda a, b: math.dist(a, b), epsilon=epsilon)[0])
