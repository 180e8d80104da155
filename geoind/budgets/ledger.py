"""The privacy budget of each person, in a database.

A budget is by default a sum of epsilons per metre: n reports of epsilon cost n * epsilon (sequential composition).
Epsilon is stored in whole units of 1e-15 per metre, rounded up, so that charges add up exactly in any order. A
budget may be exceeded by a billionth of itself, so that `budget=10 * epsilon` pays for ten reports although
neither number is round. With a `Promise` as budget the accountant counts, up to a delta. The releases of a trusted
curator cost a level per person and no epsilon per metre: their budget is a `PersonLevel`.
"""

import math
import os
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from geoind.accounting.promise import PersonLevel, Promise
from geoind.arrays import as_count, as_positive
from geoind.budgets.costs import UNITS, Cost, CostLike, as_cost, limit_of
from geoind.budgets.persons import as_person
from geoind.errors import BudgetExceededError, InvalidInputError, LedgerError
from geoind.extras import require
from geoind.pipeline import Costs, ReportCounts

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from geoind.budgets.database import Database

__all__ = ["Account", "Charge", "Ledger"]

Person: TypeAlias = str | int

BATCH = 500
"""Persons per statement; SQLite and PostgreSQL limit how many values one statement may have."""


@dataclass(frozen=True)
class Charge:
    """One entry of a person's history.

    Attributes
    ----------
    at : datetime
        Time of the database's clock, in UTC.
    epsilon : float
        The total of the charge, per metre; infinite for Gaussian noise; the level of a `PersonLevel`.
    reports : int
        Number of reports.
    label : str
        The purpose that the caller gave.
    mechanism : str
        The mechanism with its epsilon or sigma: "SphericalLaplace(0.01)"; "any(0.01)" where only epsilon is known.
    """

    at: datetime
    epsilon: float
    reports: int
    label: str
    mechanism: str


