"""Transactions: writers wait for each other, readers do not wait, and a timeout is an error."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy

from geoind import InvalidInputError, Ledger
from geoind.budgets.database import Database, create_tables
from geoind.errors import LedgerError
from tests.budgets.test_engines import connections
from tests.postgres import Server

DAY = timedelta(days=1)
READS: dict[str, Callable[[Ledger], object]] = {
    "remaining": lambda ledger: ledger.remaining("ana"),
    "spent": lambda ledger: ledger.spent("ana"),
    "lifetime": lambda ledger: ledger.lifetime("ana"),
    "history": lambda ledger: ledger.history("ana"),
    "session": lambda ledger: ledger.session("ana", "tag"),
}
WRITES: dict[str, Callable[[Ledger], object]] = {
    "charge": lambda ledger: ledger.charge("ana", 0.125),
    "charge once": lambda ledger: ledger.charge("ana", 0.125, once="home"),
    "charge_all": lambda ledger: ledger.charge_all({"ana": {0.125: 1}}),
    "forget": lambda ledger: ledger.forget("ben"),
    "locked": lambda ledger: _save(ledger),
    "prune": lambda ledger: ledger.prune(keep=DAY),
    "open": lambda ledger: Ledger(ledger._url, budget=1).close(),
}


def _save(ledger: Ledger) -> None:
    with ledger.locked("ana") as account:
        account.save_session("tag", "here")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a ledger."""
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A ledger that has no patience."""
    with Ledger(f"sqlite:///{path}", budget=1, timeout=0.01) as ledger:
        yield ledger


@pytest.fixture
def other(path: Path, ledger: Ledger) -> Iterator[sqlite3.Connection]:  # noqa: ARG001
    """Another connection to the same file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        yield other


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """All that is sent to any database."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", note)
    yield sent
    sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", note)


@pytest.mark.parametrize("name", READS)
def test_readers_wait_for_no_writer(ledger: Ledger, other: sqlite3.Connection, name: str) -> None:
    other.execute("BEGIN IMMEDIATE")
    READS[name](ledger)


@pytest.mark.parametrize("name", WRITES)
def test_a_transaction_that_writes_locks_before_it_reads(ledger: Ledger, statements: list[str], name: str) -> None:
    """A transaction that has read could not write any more if another one did meanwhile."""
    WRITES[name](ledger)
    begun = [statement for statement in statements if statement.startswith("BEGIN")]
    assert begun == ["BEGIN IMMEDIATE"]
    assert statements[0] == begun[0]


@pytest.mark.parametrize("name", WRITES)
def test_a_writer_that_waited_in_vain_says_how_long(ledger: Ledger, other: sqlite3.Connection, name: str) -> None:
    other.execute("BEGIN IMMEDIATE")
    if name == "open":
        with pytest.raises(LedgerError, match=r"nothing is published: it stayed locked for 0\.5 s$"):
            Ledger(ledger._url, budget=1, timeout=0.5)
        return
    with pytest.raises(LedgerError, match=r"nothing is published: it stayed locked for 0\.01 s$"):
        WRITES[name](ledger)
    other.execute("ROLLBACK")
    assert (ledger.spent("ana"), ledger.session("ana", "tag")) == (0.0, None)


def test_an_error_says_what_the_database_said(ledger: Ledger, other: sqlite3.Connection) -> None:
    other.execute("DROP TABLE geoind_charge")
    with pytest.raises(LedgerError) as caught:
        ledger.charge("ana", 0.125)
    said = "the ledger's database did not confirm, and nothing is published: no such table: geoind_charge"
    assert str(caught.value) == said


def test_an_error_without_a_database_is_reported_too() -> None:
    with (
        Ledger("sqlite://", budget=1, timeout=0.01) as ledger,
        ledger._database.transaction(writes=False),
        pytest.raises(LedgerError, match=r"nothing is published: QueuePool limit of size 1 .* timed out"),
    ):
        ledger.charge("ana", 0.125)


def test_a_failed_ledger_is_closed_even_while_its_error_is_kept(path: Path, ledger: Ledger) -> None:
    ledger.prune(keep=DAY)
    ledger.close()
    with pytest.raises(InvalidInputError, match="pruned") as caught:
        Ledger(f"sqlite:///{path}", budget=1, window=2 * DAY)
    assert connections(f"sqlite:///{path}") == 0
    assert caught.traceback  # it holds on to the ledger


# Forgetting


def test_a_reader_that_holds_a_forgotten_name_is_reported(
    path: Path, ledger: Ledger, other: sqlite3.Connection
) -> None:
    ledger.charge("anastasia", 0.125)
    other.execute("BEGIN")
    other.execute("SELECT * FROM geoind_charge").fetchall()
    with pytest.raises(LedgerError, match="another connection still reads the old file: call it again"):
        ledger.forget("anastasia")
    assert ledger.history("anastasia") == []
    other.execute("ROLLBACK")
    assert ledger.forget("anastasia") == 0
    assert [file.name for file in path.parent.iterdir() if b"anastasia" in file.read_bytes()] == []


def test_a_file_that_cannot_be_rewritten_is_reported(ledger: Ledger, other: sqlite3.Connection) -> None:
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="deleted, but the file could not be rewritten: database is locked"):
        ledger._database.erase()


def waiting(asking: Any) -> bool:
    """Whether a connection waits for a lock of a server's database."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    for _ in range(100_000):
        [(count,)] = asking.execute(query).fetchall()
        if count:
            return True
    return False


