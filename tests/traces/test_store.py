"""Sessions in the ledger's database."""

from pathlib import Path
from typing import TypedDict

import pytest

from geoind import InvalidInputError, Ledger, TraceSession
from geoind.traces import PrivateZone, SessionStore, SparseVector

KEY = bytes(range(32))


class Where(TypedDict):
    lat: float
    lon: float


PARIS: Where = {"lat": 48.8584, "lon": 2.2945}
WALK = [(48.85 + 0.02 * (step // 8), 2.29, 300.0 * step) for step in range(24)]
SPARSE = SparseVector(0.01, 0.01, 1500, 0.005)


def test_a_new_worker_for_each_report_answers_as_one_session_would(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    one = TraceSession(SPARSE, key=KEY, person_id="ana")
    for lat, lon, time in WALK:
        with Ledger(url, budget=10) as ledger:
            answer = SessionStore(ledger, SPARSE, KEY).report("ana", lat=lat, lon=lon, time=time)
        assert answer == one.report(lat=lat, lon=lon, time=time)
    with Ledger(url, budget=10) as ledger:
        assert ledger.spent("ana") == pytest.approx(one.spent)
        assert SessionStore(ledger, SPARSE, KEY).spent("ana") == one.spent


def test_persons_do_not_share_a_session_and_forgetting_one_deletes_it() -> None:
    with Ledger("sqlite://", budget=1) as ledger:
        store = SessionStore(ledger, SPARSE, KEY)
        assert store.report("ana", **PARIS, time=0) != store.report("bea", **PARIS, time=0)
        ledger.forget("ana")
        assert store.spent("ana") == 0
        assert store.spent("bea") == pytest.approx(0.02)
        with pytest.raises(InvalidInputError, match="32 bytes"):
            SessionStore(ledger, SPARSE, b"short")


def test_in_a_persons_zone_the_stored_session_answers_its_centre_and_pays_once() -> None:
    with Ledger("sqlite://", budget=1) as ledger:
        store = SessionStore(ledger, SPARSE, KEY)
        zone = PrivateZone.around(**PARIS, epsilon=0.01, key=KEY, ledger=ledger, person_id="ana")
        for minute in range(3):
            assert store.report("ana", **PARIS, time=60 * minute, zone=zone) == (zone.lat, zone.lon)
        assert ledger.spent("ana") == pytest.approx(0.01 + SPARSE.fresh + zone.test)
        assert store.report("ana", lat=48.95, lon=2.4, time=600, zone=zone) != (zone.lat, zone.lon)
        assert store.spent("ana") == pytest.approx(ledger.spent("ana") - 0.01)
        assert ledger.spent("ana") == pytest.approx(0.01 + 2 * SPARSE.fresh + zone.test + SPARSE.test)
