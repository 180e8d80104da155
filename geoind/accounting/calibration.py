"""The least noise with which many reports together keep a level, up to delta."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, TypeAlias

from geoind.accounting.bounds import delta_of_losses
from geoind.accounting.losses import GaussianLoss, LaplaceLoss
from geoind.accounting.reports import delta_of_reports
from geoind.arrays import as_count, as_positive, as_unit
from geoind.errors import InvalidInputError
from geoind.mechanisms.gaussian import PlanarGaussian
from geoind.mechanisms.laplace import PlanarLaplace

__all__ = ["Family", "mechanism_for_reports"]

Family: TypeAlias = Literal["best", "laplace", "gaussian"]

Noise: TypeAlias = PlanarLaplace | PlanarGaussian

FAMILIES = ("best", "laplace", "gaussian")


def mechanism_for_reports(
    *, reports: int, level: float, radius: float, delta: float, family: Family = "best"
) -> Noise:
    """Return the mechanism of least noise whose n reports together keep a level within a radius, up to delta.

    Parameters
    ----------
    reports : int
        How many there will be; fewer keep more privacy, more break the promise.
    level, radius, delta : float
        From all reports together, places up to `radius` metres apart can be told apart by a factor e^level, except
        with probability delta.
    family : {"best", "laplace", "gaussian"}
        Which noise; the best has the smaller mean error. Laplace noise also promises its epsilon for each report,
        without a delta; Gaussian noise does not.

    Returns
    -------
    PlanarLaplace or PlanarGaussian
        In the plane, for `Projected`; `SphericalLaplace(mechanism.epsilon)` makes the same promise on the globe.

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
    gaussian = _gaussian(reports, level, radius, delta)
    if family == "gaussian":
        return gaussian
    laplace = _laplace(reports, level, radius, delta)
    return laplace if family == "laplace" or laplace.mean_radius < gaussian.mean_radius else gaussian


@lru_cache(maxsize=1024)
def _laplace(reports: int, level: float, radius: float, delta: float) -> PlanarLaplace:
    # By the plain sum, delta is 0.
    size = _largest(
        lambda size: delta_of_losses(((LaplaceLoss(size), reports),), level, above=True), level / reports, delta
    )
    noise = PlanarLaplace(size / radius)
    while delta_of_reports(noise, reports=reports, radius=radius, level=level) > delta:
        noise = PlanarLaplace(math.nextafter(noise.epsilon, 0.0))
    return noise


@lru_cache(maxsize=1024)
def _gaussian(reports: int, level: float, radius: float, delta: float) -> PlanarGaussian:
    ratio = _largest(lambda ratio: GaussianLoss(ratio).delta(level, above=True), level / 100, delta)
    noise = PlanarGaussian(radius * math.sqrt(reports) / ratio)
    while delta_of_reports(noise, reports=reports, radius=radius, level=level) > delta:
        noise = PlanarGaussian(math.nextafter(noise.sigma, math.inf))
    return noise


def _largest(delta_at: Callable[[float], float], start: float, delta: float) -> float:
    """Return about the largest size at which a rising delta is small enough, never a larger one."""
    low = start
    while delta_at(low) > delta:
        low /= 2
    high = 2 * low
    while delta_at(high) <= delta:
        low, high = high, 2 * high
    from scipy.optimize import brentq

    def excess(logarithm: float) -> float:
        return math.log(max(delta_at(math.exp(logarithm)), 1e-308) / delta)

    size, slack = math.exp(brentq(excess, math.log(low), math.log(high), xtol=1e-10)), 1e-10
    while delta_at(size) > delta:
        size, slack = size * (1 - slack), 2 * slack
    return max(size, low)
