"""Questions about a true location: exact comparisons, paid for, each asked once."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from geoind import InvalidInputError, Ledger, TraceSession
from geoind.distances import EARTH_RADIUS
from geoind.mechanisms.spherical import WGS84_FACTOR
from geoind.traces import AboveThreshold, GuardedPlace, History, Independent, Predictive, SparseVector
from geoind.traces.laws import run_quantile
from geoind.traces.questions import (
    _exactly_at_least,
    _Noise,
    _Sum,
    arc_length,
    distance_exceeds,
    laplace_noise,
    noisy_argmin,
    scales_of_tests,
)
from geoind.traces.words import SessionWords

HERE = (2.2945, 48.8584)
WORD = 1 << 64


def random_words(seed: int) -> Iterator[int]:
    rng = np.random.default_rng(seed)
    return (int(rng.integers(0, 2**64, dtype=np.uint64, endpoint=False)) for _ in itertools.count())


def words(*first: int) -> Iterator[int]:
    return itertools.chain(first, random_words(0))


@pytest.mark.slow
def test_doubles_and_200_bits_agree_on_thousands_of_comparisons() -> None:
    rng = np.random.default_rng(0)
    decided = 0
    for _ in range(3000):
        lon, lat, other_lon, other_lat = rng.uniform([-180, -90, -180, -90], [180, 90, 180, 90]).tolist()
        if rng.random() < 0.7:  # near each other, as places are
            other_lon, other_lat = lon + rng.normal() * 1e-3, max(-90, min(90, lat + rng.normal() * 1e-3))
        first, second = ((sign, int(rng.integers(0, 2**64, dtype=np.uint64))) for sign in (0, 1))
        apart = float(arc_length(lon, lat, other_lon, other_lat))
        yes, sure = distance_exceeds(
            apart, laplace_noise(first, 100.0), apart + laplace_noise(second, 100.0), 2 * apart + 200.0
        )
        distance = _Sum(_Noise(words(*first), 100.0, signed=True), places=((lon, lat), (other_lon, other_lat)))
        limit = _Sum(_Noise(words(*second), 100.0, signed=True), apart)
        with ctx.workprec(200):
            # The first 64 bits of each number decide, but for one comparison in 1e15.
            difference = distance.ball() - limit.ball()
            assert difference > 0 or difference < 0
        assert _exactly_at_least(distance, limit) is bool(difference > 0)
        assert not sure or bool(yes) is bool(difference > 0)
        decided += bool(sure)
    # The noise of a distance round the Earth is lost in the last digits of the distance.
    assert decided > 2000


@pytest.mark.parametrize("near", [1e-9, 1e-8])
def test_doubles_are_not_sure_of_sums_that_nearly_agree(near: float) -> None:
    _, sure = distance_exceeds(1000.0, 0.0, 1000.0 + near, 2000.0)
    assert not sure
    assert not noisy_argmin([100.0, 100.0 + near], [1 << 62, 1 << 62], 30.0)[1]


def test_doubles_are_not_sure_of_noise_whose_first_bits_are_few() -> None:
    few = 1 << 20
    assert np.isnan(laplace_noise((0, few), 30.0))
    assert not distance_exceeds(1000.0, laplace_noise((0, few), 30.0), 2.0, 1.0)[1]
    for words in itertools.permutations([1 << 63, 1 << 63, few]):
        assert not noisy_argmin([1.0, 500.0, 900.0], words, 30.0)[1]


def test_the_noisy_minimum_leaves_out_what_is_infinitely_far() -> None:
    words = np.random.default_rng(2).integers(1 << 40, 2**64, (500, 4), dtype=np.uint64)
    scores = np.tile([np.inf, 200.0, 100.0, np.inf], (500, 1))
    best, sure = noisy_argmin(scores.T, words.T, 100.0)
    sums = scores[:, 1:3] - 100.0 * np.log(words[:, 1:3] / 2.0**64)
    assert sure.all()
    assert (best == 1 + sums.argmin(axis=1)).all()
    assert set(best.tolist()) == {1, 2}


def test_the_noisy_minimum_of_a_row_is_that_of_a_row_among_many() -> None:
    rng = np.random.default_rng(3)
    words, scores = rng.integers(0, 2**64, (300, 5), dtype=np.uint64), rng.uniform(0, 300, (300, 5))
    words[::7, 2], words[::5, 0] = 1 << 20, 1
    best, sure = noisy_argmin(scores.T, words.T, 100.0)
    alone = [noisy_argmin(*row, 100.0) for row in zip(scores.tolist(), words.tolist(), strict=True)]
    assert [bool(certain) for _, certain in alone] == sure.tolist()
    assert [number for number, certain in alone if certain] == best[sure].tolist()
    assert 0 < sure.sum() < 300


def test_what_doubles_cannot_decide_is_decided_by_more_bits() -> None:
    outcomes = set()
    for low in range(40):
        # Equal in the first word: only the second one, drawn on demand, distinguishes them.
        uniform = 0x9E3779B97F4A7C15
        first = _Sum(_Noise(iter([0, uniform, low, 7, 7]), 100.0, signed=True), 500.0)
        second = _Sum(_Noise(iter([0, uniform, 20, 9, 9]), 100.0, signed=True), 500.0)
        outcomes.add((low <= 20, _exactly_at_least(first, second)))
    # -log falls: a smaller uniform number is a larger noise; at low == 20 the third word (7 < 9) decides.
    assert outcomes == {(True, True), (False, False)}


def test_the_tail_of_the_noise_is_drawn_and_not_cut_off() -> None:
    deep = _Noise(words(0, 0, 1 << 40), 1.0, signed=True)
    # Uniform number near 2^-88: noise of 88 ln 2 = 61 scales.
    assert _exactly_at_least(_Sum(deep, 0.0), _Sum(None, 60.0))
    assert not _exactly_at_least(_Sum(_Noise(words(0, 0, 1 << 40), 1.0, signed=True)), _Sum(None, 62.0))


def test_the_arc_is_right_from_zero_to_the_antipode() -> None:
    for lon, lat in [
        (2.2945, 48.8584),
        (2.2945 + 1e-9, 48.8584),
        (-177.7055, -48.8584),
        (2.2945, 48.8584 + 1e-12),
        (-177.7055, -48.8583999),
    ]:
        with ctx.workprec(200):
            exact = _Sum(None, places=(HERE, (lon, lat))).ball()
        assert arc_length(*HERE, lon, lat) == pytest.approx(float(exact.mid()), rel=1e-12, abs=1e-8)
        assert float(exact.rad()) < 1e-20


def test_a_place_and_itself_are_compared_to_the_last_bit() -> None:
    tail = _Noise(words(0, 0, 1 << 40), 1.0, signed=True)
    assert _exactly_at_least(_Sum(tail, places=(HERE, HERE)), _Sum(None, 60.0))
    assert not _exactly_at_least(_Sum(None, places=(HERE, HERE)), _Sum(None, 1e-9))


def test_near_the_antipode_exact_arithmetic_decides_what_the_arcsine_cannot() -> None:
    other = (HERE[0] - 180 + 1e-7, -HERE[1])
    with ctx.workprec(200):
        true = _Sum(None, places=(HERE, other)).ball()
    for offset in (-2e-8, 2e-8):
        limit = float((true + arb(offset)).mid())
        assert _exactly_at_least(_Sum(None, places=(HERE, other)), _Sum(None, limit)) is (offset < 0)


def test_the_noise_is_laplace() -> None:
    drawn = np.random.default_rng(1).integers(0, 2**64, (2, 60_000), dtype=np.uint64)
    values = laplace_noise(drawn, 3.0)
    assert stats.kstest(values, stats.laplace(scale=3.0).cdf).pvalue > 1e-3
    for wrong in (0.95, 1.05):
        assert stats.kstest(values, stats.laplace(scale=3.0 * wrong).cdf).pvalue < 1e-3
    with ctx.workprec(200):
        for first, second in drawn.T[:20].tolist():
            exact = _Noise(words(first, second), 3.0, signed=True).ball()
            assert laplace_noise((first, second), 3.0) == pytest.approx(float(exact.mid()), rel=1e-12)


KEY = bytes(range(32))


class Where(TypedDict):
    lat: float
    lon: float


PARIS: Where = {"lat": 48.8584, "lon": 2.2945}
HERE = (2.2945, 48.8584)
Answered = tuple[History, tuple[float, float]]
Answer = Callable[[History, GuardedPlace], Answered]


@dataclass(frozen=True)
class Asking(Independent):
    """A method of one's own."""

    asks: Answer = Independent.answer  # type: ignore[assignment]

    def answer(self, history: History, place: GuardedPlace) -> Answered:
        return self.asks(history, place)


