import gc
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest
import sqlalchemy

from geoind import InvalidInputError, Ledger, obfuscate
from geoind.budgets.engines import open_engine
from geoind.errors import LedgerError
from tests.budgets.test_database import DAY, EPSILON, FORKED
from tests.postgres import Server


@pytest.mark.slow
def test_a_forked_worker_uses_connections_of_its_own(url: str) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, url], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 0, 0, 0] 0.25\n"


def test_a_locked_file_is_waited_for_and_then_an_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger(f"sqlite:///{path}", budget=1, timeout=0.3)
    patient = Ledger(f"sqlite:///{path}", budget=1, timeout=300)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match=r"stayed locked for 0\.3 s"):
        obfuscate(lat=48.0, lon=2.0, epsilon=EPSILON, ledger=ledger, person_id="ana")
    assert ledger.remaining("ana") == 1.0  # reading goes on
    release = threading.Timer(0.1, other.rollback)
    release.start()
    assert patient.charge("ana", 0.25) == 0.75
    release.join()
    patient.close()
    other.close()
    ledger.close()
    patient.close()


def test_a_server_that_dropped_its_connections_is_asked_again(server: Server) -> None:
    import psycopg

    url = server.new_database()
    with Ledger(url, budget=1) as ledger:
        ledger.charge("ana", 0.25)
        with closing(psycopg.connect(server.url(), autocommit=True)) as admin:
            query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            admin.execute(query, [url.partition("@/")[2].partition("?")[0]])
        assert ledger.charge("ana", 0.25) == 0.5


def test_a_directory_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LedgerError, match="unable to open"):
        Ledger("sqlite:////nowhere/at/all/ledger.db", budget=1)


def connections(url: str) -> int:
    """How many connections to a database are open: this process's files, or what the server says."""
    if url.startswith("sqlite"):
        path = url.removeprefix("sqlite:///")
        return sum(file.path == path for file in psutil.Process().open_files())
    import psycopg

    with closing(psycopg.connect(url)) as asking:
        query = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        for _ in range(100):  # a server notices a closed connection a moment later
            [(count,)] = asking.execute(query).fetchall()
            if not count:
                break
            asking.rollback()
            time.sleep(0.05)
        return int(count)


def test_a_ledger_that_was_not_closed_closes_its_connections_when_it_is_collected(url: str) -> None:
    for _ in range(5):
        Ledger(url, budget=1).charge("ana", 0.001)
    ledger = Ledger(url, budget=1)
    threads = [threading.Thread(target=ledger.charge, args=("ana", 0.001)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if url.startswith("sqlite"):
        assert connections(url) >= 1
    closed: list[object] = []
    # Closed by the ledger, not left to the garbage collector, which Python 3.13 would report.
    sqlalchemy.event.listen(ledger._database.engine, "close", lambda connection, _: closed.append(connection))
    del ledger, threads, thread
    gc.collect()
    assert closed
    assert connections(url) == 0


def test_a_closed_ledger_opens_again_when_it_is_asked_and_a_failed_one_leaves_nothing(url: str) -> None:
    with Ledger(url, budget=1, window=DAY) as ledger:
        ledger.prune()
    assert connections(url) == 0
    assert ledger.charge("ana", 0.25) == 0.75
    with pytest.raises(InvalidInputError, match="pruned"):
        Ledger(url, budget=1, window=2 * DAY)
    ledger.close()
    ledger.close()
    assert connections(url) == 0


def test_a_ledger_in_memory_is_over_when_it_is_closed() -> None:
    """Opened again it would have forgotten what was spent."""
    with Ledger("sqlite://", budget=1) as ledger:
        ledger.charge("ana", 1.0)
    with pytest.raises(LedgerError, match="memory is lost"):
        ledger.charge("ana", 1.0)


@pytest.mark.parametrize(("timeout", "wait", "silence"), [(0.5, 2, 500), (2.5, 3, 2500), (10.0, 10, 10_000)])
def test_a_server_is_waited_for_as_long_as_was_said(timeout: float, wait: int, silence: int) -> None:
    engine = open_engine("postgresql://unknown@/nowhere", timeout)
    asked: dict[str, object] = {}

    @sqlalchemy.event.listens_for(engine, "do_connect")
    def note(_dialect: object, _record: object, _arguments: object, options: dict[str, object]) -> None:
        asked.update(options)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        engine.connect()
    assert (asked["connect_timeout"], asked["tcp_user_timeout"]) == (wait, silence)
    assert engine.pool._timeout == timeout  # type: ignore[attr-defined]


@pytest.mark.parametrize("url", ["sqlite://", "postgresql://unknown@/nowhere"])
def test_no_error_of_an_engine_quotes_the_values_of_a_statement(url: str) -> None:
    assert open_engine(url, 1.0).hide_parameters


def test_a_database_in_memory_has_one_connection_and_a_file_several(tmp_path: Path) -> None:
    memory, file = open_engine("sqlite://", 0.01), open_engine(f"sqlite:///{tmp_path / 'ledger.db'}", 0.01)
    with memory.connect(), pytest.raises(sqlalchemy.exc.TimeoutError):
        memory.connect()
    with file.connect(), file.connect():
        pass
    memory.dispose()
    file.dispose()


def test_a_ledger_names_the_files_that_hold_it(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    for url in (f"sqlite:///{file}", f"sqlite:///file:{file}?uri=true"):
        with Ledger(url, budget=1.0) as ledger:
            assert ledger.files == (file, Path(f"{file}-wal"), Path(f"{file}-shm"))
            assert set(tmp_path.iterdir()) <= set(ledger.files)
    assert Ledger("sqlite://", budget=1.0).files == ()
