"""A session charges before it draws, answers the same again, and continues after a restart."""

import math
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from geoind import InvalidInputError, Key, Ledger, TraceSession
from geoind.traces import (
    Cached,
    GuardedPlace,
    History,
    Independent,
    Predictive,
    SparseVector,
    TraceMethod,
    straight_on,
)

KEY = bytes(range(32))
PARIS = {"lat": 48.8584, "lon": 2.2945}
METHODS: list[TraceMethod] = [
    Independent.for_accuracy(500),
    Predictive.for_accuracy(500),
    Predictive.for_accuracy(500, predictor=straight_on),
    SparseVector.for_accuracy(500),
    SparseVector(0.01, 0.01, 1500),
    Cached(0.01, minutes=12),
]
WALK = [(48.85 + 0.02 * (step // 20), 2.29 + 0.03 * (step // 20), 300.0 * step) for step in range(60)]


def answers(session: TraceSession, walk: list[tuple[float, float, float]]) -> list[tuple[float, float]]:
    reports = (session.report(lat=lat, lon=lon, time=time) for lat, lon, time in walk)
    return [(report.lat, report.lon) for report in reports]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_the_same_positions_under_the_same_key_get_the_same_answers(method: TraceMethod) -> None:
    assert answers(TraceSession(method, key=KEY), WALK) == answers(TraceSession(method, key=KEY), WALK)
    assert answers(TraceSession(method, key=KEY), WALK) != answers(TraceSession(method, key=bytes(32)), WALK)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("stop", [1, 19, 21, 45])
def test_a_session_continues_after_a_restart_as_if_it_had_never_stopped(method: TraceMethod, stop: int) -> None:
    whole = TraceSession(method, key=KEY)
    expected = answers(whole, WALK)
    first = TraceSession(method, key=KEY)
    begun = answers(first, WALK[:stop])
    second = TraceSession.resume(first.state(), method, key=KEY)
    assert begun + answers(second, WALK[stop:]) == expected
    assert second.spent == pytest.approx(whole.spent)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_the_state_holds_nothing_that_was_not_published(method: TraceMethod) -> None:
    session = TraceSession(method, key=KEY)
    answers(session, [(48.123456789, 2.987654321, 0.0), (48.123456788, 2.987654322, 60.0)])
    assert "123456" not in session.state()
    assert "987654" not in session.state()
    assert KEY.hex() not in session.state()


def test_a_session_shows_its_method_and_what_was_spent_and_nothing_else() -> None:
    session = TraceSession(Independent(0.01), key=KEY, person_id="ana")
    session.report(**PARIS, time=1_700_000_000)
    session.report(lat=48.86, lon=2.3, time=1_700_000_060)
    assert repr(session) == str(session) == "TraceSession(Independent(epsilon=0.01), spent=0.02)"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_the_ledger_is_charged_what_the_session_says_it_spent(method: TraceMethod) -> None:
    with Ledger("sqlite://", budget=100) as ledger:
        session = TraceSession(method, key=KEY, ledger=ledger, person_id="ana")
        answers(session, WALK)
        assert ledger.spent("ana") == pytest.approx(session.spent, rel=1e-9)


def test_repeating_a_step_costs_nothing_also_after_a_crash() -> None:
    with Ledger("sqlite://", budget=100) as ledger:
        method = Independent(0.01)
        session = TraceSession(method, key=KEY, ledger=ledger, person_id="ana")
        before = session.state()
        first = session.report(**PARIS, time=0)
        assert session.report(**PARIS, time=0) == first
        crashed = TraceSession.resume(before, method, key=KEY, ledger=ledger, person_id="ana")
        assert crashed.report(**PARIS, time=0) == first
        assert ledger.spent("ana") == pytest.approx(0.01)
        # Another place at that time is refused, because the ledger knows that the step was answered.
        other = TraceSession.resume(before, method, key=KEY, ledger=ledger, person_id="ana")
        with pytest.raises(InvalidInputError, match="one session per person and key"):
            other.report(lat=48.9, lon=2.4, time=0)
        assert ledger.spent("ana") == pytest.approx(0.01)


def test_a_guarded_place_shows_nothing() -> None:
    seen: list[object] = []

    class Curious(Independent):
        def answer(self, history: History, place: GuardedPlace) -> tuple[History, tuple[float, float]]:
            seen.extend([repr(place), str(place), getattr(place, "__dict__", None)])
            return history, (0.0, 0.0)

    TraceSession(Curious(0.01), key=KEY).report(**PARIS, time=0)
    assert "48" not in str(seen)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lat": 91.0}, "latitude"),
        ({"lat": math.nan}, "finite|NaN|number"),
        ({"time": math.nan}, "time"),
        ({"time": None}, "time"),
        ({"lon": None}, "lon"),
        ({"time": datetime(2026, 1, 1)}, "time zone"),
        ({"time": -1.0}, "before the last"),
        ({"lat": 48.9}, "same time"),
    ],
)
def test_bad_steps_are_refused_and_nothing_is_charged(changed: dict[str, object], message: str) -> None:
    with Ledger("sqlite://", budget=1) as ledger:
        session = TraceSession(Independent(0.01), key=KEY, ledger=ledger, person_id="ana")
        session.report(**PARIS, time=datetime.fromtimestamp(0, UTC))
        with pytest.raises(InvalidInputError, match=message) as refused:
            session.report(**({**PARIS, "time": 0.0} | changed))  # type: ignore[arg-type]
        assert "48" not in str(refused.value)
        assert ledger.spent("ana") == pytest.approx(0.01)


def test_a_broken_state_a_short_key_or_half_a_payer_are_clear_errors() -> None:
    method = Independent(0.01)
    for state in ("", "{}", "[]", '{"history": [], "seen": ""}', '{"history": {}, "seen": ""}'):
        with pytest.raises(InvalidInputError, match="state"):
            TraceSession.resume(state, method, key=KEY)
    with pytest.raises(InvalidInputError, match="32 bytes"):
        TraceSession(method, key=b"short")
    with Ledger("sqlite://", budget=1) as ledger, pytest.raises(InvalidInputError, match="needs person_id"):
        TraceSession(method, ledger=ledger)


def test_two_persons_under_one_key_do_not_share_their_noise() -> None:
    ana, bea = (TraceSession(METHODS[3], key=KEY, person_id=person) for person in ("ana", "bea"))
    assert answers(ana, WALK) != answers(bea, WALK)


def test_the_mean_cost_of_an_hour_is_what_was_spent_over_the_time() -> None:
    session = TraceSession(Independent(0.01), key=KEY)
    assert math.isnan(session.epsilon_per_hour)
    for quarter in range(9):
        session.report(**PARIS, time=900.0 * quarter)
    assert session.epsilon_per_hour == pytest.approx(0.09 / 2)


def test_a_name_with_space_around_it_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="without space"):
        TraceSession(Independent(0.01), person_id="ana ")


