"""Somebody who stays pays once, and coming back is cheaper than going on."""

import pytest

from geoind import TraceSession
from geoind.traces import SparseVector

KEY = bytes(range(32))
PARIS = {"lat": 48.8584, "lon": 2.2945}


def test_somebody_who_stays_pays_once_and_somebody_who_moves_pays_again() -> None:
    method = SparseVector(0.02, 0.02, 1500, 0.01)
    session = TraceSession(method, key=KEY)
    for minute in range(500):
        session.report(**PARIS, time=60.0 * minute)
    assert session.spent == pytest.approx(0.04)
    session.report(lat=49.5, lon=2.2945, time=1e6)
    assert session.spent > 0.07


def test_coming_back_to_a_known_place_is_cheaper_than_a_new_one() -> None:
    method = SparseVector(0.02, 0.02, 1500, 0.01)
    session = TraceSession(method, key=KEY)
    home = session.report(**PARIS, time=0)
    session.report(lat=49.5, lon=2.2945, time=3600)
    before = session.spent
    assert session.report(**PARIS, time=7200) == home
    assert session.spent - before == pytest.approx(method.choice + method.test)