class Ledger:
    """The privacy budgets of persons: a report is charged before it is published, and refused beyond the budget.

    A charge is committed to the database before the method returns, so no report is published without payment; a
    charge stays even if the report is never sent. Any number of processes and machines may charge at the same
    time.

    Parameters
    ----------
    url : str
        `sqlite:///budgets.db` for a file (one machine), `postgresql://...` for production, or `sqlite://`
        for a ledger in memory, which is lost with the process: for tests only.
    budget : float, Promise or PersonLevel
        Epsilon that each person may spend, per metre; or the level within a radius, up to delta, that all of a
        person's reports may have together; or the level per person of all of a curator's releases.
    window : timedelta, optional
        A rolling window: the charges of any period of this length stay within the budget. None, the default, is
        a lifetime. docs/budgets.md explains what a window means for the sum over a lifetime.
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

    Up to a small delta, the level of many reports is less than their sum:

    >>> from geoind import SphericalLaplace
    >>> from geoind.accounting import Promise
    >>> promise = Promise(level=21.9, radius=200, delta=1e-5)
    >>> ledger = Ledger("sqlite://", budget=promise)
    >>> noise = SphericalLaplace(math.log(4) / 200)
    >>> round(ledger.charge("ana", noise, reports=20), 2)    # their sum is 27.7
    0.09
    """

    def __init__(
        self,
        url: str,
        *,
        budget: float | Promise | PersonLevel,
        window: timedelta | None = None,
        timeout: float = 10.0,
    ) -> None:
        self._url = url
        self._limit = limit_of(budget)
        if window is not None and not (isinstance(window, timedelta) and window > timedelta(0)):
            raise InvalidInputError(f"window must be a positive timedelta or None, got {window!r}")
        self.window = window
        self._window = None if window is None else _microseconds(window)
        self.timeout = as_positive(timeout, "timeout")
        self._databases = {os.getpid(): _open(url, self.timeout)}
        # Connections of a ledger that was not closed are closed when it is collected.
        weakref.finalize(self, _close_own, self._databases)
        try:
            self._database.prepare(self._window)
        except BaseException:
            self.close()
            raise

    @property
    def budget(self) -> float | Promise | PersonLevel:
        """The budget of each person."""
        return self._limit.budget

    @property
    def in_memory(self) -> bool:
        """Whether the database is in memory and lost with the process: for tests only."""
        return self._database.in_memory

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the database, which must not be overwritten; none for a server, or in memory."""
        return self._database.files

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
        """Close this process's connections; a later call opens new ones."""
        _close_own(self._databases)

    def charge(
        self, person: Person, cost: CostLike, *, label: str = "", reports: int = 1, once: str | None = None
    ) -> float:
        """Charge a person and return the remaining budget.

        Raises `BudgetExceededError` and charges nothing if the budget does not suffice.

        Parameters
        ----------
        person : str or int
            Whose budget; a pseudonym is enough.
        cost : float, Mechanism or PersonLevel
            The cost of one report: epsilon per metre, or its mechanism; for a curator's release its level. Against
            a `Promise`, an epsilon counts as the worst mechanism that has it.
        label : str
            Purpose, stored in the history. Never a location.
        reports : int
            Number of reports to pay for at once.
        once : str, optional
            A token of reports that are paid once, such as a repeated report: as long as the ledger knows the token
            for this person, the same number of reports of the same cost is free.
        """
        name = as_person(person)
        tokens = None if once is None else {name: once}
        return self._remaining(self._charge({name: {as_cost(cost): reports}}, label, tokens)[name])

    def charge_counts(
        self, reports: ReportCounts, cost: CostLike, *, label: str = "", once: Mapping[str, str] | None = None
    ) -> None:
        """Charge each person for a number of reports: all of them, or raise and charge none.

        Parameters
        ----------
        reports : mapping
            Number of reports of each person.
        cost : float, Mechanism or PersonLevel
            The cost of one report.
        label : str
            Purpose, stored in the history. Never a location.
        once : mapping, optional
            A token per person, as in `charge`: persons whose token the ledger knows for as many reports of this
            cost are not charged. Charges and tokens are written in one transaction.

        Examples
        --------
        >>> ledger = Ledger("sqlite://", budget=0.02)
        >>> ledger.charge_counts({"ana": 2, "ben": 1}, 0.01)
        >>> ledger.spent("ana")
        0.02
        """
        of_kind = as_cost(cost)
        self._limit.check(of_kind)
        self._charge({person: {of_kind: count} for person, count in reports.items()}, label, once)

    def charge_all(
        self,
        costs: Costs,
        *,
        label: str = "",
        once: Mapping[str, str] | None = None,
        places: Mapping[str, tuple[CostLike, str]] | None = None,
    ) -> None:
        """Charge each person for reports of several costs: all of them, or raise and charge none.

        Parameters
        ----------
        costs : mapping
            For each person, the number of answers of each epsilon, per metre, of a session.
        label : str
            Purpose, stored in the history. Never a location.
        once : mapping, optional
            A token per person, as in `charge_counts`.
        places : mapping, optional
            The cost and the token of one more report of some of these persons, such as the centre of a private
            zone. It is charged if its token is new, in the same transaction.

        Examples
        --------
        >>> ledger = Ledger("sqlite://", budget=0.1)
        >>> ledger.charge_all({"ana": {0.01: 2, 0.02: 1}, "ben": {0.01: 1}})
        >>> ledger.spent("ana"), ledger.spent("ben")
        (0.04, 0.01)
        """
        as_costs = lru_cache(as_cost)
        reports = {}
        for person, counts in costs.items():
            of_person: Counter[Cost] = Counter()
            for epsilon, count in counts.items():
                of_person[as_costs(epsilon)] += as_count(count, "reports")
            reports[person] = of_person
        fixed = places or {}
        zones = {as_person(person): {as_cost(cost): 1} for person, (cost, _) in fixed.items()}
        tokens = {as_person(person): token for person, (_, token) in fixed.items()}
        self._charge(reports, label, once, (zones, tokens))

    def remaining(self, person: Person) -> float:
        """Return the budget that remains now: epsilon per metre, or a level."""
        return self._remaining(self._counted(person, self._window))

    def spent(self, person: Person) -> float:
        """Return what counts against the budget now, in the window or the lifetime: epsilon or a level."""
        return float(self._limit.spent(self._counted(person, self._window)))

    def lifetime(self, person: Person) -> float:
        """Return what all charges of a lifetime add up to, whatever the window: epsilon per metre, or a level."""
        return float(self._limit.spent(self._counted(person, None)))

    def history(self, person: Person) -> list[Charge]:
        """Return a person's charges that were not pruned, oldest first.

        Examples
        --------
        >>> ledger = Ledger("sqlite://", budget=1)
        >>> ledger.charge("ana", 0.25, label="weather")
        0.75
        >>> [(entry.epsilon, entry.reports, entry.label) for entry in ledger.history("ana")]
        [(0.25, 1, 'weather')]
        """
        with self._database.transaction(writes=False) as connection:
            rows = self._database.history(connection, as_person(person))
        return [
            Charge(
                at=_moment(at),
                epsilon=math.inf if cost.is_gaussian else reports * cost.parameter / UNITS,
                reports=reports,
                label=label,
                mechanism=str(cost),
            )
            for at, cost, reports, label in rows
        ]

    def forget(self, person: Person) -> int:
        """Delete everything about a person and return the number of deleted charges.

        The budget is deleted too: the same name starts again with a full one, while published reports stay
        published. Use it for persons who leave, never because a budget is exhausted. docs/budgets.md lists what
        remains elsewhere, such as backups.
        """
        with self._database.transaction(writes=True) as connection:
            count = self._database.forget(connection, as_person(person))
        self._database.erase()
        return count

    @contextmanager
    def locked(self, person: Person) -> "Iterator[Account]":
        """Open one transaction that locks a person, for one step of a session.

        The end of the block commits. An error inside the block undoes everything. A commit that fails raises
        `LedgerError`; results computed inside the block must not be published then.

        Examples
        --------
        >>> ledger = Ledger("sqlite://", budget=0.02)
        >>> with ledger.locked("ana") as account:
        ...     account.reserve([0.01, 0.01])    # the most that the step may cost
        ...     account.charge(0.01, label="fresh report")
        ...     account.save_session("tag of a key", "what was published")
        >>> ledger.spent("ana")
        0.01
        """
        name = as_person(person)
        database = self._database
        with database.transaction(writes=True) as connection:
            database.lock(connection, [name])
            yield Account(self, database, connection, name)

    def session(self, person: Person, tag: str) -> str | None:
        """Return the newest state of a person's session, or None; the tag names the session's key."""
        with self._database.transaction(writes=False) as connection:
            return self._database.session(connection, as_person(person), tag)

    def prune(self, *, keep: timedelta | None = None) -> int:
        """Delete charges that are older than `keep` and return their number.

        No budget changes: lifetime sums are stored separately, and charges within the window of any ledger of this
        database stay. The default of `keep` is the longest window with which the database was ever opened.
        """
        if keep is not None and not (isinstance(keep, timedelta) and keep >= timedelta(0)):
            raise InvalidInputError(f"keep must be a timedelta that is not negative, or None, got {keep!r}")
        with self._database.transaction(writes=True) as connection:
            return self._database.prune(connection, None if keep is None else _microseconds(keep))

    @property
    def _database(self) -> "Database":
        # One set of connections per process. A forked worker must not use its parent's connections, not even to
        # close them, so they stay in the dictionary.
        process = os.getpid()
        if process not in self._databases:
            opened = _open(self._url, self.timeout)
            self._refuse_memory(opened)
            self._databases.setdefault(process, opened)
        return self._databases[process]

    def _refuse_memory(self, database: "Database") -> None:
        if database.in_memory:
            raise LedgerError("a ledger in memory is lost with its connection and its process: give it a file")

    def _charge(
        self,
        wanted: Mapping[str, Mapping[Cost, int]] | Mapping[Person, Mapping[Cost, int]],
        label: str,
        once: Mapping[str, str] | None,
        further: tuple[Mapping[str, Mapping[Cost, int]], Mapping[str, str]] = ({}, {}),
    ) -> dict[str, dict[Cost, int]]:
        """Charge all persons whose token is not known, or none, and return the reports of each person.

        `further` has more reports of some of these persons, with a token of their own.
        """
        for cost in {cost for counts in (*wanted.values(), *further[0].values()) for cost in counts}:
            self._limit.check(cost)
        reports: dict[str, Counter[Cost]] = {}
        for person, counts in wanted.items():
            of_person = reports.setdefault(as_person(person), Counter())
            of_person.update({cost: as_count(count, "reports") for cost, count in counts.items()})
        names = sorted(reports)
        if once is not None and (missing := [name for name in names if name not in once]):
            raise InvalidInputError(f"once must have a token for every person, {missing[0]!r} has none")
        counted: dict[str, dict[Cost, int]] = {}
        database = self._database
        with database.transaction(writes=True) as connection:
            # All names first, then all locks, each in order, so that two batches cannot deadlock.
            for some in _batches(names if len(names) > 1 else []):
                database.enter(connection, some)
            for some in _batches(names):
                database.lock(connection, some)
                counted |= database.counted(connection, some, self._window)
                for asked, tokens in ((reports, once), further):
                    due = {name: asked[name] for name in some if name in asked}
                    if tokens is not None and due:
                        known = database.paid(connection, {name: tokens[name] for name in due})
                        due = {name: counts for name, counts in due.items() if not counts.items() <= known[name]}
                        database.remember(connection, due, tokens)
                    for name, counts in due.items():
                        self._add(name, counted[name], counts)
                    database.write(connection, due, label)
        return counted

    def _add(self, name: str, reports: dict[Cost, int], wanted: Mapping[Cost, int]) -> None:
        """Add reports to those of a person, or raise."""
        more = reports | {cost: reports.get(cost, 0) + count for cost, count in wanted.items()}
        if not self._limit.allows(more):
            before, after = self._limit.spent(reports), self._limit.spent(more)
            requested = float(after - before) if before < math.inf else math.inf
            raise BudgetExceededError(name, requested, self._remaining(reports), self._limit.measure)
        reports.update(more)

    def _counted(self, person: Person, window: int | None) -> dict[Cost, int]:
        name = as_person(person)
        with self._database.transaction(writes=False) as connection:
            return self._database.counted(connection, [name], window)[name]

    def _remaining(self, reports: Mapping[Cost, int]) -> float:
        return max(0.0, float(self._limit.total - self._limit.spent(reports)))


