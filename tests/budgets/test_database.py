"""The ledger under load, and with a database that is locked, full or gone."""

import math
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sql

from geoind import BudgetExceededError, InvalidInputError, Ledger, obfuscate
from geoind.budgets import database
from geoind.errors import LedgerError
from tests.postgres import Server, running_server
from tests.trials import trials

EPSILON = math.log(4) / 200


DAY = timedelta(days=1)


ROOT = Path(__file__).resolve().parents[2]


def workers(count: int, *arguments: object) -> list["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.charge_worker", *map(str, arguments)]
    return [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("hours", [0, 24], ids=["lifetime", "rolling"])
def test_processes_never_exceed_the_budget_and_lose_nothing(url: str, hours: int, tmp_path: Path) -> None:
    if url.startswith("sqlite") and Path("/dev/shm").is_dir():
        # Counting is what is tested here, not the disk.
        url = f"sqlite:////dev/shm/{tmp_path.name}-{os.getpid()}.db"
    processes, each = (5, trials(250)) if hours == 0 else (3, 100)
    allowed = int((processes - 0.5) * each)
    started = workers(processes, url, allowed * 0.001, hours, "ana", 0.001, each)
    said = "".join(worker.communicate()[0] for worker in started).split()
    try:
        assert [worker.returncode for worker in started] == [0] * processes
        assert (said.count("charged"), said.count("refused")) == (allowed, processes * each - allowed)
        with Ledger(url, budget=100, window=DAY if hours else None) as ledger:
            assert len(ledger.history("ana")) == allowed
            assert ledger.spent("ana") == allowed / 1000
            assert ledger.lifetime("ana") == ledger.spent("ana")
    finally:
        for path in Path("/dev/shm").glob(f"{tmp_path.name}-{os.getpid()}.db*"):
            path.unlink()


@pytest.mark.slow
def test_what_was_answered_survives_kill_9(url: str) -> None:
    started = workers(3, url, 100, 0, "ana", 0.001, 100_000)
    answered = 0
    for worker in started:
        assert worker.stdout is not None
        for _ in range(30):
            answered += worker.stdout.readline() == "charged\n"
        worker.kill()
        answered += worker.stdout.read().count("charged\n")
        worker.stdout.close()
        worker.wait()
    with Ledger(url, budget=100) as ledger:
        recorded = len(ledger.history("ana"))
        assert answered <= recorded <= answered + len(started)
        assert ledger.spent("ana") == recorded / 1000
        ledger.charge("ana", 0.001)


def test_threads_share_a_ledger(url: str) -> None:
    with Ledger(url, budget=0.15, timeout=300) as ledger:
        refused = []

        def charge() -> None:
            for _ in range(20):
                try:
                    ledger.charge("ana", 0.001)
                except BudgetExceededError:
                    refused.append(1)

        threads = [threading.Thread(target=charge) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == 10
        assert ledger.remaining("ana") == 0


def test_threads_share_a_ledger_in_memory() -> None:
    ledger = Ledger("sqlite://", budget=1)
    thread = threading.Thread(target=ledger.charge, args=("ana", 0.25))
    thread.start()
    thread.join()
    assert ledger.remaining("ana") == 0.75


FORKED = """
import os, sys
from geoind import Ledger
from geoind.errors import LedgerError
ledger = Ledger(sys.argv[1], budget=1)
ledger.charge("ana", 0.125)
children = []
for _ in range(4):
    child = os.fork()
    if not child:
        try:
            ledger.charge("ana", 0.125)
        except LedgerError:
            os._exit(3)
        os._exit(0)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
ledger.charge("ana", 0.125)
print(codes, ledger.remaining("ana"))
"""


@pytest.mark.slow
def test_a_ledger_in_memory_is_not_silently_two_ledgers() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, "sqlite://"], capture_output=True, text=True, check=True)
    assert done.stdout == "[3, 3, 3, 3] 0.75\n"
    with pytest.raises(LedgerError, match="memory"):
        pickle.dumps(Ledger("sqlite://", budget=1))


