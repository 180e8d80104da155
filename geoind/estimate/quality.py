"""Distances between an estimated population and the true one."""

import math
import warnings

import numpy as np
from scipy.stats import wasserstein_distance

from geoind.arrays import FloatArray, as_count, as_finite
from geoind.channels.priors import Prior
from geoind.errors import InvalidInputError, SitesMismatchError
from geoind.extras import require

__all__ = ["earth_movers_distance", "hotspots_found", "total_variation"]

EXACT_SITES = 4096
"""Up to this many sites the earth-mover's distance is exact by default."""

DIRECTIONS = 64
"""Directions over which the sliced distance is averaged."""


def total_variation(estimate: Prior, truth: Prior) -> float:
    """Return the total variation distance: half the sum of the absolute differences.

    Examples
    --------
    >>> from geoind import Grid, Prior
    >>> grid = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> total_variation(Prior(grid, [0.5, 0.5]), Prior(grid, [0.75, 0.25]))
    0.25
    """
    return float(np.abs(_difference(estimate, truth)).sum() / 2)


def earth_movers_distance(estimate: Prior, truth: Prior, *, exact: bool | None = None) -> float:
    """Return the mean distance in metres that people must move to turn one population into the other.

    Exact (a transport problem, solved by the package POT) or, by default above 4096 sites, sliced: the mean over
    64 directions of the one-dimensional distance, times pi / 2. With infinitely many directions the sliced
    distance is at most the exact one, and equal to it where all people move in the same direction.

    Examples
    --------
    >>> from geoind import Grid, Prior
    >>> grid = Grid(0, 0, cell=100, columns=3, rows=1)
    >>> round(earth_movers_distance(Prior(grid, [0.5, 0.5, 0]), Prior(grid, [0.5, 0, 0.5])), 6)
    50.0
    """
    change = _difference(estimate, truth)
    xy = truth.sites.xy
    if exact is None:
        exact = len(xy) <= EXACT_SITES
    if exact:
        require("the exact earth mover's distance", "ot")
    # The common mass stays in place; only the surplus moves.
    surplus, deficit = change > 0, change < 0
    moved = float(change[surplus].sum())
    if not moved > 1e-15:
        return 0.0
    give, take = change[surplus] / moved, -change[deficit]
    distance = _transported if exact else _sliced
    return moved * distance(xy[surplus], xy[deficit], give, take / take.sum())


def _transported(start: FloatArray, end: FloatArray, give: FloatArray, take: FloatArray) -> float:
    with warnings.catch_warnings():
        # Its source has invalid escapes, for which some interpreters warn when they first compile it.
        warnings.simplefilter("ignore")
        import ot

    cost = np.hypot(*(start[:, None] - end[None]).transpose(2, 0, 1))
    return float(ot.emd2(give, take, cost, numItermax=10_000_000))


def _sliced(start: FloatArray, end: FloatArray, give: FloatArray, take: FloatArray) -> float:
    total = 0.0
    for angle in (np.arange(DIRECTIONS) + 0.5) * math.pi / DIRECTIONS:
        direction = np.array([math.cos(angle), math.sin(angle)])
        total += float(wasserstein_distance(start @ direction, end @ direction, give, take))
    # The projection of a unit vector has a mean length of 2 / pi over all directions.
    return math.pi / 2 * total / DIRECTIONS


def hotspots_found(estimate: Prior, truth: Prior, *, count: int = 20, within: float = 0.0) -> float:
    """Return the share of the truth's `count` densest sites that are also densest sites of the estimate.

    A site counts as found if one of the estimate's `count` densest sites lies within `within` metres of it.

    Examples
    --------
    >>> from geoind import Grid, Prior
    >>> grid = Grid(0, 0, cell=100, columns=4, rows=1)
    >>> estimate, truth = Prior(grid, [0.1, 0.4, 0.1, 0.4]), Prior(grid, [0.5, 0.1, 0.0, 0.4])
    >>> hotspots_found(estimate, truth, count=2), hotspots_found(estimate, truth, count=2, within=100)
    (0.5, 1.0)
    """
    _difference(estimate, truth)
    count = as_count(count, "count")
    if not as_finite(within, "within") >= 0:
        raise InvalidInputError(f"within must not be negative, got {within!r}")
    found, wanted = (prior.sites.xy[np.argsort(-prior.mass, kind="stable")[:count]] for prior in (estimate, truth))
    nearest = np.hypot(*(wanted[:, None] - found[None]).transpose(2, 0, 1)).min(axis=1)
    return float((nearest <= within).mean())


def _difference(estimate: Prior, truth: Prior) -> FloatArray:
    if estimate.sites is not truth.sites and estimate.sites != truth.sites:
        raise SitesMismatchError("estimate and truth must be over the same sites")
    return estimate.mass - truth.mass
