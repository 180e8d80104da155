"""The probabilities that an adversary computes are those of the sessions."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from geoind import InvalidInputError, TraceSession
from geoind.traces import AboveThreshold, History, Independent, Predictive, Report, SparseVector, TraceMethod
from geoind.traces.laws import (
    has_left,
    laplace_density,
    laplace_exceeds,
    laplace_quantile,
    noisy_minimum,
    shares,
)
from geoind.traces.questions import arc_length


def test_the_density_is_that_of_planar_laplace_noise() -> None:
    total, _ = integrate.quad(lambda r: 2 * math.pi * r * float(laplace_density(np.array(r), 0.01)), 0, 5000)
    assert total == pytest.approx(1, rel=1e-6)


def test_the_tail_and_the_quantile_are_those_of_linear_laplace_noise() -> None:
    bars = np.linspace(-5, 5, 41)
    np.testing.assert_allclose(laplace_exceeds(bars, 2.0), stats.laplace(scale=2.0).sf(bars), rtol=1e-12)
    for p in (1e-6, 0.2, 0.5, 0.7, 0.999):
        assert float(laplace_quantile(np.array(p), 3.0)) == pytest.approx(
            stats.laplace(scale=3.0).ppf(p), abs=1e-12
        )


@pytest.mark.parametrize("scale", [0.5, 40.0, 3e4])
def test_many_distances_leave_a_few_bars_as_one_distance_does(scale: float) -> None:
    bars, apart = 1000.0 + np.linspace(-3, 3, 7)[:, None] * scale, np.linspace(0, 4000, 101)
    np.testing.assert_allclose(has_left(bars, apart, scale), laplace_exceeds(bars - apart, scale), 1e-12, 1e-150)


def test_the_shares_of_a_run_are_all_of_it() -> None:
    assert sum(shares(0.01)) == pytest.approx(0.01)
    assert shares(1.0)[1] / shares(1.0)[0] == pytest.approx(2 ** (2 / 3))


@pytest.mark.parametrize("count", [2, 3, 6])
def test_the_choices_of_a_noisy_minimum_sum_to_one_and_match_simulation(count: int) -> None:
    rng = np.random.default_rng(count)
    scores = [np.array([score]) for score in rng.uniform(0, 600, count)]
    law = np.array([noisy_minimum(scores, chosen, 0.01)[0] for chosen in range(count)])
    assert law.sum() == pytest.approx(1, abs=1e-12)
    noisy = np.ravel(scores) + rng.exponential(200.0, (40_000, count))
    shares_found = np.bincount(noisy.argmin(axis=1), minlength=count) / 40_000
    np.testing.assert_allclose(law, shares_found, atol=0.012)


LAT, LON = 48.8584, 2.2945
METRE = 180 / (math.pi * 6_371_008.8)
HIDDEN = ((np.arange(200) + 0.5) / 200)[:, None]


def probability(method: TraceMethod, history: History, report: tuple[float, float], north: float) -> float:
    """Return how probable an answer is at a place, whatever the noise that a run shares."""

    def apart(place: tuple[float, float]) -> np.ndarray:
        return np.array([arc_length(LON, LAT + METRE * north, *place)])

    return float(np.mean(method.likelihood(history, report, apart, HIDDEN)))


@pytest.mark.parametrize(
    "method", [SparseVector(0.01, 0.01, 600), Predictive(0.005, 0.01, 600)], ids=["sparse", "predictive"]
)
def test_sessions_repeat_their_answer_as_often_as_the_law_says(method: TraceMethod) -> None:
    expected, variance, found = 0.0, 0.0, 0
    for number in range(300):
        session = TraceSession(method, key=number.to_bytes(32))
        north = 4.0 * number
        first = session.report(lat=LAT, lon=LON, time=0)
        again = session.report(lat=LAT + METRE * north, lon=LON, time=60)
        place = (first.lon, first.lat)
        run, last = AboveThreshold(0, 0.01, place), Report(0.0, *place, fresh=True)
        history = History(60.0, reports=(last,), anchors=(place,), run=run, runs=1)
        p = probability(method, history, place, north)
        expected, variance, found = expected + p, variance + p * (1 - p), found + (again == first)
    assert abs(found - expected) < 3.5 * math.sqrt(variance)
    assert 30 < found < 270


def test_the_choice_among_known_places_follows_its_law() -> None:
    method = SparseVector(0.05, 5.0, 300, 0.004)
    counts, expected, variance = 0, 0.0, 0.0
    for number in range(300):
        session = TraceSession(method, key=number.to_bytes(32))
        places = [
            session.report(lat=LAT + METRE * north, lon=LON, time=60.0 * step)
            for step, north in enumerate([0.0, 2000.0, 450.0])
        ]
        first, second, third = ((place.lon, place.lat) for place in places)
        last = Report(60.0, *second, fresh=True)
        run = AboveThreshold(1, method.test, second)
        history = History(120.0, reports=(last,), anchors=(first, second), run=run)
        p = probability(method, history, first, 450.0)
        counts, expected, variance = counts + (third == first), expected + p, variance + p * (1 - p)
    assert abs(counts - expected) < 3.5 * math.sqrt(variance)
    assert 30 < counts < 290


@pytest.mark.parametrize(
    "method", [SparseVector(0.01, 0.01, 500), Predictive(0.01, 0.01, 500)], ids=["sparse", "predictive"]
)
def test_silence_and_a_fresh_report_are_all_that_can_happen(method: TraceMethod) -> None:
    here = (0.0, 0.0)
    last = Report(0.0, *here, fresh=True)
    history = History(60.0, reports=(last,), anchors=(here,), run=AboveThreshold(0, 0.01, here))
    # On a plane in metres, the truth 400 m away: a fresh report may be anywhere.
    step = 20.0
    xs, ys = np.meshgrid(np.arange(-2990, 3010, step), np.arange(-2990, 3010, step))
    report = (1e9, 1e9)

    def apart(place: tuple[float, float]) -> np.ndarray:
        # Seen from the truth: the last answer is 400 m away, a fresh report at any of the places.
        return np.full(xs.size, 400.0) if place == here else np.hypot(xs, ys).ravel()

    median = np.array([[0.5]])
    fresh = float(method.likelihood(history, report, apart, median).sum()) * step**2
    silent = float(method.likelihood(history, here, apart, median).ravel()[0])
    assert fresh + silent == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("method", [Independent, Predictive, SparseVector])
def test_metres_with_too_little_noise_are_taken_for_kilometres(method: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"likely a unit error.*give the method its epsilon"):
        method.for_accuracy(0.5)
    assert method.for_accuracy(50)
