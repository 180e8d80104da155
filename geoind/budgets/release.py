"""What one report was: enough to account for it, and nothing about the place."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import singledispatch
from typing import NamedTuple, TypeAlias, cast

from geoind.accounting.losses import BoundedLoss, Loss
from geoind.accounting.mechanisms import loss_of
from geoind.accounting.promise import PersonLevel
from geoind.arrays import as_positive
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarGaussian, PlanarLaplace
from geoind.mechanisms.post_processed import PostProcessed
from geoind.mechanisms.projected import Projected
from geoind.mechanisms.protocol import Mechanism, is_mechanism, off_site_level
from geoind.mechanisms.spherical import SphericalGaussian, SphericalLaplace

__all__ = ["UNITS", "Cost", "Release", "as_units", "release_of"]

UNITS = 10**15
"""Units in an epsilon of one per metre."""

NANOMETRES = 10**9

LARGEST = 1000.0
"""Largest epsilon or budget: beyond it nothing is private, and a database's integers end."""

WIDEST = 1e9
"""Largest sigma, in metres."""

Cost: TypeAlias = float | Mechanism | PersonLevel
"""What one report costs: epsilon per metre, or the mechanism that draws it; or what a curator's release costs."""


class Release(NamedTuple):
    """The law of one report's noise, as a ledger keeps it.

    Parameters
    ----------
    kind : str
        "SphericalLaplace", "PlanarLaplace", "SphericalGaussian" or "PlanarGaussian"; "any" for whatever keeps an
        epsilon, and "sites" for what keeps it between sites only; "PersonLevel" for a curator's release.
    parameter : int
        Epsilon per metre, in units of 1e-15, rounded up; of a Gaussian kind sigma in nanometres, rounded down; of
        a "PersonLevel" the level, in units of 1e-15, rounded up. Metres are on the ground where the mechanism
        speaks degrees, and the plane's where it speaks metres: what was projected is charged as `Projected`.

    Examples
    --------
    >>> release_of(0.01)
    Release(kind='any', parameter=10000000000000)
    >>> print(release_of(SphericalLaplace(0.01)))
    SphericalLaplace(0.01)
    """

    kind: str
    parameter: int

    @property
    def is_gaussian(self) -> bool:
        """Whether the parameter is a sigma, and no epsilon holds."""
        return self.kind.endswith("Gaussian")

    @property
    def is_per_person(self) -> bool:
        """Whether the parameter is a level per person, wherever they are, and not per metre."""
        return self.kind == PersonLevel.__name__

    @property
    def number(self) -> float:
        """Epsilon per metre, or sigma in metres, or a level per person."""
        return self.parameter / (NANOMETRES if self.is_gaussian else UNITS)

    def largest(self, radius: float) -> float:
        """Return the largest privacy loss of such a report between two places up to `radius` metres apart."""
        if self.is_per_person:
            return 2 * self.number
        return math.inf if self.is_gaussian or self.kind == "sites" else self.number * radius

    def loss(self, radius: float) -> Loss:
        """Return the privacy loss of such a report between two places up to `radius` metres apart."""
        if self.kind == "any" or self.is_per_person:
            return BoundedLoss(self.largest(radius))
        if self.kind not in NOISES:
            raise InvalidInputError(
                "a mechanism between sites cannot be accounted for: it tells more off its sites"
            )
        return loss_of(NOISES[self.kind](self.number), radius)

    def __str__(self) -> str:
        return f"{self.kind}({self.number:g})"


NOISES = {kind.__name__: kind for kind in (SphericalLaplace, PlanarLaplace, SphericalGaussian, PlanarGaussian)}
"""Noise that one number describes."""


@singledispatch
def release_of(cost: Cost) -> Release:
    """Return what a report of a mechanism, or of any mechanism of an epsilon, is to a ledger.

    Of a mechanism that is not known here only its epsilon counts.
    """
    if isinstance(cost, PersonLevel):
        return Release(PersonLevel.__name__, as_units(cost.level, "level", per="per person"))
    if not is_mechanism(cost):
        return Release("any", as_units(cast("float", cost), "epsilon"))
    return Release("sites" if off_site_level(cost) else "any", as_units(cost.epsilon, "epsilon"))


@release_of.register(PlanarLaplace)
@release_of.register(SphericalLaplace)
def _(cost: PlanarLaplace | SphericalLaplace) -> Release:
    return Release(type(cost).__name__, as_units(cost.epsilon, "epsilon"))


@release_of.register(PlanarGaussian)
@release_of.register(SphericalGaussian)
def _(cost: PlanarGaussian | SphericalGaussian) -> Release:
    if not 1e-3 <= cost.sigma <= WIDEST:
        raise InvalidInputError(f"sigma must be between a millimetre and a million kilometres, got {cost.sigma!r}")
    return Release(type(cost).__name__, _rounded(cost.sigma, NANOMETRES, ROUND_FLOOR))


@release_of.register
def _(cost: PostProcessed) -> Release:
    # What is done to reports afterwards tells nothing more.
    return release_of(cost.mechanism)


@release_of.register
def _(cost: Projected) -> Release:
    # Places are at most this much farther apart in the plane than on the ground.
    scale, inner = Fraction(cost.largest_scale), release_of(cost.mechanism)
    if inner.is_gaussian:
        return Release(inner.kind, math.floor(inner.parameter / scale))
    return Release(inner.kind, math.ceil(inner.parameter * scale))


def as_units(epsilon: float, name: str, *, per: str = "per metre") -> int:
    """Return epsilon in units, rounded up; the shortest decimal that reads as this number is what was meant."""
    number = as_positive(epsilon, name)
    if number > LARGEST:
        raise InvalidInputError(f"{name} must be at most {LARGEST:g} {per}, got {epsilon!r}")
    return _rounded(number, UNITS, ROUND_CEILING)


def _rounded(number: float, units: int, rounding: str) -> int:
    return int((Decimal(repr(number)) * units).to_integral_value(rounding))
