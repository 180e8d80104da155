"""Reports of noise on the globe: doubles decide almost all, exact arithmetic the rest."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from geoind.arrays import FloatArray, IntArray, as_number
from geoind.errors import InvalidInputError
from geoind.mechanisms.functions import ARRAYS, SCALARS, Functions, Number
from geoind.mechanisms.noise import (
    LARGEST_SURVIVAL,
    RADIUS_ERROR,
    SMALLEST_SURVIVAL,
    direction,
    half_angle_scalar,
    half_angles,
    out_of_range,
    survival_scalar,
    survivals,
)
from geoind.parallel import over_blocks
from geoind.randomness import Randomness, SystemRandomness, Words, words_by_block
from geoind.space.lattice import DECIMALS, nearest_places, wrapped

if TYPE_CHECKING:
    from flint import arb

__all__ = ["WGS84_FACTOR", "GlobeDraws", "as_decimals", "error_of", "travel"]

WGS84_FACTOR = 1.0057
"""No great-circle distance exceeds the WGS84 distance by more than this factor.

A WGS84 geodesic, read as a curve on the sphere with the same longitudes and latitudes, becomes longer nowhere by
more than R / (a (1 - e^2)) < 1.00562, the ratio of the sphere's radius to the ellipsoid's smallest radius of
curvature, and the great circle is no longer than that curve.
"""

TEMPERATE, TEMPERATE_FACTOR = 80.0, 6.0
"""Up to this latitude an error of longitude is at most this many times that of the place: 1 / cos(80.4) < 6."""

POLAR_FACTOR = 20.0
"""Beyond, in steps of the row: these are at least a tenth of a row, and a place may be half a row farther in."""


class ForwardAside(Protocol):
    """How far noise goes: cosine and sine of an arc, but for a common factor."""

    def __call__(self, s: Number, functions: Functions[Number]) -> tuple[Number | float, Number]:
        """Return both for the arc that is exceeded with probability exp(-s^2 / 2)."""
        ...


@dataclass(frozen=True)
class GlobeDraws:
    """How reports are drawn: truth, an arc in a uniform direction, the nearest place of the lattice.

    Parameters
    ----------
    purpose : str
        What names the words.
    decimals : int
        The lattice.
    error : float
        How far a computed latitude may be from the drawn one, in steps of the lattice (docs/exact-draws.md).
    forward_aside : callable
        The arc in doubles.
    exact_arc : callable
        From the ball of the probability of a larger arc to the ball of the arc.
    """

    purpose: str
    decimals: int
    error: float
    forward_aside: ForwardAside
    exact_arc: "Callable[[arb], arb]"

    def reports(self, points: FloatArray, source: Randomness) -> FloatArray:
        """Return one report for each (n, 2) lon/lat point."""
        reports = np.empty_like(points)
        words_of = words_by_block(source, points, 2, self.purpose)

        def block(part: slice) -> tuple[IntArray, Words]:
            words = words_of(part)
            undecided = self._block(points[part], words, reports[part])
            return undecided + int(part.start), words[undecided]

        for rows, words in over_blocks(block, len(points)):
            for row, (first, second) in zip(rows.tolist(), words.tolist(), strict=True):
                lon, lat = points[row].tolist()
                reports[row] = self.exactly(lon, lat, first, second, source, row)
        return reports

    def report(
        self, lon: float, lat: float, first: int, second: int, further: Randomness | None = None
    ) -> tuple[float, float]:
        """Return the report that two random 64-bit words make of one checked place, without arrays."""
        survival = survival_scalar(first)
        if SMALLEST_SURVIVAL < survival < LARGEST_SURVIVAL:
            east, north = self._drawn(lon, lat, survival, half_angle_scalar(second), SCALARS)
            scale = 10**self.decimals
            column, row = round(east * scale), round(north * scale)
            if (
                abs(north * scale - row) < 0.5 - self.error
                and abs(east * scale - column) < 0.5 - TEMPERATE_FACTOR * self.error
                and abs(north) < TEMPERATE
            ):
                return wrapped(column, self.decimals), row / scale
        return self.exactly(lon, lat, first, second, further or SystemRandomness(), 0)

    def exactly(
        self, lon: float, lat: float, first: int, second: int, source: Randomness, row: int
    ) -> tuple[float, float]:
        """Return the report where doubles cannot decide it."""
        from geoind.mechanisms.exact import Draw, decided, globe_place

        draw = Draw(first, second, partial(source.further, row, np.array([lon, lat]), self.purpose))
        return decided(globe_place(lon, lat, arc=self.exact_arc, decimals=self.decimals), draw)

    def _block(self, points: FloatArray, words: Words, reports: FloatArray) -> IntArray:
        """Fill in the reports, and return the rows that doubles cannot decide."""
        survival = survivals(words)
        rare = out_of_range(survival)
        survival[rare] = 0.5
        lon, lat = self._drawn(points[:, 0], points[:, 1], survival, half_angles(words), ARRAYS)
        reports[:, 0], reports[:, 1], off_lon, off_lat = nearest_places(lon, lat, self.decimals)
        decided = np.abs(off_lat, out=off_lat) < 0.5 - self.error
        decided &= np.abs(off_lon, out=off_lon) < 0.5 - TEMPERATE_FACTOR * self.error
        decided[rare] = False
        polar = np.flatnonzero(np.abs(lat, out=lat) > TEMPERATE)
        decided[polar] &= off_lon[polar] < 0.5 - POLAR_FACTOR * self.error
        return np.flatnonzero(~decided)

    def _drawn(
        self, lon: Number, lat: Number, survival: Number, half_angle: Number, functions: Functions[Number]
    ) -> tuple[Number, Number]:
        """Return the drawn points in degrees, the longitude not wrapped; off by `error`, more towards a pole."""
        forward, aside = self.forward_aside(functions.sqrt(-2.0 * functions.log(survival)), functions)
        cos, sin = direction(half_angle, functions)
        turn, rise = travel(lat, forward, aside * cos, aside * sin, functions)
        return lon + turn, rise


def error_of(scales: float, decimals: int) -> float:
    """Return `GlobeDraws.error` of noise whose scale goes into the Earth's radius this often."""
    return (2 * RADIUS_ERROR / scales + 2.0**-43) * (180 / math.pi) * 10.0**decimals


def as_decimals(decimals: int) -> int:
    """Return the decimals of a degree that a report may have."""
    if as_number(decimals, "decimals") not in range(DECIMALS + 1):
        raise InvalidInputError(f"decimals must be a whole number from 0 to {DECIMALS}, got {decimals!r}")
    return int(decimals)


def travel(
    lat: Number, forward: Number | float, north: Number, east: Number, functions: Functions[Number]
) -> tuple[Number, Number]:
    """Return by how much a great circle changes the longitude, and the latitude where it leads, in degrees.

    The arc is given as a vector at the place it starts from, of any length: forward (to the sky), north and east.
    """
    cos_phi, sin_phi = direction(lat * (math.pi / 360), functions)
    outward = forward * cos_phi
    outward -= north * sin_phi
    height = forward * sin_phi
    height += north * cos_phi
    turn = functions.angle(east, outward)
    turn *= 180 / math.pi
    across = outward * outward
    across += east * east
    rise = functions.angle(height, functions.sqrt(across))
    rise *= 180 / math.pi
    return turn, rise