def test_a_ledger_travels_to_another_process(url: str) -> None:
    with Ledger(url, budget=1, window=DAY) as ledger, pickle.loads(pickle.dumps(ledger)) as copy:
        copy.charge("ana", 0.25)
        assert ledger.remaining("ana") == 0.75
        assert (copy.budget, copy.window, copy.timeout) == (1.0, DAY, 10.0)


def test_a_locked_person_is_waited_for_and_then_an_error_while_others_go_on(server: Server) -> None:
    import psycopg

    url = server.new_database()
    ledger = Ledger(url, budget=1, timeout=0.3)
    ledger.charge("ana", 0.25)
    with closing(psycopg.connect(url)) as other:
        other.execute("SELECT * FROM geoind_person WHERE person = 'ana' FOR UPDATE")
        with pytest.raises(LedgerError, match=r"stayed locked for 0\.3 s"):
            ledger.charge("ana", 0.25)
        assert ledger.charge("ben", 0.25) == 0.75
    assert ledger.charge("ana", 0.25) == 0.5
    ledger.close()


FULL_DISK = """
import os, resource, sys
from geoind import Ledger, obfuscate
from geoind.errors import LedgerError
ledger = Ledger(sys.argv[1], budget=1000)
drawn = 0
urandom = os.urandom
def count(size):
    global drawn
    drawn += 1
    return urandom(size)
os.urandom = count
obfuscate(lat=48.0, lon=2.0, epsilon=0.007, ledger=ledger, person_id="ana")
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    while True:
        obfuscate(lat=48.0, lon=2.0, epsilon=0.007, ledger=ledger, person_id="ana")
except LedgerError as error:
    print(drawn, error)
"""


@pytest.mark.slow
def test_a_full_disk_is_an_error_before_any_noise_and_loses_nothing(tmp_path: Path) -> None:
    """The kernel refuses to let the file grow, as a full disk or a quota does."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    done = subprocess.run([sys.executable, "-c", FULL_DISK, url], capture_output=True, text=True, check=True)
    drawn, _, message = done.stdout.partition(" ")
    assert message.startswith("the ledger's database did not confirm, and nothing is published")
    assert int(drawn) > 5
    with Ledger(url, budget=1000) as ledger:
        assert len(ledger.history("ana")) == int(drawn)
        ledger.charge("ana", 0.001)


@pytest.mark.slow
def test_a_server_that_vanished_is_an_error_before_any_noise(programs: Path) -> None:
    with running_server(programs) as short_lived:
        ledger = Ledger(short_lived.url(), budget=1)
        ledger.charge("ana", 0.25)
        short_lived.vanish()
        for _ in range(2):
            with pytest.raises(LedgerError, match="nothing is published"):
                obfuscate(lat=48.0, lon=2.0, epsilon=EPSILON, ledger=ledger, person_id="ana")
        with pytest.raises(LedgerError):
            Ledger(short_lived.url(), budget=1)
    ledger.close()


def test_a_message_holds_no_password_and_no_name(tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger("postgresql://someone:s3cret@127.0.0.1:1/none", budget=1, timeout=1)
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in str(caught.value.__cause__)
    path = tmp_path / "ledger.db"
    ledger = Ledger(f"sqlite:///{path}", budget=1)
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TABLE geoind_charge")
    with pytest.raises(LedgerError) as caught:
        ledger.charge("anastasia", 0.5)
    assert "anastasia" not in str(caught.value)
    assert "anastasia" not in str(caught.value.__cause__)
    ledger.close()


@pytest.mark.parametrize("keep", [timedelta(0), timedelta(microseconds=1), DAY])
def test_a_window_may_reach_back_to_the_very_moment_of_pruning(
    keep: timedelta, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "now", lambda: sql.literal(10**15))
    url, moment = f"sqlite:///{tmp_path}/ledger.db", timedelta(microseconds=1)
    with Ledger(url, budget=1) as ledger:
        ledger.prune(keep=keep)
    with pytest.raises(InvalidInputError, match="pruned"):
        Ledger(url, budget=1, window=keep + moment)
    if keep:
        Ledger(url, budget=1, window=keep).close()
