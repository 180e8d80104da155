"""Concentrated geo-privacy: closed formulas for many reports (Liang and Yi, CCS 2023).

A mechanism has the rate rho, per square metre, if for places d apart every Rényi divergence of order a between
their reports is at most a * rho * d^2. Rates add up. Gaussian noise has 1 / (2 sigma^2), so that n reports need
noise that grows with the square root of n; noise with an epsilon has at most epsilon^2 / 2 (Bun and Steinke,
TCC 2016).
"""

import math
from functools import singledispatch

from geoind.arrays import as_count, as_positive, as_unit
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarGaussian
from geoind.mechanisms.post_processed import PostProcessed
from geoind.mechanisms.projected import Projected
from geoind.mechanisms.protocol import is_mechanism, off_site_level

__all__ = ["level_of_rho", "rho_of_reports"]


def rho_of_reports(mechanism: object, *, reports: int = 1) -> float:
    """Return the rate of concentrated geo-privacy of n reports together, per square metre.

    Examples
    --------
    >>> rho_of_reports(PlanarGaussian(1000.0), reports=2)
    1e-06
    """
    return as_count(reports, "reports") * _rho(mechanism)


def level_of_rho(rho: float, *, radius: float, delta: float) -> float:
    """Return the level that a rate keeps within a radius, up to delta: rho r^2 + 2 r sqrt(rho ln(1 / delta)).

    Looser than `level_of_reports`, which uses the whole distribution of the loss.

    Examples
    --------
    >>> round(level_of_rho(1e-5, radius=200, delta=1e-5), 3)
    4.692
    """
    rho, radius = as_positive(rho, "rho"), as_positive(radius, "radius")
    return rho * radius**2 + 2 * radius * math.sqrt(-rho * math.log(as_unit(delta, "delta")))


@singledispatch
def _rho(mechanism: object) -> float:
    if not is_mechanism(mechanism):
        raise InvalidInputError(f"mechanism must be one that geoind knows, got {type(mechanism).__name__}")
    if not mechanism.epsilon < math.inf or off_site_level(mechanism):
        raise InvalidInputError(f"{type(mechanism).__name__} has no rate of concentrated geo-privacy")
    return mechanism.epsilon**2 / 2


@_rho.register
def _(mechanism: PlanarGaussian) -> float:
    return 1 / (2 * mechanism.sigma**2)


@_rho.register
def _(mechanism: PostProcessed) -> float:
    return _rho(mechanism.mechanism)


@_rho.register
def _(mechanism: Projected) -> float:
    return _rho(mechanism.mechanism) * mechanism.largest_scale**2
