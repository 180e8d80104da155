"""Private zones on the device are those of Python."""

import json

from geoind import TraceSession
from geoind.traces import PrivateZone, SparseVector

from .conftest import Script

KEY = bytes(range(32))
HOME = (48.8584, 2.2945)

RUN = """
const key = Uint8Array.from({ length: 32 }, (_, i) => i);
const zone = geoind.PrivateZone.around({ lat: given.home[0], lon: given.home[1], epsilon: 0.01, key });
const session = new geoind.TraceSession(geoind.SparseVector.forAccuracy(500), { key, zone });
const reports = given.walk.map(([time, lat, lon]) => session.report({ time, lat, lon }));
return { zone: [zone.lon, zone.lat, zone.radius, zone.limit, zone.test], charges: session.maxCharges,
    reports: reports.map(({ lat, lon }) => [lat, lon]), state: session.state() };
"""

LATER = """
const key = Uint8Array.from({ length: 32 }, (_, i) => i);
const zone = new geoind.PrivateZone({ lon: given.zone[0], lat: given.zone[1], radius: given.zone[2] });
const session = geoind.TraceSession.resume(given.state, geoind.SparseVector.forAccuracy(500), { key, zone });
session.report(given.step);
return session.state();
"""


def days() -> list[tuple[float, float, float]]:
    """Return a person who is at home for 16 steps, and goes away by up to 11 km for 24, ten times."""
    away = [max(0, step % 40 - 15) * 0.004 for step in range(400)]
    return [(60.0 * step, HOME[0] + far, HOME[1]) for step, far in enumerate(away)]


def test_a_session_with_a_zone_is_that_of_python(script: Script) -> None:
    zone = PrivateZone.around(lat=HOME[0], lon=HOME[1], epsilon=0.01, key=KEY)
    method = SparseVector.for_accuracy(500)
    python = TraceSession(method, key=KEY, zone=zone)
    device = script(RUN, {"home": HOME, "walk": days()})
    assert device["zone"] == [zone.lon, zone.lat, zone.radius, zone.limit, zone.test]
    assert device["charges"] == [*zone.max_charges(method)]
    reports = [list(python.report(lat=lat, lon=lon, time=time)) for time, lat, lon in days()]
    assert device["reports"] == reports
    assert json.loads(device["state"]) == json.loads(python.state())
    centre = [zone.lat, zone.lon]
    assert 50 < reports.count(centre) < 350


def test_a_zone_that_is_made_later_takes_over_a_place_within_it(script: Script) -> None:
    method = SparseVector.for_accuracy(500)
    before = TraceSession(method, key=KEY)
    before.report(lat=HOME[0], lon=HOME[1], time=0)
    step = {"lat": HOME[0], "lon": HOME[1], "time": 60}
    zone = PrivateZone(HOME[1], HOME[0], 5000.0)
    python = TraceSession.resume(before.state(), method, key=KEY, zone=zone)
    assert python.report(lat=HOME[0], lon=HOME[1], time=60) == (zone.lat, zone.lon)
    given = {"state": before.state(), "zone": [zone.lon, zone.lat, zone.radius], "step": step}
    assert json.loads(script(LATER, given)) == json.loads(python.state())
