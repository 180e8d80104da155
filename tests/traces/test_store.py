"""Sessions in the ledger's database."""

from pathlib import Path
from typing import TypedDict

import pytest
import sqlalchemy as sql

from geoind import BudgetExceededError, InvalidInputError, Ledger, SessionConflictError, TraceSession
from geoind.traces import Independent, PrivateZone, SessionStore, SparseVector

KEY = bytes(range(32))


class Where(TypedDict):
    lat: float
    lon: float


PARIS: Where = {"lat": 48.8584, "lon": 2.2945}
WALK = [(48.85 + 0.02 * (step // 8), 2.29, 300.0 * step) for step in range(24)]
SPARSE = SparseVector(0.01, 0.01, 1500, 0.005)


def test_a_new_worker_for_each_report_answers_as_one_session_would(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    one = TraceSession(SPARSE, key=KEY, person="ana")
    for lat, lon, time in WALK:
        with Ledger(url, budget=10) as ledger:
            answer = SessionStore(ledger, SPARSE, KEY).report("ana", lat=lat, lon=lon, time=time)
        assert answer == one.report(lat=lat, lon=lon, time=time)
    with Ledger(url, budget=10) as ledger:
        assert ledger.spent("ana") == pytest.approx(one.spent)
        assert SessionStore(ledger, SPARSE, KEY).spent("ana") == one.spent


def test_a_worker_that_dies_before_it_saves_has_cost_one_report_and_not_two() -> None:
    class Dying(Ledger):
        def save_session(self, person: str | int, number: int, state: str) -> bool:  # noqa: ARG002
            raise KeyboardInterrupt

    with Dying("sqlite://", budget=1) as ledger:
        store = SessionStore(ledger, Independent(0.01), KEY)
        with pytest.raises(KeyboardInterrupt):
            store.report("ana", **PARIS, time=0)
        Dying.save_session = Ledger.save_session  # type: ignore[method-assign]
        assert store.report("ana", **PARIS, time=0) == TraceSession(
            Independent(0.01), key=KEY, person="ana"
        ).report(**PARIS, time=0)
        assert ledger.spent("ana") == pytest.approx(0.01)


def test_of_two_workers_at_the_same_time_one_publishes_nothing() -> None:
    with Ledger("sqlite://", budget=1) as ledger:
        store = SessionStore(ledger, Independent(0.01), KEY)

        class Meanwhile(Independent):
            def answer(self, past, place):  # type: ignore[no-untyped-def]
                store.report("ana", **PARIS, time=past.time + 1)
                return super().answer(past, place)

        for time in (0.0, 10.0):
            with pytest.raises(SessionConflictError, match="same time: report again"):
                SessionStore(ledger, Meanwhile(0.01), KEY).report("ana", **PARIS, time=time)
            saved = ledger.session("ana")
            assert saved is not None
            assert f'"time": {time + 1}' in saved[1]


def test_a_yes_that_could_not_be_paid_is_remembered() -> None:
    method = SparseVector(0.01, 0.01, 1500)
    with Ledger("sqlite://", budget=0.021) as ledger:
        store = SessionStore(ledger, method, KEY)
        store.report("ana", **PARIS, time=0)
        with pytest.raises(BudgetExceededError):
            store.report("ana", lat=49.9, lon=4.0, time=60)
        with pytest.raises(BudgetExceededError):
            store.report("ana", **PARIS, time=120)


def test_persons_do_not_share_a_session_and_forgetting_one_deletes_it() -> None:
    with Ledger("sqlite://", budget=1) as ledger:
        store = SessionStore(ledger, SPARSE, KEY)
        assert store.report("ana", **PARIS, time=0) != store.report("bea", **PARIS, time=0)
        ledger.forget("ana")
        assert ledger.session("ana") is None
        assert ledger.session("bea") is not None
        with pytest.raises(InvalidInputError, match="32 bytes"):
            SessionStore(ledger, SPARSE, b"short")


def test_a_database_of_version_2_gets_sessions_and_keeps_its_charges(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger(url, budget=1) as ledger:
        ledger.charge("ana", 0.25)
    engine = sql.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE geoind_session")
        connection.exec_driver_sql("UPDATE geoind_schema SET version = 2")
    engine.dispose()
    with Ledger(url, budget=1) as ledger:
        assert ledger.spent("ana") == 0.25
        assert ledger.session("ana") is None
        assert ledger.save_session("ana", 1, "{}")
        assert not ledger.save_session("ana", 1, "{}")
        assert not ledger.save_session("ana", 3, "{}")
        assert ledger.session("ana") == (1, "{}")


def test_inside_a_persons_zone_the_stored_session_answers_its_centre_and_pays_nothing() -> None:
    with Ledger("sqlite://", budget=1) as ledger:
        store = SessionStore(ledger, SPARSE, KEY)
        zone = PrivateZone.around(**PARIS, epsilon=0.01, key=KEY, ledger=ledger, person="ana")
        for minute in range(3):
            assert store.report("ana", **PARIS, time=60 * minute, zone=zone) == (zone.lat, zone.lon)
        assert ledger.spent("ana") == pytest.approx(0.01)
        assert store.report("ana", lat=48.95, lon=2.4, time=600, zone=zone) != (zone.lat, zone.lon)
        assert ledger.spent("ana") == pytest.approx(0.01 + SPARSE.fresh + SPARSE.test)
