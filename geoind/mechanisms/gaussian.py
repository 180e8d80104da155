"""Gaussian noise in the plane: it has no epsilon, but many reports keep a level up to delta with least noise."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from geoind.arrays import ArrayLike, FloatArray, as_number, as_points, as_positive, as_unit
from geoind.errors import InvalidInputError
from geoind.mechanisms.noise import as_noise
from geoind.mechanisms.planar import planar_reports, step_of
from geoind.mechanisms.protocol import Space
from geoind.randomness import RandomnessLike, as_randomness

if TYPE_CHECKING:
    from flint import arb

__all__ = ["PlanarGaussian"]


@dataclass(frozen=True)
class PlanarGaussian:
    """Independent normal noise on both axes.

    **Not geo-indistinguishable.** The ratio of the densities around two places grows without bound with the
    report's distance, so no epsilon holds and `epsilon` is infinite. What holds is weaker: a level within a chosen
    radius, up to a probability delta that the promise fails. In exchange n reports cost little more than
    sqrt(n) times one: `level_of_reports`, and `mechanism_for_reports` for the sigma that a promise needs.

    Parameters
    ----------
    sigma : float
        Standard deviation on each axis, in metres.

    Examples
    --------
    >>> noise = PlanarGaussian.calibrated(epsilon=math.log(4) / 200, delta=1e-5, radius=200)
    >>> round(noise.sigma, 1)
    554.7
    >>> noise.epsilon
    inf
    """

    sigma: float

    space: ClassVar[Space] = "xy"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", as_noise(self.sigma, "sigma"))

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, radius: float) -> "PlanarGaussian":
        """Return the least noise with which places up to `radius` apart keep (epsilon * distance, delta).

        Exact (the analytic Gaussian mechanism of Balle and Wang, ICML 2018); `classical` is the textbook's.
        """
        as_unit(delta, "delta")
        low = high = as_positive(radius, "radius")
        while cls(high).delta(epsilon, radius) > delta:
            high *= 2
        while cls(low).delta(epsilon, radius) <= delta:
            low /= 2
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (middle, high) if cls(middle).delta(epsilon, radius) > delta else (low, middle)
        return cls(high)

    @classmethod
    def classical(cls, *, epsilon: float, delta: float, radius: float) -> "PlanarGaussian":
        """Return the textbook's noise for the promise of `calibrated`: sigma = sqrt(2 ln(1.25 / delta)) / epsilon.

        With the sensitivity and the level of the textbook, radius and epsilon * radius, that is
        sigma^2 = 2 radius^2 ln(1.25 / delta) / level^2. It is proven for levels below 1 only, and refused for
        others; it is never less than `calibrated` gives.

        Examples
        --------
        >>> promise = {"epsilon": 0.5 / 200, "delta": 1e-5, "radius": 200}
        >>> round(PlanarGaussian.classical(**promise).sigma), round(PlanarGaussian.calibrated(**promise).sigma)
        (1938, 1406)
        """
        epsilon, delta = as_positive(epsilon, "epsilon"), as_unit(delta, "delta")
        if not epsilon * as_positive(radius, "radius") < 1:
            raise InvalidInputError(
                f"the classical calibration needs epsilon * radius below 1, got {epsilon * radius:g}: "
                "use PlanarGaussian.calibrated"
            )
        return cls(math.sqrt(2 * math.log(1.25 / delta)) / epsilon)

    def delta(self, epsilon: float, distance: float) -> float:
        """Return the smallest delta of (epsilon * distance, delta) between two places `distance` metres apart.

        It grows with the distance, so that of the radius covers everything within.

        Examples
        --------
        >>> round(PlanarGaussian(100).delta(epsilon=0.01, distance=100), 6)
        0.126937
        """
        from scipy.special import log_ndtr, ndtr

        epsilon = as_positive(epsilon, "epsilon")
        if not as_number(distance, "distance") >= 0:
            raise InvalidInputError("distance must not be negative")
        # Phi(d / 2 s - e s) - exp(e d) Phi(-d / 2 s - e s), the second factor in logarithms.
        half, shift = distance / (2 * self.sigma), epsilon * self.sigma
        second = math.exp(epsilon * distance + float(log_ndtr(-half - shift)))
        return max(0.0, float(ndtr(half - shift)) - second)

    @property
    def epsilon(self) -> float:
        """Infinite: Gaussian noise keeps no promise per metre."""
        return math.inf

    @property
    def mean_radius(self) -> float:
        """Expected distance between truth and report, in metres: sigma * sqrt(pi / 2)."""
        return self.sigma * math.sqrt(math.pi / 2)

    @cached_property
    def lattice_step(self) -> float:
        """Step of the public lattice that reports are rounded to, in metres: about sigma / 1000."""
        return step_of(self.sigma)

    def reach(self, confidence: float) -> float:
        """Return the metres within which a report lies of its truth with at least this probability.

        Examples
        --------
        >>> round(PlanarGaussian(100).reach(0.95))
        245
        """
        quantile = self.sigma * math.sqrt(-2 * math.log1p(-as_unit(confidence, "confidence")))
        return quantile + self.lattice_step / math.sqrt(2)

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each of the (n, 2) points, in metres, on the public lattice, drawn exactly."""
        points = as_points(points)
        unit = self.sigma / self.lattice_step
        return planar_reports(
            points,
            as_randomness(rng, len(points)),
            f"PlanarGaussian {self.sigma.hex()}",
            step=self.lattice_step,
            steps=lambda s: s * unit,
            radius=self._exact_radius,
        )

    def _exact_radius(self, survival: "arb") -> "arb":
        from geoind.mechanisms import exact

        return exact.gaussian_radius(survival) * self.sigma
