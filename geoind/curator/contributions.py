"""How much one person can change a release: few of their records count, and each release is paid for."""

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from geoind.accounting.promise import PersonLevel
from geoind.arrays import as_count, as_positive
from geoind.budgets.ledger import Ledger
from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError

__all__ = ["Persons", "as_person_level", "bounded", "charge", "names_of"]

Persons: TypeAlias = Iterable[str] | Iterable[int]
"""Whose each record is."""

LARGEST = 20.0
"""Largest level of a release: e^20 hides nobody."""


def as_person_level(epsilon: float) -> PersonLevel:
    """Return the promise of one release.

    Examples
    --------
    >>> as_person_level(1.0)
    PersonLevel(level=1.0)
    """
    level = as_positive(epsilon, "epsilon")
    if level > LARGEST:
        raise InvalidInputError(
            f"epsilon is a level per person here, not per metre, and must be at most {LARGEST:g}, "
            f"got {epsilon!r}: a factor e^{level:g} hides nobody"
        )
    return PersonLevel(level)


def names_of(person: Persons, count: int) -> list[str]:
    """Return the name of each record's person."""
    if isinstance(person, (str, bytes)) or not isinstance(person, Iterable):
        raise InvalidInputError("person must be a list: whose each record is, one name per record")
    names = [as_person(name) for name in person]
    if len(names) != count:
        raise InvalidInputError(f"person must be one name per record: {len(names)} for {count} records")
    if not count:
        raise InvalidInputError("there must be at least one record: nothing was drawn or charged")
    return names


def bounded(names: list[str], reports_per_person: int) -> npt.NDArray[np.bool_]:
    """Return which records count: the first ones of each person, at most so many.

    What counts of one person depends on nobody else, so one person changes so many records at most.

    Examples
    --------
    >>> bounded(["ana", "ben", "ana", "ana"], 2)
    array([ True,  True,  True, False])
    """
    most = as_count(reports_per_person, "reports_per_person")
    seen: Counter[str] = Counter()
    counts = np.zeros(len(names), dtype=np.bool_)
    for row, name in enumerate(names):
        seen[name] += 1
        counts[row] = seen[name] <= most
    return counts


def charge(ledger: Ledger | None, names: list[str], promise: PersonLevel, label: str) -> None:
    """Charge everybody in the table for one release, before anything is drawn: all of them, or none."""
    if ledger is not None:
        ledger.charge_counts(dict.fromkeys(names, 1), promise, label=label)
