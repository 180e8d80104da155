"""From random words to noise in doubles: one set of formulas for scalars (`math`) and for arrays (numpy).

The first word of a record holds the first 64 bits of a number between 0 and 1, the probability of a larger radius;
the second word those of another one, the direction in turns. These formulas compute radius and direction from
64 bits with a known error: `RADIUS_ERROR` and `DIRECTION_ERROR`, derived in docs/exact-draws.md. Where that does
not decide the lattice point, `exact` draws more bits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from geoind.arrays import FloatArray, IntArray, as_positive
from geoind.errors import InvalidInputError
from geoind.randomness import Words

__all__ = [
    "ARRAYS",
    "DIRECTION_ERROR",
    "LARGEST_SURVIVAL",
    "RADIUS_ERROR",
    "SCALARS",
    "SMALLEST_SURVIVAL",
    "Functions",
    "Number",
    "as_noise",
    "direction",
    "half_angle_scalar",
    "half_angles",
    "laplace_radius",
    "out_of_range",
    "polynomial",
    "radius_of",
    "survival_scalar",
    "survivals",
]

Number = TypeVar("Number", float, FloatArray)


@dataclass(frozen=True)
class Functions(Generic[Number]):
    """Elementary functions of `math` or of numpy."""

    sin: Callable[[Number], Number]
    cos: Callable[[Number], Number]
    tan: Callable[[Number], Number]
    sqrt: Callable[[Number], Number]
    log: Callable[[Number], Number]
    angle: Callable[[Number, Number], Number]


def _angle(y: FloatArray, x: FloatArray) -> FloatArray:
    # numpy's arctan is faster than its arctan2. The choice changes no report: where the two could differ, doubles
    # do not decide (docs/exact-draws.md).
    return np.arctan(y / x) if x.size and x.min() > 0 else np.arctan2(y, x)


SCALARS = Functions[float](math.sin, math.cos, math.tan, math.sqrt, math.log, math.atan2)
ARRAYS = Functions[FloatArray](np.sin, np.cos, np.tan, np.sqrt, np.log, _angle)


SMALLEST_SURVIVAL = 2.0**-22
LARGEST_SURVIVAL = 1 - 2.0**-22
"""Between these the error bounds below hold; exact arithmetic computes the rest (5e-7 of all draws)."""

RADIUS_ERROR = 2.0**-36
"""Bound on the error of a computed radius, in units of the noise's scale."""

DIRECTION_ERROR = 2.0**-47
"""Bound on the error of a computed sine or cosine of the direction."""


EXTREME = 1e200
"""Largest epsilon or sigma; its inverse is the smallest. Reports stay far from the limits of doubles."""


def as_noise(value: float, name: str) -> float:
    """Return an epsilon (per metre) or a sigma (in metres) whose noise doubles can represent."""
    number = as_positive(value, name)
    if not 1 / EXTREME <= number <= EXTREME:
        raise InvalidInputError(f"{name} must be between {1 / EXTREME:g} and {EXTREME:g}, got {value!r}")
    return number


def survivals(words: Words) -> FloatArray:
    """Return the first numbers of (n, 2) words: the probabilities of a larger radius."""
    # Half of the word fits a signed integer, whose conversion to double is several times faster.
    halves = (words[:, 0] >> np.uint64(1)).view(np.int64).astype(np.float64)
    halves *= 2.0**-63
    return halves


def out_of_range(survival: FloatArray) -> IntArray:
    """Return the rows where the error bounds do not hold."""
    if survival.size and SMALLEST_SURVIVAL < survival.min() <= survival.max() < LARGEST_SURVIVAL:
        return np.empty(0, np.int64)
    return np.flatnonzero(~((survival > SMALLEST_SURVIVAL) & (survival < LARGEST_SURVIVAL)))


def half_angles(words: Words) -> FloatArray:
    """Return half the angles of (n, 2) words, from -pi/2 to pi/2."""
    angles = words.view(np.int64)[:, 1].astype(np.float64)
    angles *= math.pi * 2.0**-64
    return angles


def survival_scalar(first: int) -> float:
    """Return the result of `survivals` for one word."""
    return (first >> 1) * 2.0**-63


def half_angle_scalar(second: int) -> float:
    """Return the result of `half_angles` for one word."""
    return (second - (second >> 63 << 64)) * (math.pi * 2.0**-64)


def direction(half: Number, functions: Functions[Number]) -> tuple[Number, Number]:
    """Return cosine and sine of twice an angle, computed from one tangent."""
    t = functions.tan(half)
    scale = t * t
    scale += 1.0
    scale = 2.0 / scale
    t *= scale
    return scale - 1.0, t


# The radius r of r - ln(1 + r) = s^2 / 2 as s times top(s) / bottom(s), relative error 3.5e-13 for s up to 5.8.
# All coefficients are positive, so the sums have no cancellation.
TOP = (
    0.000083982152070149363393,
    0.0028833079622012789425,
    0.033410581378964008232,
    0.19802023679102762322,
    0.66554872308548963996,
    1.2330765861740531745,
    0.99999999999967292212,
)
BOTTOM = (
    0.00016803347459220185888,
    0.0057558475677500207653,
    0.064112226233482673781,
    0.33785652824460594122,
    0.89974325280775638949,
    1.0,
)


def laplace_radius(s: Number) -> Number:
    """Return the planar Laplace radius whose survival probability is exp(-s^2 / 2), for epsilon = 1."""
    top = polynomial(TOP, s)
    top /= polynomial(BOTTOM, s)
    top *= s
    return top


def polynomial(coefficients: tuple[float, ...], x: Number) -> Number:
    """Return the polynomial's value; the coefficient of the highest power comes first."""
    # In place, to allocate one array instead of one per step.
    total = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        total += coefficient
        total *= x
    total += coefficients[-1]
    return total


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


def radius_of(excess: FloatArray) -> FloatArray:
    """Return r >= 0 with r - ln(1 + r) = excess, to 1e-14 relative, for a one-dimensional array.

    With excess = -ln(1 - p) it is the quantile of the radius at p: Lambert's W_-1 without its cancellation. A
    rational approximation (relative error 4e-6) is followed by one step of order four (Fritsch et al., 1973).
    """
    s = np.sqrt(2.0 * excess)
    r = _iterate(np.maximum(s, SMALL), np.maximum(excess, SMALL**2 / 2))
    small = np.flatnonzero(s < SMALL)
    r[small] = _series(s[small])
    return r


def _series(s: FloatArray) -> FloatArray:
    total = s * SERIES[0]
    for coefficient in SERIES[1:]:
        total = (total + coefficient) * s
    return total


def _iterate(s: FloatArray, excess: FloatArray) -> FloatArray:
    top = ((0.03978854550064859 * s + 0.3048074445587209) * s + 0.9260763262232987) * s + 0.9999909836689908
    r = s * top / ((0.07984709742759 * s + 0.592621444015552) * s + 1.0)
    z = r - np.log(r + 1.0) - excess
    q = 2.0 * r * (r - z * (2 / 3))
    return np.asarray(r - (r + 1.0) * (z / r) * ((q - z) / (q - 2.0 * z)))
