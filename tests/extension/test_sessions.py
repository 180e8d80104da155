"""The extension's reports: the law, the session of Python, and a restart of the browser."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, Playwright

from geoind import SphericalLaplace, TraceSession, audit
from geoind.arrays import FloatArray
from geoind.traces import PrivateZone, SparseVector
from geoind.traces.questions import arc_length
from tests.extension.browser import FIND, TRUTH, Extended, extended, metres

pytestmark = pytest.mark.browser

MEDIUM = math.log(4) / 500
KEY = "5a" * 32

REPORTS = """
globalThis.reports = async (places, radius) => {
    const {reportOf} = await import("./draw.js");
    const fixed = {radius, time: 1, key: "KEY", account: null, budget: {site: 1, total: 1}, zone: null};
    return places.map(([lon, lat]) => {
        globalThis.counted = (globalThis.counted ?? 0) + 1;
        const report = reportOf({lat, lon}, {...fixed, origin: `https://site-${counted}.example`});
        return [report.lon, report.lat];
    });
}; 1""".replace("KEY", KEY)
"""The first report of a new session for each place, by the code that sees the true position."""

WATCH = """() => {
    const later = setTimeout;
    window.setTimeout = (call, wait) => later(call, Math.min(wait ?? 0, 20));
    window.seen = [];
    window.number = navigator.geolocation.watchPosition(
        ({coords}) => seen.push([coords.latitude, coords.longitude]), ({code}) => seen.push(code));
}"""


def sampled(chromium: Extended, lonlat: FloatArray) -> FloatArray:
    places = json.dumps(np.asarray(lonlat).tolist())
    return np.asarray(chromium.in_offscreen(f"reports({places}, 500)"))


@pytest.fixture(scope="module")
def drawing(chromium: Extended) -> Extended:
    chromium.in_offscreen(REPORTS)
    return chromium


def test_reports_have_the_law_of_the_mechanism(drawing: Extended) -> None:
    here = np.tile([TRUTH[1], TRUTH[0]], (4000, 1))
    found = sampled(drawing, here)
    off = np.array([arc_length(*map(float, one), *map(float, two)) for one, two in zip(found, here, strict=True)])
    law = SphericalLaplace(MEDIUM)
    for confidence in (0.25, 0.5, 0.75, 0.95):
        spread = 4 * math.sqrt(confidence * (1 - confidence) / len(off))
        assert abs(np.mean(off <= law.reach(confidence)) - confidence) < spread
    # Noise that is 5 % too wide or too narrow is rejected.
    for wrong in (0.95, 1.05):
        assert abs(np.mean(wrong * off) * MEDIUM / 2 - 1) > 3 / math.sqrt(2 * len(off))
    assert abs(np.mean(off) * MEDIUM / 2 / 1.0057 - 1) < 3 / math.sqrt(2 * len(off))


def test_the_audit_does_not_refute_the_reports(drawing: Extended) -> None:
    pool: dict[tuple[float, float], list[FloatArray]] = {}

    def sample(lonlat: FloatArray) -> FloatArray:
        if len(lonlat) > 1:
            return sampled(drawing, lonlat)
        # Calls with one place: a question to the browser for each would take minutes.
        place = (float(lonlat[0, 0]), float(lonlat[0, 1]))
        if not pool.get(place):
            pool[place] = [*sampled(drawing, np.repeat(lonlat, 1000, axis=0))]
        return pool[place].pop()[None]

    place = [[TRUTH[1], TRUTH[0]]]
    result = audit(sample, epsilon=MEDIUM, places=place, lonlat=True, draws=1000)
    assert not result.refuted
    # The audit has the power to refute: a claim of half the epsilon would be.
    assert result.epsilon > 0.5 * MEDIUM


def state(chromium: Extended) -> tuple[dict[str, Any], float]:
    stored = chromium.stored()
    found = json.loads(stored["account"])
    [session] = [json.loads(text) for text in found["sessions"].values()]
    return session["history"], sum(found["spent"].values()) / 1e15


def times(chromium: Extended) -> list[float]:
    """Return when each session was asked last; a zone is paid for before there is one."""
    sessions = json.loads(chromium.stored().get("account") or '{"sessions": {}}')["sessions"]
    return [json.loads(text)["history"]["time"] for text in sessions.values()]


def replayed(
    chromium: Extended, steps: list[tuple[float, float, float]], zone: PrivateZone | None
) -> tuple[TraceSession, list[list[float]]]:
    """Return the session of Python under the same key, and its answers."""
    method = SparseVector(MEDIUM, MEDIUM, 3 * SphericalLaplace(MEDIUM).reach(0.9), MEDIUM / 2)
    session = TraceSession(
        method, key=bytes.fromhex(chromium.stored()["key"]), person_id=chromium.site("127.0.0.1", ""), zone=zone
    )
    return session, [[*session.report(lat=lat, lon=lon, time=time)] for time, lat, lon in steps]


def track(chromium: Extended, page: Page, places: list[tuple[float, float]]) -> list[tuple[float, float, float]]:
    """Watch while the device moves by a minute for each place, and return what the session was asked."""
    steps = [(1.9e9 + 60 * minute, *place) for minute, place in enumerate(places)]
    for time, lat, lon in steps:
        chromium.is_at(lat, lon)
        chromium.worker.evaluate(f"Date.now = () => {1000 * time}")
        if time == steps[0][0]:
            page.evaluate(WATCH)
        while times(chromium) != [time]:
            page.wait_for_timeout(20)
    return steps


def test_a_watch_over_a_moving_track_costs_what_the_session_of_python_says(chromium: Extended) -> None:
    chromium.send(kind="forget")
    chromium.choose("medium")
    stays = [TRUTH] * 4
    drives = [(TRUTH[0] + 0.02 * step, TRUTH[1]) for step in range(1, 6)]
    page = chromium.open()
    steps = track(chromium, page, [*stays, *drives, *stays])
    session, _ = replayed(chromium, steps, None)
    history, paid = state(chromium)
    assert history == json.loads(session.state())["history"]
    assert paid == pytest.approx(session.spent, rel=1e-9)
    assert session.spent > 3 * MEDIUM
    last = history["reports"][-1]
    page.wait_for_function("last => JSON.stringify(seen.at(-1)) === JSON.stringify(last)", arg=[last[2], last[1]])
    seen = page.evaluate("seen")
    # The watch reports changes only, and ends.
    assert len(seen) == sum(1 for one, two in zip(seen, [None, *seen], strict=False) if one != two)
    page.evaluate("navigator.geolocation.clearWatch(number)")
    # A question that was under way is answered before a new one, at the old time.
    page.evaluate("new Promise((done) => navigator.geolocation.getCurrentPosition(() => done(), () => done()))")
    chromium.worker.evaluate("Date.now = () => 1.95e12")
    page.wait_for_timeout(500)
    assert state(chromium)[0] == history
    page.close()


def test_a_private_zone_answers_as_that_of_python(chromium: Extended) -> None:
    chromium.send(kind="forget")
    chromium.choose("medium")
    chromium.is_at()
    chromium.send(kind="zone", radius=2000)
    stored = chromium.stored()["settings"]["zone"]
    zone = PrivateZone(stored["lon"], stored["lat"], stored["radius"])
    assert 1 < metres(zone.lat, zone.lon) < 30_000
    page = chromium.open()
    away = [(TRUTH[0] + 1, TRUTH[1])] * 2
    steps = track(chromium, page, [TRUTH, TRUTH, *away, TRUTH])
    session, answers = replayed(chromium, steps, zone)
    assert state(chromium)[0] == json.loads(session.state())["history"]
    # A report that falls into the zone is replaced by its centre, which may be far from the truth.
    assert page.evaluate("seen")[0] == answers[0]
    saw = chromium.stored()["sites"][chromium.site("127.0.0.1", "")]["seen"]
    assert [one["accuracy"] == zone.radius for one in saw] == [
        (one["lat"], one["lon"]) == (zone.lat, zone.lon) for one in saw
    ]
    page.close()


def test_an_update_in_another_folder_keeps_session_and_budget_and_a_restart_ends_a_pause(
    playwright: Playwright, browser_type_launch_args: dict[str, Any], folder: Path, port: int, tmp_path: Path
) -> None:
    profile, update = tmp_path / "profile", tmp_path / "update"
    shutil.copytree(folder, update)
    with extended(playwright, browser_type_launch_args, folder, profile, port) as first:
        first.is_at()
        first.choose("medium")
        page = first.open()
        before = page.evaluate(FIND)
        first.send(kind="pause", origin=first.site("127.0.0.1", ""), pause=True)
        paused = page.evaluate(FIND)
        assert metres(paused["lat"], paused["lon"]) < 1
        kept = first.stored()
    with extended(playwright, browser_type_launch_args, update, profile, port) as second:
        second.is_at()
        page = second.open()
        after = page.evaluate(FIND)
        assert (after["lat"], after["lon"]) == (before["lat"], before["lon"])
        now = second.stored()
        assert json.loads(now["account"])["spent"] == json.loads(kept["account"])["spent"]
        assert now["key"] == kept["key"]
        slow = """new Promise((done) => { const made = document.createElement("iframe"); made.src = "/slow";
            document.body.append(made); made.contentWindow.navigator.geolocation.getCurrentPosition(
                () => done("truth"), ({code}) => done(code)); })"""
        assert page.evaluate(slow) == 1
