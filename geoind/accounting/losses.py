"""The privacy loss of one report between the worst two places within a radius.

The loss of a report z is L(z) = ln p(z | x) / p(z | x'), a random number where z is drawn at x. The least delta of
a level that n independent reports have follows from the distribution of the sum of their losses:

    delta(level) = E [1 - exp(level - L1 - ... - Ln)]+ .

A distribution is given as atoms: positive masses at losses, from Gauss-Legendre quadrature between the points of a
grid, so that rounding the atoms to the grid rounds the distribution itself.

For noise with a log-concave density that is moved to the truth, and so for planar Laplace and Gaussian noise, the
worst pair is the one at the full radius, at every level (docs/explanations/accounting.md has the proof).
For a finite channel all pairs are tried.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, singledispatch
from typing import Protocol, TypeAlias

import numpy as np
from scipy.special import k0e, k1e, log_ndtr

from geoind.accounting.finite import pairs_within, tight_delta
from geoind.arrays import FloatArray
from geoind.channels.channel import Channel
from geoind.distances import EARTH_RADIUS
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarGaussian, PlanarLaplace
from geoind.mechanisms.post_processed import PostProcessed
from geoind.mechanisms.projected import Projected
from geoind.mechanisms.protocol import is_mechanism, off_site_level
from geoind.mechanisms.spherical import WGS84_FACTOR, SphericalGaussian, SphericalLaplace

__all__ = ["Atoms", "Loss", "Losses", "bounded_loss", "excess", "loss_of", "merged", "scale_and_width"]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(10)
"""Ten nodes per cell: exact to rounding for the cells used here (docs/explanations/accounting.md)."""

PIECES = 64
"""Cells of a loss where the grid is coarse."""

GAUSSIAN_WIDTH = 37.5
"""Standard deviations of a Gaussian loss that atoms cover; the probability of the rest is below 1e-300."""

ATTAINED = 1.0056 / WGS84_FACTOR
"""Some pair of places is 1.0056 times farther apart on the sphere than in WGS84 metres (largest: 1.00561)."""

FARTHEST = 12.0
"""Standard deviations within which Gaussian reports on the globe are compared with the plane: all but e^-72."""

LARGEST_ARC = 0.5
"""Largest distance, in radii of the Earth, at which the globe is compared with the plane."""

Atoms: TypeAlias = tuple[FloatArray, FloatArray, float]
"""Losses, their masses, and the probability of an infinite loss."""


class Loss(Protocol):
    """The distribution of the privacy loss of one report between the worst two places.

    Where it is known only between bounds, `above=True` returns an upper bound of every delta, `above=False` a
    lower bound.
    """

    def __hash__(self) -> int: ...

    @property
    def largest(self) -> float:
        """The largest loss; infinite where it is not bounded."""
        ...

    @property
    def doubt(self) -> float:
        """Probabilities are right within a factor exp(doubt)."""
        ...

    def atoms(self, step: float, *, above: bool) -> Atoms:
        """Return atoms for a grid of the multiples of `step`: no cell crosses a multiple of half a step."""
        ...

    def delta(self, level: float, *, above: bool) -> float:
        """Return the least delta of one report at a level, to machine precision and the doubt."""
        ...


Losses: TypeAlias = tuple[tuple[Loss, int], ...]
"""Losses that add up, each with a number of reports."""


@singledispatch
def loss_of(mechanism: object, radius: float) -> Loss:
    """Return the privacy loss of a report between the worst two places up to `radius` metres apart.

    For other mechanisms only epsilon is used; `loss_of.register` adds a type.
    """
    if not is_mechanism(mechanism):
        raise InvalidInputError(f"mechanism must be one that geoind knows, got {type(mechanism).__name__}")
    if not mechanism.epsilon < math.inf:
        raise InvalidInputError(
            f"the privacy loss of {type(mechanism).__name__} is not known: its epsilon is not finite"
        )
    return _BoundedLoss(mechanism.epsilon * radius + off_site_level(mechanism))


def bounded_loss(largest: float) -> Loss:
    """Return the loss of a mechanism of which only the largest loss is known."""
    return _BoundedLoss(largest)


def merged(losses: Losses) -> Losses:
    """Return the losses with all Gaussian ones as a single one: their sum is Gaussian again."""
    rest: dict[Loss, int] = {}
    gaussian = _GaussianLoss(0.0)
    for loss, reports in losses:
        if isinstance(loss, _GaussianLoss):
            gaussian = gaussian.together(loss, reports)
        else:
            rest[loss] = rest.get(loss, 0) + reports
    return (*(((gaussian, 1),) if gaussian.ratio else ()), *rest.items())


def scale_and_width(loss: Loss) -> tuple[float, float]:
    """Return the typical size of a loss and the width of the interval of its atoms, for the choice of a grid."""
    if isinstance(loss, _GaussianLoss):
        return loss.ratio, 2 * GAUSSIAN_WIDTH * loss.ratio
    # The masses of a channel are differences of doubles, which a finer grid would not resolve.
    scale = max(loss.largest_finite, 0.01) if isinstance(loss, _ChannelLoss) else max(loss.largest, 1e-9)
    return scale, 2 * scale


def excess(atoms: Atoms, level: float) -> float:
    """Return E [1 - exp(level - L)]+, the least delta of a distribution of losses at a level."""
    losses, masses, infinite = atoms
    return float(-masses @ np.expm1(np.minimum(0.0, level - losses))) + infinite


@loss_of.register
def _(mechanism: PlanarLaplace, radius: float) -> Loss:
    return _LaplaceLoss(mechanism.epsilon * radius)


@loss_of.register
def _(mechanism: SphericalLaplace, radius: float) -> Loss:
    return _GlobeLoss(mechanism.epsilon / WGS84_FACTOR * EARTH_RADIUS, _arc(radius), ATTAINED)


@loss_of.register
def _(mechanism: PlanarGaussian, radius: float) -> Loss:
    return _GaussianLoss(radius / mechanism.sigma)


@loss_of.register
def _(mechanism: SphericalGaussian, radius: float) -> Loss:
    arc, noise, reach = _arc(radius), mechanism.noise_arc, FARTHEST * mechanism.noise_arc
    # Upper bound: an arc to a report is at most as long as the third side of the plane's triangle, and the area
    # elements around two places differ by (1 / x - cot x) per radius at most, x the longer arc. Lower bound: how
    # much shorter that third side can be (docs/explanations/accounting.md).
    bend = 1 / (reach + arc) - 1 / math.tan(reach + arc)
    shorter = (1 - ATTAINED) * arc / noise * (arc / noise + 2 * FARTHEST) + (reach + arc) ** 2 * (arc / noise) ** 2
    return _GaussianLoss(arc / noise, arc * bend, arc * bend + shorter, math.exp(-(FARTHEST**2) / 2))


def _arc(radius: float) -> float:
    """Return the longest great circle between places within a radius, in radii of the Earth."""
    arc = WGS84_FACTOR * radius / EARTH_RADIUS
    if arc > LARGEST_ARC:
        most = LARGEST_ARC * EARTH_RADIUS / WGS84_FACTOR
        raise InvalidInputError(f"radius must be at most {most / 1000:.0f} km on the globe, got {radius:g} m")
    return arc


@loss_of.register
def _(mechanism: PostProcessed, radius: float) -> Loss:
    # Post-processing does not add to the loss.
    return loss_of(mechanism.mechanism, radius)


@loss_of.register
def _(mechanism: Projected, radius: float) -> Loss:
    inner, beyond = mechanism.mechanism, 0.0
    if level := off_site_level(inner):
        # A truth counts as its closest site: the two sites may be this much farther apart than the truths.
        beyond = level / inner.epsilon
        if not beyond < math.inf:
            raise InvalidInputError("the privacy loss is not known for places that are not sites of the mechanism")
    # Places within the radius on the ground are at most this far apart in the plane.
    return loss_of(inner, radius * mechanism.largest_scale + beyond)


@loss_of.register
def _(mechanism: Channel, radius: float) -> Loss:
    return _channel_loss(mechanism, radius)


@lru_cache(maxsize=64)
def _channel_loss(channel: Channel, radius: float) -> "_ChannelLoss":
    """Return the same object for the same channel, which caches what it computes."""
    return _ChannelLoss(channel, radius)


@dataclass(frozen=True)
class _LaplaceLoss:
    """Planar Laplace noise between two places at a distance of `largest` / epsilon.

    In elliptic coordinates with the places as foci the loss is `largest` * cos(angle), and the coordinate along
    the hyperbola integrates to Bessel functions: with w = largest / 2 the angle in (0, pi) has the density

        w^2 / pi * exp(w cos(angle)) * (K0(w) sin(angle)^2 + K1(w) / w).
    """

    largest: float
    doubt = 0.0

    def atoms(self, step: float, *, above: bool) -> Atoms:  # noqa: ARG002
        """Return the distribution as atoms."""
        return self._split_at(_edges(-self.largest, self.largest, step))

    def delta(self, level: float, *, above: bool) -> float:  # noqa: ARG002
        """Return the least delta of one report at a level."""
        return 0.0 if level >= self.largest else excess(self._split_at(np.array([level])), level)

    def _split_at(self, edges: FloatArray) -> Atoms:
        w = self.largest / 2
        own = np.linspace(0, math.pi, PIECES + math.ceil(8 * math.sqrt(w)) + 1)
        borders = np.concatenate([np.arccos(np.clip(edges / self.largest, -1, 1)), own])
        angle, width = _cells(np.unique(borders))
        # 1 - cos without cancellation: the scaled Bessel functions carry the factor exp(w).
        density = np.exp(-2 * w * np.sin(angle / 2) ** 2) * (
            w * w * float(k0e(w)) * np.sin(angle) ** 2 + w * float(k1e(w))
        )
        masses = width * density / math.pi
        return self.largest * np.cos(angle), masses / masses.sum(), 0.0


@dataclass(frozen=True)
class _GlobeLoss:
    """Laplace noise on the globe, `scales` times narrower than the Earth's radius, between places `arc` apart.

    Except for the curvature the loss is that of the plane (docs/explanations/accounting.md): every
    probability is the plane's within a factor exp(doubt), except for reports more than 2 - arc radii away.

    Parameters
    ----------
    scales : float
        Epsilon per great-circle metre times the Earth's radius.
    arc : float
        The largest great-circle distance in radii of the Earth, at most 0.5.
    attained : float
        The share of it that some pair of places within the radius attains.
    """

    scales: float
    arc: float
    attained: float

    @property
    def largest(self) -> float:
        """The largest loss: epsilon times the distance."""
        return self.scales * self.arc

    @property
    def doubt(self) -> float:
        """Bound of the effect of the curvature."""
        return 4 / self.scales**2 + self.arc**2 / 3

    def atoms(self, step: float, *, above: bool) -> Atoms:
        """Return the plane's distribution as atoms."""
        losses, masses, _ = self._plane(above).atoms(step, above=above)
        return losses, masses, self._far if above else 0.0

    def delta(self, level: float, *, above: bool) -> float:
        """Return the least delta of one report at a level."""
        delta = self._plane(above).delta(level, above=above)
        return delta * math.exp(self.doubt) + self._far if above else delta * math.exp(-self.doubt)

    def _plane(self, above: bool) -> _LaplaceLoss:
        return _LaplaceLoss(self.largest if above else self.largest * self.attained)

    @property
    def _far(self) -> float:
        """Upper bound of the probability of a report more than 2 - arc radii away."""
        return (1 + self.scales) * math.exp(-self.scales * (2 - self.arc))


