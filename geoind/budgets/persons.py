"""Names of persons, and the reports that a ledger charges them for."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np

from geoind.arrays import IntArray
from geoind.errors import InvalidInputError
from geoind.keys import Words

__all__ = ["PersonReports", "as_person"]

LANE = 128
"""Bits between the two words of a sum of tags: no carry reaches the second."""

WORD = (1 << 64) - 1


def as_person(person: object) -> str:
    r"""Return a person's name as ledgers store it: text in Unicode NFC, or the digits of a whole number.

    Text that looks the same is the same person, whatever its Unicode form. Other values are errors: a float 7.0 is
    often an integer that a table converted, None is a missing name, and "ana " would give ana a second budget.

    Examples
    --------
    >>> as_person("ana"), as_person(7)
    ('ana', '7')
    >>> as_person("Zoe\u0301") == as_person("Zo\u00e9")
    True
    >>> as_person(7.0)
    Traceback (most recent call last):
        ...
    geoind.errors.InvalidInputError: person must be text or a whole number, got float
    """
    if type(person) is not bool and isinstance(person, Integral):
        return str(int(person))
    if not isinstance(person, str):
        raise InvalidInputError(f"person must be text or a whole number, got {type(person).__name__}")
    if not person.isprintable() or not person.strip():
        raise InvalidInputError("person must be a name of printable characters that is not empty")
    if person != person.strip():
        raise InvalidInputError("person must be a name without space around it")
    return unicodedata.normalize("NFC", person)


@dataclass
class PersonReports:
    """The number of reports of each person and a sum that identifies them: the input of an idempotent charge.

    Under a key, reports are a function of the key and the rows. The tag of a report is a pseudo-random function of
    its record and of the report itself; in a trace, of person, time and answer. The sum of a person's tags
    identifies the person's reports in any order: it is the same for every engine and every attempt, and differs
    for other reports.

    Attributes
    ----------
    counts : Counter
        The number of reports of each person.
    tags : Counter
        The sum of the tags of each person's reports; empty without a key.
    """

    counts: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, names: Sequence[str], codes: IntArray, reports: IntArray, tags: Words | None) -> "PersonReports":
        """Return the reports of rows.

        Parameters
        ----------
        names : sequence of str
            Persons, as `as_person` returns them, each once.
        codes : (n,) array of int
            For each row, the index of its person in `names`.
        reports : (n,) array of int
            Number of reports of each row.
        tags : (n, 2) array of uint64, optional
            The tag of each row's reports.

        Examples
        --------
        >>> PersonReports.of(["ana", "ben"], np.array([0, 1, 0]), np.array([1, 1, 2]), None).counts
        Counter({'ana': 3, 'ben': 1})
        """
        totals = np.bincount(codes, reports, len(names)).astype(np.int64)
        made = cls(Counter(dict(zip(names, totals.tolist(), strict=True))))
        if tags is not None:
            sums = np.zeros((2, len(names)), np.uint64)
            for total, words in zip(sums, tags.T, strict=True):
                np.add.at(total, codes, words)
            first, second = sums.tolist()
            packed = (low | high << LANE for low, high in zip(first, second, strict=True))
            made.tags.update(dict(zip(names, packed, strict=True)))
        return made

    def update(self, other: "PersonReports") -> None:
        """Add further reports."""
        self.counts.update(other.counts)
        self.tags.update(other.tags)

    @property
    def tokens(self) -> dict[str, str] | None:
        """For each person, the token of these reports for a ledger; None without a key."""
        if not self.tags:
            return None
        both = {name: (self.tags[name] & WORD, self.tags[name] >> LANE & WORD) for name in self.counts}
        return {name: f"reports {first:016x}{second:016x}" for name, (first, second) in both.items()}