class Account:
    """One person's budget and session, locked by `Ledger.locked`."""

    def __init__(self, ledger: Ledger, database: "Database", connection: "Connection", person: str) -> None:
        self._ledger, self._database, self._connection, self._person = ledger, database, connection, person
        self._counted: dict[Cost, int] | None = None

    def reserve(self, costs: Iterable[float]) -> None:
        """Raise unless the budget allows charges of all these epsilons; nothing is written.

        Parameters
        ----------
        costs : iterable of float
            The largest charges of a step, one epsilon per charge. A budget that allows all of them allows each
            part.
        """
        wanted = Counter(map(as_cost, costs))
        for cost in wanted:
            self._ledger._limit.check(cost)
        self._ledger._add(self._person, dict(self._reports()), wanted)

    def charge(self, cost: float, *, label: str) -> None:
        """Charge an epsilon, or raise."""
        counts = {as_cost(cost): 1}
        self._ledger._limit.check(as_cost(cost))
        self._ledger._add(self._person, self._reports(), counts)
        self._database.write(self._connection, {self._person: counts}, label)

    def session(self, tag: str) -> str | None:
        """Return the newest state of the person's session, or None; the tag names the session's key."""
        return self._database.session(self._connection, self._person, tag)

    def save_session(self, tag: str, state: str) -> None:
        """Save the newest state of the person's session; the tag names the session's key."""
        self._database.save_session(self._connection, self._person, tag, state)

    def _reports(self) -> dict[Cost, int]:
        """Return the reports that count against the budget, read once."""
        if self._counted is None:
            counted = self._database.counted(self._connection, [self._person], self._ledger._window)
            self._counted = counted[self._person]
        return self._counted


def _reopen(url: str, budget: float | Promise | PersonLevel, window: timedelta | None, timeout: float) -> Ledger:
    return Ledger(url, budget=budget, window=window, timeout=timeout)


def _close_own(databases: "dict[int, Database]") -> None:
    """Close the connections of this process; those that a fork inherited belong to its parent."""
    database = databases.pop(os.getpid(), None)
    if database is not None:
        database.engine.dispose()


def _open(url: str, timeout: float) -> "Database":
    if str(url).startswith("postgresql"):
        require("a Ledger in PostgreSQL", "sqlalchemy", "psycopg")
    require("a Ledger", "sqlalchemy")
    from geoind.budgets.database import Database

    return Database.open(url, timeout)


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), BATCH):
        yield names[start : start + BATCH]


def _microseconds(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def _moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds)
