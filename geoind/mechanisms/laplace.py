"""Planar Laplace noise: the mechanism of geo-indistinguishability in the plane."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats, as_points, as_probabilities, as_unit
from geoind.errors import InvalidInputError
from geoind.mechanisms.noise import as_noise, laplace_radius, radius_of
from geoind.mechanisms.planar import planar_reports, step_of
from geoind.mechanisms.protocol import Space
from geoind.randomness import RandomnessLike, as_randomness

if TYPE_CHECKING:
    from flint import arb

__all__ = ["PlanarLaplace"]


@dataclass(frozen=True)
class PlanarLaplace:
    """Noise in the plane with density epsilon^2 / (2 pi) * exp(-epsilon * distance).

    For any two places at distance d every set of reports has probabilities within a factor
    exp(epsilon * d) (Andrés et al., CCS 2013).

    Parameters
    ----------
    epsilon : float
        Privacy loss per metre: level / radius.

    Examples
    --------
    >>> noise = PlanarLaplace(epsilon=math.log(4) / 200)
    >>> round(noise.mean_radius, 1)
    288.5
    >>> noise.sample([[0, 0], [1000, 0]]).shape
    (2, 2)
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_noise(self.epsilon, "epsilon"))

    space: ClassVar[Space] = "xy"

    @cached_property
    def lattice_step(self) -> float:
        """Step of the public lattice that reports are rounded to, in metres: about 0.001 / epsilon.

        A power of two, so that every place of the lattice is an exact double.
        """
        return step_of(1 / self.epsilon)

    @property
    def noise_epsilon(self) -> float:
        """The epsilon that the sampler runs with: the promised one, for draws are exact."""
        return self.epsilon

    @property
    def mean_radius(self) -> float:
        """Expected distance between truth and report, in metres: 2 / epsilon."""
        return 2 / self.epsilon

    def reach(self, confidence: float) -> float:
        """Return the metres within which a report lies of its truth with at least this probability.

        Examples
        --------
        >>> round(PlanarLaplace(0.01).reach(0.95))
        474
        """
        return float(self.radius_quantile(as_unit(confidence, "confidence"))) + self.lattice_step / math.sqrt(2)

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each of the (n, 2) points, in metres, on the public lattice.

        Each is the exact rounding of a draw from the continuous law, see docs/exact-draws.md. The lattice limits
        coordinates to 2^50 steps, 10^12 / epsilon.
        """
        points = as_points(points)
        unit = 1 / (self.epsilon * self.lattice_step)
        return planar_reports(
            points,
            as_randomness(rng, len(points)),
            f"PlanarLaplace {self.epsilon.hex()}",
            step=self.lattice_step,
            steps=lambda s: laplace_radius(s) * unit,
            radius=self._exact_radius,
        )

    def _exact_radius(self, survival: "arb") -> "arb":
        from geoind.mechanisms import exact

        return exact.laplace_radius(survival) / self.epsilon

    def logpdf(self, reports: ArrayLike, truth: ArrayLike) -> FloatArray:
        """Return the log density of reports given their true points, row by row.

        Examples
        --------
        >>> PlanarLaplace(1.0).logpdf([[3, 4]], [[0, 0]]).round(6)
        array([-6.837877])
        """
        difference = as_points(reports, "reports") - as_points(truth, "truth")
        apart = np.hypot(difference[:, 0], difference[:, 1])
        return 2 * math.log(self.epsilon) - math.log(2 * math.pi) - self.epsilon * apart

    def radius_cdf(self, radius: ArrayLike) -> FloatArray:
        """Return the probability that a report falls within `radius` metres of the truth.

        Examples
        --------
        >>> PlanarLaplace(0.01).radius_cdf(388.972).round(6)
        np.float64(0.9)
        """
        r = self.epsilon * as_floats(radius, "radius")
        if not (r >= 0).all():
            raise InvalidInputError("radius must not be negative")
        from scipy.special import gammainc

        # 1 - (1 + r) e^(-r), without its cancellation for small r.
        return np.asarray(gammainc(2.0, r), np.float64)[()]

    def radius_quantile(self, p: ArrayLike) -> FloatArray:
        """Return the radius that a report stays within with probability p, in metres.

        Examples
        --------
        >>> PlanarLaplace(1.0).radius_quantile([0.5, 0.95]).round(6)
        array([1.678347, 4.743865])
        """
        p = as_probabilities(p, "p")
        if not (p < 1).all():
            raise InvalidInputError("p must be less than 1: no radius holds every report")
        return np.asarray(radius_of(-np.log1p(-p.ravel())) / self.epsilon).reshape(p.shape)[()]
