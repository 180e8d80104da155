"""What time gives back, what pruning keeps, and what forgetting leaves: nothing."""

from datetime import timedelta
from pathlib import Path

import pytest

from geoind import BudgetExceededError, InvalidInputError, Ledger

DAY = timedelta(days=1)


def age(ledger: Ledger, by: timedelta) -> None:
    """Make every charge older, as if time had passed."""
    with ledger._database.transaction(writes=True) as connection:
        connection.exec_driver_sql(f"UPDATE geoind_charge SET at = at - {by // timedelta(microseconds=1)}")


def test_a_rolling_window_gives_back_what_is_older_and_no_earlier(url: str) -> None:
    with Ledger(url, budget=1, window=DAY) as ledger:
        ledger.charge("ana", 0.5)
        age(ledger, timedelta(hours=12))
        ledger.charge("ana", 0.5)
        age(ledger, timedelta(hours=11, minutes=59))
        with pytest.raises(BudgetExceededError):
            ledger.charge("ana", 0.25)
        age(ledger, timedelta(minutes=2))
        assert ledger.spent("ana") == 0.5
        assert ledger.charge("ana", 0.5) == 0.0
        assert ledger.lifetime("ana") == 1.5


def test_a_lifetime_gives_nothing_back(url: str) -> None:
    with Ledger(url, budget=1) as ledger:
        ledger.charge("ana", 1.0)
        age(ledger, timedelta(days=40_000))
        with pytest.raises(BudgetExceededError):
            ledger.charge("ana", 0.1)


def test_pruning_keeps_what_counts(url: str) -> None:
    with Ledger(url, budget=1, window=DAY) as ledger:
        ledger.charge("ana", 0.5)
        age(ledger, 2 * DAY)
        ledger.charge("ana", 0.25)
        assert ledger.prune() == 1
        assert [c.epsilon for c in ledger.history("ana")] == [0.25]
        assert (ledger.spent("ana"), ledger.lifetime("ana")) == (0.25, 0.75)
        assert ledger.prune() == 0
        with pytest.raises(InvalidInputError, match=r"longest window of the database, 1 day"):
            ledger.prune(keep=DAY / 2)


def test_pruning_a_lifetime_ledger_needs_a_length_and_keeps_the_sum(url: str) -> None:
    with Ledger(url, budget=1) as ledger:
        ledger.charge("ana", 0.5)
        age(ledger, 2 * DAY)
        with pytest.raises(InvalidInputError, match="keep must be given"):
            ledger.prune()
        assert ledger.prune(keep=DAY) == 1
        assert ledger.remaining("ana") == 0.5


def test_pruning_with_a_short_window_frees_nothing_that_a_longer_one_counts(url: str) -> None:
    with Ledger(url, budget=1, window=DAY) as daily, Ledger(url, budget=0.5, window=7 * DAY) as weekly:
        weekly.charge("ana", 0.1, reports=5)
        age(weekly, 2 * DAY)
        with pytest.raises(InvalidInputError, match=r"longest window of the database, 7 days"):
            daily.prune(keep=DAY)
        assert daily.prune() == 0
        with pytest.raises(BudgetExceededError):
            weekly.charge("ana", 0.1)
        age(weekly, 6 * DAY)
        assert daily.prune() == 1
        assert weekly.remaining("ana") == 0.5


def test_a_window_longer_than_what_pruning_left_is_refused(url: str) -> None:
    with Ledger(url, budget=1, window=DAY) as ledger:
        ledger.prune()
    with pytest.raises(InvalidInputError, match="pruned"):
        Ledger(url, budget=1, window=2 * DAY)
    Ledger(url, budget=1, window=DAY).close()
    Ledger(url, budget=1).close()


def test_forgetting_leaves_nothing_and_changes_no_other_person(url: str) -> None:
    with Ledger(url, budget=1) as ledger:
        ledger.charge("ana", 0.5, once="home")
        ledger.charge("ana", 0.25)
        ledger.charge("ben", 0.25)
        assert ledger.forget("ana") == 2
        assert ledger.history("ana") == []
        assert ledger.lifetime("ana") == 0
        assert ledger.charge("ana", 0.5, once="home") == 0.5
        assert ledger.remaining("ben") == 0.75
        assert ledger.forget("zoe") == 0


def test_a_forgotten_name_is_not_left_in_the_files(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}", budget=100) as ledger:
        for number in range(200):
            ledger.charge("anastasia", 0.01, label=f"anastasia {number}", once=str(number))
            ledger.charge("ben", 0.01)
        found = [path.name for path in tmp_path.iterdir() if b"anastasia" in path.read_bytes()]
        assert found
        ledger.forget("anastasia")
        assert [path.name for path in tmp_path.iterdir() if b"anastasia" in path.read_bytes()] == []
        assert len(ledger.history("ben")) == 200


@pytest.mark.parametrize("keep", [-DAY, 86_400, "1 day"], ids=repr)
def test_pruning_needs_a_length_of_time(keep: timedelta) -> None:
    with (
        Ledger("sqlite://", budget=1) as ledger,
        pytest.raises(InvalidInputError, match="keep must be a timedelta"),
    ):
        ledger.prune(keep=keep)
    with Ledger("sqlite://", budget=1) as ledger:
        assert ledger.prune(keep=timedelta(0)) == 0


def test_a_token_pays_once_per_person_and_for_ever(url: str) -> None:
    with Ledger(url, budget=1, window=DAY) as ledger:
        assert ledger.charge("ana", 0.5, once="home") == 0.5
        assert ledger.charge("ana", 0.5, once="home") == 0.5
        assert ledger.charge("ana", 0.5, once="work") == 0.0
        assert ledger.charge("ben", 0.5, once="home") == 0.5
        with pytest.raises(BudgetExceededError):
            ledger.charge("ana", 0.5, once="gym")
        age(ledger, 2 * DAY)
        ledger.prune()
        assert ledger.charge("ana", 0.5, once="home") == 1.0
        assert ledger.charge("ana", 0.5, once="gym") == 0.5  # the refused token was not kept
        assert len(ledger.history("ana")) == 1
