"""Random words to planar Laplace noise: one set of formulas for scalars (`math`) and for arrays (numpy).

With epsilon = 1 the radius has the distribution function 1 - (1 + r) e^(-r). Its inverse is the W_-1 branch of
Lambert's function; here it is solved as r - ln(1 + r) = excess, where excess = -ln(1 - p). That keeps full
relative precision where W itself loses half of the digits (small r) and needs no complex numbers.
"""

import math
from collections.abc import Callable

import numpy as np

from geoind.arrays import FloatArray
from geoind.randomness import Words
from geoind.space.functions import Number

__all__ = [
    "ANGLE_RESOLUTION",
    "MAX_RADIUS",
    "RADIUS_RESOLUTION",
    "RELIABLE_RADIUS",
    "polar_scalar",
    "polar_words",
    "radius_of",
    "radius_of_scalar",
]

ANGLE_RESOLUTION = 2 * math.pi * 2.0**-53
"""Step between two angles, in radians: 53 bits of a word."""

MAX_RADIUS = 56.8
"""No radius exceeds this, in units of 1 / epsilon: the survival probability has 75 bits."""

RELIABLE_RADIUS = 30.0
"""Radii up to this are drawn in steps of at most `RADIUS_RESOLUTION`; farther ones, with probability 3e-12."""

RADIUS_RESOLUTION = 2.0**-75 * math.exp(RELIABLE_RADIUS) / RELIABLE_RADIUS
"""Largest step between two radii up to `RELIABLE_RADIUS`, in units of 1 / epsilon."""

SMALL = 0.15
# Taylor coefficients of r in s = sqrt(2 excess), from r r' = s (1 + r).
SERIES = (
    5.1598873410780758e-10,
    -1.4721627280688399e-8,
    7.5424648554118964e-8,
    -1.8540622107151600e-7,
    -2.4282761229777691e-7,
    4.8990789731530472e-6,
    -2.5536449147560259e-5,
    5.8788947677836567e-5,
    1 / 4320,
    -1 / 270,
    1 / 36,
    1 / 3,
    1.0,
)


def _series(s: Number) -> Number:
    total = s * SERIES[0]
    for coefficient in SERIES[1:]:
        total = (total + coefficient) * s
    return total


def _iterate(s: Number, excess: Number, log: Callable[[Number], Number]) -> Number:
    """Return a rational guess (relative error 4e-6) after one step of order four (Fritsch et al., 1973)."""
    top = ((0.03978854550064859 * s + 0.3048074445587209) * s + 0.9260763262232987) * s + 0.9999909836689908
    r = s * top / ((0.07984709742759 * s + 0.592621444015552) * s + 1.0)
    z = r - log(r + 1.0) - excess
    q = 2.0 * r * (r - z * (2 / 3))
    return r - (r + 1.0) * (z / r) * ((q - z) / (q - 2.0 * z))


def radius_of(excess: FloatArray) -> FloatArray:
    """Return r >= 0 with r - ln(1 + r) = excess, to 1e-14 relative, for a one-dimensional array."""
    s = np.sqrt(2.0 * excess)
    r = _iterate(np.maximum(s, SMALL), np.maximum(excess, SMALL**2 / 2), np.log)
    small = np.flatnonzero(s < SMALL)
    r[small] = _series(s[small])
    return r


def radius_of_scalar(excess: float) -> float:
    """Return what `radius_of` returns, for one number."""
    s = math.sqrt(2.0 * excess)
    return _series(s) if s < SMALL else _iterate(s, excess, math.log)


def polar_words(words: Words) -> tuple[FloatArray, FloatArray]:
    """Return unit radii and angles from (n, 2) words: 75 bits for the radius, 53 for the angle."""
    tail = (words[:, 1] & np.uint64(2047)) + 0.5
    survival = words[:, 0] * 2.0**-64 + tail * 2.0**-75
    excess = np.maximum(-np.log(survival), 0.0)
    return radius_of(excess), (words[:, 1] >> np.uint64(11)).astype(np.float64) * ANGLE_RESOLUTION


def polar_scalar(first: int, second: int) -> tuple[float, float]:
    """Return what `polar_words` returns, for one pair of words."""
    survival = first * 2.0**-64 + ((second & 2047) + 0.5) * 2.0**-75
    excess = max(-math.log(survival), 0.0)
    return radius_of_scalar(excess), (second >> 11) * ANGLE_RESOLUTION
