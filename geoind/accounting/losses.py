"""How much one report tells between two places: the distribution of the privacy loss.

The loss of a report z is L(z) = ln p(z | x) / p(z | x'), a random number where z is drawn at x. Whatever n
independent reports can tell is in the distribution of the sum of their losses: the least delta of a level is

    delta(level) = E [1 - exp(level - L1 - ... - Ln)]+ .

A loss tells its distribution as atoms: positive masses at losses, from Gauss-Legendre quadrature between the
points of a grid, so that rounding the atoms to the grid rounds the distribution itself.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import k0e, k1e, log_ndtr

from geoind.arrays import FloatArray

__all__ = ["Atoms", "BoundedLoss", "GaussianLoss", "GlobeLoss", "LaplaceLoss", "Loss", "excess"]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(10)
"""Ten nodes per cell: exact to rounding for cells as narrow as these (docs/accounting.md)."""

PIECES = 64
"""Cells of a loss's own, where the grid is coarse."""

GAUSSIAN_WIDTH = 37.5
"""Standard deviations that a Gaussian loss is followed to; what lies beyond has a probability below 1e-300."""


class Atoms(NamedTuple):
    """A distribution on finitely many losses, and the mass that lies above all of them."""

    losses: FloatArray
    masses: FloatArray
    beyond: float = 0.0


class Loss(Protocol):
    """The distribution of the privacy loss of one report between the worst two places.

    Where it is known only between bounds, `above` asks for the one that tells more, else for the one that tells
    less.
    """

    def __hash__(self) -> int: ...

    @property
    def largest(self) -> float:
        """No report loses more; infinite where that is not bounded."""
        ...

    @property
    def doubt(self) -> float:
        """Probabilities are right within a factor exp(doubt)."""
        ...

    def atoms(self, step: float, *, above: bool) -> Atoms:
        """Return the distribution for a grid of the multiples of `step`: no cell of it crosses half a step."""
        ...

    def delta(self, level: float, *, above: bool) -> float:
        """Return the least delta of one report at a level, to machine precision and the doubt."""
        ...


@dataclass(frozen=True)
class LaplaceLoss:
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
        return Atoms(self.largest * np.cos(angle), masses / masses.sum())


@dataclass(frozen=True)
class GlobeLoss:
    """Laplace noise on the globe, `scales` times narrower than the Earth's radius, between places `arc` apart.

    Its loss is the plane's but for the curvature (docs/accounting.md): every probability is the plane's within a
    factor exp(doubt), except for reports more than 2 - arc radii away.

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
        """What the curvature can change."""
        return 4 / self.scales**2 + self.arc**2 / 3

    def atoms(self, step: float, *, above: bool) -> Atoms:
        """Return the plane's distribution as atoms."""
        losses, masses, _ = self._plane(above).atoms(step, above=above)
        return Atoms(losses, masses, self._far if above else 0.0)

    def delta(self, level: float, *, above: bool) -> float:
        """Return the least delta of one report at a level."""
        delta = self._plane(above).delta(level, above=above)
        return delta * math.exp(self.doubt) + self._far if above else delta * math.exp(-self.doubt)

    def _plane(self, above: bool) -> LaplaceLoss:
        return LaplaceLoss(self.largest if above else self.largest * self.attained)

    @property
    def _far(self) -> float:
        """The probability of a report more than 2 - arc radii away, at most."""
        return (1 + self.scales) * math.exp(-self.scales * (2 - self.arc))


@dataclass(frozen=True)
class GaussianLoss:
    """Gaussian noise between two places `ratio` standard deviations apart: the loss is N(ratio^2 / 2, ratio^2).

    Parameters
    ----------
    ratio : float
        Distance over standard deviation.
    more, less : float
        By how much a loss may be larger or smaller than that, on the globe; but for
    far : float
        the probability of a report so far away that nothing is known of it.
    """

    ratio: float
    more: float = 0.0
    less: float = 0.0
    far: float = 0.0
    largest = math.inf
    doubt = 0.0

    def together(self, other: "GaussianLoss", reports: int) -> "GaussianLoss":
        """Return the loss of one report of this kind and several of another: Gaussian again."""
        return GaussianLoss(
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
        return Atoms(losses, masses / masses.sum(), self.far if above else 0.0)

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
class BoundedLoss:
    """A mechanism of which only the `largest` loss is known.

    At worst it is randomised response between two answers, which can be turned into any mechanism of that largest
    loss (Kairouz, Oh and Viswanath, ICML 2015); at best it tells nothing.
    """

    largest: float
    doubt = 0.0

    def atoms(self, step: float, *, above: bool) -> Atoms:  # noqa: ARG002
        """Return the two atoms, or one at no loss."""
        if not above:
            return Atoms(np.zeros(1), np.ones(1))
        lie = math.exp(-self.largest) / (1 + math.exp(-self.largest))
        return Atoms(np.array([-self.largest, self.largest]), np.array([lie, 1 - lie]))

    def delta(self, level: float, *, above: bool) -> float:
        """Return the least delta of one report at a level."""
        return excess(self.atoms(0.0, above=above), level)


def excess(atoms: Atoms, level: float) -> float:
    """Return E [1 - exp(level - L)]+, the least delta of a distribution of losses at a level."""
    return float(-atoms.masses @ np.expm1(np.minimum(0.0, level - atoms.losses))) + atoms.beyond


def _edges(low: float, high: float, step: float) -> FloatArray:
    """Return the multiples of half a step strictly within an interval."""
    half = step / 2
    numbers = np.arange(math.floor(low / half), math.ceil(high / half) + 1) * half
    return np.asarray(numbers[(numbers > low) & (numbers < high)])


def _cells(borders: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the quadrature over the intervals between sorted borders."""
    middle, half = (borders[1:] + borders[:-1]) / 2, (borders[1:] - borders[:-1]) / 2
    return (middle[:, None] + half[:, None] * NODES).ravel(), (half[:, None] * WEIGHTS).ravel()
