"""Databases of earlier versions, as their own statements made them, become databases of today."""

import pickle
import sqlite3
import stat
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from geoind import BudgetExceededError, InvalidInputError, Ledger, LedgerError
from geoind.budgets.schema import metadata

DAY = timedelta(days=1)
NOW = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
}
NUMBER = {"sqlite": "INTEGER PRIMARY KEY", "postgresql": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"}
UNITS = 10**15

VERSION_1 = (
    "CREATE TABLE geoind_person (person TEXT PRIMARY KEY, lifetime BIGINT NOT NULL)",
    "CREATE TABLE geoind_charge (number {number}, person TEXT NOT NULL, at BIGINT NOT NULL,"
    " units BIGINT NOT NULL, reports BIGINT NOT NULL, label TEXT NOT NULL)",
    "CREATE INDEX geoind_charge_window ON geoind_charge (person, at, units)",
    "CREATE INDEX geoind_charge_at ON geoind_charge (at)",
    "CREATE TABLE geoind_once (person TEXT NOT NULL, token TEXT NOT NULL, PRIMARY KEY (person, token))",
    "CREATE TABLE geoind_pruned (before BIGINT NOT NULL)",
)


class Old:
    """A database of the first version."""

    def __init__(self, url: str) -> None:
        self.kind = url.partition(":")[0]
        self.connection: Any
        if self.kind == "sqlite":
            self.connection = sqlite3.connect(url.removeprefix("sqlite:///"))
            self.connection.execute("PRAGMA journal_mode=WAL")
        else:
            import psycopg

            self.connection = psycopg.connect(url)
        for statement in VERSION_1:
            self.connection.execute(statement.format(number=NUMBER[self.kind]))

    def charge(self, person: str, units: int, reports: int = 1, *, days_ago: float = 0, token: str = "") -> None:
        """Write what version 1 wrote; text comes from the test alone."""
        at = f"{NOW[self.kind]} - {int(days_ago * 86_400_000_000)}"
        total = units * reports
        for statement in (
            f"INSERT INTO geoind_person VALUES ('{person}', 0) ON CONFLICT DO NOTHING",
            "INSERT INTO geoind_charge (person, at, units, reports, label)"
            f" VALUES ('{person}', {at}, {total}, {reports}, 'trip')",
            f"UPDATE geoind_person SET lifetime = lifetime + {total} WHERE person = '{person}'",
        ):
            self.connection.execute(statement)
        if token:
            self.connection.execute(f"INSERT INTO geoind_once VALUES ('{person}', '{token}')")

    def prune(self, days: float) -> None:
        before = f"{NOW[self.kind]} - {int(days * 86_400_000_000)}"
        self.connection.execute(f"INSERT INTO geoind_pruned VALUES ({before})")
        self.connection.execute(f"DELETE FROM geoind_charge WHERE at < {before}")

    def close(self) -> None:
        self.connection.commit()
        self.connection.close()


def test_a_database_of_the_first_version_keeps_its_sums_history_and_windows(url: str) -> None:
    with closing(Old(url)) as old:
        old.charge("ana", 20 * UNITS // 100, days_ago=40)
        old.charge("ana", 10 * UNITS // 100, reports=3, days_ago=3)
        old.charge("ana", 7)
        old.charge("ben", 30 * UNITS // 100)
        old.charge("gone", 90 * UNITS // 100, days_ago=40)
        old.prune(30)
    for _ in range(2):  # the second time nothing is left to do
        with Ledger(url, budget=1) as ledger:
            assert ledger.lifetime("ana") == pytest.approx(0.5 + 7e-15, rel=1e-15)
            assert ledger.spent("ben") == 0.3
            with pytest.raises(BudgetExceededError):
                ledger.charge("gone", 0.2)
            assert [(c.reports, c.label) for c in ledger.history("ana")] == [(3, "trip"), (1, "trip")]
            assert ledger.history("ana")[0].epsilon == 0.3
        with Ledger(url, budget=1, window=DAY) as daily:
            assert daily.spent("ana") == 7e-15
            assert daily.spent("gone") == 0
    with Ledger(url, budget=1) as ledger:
        assert ledger.charge("ben", 0.5, label="more") == pytest.approx(0.2)
        assert len(ledger.history("ben")) == 2


def test_an_old_token_stays_paid_for_the_least_epsilon_that_it_can_have_had(url: str) -> None:
    with closing(Old(url)) as old:
        old.charge("ana", UNITS // 8, token="home", days_ago=2)
        old.charge("ana", UNITS // 4, token="work")
        old.charge("ben", UNITS // 8, token="home", days_ago=40)
        old.charge("ben", UNITS // 4)
        old.prune(30)
    with Ledger(url, budget=1) as ledger:
        assert ledger.charge("ana", 0.125, once="home") == 0.625
        assert ledger.charge("ana", 0.125, once="work") == 0.625
        assert ledger.charge("ana", 0.25, once="work") == 0.375  # perhaps paid, perhaps not: in doubt it is not
        assert ledger.charge("ben", 0.25, once="home") == 0.375  # what it had cost was pruned


def test_two_spellings_of_a_name_become_one_person(url: str) -> None:
    with closing(Old(url)) as old:
        old.charge("Zoe\u0301", UNITS // 4, token="home")
        old.charge("Zo\u00e9", UNITS // 4, token="home")
        old.charge("Zoe\u0301", UNITS // 4, token="work")
        old.charge("Rene\u0301", UNITS // 2, token="gym")
        old.charge("ana", UNITS // 8, token="pool")
        old.charge(" ana ", UNITS // 8)
    with Ledger(url, budget=1) as ledger:
        for name in ("Zoe\u0301", "Zo\u00e9"):
            assert ledger.spent(name) == 0.75
            assert len(ledger.history(name)) == 3
        assert ledger.charge("Zo\u00e9", 0.25, once="home") == 0.25
        assert ledger.charge("Zo\u00e9", 0.25, once="work") == 0.25
        assert ledger.charge("Ren\u00e9", 0.5, once="gym") == 0.5
        assert ledger.charge("ana", 0.125, once="pool") == 0.75
        # Nobody has got what another had paid for.
        assert ledger.charge("Ren\u00e9", 0.25, once="pool") == 0.25
        assert ledger.charge("Zo\u00e9", 0.25, once="pool") == 0.0
        assert ledger.forget("Zo\u00e9") == 4
        # Of the old spellings nothing is left.
        with ledger._database.transaction(writes=False) as connection:
            for table in ("geoind_charge", "geoind_total", "geoind_once"):
                left = connection.exec_driver_sql(f"SELECT DISTINCT person FROM {table}").scalars()
                assert set(left) == {"Ren\u00e9", "ana"}
            left = connection.exec_driver_sql("SELECT person FROM geoind_person").scalars()
            assert set(left) <= {"Ren\u00e9", "ana"}


def test_a_database_of_the_second_version_gets_sessions_and_keeps_the_rest(url: str) -> None:
    with Ledger(url, budget=1, window=DAY) as ledger:
        ledger.charge("ana", 0.25, once="home")
        ledger.prune()
        with ledger._database.transaction(writes=True) as connection:
            connection.exec_driver_sql("DROP TABLE geoind_session")
            connection.exec_driver_sql("UPDATE geoind_schema SET version = 2")
    for number in (1, 2):
        with Ledger(url, budget=1, window=DAY) as ledger:
            assert ledger.charge("ana", 0.25, once="home") == 0.75
            assert len(ledger.history("ana")) == 1
            assert ledger.save_session("ana", number, "here")
            assert ledger.session("ana") == (number, "here")
            with ledger._database.transaction(writes=False) as connection:
                said = connection.exec_driver_sql("SELECT version FROM geoind_schema ORDER BY version").scalars()
                # Written down once, by the first who came.
                assert list(said) == [2, 3]
    with pytest.raises(InvalidInputError, match="pruned"):
        Ledger(url, budget=1, window=2 * DAY)


def test_a_name_with_space_around_it_may_be_in_a_database_of_today_and_is_left_alone(url: str) -> None:
    with Ledger(url, budget=1) as ledger, ledger._database.transaction(writes=True) as connection:
        connection.exec_driver_sql("INSERT INTO geoind_total VALUES (' ana', 'any', 1000, 1)")
    with Ledger(url, budget=1) as ledger:
        assert ledger.charge("ana", 0.25) == 0.75
        assert ledger.prune(keep=DAY) == 0


def test_a_database_of_a_later_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(f"sqlite:///{path}", budget=1).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE geoind_schema SET version = 99")
    with pytest.raises(LedgerError, match="version 99, this geoind knows 3"):
        Ledger(f"sqlite:///{path}", budget=1)


def test_a_migration_that_fails_changes_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Old(url)) as old:
        old.charge("ana", UNITS // 4)

    def fail(*_: object) -> None:
        raise RuntimeError("the power is gone")

    with monkeypatch.context() as broken:
        broken.setattr("geoind.budgets.schema._rename", fail)
        with pytest.raises(RuntimeError):
            Ledger(url, budget=1)
    with Ledger(url, budget=1) as ledger:
        assert ledger.remaining("ana") == 0.75


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize("form", ["sqlite:///{path}", "sqlite:///file:{path}?uri=true"])
def test_a_ledgers_files_are_the_owners_alone(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()
    connect = sqlite3.connect

    def watch(*arguments: Any, **options: Any) -> Any:
        seen.update(modes(tmp_path))
        return connect(*arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", watch)
    monkeypatch.setattr(sqlite3.dbapi2, "connect", watch)
    with Ledger(form.format(path=tmp_path / "ledger.db"), budget=1) as ledger:
        ledger.charge("ana", 0.25)
        assert len(list(tmp_path.iterdir())) == 3
        assert modes(tmp_path) == {0o600}
        ledger.forget("ana")
        assert modes(tmp_path) == {0o600}
    assert seen == {0o600}


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:some?mode=memory&uri=true"])
def test_a_ledger_in_memory_has_no_file(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Ledger(url, budget=1) as ledger:
        ledger.charge("ana", 0.25)
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(LedgerError, match="memory"):
            pickle.dumps(ledger)


def test_a_file_that_others_could_read_is_closed_to_them_when_it_is_updated(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(Old(f"sqlite:///{path}")) as old:
        old.charge("ana", UNITS // 4)
    path.chmod(0o644)
    with Ledger(f"sqlite:///{path}", budget=1):
        assert modes(tmp_path) == {0o600}


def test_nothing_that_a_ledger_keeps_can_be_missing() -> None:
    columns = [column for table in metadata.tables.values() for column in table.columns]
    assert [str(column) for column in columns if column.nullable] == []
    assert all(column.primary_key for column in metadata.tables["geoind_once"].columns)
