"""Gaussian noise on the globe, for many reports that together keep a level up to a probability delta."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from geoind.arrays import ArrayLike, FloatArray, as_lonlat, as_unit
from geoind.distances import EARTH_RADIUS, GEODESIC_STRETCH
from geoind.errors import InvalidInputError
from geoind.mechanisms.functions import Functions, Number
from geoind.mechanisms.globe import WGS84_FACTOR, GlobeDraws, as_decimals, error_of
from geoind.mechanisms.noise import as_noise
from geoind.mechanisms.protocol import Space
from geoind.randomness import RandomnessLike, as_randomness
from geoind.space.lattice import DECIMALS, half_diagonal

if TYPE_CHECKING:
    from flint import arb

__all__ = ["SphericalGaussian"]

LARGEST_SIGMA = 500_000.0
"""Wider noise, which reaches round the Earth, serves nobody."""


@dataclass(frozen=True)
class SphericalGaussian:
    """Gaussian noise on the globe: a uniform direction, and the radius of a normal pair as an arc.

    Like `PlanarGaussian` it has no epsilon: what it promises holds up to a probability delta. Ask
    `level_of_reports`, which knows what the Earth's curvature changes (docs/accounting.md). The noise is wider
    by 0.57 % so that the promise holds for WGS84 metres, and every report is the exact rounding of a draw.

    Parameters
    ----------
    sigma : float
        Standard deviation on each axis, in metres; at most 500 km.
    decimals : int
        The lattice: decimals of a degree that a report has, 0 to 5.

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
        """Infinite: Gaussian noise keeps no promise per metre."""
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
    def _draws(self) -> GlobeDraws:
        purpose = f"SphericalGaussian {self.sigma.hex()}"
        error = error_of(1 / self.noise_arc, self.decimals)
        return GlobeDraws(purpose, self.decimals, error, self._forward_aside, self._exact_arc)

    def _forward_aside(self, s: Number, functions: Functions[Number]) -> tuple[Number | float, Number]:
        arc = s * self.noise_arc
        return functions.cos(arc), functions.sin(arc)

    def _exact_arc(self, survival: "arb") -> "arb":
        from geoind.mechanisms import exact

        return exact.gaussian_radius(survival) * self.noise_arc
