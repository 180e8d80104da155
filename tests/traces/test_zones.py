"""A private zone answers with its centre; entering and leaving are private and paid for."""

import itertools
import math

import numpy as np
import pytest

from geoind import BudgetExceededError, InvalidInputError, Key, Ledger, Projection, SamePlace, TraceSession
from geoind.arrays import FloatArray
from geoind.traces import (
    Cached,
    GuardedPlace,
    History,
    Independent,
    Predictive,
    PrivateZone,
    Rationed,
    SparseVector,
    Switching,
    TraceMethod,
)
from geoind.traces.laws import has_left as left_law
from geoind.traces.laws import laplace_quantile, shares
from geoind.traces.questions import arc_length
from tests.traces.walks import KEY, LAT, LON, METRE, walk_north

SPARSE = SparseVector.for_accuracy(500)
METHODS: list[TraceMethod] = [Independent(0.01), Predictive.for_accuracy(500), SPARSE, Switching(SPARSE)]


def zone_of(number: int = 0, epsilon: float = 0.01) -> PrivateZone:
    return PrivateZone.around(lat=LAT, lon=LON, epsilon=epsilon, key=number.to_bytes(32))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_in_a_zone_every_answer_is_its_centre_and_only_the_entry_is_paid(method: TraceMethod) -> None:
    zone = zone_of()
    session = TraceSession(method, key=KEY, zone=zone)
    assert set(walk_north(session, [0.0, 50.0, -100.0, 0.0])) == {(zone.lon, zone.lat)}
    entered = session.spent
    assert entered <= sum(zone.max_charges(method))
    assert set(walk_north(session, [0.0] * 100, begin=1200.0)) == {(zone.lon, zone.lat)}
    assert session.spent == entered
    outside = session.report(lat=LAT + METRE * 9000, lon=LON, time=1e6)
    assert (outside.lon, outside.lat) != (zone.lon, zone.lat)
    assert session.spent > entered


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_the_report_that_the_centre_replaces_is_neither_kept_nor_tested(method: TraceMethod) -> None:
    zone = zone_of()
    session = TraceSession(method, key=KEY, zone=zone)
    session.report(lat=LAT, lon=LON, time=0)
    history = session._history
    assert history is not None
    assert history.anchors == ((zone.lon, zone.lat),)
    assert history.run is not None
    assert (history.run.place, history.run.epsilon, history.runs) == ((zone.lon, zone.lat), zone.test, 1)
    assert session.costs[zone.test] == 1
    assert sum(session.costs.values()) == 2


