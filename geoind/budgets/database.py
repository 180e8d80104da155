"""The tables of a ledger's database and its statements, the same for SQLite and PostgreSQL.

Times are microseconds since 1970 of the *database's* clock, which all workers share. A report is stored as a kind
of noise and a whole number (`Cost`), without anything about a place.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import sqlalchemy as sql
from sqlalchemy import BigInteger, Column, ColumnElement, Connection, Engine, Index, Integer, MetaData, Table, Text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from geoind.budgets.costs import Cost
from geoind.budgets.engines import keep_private, open_engine, sqlite_file, sqlite_files
from geoind.errors import InvalidInputError, LedgerError

__all__ = ["VERSION", "Database", "create_tables", "metadata", "now"]

VERSION = 5

# PostgreSQL sorts names by their bytes, as Python does, so that rows are locked in one order everywhere.
Name = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

metadata = MetaData()

versions = Table("geoind_schema", metadata, Column("version", Integer, nullable=False))

persons = Table("geoind_person", metadata, Column("person", Name, primary_key=True))
"""Rows that PostgreSQL locks while a person is charged."""

totals = Table(
    "geoind_total",
    metadata,
    Column("person", Name, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("parameter", BigInteger, primary_key=True, autoincrement=False),
    Column("reports", BigInteger, nullable=False),
)
"""The reports of a lifetime; not pruned."""

charges = Table(
    "geoind_charge",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), sql.Identity(always=True), primary_key=True),
    Column("person", Name, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("parameter", BigInteger, nullable=False),
    Column("reports", BigInteger, nullable=False),
    Column("label", Text, nullable=False),
    Index("geoind_charge_window", "person", "at", "kind", "parameter", "reports"),
    Index("geoind_charge_at", "at"),
)
"""The history."""

tokens = Table(
    "geoind_once",
    metadata,
    Column("person", Name, primary_key=True),
    Column("token", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("parameter", BigInteger, primary_key=True, autoincrement=False),
    Column("reports", BigInteger, primary_key=True, autoincrement=False),
)
"""Reports that are paid once: the same token, kind and number of reports are free the next time."""

sessions = Table(
    "geoind_session",
    metadata,
    Column("person", Name, primary_key=True),
    Column("tag", Text, primary_key=True),
    Column("state", Text, nullable=False),
)
"""The newest state of the session of each person and key, from published data. The tag is derived from the key."""

pruned = Table("geoind_pruned", metadata, Column("before", BigInteger, nullable=False))
"""The time before which charges may be missing."""

windows = Table("geoind_window", metadata, Column("longest", BigInteger, nullable=False))
"""The longest window of any ledger of this database; pruning keeps its charges."""


class _Now(FunctionElement[int]):
    """The database's clock."""

    type = BigInteger()
    inherit_cache = True


def now() -> _Now:
    """Return the expression for the database's clock, in microseconds since 1970."""
    return _Now()


@compiles(_Now, "sqlite")
def _sqlite_clock(_element: _Now, _compiler: Any, **_: Any) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"


@compiles(_Now, "postgresql")
def _postgresql_clock(_element: _Now, _compiler: Any, **_: Any) -> str:
    return "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"


Reports: TypeAlias = Mapping[str, Mapping[Cost, int]]
"""For each person, the number of reports of each cost."""

SQLITE_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
POSTGRES_LOCKED = "55P03"

# Statements of every charge are built once: building one takes longer than running it.
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
    return _insert(dialect, persons).on_conflict_do_nothing()


@lru_cache
def _add_up(dialect: str) -> sql.Insert:
    add = _insert(dialect, totals)
    more = {"reports": totals.c.reports + add.excluded.reports}
    return add.on_conflict_do_update(index_elements=list(totals.primary_key), set_=more)


@lru_cache
def _remember(dialect: str) -> sql.Insert:
    return _insert(dialect, tokens).on_conflict_do_nothing()


@lru_cache
def _save(dialect: str) -> sql.Insert:
    save = _insert(dialect, sessions)
    return save.on_conflict_do_update(index_elements=["person", "tag"], set_={"state": save.excluded.state})


