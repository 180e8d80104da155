"""Distances between two lists of points; losses and privacy metrics alike.

A `Distance` takes (n, 2) and (m, 2) coordinates and returns the (n, m) matrix. A road or elastic metric
that is only known as a table becomes one through `from_matrix`.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats, frozen
from geoind.errors import InvalidInputError, SitesMismatchError

__all__ = [
    "Distance",
    "discrete",
    "euclidean",
    "from_matrix",
    "hamming",
    "haversine",
    "manhattan",
    "manhattan_normalised",
    "squared",
]

Distance: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]

EARTH_RADIUS = 6_371_008.8
"""Mean radius of the Earth in metres (IUGG)."""


def euclidean(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return straight-line distances.

    >>> euclidean(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[5., 1.]])
    """
    return np.hypot(a[:, None, 0] - b[None, :, 0], a[:, None, 1] - b[None, :, 1])


def squared(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return squared straight-line distances: a loss, not a metric.

    >>> squared(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[25.]])
    """
    total = a[:, :1] - b[:, 0]
    total *= total
    north = a[:, 1:] - b[:, 1]
    north *= north
    total += north
    return total


def manhattan(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return city-block distances, |dx| + |dy|.

    >>> manhattan(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[7.]])
    """
    return np.abs(a[:, None, 0] - b[None, :, 0]) + np.abs(a[:, None, 1] - b[None, :, 1])


def manhattan_normalised(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return city-block distances over sqrt(2), which never exceed the Euclidean ones.

    A promise in this metric is therefore at least the same promise in the Euclidean metric.

    >>> manhattan_normalised(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]])).round(6)
    array([[1.414214]])
    """
    return manhattan(a, b) / math.sqrt(2)


def discrete(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return 0 for equal points and 1 for different ones.

    >>> discrete(np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [9.0, 9.0]]))
    array([[0., 1.]])
    """
    return np.asarray((a[:, None, :] != b[None, :, :]).any(axis=2), dtype=np.float64)


def hamming(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return how many coordinates differ; for tuples of any length.

    >>> hamming(np.array([[1.0, 2.0]]), np.array([[1.0, 3.0], [0.0, 0.0]]))
    array([[1., 2.]])
    """
    return np.asarray((a[:, None, :] != b[None, :, :]).sum(axis=2), dtype=np.float64)


def haversine(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return great-circle distances in metres between lon/lat points in degrees.

    >>> haversine(np.array([[0.0, 0.0]]), np.array([[0.0, 90.0]])).round()
    array([[10007557.]])
    """
    lon_a, lat_a = np.radians(a[:, None, 0]), np.radians(a[:, None, 1])
    lon_b, lat_b = np.radians(b[None, :, 0]), np.radians(b[None, :, 1])
    half = np.sin((lat_b - lat_a) / 2) ** 2
    half = half + np.cos(lat_a) * np.cos(lat_b) * np.sin((lon_b - lon_a) / 2) ** 2
    arc: FloatArray = 2 * np.arcsin(np.sqrt(np.minimum(half, 1.0)))
    return EARTH_RADIUS * arc


def from_matrix(matrix: ArrayLike) -> Distance:
    """Return a distance that answers with `matrix`, whatever the coordinates.

    Its shape must fit the sites it is used with: rows for the first list, columns for the second.

    >>> road = from_matrix([[0.0, 120.0], [120.0, 0.0]])
    >>> road(np.zeros((2, 2)), np.zeros((2, 2)))
    array([[  0., 120.],
           [120.,   0.]])
    """
    table = frozen(as_floats(matrix, "distance matrix"))
    if table.ndim != 2 or not ((table >= 0) & (table < np.inf)).all():
        raise InvalidInputError("distance matrix must be two-dimensional, finite and not negative")

    def look_up(a: FloatArray, b: FloatArray) -> FloatArray:
        if table.shape != (len(a), len(b)):
            raise SitesMismatchError(f"distance matrix is {table.shape}, sites are {(len(a), len(b))}")
        return table

    return look_up
