"""The public lattice of degrees to which lon/lat reports are rounded.

The low bits of a double reveal which inputs could have produced it, so a report is rounded to points that do not
depend on data: multiples of a power of ten of a degree. Towards the poles meridians converge; there (from 84.3
degrees on) the step in longitude grows by powers of ten, so that it is never below a tenth of the step in
latitude, and the pole itself is one point.
"""

import math
from functools import lru_cache
from typing import TypeVar

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_lonlat
from geoind.distances import EARTH_RADIUS

__all__ = [
    "DECIMALS",
    "METRES_PER_DEGREE",
    "half_diagonal",
    "longitude_decimals",
    "nearest_places",
    "snap_lonlat",
    "wrapped",
]

DECIMALS = 5
"""Default lattice: five decimals of a degree, about one metre."""

METRES_PER_DEGREE = EARTH_RADIUS * math.pi / 180

POLAR = 84
"""Up to this latitude every multiple of the step is a point of the lattice."""

Column = TypeVar("Column", int, FloatArray)


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
