"""How much one person can change a release: few of their records count, and each release is paid for."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from geoind.accounting.promise import PersonLevel
from geoind.arrays import as_positive
from geoind.budgets.ledger import Ledger
from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError

__all__ = ["Contributors", "Persons", "as_contributors", "as_person_level", "bounded"]

LARGEST = 20.0
"""Largest level of a release: e^20 is no useful bound."""


@dataclass(frozen=True, init=False)
class Contributors:
    """Whose each record of a table is, and the ledger that charges them for each release.

    Where nobody is charged, a list of names is enough: `person=names`.

    Parameters
    ----------
    person : list of str or int
        Whose each record is. Where every record is somebody else's: `range(len(records))`.
    ledger : Ledger, optional
        With `budget=PersonLevel(...)`. Everybody is charged once per release, before anything is drawn.
    label : str
        What for, in the ledger's history; the name of the release by default.

    Examples
    --------
    >>> Contributors(["ana", "ben", "ana"], label="trips of May")
    Contributors(ledger=None, label='trips of May')
    """

    names: tuple[str, ...] = field(repr=False)
    ledger: Ledger | None
    label: str

    def __init__(
        self,
        person: Iterable[str] | Iterable[int],
        *,
        ledger: Ledger | None = None,
        label: str = "",
    ) -> None:
        if isinstance(person, (str, bytes)) or not isinstance(person, Iterable):
            raise InvalidInputError("person must be a list: whose each record is, one name per record")
        object.__setattr__(self, "names", tuple(as_person(name) for name in person))
        object.__setattr__(self, "ledger", ledger)
        object.__setattr__(self, "label", label)

    def charge(self, promise: PersonLevel, release: str) -> None:
        """Charge everybody in the table for one release, before anything is drawn: all of them, or none."""
        if self.ledger is not None:
            self.ledger.charge_counts(dict.fromkeys(self.names, 1), promise, label=self.label or release)


Persons: TypeAlias = Iterable[str] | Iterable[int] | Contributors
"""Whose each record is: one name per record, or with the ledger that charges them."""


def as_contributors(person: Persons, count: int) -> Contributors:
    """Return the contributors of so many records.

    Examples
    --------
    >>> as_contributors(range(3), 3).names
    ('0', '1', '2')
    """
    people = person if isinstance(person, Contributors) else Contributors(person)
    if len(people.names) != count:
        raise InvalidInputError(f"person must be one name per record: {len(people.names)} for {count}")
    if not count:
        raise InvalidInputError("there must be at least one record: nothing was drawn or charged")
    return people


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
            f"got {epsilon!r}: a factor e^{level:g} is no useful bound"
        )
    return PersonLevel(level)


def bounded(names: Iterable[str], most: int) -> npt.NDArray[np.bool_]:
    """Return which records count: the first ones of each person, at most so many.

    What counts of one person depends on nobody else, so one person changes so many records at most.

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
