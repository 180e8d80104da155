"""Bounded contributions: how many records of a person count, and the charge for a release."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from geoind.accounting.promise import PersonLevel
from geoind.arrays import as_positive
from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError

if TYPE_CHECKING:
    from geoind.budgets.ledger import Ledger

__all__ = ["Persons", "as_level", "as_names", "bounded", "charge_release"]

LARGEST = 20.0
"""Largest level of a release: e^20 is no useful bound."""

Persons: TypeAlias = Iterable[str] | Iterable[int]
"""The person of each record."""


def as_names(person: Persons, count: int) -> tuple[str, ...]:
    """Return the names of the persons of `count` records.

    Examples
    --------
    >>> as_names(range(3), 3)
    ('0', '1', '2')
    """
    if isinstance(person, (str, bytes)) or not isinstance(person, Iterable):
        raise InvalidInputError("person must be a list with the person of each record")
    names = tuple(as_person(name) for name in person)
    if len(names) != count:
        raise InvalidInputError(f"person must be one name per record: {len(names)} for {count}")
    if not count:
        raise InvalidInputError("there must be at least one record: nothing was drawn or charged")
    return names


def as_level(epsilon: float) -> float:
    """Return the level per person of one release.

    Examples
    --------
    >>> as_level(1)
    1.0
    """
    level = as_positive(epsilon, "epsilon")
    if level > LARGEST:
        raise InvalidInputError(
            f"epsilon is a level per person here, not per metre, and must be at most {LARGEST:g}, "
            f"got {epsilon!r}: a factor e^{level:g} is no useful bound"
        )
    return level


def charge_release(ledger: "Ledger | None", names: Iterable[str], level: float, label: str) -> None:
    """Charge each person once for a release: all of them, or none."""
    if ledger is not None:
        ledger.charge_counts(dict.fromkeys(names, 1), PersonLevel(level), label=label)


def bounded(names: Iterable[str], most: int) -> npt.NDArray[np.bool_]:
    """Return which records count: the first ones of each person, at most `most`.

    Whether a record counts depends on its person's records only, so one person changes at most `most` records.

    Examples
    --------
    >>> bounded(["ana", "ben", "ana", "ana"], 2)
    array([ True,  True,  True, False])
    """
    seen: Counter[str] = Counter()
    counts = []
    for name in names:
        seen[name] += 1
        counts.append(seen[name] <= most)
    return np.array(counts, dtype=np.bool_)
