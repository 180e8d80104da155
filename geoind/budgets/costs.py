"""The cost of a report as a ledger stores it, and the limit that a budget sets to the reports of one person.

A sum of epsilons holds however each report's mechanism was chosen, also from the earlier reports. A level up to
delta does not: the accountant needs to know in advance which reports will be made. `_LevelLimit` therefore allows
what one of two rules allows; docs/explanations/budgets.md has the proof.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, singledispatch
from typing import NamedTuple, TypeAlias, cast

from geoind.accounting.accountant import MOST_REPORTS, level_of_losses
from geoind.accounting.losses import Loss, bounded_loss, loss_of
from geoind.accounting.promise import PersonLevel, Promise
from geoind.arrays import as_positive, as_unit
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarGaussian, PlanarLaplace
from geoind.mechanisms.post_processed import PostProcessed
from geoind.mechanisms.projected import Projected
from geoind.mechanisms.protocol import Mechanism, is_mechanism, off_site_level
from geoind.mechanisms.spherical import SphericalGaussian, SphericalLaplace

__all__ = ["UNITS", "Cost", "CostLike", "as_cost", "as_units", "limit_of", "most_reports"]

UNITS = 10**15
"""Units in an epsilon of one per metre."""

NANOMETRES = 10**9

LARGEST = 1000.0
"""Largest epsilon or budget: a larger one protects nothing, and would not fit into the database's integers."""

WIDEST = 1e9
"""Largest sigma, in metres."""

SLACK = Fraction(1, 10**9)
"""By how much, relatively, a budget may be exceeded: epsilon is rounded up, and 10 * epsilon is not round."""

CostLike: TypeAlias = float | Mechanism | PersonLevel
"""The cost of one report: epsilon per metre, or its mechanism; or the level per person of a curator's release."""


class Cost(NamedTuple):
    """The noise of one report, as a ledger stores it; nothing about the place.

    Parameters
    ----------
    kind : str
        "SphericalLaplace", "PlanarLaplace", "SphericalGaussian" or "PlanarGaussian"; "any" for another mechanism
        with an epsilon, "sites" for one whose epsilon holds between sites only; "PersonLevel" for a curator's
        release.
    parameter : int
        Epsilon per metre, in units of 1e-15, rounded up; of a Gaussian kind sigma in nanometres, rounded down; of
        a "PersonLevel" the level, in units of 1e-15, rounded up. Metres are on the ground for mechanisms of
        lon/lat, and in the plane for mechanisms of xy; a projected mechanism is charged as `Projected`.

    Examples
    --------
    >>> as_cost(0.01)
    Cost(kind='any', parameter=10000000000000)
    >>> print(as_cost(SphericalLaplace(0.01)))
    SphericalLaplace(0.01)
    """

    kind: str
    parameter: int

    @property
    def is_gaussian(self) -> bool:
        """Whether the parameter is a sigma; there is no epsilon."""
        return self.kind.endswith("Gaussian")

    @property
    def is_per_person(self) -> bool:
        """Whether the parameter is a level per person and not per metre."""
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
            return bounded_loss(self.largest(radius))
        if self.kind not in NOISES:
            raise InvalidInputError(
                "a mechanism between sites cannot be accounted for: its epsilon does not hold off its sites"
            )
        return loss_of(NOISES[self.kind](self.number), radius)

    def __str__(self) -> str:
        return f"{self.kind}({self.number:g})"


NOISES = {kind.__name__: kind for kind in (SphericalLaplace, PlanarLaplace, SphericalGaussian, PlanarGaussian)}
"""Mechanisms with one parameter."""


@singledispatch
def as_cost(cost: CostLike) -> Cost:
    """Return the cost of a report of a mechanism, or of any mechanism with an epsilon.

    For other mechanisms only epsilon is used; `as_cost.register` adds a type.
    """
    if isinstance(cost, PersonLevel):
        return Cost(PersonLevel.__name__, as_units(cost.level, "level", per="per person"))
    if not is_mechanism(cost):
        return Cost("any", as_units(cast("float", cost), "epsilon"))
    return Cost("sites" if off_site_level(cost) else "any", as_units(cost.epsilon, "epsilon"))


