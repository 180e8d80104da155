"""Laplace and Gaussian noise in the plane, and how their reports are drawn.

Doubles decide almost all reports, exact arithmetic the rest (docs/exact-draws.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from geoind.arrays import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_floats,
    as_number,
    as_points,
    as_positive,
    as_probabilities,
    as_unit,
)
from geoind.errors import InvalidInputError
from geoind.keys import Words
from geoind.mechanisms.noise import (
    ARRAYS,
    as_noise,
    direction,
    half_angles,
    laplace_radius,
    out_of_range,
    over_blocks,
    radius_of,
    survivals,
)
from geoind.mechanisms.protocol import Randomness, RandomnessLike, Space, as_randomness, words_by_block

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "ERROR",
    "RELATIVE_ERROR",
    "PlanarGaussian",
    "PlanarLaplace",
    "coordinates",
    "planar_reports",
    "step_of",
]

FARTHEST = 2.0**50
"""Largest coordinate of a true location, in steps: all lattice points around it are exact doubles."""

ERROR = 2.0**-24
"""Bound on the error of a computed coordinate, in steps; the noise's scale is less than 2048 steps."""

RELATIVE_ERROR = 2.0**-50
"""Further error, relative to the coordinate itself: its sums and quotients are rounded."""


def step_of(scale: float) -> float:
    """Return the step of the public lattice: the power of two that is 1/2048 to 1/1024 of the noise's scale.

    Taken from the scale's bits: a logarithm could be rounded differently on another machine, to another lattice.

    Examples
    --------
    >>> step_of(1024.0), step_of(math.nextafter(1024.0, 0))
    (1.0, 0.5)
    """
    _, exponent = math.frexp(scale)
    return math.ldexp(1.0, exponent - 11)


def planar_reports(
    points: FloatArray,
    source: Randomness,
    purpose: str,
    *,
    step: float,
    steps: Callable[[FloatArray], FloatArray],
    radius: "Callable[[arb], arb]",
) -> FloatArray:
    """Return one report for each point: truth plus noise, rounded to whole steps of the lattice.

    Parameters
    ----------
    points : (n, 2) array
    source, purpose
        The source of random words, and the name that separates them from other words of the source.
    step : float
        Step of the lattice, in metres; a power of two.
    steps : callable
        From s, where exp(-s^2 / 2) is the probability of a larger radius, to the radius in steps, within 2^-25.
    radius : callable
        From the ball of that probability to the ball of the radius in metres.
    """
    if points.size and not max(points.max(), -points.min()) <= FARTHEST * step:
        raise InvalidInputError(f"points must lie within {FARTHEST * step:.3g} m of the origin for this noise")

    reports = np.empty_like(points)
    words_of = words_by_block(source, points, 2, purpose)

    def block(part: slice) -> tuple[IntArray, Words]:
        words = words_of(part)
        undecided = _block(points[part], words, reports[part], step, steps)
        return undecided + int(part.start), words[undecided]

    for rows, words in over_blocks(block, len(points)):
        for row, (first, second) in zip(rows.tolist(), words.tolist(), strict=True):
            # Loaded here because few processes need FLINT.
            from geoind.mechanisms import exact

            x, y = points[row].tolist()
            place = exact.planar_place(x, y, step=step, radius=radius)
            further = partial(source.further, row, points[row], purpose)
            column, line = exact.decided(place, first, second, further)
            reports[row] = column * step, line * step
    return reports


def _block(
    points: FloatArray, words: Words, reports: FloatArray, step: float, steps: Callable[[FloatArray], FloatArray]
) -> IntArray:
    """Fill in the reports, and return the rows that doubles cannot decide."""
    survival = survivals(words)
    rare = out_of_range(survival)
    survival[rare] = 0.5
    decided = np.ones(len(survival), bool)
    decided[rare] = False
    for axis, computed in enumerate(coordinates(points, survival, words, step, steps)):
        nearest = np.rint(computed)
        off = np.abs(computed - nearest)
        off += np.abs(computed, out=computed) * RELATIVE_ERROR
        # NaN counts as undecided.
        decided &= off < 0.5 - ERROR
        nearest *= step
        # Adding zero turns -0.0 into 0.0, whose sign would reveal the side of zero on which the noise fell.
        nearest += 0.0
        reports[:, axis] = nearest
    return np.flatnonzero(~decided)


def coordinates(
    points: FloatArray, survival: FloatArray, words: Words, step: float, steps: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return x and y of the drawn points in steps of the lattice, within `ERROR` and `RELATIVE_ERROR`."""
    radius = steps(np.sqrt(-2.0 * np.log(survival)))
    cos, sin = direction(half_angles(words), ARRAYS)
    return points[:, 0] / step + radius * cos, points[:, 1] / step + radius * sin


@dataclass(frozen=True)
class PlanarLaplace:
    """Noise in the plane with density epsilon^2 / (2 pi) * exp(-epsilon * distance).

    For any two locations at distance d, the probabilities of any set of reports differ by a factor of at most
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

        A power of two, so that every point of the lattice is an exact double.
        """
        return step_of(1 / self.epsilon)

    @property
    def noise_epsilon(self) -> float:
        """The epsilon that the sampler runs with: the promised one, because draws are exact."""
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


@dataclass(frozen=True)
class PlanarGaussian:
    """Independent normal noise on both axes.

    **Not geo-indistinguishable.** The ratio of the densities around two places grows without bound with the
    report's distance, so no epsilon holds and `epsilon` is infinite. The guarantee is weaker: a level within a
    chosen radius, except with probability delta. In exchange the level of n reports grows little faster than
    sqrt(n): see `level_of_reports`, and `mechanism_for_reports` for the sigma that a level needs.

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
        """Return the least noise that is (epsilon * distance, delta)-private for locations up to `radius` apart.

        Exact (the analytic Gaussian mechanism of Balle and Wang, ICML 2018); `classical` is the textbook formula.
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
        """Return noise by the textbook formula, sigma = sqrt(2 ln(1.25 / delta)) / epsilon.

        The guarantee is that of `calibrated`. With sensitivity = radius and level = epsilon * radius the formula
        is sigma^2 = 2 radius^2 ln(1.25 / delta) / level^2. It is proven for levels below 1 only; larger levels
        raise an error. Its noise is never less than that of `calibrated`.

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
        """Return the smallest delta of (epsilon * distance, delta) between two locations `distance` metres apart.

        It grows with the distance, so the delta of a radius holds for all distances within it.

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
        """Infinite: Gaussian noise has no privacy loss per metre."""
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
        """Return one report for each of the (n, 2) points, in metres, on the public lattice; drawn exactly."""
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
