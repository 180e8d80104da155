"""What is known about a person's whereabouts before the report."""

from dataclasses import dataclass

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats, frozen
from geoind.errors import NotStochasticError, SitesMismatchError
from geoind.sites import Sites

__all__ = ["Prior"]

SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Prior:
    """A probability for each site.

    Examples
    --------
    >>> from geoind import Grid
    >>> home = Prior(Grid(0, 0, cell=100, columns=2, rows=1), [0.75, 0.25])
    >>> home.mass
    array([0.75, 0.25])
    """

    sites: Sites
    mass: FloatArray

    def __init__(self, sites: Sites, mass: ArrayLike) -> None:
        array = as_floats(mass, "mass")
        if array.shape != (len(sites),):
            raise SitesMismatchError(f"mass has shape {array.shape}, but there are {len(sites)} sites")
        if not (array >= 0).all() or not abs(array.sum() - 1) <= SUM_TOLERANCE:
            raise NotStochasticError("mass must not be negative and must sum to 1")
        object.__setattr__(self, "sites", sites)
        object.__setattr__(self, "mass", frozen(array / array.sum()))

    @classmethod
    def uniform(cls, sites: Sites) -> "Prior":
        """Return the same mass for every site."""
        return cls(sites, np.full(len(sites), 1 / len(sites)))

    @classmethod
    def from_counts(cls, sites: Sites, counts: ArrayLike) -> "Prior":
        """Return masses proportional to non-negative weights, one per site."""
        weights = as_floats(counts, "counts")
        total = weights.sum()
        if not 0 < total < np.inf:
            raise NotStochasticError("counts must have a positive, finite sum")
        return cls(sites, weights / total)
