"""Each person's privacy budget, in a real database.

A budget is a sum of epsilons, per metre: n reports of epsilon cost n * epsilon, wherever they were made
(sequential composition). Epsilon is kept in whole units of 1e-15 per metre, rounded up, so that charges add up
exactly in any order; a budget is kept to half a nano-unit (5e-10 per metre), so that `budget=10 * epsilon` pays
for ten reports although neither number is round.
"""

import os
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any

from geoind.arrays import as_count, as_positive
from geoind.budgets.database import Database, batches
from geoind.errors import BudgetExceededError, InvalidInputError, LedgerError

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Charge", "Ledger"]

UNITS = 10**15
"""Units in an epsilon of one per metre."""

TOLERANCE = UNITS // 10**9 // 2
"""By how little a sum may pass the budget: half a nano-unit, the rounding of up to 500 000 reports."""

LARGEST = 1000.0
"""Largest epsilon or budget, per metre: beyond it nothing is private, and a database's integers end."""


@dataclass(frozen=True)
class Charge:
    """One entry of a person's history.

    Attributes
    ----------
    at : datetime
        When, by the database's clock, in UTC.
    epsilon : float
        What was charged in total, per metre.
    reports : int
        For how many reports.
    label : str
        What for, in the caller's words.
    """

    at: datetime
    epsilon: float
    reports: int
    label: str


