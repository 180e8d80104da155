"""A ration is never exceeded, whatever happens, and looks at public things only."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind import InvalidInputError, TraceSession
from geoind.traces import (
    GuardedPlace,
    Independent,
    Past,
    Predictive,
    Rationed,
    SparseVector,
    Switching,
    TraceMethod,
)
from geoind.traces.session import Published

KEY = bytes(range(32))
LON, LAT = 2.2945, 48.8584
METRE = 180 / (math.pi * 6_371_008.8)
METHODS: list[TraceMethod] = [
    Independent(0.01),
    Predictive.for_accuracy(500),
    SparseVector.for_accuracy(500),
    Switching(SparseVector.for_accuracy(500)),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@settings(max_examples=15, deadline=None)
@given(
    steps=st.lists(st.tuples(st.floats(30, 4000), st.floats(-9000, 9000)), min_size=2, max_size=40),
    hours=st.floats(1, 6),
    share=st.floats(1, 3),
)
def test_no_stretch_of_time_costs_more_than_its_hours_and_what_was_saved(
    method: TraceMethod, steps: list[tuple[float, float]], hours: float, share: float
) -> None:
    rationed = Rationed(method, share * sum(method.dearest) / hours * 1.000001, hours)
    session = TraceSession(rationed, key=KEY)
    now, spent = 0.0, [(0.0, 0.0)]
    for gap, north in steps:
        now += gap
        before = session.spent
        session.report(lat=LAT + METRE * north, lon=LON, time=now)
        spent.append((now, session.spent - before))
    for begin, end in itertools.combinations(range(len(spent)), 2):
        total = sum(cost for _, cost in spent[begin : end + 1])
        length = (spent[end][0] - spent[begin][0]) / 3600
        assert total <= rationed.per_hour * (length + rationed.saved) * (1 + 1e-9)


def test_without_allowance_the_last_answer_comes_again_and_the_place_is_not_asked() -> None:
    session = TraceSession(Rationed(Independent(0.01), 0.01, 1.0), key=KEY)
    first = session.report(lat=LAT, lon=LON, time=0)
    for minute in range(1, 60):
        assert session.report(lat=LAT + 1, lon=LON, time=60 * minute) == first
    assert session.spent == 0.01
    assert session.report(lat=LAT + 1, lon=LON, time=3600) != first
    assert session.spent == 0.02


def test_a_rationed_session_goes_on_after_a_restart() -> None:
    method = Rationed(SparseVector.for_accuracy(500), 0.03, 2.0)
    walk = [(300.0 * step, LAT + METRE * 2500 * (step // 3)) for step in range(60)]
    whole = TraceSession(method, key=KEY)
    expected = [whole.report(lat=lat, lon=LON, time=time) for time, lat in walk]
    session = TraceSession(method, key=KEY)
    found = []
    for time, lat in walk:
        found.append(session.report(lat=lat, lon=LON, time=time))
        session = TraceSession.resume(session.state(), method, key=KEY)
    assert found == expected
    assert len(set(expected)) > 3


def test_what_a_failed_step_paid_counts_against_the_allowance() -> None:
    class Failing(Independent):
        def answer(self, past: Past, place: GuardedPlace) -> tuple[Past, tuple[float, float]]:
            after, report = super().answer(past, place)
            if past.time == 60:
                raise ZeroDivisionError
            return after, report

    session = TraceSession(Rationed(Failing(0.01), 0.01, 2.0), key=KEY)
    first = session.report(lat=LAT, lon=LON, time=0)
    with pytest.raises(ZeroDivisionError):
        session.report(lat=LAT, lon=LON, time=60)
    assert session.spent == 0.02
    assert session.report(lat=LAT, lon=LON, time=120) == first
    assert session.spent == 0.02


def test_an_allowance_that_never_pays_for_an_answer_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="must pay for one answer"):
        Rationed(Independent(0.01), 0.001, 5.0)
    with pytest.raises(InvalidInputError, match="per_hour"):
        Rationed(Independent(0.01), math.nan)


def test_an_adversary_knows_which_answers_were_not_asked_for() -> None:
    here = (LON, LAT)
    rationed = Rationed(Independent(0.01), 0.01, 1.0)
    past = Past(60.0, reports=(Published(0.0, *here, fresh=True),), spent=0.01, began=0.0)
    law = rationed.likelihood(past, here, lambda _: np.array([0.0, 500.0]), np.array([[0.5]]))
    assert law.tolist() == [1.0, 1.0]
    assert rationed.price(past, here) == 0


@pytest.mark.parametrize("method", [*METHODS, *(Rationed(method, sum(method.dearest), 3.0) for method in METHODS)])
def test_everybody_can_tell_what_each_answer_cost(method: TraceMethod) -> None:
    session = TraceSession(method, key=KEY)
    rng = np.random.default_rng(4)
    past = Past(0.0, began=0.0)
    for step, north in enumerate(np.repeat(rng.choice([0, 4000, 8000], 30), 3).tolist()):
        past = Past(**{**vars(past), "time": 600.0 * step})
        answer = session.report(lat=LAT + METRE * north, lon=LON, time=600.0 * step)
        report = (answer.lon, answer.lat)
        cost = method.price(past, report)
        after = method.seen(past, report)
        past = past.published(after, report, method.remembered, past.spent + cost)
        assert past.spent == pytest.approx(session.spent, rel=1e-9)
        assert cost <= sum(method.dearest) * (1 + 1e-12)