@as_cost.register(PlanarLaplace)
@as_cost.register(SphericalLaplace)
def _(cost: PlanarLaplace | SphericalLaplace) -> Cost:
    return Cost(type(cost).__name__, as_units(cost.epsilon, "epsilon"))


@as_cost.register(PlanarGaussian)
@as_cost.register(SphericalGaussian)
def _(cost: PlanarGaussian | SphericalGaussian) -> Cost:
    if not 1e-3 <= cost.sigma <= WIDEST:
        raise InvalidInputError(f"sigma must be between a millimetre and a million kilometres, got {cost.sigma!r}")
    return Cost(type(cost).__name__, _rounded(cost.sigma, NANOMETRES, ROUND_FLOOR))


@as_cost.register
def _(cost: PostProcessed) -> Cost:
    # Post-processing costs nothing.
    return as_cost(cost.mechanism)


@as_cost.register
def _(cost: Projected) -> Cost:
    # Places are at most this much farther apart in the plane than on the ground.
    scale, inner = Fraction(cost.largest_scale), as_cost(cost.mechanism)
    if inner.is_gaussian:
        return Cost(inner.kind, math.floor(inner.parameter / scale))
    return Cost(inner.kind, math.ceil(inner.parameter * scale))


def as_units(epsilon: float, name: str, *, per: str = "per metre") -> int:
    """Return epsilon in units, rounded up; the float stands for the shortest decimal with its value."""
    number = as_positive(epsilon, name)
    if number > LARGEST:
        raise InvalidInputError(f"{name} must be at most {LARGEST:g} {per}, got {epsilon!r}")
    return _rounded(number, UNITS, ROUND_CEILING)


def _rounded(number: float, units: int, rounding: str) -> int:
    return int((Decimal(repr(number)) * units).to_integral_value(rounding))


def limit_of(budget: float | Promise | PersonLevel) -> "_SumLimit | _LevelLimit":
    """Return the limit that a ledger's budget sets; a number limits the sum of epsilons.

    Both kinds have `budget`, `total` (all that may be spent), `measure` (the unit), `check` (refuse a cost that
    cannot be counted), `spent` and `allows`.
    """
    return _LevelLimit(budget) if isinstance(budget, Promise) else _SumLimit(budget)


@dataclass(frozen=True)
class _SumLimit:
    """A largest sum of epsilons per metre, for reports, or of levels per person, for a curator's releases.

    The two have different units and are not added.
    """

    budget: float | PersonLevel

    def __post_init__(self) -> None:
        if not isinstance(self.budget, PersonLevel):
            as_units(self.budget, "budget")
            object.__setattr__(self, "budget", float(self.budget))

    @cached_property
    def total(self) -> Fraction:
        """The budget."""
        if isinstance(self.budget, PersonLevel):
            return Fraction(as_cost(self.budget).parameter, UNITS)
        return Fraction(as_units(self.budget, "budget"), UNITS)

    @property
    def measure(self) -> str:
        """The unit."""
        return "of level per person" if isinstance(self.budget, PersonLevel) else "per metre"

    def check(self, cost: Cost) -> None:
        """Raise if the cost has another unit or no epsilon."""
        if self._counts(cost):
            return
        if isinstance(self.budget, PersonLevel):
            raise InvalidInputError(
                f"{cost} is a report and this budget a level per person, for a curator's releases: "
                "give the ledger of reports a budget per metre"
            )
        if cost.is_per_person:
            raise InvalidInputError(
                f"{cost} is a level per person and this budget an epsilon per metre: "
                "give the ledger of a curator budget=PersonLevel(level)"
            )
        raise InvalidInputError(
            f"{cost.kind} has no epsilon, so a sum cannot count it: "
            "give the ledger budget=Promise(level=, radius=, delta=)"
        )

    def spent(self, reports: Mapping[Cost, int]) -> Fraction | float:
        """Return the sum; infinite if another ledger of the database charged a cost that this one cannot count."""
        units = self._units(reports)
        return math.inf if units is None else Fraction(units, UNITS)

    def allows(self, reports: Mapping[Cost, int]) -> bool:
        """Return whether the sum is within the budget."""
        units = self._units(reports)
        return units is not None and units <= self._most_units

    @cached_property
    def _most_units(self) -> int:
        return math.floor(self.total * (1 + SLACK) * UNITS)

    def _units(self, reports: Mapping[Cost, int]) -> int | None:
        if not all(self._counts(cost) for cost in reports):
            return None
        return sum(cost.parameter * count for cost, count in reports.items())

    def _counts(self, cost: Cost) -> bool:
        return not cost.is_gaussian and cost.is_per_person == isinstance(self.budget, PersonLevel)