class Ledger:
    """Who has spent how much epsilon: charged before the noise is drawn, refused when it is too much.

    A charge is committed to the database before the method returns, so a report is never drawn unpaid; what
    was charged stays charged even if the report is never sent. Any number of processes and machines may
    charge at the same time.

    Parameters
    ----------
    url : str
        `sqlite:///budgets.db` for a file (one machine), `postgresql://...` for production, or `sqlite://`
        for a ledger in memory that forgets: for trials only.
    budget : float
        Epsilon that each person may spend, per metre.
    window : timedelta, optional
        Over which time: the sum over any stretch of this length stays within the budget (a rolling window).
        None, the default, is a lifetime. What a window means for the sum over a lifetime: docs/budgets.md.
    timeout : float
        Seconds to wait for a locked database before `LedgerError`.

    Examples
    --------
    >>> ledger = Ledger("sqlite://", budget=0.02)
    >>> ledger.charge("ana", 0.015, label="cafes nearby")
    0.005
    >>> ledger.charge("ana", 0.015)
    Traceback (most recent call last):
        ...
    geoind.errors.BudgetExceededError: the privacy budget of 'ana' is exceeded: ...
    """

    def __init__(self, url: str, *, budget: float, window: timedelta | None = None, timeout: float = 10.0) -> None:
        self._url = url
        self.budget = as_positive(budget, "budget")
        self._budget_units = _units(budget, "budget")
        if window is not None and not (isinstance(window, timedelta) and window > timedelta(0)):
            raise InvalidInputError(f"window must be a positive timedelta or None, got {window!r}")
        self.window = window
        self.timeout = as_positive(timeout, "timeout")
        self._databases = {os.getpid(): Database.open(url, self.timeout)}
        # A ledger that nobody closed takes its connections with it.
        weakref.finalize(self, _close_own, self._databases)
        try:
            self._database.create_tables()
            self._refuse_pruned_window()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"Ledger({self._database.engine.url!r}, budget={self.budget!r}, window={self.window!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process opens its own connections.
        self._refuse_memory(self._database)
        return _reopen, (self._url, self.budget, self.window, self.timeout)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this process's connections; the next call would open new ones."""
        _close_own(self._databases)

    def charge(
        self, person: str, epsilon: float, *, label: str = "", reports: int = 1, once: str | None = None
    ) -> float:
        """Charge a person and return what remains.

        If it is too much, `BudgetExceededError` is raised and nothing is charged.

        Parameters
        ----------
        person : str
            Whose budget; a pseudonym serves as well as a name.
        epsilon : float
            Cost of one report, per metre.
        label : str
            What for; kept in the history. Never a location.
        reports : int
            Number of reports to pay for at once.
        once : str, optional
            A token for something that costs only the first time, such as the same report again: while the
            ledger knows the token for this person, the charge is free.
        """
        counts = {person: as_count(reports, "reports")}
        return self._charge(counts, epsilon, label, once)[person] / UNITS

    def charge_reports(self, persons: Sequence[str], epsilon: float, *, label: str = "") -> None:
        """Charge one report of epsilon for each name in the list: all of them, or none and an error.

        Examples
        --------
        >>> ledger = Ledger("sqlite://", budget=0.02)
        >>> ledger.charge_reports(["ana", "ben", "ana"], 0.01)
        >>> ledger.remaining("ana"), ledger.remaining("ben")
        (0.0, 0.01)
        """
        self.charge_counts(Counter(persons), epsilon, label=label)

    def charge_counts(self, reports: Mapping[str, int], epsilon: float, *, label: str = "") -> None:
        """Charge each person for their number of reports of epsilon each: all of them, or none and an error.

        Examples
        --------
        >>> ledger = Ledger("sqlite://", budget=0.02)
        >>> ledger.charge_counts({"ana": 2, "ben": 1}, 0.01)
        >>> ledger.spent("ana")
        0.02
        """
        counts = {person: as_count(count, "reports") for person, count in reports.items()}
        self._charge(counts, epsilon, label, None)

    def remaining(self, person: str) -> float:
        """Return the epsilon that a person may still spend now, per metre."""
        return max(0, self._budget_units - self._spent_now(person)) / UNITS

    def spent(self, person: str) -> float:
        """Return the epsilon that counts against the budget now: that of the window, or of the lifetime."""
        return self._spent_now(person) / UNITS

    def lifetime(self, person: str) -> float:
        """Return all epsilon ever charged, whatever the window: the bound on what all reports together tell."""
        with self._database.transaction(writes=False) as connection:
            return self._lifetime(connection, person) / UNITS

    def history(self, person: str) -> list[Charge]:
        """Return a person's charges, oldest first, as far back as they have not been pruned.

        Examples
        --------
        >>> ledger = Ledger("sqlite://", budget=1)
        >>> ledger.charge("ana", 0.25, label="weather")
        0.75
        >>> [(entry.epsilon, entry.reports, entry.label) for entry in ledger.history("ana")]
        [(0.25, 1, 'weather')]
        """
        query = "SELECT at, units, reports, label FROM geoind_charge WHERE person = :person ORDER BY number"
        with self._database.transaction(writes=False) as connection:
            rows = self._database.ask(connection, query, person=_name(person))
        return [Charge(_moment(at), units / UNITS, count, label) for at, units, count, label in rows]

    def forget(self, person: str) -> int:
        """Delete everything about a person and return the number of charges that were deleted.

        The budget is forgotten too: the same name starts again with a full one, while the reports that were
        sent stay where they were sent. Forget people who leave, never at the request of an app that ran out.
        What stays outside the ledger's reach, such as backups: docs/budgets.md.
        """
        database = self._database
        values = {"person": _name(person)}
        with database.transaction(writes=True) as connection:
            database.ask(connection, "SELECT 1 FROM geoind_person WHERE person IN (:person){lock}", **values)
            count = database.tell(connection, "DELETE FROM geoind_charge WHERE person = :person", values)
            database.tell(connection, "DELETE FROM geoind_once WHERE person = :person", values)
            database.tell(connection, "DELETE FROM geoind_person WHERE person = :person", values)
        database.erase()
        return count

    def prune(self, *, keep: timedelta | None = None) -> int:
        """Delete charges that are older than `keep`, by default the window, and return how many.

        Nothing that counts is lost: a window's charges must be kept, and lifetime sums are kept apart.
        """
        keep = self.window if keep is None else keep
        if keep is None:
            raise InvalidInputError("keep must be given for a lifetime budget: how much history to keep")
        if not isinstance(keep, timedelta) or keep < (self.window or timedelta(0)):
            raise InvalidInputError(f"keep must be a timedelta of at least the window, got {keep!r}")
        database = self._database
        with database.transaction(writes=True) as connection:
            [(before,)] = database.ask(connection, "SELECT {clock} - :keep", keep=_microseconds(keep))
            database.tell(connection, "INSERT INTO geoind_pruned (before) VALUES (:before)", {"before": before})
            query = "DELETE FROM geoind_pruned WHERE before < :before"
            database.tell(connection, query, {"before": before})
            return database.tell(connection, "DELETE FROM geoind_charge WHERE at < :before", {"before": before})

    @property
    def _database(self) -> Database:
        # One set of connections per process: a forked worker must not touch its parent's, not even to close
        # them, so they stay in the table, unused.
        process = os.getpid()
        if process not in self._databases:
            opened = Database.open(self._url, self.timeout)
            self._refuse_memory(opened)
            self._databases[process] = opened
        return self._databases[process]

    def _refuse_memory(self, database: Database) -> None:
        if database.in_memory:
            raise LedgerError("a ledger in memory ends with its connection and its process: give it a file")

    def _charge(self, counts: Mapping[str, int], epsilon: float, label: str, once: str | None) -> dict[str, int]:
        """Charge every person or none, and return the units that remain for each."""
        unit = _units(epsilon, "epsilon")
        persons = sorted(_name(person) for person in counts)
        database = self._database
        remaining: dict[str, int] = {}
        with database.transaction(writes=True) as connection:
            # All names first, then all locks, each in order: two batches never wait for each other in a ring.
            for some in batches(persons if len(persons) > 1 else []):
                self._enter(connection, some)
            for some in batches(persons):
                spent = self._lock(connection, some)
                remaining |= {person: self._budget_units - spent[person] for person in some}
                if once is not None and self._known(connection, some[0], once):
                    continue
                for person in some:
                    cost = unit * counts[person]
                    if cost > remaining[person] + TOLERANCE:
                        raise BudgetExceededError(person, cost / UNITS, max(0, remaining[person]) / UNITS)
                    remaining[person] -= cost
                self._write(connection, some, counts, unit, label)
        return {person: max(0, units) for person, units in remaining.items()}

    def _enter(self, connection: "Connection", persons: Sequence[str]) -> None:
        query = "INSERT INTO geoind_person (person, lifetime) VALUES (:person, 0) ON CONFLICT DO NOTHING"
        self._database.tell(connection, query, [{"person": person} for person in persons])

    def _lock(self, connection: "Connection", persons: Sequence[str]) -> dict[str, int]:
        """Return what each person has spent, which nobody else can change before this transaction ends."""
        query = "SELECT person, lifetime FROM geoind_person WHERE person IN :persons{lock}"
        spent: dict[str, int] = {}
        while missing := [person for person in persons if person not in spent]:
            rows = self._database.ask(connection, query, persons=missing)
            spent.update((person, lifetime) for person, lifetime in rows)
            if len(rows) < len(missing):  # a single new name, or one that was forgotten between the two steps
                self._enter(connection, missing)
        return spent if self.window is None else self._spent_in_window(connection, persons)

    def _write(
        self, connection: "Connection", persons: Sequence[str], counts: Mapping[str, int], unit: int, label: str
    ) -> None:
        costs = [{"person": person, "units": unit * counts[person]} for person in persons]
        charges = [
            {**cost, "reports": counts[person], "label": label}
            for person, cost in zip(persons, costs, strict=True)
        ]
        query = (
            "INSERT INTO geoind_charge (person, at, units, reports, label)"
            " VALUES (:person, {clock}, :units, :reports, :label)"
        )
        self._database.tell(connection, query, charges)
        query = "UPDATE geoind_person SET lifetime = lifetime + :units WHERE person = :person"
        self._database.tell(connection, query, costs)

    def _known(self, connection: "Connection", person: str, once: str) -> bool:
        """Return whether the token was there already, and leave it there."""
        query = "INSERT INTO geoind_once (person, token) VALUES (:person, :token) ON CONFLICT DO NOTHING"
        return not self._database.tell(connection, query, {"person": person, "token": once})

    def _spent_in_window(self, connection: "Connection", persons: Sequence[str]) -> dict[str, int]:
        query = (
            "SELECT person, SUM(units) FROM geoind_charge"
            " WHERE person IN :persons AND at > {clock} - :window GROUP BY person"
        )
        rows = self._database.ask(
            connection, query, persons=list(persons), window=_microseconds(self.window or timedelta(0))
        )
        # PostgreSQL sums integers to a Decimal.
        return dict.fromkeys(persons, 0) | {person: int(units) for person, units in rows}

    def _spent_now(self, person: str) -> int:
        with self._database.transaction(writes=False) as connection:
            if self.window is not None:
                return self._spent_in_window(connection, [_name(person)])[person]
            return self._lifetime(connection, person)

    def _lifetime(self, connection: "Connection", person: str) -> int:
        query = "SELECT lifetime FROM geoind_person WHERE person = :person"
        rows = self._database.ask(connection, query, person=_name(person))
        return int(rows[0][0]) if rows else 0

    def _refuse_pruned_window(self) -> None:
        if self.window is None:
            return
        query = "SELECT COUNT(*) FROM geoind_pruned WHERE before > {clock} - :window"
        with self._database.transaction(writes=False) as connection:
            rows = self._database.ask(connection, query, window=_microseconds(self.window))
        if rows[0][0]:
            raise InvalidInputError("window reaches back to charges that were pruned: it would count too little")


def _reopen(url: str, budget: float, window: timedelta | None, timeout: float) -> Ledger:
    return Ledger(url, budget=budget, window=window, timeout=timeout)


def _close_own(databases: dict[int, Database]) -> None:
    """Close this process's connections; those that a fork inherited are its parent's."""
    database = databases.pop(os.getpid(), None)
    if database is not None:
        database.engine.dispose()


def _units(epsilon: float, name: str) -> int:
    """Return epsilon in units, rounded up; the shortest decimal that reads as this number is what was meant."""
    number = as_positive(epsilon, name)
    if number > LARGEST:
        raise InvalidInputError(f"{name} must be at most {LARGEST:g} per metre, got {epsilon!r}")
    return int((Decimal(repr(number)) * UNITS).to_integral_value(ROUND_CEILING))


def _name(person: str) -> str:
    if not isinstance(person, str) or not person:
        raise InvalidInputError(f"person must be a name that is not empty, got {type(person).__name__}")
    if not person.isprintable():
        raise InvalidInputError("person must be a name of printable characters")
    return person


def _microseconds(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def _moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds)