def test_the_exact_test_of_nearness_has_the_noise_of_the_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers() -> list[bool]:
        places = []
        for step in range(60):
            session = TraceSession(Predictive(test=0.01, fresh=0.01, limit=1000.0), key=bytes(32))
            first = session.report(lat=48.8584, lon=2.2945, time=0.0)
            second = session.report(lat=first.lat + 0.009, lon=first.lon, time=1.0 + step)
            places.append(first == second)
        return places

    decided = answers()
    assert 10 < sum(decided) < 50
    monkeypatch.setattr("geoind.traces.questions.distance_exceeds", lambda *_: (False, False))
    assert answers() == decided


def asks_for_nothing(history: History, place: GuardedPlace) -> Answered:
    place.has_left(1000.0)
    return history, HERE


def begins_a_run_above_its_price(history: History, _: GuardedPlace) -> Answered:
    return history._replace(run=AboveThreshold(0, 100.0, HERE)), HERE


def reports_and_begins_a_run_for_the_price_of_one(history: History, place: GuardedPlace) -> Answered:
    return history._replace(run=AboveThreshold(0, 0.01, HERE)), place.report(0.01)


def asks_twice_with_the_same_noise(history: History, place: GuardedPlace) -> Answered:
    place.is_near(HERE, 1000.0, 0.01)
    place.is_near((2.3, 48.9), 1000.0, 0.01)
    return history, HERE


