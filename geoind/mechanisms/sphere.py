"""Laplace noise on the globe: the same promise for longitudes and latitudes, anywhere on Earth."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats, as_lonlat, as_probabilities, as_unit
from geoind.distances import EARTH_RADIUS, GEODESIC_STRETCH
from geoind.errors import InvalidInputError
from geoind.mechanisms.functions import ARRAYS, Functions, Number
from geoind.mechanisms.globe import WGS84_FACTOR, GlobeDraws, as_decimals, error_of
from geoind.mechanisms.noise import as_noise, laplace_radius, polynomial, radius_of
from geoind.mechanisms.protocol import Space
from geoind.randomness import Randomness, RandomnessLike, as_randomness
from geoind.space.lattice import DECIMALS, half_diagonal

if TYPE_CHECKING:
    from flint import arb

__all__ = ["SphericalLaplace"]

LEAST_SCALES = 18.25
"""The noise's scale must go into the Earth's radius this often: a mean error of 700 km at most."""

FLAT = 2000.0
"""From this many noise scales to the Earth's radius on, the series for the curvature is exact to rounding."""


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
        epsilon = as_noise(self.epsilon, "epsilon")
        object.__setattr__(self, "epsilon", epsilon)
        smallest = LEAST_SCALES * WGS84_FACTOR / EARTH_RADIUS
        if epsilon < smallest:
            raise InvalidInputError(
                f"epsilon must be at least {smallest:.2g} per metre on the globe, got {epsilon!r}: "
                "the noise would reach round the Earth"
            )
        object.__setattr__(self, "decimals", as_decimals(self.decimals))

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
        return 2 * EARTH_RADIUS / (self._scales + 1 / self._scales)

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
        return self._draws.reports(points, as_randomness(rng, len(points)))

    def sample_one(
        self, lon: float, lat: float, first: int, second: int, *, further: Randomness | None = None
    ) -> tuple[float, float]:
        """Return the report that two random 64-bit words make of one checked place, without arrays.

        The few reports that the two words do not decide take more words from `further`, the system's by default.
        """
        return self._draws.report(lon, lat, first, second, further)

    @cached_property
    def _draws(self) -> GlobeDraws:
        """How its reports are drawn."""
        purpose = f"SphericalLaplace {self.epsilon.hex()}"
        error = error_of(self._scales, self.decimals)
        return GlobeDraws(purpose, self.decimals, error, self._forward_aside, self._exact_arc)

    def _exact_arc(self, survival: "arb") -> "arb":
        from geoind.mechanisms import exact

        return exact.globe_arc(survival, self._scales)

    def _forward_aside(self, s: Number, functions: Functions[Number]) -> tuple[Number | float, Number]:
        """Return cosine and sine, but for a common factor, of the arc exceeded with probability exp(-s^2 / 2).

        Near, these are 1 and the tangent: a series in 1 / k^2 whose next term is below 1e-13 of the arc.
        """
        r = laplace_radius(s)
        if self._scales >= FLAT:
            tangent = polynomial(self._tangent, r)
            tangent *= r
            return 1.0, tangent
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
