"""Laplace noise on the globe: the same promise for longitudes and latitudes, anywhere on Earth."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats, as_lonlat, as_positive, as_probabilities, as_unit
from geoind.distances import EARTH_RADIUS, GEODESIC_STRETCH
from geoind.errors import InvalidInputError
from geoind.mechanisms.laplace import BLOCK
from geoind.mechanisms.noise import (
    ANGLE_RESOLUTION,
    MAX_RADIUS,
    RADIUS_RESOLUTION,
    RELIABLE_RADIUS,
    polar_scalar,
    polar_words,
    radius_of,
)
from geoind.mechanisms.precision import corrected_epsilon
from geoind.mechanisms.protocol import Space
from geoind.randomness import RandomnessLike, as_randomness
from geoind.space.functions import ARRAYS, SCALARS, Functions, Number
from geoind.space.lattice import DECIMALS, half_diagonal, smallest_step, snap_arrays, snap_scalar

__all__ = ["WGS84_FACTOR", "SphericalLaplace"]

WGS84_FACTOR = 1.0057
"""No great-circle distance exceeds the WGS84 distance by more than this factor (largest: 1.00561)."""

FLAT = 20_000.0
"""From this many noise scales to the Earth's radius on, the series for the curvature is exact to rounding."""


@dataclass(frozen=True)
class SphericalLaplace:
    """Noise on the globe with density proportional to exp(-epsilon * great-circle distance).

    The normalising constant is the same for every centre, so the promise is exact everywhere, poles and
    antimeridian included; epsilon is scaled so that it holds for WGS84 metres. Reports end on a public
    lattice: five decimals of a degree, fewer where the noise is so wide that they would carry
    machine precision only.

    Parameters
    ----------
    epsilon : float
        Privacy loss per metre: level / radius. At least 2.9e-6, a mean error of 700 km: smaller, and the
        noise would reach round the Earth.

    Examples
    --------
    >>> globe = SphericalLaplace(epsilon=math.log(4) / 200)
    >>> globe.sample([[2.2945, 48.8584], [180.0, -90.0]]).shape
    (2, 2)
    """

    epsilon: float

    def __post_init__(self) -> None:
        epsilon = as_positive(self.epsilon, "epsilon")
        object.__setattr__(self, "epsilon", epsilon)
        smallest = 1.01 * WGS84_FACTOR * MAX_RADIUS / (math.pi * EARTH_RADIUS)
        if epsilon < smallest:
            raise InvalidInputError(
                f"epsilon must be at least {smallest:.2g} per metre on the globe, got {epsilon!r}: "
                "the noise would reach round the Earth"
            )

    space: ClassVar[Space] = "lonlat"

    @cached_property
    def decimals(self) -> int:
        """Decimals of a degree that a report has."""
        return min(DECIMALS, math.floor(math.log10(1e4 * self.epsilon * smallest_step(0))))

    @cached_property
    def noise_epsilon(self) -> float:
        """The epsilon that the sampler runs with, per great-circle metre."""
        epsilon = self.epsilon / WGS84_FACTOR
        return corrected_epsilon(
            epsilon,
            cell=smallest_step(self.decimals),
            r_max=RELIABLE_RADIUS / epsilon,
            angle_resolution=ANGLE_RESOLUTION,
            radius_resolution=RADIUS_RESOLUTION / epsilon,
        )

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
        r = radius_of(-np.log1p(-p.ravel()))
        return np.asarray(self._arc(r, ARRAYS) * EARTH_RADIUS).reshape(p.shape)[()]

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
        reports = np.empty_like(points)
        words = as_randomness(rng, len(points)).words(points, 2, self._purpose)
        for start in range(0, len(points), BLOCK):
            part = slice(start, start + BLOCK)
            radius, bearing = polar_words(words[part])
            arc = self._arc(radius, ARRAYS)
            lon, lat = _travel(points[part, 0], points[part, 1], arc, bearing, ARRAYS)
            reports[part, 0], reports[part, 1] = snap_arrays(lon, lat, self.decimals)
        return reports

    def sample_one(self, lon: float, lat: float, first: int, second: int) -> tuple[float, float]:
        """Return the report that two random 64-bit words make of one checked place, without arrays."""
        radius, bearing = polar_scalar(first, second)
        return snap_scalar(*_travel(lon, lat, self._arc(radius, SCALARS), bearing, SCALARS), self.decimals)

    @property
    def _purpose(self) -> str:
        return f"SphericalLaplace {self.epsilon.hex()}"

    def _arc(self, r: Number, functions: Functions[Number]) -> Number:
        """Return the arc on the sphere that has the probability of the unit radius r in the plane.

        Solves e^(-s) (cos a + k sin a) = e^(-r) (1 + r) with s = k a: first order in 1 / k^2, then Newton.
        The antipode's mass, e^(-pi k) < 1e-24, is below a double's precision.
        """
        k = self._scales
        s = r - r * (r + 3.0) / (6.0 * k * k)
        if k < FLAT:
            target = r - functions.log(r + 1.0)
            for _ in range(4):
                sin, cos = functions.sin(s / k), functions.cos(s / k)
                g = cos + k * sin
                # At the truth itself both residual and slope vanish; the guard keeps 0 / 0 at 0.
                slope = (g - cos) + sin / k + 1e-300
                s = s - (s - functions.log(g) - target) * g / slope
        return s / k


@lru_cache(maxsize=256)
def _reach(globe: SphericalLaplace, confidence: float) -> float:
    return GEODESIC_STRETCH * (float(globe.radius_quantile(confidence)) + half_diagonal(globe.decimals))


def _travel(
    lon: Number, lat: Number, arc: Number, bearing: Number, functions: Functions[Number]
) -> tuple[Number, Number]:
    """Return where a great circle leads, in degrees; the longitude is not wrapped."""
    sin_phi, cos_phi = _sin_cos(lat * (math.pi / 180), functions)
    sin_arc, cos_arc = _sin_cos(arc, functions)
    sin_bearing, cos_bearing = _sin_cos(bearing, functions)
    north, east = sin_arc * cos_bearing, sin_arc * sin_bearing
    outward = cos_arc * cos_phi - north * sin_phi
    turn = functions.angle(east, outward)
    height = cos_arc * sin_phi + north * cos_phi
    rise = functions.angle(height, functions.sqrt(outward * outward + east * east))
    return lon + turn * (180 / math.pi), rise * (180 / math.pi)


def _sin_cos(angle: Number, functions: Functions[Number]) -> tuple[Number, Number]:
    """Return sine and cosine for the price of one tangent, that of the half angle."""
    t = functions.tan(angle * 0.5)
    scale = 1.0 / (t * t + 1.0)
    return (t + t) * scale, (1.0 - t * t) * scale
