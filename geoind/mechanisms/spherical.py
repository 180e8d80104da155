"""Laplace and Gaussian noise on the globe, for longitudes and latitudes anywhere, and how reports are drawn.

Doubles decide almost all reports, exact arithmetic the rest (docs/exact-draws.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from geoind.arrays import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_floats,
    as_lonlat,
    as_number,
    as_probabilities,
    as_unit,
)
from geoind.distances import EARTH_RADIUS, GEODESIC_STRETCH
from geoind.errors import InvalidInputError
from geoind.keys import Words
from geoind.mechanisms.noise import (
    ARRAYS,
    DECIMALS,
    LARGEST_SURVIVAL,
    RADIUS_ERROR,
    SCALARS,
    SMALLEST_SURVIVAL,
    Functions,
    Number,
    as_noise,
    direction,
    half_angle_scalar,
    half_angles,
    half_diagonal,
    laplace_radius,
    nearest_places,
    out_of_range,
    over_blocks,
    polynomial,
    radius_of,
    survival_scalar,
    survivals,
    wrapped,
)
from geoind.mechanisms.protocol import Randomness, RandomnessLike, Space, as_randomness, words_by_block

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "WGS84_FACTOR",
    "SphericalGaussian",
    "SphericalLaplace",
    "as_decimals",
    "error_of",
    "travel",
]

WGS84_FACTOR = 1.0057
"""No great-circle distance exceeds the WGS84 distance by more than this factor.

Take a WGS84 geodesic as a curve on the sphere with the same longitudes and latitudes. No part of it is longer by
more than R / (a (1 - e^2)) < 1.00562, the ratio of the sphere's radius to the ellipsoid's smallest radius of
curvature, and the great circle is no longer than that curve.
"""

TEMPERATE, TEMPERATE_FACTOR = 80.0, 6.0
"""Up to this latitude the error of a longitude is at most this many times that of the point: 1 / cos(80.4) < 6."""

POLAR_FACTOR = 20.0
"""The same at higher latitudes, in steps of the row: a step is at least a tenth of a row, and a point may be half
a row nearer to the pole."""


class _CosSinOfArc(Protocol):
    """From s to cosine and sine of the arc exceeded with probability exp(-s^2 / 2), up to a common factor."""

    def __call__(self, s: Number, functions: Functions[Number]) -> tuple[Number | float, Number]: ...


@dataclass(frozen=True)
class _GlobeDraws:
    """How reports are drawn: from the truth along an arc in a uniform direction, to the nearest lattice point.

    Parameters
    ----------
    purpose : str
        The name that separates the random words from other words of the same source.
    decimals : int
        Decimals of a degree of the lattice.
    error : float
        Bound on the error of a computed latitude, in steps of the lattice (docs/exact-draws.md).
    cos_sin_of_arc : callable
        The arc in doubles.
    exact_arc : callable
        From the ball of the probability of a larger arc to the ball of the arc.
    """

    purpose: str
    decimals: int
    error: float
    cos_sin_of_arc: _CosSinOfArc
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
        """Return the report of one valid location from two random 64-bit words, without arrays."""
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
        return self.exactly(lon, lat, first, second, further or as_randomness(None, 1), 0)

    def exactly(
        self, lon: float, lat: float, first: int, second: int, source: Randomness, row: int
    ) -> tuple[float, float]:
        """Return the report where doubles cannot decide it."""
        from geoind.mechanisms import exact

        place = exact.globe_place(lon, lat, arc=self.exact_arc, decimals=self.decimals)
        further = partial(source.further, row, np.array([lon, lat]), self.purpose)
        return exact.decided(place, first, second, further)

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
        """Return the drawn points in degrees, within `error`, or more near a pole; longitudes are not wrapped."""
        cos_arc, sin_arc = self.cos_sin_of_arc(functions.sqrt(-2.0 * functions.log(survival)), functions)
        cos, sin = direction(half_angle, functions)
        turn, rise = travel(lat, cos_arc, sin_arc * cos, sin_arc * sin, functions)
        return lon + turn, rise


def error_of(scales: float, decimals: int) -> float:
    """Return the bound on a computed latitude's error, in steps; the Earth's radius is `scales` noise scales."""
    return (2 * RADIUS_ERROR / scales + 2.0**-43) * (180 / math.pi) * 10.0**decimals


def as_decimals(decimals: int) -> int:
    """Return a valid number of decimals of a degree."""
    if as_number(decimals, "decimals") not in range(DECIMALS + 1):
        raise InvalidInputError(f"decimals must be a whole number from 0 to {DECIMALS}, got {decimals!r}")
    return int(decimals)


def travel(
    lat: Number, up: Number | float, north: Number, east: Number, functions: Functions[Number]
) -> tuple[Number, Number]:
    """Return the change of longitude along a great circle, and the latitude of its end, in degrees.

    The end is given as a vector of any length from the Earth's centre, in the axes of the start: up, north, east.
    """
    cos_phi, sin_phi = direction(lat * (math.pi / 360), functions)
    outward = up * cos_phi
    outward -= north * sin_phi
    height = up * sin_phi
    height += north * cos_phi
    turn = functions.angle(east, outward)
    turn *= 180 / math.pi
    across = outward * outward
    across += east * east
    rise = functions.angle(height, functions.sqrt(across))
    rise *= 180 / math.pi
    return turn, rise


LEAST_SCALES = 18.25
"""Least number of noise scales in the Earth's radius: the mean error is at most 700 km."""

