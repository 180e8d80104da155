"""Laplace noise on the globe: the same promise for longitudes and latitudes, anywhere on Earth."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import ClassVar

import numpy as np

from geoind.arrays import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_floats,
    as_lonlat,
    as_number,
    as_positive,
    as_probabilities,
    as_unit,
)
from geoind.distances import EARTH_RADIUS, GEODESIC_STRETCH
from geoind.errors import InvalidInputError
from geoind.mechanisms.functions import ARRAYS, SCALARS, Functions, Number
from geoind.mechanisms.noise import (
    LARGEST_SURVIVAL,
    RADIUS_ERROR,
    SMALLEST_SURVIVAL,
    direction,
    half_angle_scalar,
    half_angles,
    laplace_radius,
    radius_of,
    survival_scalar,
    survivals,
)
from geoind.mechanisms.protocol import Space
from geoind.parallel import over_blocks
from geoind.randomness import Randomness, RandomnessLike, SystemRandomness, Words, as_randomness
from geoind.space.lattice import DECIMALS, half_diagonal, nearest_places, wrapped

__all__ = ["WGS84_FACTOR", "SphericalLaplace"]

WGS84_FACTOR = 1.0057
"""No great-circle distance exceeds the WGS84 distance by more than this factor.

A WGS84 geodesic, read as a curve on the sphere with the same longitudes and latitudes, becomes longer nowhere by
more than R / (a (1 - e^2)) < 1.00562, the ratio of the sphere's radius to the ellipsoid's smallest radius of
curvature, and the great circle is no longer than that curve.
"""

LEAST_SCALES = 18.25
"""The noise's scale must go into the Earth's radius this often: a mean error of 700 km at most."""

FLAT = 2000.0
"""From this many noise scales to the Earth's radius on, the series for the curvature is exact to rounding."""

TEMPERATE, TEMPERATE_FACTOR = 80.0, 6.0
"""Up to this latitude an error of longitude is at most this many times that of the place: 1 / cos(80.4) < 6."""

POLAR_FACTOR = 20.0
"""Beyond, in steps of the row: these are at least a tenth of a row, and a place may be half a row farther in."""


