"""The ledger's tables, and how a database of an earlier version becomes one of today.

Times are microseconds since 1970 of the *database's* clock, which all workers share. What was reported is a kind
of noise and a whole number (`Release`), and nothing about a place.
"""

from typing import Any

import sqlalchemy as sql
from sqlalchemy import BigInteger, Column, Connection, Index, Integer, MetaData, Table, Text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError, LedgerError

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

VERSION = 3

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
    Column("number", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
)
"""Where a person's session stands: what was published, and how often it was saved."""

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
    """Create what is not there yet, or bring it to this version; return whether anything was changed.

    All of it happens in the caller's transaction: a database is of one version or of the other.
    """
    found = _version(connection)
    if found > VERSION:
        raise LedgerError(f"the ledger's database has version {found}, this geoind knows {VERSION}: update geoind")
    if found == VERSION:
        return False
    if found == 1:
        _from_version_1(connection)
    else:
        # Version 2 lacks the sessions and is otherwise the same.
        metadata.create_all(connection)
    connection.execute(sql.insert(versions).values(version=VERSION))
    return True


def _version(connection: Connection) -> int:
    inspector = sql.inspect(connection)
    if inspector.has_table(versions.name):
        return int(connection.execute(sql.select(sql.func.max(versions.c.version))).scalar_one())
    # The first version did not say so.
    return 1 if inspector.has_table(persons.name) else 0


def _from_version_1(connection: Connection) -> None:
    """Keep every sum, charge and token that is certain.

    Version 1 had `geoind_person (person, lifetime)`, `geoind_charge (number, person, at, units, reports, label)`
    and `geoind_once (person, token)`. Of its reports only epsilon is known. What a token had paid for was not
    written down: it is bound to the least epsilon of the person's history where that is complete, and is otherwise
    dropped, to be paid again.
    """
    for index in ("geoind_charge_window", "geoind_charge_at"):
        connection.exec_driver_sql(f"DROP INDEX IF EXISTS {index}")
    for table in ("geoind_person", "geoind_charge", "geoind_once"):
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO {table}_1")
    if connection.dialect.name == "postgresql":
        # A primary key's index keeps its name, which the new table's needs.
        for table in ("geoind_person", "geoind_charge", "geoind_once"):
            connection.exec_driver_sql(f"ALTER INDEX {table}_pkey RENAME TO {table}_1_pkey")
    metadata.create_all(connection)
    steps = (
        "INSERT INTO geoind_person (person) SELECT person FROM geoind_person_1",
        "INSERT INTO geoind_charge (person, at, kind, parameter, reports, label)"
        " SELECT person, at, 'any', units / reports, reports, label FROM geoind_charge_1 ORDER BY number",
        "INSERT INTO geoind_total (person, kind, parameter, reports)"
        " SELECT person, kind, parameter, SUM(reports) FROM geoind_charge GROUP BY person, kind, parameter",
        "INSERT INTO geoind_once (person, token, kind, parameter, reports)"
        " SELECT o.person, o.token, 'any', MIN(c.units / c.reports), 1 FROM geoind_once_1 o"
        " JOIN geoind_person_1 p ON p.person = o.person JOIN geoind_charge_1 c ON c.person = o.person"
        " GROUP BY o.person, o.token, p.lifetime HAVING SUM(c.units) = p.lifetime",
        # What pruned charges had added to a sum is one report of as much.
        "INSERT INTO geoind_total (person, kind, parameter, reports)"
        " SELECT p.person, 'any', p.lifetime - COALESCE(c.kept, 0), 1 FROM geoind_person_1 p LEFT JOIN"
        " (SELECT person, SUM(units) AS kept FROM geoind_charge_1 GROUP BY person) c ON c.person = p.person"
        " WHERE p.lifetime > COALESCE(c.kept, 0)"
        " ON CONFLICT (person, kind, parameter) DO UPDATE SET reports = geoind_total.reports + 1",
        "DROP TABLE geoind_person_1",
        "DROP TABLE geoind_charge_1",
        "DROP TABLE geoind_once_1",
    )
    for step in steps:
        connection.exec_driver_sql(step)
    for name in connection.execute(sql.select(totals.c.person).distinct()).scalars().all():
        _rename(connection, name)


def _rename(connection: Connection, name: str) -> None:
    """Merge a person whose name has space around it, or is not in Unicode NFC, into the one of the proper name."""
    try:
        new = as_person(name.strip())
    except InvalidInputError:  # nobody can ask for such a name, before or after
        return
    if new == name:
        return
    dialect = connection.dialect.name
    connection.execute(sql.update(charges).where(charges.c.person == name).values(person=new))
    for row in connection.execute(sql.select(totals).where(totals.c.person == name)).mappings().all():
        add = insert(dialect, totals).values({**row, "person": new})
        more = {"reports": totals.c.reports + add.excluded.reports}
        connection.execute(add.on_conflict_do_update(index_elements=list(totals.primary_key), set_=more))
    for row in connection.execute(sql.select(tokens).where(tokens.c.person == name)).mappings().all():
        connection.execute(insert(dialect, tokens).values({**row, "person": new}).on_conflict_do_nothing())
    for table in (totals, tokens, persons):
        connection.execute(sql.delete(table).where(table.c.person == name))