def test_forgetting_waits_for_a_charge_under_way_and_takes_it_along(server: Server) -> None:
    import psycopg

    url = server.new_database()
    with (
        Ledger(url, budget=1) as ledger,
        closing(psycopg.connect(url)) as other,
        closing(psycopg.connect(url, autocommit=True)) as asking,
    ):
        ledger.charge("ana", 0.125)
        other.execute("SELECT * FROM geoind_person WHERE person = 'ana' FOR UPDATE")
        other.execute(
            "INSERT INTO geoind_charge (person, at, kind, parameter, reports, label)"
            " VALUES ('ana', 0, 'any', 1, 1, '')"
        )
        forgotten: list[int] = []
        thread = threading.Thread(target=lambda: forgotten.append(ledger.forget("ana")))
        thread.start()
        assert waiting(asking)
        other.commit()
        thread.join()
        assert forgotten == [2]
        assert ledger.history("ana") == []


# What all ledgers of a server share


@pytest.mark.parametrize("name", ["open", "prune"])
def test_ledgers_of_a_server_change_what_they_share_one_after_the_other(server: Server, name: str) -> None:
    import psycopg

    url = server.new_database()
    with Ledger(url, budget=1, timeout=0.05) as ledger, closing(psycopg.connect(url)) as other:
        other.execute("SELECT pg_advisory_xact_lock(7205759403792793)")
        with pytest.raises(LedgerError, match=r"stayed locked for 0\.05 s$"):
            Ledger(url, budget=1, timeout=0.05) if name == "open" else ledger.prune(keep=DAY)
        assert ledger.charge("ana", 0.25) == 0.75


def test_all_new_names_of_a_batch_are_entered_before_any_is_locked(server: Server, statements: list[str]) -> None:
    """Locked first and entered later, two batches could wait for each other in a ring."""
    with Ledger(server.new_database(), budget=1) as ledger:
        ledger.charge("ben", 0.125)
        statements.clear()
        ledger.charge_counts({"ana": 1, "ben": 1}, 0.125)
    assert statements[0].startswith("INSERT INTO geoind_person")
    assert [statement.endswith("FOR UPDATE") for statement in statements].index(True) == 1


def test_the_number_of_a_charge_cannot_be_chosen(server: Server) -> None:
    """By which the history is ordered."""
    import psycopg

    url = server.new_database()
    Ledger(url, budget=1).close()
    with closing(psycopg.connect(url)) as other, pytest.raises(psycopg.errors.GeneratedAlways):
        other.execute("INSERT INTO geoind_charge VALUES (1, 'ana', 0, 'any', 1, 1, '')")


# How a commit is on the disk when it returns


def test_a_sqlite_that_writes_less_often_is_made_to_synchronise(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.dbapi2.connect

    def connected(*arguments: Any, **options: Any) -> Any:
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    monkeypatch.setattr(sqlite3.dbapi2, "connect", connected)
    database = Database.open(f"sqlite:///{path}", 1.0)
    with database.transaction(writes=False) as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        # Nor does the driver begin transactions of its own.
        assert connection.connection.dbapi_connection.isolation_level is None  # type: ignore[union-attr]
    database.engine.dispose()


def test_a_server_that_answers_before_the_disk_does_is_made_to_wait(server: Server) -> None:
    import psycopg

    url = server.new_database()
    with closing(psycopg.connect(url, autocommit=True)) as admin:
        name = admin.info.dbname
        admin.execute(f"ALTER DATABASE {name} SET synchronous_commit = off".encode())
        admin.execute(f"ALTER DATABASE {name} SET lock_timeout = 1".encode())
    with Ledger(url, budget=1, timeout=2.5) as ledger:
        for _ in range(2):
            with ledger._database.transaction(writes=False) as connection:
                assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
                assert connection.exec_driver_sql("SHOW lock_timeout").scalar() == "2500ms"
                assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"


# Whose file it is


def test_a_file_is_left_as_its_owner_wants_it_once_it_is_of_today(path: Path, ledger: Ledger) -> None:
    with ledger._database.transaction(writes=True) as connection:
        assert create_tables(connection) is False
    ledger.close()
    path.chmod(0o640)
    Ledger(f"sqlite:///{path}", budget=1).close()
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_file_that_cannot_be_kept_from_others_is_no_ledger(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(LedgerError, match="cannot be set to 0600: Operation not permitted"):
        Ledger(f"sqlite:///{path}", budget=1)


@pytest.mark.parametrize("name", ["plain.db", "a b.db", "100%.db", "100%25.db", "c#d.db"])
@pytest.mark.parametrize("uri", [False, True])
def test_a_ledger_is_in_the_file_that_was_named(tmp_path: Path, name: str, uri: bool) -> None:
    # An address within an address is quoted twice.
    written = f"file:{tmp_path}/{quote(quote(name))}?uri=true" if uri else f"{tmp_path}/{quote(name)}"
    with Ledger(f"sqlite:///{written}", budget=1) as ledger:
        ledger.charge("ana", 0.125)
        assert sorted(file.name for file in tmp_path.iterdir()) == [name, f"{name}-shm", f"{name}-wal"]