@dataclass(frozen=True)
class SphericalLaplace:
    """Noise on the globe with density proportional to exp(-epsilon * great-circle distance).

    The normalising constant is the same for every centre, so the promise is exact everywhere, poles and
    antimeridian included; epsilon is scaled so that it holds for WGS84 metres. Reports end on a public
    lattice: five decimals of a degree, or fewer. Each is the exact rounding of a draw from the continuous law, see
    docs/exact-draws.md.

    Parameters
    ----------
    epsilon : float
        Privacy loss per metre: level / radius. At least 2.9e-6, a mean error of 700 km: wider noise, which
        reaches round the Earth, serves nobody.
    decimals : int
        The lattice: decimals of a degree that a report has, 0 to 5. Fewer promise no more and no less.

    Examples
    --------
    >>> globe = SphericalLaplace(epsilon=math.log(4) / 200)
    >>> globe.sample([[2.2945, 48.8584], [180.0, -90.0]]).shape
    (2, 2)
    >>> coarse = SphericalLaplace(epsilon=math.log(4) / 200, decimals=3).sample([[2.2945, 48.8584]])
    >>> bool((coarse == coarse.round(3)).all())
    True
    """

    epsilon: float
    decimals: int = DECIMALS

    def __post_init__(self) -> None:
        epsilon = as_positive(self.epsilon, "epsilon")
        object.__setattr__(self, "epsilon", epsilon)
        smallest = LEAST_SCALES * WGS84_FACTOR / EARTH_RADIUS
        if epsilon < smallest:
            raise InvalidInputError(
                f"epsilon must be at least {smallest:.2g} per metre on the globe, got {epsilon!r}: "
                "the noise would reach round the Earth"
            )
        decimals = as_number(self.decimals, "decimals")
        if decimals not in range(DECIMALS + 1):
            raise InvalidInputError(f"decimals must be a whole number from 0 to {DECIMALS}, got {self.decimals!r}")
        object.__setattr__(self, "decimals", int(decimals))

    space: ClassVar[Space] = "lonlat"

    @cached_property
    def noise_epsilon(self) -> float:
        """The epsilon that the sampler runs with, per great-circle metre."""
        return self.epsilon / WGS84_FACTOR

    @cached_property
    def _scales(self) -> float:
        """How many times the noise's scale goes into the Earth's radius."""
        return self.noise_epsilon * EARTH_RADIUS

    @property
    def mean_radius(self) -> float:
        """Expected great-circle distance between truth and report, in metres."""
        return EARTH_RADIUS * 2 * self._scales / (1 + self._scales**2)

    def radius_cdf(self, radius: ArrayLike) -> FloatArray:
        """Return the probability that a report falls within `radius` great-circle metres of the truth."""
        arc = as_floats(radius, "radius") / EARTH_RADIUS
        if not (arc >= 0).all():
            raise InvalidInputError("radius must not be negative")
        arc = np.minimum(arc, math.pi)
        k = self._scales
        return np.asarray(1 - np.exp(-k * arc) * (k * np.sin(arc) + np.cos(arc)))[()]

    def radius_quantile(self, p: ArrayLike) -> FloatArray:
        """Return the radius that a report stays within with probability p, in great-circle metres.

        Examples
        --------
        >>> globe = SphericalLaplace(0.01)
        >>> globe.radius_cdf(globe.radius_quantile(0.95)).round(12)
        np.float64(0.95)
        """
        p = as_probabilities(p, "p")
        if not (p < 1).all():
            raise InvalidInputError("p must be less than 1: no radius holds every report")
        excess = -np.log1p(-p.ravel())
        return np.asarray(self._arc(radius_of(excess), excess, ARRAYS) * EARTH_RADIUS).reshape(p.shape)[()]

    def reach(self, confidence: float) -> float:
        """Return the WGS84 metres within which a report lies of its truth with at least this probability.

        Examples
        --------
        >>> round(SphericalLaplace(math.log(4) / 200).reach(0.95), 1)
        692.2
        """
        return _reach(self, as_unit(confidence, "confidence"))

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each (n, 2) lon/lat point, in degrees, on the public lattice."""
        points = as_lonlat(points)
        source = as_randomness(rng, len(points))
        reports = np.empty_like(points)
        words = source.words(points, 2, self._purpose)

        def block(part: slice) -> IntArray:
            return self._block(points[part], words[part], reports[part]) + int(part.start)

        for undecided in over_blocks(block, len(points)):
            for row in undecided.tolist():
                (lon, lat), (first, second) = points[row].tolist(), words[row].tolist()
                reports[row] = self._exactly(lon, lat, first, second, source, row)
        return reports

    def sample_one(self, lon: float, lat: float, first: int, second: int) -> tuple[float, float]:
        """Return the report that two random 64-bit words make of one checked place, without arrays."""
        survival = survival_scalar(first)
        if SMALLEST_SURVIVAL < survival < LARGEST_SURVIVAL:
            east, north = self._drawn(lon, lat, survival, half_angle_scalar(second), SCALARS)
            scale = 10**self.decimals
            column, row = round(east * scale), round(north * scale)
            if (
                abs(north * scale - row) < 0.5 - self._error
                and abs(east * scale - column) < 0.5 - TEMPERATE_FACTOR * self._error
                and abs(north) < TEMPERATE
            ):
                return wrapped(column, self.decimals), row / scale
        return self._exactly(lon, lat, first, second, SystemRandomness(), 0)

    @property
    def _purpose(self) -> str:
        return f"SphericalLaplace {self.epsilon.hex()}"

    @cached_property
    def _error(self) -> float:
        """How far a computed latitude may be from the drawn one, in steps of the lattice (docs/exact-draws.md)."""
        return (2 * RADIUS_ERROR / self._scales + 2.0**-43) * (180 / math.pi) * 10.0**self.decimals

    def _exactly(
        self, lon: float, lat: float, first: int, second: int, source: Randomness, row: int
    ) -> tuple[float, float]:
        """Return the report where doubles cannot decide it."""
        from geoind.mechanisms.exact import Draw, decided, globe_place

        draw = Draw(first, second, partial(source.further, row, np.array([lon, lat]), self._purpose))
        return decided(globe_place(lon, lat, scales=self._scales, decimals=self.decimals), draw)

    def _block(self, points: FloatArray, words: Words, reports: FloatArray) -> IntArray:
        """Fill in the reports, and return the rows that doubles cannot decide."""
        survival = survivals(words)
        undecided = ~((survival > SMALLEST_SURVIVAL) & (survival < LARGEST_SURVIVAL))
        survival[undecided] = 0.5
        lon, lat = self._drawn(points[:, 0], points[:, 1], survival, half_angles(words), ARRAYS)
        reports[:, 0], reports[:, 1], off_lon, off_lat = nearest_places(lon, lat, self.decimals)
        undecided |= ~(np.abs(off_lat) < 0.5 - self._error)
        undecided |= ~(np.abs(off_lon) < 0.5 - TEMPERATE_FACTOR * self._error)
        polar = np.flatnonzero(np.abs(lat) > TEMPERATE)
        undecided[polar] |= ~(np.abs(off_lon[polar]) < 0.5 - POLAR_FACTOR * self._error)
        return np.flatnonzero(undecided)

    def _drawn(
        self, lon: Number, lat: Number, survival: Number, half_angle: Number, functions: Functions[Number]
    ) -> tuple[Number, Number]:
        """Return the drawn points in degrees, the longitude not wrapped; off by `_error`, more towards a pole."""
        forward, aside = self._forward_aside(functions.sqrt(-2.0 * functions.log(survival)), functions)
        cos, sin = direction(half_angle, functions)
        turn, rise = _travel(lat, forward, aside * cos, aside * sin, functions)
        return lon + turn, rise

    def _forward_aside(self, s: Number, functions: Functions[Number]) -> tuple[Number | float, Number]:
        """Return cosine and sine, but for a common factor, of the arc exceeded with probability exp(-s^2 / 2).

        Near, these are 1 and the tangent: a series in 1 / k^2 whose next term is below 1e-13 of the arc.
        """
        r = laplace_radius(s)
        if self._scales >= FLAT:
            a, b, c, d, e = self._tangent
            return 1.0, ((((a * r + b) * r + c) * r + d) * r + e) * r
        arc = self._arc(r, s * s * 0.5, functions)
        return functions.cos(arc), functions.sin(arc)

    @cached_property
    def _tangent(self) -> tuple[float, ...]:
        """Coefficients of the arc's tangent in powers of the planar radius, the highest first."""
        k, h = self._scales, self._scales**-2
        series = (
            2 / 15 * h * h,
            -31 / 180 * h * h,
            h / 3 - 17 / 36 * h * h,
            -h / 6 + 5 / 24 * h * h,
            1 - h / 2 + 3 / 8 * h * h,
        )
        return tuple(coefficient / k for coefficient in series)

    def _arc(self, r: Number, excess: Number, functions: Functions[Number]) -> Number:
        """Return the arc on the sphere that has the probability of the unit radius r in the plane.

        Solves s - ln(cos a + k sin a) = excess = r - ln(1 + r) with s = k a: first order in 1 / k^2, then Newton.
        The antipode's mass, e^(-pi k) < 1e-25, is below a double's precision.
        """
        k = self._scales
        s = r - r * (r + 3.0) / (6.0 * k * k)
        for _ in range(4 if k < FLAT else 1):
            sin, cos = functions.sin(s / k), functions.cos(s / k)
            g = cos + k * sin
            # At the truth itself both residual and slope vanish; the guard keeps 0 / 0 at 0.
            slope = (g - cos) + sin / k + 1e-300
            s = s - (s - functions.log(g) - excess) * g / slope
        return s / k


@lru_cache(maxsize=256)
def _reach(globe: SphericalLaplace, confidence: float) -> float:
    return GEODESIC_STRETCH * (float(globe.radius_quantile(confidence)) + half_diagonal(globe.decimals))


def _travel(
    lat: Number, forward: Number | float, north: Number, east: Number, functions: Functions[Number]
) -> tuple[Number, Number]:
    """Return by how much a great circle changes the longitude, and the latitude where it leads, in degrees.

    The arc is given as a vector at the place it starts from, of any length: forward (to the sky), north and east.
    """
    cos_phi, sin_phi = direction(lat * (math.pi / 360), functions)
    outward = forward * cos_phi - north * sin_phi
    turn = functions.angle(east, outward)
    height = forward * sin_phi + north * cos_phi
    rise = functions.angle(height, functions.sqrt(outward * outward + east * east))
    return turn * (180 / math.pi), rise * (180 / math.pi)
