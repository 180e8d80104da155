"""What methods without runs of tests promise: accuracy, rates, allowances, repetition."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind import InvalidInputError, Ledger, PlanarLaplace, SamePlace, TraceSession
from geoind.traces import (
    LOCATION_GUARD,
    AboveThreshold,
    Cached,
    GuardedPlace,
    History,
    Independent,
    Predictive,
    PrivateZone,
    Rationed,
    Report,
    SparseVector,
    Switching,
    TraceMethod,
    commuter,
    straight_on,
)
from geoind.traces.laws import run_quantile, shares
from geoind.traces.questions import arc_length
from tests.keywords import Place
from tests.traces.walks import KEY, LAT, LON, METRE, walk_north
from tests.trials import trials

HERE = (2.2945, 48.8584)
HIDDEN = ((np.arange(4000) + 0.5) / 4000)[:, None]
KEPT = History(60.0, reports=(Report(0.0, *HERE, fresh=True),), anchors=(HERE,), run=AboveThreshold(0, 0.01, HERE))


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
    for confidence in (0.3, 0.55, 0.75, 0.9, 0.99):
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
    assert 2 * sum(method.max_charges) == pytest.approx(0.02)
    assert method == SparseVector.for_accuracy(method.limit / 3)
    hard = Predictive.for_rate(0.01, easy_share=0.75)
    assert hard.test + 0.25 * hard.fresh == pytest.approx(0.01)
    for moves in (0.0, math.nan):
        with pytest.raises(InvalidInputError, match="moves"):
            SparseVector.for_rate(0.02, moves=moves)


HOME: Place = {"lat": 48.8584, "lon": 2.2945}


@settings(max_examples=trials(50), deadline=None)
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
    levels = {name: (2 / method.epsilon, method.minutes) for name, method in LOCATION_GUARD.items()}
    assert levels == {"low": (200, 10), "medium": (500, 30), "high": (2000, 60)}
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


def test_predictions_see_the_past_only() -> None:
    asked: list[History] = []

    def spy(history: History) -> tuple[float, float]:
        asked.append(history)
        return history.last.place

    session = TraceSession(Predictive(0.01, 0.01, 1000, spy), key=KEY)
    norths = [2000.0 * (step // 20) for step in range(60)]
    published = set(itertools.chain.from_iterable(walk_north(session, norths)))
    shown = {value for history in asked for report in history.reports for value in report.place}
    assert asked
    assert shown <= published


def test_two_reports_of_one_moment_have_no_direction() -> None:
    reports = (Report(0.0, 2.0, 48.0, fresh=True), Report(0.0, 2.5, 48.5, fresh=True))
    assert straight_on(History(60.0, reports=reports)) == (2.5, 48.5)


@pytest.mark.parametrize(
    ("first", "second", "seconds", "expected"),
    [
        ((2.0, 48.0), (2.5, 48.5), 30.0, (2.75, 48.75)),
        ((2.0, 48.0), (2.5, 48.5), 600.0, (3.0, 49.0)),
        ((179.75, 0.0), (-179.75, 0.5), 30.0, (-179.5, 0.75)),
        ((-179.5, 0.0), (-179.75, 0.0), 120.0, (180.0, 0.0)),
        ((-179.5, 0.0), (179.5, 0.0), 30.0, (179.0, 0.0)),
        ((0.0, 80.0), (0.0, 89.0), 60.0, (0.0, 90.0)),
        ((0.0, -80.0), (0.0, -89.0), 60.0, (0.0, -90.0)),
    ],
)
def test_a_person_goes_on_at_the_same_speed_across_the_date_line_and_up_to_a_pole(
    first: tuple[float, float], second: tuple[float, float], seconds: float, expected: tuple[float, float]
) -> None:
    repeated = Report(1060.0 + seconds / 2, 7.0, 7.0, fresh=False)
    reports = (Report(1000.0, *first, fresh=True), Report(1060.0, *second, fresh=True), repeated)
    lon, lat = straight_on(History(1060.0 + seconds, reports=reports))
    assert (lon % 360, lat) == (expected[0] % 360, expected[1])
    assert -180 <= lon <= 180


def test_a_predictor_goes_straight_on_however_long_the_way() -> None:
    asked: list[tuple[History, tuple[float, float]]] = []

    def predict(history: History) -> tuple[float, float]:
        asked.append((history, straight_on(history)))
        return asked[-1][1]

    session = TraceSession(Predictive(1.0, 1.0, 100.0, predict), key=bytes(32))
    for step in range(300):
        # A step of 500 m and one of 1500 m, so that each prediction fails.
        session.report(lat=48.0 + 0.009 * step + 0.0045 * (step % 2), lon=2.0, time=60.0 * step)
    assert all(place != history.last.place for history, place in asked[-50:])


METHODS: list[TraceMethod] = [
    Independent(0.01),
    Predictive.for_accuracy(500),
    SparseVector.for_accuracy(500),
    Switching(SparseVector.for_accuracy(500)),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@settings(max_examples=trials(15), deadline=None)
@given(
    steps=st.lists(st.tuples(st.floats(30, 4000), st.floats(-9000, 9000)), min_size=2, max_size=40),
    hours=st.floats(1, 6),
    share=st.floats(1, 3),
)
def test_no_stretch_of_time_costs_more_than_its_hours_and_what_was_saved(
    method: TraceMethod, steps: list[tuple[float, float]], hours: float, share: float
) -> None:
    rationed = Rationed(method, share * sum(method.max_charges) / hours * 1.000001, hours)
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


def test_a_day_of_allowance_is_saved_up_unless_another_time_is_given() -> None:
    session = TraceSession(Rationed(Independent(0.01), 0.01), key=KEY)
    for second in range(40):
        session.report(lat=LAT, lon=LON, time=second)
    assert session.costs == {0.01: 24}


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
        def answer(self, history: History, place: GuardedPlace) -> tuple[History, tuple[float, float]]:
            after, report = super().answer(history, place)
            if history.time == 60:
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
    history = History(60.0, reports=(Report(0.0, *here, fresh=True),), spent=0.01, began=0.0)
    law = rationed.likelihood(history, here, lambda _: np.array([0.0, 500.0]), np.array([[0.5]]))
    assert law.tolist() == [1.0, 1.0]
    assert rationed.seen(history, here)[1] == 0


RATIONED = [Rationed(method, sum(method.max_charges), 3.0) for method in METHODS]


@pytest.mark.parametrize("method", [*METHODS, *RATIONED])
def test_an_observer_computes_what_each_answer_cost(method: TraceMethod) -> None:
    session = TraceSession(method, key=KEY)
    rng = np.random.default_rng(4)
    history = History(0.0, began=0.0)
    for step, north in enumerate(np.repeat(rng.choice([0, 4000, 8000], 30), 3).tolist()):
        history = history._replace(time=600.0 * step)
        answer = session.report(lat=LAT + METRE * north, lon=LON, time=600.0 * step)
        report = (answer.lon, answer.lat)
        after, cost = method.seen(history, report)
        history = history.published(after, report, method.remembered, history.spent + cost)
        assert history.spent == pytest.approx(session.spent, rel=1e-9)
        assert cost <= sum(method.max_charges) * (1 + 1e-12)
