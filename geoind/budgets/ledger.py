"""Each person's privacy budget, in a real database.

A budget is by default a sum of epsilons, per metre: n reports of epsilon cost n * epsilon, wherever they were made
(sequential composition). Epsilon is kept in whole units of 1e-15 per metre, rounded up, so that charges add up
exactly in any order; a budget is kept to a billionth of itself, so that `budget=10 * epsilon` pays for ten reports
although neither number is round. A `Promise` as budget counts by the accountant instead, up to a delta. A trusted
curator's releases cost a level per person and no epsilon per metre: their budget is a `PersonLevel`.
"""

import math
import os
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from geoind.accounting.promise import PersonLevel, Promise
from geoind.arrays import as_count, as_positive
from geoind.budgets.limits import limit_of
from geoind.budgets.persons import as_person
from geoind.budgets.release import UNITS, Cost, Release, release_of
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
        When, by the database's clock, in UTC.
    epsilon : float
        What was charged in total, per metre; infinite for Gaussian noise; of a `PersonLevel` the level.
    reports : int
        For how many reports.
    label : str
        What for, in the caller's words.
    mechanism : str
        What drew them, with epsilon or sigma: "SphericalLaplace(0.01)"; "any(0.01)" where only epsilon is known.
    """

    at: datetime
    epsilon: float
    reports: int
    label: str
    mechanism: str


class Ledger:
    """Who has spent how much epsilon: charged before a report is published, refused when it is too much.

    A charge is committed to the database before the method returns, so a report is never published unpaid; what
    was charged stays charged even if the report is never sent. Any number of processes and machines may
    charge at the same time.

    Parameters
    ----------
    url : str
        `sqlite:///budgets.db` for a file (one machine), `postgresql://...` for production, or `sqlite://`
        for a ledger in memory that forgets: for trials only.
    budget : float, Promise or PersonLevel
        Epsilon that each person may spend, per metre; or the level within a radius, up to delta, that all of a
        person's reports may have together; or the level per person of all of a curator's releases.
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

    Up to a small delta, many reports tell less than their sum:

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
        # A ledger that nobody closed takes its connections with it.
        weakref.finalize(self, _close_own, self._databases)
        try:
            self._database.prepare(self._window)
        except BaseException:
            self.close()
            raise

    @property
    def budget(self) -> float | Promise | PersonLevel:
        """What each person may spend."""
        return self._limit.budget

    @property
    def in_memory(self) -> bool:
        """Whether it forgets everything when the process ends: for trials only."""
        return self._database.in_memory

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold the budgets, which nobody may write over; none for a server, or in memory."""
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
        """Close this process's connections; the next call would open new ones."""
        _close_own(self._databases)

    def charge(
        self, person: Person, cost: Cost, *, label: str = "", reports: int = 1, once: str | None = None
    ) -> float:
        """Charge a person and return what remains.

        If it is too much, `BudgetExceededError` is raised and nothing is charged.

        Parameters
        ----------
        person : str or int
            Whose budget; a pseudonym serves as well as a name.
        cost : float, Mechanism or PersonLevel
            What one report costs: epsilon per metre, or the mechanism that will draw it. Of an epsilon, a
            `Promise` counts the worst mechanism that keeps it. What a release of a curator costs: its level.
        label : str
            What for; kept in the history. Never a location.
        reports : int
            Number of reports to pay for at once.
        once : str, optional
            A token for something that costs only the first time, such as the same report again: while the
            ledger knows the token for this person, as many reports of the same cost are free.
        """
        name = as_person(person)
        [counted] = self._charge({name: reports}, cost, label, None if once is None else {name: once}).values()
        return self._remaining(counted)

    def charge_reports(self, persons: Iterable[Person], cost: Cost, *, label: str = "") -> None:
        """Charge one report for each name in the list: all of them, or none and an error.

        Examples
        --------
        >>> ledger = Ledger("sqlite://", budget=0.02)
        >>> ledger.charge_reports(["ana", "ben", "ana"], 0.01)
        >>> ledger.remaining("ana"), ledger.remaining("ben")
        (0.0, 0.01)
        """
        self.charge_counts(Counter(map(as_person, persons)), cost, label=label)

    def charge_counts(
        self, reports: ReportCounts, cost: Cost, *, label: str = "", once: Mapping[str, str] | None = None
    ) -> None:
        """Charge each person for their number of reports: all of them, or none and an error.

        Parameters
        ----------
        reports : mapping
            From a person to a number of reports.
        cost : float, Mechanism or PersonLevel
            What one report costs.
        label : str
            What for; kept in the history. Never a location.
        once : mapping, optional
            A token per person, as in `charge`: the persons whose token the ledger knows for as many reports of
            this cost pay nothing. Charges and tokens are written in one transaction.

        Examples
        --------
        >>> ledger = Ledger("sqlite://", budget=0.02)
        >>> ledger.charge_counts({"ana": 2, "ben": 1}, 0.01)
        >>> ledger.spent("ana")
        0.02
        """
        self._charge(reports, cost, label, once)

    def charge_all(self, costs: Costs, *, label: str = "", once: Mapping[str, str] | None = None) -> None:
        """Charge each person for reports of several costs: all persons for all of them, or none and an error.

        Parameters
        ----------
        costs : mapping
            From a person to how many answers of each epsilon, per metre, a session gave.
        label : str
            What for; kept in the history. Never a location.
        once : mapping, optional
            A token per person, as in `charge_counts`.

        Examples
        --------
        >>> ledger = Ledger("sqlite://", budget=0.1)
        >>> ledger.charge_all({"ana": {0.01: 2, 0.02: 1}, "ben": {0.01: 1}})
        >>> ledger.spent("ana"), ledger.spent("ben")
        (0.04, 0.01)
        """
        releases: dict[str, dict[Release, int]] = {}
        for person, counts in costs.items():
            of_person = releases.setdefault(as_person(person), {})
            for cost, count in counts.items():
                release = release_of(cost)
                of_person[release] = of_person.get(release, 0) + as_count(count, "reports")
        self._charge_releases(releases, label, once)

    def remaining(self, person: Person) -> float:
        """Return what a person may still spend now: epsilon per metre, or the level left of a `Promise`."""
        return self._remaining(self._counted(person, self._window))

    def spent(self, person: Person) -> float:
        """Return what counts against the budget now, of the window or of the lifetime: epsilon, or a level."""
        return float(self._limit.spent(self._counted(person, self._window)))

    def lifetime(self, person: Person) -> float:
        """Return what all reports together tell, whatever the window: epsilon per metre, or a level."""
        return float(self._limit.spent(self._counted(person, None)))

    def history(self, person: Person) -> list[Charge]:
        """Return a person's charges, oldest first, as far back as they have not been pruned.

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
            Charge(_moment(at), reports * release.parameter / UNITS, reports, label, str(release))
            if not release.is_gaussian
            else Charge(_moment(at), math.inf, reports, label, str(release))
            for at, release, reports, label in rows
        ]

    def forget(self, person: Person) -> int:
        """Delete everything about a person and return the number of charges that were deleted.

        The budget is forgotten too: the same name starts again with a full one, while the reports that were
        sent stay where they were sent. Forget people who leave, never at the request of an app that ran out.
        What stays outside the ledger's reach, such as backups: docs/budgets.md.
        """
        with self._database.transaction(writes=True) as connection:
            count = self._database.forget(connection, as_person(person))
        self._database.erase()
        return count

    @contextmanager
    def locked(self, person: Person) -> "Iterator[Account]":
        """Open one transaction that holds a person's lock, for what a session does in one step.

        The end of the block commits. An error inside the block undoes everything; a commit that fails is a
        `LedgerError`, and what was computed inside the block must not be published.

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
        """Delete charges that are older than `keep` and return how many.

        Nothing that counts is lost: lifetime sums are kept apart, and what any ledger of this database counts in
        its window is kept. Without `keep` that is the longest window with which the database was ever opened.
        """
        if keep is not None and not (isinstance(keep, timedelta) and keep >= timedelta(0)):
            raise InvalidInputError(f"keep must be a timedelta that is not negative, or None, got {keep!r}")
        with self._database.transaction(writes=True) as connection:
            return self._database.prune(connection, None if keep is None else _microseconds(keep))

    @property
    def _database(self) -> "Database":
        # One set of connections per process: a forked worker must not touch its parent's, not even to close
        # them, so they stay in the table, unused.
        process = os.getpid()
        if process not in self._databases:
            opened = _open(self._url, self.timeout)
            self._refuse_memory(opened)
            self._databases.setdefault(process, opened)
        return self._databases[process]

    def _refuse_memory(self, database: "Database") -> None:
        if database.in_memory:
            raise LedgerError("a ledger in memory ends with its connection and its process: give it a file")

    def _charge(
        self, reports: ReportCounts, cost: Cost, label: str, once: Mapping[str, str] | None
    ) -> dict[str, dict[Release, int]]:
        """Charge every person or none, and return what each has reported."""
        release = release_of(cost)
        self._limit.check(release)
        counts: Counter[str] = Counter()
        for person, count in reports.items():
            counts[as_person(person)] += as_count(count, "reports")
        return self._charge_releases({name: {release: count} for name, count in counts.items()}, label, once)

    def _charge_releases(
        self, reports: Mapping[str, Mapping[Release, int]], label: str, once: Mapping[str, str] | None
    ) -> dict[str, dict[Release, int]]:
        """Charge every person or none, except those whose token is known, and return what each has reported."""
        for release in {release for counts in reports.values() for release in counts}:
            self._limit.check(release)
        names = sorted(reports)
        if once is not None and (missing := [name for name in names if name not in once]):
            raise InvalidInputError(f"once must have a token for every person, {missing[0]!r} has none")
        counted: dict[str, dict[Release, int]] = {}
        database = self._database
        with database.transaction(writes=True) as connection:
            # All names first, then all locks, each in order: two batches never wait for each other in a ring.
            for some in _batches(names if len(names) > 1 else []):
                database.enter(connection, some)
            for some in _batches(names):
                database.lock(connection, some)
                counted |= database.counted(connection, some, self._window)
                due = {name: reports[name] for name in some}
                if once is not None:
                    known = database.paid(connection, {name: once[name] for name in some})
                    due = {name: counts for name, counts in due.items() if not counts.items() <= known[name]}
                    database.remember(connection, due, once)
                for name, counts in due.items():
                    self._add(name, counted[name], counts)
                database.write(connection, due, label)
        return counted

    def _add(self, name: str, reports: dict[Release, int], wanted: Mapping[Release, int]) -> None:
        """Add to what a person has reported, all of it, or refuse."""
        more = reports | {release: reports.get(release, 0) + count for release, count in wanted.items()}
        if not self._limit.allows(more):
            before, after = self._limit.spent(reports), self._limit.spent(more)
            requested = float(after - before) if before < math.inf else math.inf
            raise BudgetExceededError(name, requested, self._remaining(reports), self._limit.measure)
        reports.update(more)

    def _counted(self, person: Person, window: int | None) -> dict[Release, int]:
        name = as_person(person)
        with self._database.transaction(writes=False) as connection:
            return self._database.counted(connection, [name], window)[name]

    def _remaining(self, reports: Mapping[Release, int]) -> float:
        return max(0.0, float(self._limit.total - self._limit.spent(reports)))


