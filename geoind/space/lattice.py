"""The public lattice of degrees on which lon/lat reports end.

The low bits of a double tell which inputs could have produced it, so a report is rounded to places that do not
depend on anybody's data: multiples of a power of ten of a degree. Towards the poles meridians come together;
there the step in longitude grows by powers of ten, so that it never falls below a tenth of the step in
latitude (from 84.3 degrees on), and the pole itself has one name.
"""

import math

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_lonlat
from geoind.distances import EARTH_RADIUS
from geoind.space.functions import ARRAYS, SCALARS, Functions, Number

__all__ = ["DECIMALS", "METRES_PER_DEGREE", "half_diagonal", "smallest_step", "snap_lonlat", "snap_scalar"]

DECIMALS = 5
"""Default lattice: five decimals of a degree, about one metre."""

METRES_PER_DEGREE = EARTH_RADIUS * math.pi / 180

POLAR = math.degrees(math.acos(0.1))
"""Up to this latitude every multiple of the step is a place of the lattice."""


def snap_lonlat(lonlat: ArrayLike, decimals: int = DECIMALS) -> FloatArray:
    """Return the closest places of the lattice, with longitudes in (-180, 180].

    Examples
    --------
    >>> snap_lonlat([[2.2945001, 48.8583999], [-180.0, 0.0]])
    array([[  2.2945,  48.8584],
           [180.    ,   0.    ]])
    """
    points = as_lonlat(lonlat)
    return np.column_stack(snap_arrays(points[:, 0], points[:, 1], decimals))


def snap_arrays(lon: FloatArray, lat: FloatArray, decimals: int) -> tuple[FloatArray, FloatArray]:
    """Return snapped longitudes and latitudes; longitudes may come unwrapped."""
    scale = 10.0**decimals
    lat = _round(lat, scale, ARRAYS)
    wrapped = _wrap(lon, ARRAYS)
    lon = _round(wrapped, scale, ARRAYS)
    polar = np.flatnonzero(np.abs(lat) > POLAR)
    if polar.size:
        # A pole's own row has a single place, longitude 0.
        shrink = np.cos(np.radians(np.minimum(np.abs(lat[polar]), 90 - 0.5 / scale)))
        coarse = scale * 10.0 ** -np.floor(-np.log10(shrink))
        rounded = np.rint(wrapped[polar] * coarse) / coarse + 0.0
        lon[polar] = np.where(np.abs(lat[polar]) == 90, 0.0, rounded)
    lon[lon == -180] = 180
    return lon, lat


def snap_scalar(lon: float, lat: float, decimals: int) -> tuple[float, float]:
    """Return what `snap_arrays` returns, for one place."""
    scale = 10.0**decimals
    lat = _round(lat, scale, SCALARS)
    if abs(lat) > POLAR:
        lons, lats = snap_arrays(np.array([lon]), np.array([lat]), decimals)
        return float(lons[0]), float(lats[0])
    lon = _round(_wrap(lon, SCALARS), scale, SCALARS)
    return 180.0 if lon == -180 else lon, lat


def smallest_step(decimals: int = DECIMALS) -> float:
    """Return the smallest distance between neighbours of the lattice, in metres."""
    return 0.1 * METRES_PER_DEGREE * 10.0**-decimals


def half_diagonal(decimals: int = DECIMALS) -> float:
    """Return how far snapping moves a report at most, in metres.

    Examples
    --------
    >>> round(half_diagonal(5), 3)
    0.786
    """
    return math.sqrt(0.5) * METRES_PER_DEGREE * 10.0**-decimals


def _round(value: Number, scale: float, functions: Functions[Number]) -> Number:
    # Adding zero turns -0.0 into 0.0: a sign that says on which side of zero the noise fell.
    return functions.rint(value * scale) / scale + 0.0


def _wrap(lon: Number, functions: Functions[Number]) -> Number:
    return lon - 360.0 * functions.rint(lon / 360.0)
