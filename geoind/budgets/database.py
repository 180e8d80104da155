"""What a ledger reads and writes: the statements, the same for SQLite and PostgreSQL."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import sqlalchemy as sql
from sqlalchemy import ColumnElement, Connection, Engine

from geoind.budgets.engines import keep_private, open_engine, sqlite_file, sqlite_files
from geoind.budgets.release import Release
from geoind.budgets.schema import (
    charges,
    insert,
    now,
    persons,
    pruned,
    sessions,
    take_turns,
    tokens,
    totals,
    update,
    windows,
)
from geoind.errors import InvalidInputError, LedgerError

__all__ = ["Database"]

Reports: TypeAlias = Mapping[str, Mapping[Release, int]]
"""How many reports of what each person makes."""

SQLITE_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
POSTGRES_LOCKED = "55P03"

# Statements that every charge uses are built once: building one takes longer than running it.
_NAMES: sql.BindParameter[str] = sql.bindparam("names", expanding=True)
_LOCK = (
    sql.select(persons.c.person).where(persons.c.person.in_(_NAMES)).order_by(persons.c.person).with_for_update()
)
_WHAT = (charges.c.person, charges.c.kind, charges.c.parameter)
_IN_A_LIFETIME = sql.select(totals).where(totals.c.person.in_(_NAMES))
_IN_A_WINDOW = (
    sql.select(*_WHAT, sql.func.sum(charges.c.reports))
    .where(charges.c.person.in_(_NAMES), charges.c.at > now() - sql.bindparam("window"))
    .group_by(*_WHAT)
)
_WRITE = sql.insert(charges).values(at=now())
_TOKENS: sql.BindParameter[str] = sql.bindparam("tokens", expanding=True)
_PAID = sql.select(tokens).where(tokens.c.person.in_(_NAMES), tokens.c.token.in_(_TOKENS))
_SESSION = sql.select(sessions.c.state).where(
    sessions.c.person == sql.bindparam("name"), sessions.c.tag == sql.bindparam("of")
)


@lru_cache
def _enter(dialect: str) -> sql.Insert:
    return insert(dialect, persons).on_conflict_do_nothing()


@lru_cache
def _add_up(dialect: str) -> sql.Insert:
    add = insert(dialect, totals)
    more = {"reports": totals.c.reports + add.excluded.reports}
    return add.on_conflict_do_update(index_elements=list(totals.primary_key), set_=more)


@lru_cache
def _remember(dialect: str) -> sql.Insert:
    return insert(dialect, tokens).on_conflict_do_nothing()


@lru_cache
def _save(dialect: str) -> sql.Insert:
    save = insert(dialect, sessions)
    return save.on_conflict_do_update(index_elements=["person", "tag"], set_={"state": save.excluded.state})


@dataclass(frozen=True)
class Database:
    """One process's connections to the ledger's database."""

    engine: Engine
    timeout: float

    @classmethod
    def open(cls, url: str, timeout: float) -> "Database":
        """Return the database at a URL; nothing is read or written yet."""
        return cls(open_engine(url, timeout), timeout)

    @property
    def in_memory(self) -> bool:
        """Whether this is a SQLite database without a file."""
        return self._is_sqlite and sqlite_file(self.engine.url) is None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold it; none for a server, or for a database in memory."""
        return sqlite_files(self.engine.url) if self._is_sqlite else ()

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Connection]:
        """Give a connection whose work is committed at the end, or undone if anything is raised."""
        try:
            with self.engine.connect() as plain:
                connection = plain.execution_options(geoind_writes=writes)
                with connection.begin():
                    yield connection
        except sql.exc.SQLAlchemyError as error:
            raise LedgerError(self._explain(error)) from error

    def prepare(self, window: int | None) -> None:
        """Create the tables, and enter the window, in microseconds, that a ledger will count with."""
        with self.transaction(writes=True) as connection:
            take_turns(connection)
            if update(connection) and self._is_sqlite:
                keep_private(self.engine.url)
            if window is None:
                return
            reaches = sql.select(sql.func.count()).where(pruned.c.before > now() - window)
            if connection.execute(reaches).scalar_one():
                raise InvalidInputError(
                    "window reaches back to charges that were pruned: it would count too little"
                )
            if (longest := self._longest_window(connection)) is None:
                connection.execute(sql.insert(windows).values(longest=window))
            elif longest < window:
                connection.execute(sql.update(windows).values(longest=window))

    def enter(self, connection: Connection, names: Sequence[str]) -> None:
        """Make rows to lock; SQLite needs none because its writers take turns."""
        if not self._is_sqlite:
            connection.execute(_enter(connection.dialect.name), [{"person": name} for name in names])

    def lock(self, connection: Connection, names: Sequence[str]) -> None:
        """Let nobody else charge these persons before the transaction ends."""
        missing = set() if self._is_sqlite else set(names)
        while missing:
            missing -= set(connection.execute(_LOCK, {"names": sorted(missing)}).scalars())
            if missing:  # a single new name, or one that was forgotten between the two steps
                self.enter(connection, sorted(missing))

    def counted(
        self, connection: Connection, names: Sequence[str], window: int | None
    ) -> dict[str, dict[Release, int]]:
        """Return how many reports of what each person has made, in the last microseconds or in a lifetime."""
        counts: dict[str, dict[Release, int]] = {name: {} for name in names}
        query, values = (_IN_A_LIFETIME, {}) if window is None else (_IN_A_WINDOW, {"window": window})
        for person, kind, parameter, reports in connection.execute(query, {"names": list(names), **values}):
            # PostgreSQL sums integers to a Decimal.
            counts[person][Release(kind, parameter)] = int(reports)
        return counts

    def write(self, connection: Connection, reports: Reports, label: str) -> None:
        """Add charges to the history and to the total of each person."""
        if rows := _rows(reports):
            connection.execute(_WRITE, [{**row, "label": label} for row in rows])
            connection.execute(_add_up(connection.dialect.name), rows)

    def paid(self, connection: Connection, tokens: Mapping[str, str]) -> dict[str, set[tuple[Release, int]]]:
        """Return for which numbers of reports the token of each person is known."""
        found: dict[str, set[tuple[Release, int]]] = {name: set() for name in tokens}
        values = {"names": list(tokens), "tokens": list(set(tokens.values()))}
        for person, token, kind, parameter, reports in connection.execute(_PAID, values):
            if tokens[person] == token:
                found[person].add((Release(kind, parameter), int(reports)))
        return found

    def remember(self, connection: Connection, reports: Reports, tokens: Mapping[str, str]) -> None:
        """Write the tokens of persons who pay now."""
        if rows := [{**row, "token": tokens[row["person"]]} for row in _rows(reports)]:
            connection.execute(_remember(connection.dialect.name), rows)

    def history(self, connection: Connection, person: str) -> list[tuple[int, Release, int, str]]:
        """Return moment, release, reports and label of a person's charges, oldest first."""
        what = (charges.c.at, charges.c.kind, charges.c.parameter, charges.c.reports, charges.c.label)
        query = sql.select(*what).where(_of(charges, person)).order_by(charges.c.number)
        rows = connection.execute(query)
        return [(at, Release(kind, parameter), reports, label) for at, kind, parameter, reports, label in rows]

    def forget(self, connection: Connection, person: str) -> int:
        """Delete everything about a person and return the number of charges."""
        connection.execute(sql.select(persons).where(_of(persons, person)).with_for_update())
        count = connection.execute(sql.delete(charges).where(_of(charges, person))).rowcount
        for table in (totals, tokens, sessions, persons):
            connection.execute(sql.delete(table).where(_of(table, person)))
        return count

    def session(self, connection: Connection, person: str, tag: str) -> str | None:
        """Return the newest state of a person's session."""
        state: str | None = connection.execute(_SESSION, {"name": person, "of": tag}).scalar_one_or_none()
        return state

    def save_session(self, connection: Connection, person: str, tag: str, state: str) -> None:
        """Save the newest state of a person's session."""
        connection.execute(_save(connection.dialect.name), {"person": person, "tag": tag, "state": state})

    def prune(self, connection: Connection, keep: int | None) -> int:
        """Delete charges that are older than so many microseconds, or than any window, and return their number."""
        take_turns(connection)
        longest = self._longest_window(connection)
        keep = longest if keep is None else keep
        if keep is None:
            raise InvalidInputError("keep must be given for a lifetime budget: how much history to keep")
        if longest is not None and keep < longest:
            most = timedelta(microseconds=longest)
            raise InvalidInputError(f"keep must be at least the longest window of the database, {most}")
        before = connection.execute(sql.select(now() - keep)).scalar_one()
        connection.execute(sql.insert(pruned).values(before=before))
        connection.execute(sql.delete(pruned).where(pruned.c.before < before))
        return connection.execute(sql.delete(charges).where(charges.c.at < before)).rowcount

    def erase(self) -> None:
        """Rewrite SQLite's file without the remains of deleted rows, and empty its write-ahead log."""
        if not self._is_sqlite:
            return
        try:
            with closing(self.engine.raw_connection()) as connection:
                cursor = connection.cursor()
                # Deleted rows leave copies of their keys in the pages of an index; secure_delete misses those.
                cursor.execute("VACUUM")
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                [(busy, *_)] = cursor.fetchall()
        except sqlite3.Error as error:
            raise LedgerError(f"deleted, but the file could not be rewritten: {error}") from error
        if busy == 1:
            raise LedgerError("deleted, but a reader held on to the old file: call it again")

    @property
    def _is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    def _longest_window(self, connection: Connection) -> int | None:
        longest: int | None = connection.execute(sql.select(sql.func.max(windows.c.longest))).scalar_one()
        return longest

    def _explain(self, error: Exception) -> str:
        cause = getattr(error, "orig", None) or error
        reason = str(cause).partition("\n")[0]
        # The last byte of SQLite's code is the kind of error; PostgreSQL's is lock_not_available.
        sqlite_kind = (getattr(cause, "sqlite_errorcode", None) or 0) & 0xFF
        if sqlite_kind in SQLITE_LOCKED or getattr(cause, "sqlstate", None) == POSTGRES_LOCKED:
            reason = f"it stayed locked for {self.timeout:g} s"
        return f"the ledger's database did not confirm, and nothing is published: {reason}"


def _rows(reports: Reports) -> list[dict[str, Any]]:
    return [
        {"person": name, "kind": release.kind, "parameter": release.parameter, "reports": count}
        for name, counts in reports.items()
        for release, count in sorted(counts.items())
    ]


def _of(table: sql.Table, person: str) -> ColumnElement[bool]:
    return table.c.person == person