@dataclass(frozen=True)
class _GaussianLoss:
    """Gaussian noise between two places `ratio` standard deviations apart: the loss is N(ratio^2 / 2, ratio^2).

    Parameters
    ----------
    ratio : float
        Distance over standard deviation.
    more, less : float
        Bounds of how much larger or smaller a loss on the globe may be, except with
    far : float
        the probability of a report so far away that these bounds do not hold.
    """

    ratio: float
    more: float = 0.0
    less: float = 0.0
    far: float = 0.0
    largest = math.inf
    doubt = 0.0

    def together(self, other: "_GaussianLoss", reports: int) -> "_GaussianLoss":
        """Return the loss of one report of this kind and several of another: Gaussian again."""
        return _GaussianLoss(
            math.hypot(self.ratio, other.ratio * math.sqrt(reports)),
            self.more + reports * other.more,
            self.less + reports * other.less,
            self.far + reports * other.far,
        )

    def atoms(self, step: float, *, above: bool) -> Atoms:
        """Return the distribution as atoms."""
        middle, reach = self.ratio**2 / 2 + self._shift(above), GAUSSIAN_WIDTH * self.ratio
        low, high = middle - reach, middle + reach
        own = np.linspace(low, high, 4 * PIECES + 1)
        losses, width = _cells(np.unique(np.concatenate([_edges(low, high, step), own])))
        masses = width * np.exp(-0.5 * ((losses - middle) / self.ratio) ** 2)
        return losses, masses / masses.sum(), self.far if above else 0.0

    def delta(self, level: float, *, above: bool) -> float:
        """Return the least delta of one report at a level (Balle and Wang, ICML 2018)."""
        level -= self._shift(above)
        half, shift = self.ratio / 2, level / self.ratio
        first, second = float(log_ndtr(half - shift)), level + float(log_ndtr(-half - shift))
        delta = -math.exp(first) * math.expm1(min(0.0, second - first))
        return min(1.0, delta + self.far) if above else max(0.0, delta - self.far)

    def _shift(self, above: bool) -> float:
        return self.more if above else -self.less


