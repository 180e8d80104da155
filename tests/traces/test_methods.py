"""What the managers of a wanted accuracy and of a wanted rate promise."""

import math

import numpy as np
import pytest

from geoind import InvalidInputError, PlanarLaplace, TraceSession
from geoind.traces import Past, Predictive, Run, SparseVector, commuter
from geoind.traces.comparison import arc_length
from geoind.traces.laws import run_quantile, shares
from geoind.traces.session import Published

HERE = (2.2945, 48.8584)
HIDDEN = ((np.arange(4000) + 0.5) / 4000)[:, None]
KEPT = Past(60.0, reports=(Published(0.0, *HERE, fresh=True),), anchors=(HERE,), run=Run(0, 0.01, HERE))


@pytest.mark.parametrize("confidence", [0.6, 0.9, 0.99])
@pytest.mark.parametrize("metres", [200.0, 1500.0])
def test_an_answer_is_kept_beyond_the_wanted_metres_as_rarely_as_promised(
    metres: float, confidence: float
) -> None:
    method = SparseVector.within(metres, confidence=confidence)
    kept = float(np.mean(method.likelihood(KEPT, HERE, lambda _: np.array([metres]), HIDDEN)))
    assert kept == pytest.approx(1 - confidence, rel=0.01)
    assert float(PlanarLaplace(method.fresh).radius_cdf(metres)) >= confidence


def test_the_noise_of_a_run_stays_below_its_quantile_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    for_limit, for_tests = shares(1.0)
    noise = rng.laplace(0, 1 / for_limit, 200_000) - rng.laplace(0, 2 / for_tests, 200_000)
    for confidence in (0.3, 0.75, 0.9, 0.99):
        assert np.mean(noise < run_quantile(confidence)) == pytest.approx(max(confidence, 0.5), abs=0.004)


def test_a_week_of_answers_is_within_the_wanted_metres_at_less_than_fresh_noise_costs() -> None:
    times, truth = commuter(days=2)
    session = TraceSession(SparseVector.within(500), key=bytes(32))
    errors = []
    for time, (lon, lat) in zip(times.tolist(), truth.tolist(), strict=True):
        answer = session.report(lat=lat, lon=lon, time=time)
        errors.append(arc_length(lon, lat, answer.lon, answer.lat))
    assert np.quantile(errors, 0.9) < 500
    assert session.epsilon_per_hour < 0.7 * 12 * 3.88972 / 500


def test_a_published_prediction_is_kept_beyond_twice_the_metres_one_time_in_ten() -> None:
    method = Predictive.for_accuracy(500)
    kept = float(method.likelihood(KEPT, HERE, lambda _: np.array([1000.0]), HIDDEN)[0])
    assert kept == pytest.approx(0.1, rel=1e-6)
    assert float(PlanarLaplace(method.fresh).radius_cdf(500)) == pytest.approx(0.9)


def test_a_wanted_rate_is_what_the_guessed_moves_cost() -> None:
    method = SparseVector.for_rate(0.02, moves=2.0)
    assert 2 * sum(method.dearest) == pytest.approx(0.02)
    assert method == SparseVector.for_accuracy(method.limit / 3)
    hard = Predictive.for_rate(0.01, easy_share=0.75)
    assert hard.test + 0.25 * hard.fresh == pytest.approx(0.01)
    for moves in (0.0, math.nan):
        with pytest.raises(InvalidInputError, match="moves"):
            SparseVector.for_rate(0.02, moves=moves)
