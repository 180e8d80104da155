"""The ledger's database: what is stored, and how SQLite and PostgreSQL are opened and asked.

Times are microseconds since 1970 of the *database's* clock, which all workers share. Epsilon is a whole
number of units. The statements are the same for both databases but for two words: the clock, and the lock
on a person's row, which SQLite does not need because its writers take turns.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from geoind.errors import InvalidInputError, LedgerError
from geoind.extras import require

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine, TextClause

__all__ = ["Database", "batches"]

BATCH = 500
"""Persons per statement; SQLite and PostgreSQL limit how many values one statement may have."""

TABLES = (
    "CREATE TABLE IF NOT EXISTS geoind_person (person TEXT PRIMARY KEY, lifetime BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS geoind_charge (number {number}, person TEXT NOT NULL, at BIGINT NOT NULL,"
    " units BIGINT NOT NULL, reports BIGINT NOT NULL, label TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS geoind_charge_window ON geoind_charge (person, at, units)",
    "CREATE INDEX IF NOT EXISTS geoind_charge_at ON geoind_charge (at)",
    "CREATE TABLE IF NOT EXISTS geoind_once (person TEXT NOT NULL, token TEXT NOT NULL,"
    " PRIMARY KEY (person, token))",
    "CREATE TABLE IF NOT EXISTS geoind_pruned (before BIGINT NOT NULL)",
)


@dataclass(frozen=True)
class Dialect:
    """What differs between the databases."""

    clock: str
    number: str
    lock: str
    before_tables: str


SQLITE = Dialect(
    clock="CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    number="INTEGER PRIMARY KEY",
    lock="",
    before_tables="SELECT 1",
)
POSTGRESQL = Dialect(
    clock="CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
    number="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    # In one order everywhere, or two batches would wait for each other for ever.
    lock=' ORDER BY person COLLATE "C" FOR UPDATE',
    # Two workers that start together must not create the tables together.
    before_tables="SELECT pg_advisory_xact_lock(7205759403792793)",
)


@dataclass(frozen=True)
class Database:
    """One process's connections to the ledger's database."""

    engine: "Engine"
    dialect: Dialect
    timeout: float

    @classmethod
    def open(cls, url: str, timeout: float) -> "Database":
        """Return the database at a URL; nothing is read or written yet."""
        require("a Ledger", "sqlalchemy")
        import sqlalchemy

        try:
            parsed = sqlalchemy.make_url(url)
        except (sqlalchemy.exc.ArgumentError, AttributeError) as error:
            # A URL may hold a password, so it is not quoted.
            raise InvalidInputError("url must be a database URL such as sqlite:///budgets.db") from error
        kind = parsed.get_backend_name()
        if kind == "sqlite":
            return cls(_sqlite_engine(parsed, timeout), SQLITE, timeout)
        if kind == "postgresql":
            return cls(_postgresql_engine(parsed, timeout), POSTGRESQL, timeout)
        raise InvalidInputError(f"url must name sqlite or postgresql, got {kind!r}")

    @property
    def in_memory(self) -> bool:
        """Whether this is a SQLite database without a file."""
        return self.dialect is SQLITE and _in_memory(self.engine.url)

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator["Connection"]:
        """Give a connection whose work is committed at the end, or undone if anything is raised."""
        import sqlalchemy

        try:
            with self.engine.connect() as plain:
                connection = plain.execution_options(geoind_writes=writes)
                with connection.begin():
                    yield connection
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise LedgerError(self._explain(error)) from error

    def create_tables(self) -> None:
        """Create what is not there yet."""
        with self.transaction(writes=True) as connection:
            connection.exec_driver_sql(self.dialect.before_tables)
            for statement in TABLES:
                connection.exec_driver_sql(statement.format(number=self.dialect.number))

    def ask(self, connection: "Connection", statement: str, **values: Any) -> Sequence[Any]:
        """Return the rows of a query; {clock} and {lock} stand for the dialect's own words."""
        rows: Sequence[Any] = self._execute(connection, statement, values).fetchall()
        return rows

    def tell(self, connection: "Connection", statement: str, values: Any) -> int:
        """Run a statement for one dict of values or for each of a list, and return how many rows it met."""
        return int(self._execute(connection, statement, values).rowcount)

    def erase(self) -> None:
        """Rewrite SQLite's file without the remains of deleted rows, and empty its write-ahead log."""
        if self.dialect is not SQLITE:
            return
        import sqlite3

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

    def _execute(self, connection: "Connection", statement: str, values: Any) -> Any:
        return connection.execute(_query(statement, self.dialect), values)

    def _explain(self, error: Exception) -> str:
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
        if "locked" in reason or "lock timeout" in reason:
            reason = f"it stayed locked for {self.timeout:g} s"
        return f"the ledger's database did not confirm, and no noise was drawn: {reason}"


def batches(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Return slices short enough for one statement."""
    for start in range(0, len(values), BATCH):
        yield values[start : start + BATCH]


@lru_cache(maxsize=64)
def _query(statement: str, dialect: Dialect) -> "TextClause":
    from sqlalchemy import bindparam, text

    query = text(statement.format(clock=dialect.clock, lock=dialect.lock))
    return query.bindparams(bindparam("persons", expanding=True)) if ":persons" in statement else query


def _in_memory(url: "URL") -> bool:
    return url.database in (None, "", ":memory:") or "mode=memory" in str(url.database)


def _sqlite_engine(url: "URL", timeout: float) -> "Engine":
    import sqlalchemy
    from sqlalchemy import event

    # A database without a file lives in its connection, so there must be exactly one, which threads share.
    size = {"pool_size": 1, "max_overflow": 0} if _in_memory(url) else {}
    engine = sqlalchemy.create_engine(
        url,
        poolclass=sqlalchemy.QueuePool,
        pool_timeout=timeout,
        hide_parameters=True,
        connect_args={"timeout": timeout, "check_same_thread": False},
        **size,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # no BEGIN of sqlite3's own
        cursor = connection.cursor()
        if cursor.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
            cursor.execute("PRAGMA journal_mode=WAL")
        # FULL: a commit is on the disk when it returns. The usual NORMAL would lose the last ones to a power cut.
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: "Connection") -> None:
        # IMMEDIATE: a transaction that reads first and then finds another's write could only fail.
        writes = connection.get_execution_options().get("geoind_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql_engine(url: "URL", timeout: float) -> "Engine":
    require("a Ledger in PostgreSQL", "psycopg")
    import sqlalchemy
    from sqlalchemy import event

    engine = sqlalchemy.create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_timeout=timeout,
        pool_pre_ping=True,
        hide_parameters=True,
        isolation_level="READ COMMITTED",
        connect_args={
            "connect_timeout": max(2, math.ceil(timeout)),
            "tcp_user_timeout": math.ceil(1000 * timeout),
        },
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("SET synchronous_commit = on")
        cursor.execute(f"SET lock_timeout = {math.ceil(1000 * timeout)}")
        cursor.close()
        connection.commit()

    return engine
