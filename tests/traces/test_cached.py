"""A cached report costs once, lasts as long as its minutes, and looks at the clock alone."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind import InvalidInputError, Ledger, SamePlace, TraceSession
from geoind.traces import LOCATION_GUARD, Cached, PrivateZone
from tests.keywords import Place

KEY = bytes(range(32))
HOME: Place = {"lat": 48.8584, "lon": 2.2945}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1, 1200), min_size=1, max_size=40))
def test_a_report_is_repeated_until_its_minutes_are_over_wherever_the_person_goes(gaps: list[float]) -> None:
    session = TraceSession(Cached(0.01, minutes=10), key=KEY)
    now, drawn_at, fresh, last = 0.0, -math.inf, 0, None
    for step, gap in enumerate(gaps):
        now += gap
        report = session.report(lat=48.0 + 0.01 * step, lon=2.0, time=now)
        if now - drawn_at < 600:
            assert report == last
        else:
            assert report != last
            drawn_at, fresh = now, fresh + 1
        last = report
    assert session.spent == pytest.approx(0.01 * fresh)


def test_a_cached_session_is_charged_for_fresh_reports_and_goes_on_after_a_restart() -> None:
    method = Cached(0.01, minutes=10)
    with Ledger("sqlite://", budget=1) as ledger:
        session = TraceSession(method, key=KEY, ledger=ledger, person_id="ana")
        first = session.report(**HOME, time=0)
        again = TraceSession.resume(session.state(), method, key=KEY, ledger=ledger, person_id="ana")
        assert again.report(**HOME, time=599) == first
        assert ledger.spent("ana") == 0.01
        assert again.report(**HOME, time=600) != first
        assert ledger.spent("ana") == 0.02


def test_the_centre_of_a_zone_is_no_cached_report() -> None:
    zone = PrivateZone(**HOME, radius=900)
    session = TraceSession(Cached(0.01, minutes=10), key=KEY, zone=zone)
    outside: Place = {"lat": 48.9, "lon": 2.2945}
    first = session.report(**outside, time=0)
    assert session.report(**HOME, time=540) == first
    for minute in (10, 11):
        assert session.report(**HOME, time=60 * minute) == (zone.lat, zone.lon)
    after = session.report(**outside, time=720)
    assert after not in (first, (zone.lat, zone.lon))
    assert session.report(**HOME, time=780) == after


def test_who_leaves_home_first_is_answered_afresh() -> None:
    zone = PrivateZone(**HOME, radius=900)
    session = TraceSession(Cached(0.01, minutes=60), key=KEY, zone=zone)
    for minute in range(5):
        assert session.report(**HOME, time=60 * minute) == (zone.lat, zone.lon)
    assert session.report(lat=48.9, lon=2.2945, time=300) != (zone.lat, zone.lon)


def test_the_levels_are_those_of_location_guard() -> None:
    told = {name: (2 / method.epsilon, method.minutes) for name, method in LOCATION_GUARD.items()}
    assert told == {"low": (200, 10), "medium": (500, 30), "high": (2000, 60)}
    with pytest.raises(TypeError):
        LOCATION_GUARD["low"] = Cached(1, 1)  # type: ignore[index]


def test_a_level_serves_the_same_place_as_well() -> None:
    memory, epsilon = SamePlace(KEY), LOCATION_GUARD["medium"].epsilon
    assert memory.obfuscate(**HOME, person_id="ana", epsilon=epsilon) == memory.obfuscate(
        **HOME, person_id="ana", epsilon=epsilon
    )


@pytest.mark.parametrize(("epsilon", "minutes"), [(0, 10), (0.01, 0), (math.nan, 10), (0.01, math.inf)])
def test_bad_numbers_are_refused(epsilon: float, minutes: float) -> None:
    with pytest.raises(InvalidInputError):
        Cached(epsilon, minutes)
