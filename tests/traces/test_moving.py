"""Zones, switching, attacks and the commuter they are measured on."""

import math

import numpy as np
import pytest

from geoind import BudgetExceededError, InvalidInputError, Ledger, Mobility, TraceSession, trace_adversary_error
from geoind.space.projection import Projection
from geoind.space.sites import Grid
from geoind.traces import (
    Independent,
    PrivateZone,
    SparseVector,
    Switching,
    average,
    commuter,
    middle,
    most_likely_places,
    smooth,
)
from geoind.traces.commuter import HOME
from geoind.traces.comparison import arc_length

KEY = bytes(range(32))
LON, LAT = HOME
METRE = 180 / (math.pi * 6_371_008.8)


def run(session: TraceSession, norths: list[float], every: float = 300.0) -> list[tuple[float, float]]:
    steps = enumerate(norths)
    reports = [session.report(lat=LAT + METRE * north, lon=LON, time=every * step) for step, north in steps]
    return [(report.lon, report.lat) for report in reports]


def test_inside_a_zone_every_answer_is_its_centre_and_nothing_is_paid() -> None:
    zone = PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=KEY)
    session = TraceSession(Independent(0.01), key=KEY, zone=zone)
    assert set(run(session, [0.0, 50.0, -100.0, 0.0])) == {(zone.lon, zone.lat)}
    assert session.spent == 0
    outside = session.report(lat=LAT + METRE * 5000, lon=LON, time=1e5)
    assert (outside.lon, outside.lat) != (zone.lon, zone.lat)
    assert session.spent == 0.01


def test_what_happens_inside_a_zone_changes_no_answer_outside() -> None:
    zone = PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=KEY)
    for method in (Independent(0.01), SparseVector.for_accuracy(500)):
        one, other = (
            run(TraceSession(method, key=KEY, zone=zone), [inside, 3000, 5000, inside, inside / 2, 6000, 6000])
            for inside in (0.0, 120.0)
        )
        assert one == other


def test_a_home_is_within_its_zone_in_99_of_100_cases() -> None:
    zones = [PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=n.to_bytes(32)) for n in range(400)]
    within = [arc_length(LON, LAT, zone.lon, zone.lat) <= zone.radius - 200 for zone in zones]
    assert 0.97 < np.mean(within) <= 1


def test_the_centre_of_a_zone_is_noise_around_home_and_not_home() -> None:
    zones = [PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=n.to_bytes(32)) for n in range(400)]
    assert np.mean([arc_length(LON, LAT, zone.lon, zone.lat) for zone in zones]) == pytest.approx(200, rel=0.15)


def test_a_zone_is_paid_for_once_and_before_it_is_drawn() -> None:
    with Ledger("sqlite://", budget=0.015) as ledger:
        home = {"lat": LAT, "lon": LON, "epsilon": 0.01, "key": KEY, "ledger": ledger, "person": "ana"}
        assert PrivateZone.around(**home) == PrivateZone.around(**home)  # type: ignore[arg-type]
        assert ledger.spent("ana") == pytest.approx(0.01)
        with pytest.raises(BudgetExceededError):
            PrivateZone.around(**(home | {"lat": 48.9}))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="32 bytes"):
        PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=b"short")


def test_a_person_has_one_zone_however_the_name_was_typed_or_the_number_kept() -> None:
    with Ledger("sqlite://", budget=0.1) as ledger:

        def zone(person: str | int) -> PrivateZone:
            return PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=KEY, ledger=ledger, person=person)

        assert zone("Zoe\u0301") == zone("Zo\u00e9") != zone("Zoe")
        assert zone(7) == zone(np.int64(7)) == zone("7")  # type: ignore[arg-type]
        assert ledger.spent("Zo\u00e9") == ledger.spent(7) == pytest.approx(0.01)
        with pytest.raises(InvalidInputError, match="without space around it"):
            zone("Zoe ")
        assert ledger.spent("Zoe ") == 0


def test_somebody_who_never_stays_pays_less_with_switching_and_somebody_who_stays_the_same() -> None:
    sparse = SparseVector(0.02, 0.02, 1500, 0.01)
    moving = [9000.0 * step for step in range(48)]
    costs = []
    for method in (sparse, Switching(sparse), Independent(0.02)):
        session = TraceSession(method, key=KEY)
        run(session, moving)
        costs.append(session.spent)
    assert costs[2] < costs[1] < 0.85 * costs[0]
    staying = [TraceSession(method, key=KEY) for method in (sparse, Switching(sparse))]
    assert run(staying[0], [0.0] * 50) == run(staying[1], [0.0] * 50)
    assert staying[0].spent == staying[1].spent


def test_switching_goes_back_to_silence_in_the_next_hour() -> None:
    sparse = SparseVector(0.02, 0.04, 3000, 0.01)
    session = TraceSession(Switching(sparse), key=KEY)
    run(session, [9000.0 * step for step in range(12)])
    before = session.spent
    for step in range(12, 36):
        session.report(lat=LAT, lon=LON, time=300.0 * step)
    assert session.spent - before <= sparse.choice + sparse.fresh + sparse.test + 1e-12


def test_the_commuter_is_at_home_at_night_and_7616_m_away_at_noon() -> None:
    times, lonlat = commuter(days=2)
    apart = np.array([arc_length(LON, LAT, *place) for place in lonlat.tolist()])
    hours = times / 3600 % 24
    assert apart[(hours < 8) | (hours >= 18.5)].max() < 60
    assert apart[(hours >= 8.5) & (hours < 18)] == pytest.approx(7616, abs=60)
    assert ((apart > 1000) & (apart < 6500)).any()


def test_many_reports_of_one_place_average_to_it() -> None:
    session = TraceSession(Independent(0.01), key=KEY)
    reports = run(session, [0.0] * 600)
    for guess in (average(reports), middle(reports)):
        assert arc_length(LON, LAT, *guess.tolist()) < 35


def test_smoothing_takes_the_reports_around_each_moment_and_no_other() -> None:
    reports = np.column_stack((np.full(10, 2.0), 48 + np.arange(10) / 1000))
    found = smooth(reports, 60.0 * np.arange(10), window=60)
    np.testing.assert_allclose(found[1:-1, 1], reports[1:-1, 1], atol=1e-7)
    with pytest.raises(InvalidInputError, match="one per report"):
        smooth(reports, [1, 2])


def test_the_bayesian_who_knows_how_people_move_beats_the_reports_themselves() -> None:
    times, truth = commuter(days=1, every=1800.0)
    method = Independent.for_accuracy(1500)
    session = TraceSession(method, key=KEY)
    answers = [
        session.report(lat=lat, lon=lon, time=time)
        for time, (lon, lat) in zip(times.tolist(), truth.tolist(), strict=True)
    ]
    reports = [(answer.lon, answer.lat) for answer in answers]
    plane = Projection(LON, LAT)
    grid = Grid(-4000.0, -7000.0, cell=500.0, columns=30, rows=24)
    mobility = Mobility(grid, plane, stay=0.9)
    apart = np.hypot(*(plane.to_xy(np.array(reports)) - plane.to_xy(truth)).T)
    learned = trace_adversary_error(reports, truth, times=times, method=method, mobility=mobility)
    assert learned < 0.7 * apart.mean()
    path = plane.to_xy(most_likely_places(reports, times, method=method, mobility=mobility)) - plane.to_xy(truth)
    assert np.hypot(*path.T).mean() < 0.8 * apart.mean()