def chooses_twice_with_the_same_noise(history: History, place: GuardedPlace) -> Answered:
    place.nearest((HERE,), 1000.0, 0.01)
    place.nearest(((2.3, 48.9),), 1000.0, 0.01)
    return history, HERE


@pytest.mark.parametrize(
    ("asks", "message"),
    [
        (asks_for_nothing, "no run of tests"),
        (begins_a_run_above_its_price, "max_charges"),
        (lambda history, _: (history._replace(run=AboveThreshold(0, 0.01, (200.0, 0.0))), HERE), "globe"),
        (lambda history, _: (history._replace(run=AboveThreshold(0, -0.01, HERE)), HERE), "epsilon"),
        (lambda history, place: (history, place.report(0.02)), "max_charges"),
        (reports_and_begins_a_run_for_the_price_of_one, "max_charges"),
        (asks_twice_with_the_same_noise, "once"),
        (chooses_twice_with_the_same_noise, "once"),
        (lambda history, place: (history, place.report(-0.01)), "epsilon"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_method_gets_no_answer_that_it_has_not_paid_for(asks: Answer, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        TraceSession(Asking(0.01, asks), key=KEY).report(**PARIS, time=0)


@pytest.mark.parametrize("predicted", [(math.nan, 48.0), (200.0, 48.0), (2.0, math.inf)])
def test_a_prediction_off_the_globe_is_refused_before_its_test_is_paid_for(predicted: tuple[float, float]) -> None:
    with Ledger("sqlite://", budget=1) as ledger:
        method = Predictive(0.01, 0.02, 1000, lambda history: predicted)  # noqa: ARG005
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
        report = first.report(**PARIS, time=0)
        goes_on = TraceSession.resume(first.state(), fine, key=number.to_bytes(32))
        answers.append(goes_on.report(lat=report.lat, lon=report.lon, time=60) == report)
        assert goes_on.spent == pytest.approx(0.002 if answers[-1] else 0.002 + 0.001 + 1.0)
    # Tests of 1.0 at 1000 m from the limit would never say yes by chance; those that were paid for often do.
    assert 10 < sum(answers) < 50


def test_the_noise_of_a_run_costs_what_was_paid_for_it() -> None:
    for epsilon in (0.003, 0.01, 0.5):
        for_limit, for_tests = scales_of_tests(epsilon)
        # A metre moves the limit of all silent tests by one, and against it the last test by two.
        assert 1 / for_limit + 2 / for_tests == pytest.approx(epsilon / WGS84_FACTOR)


def test_a_test_has_the_noise_of_the_limit_and_its_own() -> None:
    words, draws, limit = SessionWords(bytes(32)), 4000, 2000.0
    # The noise of the tests alone would pass the difference half as often.
    apart = limit - WGS84_FACTOR * run_quantile(0.92) / 0.01
    there = (HERE[0], HERE[1] + math.degrees(apart / EARTH_RADIUS))
    left = 0
    for number in range(draws):
        person = words.person(str(number))
        run, seed = AboveThreshold(0, 0.01, there), words.steps(person, 60.0, HERE)
        left += GuardedPlace(*HERE, words, person, seed, lambda *_: None, run).has_left(limit)
    assert left == pytest.approx(0.08 * draws, abs=4 * math.sqrt(0.08 * 0.92 * draws))


def test_a_run_that_ended_and_goes_on_is_paid_for_again() -> None:
    def answer(history: History, place: GuardedPlace) -> Answered:
        if history.run is not None:
            assert place.has_left(0.0)
        return history._replace(run=AboveThreshold(0, 0.01, (0.0, 0.0))), HERE

    session = TraceSession(Asking(0.01, answer), key=KEY)
    for time in range(3):
        session.report(**PARIS, time=time)
    assert session.spent == pytest.approx(0.03)
    assert session.costs == {0.01: 3}