def test_back_home_the_centre_is_published_again_however_often_one_leaves() -> None:
    zone = zone_of()
    session = TraceSession(SPARSE, key=KEY, zone=zone)
    places = [place for day in range(20) for place in ([0.0] * 20 + [9000.0] * 20)]
    answers = walk_north(session, places)
    at_home = [answer for answer, place in zip(answers, places, strict=True) if not place]
    assert np.mean([answer == (zone.lon, zone.lat) for answer in at_home]) > 0.9
    # Each return is a run of its own, and the centre is one of the places to return to.
    assert 15 <= session.costs[zone.test] <= 40
    history = session._history
    assert history is not None
    assert history.anchors.count((zone.lon, zone.lat)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("every", [1.0, 15.0])
def test_a_night_at_home_rarely_leaves_the_zone(every: float) -> None:
    """At home, the noise of 12 hours of tests passes the limit in about 13 of 100 nights."""
    leaves = []
    for number in range(60):
        zone = zone_of(number)
        session = TraceSession(Independent(0.01), key=number.to_bytes(32), zone=zone)
        walk_north(session, [0.0] * int(720 / every), every=60 * every)
        leaves.append(session.costs[zone.test] > 1)
    assert np.mean(leaves) <= (0.25 if every == 1 else 0.06)
    assert every != 1 or np.mean(leaves) >= 0.03


def test_a_departure_is_noticed_within_a_few_steps() -> None:
    late = []
    for number in range(40):
        zone = zone_of(number)
        session = TraceSession(SPARSE, key=number.to_bytes(32), zone=zone)
        walk_north(session, [0.0] * 3)
        metres = np.arange(0, 12_000, 250.0)
        answers = walk_north(session, metres.tolist(), begin=1e5, every=60.0)
        first = next(step for step, answer in enumerate(answers) if answer != (zone.lon, zone.lat))
        centre = arc_length(LON, LAT + METRE * metres[first], zone.lon, zone.lat)
        late.append(centre - zone.limit)
    # The noise of the tests and of their limit; a step is 250 m.
    assert np.quantile(late, 0.95) < 1500
    assert abs(np.median(late)) < 750


def test_without_allowance_nothing_is_paid_however_far_one_goes() -> None:
    zone = zone_of()
    session = TraceSession(Rationed(Independent(0.01), 1e-6, 10_000.0), key=KEY, zone=zone)
    answers = walk_north(session, [0.0, 0.0, *([9000.0] * 50)])
    assert set(answers) == {(zone.lon, zone.lat)}
    assert session.spent == 0.01 + zone.test


@pytest.mark.parametrize("seed", range(4))
def test_an_allowance_is_exceeded_by_the_tests_of_one_entry_at_most(seed: int) -> None:
    zone, rng = zone_of(seed), np.random.default_rng(seed)
    rationed = Rationed(Switching(SPARSE), 0.06, 2.0)
    session = TraceSession(rationed, key=KEY, zone=zone)
    now, spent = 0.0, [(0.0, 0.0)]
    for place in np.repeat(rng.choice([0.0, 500.0, 4000.0, 9000.0], 60), rng.integers(1, 8, 60)).tolist():
        now, before = now + float(rng.exponential(300)), session.spent
        session.report(lat=LAT + METRE * place, lon=LON, time=now)
        spent.append((now, session.spent - before))
    assert session.costs[zone.test] > 3
    for begin, end in itertools.combinations(range(len(spent)), 2):
        total = sum(cost for _, cost in spent[begin : end + 1])
        hours = (spent[end][0] - spent[begin][0]) / 3600
        assert total <= rationed.per_hour * (hours + rationed.saved) + zone.test + 1e-9


def test_a_held_report_and_a_zone_agree() -> None:
    zone = zone_of()
    session = TraceSession(Cached(0.01, minutes=12), key=KEY, zone=zone)
    answers = walk_north(session, [0.0, 0.0, *([9000.0] * 6), *([0.0] * 6)])
    assert answers[:2] == [(zone.lon, zone.lat)] * 2
    assert answers[-1] == (zone.lon, zone.lat)
    assert len(set(answers)) > 1
    assert session.costs[0.01] + session.costs[zone.test] == sum(session.costs.values())


@pytest.mark.parametrize("stop", [1, 3, 7])
def test_a_session_in_a_zone_goes_on_after_a_restart(stop: int) -> None:
    zone, places = zone_of(), [0.0, 0.0, 9000.0, 9000.0, 0.0, 0.0, 9000.0, 0.0]
    whole = TraceSession(SPARSE, key=KEY, zone=zone)
    expected = walk_north(whole, places)
    first = TraceSession(SPARSE, key=KEY, zone=zone)
    begun = walk_north(first, places[:stop])
    second = TraceSession.resume(first.state(), SPARSE, key=KEY, zone=zone)
    assert begun + walk_north(second, places[stop:], begin=300.0 * stop) == expected
    assert second.spent == pytest.approx(whole.spent)


# The promise, by computation

D, LIMIT = 200.0, 600.0
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
CUTS = np.array([0, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.25, 0.4, 0.5])
CUTS = np.concatenate((CUTS, 1 - CUTS[-2::-1]))
HIDDEN = np.concatenate([(a + b + (b - a) * NODES) / 2 for a, b in itertools.pairwise(CUTS)])
MASS = np.concatenate([(b - a) / 2 * WEIGHTS for a, b in itertools.pairwise(CUTS)])


def inside(truth: FloatArray, epsilon: float, radius: float) -> FloatArray:
    """Return the probability that linear Laplace noise around a place ends in the zone, which is around 0."""

    def below(bar: FloatArray) -> FloatArray:
        return np.where(bar < 0, 0.5 * np.exp(epsilon * bar), 1 - 0.5 * np.exp(-epsilon * np.abs(bar)))

    return np.asarray(below(radius - truth) - below(-radius - truth))


def transcripts(
    truths: list[tuple[float, float]], fresh: float, test: float, radius: float
) -> dict[tuple[str, int], FloatArray]:
    """Return the probability, for both of two traces, of what is published together with how many runs were paid.

    On a line; the method is fresh noise at every step outside. An answer outside is only "outside": where it lies
    adds fresh * D at most, as for any report. Runs are integrated over their shared noise.
    """
    for_limit, for_tests = shares(test)
    bars = LIMIT + laplace_quantile(HIDDEN[:, None], 1 / for_limit)
    found: dict[tuple[str, int], FloatArray] = {}

    def follow(step: int, answers: str, paid: int, reports: int, run: FloatArray | None, done: FloatArray) -> None:
        if step == len(truths):
            total = done if run is None else done * (MASS @ run)
            key = (answers, paid * 100 + reports)
            found[key] = found.get(key, np.zeros(2)) + total
            return
        truth = np.array(truths[step])
        near = inside(truth, fresh, radius)
        if run is None:
            follow(step + 1, answers + "c", paid + 1, reports + 1, np.ones((len(MASS), 2)), done * near)
            follow(step + 1, answers + "o", paid, reports + 1, None, done * (1 - near))
            return
        left = left_law(bars, np.abs(truth), 2 / for_tests)
        follow(step + 1, answers + "c", paid, reports, run * (1 - left), done)
        ended = done * (MASS @ (run * left))
        follow(step + 1, answers + "c", paid + 1, reports + 1, np.ones((len(MASS), 2)), ended * near)
        follow(step + 1, answers + "o", paid, reports + 1, None, ended * (1 - near))

    follow(0, "", 0, 0, None, np.ones(2))
    return found


@pytest.mark.parametrize(
    "truths",
    [
        [(0.0, D)] * 5,
        [(0.0, D), (0.0, -D), (500.0, 500 + D), (700.0, 700 - D), (0.0, D)],
        [(100.0, 300.0), (0.0, 0.0), (600.0, 800.0), (100.0, -100.0), (900.0, 700.0)],
    ],
)
def test_answers_together_with_what_was_spent_reveal_no_more_than_was_spent(
    truths: list[tuple[float, float]],
) -> None:
    fresh, test = 0.004, 0.006
    found = transcripts(truths, fresh, test, 200.0)
    assert sum(found.values()) == pytest.approx(np.ones(2), rel=1e-6)
    shares_of_price = []
    for (_, paid), (here, there) in found.items():
        spent = (paid // 100) * test + (paid % 100) * fresh
        shares_of_price.append(abs(math.log(here / there)) / (spent * D))
    assert max(shares_of_price) <= 1 + 1e-9
    assert max(shares_of_price) > 0.3


def test_a_zone_with_an_exact_border_breaks_the_promise() -> None:
    """The computation above can fail: a run with little noise, paid as one with much, exceeds its price."""
    found = transcripts([(0.0, D), (550.0, 650.0), (650.0, 550.0)], 0.004, 0.2, 200.0)
    worst = max(
        abs(math.log(here / there)) / ((paid // 100 * 0.006 + paid % 100 * 0.004) * D)
        for (_, paid), (here, there) in found.items()
        if min(here, there) > 0
    )
    assert worst > 1.5


# The centre


def test_the_centre_of_a_zone_is_noise_around_home_and_mostly_within_the_radius() -> None:
    apart = [arc_length(LON, LAT, zone.lon, zone.lat) for zone in map(zone_of, range(400))]
    assert np.mean(apart) == pytest.approx(200, rel=0.15)
    assert 0.97 < np.mean(np.array(apart) <= zone_of().radius - 100) <= 1


@pytest.mark.slow
def test_a_home_that_is_measured_again_has_the_same_centre_or_one_of_four() -> None:
    plane = Projection(LON, LAT)
    rng = np.random.default_rng(5)
    numbers = []
    for person in range(60):
        homes = plane.to_lonlat(rng.normal(0, 8, (30, 2)))
        key = person.to_bytes(32)
        zones = {PrivateZone.around(lat=lat, lon=lon, epsilon=0.01, key=key) for lon, lat in homes.tolist()}
        numbers.append(len(zones))
    assert max(numbers) <= 4
    assert np.mean(np.array(numbers) == 1) > 0.5


def test_each_further_centre_is_paid_for() -> None:
    with Ledger("sqlite://", budget=1) as ledger:
        homes = [(LAT + 40 * METRE * step, LON) for step in range(30)]
        zones = {
            PrivateZone.around(lat=lat, lon=lon, epsilon=0.01, key=KEY, ledger=ledger, person_id="ana")
            for lat, lon in homes
        }
        assert 5 < len(zones) < 15
        assert ledger.spent("ana") == pytest.approx(0.01 * len(zones))


def test_a_zone_is_paid_for_once_and_before_it_is_drawn() -> None:
    with Ledger("sqlite://", budget=0.015) as ledger:
        home = {"lat": LAT, "lon": LON, "epsilon": 0.01, "key": KEY, "ledger": ledger, "person_id": "ana"}
        zone = PrivateZone.around(**home)  # type: ignore[arg-type]
        assert PrivateZone.around(**home) == zone  # type: ignore[arg-type]
        assert ledger.spent("ana") == pytest.approx(0.01)
        with pytest.raises(BudgetExceededError):
            PrivateZone.around(**(home | {"lat": 48.9}))  # type: ignore[arg-type]
        # The centre is the report of the same place, which is then paid for, too.
        memory = SamePlace(KEY, cell=200)
        report = memory.obfuscate(lat=LAT, lon=LON, epsilon=0.01, person_id="ana", ledger=ledger)
        assert (report.lon, report.lat) == (zone.lon, zone.lat)
        assert ledger.spent("ana") == pytest.approx(0.01)


def test_a_person_has_one_zone_however_the_name_was_typed_or_the_number_kept() -> None:
    with Ledger("sqlite://", budget=0.1) as ledger:

        def zone(person: str | int) -> PrivateZone:
            return PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=KEY, ledger=ledger, person_id=person)

        assert zone("Zoe\u0301") == zone("Zo\u00e9") != zone("Zoe")
        assert zone(7) == zone(np.int64(7)) == zone("7")  # type: ignore[arg-type]
        assert ledger.spent("Zo\u00e9") == ledger.spent(7) == pytest.approx(0.01)
        with pytest.raises(InvalidInputError, match="without space around it"):
            zone("Zo\u00e9 ")
        assert ledger.spent("Zo\u00e9") == pytest.approx(0.01)


def test_a_zone_with_too_little_noise_is_refused_before_it_is_paid_for() -> None:
    with Ledger("sqlite://", budget=10) as ledger:
        with pytest.raises(InvalidInputError, match="likely a unit error"):
            PrivateZone.around(lat=LAT, lon=LON, epsilon=5, key=KEY, ledger=ledger, person_id="ana")
        assert ledger.spent("ana") == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lon": 200.0}, "centre"),
        ({"lat": 91.0}, "centre"),
        ({"radius": 0.0}, "radius"),
        ({"radius": math.nan}, "radius"),
    ],
)
def test_a_zone_is_a_disk_on_earth(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        PrivateZone(**({"lon": LON, "lat": LAT, "radius": 300.0} | wrong))  # type: ignore[arg-type]


def test_a_ledger_needs_a_person() -> None:
    with Ledger("sqlite://", budget=1) as ledger, pytest.raises(InvalidInputError, match="whose budget pays"):
        PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=KEY, ledger=ledger)


def test_a_zone_without_a_ledger_has_the_cost_and_the_token_of_one_that_was_paid_for() -> None:
    with Ledger("sqlite://", budget=1) as ledger:
        zones = [
            PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=KEY, person_id="ana", ledger=payer)
            for payer in (None, ledger)
        ]
    assert zones[0] == zones[1]
    assert (zones[0].epsilon, zones[0].person_id) == (0.01, "ana")
    assert zones[0].token != PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=KEY).token != ""


@pytest.mark.parametrize("key", [bytes(31), bytes(33), "k" * 32])
def test_a_zone_has_a_key_of_32_bytes(key: bytes) -> None:
    with pytest.raises(InvalidInputError, match="32 bytes"):
        PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=key)


def test_a_zone_takes_a_key_or_its_bytes() -> None:
    zones = {PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=key) for key in (KEY, Key(KEY))}
    assert len(zones) == 1


def test_a_report_on_the_border_belongs_to_the_zone() -> None:
    north = (LON, LAT + 300 * METRE)

    class Fixed(Independent):
        def answer(self, history: History, place: GuardedPlace) -> tuple[History, tuple[float, float]]:
            place.report(self.epsilon)
            return history, north

    for radius, answer in ((arc_length(*north, LON, LAT), (LON, LAT)), (299.0, north)):
        session = TraceSession(Fixed(0.01), key=KEY, zone=PrivateZone(LON, LAT, radius))
        assert walk_north(session, [0.0]) == [answer]