FLAT = 2000.0
"""With this many noise scales in the Earth's radius or more, the series for the curvature is exact to rounding."""


@dataclass(frozen=True)
class SphericalLaplace:
    """Noise on the globe with density proportional to exp(-epsilon * great-circle distance).

    The normalising constant is the same for every centre, so the guarantee holds everywhere, also at the poles and
    the antimeridian; epsilon is scaled so that it holds for WGS84 metres. Reports are rounded to a public lattice
    of five decimals of a degree, or fewer. Each is the exact rounding of a draw from the continuous distribution,
    see docs/exact-draws.md.

    Parameters
    ----------
    epsilon : float
        Privacy loss per metre: level / radius. At least 2.9e-6, a mean error of 700 km: wider noise would extend
        around the Earth and is of no use.
    decimals : int
        Decimals of a degree of a report, 0 to 5. They do not change the guarantee.

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
        """The Earth's radius in units of the noise's scale."""
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
        """Return the report of one valid location from two random 64-bit words, without arrays.

        The few reports that two words do not decide take more words from `further`, by default the system's.
        """
        return self._draws.report(lon, lat, first, second, further)

    @cached_property
    def _draws(self) -> _GlobeDraws:
        purpose = f"SphericalLaplace {self.epsilon.hex()}"
        error = error_of(self._scales, self.decimals)
        return _GlobeDraws(purpose, self.decimals, error, self._cos_sin_of_arc, self._exact_arc)

    def _exact_arc(self, survival: "arb") -> "arb":
        from geoind.mechanisms import exact

        return exact.globe_arc(survival, self._scales)

    def _cos_sin_of_arc(self, s: Number, functions: Functions[Number]) -> tuple[Number | float, Number]:
        """Return cosine and sine, up to a common factor, of the arc exceeded with probability exp(-s^2 / 2).

        For short arcs these are 1 and the tangent: a series in 1 / k^2 whose next term is below 1e-13 of the arc.
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
        The mass at the antipode, e^(-pi k) < 1e-25, is below the precision of a double.
        """
        k = self._scales
        s = r - r * (r + 3.0) / (6.0 * k * k)
        for _ in range(4 if k < FLAT else 1):
            sin, cos = functions.sin(s / k), functions.cos(s / k)
            g = cos + k * sin
            # At the truth itself both residual and slope vanish; the constant turns 0 / 0 into 0.
            slope = (g - cos) + sin / k + 1e-300
            s = s - (s - functions.log(g) - excess) * g / slope
        return s / k


@lru_cache(maxsize=256)
def _reach(globe: SphericalLaplace, confidence: float) -> float:
    return GEODESIC_STRETCH * (float(globe.radius_quantile(confidence)) + half_diagonal(globe.decimals))


LARGEST_SIGMA = 500_000.0
"""In metres. Wider noise would extend around the Earth and is of no use."""


@dataclass(frozen=True)
class SphericalGaussian:
    """Gaussian noise on the globe: a uniform direction, and the radius of a normal pair as an arc.

    Like `PlanarGaussian` it has no epsilon: its guarantee holds except with probability delta. `level_of_reports`
    computes it, including the effect of the Earth's curvature (docs/explanations/accounting.md). The noise is
    wider by 0.57 %, so that the guarantee holds for WGS84 metres, and each report is the exact rounding of a draw.

    Parameters
    ----------
    sigma : float
        Standard deviation on each axis, in metres; at most 500 km.
    decimals : int
        Decimals of a degree of a report, 0 to 5.

    Examples
    --------
    >>> noise = SphericalGaussian(sigma=800.0)
    >>> noise.sample([[2.2945, 48.8584], [180.0, -90.0]]).shape
    (2, 2)
    >>> from geoind import level_of_reports
    >>> round(level_of_reports(noise, reports=20, radius=200, delta=1e-5), 2)
    4.98
    """

    sigma: float
    decimals: int = DECIMALS

    space: ClassVar[Space] = "lonlat"

    def __post_init__(self) -> None:
        sigma = as_noise(self.sigma, "sigma")
        if sigma > LARGEST_SIGMA:
            raise InvalidInputError(
                f"sigma must be at most {LARGEST_SIGMA:.0f} m on the globe, got {self.sigma!r}: "
                "the noise would reach round the Earth"
            )
        object.__setattr__(self, "sigma", sigma)
        object.__setattr__(self, "decimals", as_decimals(self.decimals))

    @property
    def epsilon(self) -> float:
        """Infinite: Gaussian noise has no privacy loss per metre."""
        return math.inf

    @cached_property
    def noise_arc(self) -> float:
        """The standard deviation that the sampler runs with, in radii of the Earth."""
        return self.sigma * WGS84_FACTOR / EARTH_RADIUS

    @property
    def mean_radius(self) -> float:
        """Expected great-circle distance between truth and report, in metres."""
        return self.noise_arc * EARTH_RADIUS * math.sqrt(math.pi / 2)

    def reach(self, confidence: float) -> float:
        """Return the WGS84 metres within which a report lies of its truth with at least this probability.

        Examples
        --------
        >>> round(SphericalGaussian(100).reach(0.95))
        248
        """
        arc = self.noise_arc * math.sqrt(-2 * math.log1p(-as_unit(confidence, "confidence")))
        return GEODESIC_STRETCH * (arc * EARTH_RADIUS + half_diagonal(self.decimals))

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each (n, 2) lon/lat point, in degrees, on the public lattice."""
        points = as_lonlat(points)
        return self._draws.reports(points, as_randomness(rng, len(points)))

    @cached_property
    def _draws(self) -> _GlobeDraws:
        purpose = f"SphericalGaussian {self.sigma.hex()}"
        error = error_of(1 / self.noise_arc, self.decimals)
        return _GlobeDraws(purpose, self.decimals, error, self._cos_sin_of_arc, self._exact_arc)

    def _cos_sin_of_arc(self, s: Number, functions: Functions[Number]) -> tuple[Number | float, Number]:
        arc = s * self.noise_arc
        return functions.cos(arc), functions.sin(arc)

    def _exact_arc(self, survival: "arb") -> "arb":
        from geoind.mechanisms import exact

        return exact.gaussian_radius(survival) * self.noise_arc
