"""A session pays for what it publishes, once: refusals, failures, races and kills."""

import itertools
import multiprocessing
import os
import random
import signal
import threading
import time as clock
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy

from geoind import BudgetExceededError, InvalidInputError, Ledger, Location, TraceSession
from geoind.accounting import Promise
from geoind.budgets.ledger import Account
from geoind.errors import LedgerError
from geoind.traces import (
    Cached,
    GuardedPlace,
    History,
    Independent,
    Predictive,
    PrivateZone,
    Rationed,
    SparseVector,
    Switching,
    TraceMethod,
)
from geoind.traces.session import session_tag

KEY = bytes(range(32))
PARIS: dict[str, Any] = {"lat": 48.8584, "lon": 2.2945}
FAR: dict[str, Any] = {"lat": 49.9, "lon": 4.0}
SPARSE = SparseVector(0.01, 0.01, 1500)
METHODS: dict[str, TraceMethod] = {
    "independent": Independent(0.01),
    "predictive": Predictive.for_accuracy(500),
    "sparse": SPARSE,
    "sparse with a choice": SparseVector(0.01, 0.012, 1500, 0.005),
    "switching": Switching(SparseVector(0.01, 0.012, 1500, 0.005), 2),
    "cached": Cached(0.01, minutes=12),
    "rationed": Rationed(Independent(0.01), 1.0),
}
BUDGETS: dict[str, float | Promise] = {"sum": 0.1, "promise": Promise(level=16, radius=200, delta=1e-5)}
ZONE = PrivateZone(PARIS["lon"], PARIS["lat"], 900.0)
WALK = [(48.85 + 0.05 * (step // 3), 2.29, 300.0 * step) for step in range(60)]


def counts(ledger: Ledger) -> Counter[float]:
    """Return how many charges of each epsilon a ledger wrote, to 12 digits: it rounds up to units of 1e-15."""
    return Counter(round(entry.epsilon, 12) for entry in ledger.history("ana"))


def stored(ledger: Ledger) -> str | None:
    """Return the newest state of the session in a ledger."""
    return ledger.session("ana", session_tag(KEY, "ana"))


def costs(session: TraceSession) -> Counter[float]:
    """Return how many charges of each epsilon a session counted."""
    return Counter(round(cost, 12) for cost in session.costs.elements())


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which questions were answered."""
    answered: list[str] = []
    for name in ("report", "is_near", "has_left", "nearest"):
        ask = getattr(GuardedPlace, name)

        def watch(place: GuardedPlace, *rest: Any, ask: Callable[..., Any] = ask, name: str = name) -> Any:
            answer = ask(place, *rest)
            answered.append(name)
            return answer

        monkeypatch.setattr(GuardedPlace, name, watch)
    return answered


@pytest.mark.parametrize("zone", [None, ZONE], ids=["no zone", "zone"])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", METHODS)
def test_a_refused_step_costs_nothing_draws_nothing_and_changes_nothing(
    name: str, budget: str, zone: PrivateZone | None, drawn: list[str]
) -> None:
    with Ledger("sqlite://", budget=BUDGETS[budget]) as ledger:
        session = TraceSession(METHODS[name], key=KEY, ledger=ledger, person_id="ana", zone=zone)
        refused = 0
        for lat, lon, time in WALK:
            before = session.state(), counts(ledger), len(drawn)
            try:
                session.report(lat=lat, lon=lon, time=time)
            except BudgetExceededError:
                refused += 1
                assert (session.state(), counts(ledger), len(drawn)) == before
            assert counts(ledger) == costs(session)
        assert refused > 0
        assert costs(session)


@pytest.mark.parametrize("name", METHODS)
def test_a_step_is_refused_exactly_when_its_dearest_answer_is_not_paid_for(name: str) -> None:
    method = METHODS[name]
    most = sum(method.max_charges)
    for budget, answered in ((most, True), (most * (1 - 1e-6), False)):
        with Ledger("sqlite://", budget=budget) as ledger:
            session = TraceSession(method, key=KEY, ledger=ledger, person_id="ana")
            if answered:
                session.report(**PARIS, time=0)
            else:
                with pytest.raises(BudgetExceededError):
                    session.report(**PARIS, time=0)
                assert (ledger.spent("ana"), session.spent) == (0, 0)


def test_an_answer_without_a_question_needs_no_budget() -> None:
    with Ledger("sqlite://", budget=0.01) as ledger:
        session = TraceSession(Cached(0.01, minutes=10), key=KEY, ledger=ledger, person_id="ana")
        first = session.report(**PARIS, time=0)
        assert session.report(**PARIS, time=300) == first
        with pytest.raises(BudgetExceededError):
            session.report(**PARIS, time=600)


def test_a_test_of_a_run_is_not_asked_when_its_yes_could_not_be_answered(drawn: list[str]) -> None:
    with Ledger("sqlite://", budget=0.039) as ledger:
        session = TraceSession(SPARSE, key=KEY, ledger=ledger, person_id="ana")
        session.report(**PARIS, time=0)
        for time, where in ((60, PARIS), (120, FAR)):
            with pytest.raises(BudgetExceededError):
                session.report(**where, time=time)
        assert drawn == ["report"]
        assert ledger.spent("ana") == pytest.approx(0.02)


class Failing(Predictive):
    """A method that fails after a question, at some times."""

    def answer(self, history: History, place: GuardedPlace) -> tuple[History, tuple[float, float]]:
        after, report = super().answer(history, place)
        if history.time in (0.0, 120.0):
            raise ZeroDivisionError
        return after, report


def test_what_a_method_asked_before_it_failed_stays_paid() -> None:
    """Whether it fails may depend on the answer."""
    with Ledger("sqlite://", budget=1) as ledger:
        session = TraceSession(Failing(0.01, 0.02, 1000), key=KEY, ledger=ledger, person_id="ana")
        for time in (0.0, 60.0, 120.0, 180.0):
            try:
                session.report(**PARIS, time=time)
            except ZeroDivisionError:
                assert time in (0.0, 120.0)
            assert ledger.spent("ana") == pytest.approx(session.spent)
        assert ledger.spent("ana") >= 0.06 - 1e-9


def test_a_run_whose_yes_was_given_is_over_when_the_method_fails() -> None:
    class Fragile(SparseVector):
        def answer(self, history: History, place: GuardedPlace) -> tuple[History, tuple[float, float]]:
            if history.time == 60 and place.has_left(self.limit):
                raise ZeroDivisionError
            return super().answer(history, place)

    with Ledger("sqlite://", budget=1) as ledger:
        session = TraceSession(Fragile(0.01, 0.01, 1500), key=KEY, ledger=ledger, person_id="ana")
        session.report(**PARIS, time=0.0)
        with pytest.raises(ZeroDivisionError):
            session.report(**FAR, time=60.0)
        session.report(**PARIS, time=120.0)
        # The test of the first run would have been silent: without a run, home is reported afresh.
        assert ledger.spent("ana") == pytest.approx(0.04)


@contextmanager
def failing_commits(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the database refuse to commit."""

    def fail(*_: object) -> None:
        raise sqlalchemy.exc.OperationalError("COMMIT", {}, Exception("the disk is full"))

    with monkeypatch.context() as broken:
        broken.setattr(ledger._database.engine.dialect, "do_commit", fail)
        yield


@pytest.mark.parametrize("name", METHODS)
def test_a_commit_that_fails_publishes_nothing_and_changes_neither_memory_nor_database(
    name: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger(url, budget=1) as ledger:
        session = TraceSession(METHODS[name], key=KEY, ledger=ledger, person_id="ana")
        whole = TraceSession(METHODS[name], key=KEY, person_id="ana")
        for step, (lat, lon, time) in enumerate(WALK[:12]):
            where: dict[str, Any] = {"lat": lat, "lon": lon, "time": time}
            before = stored(ledger), ledger.spent("ana"), session.state()
            if step % 3 == 1:
                with failing_commits(ledger, monkeypatch):
                    for one in (session, TraceSession(METHODS[name], key=KEY, ledger=ledger, person_id="ana")):
                        with pytest.raises(LedgerError, match="nothing is published"):
                            one.report(**where)
                assert (stored(ledger), ledger.spent("ana"), session.state()) == before
            assert session.report(**where) == whole.report(**where)
        assert ledger.spent("ana") == pytest.approx(whole.spent)


class Breaking(Ledger):
    """A ledger whose database fails at some charge of a step."""

    fails_at = 1

    @contextmanager
    def locked(self, person: str | int) -> Iterator[Account]:
        with super().locked(person) as account:
            charge, made = account.charge, itertools.count(1)

            def pay(*cost: Any, **rest: Any) -> None:
                if next(made) == self.fails_at:
                    raise LedgerError("gone")
                charge(*cost, **rest)

            account.charge = pay  # type: ignore[method-assign]
            yield account


class Stubborn(SparseVector):
    """A method that catches every error and answers anyway."""

    def answer(self, history: History, place: GuardedPlace) -> tuple[History, tuple[float, float]]:
        try:
            return super().answer(history, place)
        except Exception:
            return history, (2.0, 48.0)


def test_a_method_that_catches_the_ledgers_error_publishes_nothing() -> None:
    for ledger, error in (
        (Ledger("sqlite://", budget=0.01), BudgetExceededError),
        (Breaking("sqlite://", budget=1), LedgerError),
    ):
        with ledger:
            session = TraceSession(Stubborn(0.01, 0.01, 1500), key=KEY, ledger=ledger, person_id="ana")
            with pytest.raises(error):
                session.report(**PARIS, time=0)
            assert (ledger.spent("ana"), session.spent) == (0, 0)


@pytest.mark.parametrize("fails_at", [1, 2])
def test_an_error_of_the_ledger_undoes_the_charges_before_it(fails_at: int) -> None:
    breaking = Breaking("sqlite://", budget=1)
    breaking.fails_at = fails_at
    with breaking as ledger:
        session = TraceSession(SPARSE, key=KEY, ledger=ledger, person_id="ana")
        with pytest.raises(LedgerError, match="gone"):
            session.report(**PARIS, time=0)
        assert (ledger.spent("ana"), stored(ledger), session.spent) == (0, None, 0)


@pytest.mark.parametrize("method", [Independent(0.01), SPARSE], ids=["one charge", "two charges"])
def test_a_lost_answer_comes_again_for_nothing_when_the_budget_is_used_up(method: TraceMethod) -> None:
    budget = sum(method.max_charges)
    with Ledger("sqlite://", budget=budget) as ledger:
        session = TraceSession(method, key=KEY, ledger=ledger, person_id="ana")
        before = session.state()
        first = session.report(**PARIS, time=0)
        again = TraceSession.resume(before, method, key=KEY, ledger=ledger, person_id="ana")
        assert again.report(**PARIS, time=0) == first
        # Another method that could not be paid for repeats the answer, too.
        other = TraceSession(Independent(0.5), key=KEY, ledger=ledger, person_id="ana")
        assert other.report(**PARIS, time=0) == first
        with pytest.raises(InvalidInputError, match="one session per person and key"):
            other.report(lat=48.9, lon=2.3, time=0)
        with pytest.raises(BudgetExceededError):
            other.report(**PARIS, time=1)
        assert ledger.spent("ana") == pytest.approx(budget)


@pytest.mark.parametrize("zone", [None, ZONE], ids=["no zone", "zone"])
@pytest.mark.parametrize("name", METHODS)
def test_all_sessions_of_a_person_and_a_key_answer_and_pay_as_one(
    name: str, zone: PrivateZone | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New ones, old states and copies take turns; answers and commits are lost meanwhile."""
    method, chance = METHODS[name], random.Random(7)
    alone = TraceSession(method, key=KEY, person_id="ana", zone=zone)
    with Ledger("sqlite://", budget=100) as ledger:
        rest: dict[str, Any] = {"key": KEY, "ledger": ledger, "person_id": "ana", "zone": zone}
        states = [alone.state()]
        kept = TraceSession(method, **rest)

        def report(**where: Any) -> Location[float]:
            match chance.randrange(3):
                case 0:
                    return kept.report(**where)
                case 1:
                    return TraceSession(method, **rest).report(**where)
            return TraceSession.resume(chance.choice(states), method, **rest).report(**where)

        for step, (lat, lon, time) in enumerate(WALK):
            where: dict[str, Any] = {"lat": lat, "lon": lon, "time": time}
            if chance.random() < 0.3:
                with failing_commits(ledger, monkeypatch), pytest.raises(LedgerError):
                    report(**where)
            answer = alone.report(**where)
            states.append(alone.state())
            for _ in range(3):
                assert report(**where) == answer
                with pytest.raises(InvalidInputError, match="same time"):
                    report(lat=lat + 0.001, lon=lon, time=time)
                if step:
                    with pytest.raises(InvalidInputError, match="before the last"):
                        report(lat=lat, lon=lon, time=WALK[chance.randrange(step)][2])
            assert counts(ledger) == costs(alone)
            assert stored(ledger) == alone.state()
        assert costs(alone)


@pytest.mark.parametrize("name", METHODS)
def test_walks_that_begin_again_publish_no_second_answer_about_a_position(name: str) -> None:
    with Ledger("sqlite://", budget=100) as ledger:
        answers: dict[int, set[Location[float]]] = {}
        charged: Counter[float] = Counter()
        for start in range(10):
            session = TraceSession(METHODS[name], key=KEY, ledger=ledger, person_id="ana")
            for step in range(start, 20):
                try:
                    answer = session.report(lat=48.85 + 0.002 * step, lon=2.29, time=60 * step)
                except InvalidInputError:
                    continue
                answers.setdefault(step, set()).add(answer)
            charged += costs(session)
        assert [len(given) for given in answers.values()] == [1] * 20
        assert counts(ledger) == charged


@pytest.mark.parametrize("zone", [None, ZONE], ids=["no zone", "zone"])
def test_copies_of_one_state_share_the_first_yes_of_the_run_that_was_paid(zone: PrivateZone | None) -> None:
    alone = TraceSession(SPARSE, key=KEY, person_id="ana", zone=zone)
    with Ledger("sqlite://", budget=100) as ledger:
        rest: dict[str, Any] = {"key": KEY, "ledger": ledger, "person_id": "ana", "zone": zone}
        session = TraceSession(SPARSE, **rest)
        assert session.report(**PARIS, time=0) == alone.report(**PARIS, time=0)
        state = session.state()
        for copy in range(100):
            where: dict[str, Any] = {"lat": PARIS["lat"] + 0.001 * copy, "lon": 2.3, "time": 60.0 + copy}
            assert TraceSession.resume(state, SPARSE, **rest).report(**where) == alone.report(**where)
            with pytest.raises(InvalidInputError, match="same time"):
                TraceSession.resume(state, SPARSE, **rest).report(**(where | {"lon": 2.4}))
        assert counts(ledger) == costs(alone)
        assert session.spent == alone.spent > 0.02


def test_sessions_of_one_person_under_two_keys_pay_for_themselves() -> None:
    with Ledger("sqlite://", budget=100) as ledger:
        sessions = [
            TraceSession(SPARSE, key=key, ledger=ledger, person_id="ana") for key in (KEY, bytes(32), None, None)
        ]
        for lat, lon, time in WALK:
            for session in sessions:
                session.report(lat=lat, lon=lon, time=time)
        assert counts(ledger) == sum(map(costs, sessions), Counter())


@pytest.mark.parametrize("paid", [True, False], ids=["with a ledger", "without"])
@pytest.mark.parametrize("where", [PARIS, FAR], ids=["silent", "yes"])
def test_a_step_that_failed_after_a_question_is_not_asked_again(where: dict[str, Any], paid: bool) -> None:
    class Unsteady(SparseVector):
        def answer(self, history: History, place: GuardedPlace) -> tuple[History, tuple[float, float]]:
            if history.time == 60:
                place.has_left(self.limit)
                raise ZeroDivisionError
            return super().answer(history, place)

    with Ledger("sqlite://", budget=1) as ledger:
        rest: dict[str, Any] = {"ledger": ledger, "person_id": "ana"} if paid else {}
        session = TraceSession(Unsteady(0.01, 0.01, 1500), key=KEY, **rest)
        session.report(**PARIS, time=0)
        with pytest.raises(ZeroDivisionError):
            session.report(**where, time=60)
        for limit in (10.0, 1500.0):
            again = TraceSession.resume(session.state(), SparseVector(0.01, 0.01, limit), key=KEY, **rest)
            with pytest.raises(InvalidInputError, match="failed"):
                again.report(**where, time=60)
        session.report(**PARIS, time=61)


RACED = SparseVector(0.001, 0.001, 100.0, 0.0005)


def race(url: str, worker: int, published: Any) -> None:
    """Report positions of one person as fast as possible, and note each answer of the session."""
    with Ledger(url, budget=0.1, timeout=60) as ledger:
        for step in range(25):
            lat, lon, time = 48.8 + 0.01 * worker, 2.0 + 0.01 * (step % 5), float(clock.time_ns())
            try:
                session = TraceSession(RACED, key=KEY, ledger=ledger, person_id="ana")
                answer = session.report(lat=lat, lon=lon, time=time)
            except (BudgetExceededError, InvalidInputError):  # used up, or overtaken by a later position
                continue
            published.append((time, worker, lat, lon, answer.lat, answer.lon))


@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_workers_that_race_for_one_person_pay_for_what_they_publish(url: str, workers: str) -> None:
    if workers == "threads":
        published: Any = []
        jobs: list[Any] = [threading.Thread(target=race, args=(url, worker, published)) for worker in range(8)]
        run(jobs)
    else:
        context = multiprocessing.get_context("spawn")
        with context.Manager() as manager:
            shared = manager.list()
            run([context.Process(target=race, args=(url, worker, shared)) for worker in range(2)])
            published = list(shared)
    # One session that answers the published positions in their order gives the same answers for the same price.
    alone = TraceSession(RACED, key=KEY, person_id="ana")
    for time, _, lat, lon, *answer in sorted(published):
        assert [*alone.report(lat=lat, lon=lon, time=time)] == answer
    assert len(published) > 10
    with Ledger(url, budget=0.1) as ledger:
        assert counts(ledger) == costs(alone)
        assert TraceSession(RACED, key=KEY, ledger=ledger, person_id="ana").spent == pytest.approx(alone.spent)


def run(jobs: list[Any]) -> None:
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(120)
        assert not job.is_alive()


class Dying(SparseVector):
    """A method whose process is killed in the middle of a step, after all questions."""

    def answer(self, history: History, place: GuardedPlace) -> tuple[History, tuple[float, float]]:
        made = super().answer(history, place)
        if history.time == 600:
            os.kill(os.getpid(), signal.SIGKILL)
        return made


def steps_until_killed(url: str) -> None:
    with Ledger(url, budget=1) as ledger:
        session = TraceSession(Dying(0.01, 0.01, 1500), key=KEY, ledger=ledger, person_id="ana")
        for lat, lon, time in WALK[:6]:
            session.report(lat=lat, lon=lon, time=time)


def test_a_worker_killed_in_the_middle_of_a_step_has_charged_nothing_for_it(url: str) -> None:
    process = multiprocessing.get_context("spawn").Process(target=steps_until_killed, args=(url,))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    alone = TraceSession(SPARSE, key=KEY, person_id="ana")
    with Ledger(url, budget=1) as ledger:
        session = TraceSession(SPARSE, key=KEY, ledger=ledger, person_id="ana")
        for lat, lon, time in WALK[:2]:
            alone.report(lat=lat, lon=lon, time=time)
        assert counts(ledger) == costs(alone)
        for lat, lon, time in WALK[2:6]:
            assert session.report(lat=lat, lon=lon, time=time) == alone.report(lat=lat, lon=lon, time=time)
        assert counts(ledger) == costs(alone)


def test_a_worker_killed_after_the_commit_has_paid_for_an_answer_that_comes_again(url: str) -> None:
    with Ledger(url, budget=0.02) as ledger:
        first = TraceSession(SPARSE, key=KEY, ledger=ledger, person_id="ana").report(**PARIS, time=0)
    with Ledger(url, budget=0.02) as ledger:
        assert TraceSession(SPARSE, key=KEY, ledger=ledger, person_id="ana").report(**PARIS, time=0) == first
        assert ledger.spent("ana") == pytest.approx(0.02)