@dataclass(frozen=True)
class _BoundedLoss:
    """A mechanism of which only the `largest` loss is known.

    The upper bound is randomised response between two answers, which can be post-processed into any mechanism of
    that largest loss (Kairouz, Oh and Viswanath, ICML 2015); the lower bound is no loss at all.
    """

    largest: float
    doubt = 0.0

    def atoms(self, step: float, *, above: bool) -> Atoms:  # noqa: ARG002
        """Return the two atoms, or one at no loss."""
        if not above:
            return np.zeros(1), np.ones(1), 0.0
        lie = math.exp(-self.largest) / (1 + math.exp(-self.largest))
        return np.array([-self.largest, self.largest]), np.array([lie, 1 - lie]), 0.0

    def delta(self, level: float, *, above: bool) -> float:
        """Return the least delta of one report at a level."""
        return excess(self.atoms(0.0, above=above), level)


@dataclass(frozen=True, eq=False)
class _ChannelLoss:
    """The privacy loss of a finite channel between inputs up to `radius` apart.

    The upper bound is a distribution that dominates every pair: its delta at a level is the largest one of all
    pairs, as a convex function like theirs, so that reports at changing places are covered too. The lower bound is
    the distribution of the pair with the largest mean loss.
    """

    channel: Channel
    radius: float
    doubt = 0.0

    @cached_property
    def largest(self) -> float:
        """The largest loss; infinite where a report is possible at one place only."""
        return max((float(losses.max()) for losses, _ in self._losses()), default=0.0)

    @cached_property
    def largest_finite(self) -> float:
        """The largest absolute value of a finite loss."""
        sizes = (np.abs(losses[np.isfinite(losses)]) for losses, _ in self._losses())
        return max((float(size.max(initial=0.0)) for size in sizes), default=0.0)

    def delta(self, level: float, *, above: bool) -> float:  # noqa: ARG002
        """Return the least delta of one report at a level."""
        return float(tight_delta(self.channel, level=level, radius=self.radius))

    def atoms(self, step: float, *, above: bool) -> Atoms:
        """Return the distribution that dominates, on the grid; or the one of the worst pair."""
        return self._dominating(step) if above else self._worst_pair

    def _losses(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield losses and masses, (others, outputs) each, of every input against those within the radius."""
        matrix = self.channel.matrix
        for truth, others in pairs_within(self.channel, self.radius):
            here = np.broadcast_to(matrix[truth], (len(others), len(self.channel.outputs)))
            with np.errstate(divide="ignore", invalid="ignore"):
                losses = np.log(here) - np.log(matrix[others])
            # Reports that are impossible at the truth have no loss.
            yield np.where(here > 0, losses, -math.inf), here

    @cached_property
    def _worst_pair(self) -> Atoms:
        worst: Atoms = (np.zeros(1), np.ones(1), 0.0)
        most = 0.0
        for losses, masses in self._losses():
            means = np.multiply(masses, losses, where=masses > 0, out=np.zeros(losses.shape)).sum(axis=1)
            pair = int(np.argmax(means))
            if means[pair] > most:
                most, held = float(means[pair]), np.isfinite(losses[pair])
                infinite = float(masses[pair][losses[pair] == math.inf].sum())
                worst = (losses[pair][held], masses[pair][held], infinite)
        return worst

    def _dominating(self, step: float) -> Atoms:
        reach = math.ceil(self.largest_finite / step)
        levels = np.asarray(np.arange(-reach, reach + 1) * step)
        highest = np.zeros(len(levels))
        for losses, masses in self._losses():
            for loss, mass in zip(losses, masses, strict=True):
                np.maximum(highest, _curve(loss, mass, levels), out=highest)
        # Between neighbours the curve is a chord in exp(level); its slope is the other place's mass above.
        factors = np.exp(levels)
        above = (highest[:-1] - highest[1:]) / np.diff(factors)
        first = (1 - highest[0]) / factors[0]
        there = -np.diff(np.minimum.accumulate(np.clip(np.concatenate([[first], above, [0.0]]), 0.0, 1.0)))
        # Differences of doubles: each mass is off by a few roundings over a step.
        infinite = float(highest[-1]) + len(levels) * 2.0**-50 / step
        return levels, there * factors, min(1.0, infinite)


def _curve(losses: FloatArray, masses: FloatArray, levels: FloatArray) -> FloatArray:
    """Return the least delta of a distribution of losses at each level."""
    order = np.argsort(losses)
    losses, masses = losses[order], masses[order]
    there = masses * np.exp(-np.where(np.isfinite(losses), losses, math.inf))
    start = np.searchsorted(losses, levels, side="right")
    here_above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)[start]
    there_above = np.append(np.cumsum(there[::-1])[::-1], 0.0)[start]
    return np.asarray(np.maximum(here_above - np.exp(levels) * there_above, 0.0))


def _edges(low: float, high: float, step: float) -> FloatArray:
    """Return the multiples of half a step strictly within an interval."""
    half = step / 2
    numbers = np.arange(math.floor(low / half), math.ceil(high / half) + 1) * half
    return np.asarray(numbers[(numbers > low) & (numbers < high)])


def _cells(borders: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the quadrature over the intervals between sorted borders."""
    middle, half = (borders[1:] + borders[:-1]) / 2, (borders[1:] - borders[:-1]) / 2
    return (middle[:, None] + half[:, None] * NODES).ravel(), (half[:, None] * WEIGHTS).ravel()