class Account:
    """One person's budget and session, locked by `Ledger.locked`."""

    def __init__(self, ledger: Ledger, database: "Database", connection: "Connection", person: str) -> None:
        self._ledger, self._database, self._connection, self._person = ledger, database, connection, person
        self._counted: dict[Release, int] | None = None

    def reserve(self, costs: Iterable[float]) -> None:
        """Refuse unless the budget allows charges of all these epsilons; nothing is written.

        Parameters
        ----------
        costs : iterable of float
            The most that will be charged, one epsilon per charge. Any part of it may be charged: what allows all
            of them allows each part.
        """
        wanted = Counter(map(release_of, costs))
        for release in wanted:
            self._ledger._limit.check(release)
        self._ledger._add(self._person, dict(self._reports()), wanted)

    def charge(self, cost: float, *, label: str) -> None:
        """Charge an epsilon, or refuse."""
        release = release_of(cost)
        self._ledger._limit.check(release)
        self._ledger._add(self._person, self._reports(), {release: 1})
        self._database.write(self._connection, {self._person: {release: 1}}, label)

    def session(self, tag: str) -> str | None:
        """Return the newest state of the person's session, or None; the tag names the session's key."""
        return self._database.session(self._connection, self._person, tag)

    def save_session(self, tag: str, state: str) -> None:
        """Save the newest state of the person's session; the tag names the session's key."""
        self._database.save_session(self._connection, self._person, tag, state)

    def _reports(self) -> dict[Release, int]:
        """Return what counts against the budget, read once."""
        if self._counted is None:
            counted = self._database.counted(self._connection, [self._person], self._ledger._window)
            self._counted = counted[self._person]
        return self._counted


def _reopen(url: str, budget: float | Promise | PersonLevel, window: timedelta | None, timeout: float) -> Ledger:
    return Ledger(url, budget=budget, window=window, timeout=timeout)


def _close_own(databases: "dict[int, Database]") -> None:
    """Close this process's connections; those that a fork inherited are its parent's."""
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
