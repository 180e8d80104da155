"""What one report was: enough to account for it, and nothing about the place."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import TypeAlias

from geoind.arrays import as_positive
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism

__all__ = ["LARGEST", "UNITS", "Cost", "Release", "as_units"]

UNITS = 10**15
"""Units in an epsilon of one per metre."""

LARGEST = 1000.0
"""Largest epsilon or budget, per metre: beyond it nothing is private, and a database's integers end."""

Cost: TypeAlias = float | Mechanism
"""What one report costs: epsilon per metre, or the mechanism that draws it."""


@dataclass(frozen=True)
class Release:
    """The law of one report's noise, as a ledger keeps it.

    Parameters
    ----------
    kind : str
        "any": whatever keeps an epsilon per metre.
    parameter : int
        Epsilon in units of 1e-15 per metre, rounded up.

    Examples
    --------
    >>> Release.of(0.01)
    Release(kind='any', parameter=10000000000000)
    """

    kind: str
    parameter: int

    @classmethod
    def of(cls, cost: Cost) -> "Release":
        """Return what a report of a mechanism, or of an epsilon, is to a ledger."""
        return cls("any", as_units(cost.epsilon if isinstance(cost, Mechanism) else cost, "epsilon"))


def as_units(epsilon: float, name: str) -> int:
    """Return epsilon in units, rounded up; the shortest decimal that reads as this number is what was meant."""
    number = as_positive(epsilon, name)
    if number > LARGEST:
        raise InvalidInputError(f"{name} must be at most {LARGEST:g} per metre, got {epsilon!r}")
    return int((Decimal(repr(number)) * UNITS).to_integral_value(ROUND_CEILING))
