"""A true place answers what was paid for, once, and nothing else."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypedDict

import pytest

from geoind import InvalidInputError, Ledger, TraceSession
from geoind.traces import GuardedPlace, Independent, Past, Predictive, Run, SparseVector

KEY = bytes(range(32))


class Where(TypedDict):
    lat: float
    lon: float


PARIS: Where = {"lat": 48.8584, "lon": 2.2945}
HERE = (2.2945, 48.8584)
Answer = Callable[[Past, GuardedPlace], tuple[Past, tuple[float, float]]]


@dataclass(frozen=True)
class Asking(Independent):
    """A method of one's own."""

    asks: Answer = Independent.answer  # type: ignore[assignment]

    def answer(self, past: Past, place: GuardedPlace) -> tuple[Past, tuple[float, float]]:
        return self.asks(past, place)


def asks_for_nothing(past: Past, place: GuardedPlace) -> tuple[Past, tuple[float, float]]:
    place.has_left(1000.0)
    return past, HERE


def begins_a_run_that_is_dearer_than_it_says(past: Past, place: GuardedPlace) -> tuple[Past, tuple[float, float]]:  # noqa: ARG001
    return replace(past, run=Run(0, 100.0, HERE)), HERE


def reports_and_begins_a_run_for_the_price_of_one(
    past: Past, place: GuardedPlace
) -> tuple[Past, tuple[float, float]]:
    return replace(past, run=Run(0, 0.01, HERE)), place.report(0.01)


def asks_twice_with_the_same_noise(past: Past, place: GuardedPlace) -> tuple[Past, tuple[float, float]]:
    place.is_near(HERE, 1000.0, 0.01)
    place.is_near((2.3, 48.9), 1000.0, 0.01)
    return past, HERE


def chooses_twice_with_the_same_noise(past: Past, place: GuardedPlace) -> tuple[Past, tuple[float, float]]:
    place.nearest((HERE,), 1000.0, 0.01)
    place.nearest(((2.3, 48.9),), 1000.0, 0.01)
    return past, HERE


@pytest.mark.parametrize(
    ("asks", "message"),
    [
        (asks_for_nothing, "no run of tests"),
        (begins_a_run_that_is_dearer_than_it_says, "dearest"),
        (lambda past, _: (replace(past, run=Run(0, 0.01, (200.0, 0.0))), HERE), "globe"),
        (lambda past, _: (replace(past, run=Run(0, -0.01, HERE)), HERE), "epsilon"),
        (lambda past, place: (past, place.report(0.02)), "dearest"),
        (reports_and_begins_a_run_for_the_price_of_one, "dearest"),
        (asks_twice_with_the_same_noise, "once"),
        (chooses_twice_with_the_same_noise, "once"),
        (lambda past, place: (past, place.report(-0.01)), "epsilon"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_method_gets_no_answer_that_it_has_not_paid_for(asks: Answer, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        TraceSession(Asking(0.01, asks), key=KEY).report(**PARIS, time=0)


@pytest.mark.parametrize("predicted", [(math.nan, 48.0), (200.0, 48.0), (2.0, math.inf)])
def test_a_prediction_off_the_globe_is_refused_before_its_test_is_paid_for(predicted: tuple[float, float]) -> None:
    with Ledger("sqlite://", budget=1) as ledger:
        method = Predictive(0.01, 0.02, 1000, lambda past: predicted)  # noqa: ARG005
        session = TraceSession(method, key=KEY, ledger=ledger, person_id="ana")
        session.report(**PARIS, time=0)
        with pytest.raises(InvalidInputError, match="globe"):
            session.report(**PARIS, time=60)
        assert ledger.spent("ana") == 0.02


def test_a_run_keeps_the_noise_that_was_paid_for_when_the_method_changes() -> None:
    """A backend that is started again with finer tests does not ask for nothing what was paid for coarsely."""
    coarse, fine = SparseVector(0.001, 0.001, 1000), SparseVector(0.001, 1.0, 1000)
    answers = []
    for number in range(60):
        first = TraceSession(coarse, key=number.to_bytes(32))
        told = first.report(**PARIS, time=0)
        goes_on = TraceSession.resume(first.state(), fine, key=number.to_bytes(32))
        answers.append(goes_on.report(lat=told.lat, lon=told.lon, time=60) == told)
        assert goes_on.spent == pytest.approx(0.002 if answers[-1] else 0.002 + 0.001 + 1.0)
    # Tests of 1.0 at 1000 m from the limit would never say yes by chance; those that were paid for often do.
    assert 10 < sum(answers) < 50


def test_a_run_that_ended_and_goes_on_is_paid_for_again() -> None:
    def answer(past: Past, place: GuardedPlace) -> tuple[Past, tuple[float, float]]:
        if past.run is not None:
            assert place.has_left(0.0)
        return replace(past, run=Run(0, 0.01, (0.0, 0.0))), HERE

    session = TraceSession(Asking(0.01, answer), key=KEY)
    for time in range(3):
        session.report(**PARIS, time=time)
    assert session.spent == pytest.approx(0.03)
    assert session.costs == {0.01: 3}
