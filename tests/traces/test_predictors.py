"""Predictions see the past, and nothing else."""

import itertools

from geoind import TraceSession
from geoind.traces import Past, Predictive, straight_on
from tests.traces.walks import KEY, walk_north


def test_predictions_see_the_past_only() -> None:
    asked: list[Past] = []

    def spy(past: Past) -> tuple[float, float]:
        asked.append(past)
        return past.last.place

    session = TraceSession(Predictive(0.01, 0.01, 1000, spy), key=KEY)
    norths = [2000.0 * (step // 20) for step in range(60)]
    published = set(itertools.chain.from_iterable(walk_north(session, norths)))
    shown = {value for past in asked for report in past.reports for value in report.place}
    assert asked
    assert shown <= published


def test_a_predictor_goes_straight_on_however_long_the_way() -> None:
    asked: list[tuple[Past, tuple[float, float]]] = []

    def predict(past: Past) -> tuple[float, float]:
        asked.append((past, straight_on(past)))
        return asked[-1][1]

    session = TraceSession(Predictive(1.0, 1.0, 100.0, predict), key=bytes(32))
    for step in range(300):
        # A step of 500 m and one of 1500 m, so that each prediction fails.
        session.report(lat=48.0 + 0.009 * step + 0.0045 * (step % 2), lon=2.0, time=60.0 * step)
    assert all(place != past.last.place for past, place in asked[-50:])