@dataclass(frozen=True)
class _LevelLimit:
    """A largest level within a radius, up to delta, by the better of two rules.

    The plain sum of the levels, for any reports; or the accountant's level, for reports of one cost. All planar
    Gaussian noise counts as one cost: whatever the sigmas, and however they were chosen, n reports have the loss
    of a single report whose sigma^-2 is the sum of theirs. Without a delta only the plain sum counts.
    """

    budget: Promise

    def __post_init__(self) -> None:
        as_positive(self.budget.level, "level")
        if self.budget.reports is not None:
            raise InvalidInputError("a budget covers any number of reports: give a Promise without reports")
        if self.budget.delta:
            as_unit(self.budget.delta, "delta")

    @property
    def total(self) -> float:
        """The promised level."""
        return self.budget.level

    @property
    def measure(self) -> str:
        """The level, and where it holds."""
        return f"of level within {self.budget.radius:g} m up to delta {self.budget.delta:g}"

    def check(self, cost: Cost) -> None:
        """Raise if the accountant cannot count the cost at this radius; what it computes here is cached."""
        if not cost.loss(self.budget.radius).largest < math.inf and not self.budget.delta:
            raise InvalidInputError(
                f"{cost.kind} has no epsilon, so a promise without delta cannot count it: "
                "give the ledger budget=Promise(level=, radius=, delta=)"
            )
        if cost.kind != "PlanarGaussian":
            most_reports(cost, self.budget)

    def spent(self, reports: Mapping[Cost, int]) -> float:
        """Return the level of the reports: the accountant's for reports of one cost, else the plain sum."""
        kinds = {cost.kind for cost in reports}
        if not self.budget.delta or "sites" in kinds or (len(reports) > 1 and kinds != {"PlanarGaussian"}):
            return sum(cost.largest(self.budget.radius) * count for cost, count in reports.items())
        losses = tuple((cost.loss(self.budget.radius), count) for cost, count in reports.items())
        return level_of_losses(losses, self.budget.delta, above=True) if losses else 0.0

    def allows(self, reports: Mapping[Cost, int]) -> bool:
        """Return whether one of the rules allows the reports."""
        if len(reports) == 1:
            [(cost, count)] = reports.items()
            if cost.kind not in ("PlanarGaussian", "sites"):
                return count <= most_reports(cost, self.budget)
        return self._within(reports)

    def _within(self, reports: Mapping[Cost, int]) -> bool:
        return self.spent(reports) <= self.total * (1 + float(SLACK))


@lru_cache(maxsize=1024)
def most_reports(cost: Cost, promise: Promise) -> int:
    """Return the largest number of reports of one cost within a promise."""
    limit = _LevelLimit(promise)
    low, high = 0, 1
    while high <= MOST_REPORTS and limit._within({cost: high}):
        low, high = high, 2 * high
    high = min(high, MOST_REPORTS + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if limit._within({cost: middle}) else (low, middle)
    return low
