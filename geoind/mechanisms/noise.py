"""From random words to noise in doubles, and to the public lattice of degrees on which lon/lat reports lie.

The first word of a record holds the first 64 bits of a number between 0 and 1, the probability of a larger radius;
the second word those of another one, the direction in turns. One set of formulas, for scalars (`math`) and for
arrays (numpy), computes radius and direction from 64 bits with a known error: `RADIUS_ERROR` and
`DIRECTION_ERROR`, derived in docs/exact-draws.md. Where that does not decide the lattice point, `exact` draws more
bits.

The low bits of a double reveal which inputs could have produced it, so a report is rounded to points that do not
depend on data: multiples of a power of ten of a degree. Towards the poles meridians converge; there (from 84.3
degrees on) the step in longitude grows by powers of ten, so that it is never below a tenth of the step in
latitude, and the pole itself is one point.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_lonlat, as_positive
from geoind.distances import EARTH_RADIUS
from geoind.errors import InvalidInputError
from geoind.keys import Words
from geoind.parallel import Threads, available_cores

Number = TypeVar("Number", float, FloatArray)
Column = TypeVar("Column", int, FloatArray)
Result = TypeVar("Result")


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


BLOCK = 8192
"""Rows that are drawn at once; their temporaries fit the processor's cache."""
SHARED_BLOCK = 32768
"""The same for several threads: larger, so that they wait less for each other."""
ROWS_PER_THREAD = 1 << 17
"""Least number of rows per thread."""


def over_blocks(work: Callable[[slice], Result], count: int) -> list[Result]:
    """Return the results of `work` for each block of `count` rows, in order; many rows use several threads.

    For numpy, which releases the interpreter's lock; the results must not depend on the size of the blocks.

    Examples
    --------
    >>> over_blocks(lambda part: part.stop - part.start, 20_000)
    [8192, 8192, 3616]
    """
    many = count // ROWS_PER_THREAD
    number = min(available_cores(), many) if many > 1 else 1
    size = BLOCK if number < 2 else SHARED_BLOCK
    parts = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    if number < 2:
        return [work(part) for part in parts]
    with Threads(number) as threads:
        return list(threads.each(work, parts))


DECIMALS = 5
"""Default lattice: five decimals of a degree, about one metre."""

METRES_PER_DEGREE = EARTH_RADIUS * math.pi / 180

POLAR = 84
"""Up to this latitude every multiple of the step is a point of the lattice."""


def snap_lonlat(lonlat: ArrayLike, decimals: int = DECIMALS) -> FloatArray:
    """Return the closest points of the lattice, with longitudes in (-180, 180].

    Examples
    --------
    >>> snap_lonlat([[2.2945001, 48.8583999], [-180.0, 0.0]])
    array([[  2.2945,  48.8584],
           [180.    ,   0.    ]])
    """
    points = as_lonlat(lonlat)
    return np.column_stack(nearest_places(points[:, 0], points[:, 1], decimals)[:2])


def nearest_places(
    lon: FloatArray, lat: FloatArray, decimals: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the closest lattice points, and the offsets from them in steps of the lattice, at most half a step.

    Longitudes need not be wrapped, but must be within a full turn.
    """
    scale = 10**decimals
    from_rows, from_columns = lat * scale, lon * scale
    rows, columns = np.rint(from_rows), np.rint(from_columns)
    from_rows -= rows
    from_columns -= columns
    far = np.flatnonzero(np.abs(columns) >= 180 * scale)
    columns[far] = _within_a_turn(columns[far], 180 * scale)
    columns /= scale
    polar = np.flatnonzero(np.abs(rows) > POLAR * scale)
    if polar.size:
        columns[polar], from_columns[polar] = _polar_places(lon[polar], rows[polar], decimals)
    rows /= scale
    # Adding zero turns -0.0 into 0.0, whose sign would reveal the side of zero on which the noise fell.
    columns += 0.0
    rows += 0.0
    return columns, rows, from_columns, from_rows


def longitude_decimals(row: int, decimals: int) -> int:
    """Return the number of decimals of longitudes in a row: fewer near the poles, -1 for steps of ten degrees.

    Examples
    --------
    >>> [longitude_decimals(row, 5) for row in (0, 8_426_082, 8_426_083, 8_999_999)]
    [5, 5, 4, -1]
    """
    from_pole: int = 90 * 10**decimals - abs(row)
    return decimals - sum(from_pole <= limit for limit in _polar_limits(decimals))


def wrapped(column: int, decimals: int) -> float:
    """Return the longitude of a column of steps of 10^-decimals degrees, in (-180, 180]."""
    if decimals < 0:
        return float(10 * _within_a_turn(column, 18))
    scale: int = 10**decimals
    return _within_a_turn(column, 180 * scale) / scale


def half_diagonal(decimals: int = DECIMALS) -> float:
    """Return the largest distance by which snapping moves a report, in metres.

    Examples
    --------
    >>> round(half_diagonal(5), 3)
    0.786
    """
    return math.sqrt(0.5) * METRES_PER_DEGREE * 10.0**-decimals


def _within_a_turn(column: Column, half: Column | int) -> Column:
    """Return the equivalent column in (-half, half], exactly."""
    return half - (half - column) % (2 * half)


@lru_cache(maxsize=8)
def _polar_limits(decimals: int) -> tuple[int, ...]:
    """Return the rows from the pole up to which the step in longitude is 10, 100, ... times as long."""
    return tuple(
        math.floor(math.degrees(math.asin(10.0**-power)) * 10**decimals) for power in range(1, decimals + 2)
    )


def _polar_places(lon: FloatArray, rows: FloatArray, decimals: int) -> tuple[FloatArray, FloatArray]:
    """Return the longitudes of lattice points near a pole, and the offsets in steps of their row."""
    from_pole = 90 * 10**decimals - np.abs(rows)
    finest = decimals - sum((from_pole <= limit).astype(int) for limit in _polar_limits(decimals))
    steps = lon * 10.0**finest
    columns = np.rint(steps)
    off = steps - columns
    # Ten degrees, the longest step, divides a full turn as well.
    scale, ten = 10.0 ** np.maximum(finest, 0), np.where(finest < 0, 10.0, 1.0)
    degrees = ten * _within_a_turn(columns, 180 * scale / ten) / scale
    # The row of the pole has a single point, with longitude 0.
    here = from_pole > 0
    return np.where(here, degrees, 0.0), np.where(here, off, 0.0)