@dataclass(frozen=True)
class Database:
    """The connections of one process to the ledger's database."""

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
        """The files of a SQLite database; none for a server, or for a database in memory."""
        return sqlite_files(self.engine.url) if self._is_sqlite else ()

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Connection]:
        """Yield a connection; its work is committed at the end, or rolled back after an exception."""
        try:
            with self.engine.connect() as plain:
                connection = plain.execution_options(geoind_writes=writes)
                with connection.begin():
                    yield connection
        except sql.exc.SQLAlchemyError as error:
            raise LedgerError(self._explain(error)) from error

    def prepare(self, window: int | None) -> None:
        """Create the tables, and store the window of a ledger, in microseconds."""
        with self.transaction(writes=True) as connection:
            _lock_schema(connection)
            if create_tables(connection) and self._is_sqlite:
                keep_private(self.engine.url)
            if window is None:
                return
            reaches = sql.select(sql.func.count()).where(pruned.c.before > now() - window)
            if connection.execute(reaches).scalar_one():
                raise InvalidInputError("window includes charges that were pruned: it would count too little")
            if (longest := self._longest_window(connection)) is None:
                connection.execute(sql.insert(windows).values(longest=window))
            elif longest < window:
                connection.execute(sql.update(windows).values(longest=window))

    def enter(self, connection: Connection, names: Sequence[str]) -> None:
        """Insert rows to lock; SQLite needs none because it has one writer at a time."""
        if not self._is_sqlite:
            connection.execute(_enter(connection.dialect.name), [{"person": name} for name in names])

    def lock(self, connection: Connection, names: Sequence[str]) -> None:
        """Lock these persons until the transaction ends."""
        missing = set() if self._is_sqlite else set(names)
        while missing:
            missing -= set(connection.execute(_LOCK, {"names": sorted(missing)}).scalars())
            if missing:  # a single new name, or one that was deleted between the two steps
                self.enter(connection, sorted(missing))

    def counted(
        self, connection: Connection, names: Sequence[str], window: int | None
    ) -> dict[str, dict[Cost, int]]:
        """Return each person's number of reports of each cost, in a window of microseconds or in a lifetime."""
        counts: dict[str, dict[Cost, int]] = {name: {} for name in names}
        query, values = (_IN_A_LIFETIME, {}) if window is None else (_IN_A_WINDOW, {"window": window})
        for person, kind, parameter, reports in connection.execute(query, {"names": list(names), **values}):
            # PostgreSQL returns sums of integers as Decimal.
            counts[person][Cost(kind, parameter)] = int(reports)
        return counts

    def write(self, connection: Connection, reports: Reports, label: str) -> None:
        """Add charges to the history and to the total of each person."""
        if rows := _rows(reports):
            connection.execute(_WRITE, [{**row, "label": label} for row in rows])
            connection.execute(_add_up(connection.dialect.name), rows)

    def paid(self, connection: Connection, tokens: Mapping[str, str]) -> dict[str, set[tuple[Cost, int]]]:
        """Return the costs and numbers of reports that each person's token has paid for."""
        found: dict[str, set[tuple[Cost, int]]] = {name: set() for name in tokens}
        values = {"names": list(tokens), "tokens": list(set(tokens.values()))}
        for person, token, kind, parameter, reports in connection.execute(_PAID, values):
            if tokens[person] == token:
                found[person].add((Cost(kind, parameter), int(reports)))
        return found

    def remember(self, connection: Connection, reports: Reports, tokens: Mapping[str, str]) -> None:
        """Store the tokens of reports that are paid now."""
        if rows := [{**row, "token": tokens[row["person"]]} for row in _rows(reports)]:
            connection.execute(_remember(connection.dialect.name), rows)

    def history(self, connection: Connection, person: str) -> list[tuple[int, Cost, int, str]]:
        """Return time, cost, reports and label of a person's charges, oldest first."""
        what = (charges.c.at, charges.c.kind, charges.c.parameter, charges.c.reports, charges.c.label)
        query = sql.select(*what).where(_of(charges, person)).order_by(charges.c.number)
        rows = connection.execute(query)
        return [(at, Cost(kind, parameter), reports, label) for at, kind, parameter, reports, label in rows]

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
        """Delete charges older than `keep` microseconds, or than every window, and return their number."""
        _lock_schema(connection)
        longest = self._longest_window(connection)
        keep = longest if keep is None else keep
        if keep is None:
            raise InvalidInputError("keep must be given for a lifetime budget")
        if longest is not None and keep < longest:
            most = timedelta(microseconds=longest)
            raise InvalidInputError(f"keep must be at least the longest window of the database, {most}")
        before = connection.execute(sql.select(now() - keep)).scalar_one()
        connection.execute(sql.insert(pruned).values(before=before))
        connection.execute(sql.delete(pruned).where(pruned.c.before < before))
        return connection.execute(sql.delete(charges).where(charges.c.at < before)).rowcount

    def erase(self) -> None:
        """Rewrite SQLite's file without the bytes of deleted rows, and empty its write-ahead log."""
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
            raise LedgerError("deleted, but another connection still reads the old file: call it again")

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
        {"person": name, "kind": cost.kind, "parameter": cost.parameter, "reports": count}
        for name, counts in reports.items()
        for cost, count in sorted(counts.items())
    ]


def _of(table: sql.Table, person: str) -> ColumnElement[bool]:
    return table.c.person == person


def _insert(dialect: str, table: Table) -> "sqlite.Insert | postgresql.Insert":
    """Return an INSERT that supports ON CONFLICT."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


def _lock_schema(connection: Connection) -> None:
    """Wait for other transactions that change what all ledgers share: the tables, the windows, the pruning."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7205759403792793)")


def create_tables(connection: Connection) -> bool:
    """Create the tables if there are none; return whether they were created. Raise for another version."""
    inspector = sql.inspect(connection)
    if not inspector.has_table(persons.name):
        metadata.create_all(connection)
        connection.execute(sql.insert(versions).values(version=VERSION))
        return True
    known = inspector.has_table(versions.name)
    found = connection.execute(sql.select(sql.func.max(versions.c.version))).scalar_one() if known else "unknown"
    if found != VERSION:
        raise LedgerError(
            f"the ledger's database has version {found}, this geoind needs version {VERSION}: "
            "start a new database, or use the geoind that made this one"
        )
    return False
