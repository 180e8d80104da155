"""Distances between two lists of points, for losses and privacy metrics.

A `Distance` takes (n, k) and (m, k) coordinates and returns the (n, m) matrix. Points of the plane have two
coordinates, records of a database one for each attribute. `from_matrix` turns a table, for example of road
distances, into a `Distance`.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats, as_positive, frozen
from geoind.errors import InvalidInputError, SitesMismatchError

__all__ = [
    "Distance",
    "discrete",
    "euclidean",
    "from_matrix",
    "hamming",
    "haversine",
    "manhattan",
    "normalised_manhattan",
    "squared",
]

Distance: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""A function from (n, k) and (m, k) coordinates to the (n, m) matrix of their distances."""

EARTH_RADIUS = 6_371_008.8
"""Mean radius of the Earth in metres (IUGG)."""

GEODESIC_STRETCH = 1.0045
"""No WGS84 distance exceeds the great-circle distance by more than this factor.

It is the largest radius of curvature, a^2 / b = 6 399 594 m at the poles, divided by the mean radius: 1.004487.
"""


def euclidean(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Return straight-line distances.

    >>> euclidean(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[5., 1.]])
    """
    differences = _differences(*_same_width(a, b))
    total = np.abs(next(differences))
    for difference in differences:
        np.hypot(total, difference, out=total)
    return total


def squared(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Return squared straight-line distances: a loss, not a metric.

    >>> squared(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[25.]])
    """
    a, b = _same_width(a, b)
    total = np.zeros((len(a), len(b)))
    for difference in _differences(a, b):
        difference *= difference
        total += difference
    return total


def manhattan(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Return city-block distances: the sum of the coordinates' differences.

    >>> manhattan(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[7.]])
    """
    a, b = _same_width(a, b)
    total = np.zeros((len(a), len(b)))
    for difference in _differences(a, b):
        total += np.abs(difference)
    return total


def normalised_manhattan(largest: float) -> Distance:
    """Return the city-block distance divided by the largest distance of two values: at most the Hamming distance.

    Between databases it counts the records that differ, weighted by the size of the change. Sum, average and
    percentile queries have the same sensitivity under both.

    Parameters
    ----------
    largest : float
        Largest distance of two values of one coordinate; larger ones are an error.

    Examples
    --------
    >>> salaries = np.array([[32, 0, 27], [32, 0.01, 27], [32, 1e6, 27]])
    >>> normalised_manhattan(1e6)(salaries[:1], salaries)
    array([[0.e+00, 1.e-08, 1.e+00]])
    """
    largest = as_positive(largest, "largest")

    def normalised(a: ArrayLike, b: ArrayLike) -> FloatArray:
        a, b = _same_width(a, b)
        total = np.zeros((len(a), len(b)))
        for difference in _differences(a, b):
            # The difference of two doubles has a rounding error.
            if not (np.abs(difference) <= largest * (1 + 1e-12)).all():
                raise InvalidInputError(f"no two values may be farther apart than largest, {largest:g}")
            total += np.abs(difference)
        return total / largest

    return normalised


def discrete(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Return 0 for equal points and 1 for different ones.

    >>> discrete(np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [9.0, 9.0]]))
    array([[0., 1.]])
    """
    return np.minimum(hamming(a, b), 1.0)


def hamming(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Return the number of coordinates that differ.

    >>> hamming(np.array([[1.0, 2.0]]), np.array([[1.0, 3.0], [0.0, 0.0]]))
    array([[1., 2.]])
    """
    a, b = _same_width(a, b)
    total = np.zeros((len(a), len(b)))
    for column in range(a.shape[1]):
        total += a[:, None, column] != b[None, :, column]
    return total


def haversine(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Return great-circle distances in metres between lon/lat points in degrees.

    >>> haversine(np.array([[0.0, 0.0]]), np.array([[0.0, 90.0]])).round()
    array([[10007557.]])
    """
    a, b = _same_width(a, b)
    if a.shape[1] != 2:
        raise SitesMismatchError(
            f"great-circle distances need 2 columns, longitude and latitude, got {a.shape[1]}"
        )
    lon_a, lat_a = np.radians(a[:, None, 0]), np.radians(a[:, None, 1])
    lon_b, lat_b = np.radians(b[None, :, 0]), np.radians(b[None, :, 1])
    half = np.sin((lat_b - lat_a) / 2) ** 2
    half = half + np.cos(lat_a) * np.cos(lat_b) * np.sin((lon_b - lon_a) / 2) ** 2
    arc: FloatArray = 2 * np.arcsin(np.sqrt(np.minimum(half, 1.0)))
    return EARTH_RADIUS * arc


def from_matrix(matrix: ArrayLike) -> Distance:
    """Return a distance that returns `matrix` for any coordinates.

    Its shape must fit the sites: rows for the first list, columns for the second.

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


def _same_width(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both lists, checked: numpy would broadcast a single coordinate."""
    a, b = as_floats(first, "points"), as_floats(second, "points")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not a.shape[1]:
        raise SitesMismatchError(f"points must have the same number of coordinates, got {a.shape} and {b.shape}")
    return a, b


def _differences(a: FloatArray, b: FloatArray) -> Iterator[FloatArray]:
    """Yield the (n, m) differences of each coordinate, one matrix at a time."""
    for column in range(a.shape[1]):
        yield a[:, None, column] - b[None, :, column]
