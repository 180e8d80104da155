"""The tables of a ledger, their version, and who may read their files."""

import pickle
import sqlite3
import stat
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from geoind import Ledger
from geoind.budgets.database import VERSION, metadata
from geoind.errors import LedgerError

DAY = timedelta(days=1)


def test_a_stored_name_with_space_around_it_is_another_person(url: str) -> None:
    with Ledger(url, budget=1) as ledger, ledger._database.transaction(writes=True) as connection:
        connection.exec_driver_sql("INSERT INTO geoind_total VALUES (' ana', 'any', 1000, 1)")
    with Ledger(url, budget=1) as ledger:
        assert ledger.charge("ana", 0.25) == 0.75
        assert ledger.prune(keep=DAY) == 0


@pytest.mark.parametrize("change", ["UPDATE geoind_schema SET version = 3", "DROP TABLE geoind_schema"])
def test_a_database_of_another_version_is_refused_and_left_alone(tmp_path: Path, change: str) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(f"sqlite:///{path}", budget=1) as ledger:
        ledger.charge("ana", 0.25)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(change)
        before = list(connection.iterdump())
    with pytest.raises(LedgerError, match=f"has version (3|unknown), this geoind needs version {VERSION}"):
        Ledger(f"sqlite:///{path}", budget=1)
    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == before


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


def test_no_column_of_a_ledger_is_nullable() -> None:
    columns = [column for table in metadata.tables.values() for column in table.columns]
    assert [str(column) for column in columns if column.nullable] == []
    assert all(column.primary_key for column in metadata.tables["geoind_once"].columns)
