"""Lengths and directions on the WGS84 ellipsoid."""

import numpy as np
import pyproj

from geoind.arrays import ArrayLike, FloatArray

__all__ = ["destinations", "geodesic_lengths"]

WGS84 = pyproj.Geod(ellps="WGS84")


def geodesic_lengths(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """Return the metres between pairs of (n, 2) lon/lat points, or between one point and each of (n, 2) others.

    Examples
    --------
    >>> geodesic_lengths([2.0, 48.0], [[2.0, 49.0]]).round(1)
    array([111200.])
    """
    here, there = np.broadcast_arrays(np.asarray(first, np.float64), np.asarray(second, np.float64))
    return np.asarray(WGS84.inv(*here.T, *there.T)[2], dtype=np.float64)


def destinations(places: FloatArray, bearings: ArrayLike, metres: float) -> FloatArray:
    """Return the (n, 2) lon/lat points at a distance and at bearings (clockwise from north) from (n, 2) others.

    Examples
    --------
    >>> destinations(np.array([[2.0, 48.0]]), 0.0, 111200.0).round(4)
    array([[ 2., 49.]])
    """
    count = len(places)
    bearing = np.broadcast_to(np.asarray(bearings, dtype=np.float64), count)
    lon, lat, _ = WGS84.fwd(places[:, 0], places[:, 1], bearing, np.full(count, float(metres)))
    return np.column_stack([lon, lat])
