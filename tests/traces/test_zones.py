"""A private zone answers with its centre, once paid for, and hides what happens inside."""

import math

import numpy as np
import pytest

from geoind import BudgetExceededError, InvalidInputError, Ledger, TraceSession
from geoind.traces import Independent, PrivateZone, SparseVector
from geoind.traces.comparison import arc_length
from tests.traces.walks import KEY, LAT, LON, METRE, walk_north


def test_inside_a_zone_every_answer_is_its_centre_and_nothing_is_paid() -> None:
    zone = PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=KEY)
    session = TraceSession(Independent(0.01), key=KEY, zone=zone)
    assert set(walk_north(session, [0.0, 50.0, -100.0, 0.0])) == {(zone.lon, zone.lat)}
    assert session.spent == 0
    outside = session.report(lat=LAT + METRE * 5000, lon=LON, time=1e5)
    assert (outside.lon, outside.lat) != (zone.lon, zone.lat)
    assert session.spent == 0.01


def test_what_happens_inside_a_zone_changes_no_answer_outside() -> None:
    zone = PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=KEY)
    for method in (Independent(0.01), SparseVector.for_accuracy(500)):
        sessions = (TraceSession(method, key=KEY, zone=zone) for _ in range(2))
        one, other = (
            walk_north(session, [inside, 3000, 5000, inside, inside / 2, 6000, 6000])
            for session, inside in zip(sessions, (0.0, 120.0), strict=True)
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
            zone("Zo\u00e9 ")
        assert ledger.spent("Zo\u00e9") == pytest.approx(0.01)


def test_a_zone_whose_centre_is_the_home_is_refused_before_anybody_pays() -> None:
    with Ledger("sqlite://", budget=10) as ledger:
        with pytest.raises(InvalidInputError, match="hide nobody"):
            PrivateZone.around(lat=LAT, lon=LON, epsilon=5, key=KEY, ledger=ledger, person="ana")
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
        PrivateZone(**({"lon": LON, "lat": LAT, "radius": 300.0} | wrong))


def test_its_border_belongs_to_a_zone() -> None:
    north = LAT + 300 * METRE
    assert PrivateZone(LON, LAT, arc_length(LON, north, LON, LAT)).contains(LON, north)


def test_a_ledger_and_a_person_go_together() -> None:
    with Ledger("sqlite://", budget=1) as ledger:
        for half in ({"ledger": ledger}, {"person": "ana"}):
            with pytest.raises(InvalidInputError, match="go together"):
                PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=KEY, **half)


@pytest.mark.parametrize("key", [bytes(31), bytes(33), "k" * 32])
def test_a_key_has_32_bytes(key: bytes) -> None:
    with pytest.raises(InvalidInputError, match="key must be 32 bytes"):
        PrivateZone.around(lat=LAT, lon=LON, epsilon=0.01, key=key)
