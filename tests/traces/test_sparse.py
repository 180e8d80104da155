"""A person who stays pays once, coming back is cheaper than going on, and switching stops testing."""

import math
from typing import Any

import pytest

from geoind import InvalidInputError, TraceSession
from geoind.traces import Independent, SparseVector, Switching
from tests.traces.walks import KEY, LAT, LON, walk_north

PARIS = {"lat": 48.8584, "lon": 2.2945}


def test_a_person_who_stays_pays_once_and_one_who_moves_pays_again() -> None:
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


def test_a_person_who_never_stays_pays_less_with_switching_and_one_who_stays_the_same() -> None:
    sparse = SparseVector(0.02, 0.02, 1500, 0.01)
    moving = [9000.0 * step for step in range(48)]
    costs = []
    for method in (sparse, Switching(sparse), Independent(0.02)):
        session = TraceSession(method, key=KEY)
        walk_north(session, moving)
        costs.append(session.spent)
    assert costs[2] < costs[1] < 0.85 * costs[0]
    staying = [TraceSession(method, key=KEY) for method in (sparse, Switching(sparse))]
    assert walk_north(staying[0], [0.0] * 50) == walk_north(staying[1], [0.0] * 50)
    assert staying[0].spent == staying[1].spent


def test_switching_goes_back_to_silence_in_the_next_hour() -> None:
    sparse = SparseVector(0.02, 0.04, 3000, 0.01)
    session = TraceSession(Switching(sparse), key=KEY)
    walk_north(session, [9000.0 * step for step in range(12)])
    before = session.spent
    for step in range(12, 36):
        session.report(lat=LAT, lon=LON, time=300.0 * step)
    assert session.spent - before <= sparse.choice + sparse.fresh + sparse.test + 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"choice": math.inf}, "choice must be 0 or positive and finite"),
        ({"choice": -0.01}, "choice must be 0 or positive and finite"),
        ({"choice": math.nan}, "choice must be 0 or positive and finite"),
        ({"places": 65}, "places must be at most 64"),
    ],
    ids=str,
)
def test_a_choice_is_finite_and_among_places_that_a_session_remembers(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SparseVector(0.01, 0.01, 1000.0, **options)
    SparseVector(0.01, 0.01, 1000.0, choice=0.0, places=64)
