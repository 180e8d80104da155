"""geoind in the plane in the comparison: what qif and GeoPrivacy do, with a secure generator and a lattice."""

from functools import lru_cache

import numpy as np

import geoind

PLANE = True


@lru_cache
def noise(epsilon: float) -> geoind.PlanarLaplace:
    """Return the mechanism, made once."""
    return geoind.PlanarLaplace(epsilon)


def sample(points: np.ndarray, epsilon: float) -> np.ndarray:
    """Return reports for many points at once, in metres."""
    return noise(epsilon).sample(points)


def one(x: float, y: float, epsilon: float) -> np.ndarray:
    """Return a report for one point."""
    return noise(epsilon).sample([[x, y]])


def reports(x: float, y: float, count: int, epsilon: float) -> np.ndarray:
    """Return independent reports of one point."""
    return sample(np.tile([[x, y]], (count, 1)), epsilon)


def repeats() -> bool:
    """Return whether two calls with default arguments give the same noise."""
    return bool((one(0.0, 0.0, 0.01) == one(0.0, 0.0, 0.01)).all())
