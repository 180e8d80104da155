"""Checks of the matrices that make up a problem."""

import numpy as np

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError, SitesMismatchError

__all__ = ["as_loss", "as_metric"]


def as_metric(apart: FloatArray, n: int) -> FloatArray:
    """Return an (n, n) matrix of distances between inputs that is finite, symmetric and 0 on its diagonal."""
    if apart.shape != (n, n):
        raise SitesMismatchError(f"distance must give a matrix of shape {(n, n)}, got {apart.shape}")
    if not ((apart >= 0) & (apart < np.inf)).all():
        raise InvalidInputError("distance must be finite and not negative")
    if np.diag(apart).any():
        raise InvalidInputError("distance must be 0 from a site to itself")
    if not np.allclose(apart, apart.T, rtol=1e-9, atol=0):
        raise InvalidInputError("distance must be symmetric")
    return np.minimum(apart, apart.T)


def as_loss(cost: FloatArray, shape: tuple[int, int], name: str = "loss") -> FloatArray:
    """Return a matrix of finite losses, one row for each input and one column for each output."""
    if cost.shape != shape:
        raise SitesMismatchError(f"{name} must give a matrix of shape {shape}, got {cost.shape}")
    if not np.isfinite(cost).all():
        raise InvalidInputError(f"{name} must be finite")
    return cost
