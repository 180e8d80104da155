"""What a budget allows: how much the reports of one person may tell together.

A sum of epsilons holds however each report's mechanism was chosen, from the reports before included. A level up to
delta does not: an accountant knows what n reports cost when it is told beforehand which. `Accounted` therefore
allows what one of two rules allows, and docs/budgets.md proves that it may.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Protocol

from geoind.accounting.bounds import level_of_losses
from geoind.accounting.promise import PersonLevel, Promise
from geoind.accounting.reports import MOST_REPORTS
from geoind.budgets.release import UNITS, Release, as_units, release_of
from geoind.errors import InvalidInputError

__all__ = ["Accounted", "Limit", "Sum", "limit_of"]

SLACK = Fraction(1, 10**9)
"""By how little a budget may be passed, relatively: epsilon is rounded up, and 10 * epsilon is not round."""


class Limit(Protocol):
    """How much the reports of one person may tell together."""

    @property
    def budget(self) -> float | Promise | PersonLevel:
        """What the user asked for."""
        ...

    @property
    def total(self) -> Fraction | float:
        """All that may be spent."""
        ...

    @property
    def measure(self) -> str:
        """What is counted, after a number."""
        ...

    def check(self, release: Release) -> None:
        """Refuse a report that this budget cannot count."""
        ...

    def spent(self, reports: Mapping[Release, int]) -> Fraction | float:
        """Return what the reports tell together."""
        ...

    def allows(self, reports: Mapping[Release, int]) -> bool:
        """Return whether a person may have made all these reports."""
        ...


def limit_of(budget: float | Promise | PersonLevel) -> Limit:
    """Return the limit that a ledger's budget is: a number is a sum of epsilons."""
    return Accounted(budget) if isinstance(budget, Promise) else Sum(budget)


@dataclass(frozen=True)
class Sum:
    """At most so much in all, however the reports were chosen: epsilon per metre, or a level per person.

    The one counts reports, the other a curator's releases. A sum of both would mean nothing.
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
            return Fraction(release_of(self.budget).parameter, UNITS)
        return Fraction(as_units(self.budget, "budget"), UNITS)

    @property
    def measure(self) -> str:
        """The unit."""
        return "of level per person" if isinstance(self.budget, PersonLevel) else "per metre"

    def check(self, release: Release) -> None:
        """Refuse what the sum cannot count."""
        if self._counts(release):
            return
        if isinstance(self.budget, PersonLevel):
            raise InvalidInputError(
                f"{release} is a report and this budget a level per person, for a curator's releases: "
                "give the ledger of reports its budget per metre"
            )
        if release.is_per_person:
            raise InvalidInputError(
                f"{release} is a level per person and this budget an epsilon per metre: "
                "give the ledger of a curator budget=PersonLevel(level)"
            )
        raise InvalidInputError(
            f"{release.kind} keeps no epsilon, so a sum cannot count it: "
            "give the ledger budget=Promise(level=, radius=, delta=)"
        )

    def spent(self, reports: Mapping[Release, int]) -> Fraction | float:
        """Return the sum: infinite where another ledger let pass what this one cannot count."""
        units = self._units(reports)
        return math.inf if units is None else Fraction(units, UNITS)

    def allows(self, reports: Mapping[Release, int]) -> bool:
        """Return whether the sum is within the budget."""
        units = self._units(reports)
        return units is not None and units <= self._most_units

    @cached_property
    def _most_units(self) -> int:
        return math.floor(self.total * (1 + SLACK) * UNITS)

    def _units(self, reports: Mapping[Release, int]) -> int | None:
        if not all(self._counts(release) for release in reports):
            return None
        return sum(release.parameter * count for release, count in reports.items())

    def _counts(self, release: Release) -> bool:
        return not release.is_gaussian and release.is_per_person == isinstance(self.budget, PersonLevel)


@dataclass(frozen=True)
class Accounted:
    """A level within a radius, up to delta, by whichever of two rules allows more.

    The plain sum of the levels, for any reports; or the accountant's level for reports that are all of one law.
    All planar Gaussian noise is one law: whatever their sigmas, and however those were chosen, n reports tell what
    a single one tells whose sigma^-2 is the sum of theirs.
    """

    budget: Promise

    @property
    def total(self) -> float:
        """The promised level."""
        return self.budget.level

    @property
    def measure(self) -> str:
        """The level, and where it holds."""
        return f"of level within {self.budget.radius:g} m up to delta {self.budget.delta:g}"

    def check(self, release: Release) -> None:
        """Refuse what the accountant does not know at this radius; what it computes here is kept."""
        release.loss(self.budget.radius)
        if release.kind != "PlanarGaussian":
            _most(release, self.budget)

    def spent(self, reports: Mapping[Release, int]) -> float:
        """Return the level of the reports: the accountant's where they are of one law, else the plain sum."""
        kinds = {release.kind for release in reports}
        if "sites" in kinds or (len(reports) > 1 and kinds != {"PlanarGaussian"}):
            return sum(release.largest(self.budget.radius) * count for release, count in reports.items())
        losses = tuple((release.loss(self.budget.radius), count) for release, count in reports.items())
        return level_of_losses(losses, self.budget.delta, above=True) if losses else 0.0

    def allows(self, reports: Mapping[Release, int]) -> bool:
        """Return whether one of the rules allows the reports."""
        if len(reports) == 1:
            [(release, count)] = reports.items()
            if release.kind not in ("PlanarGaussian", "sites"):
                return count <= _most(release, self.budget)
        return self._within(reports)

    def _within(self, reports: Mapping[Release, int]) -> bool:
        return self.spent(reports) <= self.total * (1 + float(SLACK))


@lru_cache(maxsize=1024)
def _most(release: Release, promise: Promise) -> int:
    """Return how many reports of one law the promise has room for."""
    limit = Accounted(promise)
    low, high = 0, 1
    while high <= MOST_REPORTS and limit._within({release: high}):
        low, high = high, 2 * high
    high = min(high, MOST_REPORTS + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if limit._within({release: middle}) else (low, middle)
    return low
