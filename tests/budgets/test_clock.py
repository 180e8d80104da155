"""Ledgers with a clock that stands still until it is set: to the microsecond, what counts and what is kept."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from geoind import BudgetExceededError, InvalidInputError, Ledger

DAY = timedelta(days=1)
TICK = DAY / 2**31
"""The least that a day number of today, a double, can grow by: about 40 microseconds."""
EPOCH = 2440587.5
"""The day number of 1970."""


class Clock:
    """What time SQLite thinks it is, as days since 1970."""

    def __init__(self) -> None:
        self.days = 20_000.0

    def julianday(self, _when: str) -> float:
        return EPOCH + self.days

    def wait(self, time: timedelta) -> None:
        self.days += time / DAY


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of every SQLite database that is opened from now on."""
    clock, connect = Clock(), sqlite3.dbapi2.connect

    def connected(*arguments: Any, **options: Any) -> Any:
        connection = connect(*arguments, **options)
        connection.create_function("julianday", 1, clock.julianday)
        return connection

    monkeypatch.setattr(sqlite3.dbapi2, "connect", connected)
    monkeypatch.setattr(sqlite3, "connect", connected)
    return clock


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The address of an empty database whose clock can be set."""
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def test_a_charge_is_dated_by_the_databases_clock_to_the_microsecond(url: str, clock: Clock) -> None:
    with Ledger(url, budget=1) as ledger:
        ledger.charge("ana", 0.25)
        clock.wait(DAY / 4)
        ledger.charge("ana", 0.25)
        begin = datetime(1970, 1, 1, tzinfo=UTC) + 20_000 * DAY
        assert [charge.at for charge in ledger.history("ana")] == [begin, begin + DAY / 4]


@pytest.mark.parametrize("window", [DAY / 2, DAY, 30 * DAY], ids=str)
def test_a_charge_counts_until_its_window_has_passed_and_not_a_moment_longer(
    url: str, clock: Clock, window: timedelta
) -> None:
    with Ledger(url, budget=1, window=window) as ledger:
        ledger.charge("ana", 1.0)
        clock.wait(window - TICK)
        assert ledger.spent("ana") == 1.0
        with pytest.raises(BudgetExceededError):
            ledger.charge("ana", 1.0)
        clock.wait(TICK)
        assert ledger.spent("ana") == 0.0
        ledger.charge("ana", 1.0)
        assert ledger.lifetime("ana") == 2.0


@pytest.mark.parametrize("keep", [DAY / 2, DAY, 30 * DAY], ids=str)
def test_pruning_deletes_what_is_older_than_was_said_and_nothing_that_is_as_old(
    url: str, clock: Clock, keep: timedelta
) -> None:
    with Ledger(url, budget=1) as ledger:
        ledger.charge("ana", 0.125)
        clock.wait(TICK)
        ledger.charge("ana", 0.25)
        clock.wait(keep)
        assert ledger.prune(keep=keep) == 1
        assert [charge.epsilon for charge in ledger.history("ana")] == [0.25]
        assert ledger.prune(keep=keep) == 0
        assert ledger.spent("ana") == 0.375


def test_pruning_again_and_again_leaves_one_moment_behind_and_the_latest_counts(url: str, clock: Clock) -> None:
    with Ledger(url, budget=1) as ledger:
        for keep in (3 * DAY, DAY, DAY):
            ledger.prune(keep=keep)
            clock.wait(DAY)
        with ledger._database.transaction(writes=False) as connection:
            [before] = connection.exec_driver_sql("SELECT before FROM geoind_pruned").scalars()
        assert timedelta(microseconds=before) == (20_000 + 2 - 1) * DAY
    # Pruned a day ago, and up to a day before that.
    Ledger(url, budget=1, window=2 * DAY).close()
    with pytest.raises(InvalidInputError, match="pruned"):
        Ledger(url, budget=1, window=2 * DAY + TICK)


def test_the_longest_window_is_what_pruning_keeps_however_late_it_came(url: str, clock: Clock) -> None:
    for window in (2 * DAY, 5 * DAY, 3 * DAY, None):
        Ledger(url, budget=1, window=window).close()
    with Ledger(url, budget=1) as ledger:
        ledger.charge("ana", 0.25)
        clock.wait(5 * DAY)
        assert ledger.prune() == 0
        assert ledger.prune(keep=5 * DAY) == 0
        with pytest.raises(InvalidInputError, match=r"longest window of the database, 5 days, 0:00:00$"):
            ledger.prune(keep=5 * DAY - TICK)
        clock.wait(TICK)
        assert ledger.prune() == 1
