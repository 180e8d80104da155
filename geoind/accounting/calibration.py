"""The mechanism of least noise for a level of many reports together, up to delta."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, TypeAlias

from scipy.optimize import brentq

from geoind.accounting.accountant import delta_of_losses, delta_of_reports
from geoind.accounting.losses import loss_of
from geoind.arrays import as_count, as_positive, as_unit
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarGaussian, PlanarLaplace
from geoind.mechanisms.protocol import Space
from geoind.mechanisms.spherical import SphericalGaussian, SphericalLaplace

__all__ = ["Family", "gaussian_is_smaller_from", "mechanism_for_reports"]

Family: TypeAlias = Literal["best", "laplace", "gaussian"]

Noise: TypeAlias = PlanarLaplace | PlanarGaussian | SphericalLaplace | SphericalGaussian

FAMILIES = ("best", "laplace", "gaussian")

MAKERS: dict[tuple[str, str], Callable[[float], Noise]] = {
    ("laplace", "xy"): PlanarLaplace,
    ("laplace", "lonlat"): SphericalLaplace,
    ("gaussian", "xy"): lambda narrowness: PlanarGaussian(1 / narrowness),
    ("gaussian", "lonlat"): lambda narrowness: SphericalGaussian(1 / narrowness),
}
"""Noise from epsilon, or from one over sigma."""


def mechanism_for_reports(
    *, reports: int, level: float, radius: float, delta: float, family: Family = "best", space: Space = "xy"
) -> Noise:
    """Return the mechanism of least noise for a level of n reports together within a radius, up to delta.

    Parameters
    ----------
    reports : int
        The largest number of reports; more would exceed the level.
    level, radius, delta : float
        All reports together distinguish places up to `radius` metres apart by a factor e^level at most, except
        with probability delta.
    family : {"best", "laplace", "gaussian"}
        The family of noise; "best" has the smaller mean error. Laplace noise also has an epsilon for each report,
        without a delta; Gaussian noise has none.
    space : {"xy", "lonlat"}
        In the plane, or on the globe.

    Returns
    -------
    PlanarLaplace or PlanarGaussian, SphericalLaplace or SphericalGaussian

    Examples
    --------
    >>> noise = mechanism_for_reports(reports=20, level=math.log(4), radius=200, delta=1e-5)
    >>> type(noise).__name__, round(noise.mean_radius)
    ('PlanarGaussian', 3109)
    >>> laplace = mechanism_for_reports(reports=20, level=math.log(4), radius=200, delta=1e-5, family="laplace")
    >>> round(laplace.mean_radius), round(20 * 2 / (math.log(4) / 200))    # and by the plain sum
    (3344, 5771)
    """
    reports, level = as_count(reports, "reports"), as_positive(level, "level")
    radius, delta = as_positive(radius, "radius"), as_unit(delta, "delta")
    if family not in FAMILIES:
        raise InvalidInputError(f"family must be one of {', '.join(FAMILIES)}, got {family!r}")
    if space not in ("xy", "lonlat"):
        raise InvalidInputError(f"space must be 'xy' or 'lonlat', got {space!r}")
    families = ("laplace", "gaussian") if family == "best" else (family,)
    made = [_made(each, space, reports, level, radius, delta) for each in families]
    return min(made, key=lambda noise: noise.mean_radius)


@lru_cache(maxsize=1024)
def _made(family: str, space: str, reports: int, level: float, radius: float, delta: float) -> Noise:
    if family == "laplace":
        # The plain sum, where delta is 0, is a safe start.
        size = _largest(lambda size: _delta_of(PlanarLaplace(size), reports, level), level / reports, delta)
    else:
        size = _largest(lambda ratio: _delta_of(PlanarGaussian(1 / ratio), 1, level), level / 100, delta)
        size /= math.sqrt(reports)
    narrowness, slack = size / radius, 1e-15
    noise = MAKERS[family, space](narrowness)
    # Correct for rounding and, on the globe, for the curvature.
    while delta_of_reports(noise, reports=reports, radius=radius, level=level) > delta:
        noise, slack = MAKERS[family, space](narrowness * (1 - slack)), 2 * slack
    return noise


def _delta_of(noise: Noise, reports: int, level: float) -> float:
    """Return delta between places one unit apart."""
    return delta_of_losses(((loss_of(noise, 1.0), reports),), level, above=True)


def _largest(delta_at: Callable[[float], float], start: float, delta: float) -> float:
    """Return about the largest size at which an increasing function is at most delta, never a larger one."""
    low = start
    while delta_at(low) > delta:
        low /= 2
    high = 2 * low
    while delta_at(high) <= delta:
        low, high = high, 2 * high

    def excess(logarithm: float) -> float:
        return math.log(max(delta_at(math.exp(logarithm)), 1e-308) / delta)

    size, slack = math.exp(brentq(excess, math.log(low), math.log(high), xtol=1e-10)), 1e-10
    while delta_at(size) > delta:
        size, slack = size * (1 - slack), 2 * slack
    return max(size, low)


def gaussian_is_smaller_from(*, level: float, radius: float, delta: float, summed: bool = False) -> int:
    """Return the number of reports from which on Gaussian noise is smaller than Laplace noise.

    Parameters
    ----------
    level, radius, delta : float
        Of all reports together, as in `mechanism_for_reports`.
    summed : bool
        Compare with Laplace noise whose epsilons are added up, without the accountant.

    Examples
    --------
    >>> gaussian_is_smaller_from(level=math.log(4), radius=200, delta=1e-5, summed=True)
    6
    """

    def error(family: Family, reports: int) -> float:
        if summed and family == "laplace":
            return 2 * radius * reports / level
        noise = mechanism_for_reports(reports=reports, level=level, radius=radius, delta=delta, family=family)
        return noise.mean_radius

    low, high = 0, 1
    while error("gaussian", high) >= error("laplace", high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if error("gaussian", middle) >= error("laplace", middle) else (low, middle)
    return high
