"""The ledger's tables.

Times are microseconds since 1970 of the *database's* clock, which all workers share. What was reported is a kind
of noise and a whole number (`Release`), and nothing about a place.
"""

from typing import Any

import sqlalchemy as sql
from sqlalchemy import BigInteger, Column, Connection, Index, Integer, MetaData, Table, Text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from geoind.errors import LedgerError

__all__ = [
    "VERSION",
    "charges",
    "insert",
    "now",
    "persons",
    "pruned",
    "sessions",
    "take_turns",
    "tokens",
    "totals",
    "update",
    "windows",
]

VERSION = 5

# PostgreSQL orders names by their bytes, as Python does: rows are locked in one order everywhere.
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
"""What a person has reported in a lifetime; pruning leaves it alone."""

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
"""What costs nothing the next time: the same token for the same kind and number of reports."""

sessions = Table(
    "geoind_session",
    metadata,
    Column("person", Name, primary_key=True),
    Column("tag", Text, primary_key=True),
    Column("state", Text, nullable=False),
)
"""The newest state of the session of each person and key: what was published. The tag is derived from the key."""

pruned = Table("geoind_pruned", metadata, Column("before", BigInteger, nullable=False))
"""The moment before which history may be missing."""

windows = Table("geoind_window", metadata, Column("longest", BigInteger, nullable=False))
"""The longest window that a ledger has counted with: pruning keeps as much."""


class now(FunctionElement[int]):  # noqa: N801
    """The database's clock."""

    type = BigInteger()
    inherit_cache = True


@compiles(now, "sqlite")
def _sqlite_clock(_element: now, _compiler: Any, **_: Any) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"


@compiles(now, "postgresql")
def _postgresql_clock(_element: now, _compiler: Any, **_: Any) -> str:
    return "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"


def insert(dialect: str, table: Table) -> "sqlite.Insert | postgresql.Insert":
    """Return an INSERT that knows ON CONFLICT."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


def take_turns(connection: Connection) -> None:
    """Wait until no other transaction changes what all ledgers share: the tables, the windows, the pruning."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7205759403792793)")


def update(connection: Connection) -> bool:
    """Create the tables if there are none; return whether they were created.

    A database of another version is refused: no version before this one was released.
    """
    inspector = sql.inspect(connection)
    if not inspector.has_table(persons.name):
        metadata.create_all(connection)
        connection.execute(sql.insert(versions).values(version=VERSION))
        return True
    # The first version had no table of versions.
    known = inspector.has_table(versions.name)
    found = connection.execute(sql.select(sql.func.max(versions.c.version))).scalar_one() if known else 1
    if found != VERSION:
        raise LedgerError(
            f"the ledger's database has version {found}, this geoind needs version {VERSION}: "
            "start a new database, or use the geoind that made this one"
        )
    return False
