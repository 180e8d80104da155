"""What a budget allows: how much the reports of one person may tell together."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from geoind.budgets.release import UNITS, Release, as_units

__all__ = ["Sum"]

SLACK = Fraction(1, 10**9)
"""By how little a sum may pass a budget, relatively: epsilon is rounded up, and 10 * epsilon is not round."""


@dataclass(frozen=True)
class Sum:
    """At most so much epsilon per metre in all, whatever the reports were and however they were chosen."""

    budget: float

    def __post_init__(self) -> None:
        as_units(self.budget, "budget")

    @cached_property
    def total(self) -> Fraction:
        """All that may be spent."""
        return Fraction(as_units(self.budget, "budget"), UNITS)

    def spent(self, reports: Mapping[Release, int]) -> Fraction:
        """Return the sum of all epsilons."""
        return Fraction(sum(release.parameter * count for release, count in reports.items()), UNITS)

    def allows(self, reports: Mapping[Release, int]) -> bool:
        """Return whether a person may have made all these reports."""
        return self.spent(reports) <= self.total * (1 + SLACK)
