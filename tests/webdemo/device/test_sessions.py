"""Sessions and cells on the device are those of Python, and a state continues on the other side."""

import json
import math
from typing import Any

import numpy as np
import pytest

from geoind import InvalidInputError, SamePlace, TraceSession
from geoind.traces import SparseVector

from .conftest import Script

KEY = bytes(range(32))
METHOD = SparseVector(fresh=0.01, test=0.01, limit=900.0, choice=0.005, places=3)
OPTIONS = {"fresh": 0.01, "test": 0.01, "limit": 900.0, "choice": 0.005, "places": 3}

RUN = """
const key = Uint8Array.from({ length: 32 }, (_, i) => i);
const method = new geoind.SparseVector(given.method);
const session = given.state ? geoind.TraceSession.resume(given.state, method, { key, person: given.person })
    : new geoind.TraceSession(method, { key, person: given.person });
const reports = given.walk.map(([time, lon, lat]) => session.report({ time, lon, lat }));
return { reports: reports.map(({ lat, lon }) => [lat, lon]), state: session.state(), spent: session.spent };
"""


def walk(seed: int, steps: int) -> list[list[float]]:
    """Return a person who stays at three places in turn, and walks between them."""
    rng = np.random.default_rng(seed)
    stops = rng.normal([2.3, 48.86], 0.03, (3, 2))
    rows = []
    for step in range(steps):
        lon, lat = stops[rng.integers(3) if step % 7 == 0 else step // 7 % 3] + rng.normal(0, 1e-4, 2)
        rows.append([60.0 * step + 0.5, float(lon), float(lat)])
    return rows


def test_a_session_is_that_of_python(script: Script) -> None:
    for seed in range(3):
        python = TraceSession(METHOD, key=KEY, person_id=seed)
        steps = walk(seed, 150)
        device = script(RUN, {"method": OPTIONS, "walk": steps, "person": seed})
        reports = [list(python.report(lat=lat, lon=lon, time=time)) for time, lon, lat in steps]
        assert device["reports"] == reports
        assert json.loads(device["state"]) == json.loads(python.state())
        assert device["spent"] == python.spent
        assert len({tuple(report) for report in reports}) > 5


def test_a_state_continues_on_the_other_side(script: Script) -> None:
    steps = walk(9, 120)
    whole = TraceSession(METHOD, key=KEY)
    wanted = [list(whole.report(lat=lat, lon=lon, time=time)) for time, lon, lat in steps]
    found: list[list[float]] = []
    state: str | None = None
    for start in range(0, 120, 20):
        part = steps[start : start + 20]
        if start % 40:
            assert state is not None
            python = TraceSession.resume(state, METHOD, key=KEY)
            found += [list(python.report(lat=lat, lon=lon, time=time)) for time, lon, lat in part]
            assert all(type(degrees) is float for report in found for degrees in report)
            state = python.state()
        else:
            device = script(RUN, {"method": OPTIONS, "walk": part, "state": state})
            found += device["reports"]
            state = device["state"]
    assert found == wanted
    assert json.loads(state or "") == json.loads(whole.state())


def test_a_damaged_state_is_refused_on_both_sides(script: Script) -> None:
    good = TraceSession(METHOD, key=KEY)
    good.report(lat=48.0, lon=2.0, time=0.0)
    whole = json.loads(good.state())
    bad: list[Any] = ["", "[]", "null", "{}", good.state()[:-3]]
    for name, value in (("time", "now"), ("reports", 3), ("anchors", [[1]]), ("run", [1, "x", [0, 0]])):
        bad.append(json.dumps(whole | {"history": whole["history"] | {name: value}}))
    run = """
    const method = new geoind.SparseVector(given.method);
    return given.states.map((state) => {
        try { geoind.TraceSession.resume(state, method, { key: new Uint8Array(32) }); }
        catch (error) { return error.message; }
    });
    """
    message = "state must be what TraceSession.state returned"
    assert script(run, {"method": OPTIONS, "states": bad}) == [message] * len(bad)
    for state in bad:
        with pytest.raises(InvalidInputError, match=message):
            TraceSession.resume(state, METHOD, key=KEY)


def test_the_method_for_an_accuracy_has_the_parameters_of_python(script: Script) -> None:
    for metres, confidence in ((500, 0.9), (120.5, 0.95), (3000, 0.5)):
        found = script("return geoind.SparseVector.forAccuracy(...given)", [metres, confidence])
        method = SparseVector.for_accuracy(metres, confidence=confidence)
        assert found == pytest.approx({name: getattr(method, name) for name in OPTIONS}, rel=1e-13)


def test_cells_are_those_of_python(script: Script) -> None:
    rng = np.random.default_rng(6)
    count = 400
    given: list[dict[str, Any]] = [
        {
            "lon": float(rng.uniform(-180, 180)),
            "lat": math.degrees(math.asin(rng.uniform(-1, 1))),
            "person": f"person {i % 5}",
            "cell": (100.0, 33.0, 5000.0)[i % 3],
        }
        for i in range(count)
    ]
    run = """
    const key = Uint8Array.from({ length: 32 }, (_, i) => i);
    return given.map(({ cell, ...place }) => new geoind.SamePlace(key, { cell }).obfuscate(
        { ...place, epsilon: 0.01 })).map(({ lat, lon }) => [lat, lon]);
    """
    python = [
        list(
            SamePlace(KEY, cell=case["cell"]).obfuscate(
                lat=case["lat"], lon=case["lon"], person_id=case["person"], epsilon=0.01
            )
        )
        for case in given
    ]
    # The centre of a cell is a computed double: where its last bits differ, so may the rounding that chooses the
    # words, in about three cells of 100 000 (docs/device.md).
    differ = sum(mine != theirs for mine, theirs in zip(script(run, given), python, strict=True))
    assert differ <= 1


def test_staying_is_free_and_steps_come_in_order(script: Script) -> None:
    run = """
    const session = new geoind.TraceSession(new geoind.SparseVector({ fresh: 0.01, test: 0.02, limit: 3000 }));
    const at = { lat: 48.8584, lon: 2.2945 };
    const first = session.report({ ...at, time: 10 });
    const stays = Array.from({ length: 50 }, (_, i) => session.report({ ...at, time: 11 + i }));
    const again = session.report({ ...at, time: 60 });
    const refused = [{ ...at, time: 59 }, { lat: 48, lon: 2, time: 60 }].map((step) => {
        try { session.report(step); } catch (error) { return [error.name, error.message]; }
    });
    const same = [...stays, again].every(({ lat, lon }) => lat === first.lat && lon === first.lon);
    return { same, spent: session.spent, refused };
    """
    found = script(run)
    assert found["same"]
    assert found["spent"] == 0.03
    assert [name for name, _ in found["refused"]] == ["RangeError", "RangeError"]
    assert "before the last one" in found["refused"][0][1]
    assert "another position at the same time" in found["refused"][1][1]
