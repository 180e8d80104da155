"""geoind in the comparison."""

import numpy as np

import geoind


def sample(lonlat: np.ndarray, epsilon: float) -> np.ndarray:
    """Return reports for many places at once, on the globe."""
    return geoind.obfuscate_lonlat(lonlat, geoind.SphericalLaplace(epsilon))


def one(lon: float, lat: float, epsilon: float) -> geoind.Location[float]:
    """Return a report for one place."""
    return geoind.obfuscate(lat=lat, lon=lon, epsilon=epsilon)


def reports(lon: float, lat: float, count: int, epsilon: float) -> np.ndarray:
    """Return independent reports of one place."""
    return sample(np.tile([[lon, lat]], (count, 1)), epsilon)


def repeats() -> bool:
    """Return whether two calls with default arguments give the same noise."""
    return one(2.0, 48.0, 0.01) == one(2.0, 48.0, 0.01)


def grid(side: int, cell: float) -> geoind.Grid:
    """Return a square grid."""
    return geoind.Grid(0, 0, cell=cell, columns=side, rows=side)


def laplace_matrix(side: int, cell: float, epsilon: float) -> np.ndarray:
    """Return the planar Laplace as a matrix."""
    return geoind.discretise(geoind.PlanarLaplace(epsilon), grid(side, cell)).matrix


def optimal_matrix(side: int, cell: float, epsilon: float) -> np.ndarray:
    """Return the optimal mechanism as a matrix."""
    return geoind.min_loss_given_epsilon(geoind.Prior.uniform(grid(side, cell)), epsilon=epsilon).matrix
