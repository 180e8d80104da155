"""One person's account in one transaction: reserved, charged and saved together, or not at all."""

import threading
from collections import Counter
from datetime import timedelta

import pytest
import sqlalchemy
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind import BudgetExceededError, InvalidInputError, Ledger
from geoind.accounting import PersonLevel, Promise
from geoind.budgets.costs import as_cost, limit_of
from geoind.errors import LedgerError
from tests.postgres import Server
from tests.trials import trials

BUDGETS: dict[str, float | Promise] = {
    "sum": 0.05,
    "promise": Promise(level=10, radius=200, delta=1e-5),
}


def reserve(ledger: Ledger, costs: list[float]) -> None:
    with ledger.locked("ana") as account:
        account.save_session("tag", "here")
        account.reserve(costs)


def fail(ledger: Ledger) -> None:
    with ledger.locked("ana") as account:
        account.charge(0.02, label="")
        account.save_session("tag", "here")
        raise ZeroDivisionError


def test_what_is_reserved_is_not_charged_and_what_is_charged_is(url: str) -> None:
    with Ledger(url, budget=0.05) as ledger:
        with ledger.locked("ana") as account:
            account.reserve([0.02, 0.03])
            account.charge(0.02, label="fresh report")
        assert ledger.spent("ana") == 0.02
        assert [(entry.epsilon, entry.label) for entry in ledger.history("ana")] == [(0.02, "fresh report")]


def test_more_than_the_budget_is_refused_before_anything_is_written(url: str) -> None:
    with Ledger(url, budget=0.05) as ledger:
        ledger.charge("ana", 0.03)
        with pytest.raises(BudgetExceededError) as refused:
            reserve(ledger, [0.01, 0.02])
        assert (refused.value.requested, refused.value.remaining) == (0.03, 0.02)
        assert (ledger.spent("ana"), ledger.session("ana", "tag")) == (0.03, None)


def test_an_error_undoes_everything(url: str) -> None:
    with Ledger(url, budget=0.05) as ledger:
        with pytest.raises(ZeroDivisionError):
            fail(ledger)
        assert (ledger.spent("ana"), ledger.session("ana", "tag")) == (0.0, None)
        with ledger.locked("ana") as account:
            account.charge(0.02, label="")
        assert ledger.spent("ana") == 0.02


def test_a_commit_that_fails_is_an_error_of_the_ledger_and_leaves_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger(url, budget=0.05) as ledger:

        def fail(*_: object) -> None:
            raise sqlalchemy.exc.OperationalError("COMMIT", {}, Exception("the disk is full"))

        with monkeypatch.context() as broken:
            broken.setattr(ledger._database.engine.dialect, "do_commit", fail)
            with (
                pytest.raises(LedgerError, match="nothing is published: the disk is full"),
                ledger.locked("ana") as account,
            ):
                account.charge(0.02, label="")
        assert ledger.spent("ana") == 0.0


def test_a_person_is_locked_until_the_end_and_others_are_not(server: Server) -> None:
    order: list[str] = []
    entered = threading.Event()

    def wait() -> None:
        entered.set()
        with ledger.locked("ana"):
            order.append("second")

    with Ledger(server.new_database(), budget=1) as ledger:
        with ledger.locked("ana") as account:
            thread = threading.Thread(target=wait)
            thread.start()
            assert entered.wait(60)
            ledger.charge("ben", 0.1)
            thread.join(0.3)
            account.charge(0.1, label="")
            order.append("first")
        thread.join(60)
    assert order == ["first", "second"]


def test_what_counts_in_a_window_is_what_an_account_counts(url: str) -> None:
    with Ledger(url, budget=0.05, window=timedelta(days=1)) as ledger:
        ledger.charge("ana", 0.04)
        with ledger._database.transaction(writes=True) as connection:
            connection.exec_driver_sql("UPDATE geoind_charge SET at = at - 172800000000")
        with ledger.locked("ana") as account:
            account.reserve([0.05])
    with Ledger(url, budget=0.05) as ledger, pytest.raises(BudgetExceededError):
        reserve(ledger, [0.05])


def test_an_epsilon_that_the_budget_cannot_count_is_refused() -> None:
    with Ledger("sqlite://", budget=PersonLevel(1.0)) as ledger, ledger.locked("ana") as account:
        with pytest.raises(InvalidInputError, match="level per person"):
            account.reserve([0.01])
        with pytest.raises(InvalidInputError, match="level per person"):
            account.charge(0.01, label="")


COSTS = st.lists(st.sampled_from([0.001, 0.002, 0.004, 0.01]), max_size=12)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUDGETS)
@settings(max_examples=trials(300), deadline=None)
@given(before=COSTS, bill=COSTS, kept=st.lists(st.booleans(), min_size=12, max_size=12))
def test_what_allows_all_charges_allows_each_part_of_them(
    name: str, before: list[float], bill: list[float], kept: list[bool]
) -> None:
    """So a step whose largest charges are reserved is never refused after a question."""
    limit = limit_of(BUDGETS[name])

    def allowed(costs: list[float]) -> bool:
        counted = Counter(map(as_cost, costs))
        return limit.allows(counted)

    part = [cost for cost, keep in zip(bill, kept, strict=False) if keep]
    if allowed([*before, *bill]):
        assert allowed([*before, *part])