def test_jumps_gaps_and_repeated_steps_are_answered() -> None:
    session = TraceSession(Independent(0.01), key=KEY)
    first = session.report(**PARIS, time=0)
    assert session.report(**PARIS, time=0) == first
    far = session.report(lat=-33.8688, lon=151.2093, time=1)
    assert abs(far.lat + 33.8688) < 1
    assert session.report(**PARIS, time=1e9) != first
    assert session.spent == pytest.approx(0.03)


def test_one_person_typed_in_two_ways_has_one_session() -> None:
    one, other = (TraceSession(Independent(0.01), key=KEY, person_id=name) for name in ("Zoe\u0308", "Zo\u00eb"))
    assert one.report(**PARIS, time=0) == other.report(**PARIS, time=0)


def test_two_threads_do_not_answer_from_the_same_history() -> None:
    done = threading.Event()

    def meanwhile(history: History) -> tuple[float, float]:
        if history.time == 60:
            threading.Thread(target=later).start()
            # Without taking turns the other thread answers now.
            done.wait(0.5)
            assert not done.is_set()
        return history.last.place

    def later() -> None:
        session.report(**PARIS, time=120)
        done.set()

    session = TraceSession(Predictive(0.01, 0.01, 1000, meanwhile), key=KEY)
    session.report(**PARIS, time=0)
    session.report(**PARIS, time=60)
    assert done.wait(60)
    with pytest.raises(InvalidInputError, match="before the last"):
        session.report(**PARIS, time=90)


SPARSE = SparseVector(0.01, 0.01, 1500, 0.005)


def test_a_new_worker_for_each_report_answers_as_one_session_would(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    one = TraceSession(SPARSE, key=KEY, person_id="ana")
    for lat, lon, time in WALK[:24]:
        with Ledger(url, budget=10) as ledger:
            answer = TraceSession(SPARSE, key=KEY, ledger=ledger, person_id="ana").report(
                lat=lat, lon=lon, time=time
            )
        assert answer == one.report(lat=lat, lon=lon, time=time)
    with Ledger(url, budget=10) as ledger:
        assert ledger.spent("ana") == pytest.approx(one.spent)
        assert TraceSession(SPARSE, key=KEY, ledger=ledger, person_id="ana").spent == one.spent


def test_persons_do_not_share_a_session_and_forgetting_one_deletes_it() -> None:
    with Ledger("sqlite://", budget=1) as ledger:
        ana, bea = (TraceSession(SPARSE, key=KEY, ledger=ledger, person_id=person) for person in ("ana", "bea"))
        assert ana.report(**PARIS, time=0) != bea.report(**PARIS, time=0)
        ledger.forget("ana")
        assert TraceSession(SPARSE, key=KEY, ledger=ledger, person_id="ana").spent == 0
        assert bea.spent == pytest.approx(0.02)


def test_a_key_is_a_key_or_its_bytes() -> None:
    bytes_and_key = [TraceSession(SPARSE, key=key, person_id="ana") for key in (KEY, Key(KEY))]
    first, second = (answers(session, WALK[:10]) for session in bytes_and_key)
    assert first == second
    resumed = TraceSession.resume(bytes_and_key[0].state(), SPARSE, key=Key(KEY), person_id="ana")
    assert answers(resumed, WALK[10:]) == answers(bytes_and_key[1], WALK[10:])
