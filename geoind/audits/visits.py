"""Visits of persons to places: which rows are near a place, which places are the same, and when it is night."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray, IntArray
from geoind.distances import EARTH_RADIUS, haversine

__all__ = [
    "MILLIMETRE",
    "Flags",
    "Visits",
    "at_night",
    "at_work",
    "on_sphere",
    "plane_around",
    "rows_within",
    "snapped",
]

Flags: TypeAlias = npt.NDArray[np.bool_]
HOUR = 3600.0
MILLIMETRE = 1e-3
"""Places that near are the same place."""


@dataclass(frozen=True, eq=False)
class Visits:
    """Places with the persons that were there, in truth or as reported.

    Attributes
    ----------
    lonlat : (n, 2) array
        Degrees.
    person : (n,) array of int
        Numbers of the persons, from 0.
    time : (n,) array, optional
        Seconds since 1970.
    """

    lonlat: FloatArray
    person: IntArray
    time: FloatArray | None = None

    @cached_property
    def persons(self) -> int:
        """The number of persons."""
        return int(self.person.max()) + 1

    @cached_property
    def order(self) -> IntArray:
        """The rows person by person, each in the order of time, or of the rows without times."""
        last = np.arange(len(self.person)) if self.time is None else self.time
        return np.lexsort((last, self.person))

    @cached_property
    def starts(self) -> IntArray:
        """Where the rows of each person begin in `order`, and the end."""
        return np.searchsorted(self.person[self.order], np.arange(self.persons + 1))

    @cached_property
    def rank(self) -> IntArray:
        """The number of each row among the rows of its person, in the order of time."""
        ranks = np.empty(len(self.person), np.int64)
        ranks[self.order] = np.arange(len(self.person)) - np.repeat(self.starts[:-1], self.counts)
        return ranks

    @cached_property
    def counts(self) -> IntArray:
        """The number of rows of each person."""
        return np.diff(self.starts)

    @cached_property
    def place(self) -> IntArray:
        """The number of each row's place among the distinct ones."""
        return np.unique(self.lonlat[:, 0] + 1j * self.lonlat[:, 1], return_inverse=True)[1]

    @cached_property
    def hour(self) -> IntArray:
        """The hours since 1970; 0 without times."""
        return np.zeros(len(self.person), np.int64) if self.time is None else (self.time // HOUR).astype(np.int64)

    def rows_of(self, person: int) -> IntArray:
        """Return the rows of a person, in the order of time."""
        return self.order[self.starts[person] : self.starts[person + 1]]


def rows_within(lonlat: FloatArray, radius: float) -> Callable[[FloatArray], IntArray]:
    """Return the function from a place to the rows within a radius of it, in no particular order.

    Rows are sorted by stripes of latitude.

    Examples
    --------
    >>> rows_within(np.array([[2.35, 48.86], [2.36, 48.86]]), 100.0)(np.array([2.3501, 48.86]))
    array([0])
    """
    height = math.degrees(max(radius, MILLIMETRE) / EARTH_RADIUS)
    stripes = np.floor(lonlat[:, 1] / height).astype(np.int64)
    order = np.lexsort((lonlat[:, 0], stripes))
    sorted_lon, stripes = lonlat[order, 0], stripes[order]
    # Chords grow with arcs, and need no trigonometry for each pair.
    at = on_sphere(lonlat[order])
    chord = 2 * EARTH_RADIUS * math.sin(min(math.pi, (radius + MILLIMETRE) / EARTH_RADIUS) / 2)

    def near(place: FloatArray) -> IntArray:
        lon, lat = map(float, place)
        stripe = math.floor(lat / height)
        least = math.cos(math.radians(min(90.0, abs(lat) + height)))
        width = min(180.0, height / max(least, 1e-9))
        parts = []
        for number in (stripe - 1, stripe, stripe + 1):
            start, end = np.searchsorted(stripes, [number, number + 1])
            lons = sorted_lon[start:end]
            # The antimeridian: a turn to either side where the window crosses it.
            for turn in [0, *([360] if lon - width < -180 else []), *([-360] if lon + width > 180 else [])]:
                low, high = start + np.searchsorted(lons, [lon + turn - width, lon + turn + width * (1 + 1e-12)])
                parts.append(np.arange(low, high))
        rows = np.unique(np.concatenate(parts)) if width >= 180 else np.concatenate(parts)
        apart = at[rows] - on_sphere(np.asarray(place)[None])
        return np.asarray(order[rows[np.einsum("ij,ij->i", apart, apart) <= chord**2]])

    return near


def snapped(lonlat: FloatArray, cell: float) -> FloatArray:
    """Return for each place the mean of all places in its cell of so many metres.

    Examples
    --------
    >>> places = snapped(np.array([[2.35, 48.86], [2.35001, 48.86001], [2.36, 48.86]]), 100.0)
    >>> len(np.unique(places, axis=0))
    2
    """
    height = math.degrees(cell / EARTH_RADIUS)
    row = np.floor(lonlat[:, 1] / height)
    width = height / np.maximum(np.cos(np.radians((row + 0.5) * height)), 1e-6)
    column = np.floor(lonlat[:, 0] / width)
    found, inverse, counts = np.unique(row + 1j * column, return_inverse=True, return_counts=True)
    means = [np.bincount(inverse, weights=values, minlength=len(found)) / counts for values in lonlat.T]
    return np.column_stack(means)[inverse]


def plane_around(centre: FloatArray, lonlat: FloatArray) -> FloatArray:
    """Return (n, 2) metres east and north of a centre: distances and directions from it are exact."""
    lon, lat = np.radians(lonlat[:, 0] - centre[0]), np.radians(lonlat[:, 1])
    middle = math.radians(float(centre[1]))
    bearing = np.arctan2(
        np.sin(lon) * np.cos(lat), math.cos(middle) * np.sin(lat) - math.sin(middle) * np.cos(lat) * np.cos(lon)
    )
    apart = haversine(np.asarray(centre)[None], lonlat)[0]
    return np.column_stack([apart * np.sin(bearing), apart * np.cos(bearing)])


def on_sphere(lonlat: FloatArray) -> FloatArray:
    """Return (n, 3) coordinates in metres, whose straight distances are chords of the sphere."""
    lon, lat = np.radians(lonlat).T
    unit = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
    return np.asarray(EARTH_RADIUS * unit)


def at_night(lonlat: FloatArray, seconds: FloatArray) -> Flags:
    """Return which rows are from 21 to 6 h in local solar time, because the time zone is not known.

    Examples
    --------
    >>> at_night(np.array([[0.0, 50.0], [180.0, 50.0]]), np.array([0.0, 0.0]))
    array([ True, False])
    """
    hour = _solar_hour(lonlat, seconds)
    return np.asarray((hour < 6) | (hour >= 21))


def at_work(lonlat: FloatArray, seconds: FloatArray) -> Flags:
    """Return which rows are from 9 to 17 h, Monday to Friday, in local solar time.

    Examples
    --------
    >>> at_work(np.array([[0.0, 50.0], [0.0, 50.0]]), np.array([12 * 3600.0, 60 * 3600.0]))
    array([ True, False])
    """
    hour = _solar_hour(lonlat, seconds)
    # 1970 began on a Thursday; 0 is Sunday.
    day = np.floor(seconds / 86_400 + lonlat[:, 0] / 360 + 4) % 7
    return np.asarray((hour >= 9) & (hour < 17) & (day >= 1) & (day <= 5))


def _solar_hour(lonlat: FloatArray, seconds: FloatArray) -> FloatArray:
    return np.asarray((seconds / HOUR + lonlat[:, 0] / 15) % 24)
