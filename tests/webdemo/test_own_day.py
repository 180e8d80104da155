"""A visitor's own day in a real browser: files are read in the page, homes are found, remedies hide them."""

import json
import math
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.webdemo.browser import set_slider, turn_to

FIXES = [
    (60.17, 24.94, "2026-10-12T22:30:00Z"),
    (60.1701, 24.9401, "2026-10-13T01:30:00Z"),
    (60.19, 24.99, "2026-10-13T08:00:00Z"),
]


def written(kind: str) -> str:
    """The same three fixes in every format."""
    if kind == "gpx":
        points = "".join(f'<trkpt lat="{lat}" lon="{lon}"><time>{time}</time></trkpt>' for lat, lon, time in FIXES)
        return f'<?xml version="1.0"?><gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>{points}</trkseg></trk></gpx>'
    line = {"type": "LineString", "coordinates": [[lon, lat] for lat, lon, _ in FIXES]}
    times = [time for *_, time in FIXES]
    features = [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [lon, lat]}, "properties": {"time": time}}
        for lat, lon, time in FIXES
    ]
    path = [{"point": f"{lat}°, {lon}°", "time": time} for lat, lon, time in FIXES]
    data: Any = {
        "line": {"type": "Feature", "geometry": line, "properties": {"coordTimes": times}},
        "points": {"type": "FeatureCollection", "features": features},
        "records": {
            "locations": [
                {"latitudeE7": round(lat * 1e7), "longitudeE7": round(lon * 1e7), "timestamp": time}
                for lat, lon, time in FIXES
            ]
        },
        "phone": {"semanticSegments": [{"startTime": times[0], "endTime": times[-1], "timelinePath": path}]},
        "other phone": [
            {
                "startTime": time,
                "endTime": time,
                "activity": {"start": f"geo:{lat},{lon}", "end": f"geo:{lat},{lon}"},
            }
            for lat, lon, time in FIXES
        ],
        "visits": {
            "timelineObjects": [
                {
                    "placeVisit": {
                        "location": {"latitudeE7": round(lat * 1e7), "longitudeE7": round(lon * 1e7)},
                        "duration": {"startTimestamp": time, "endTimestamp": time},
                    }
                }
                for lat, lon, time in FIXES
            ]
        },
    }[kind]
    return json.dumps(data)


@pytest.mark.parametrize("kind", ["gpx", "line", "points", "records", "phone", "other phone", "visits"])
def test_every_kind_of_file_holds_the_same_fixes(local: Page, kind: str) -> None:
    fixes = local.evaluate("(text) => dayFiles.parse(text)", written(kind))
    unique = {(round(fix["lat"], 6), round(fix["lon"], 6), fix["time"]) for fix in fixes}
    start = 1_791_844_200
    assert unique == {(60.17, 24.94, start), (60.1701, 24.9401, start + 10_800), (60.19, 24.99, start + 34_200)}


WILL_NOT_DO = [
    ("Dear reader", "neither GPX nor JSON"),
    ('{"type": "FeatureCollection"}', "damaged"),
    ("<gpx></gpx>", "no places"),
    ('{"type": "Feature", "geometry": {"type": "Point"}, "properties": null}', "damaged"),
    ('{"a": 1}', "neither GeoJSON nor a Timeline export"),
    ('{"semanticSegments": [null]}', "damaged"),
    ('{"type": "LineString", "coordinates": [[24.987654, 60.1], [24.9, 60.2]]}', "have no times"),
    ('{"locations": [null]}', "damaged"),
    ('<gpx><trkpt lat="1" lon="2"><time>2026-01-01T00:00:00Z</time></trkpt></gpx>', "Only one place"),
    (
        '<gpx><wpt lat="60" lon="24.987654"><time>2026-01-01T00:00:00Z</time></wpt>'
        '<wpt lat="61" lon="25"><time>2026-01-09T00:01:00Z</time></wpt></gpx>',
        "too far apart in time",
    ),
]
"""Files, and what the page says of each; never the same twice in a row."""


def test_a_file_that_will_not_do_gets_a_sentence_without_a_place(story: Page) -> None:
    turn_to(story, "part=day")

    def refused(text: str, sentence: str) -> None:
        story.locator("#file").set_input_files({"name": "day", "mimeType": "text/plain", "buffer": text.encode()})
        expect(story.get_by_role("alert")).to_contain_text(sentence)
        assert "987654" not in story.locator("body").inner_text()

    for text, sentence in WILL_NOT_DO:
        refused(text, sentence)
    # One that cannot be read, and one that is read and not enough.
    for text, sentence in (WILL_NOT_DO[0], WILL_NOT_DO[-1]):
        story.locator("#example-day").click()
        expect(story.get_by_role("alert")).to_be_hidden()
        expect(story.locator("#outcomes")).to_be_visible()
        # What the example said does not stay under the name of a file that says nothing.
        refused(text, sentence)
        expect(story.locator("#outcomes")).to_be_hidden()
        expect(story.locator("#finding")).to_have_text("Choose a file of yours, or take the example.")


def a_week() -> str:
    """A commuter with a home in the north-east of the first fix, every ten minutes."""
    points = []
    for step in range(7 * 144):
        hour = step / 6 % 24
        lat, lon = (60.1900, 24.9900) if 8 <= hour < 17 else (60.1700, 24.9400)
        time = f"2026-10-{12 + step // 144:02}T{int(hour):02}:{step % 6}0:00+02:00"
        points.append(f'<trkpt lat="{lat}" lon="{lon}"><time>{time}</time></trkpt>')
    return f'<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>{"".join(points)}</trkseg></trk></gpx>'


def test_your_home_is_found_and_remedies_hide_it(story: Page) -> None:
    requests: list[str] = []
    story.on("request", lambda request: requests.append(request.url))
    turn_to(story, "part=day")
    set_slider(story, "dial", 2)
    story.locator("#file").set_input_files(
        {"name": "week.gpx", "mimeType": "application/gpx+xml", "buffer": a_week().encode()}
    )
    expect(story.locator("#finding")).to_have_text(
        re.compile(r"^Your 7 days, again and again: your home is found after \d days?\.$")
    )
    rows = dict(
        story.locator("#outcomes-rows tr").evaluate_all(
            "all => all.map(r => [r.children[0].textContent, r.children[1].textContent])"
        )
    )
    answered = story.locator("#outcomes-rows tr td:nth-child(3)").all_inner_texts()
    # The budget answers its five questions of a year, and the mean error is theirs alone.
    assert answered[1:] == ["35,040 of 35,040", "5 of 35,040", "35,040 of 35,040", "35,040 of 35,040"]
    for row in rows.values():
        lucky = re.search(r"guess (\d+)\sm off", row)
        assert lucky is None or ("lucky, not sure" in row) == (int(lucky[1]) <= 50)
    expect(story.locator("#zone-note")).to_contain_text("inside or outside")
    assert list(rows) == [
        "fresh noise each time",
        "same place, same report",
        "a budget",
        "a session",
        "a zone around home",
    ]
    assert rows["fresh noise each time"].startswith("after")
    assert rows["same place, same report"].startswith("not in a year")
    assert rows["a budget"].startswith("not in a year")
    assert rows["a zone around home"].startswith("not in a year")
    home = story.evaluate("ownDay.study(dayView.example(), scene.epsilon(), 5).home")
    assert math.hypot(home["x"], home["y"]) < 20
    for way in ("a session", "a zone around home"):
        story.locator("#way-box").get_by_label(way).check()
        expect(story.locator("#theirs canvas")).to_have_attribute("aria-label", re.compile("different report"))
    # The browser asks for the icon whenever the address changes; a worker's text is in the page.
    assert [request for request in requests if not request.endswith("/icon.svg") and request[:5] != "blob:"] == []


def test_a_gap_that_ends_elsewhere_is_silence_and_a_short_way_is_a_line(local: Page) -> None:
    script = """
    (later) => ownDay.sampled([{lat: 0, lon: 0, time: 0}, {lat: later.lat, lon: 0, time: later.time}])
        .map(({x, y}) => Math.round(y))
    """
    assert local.evaluate(script, {"lat": 0.001, "time": 3600}) == [0, 0, 0, 0, 111]
    assert local.evaluate(script, {"lat": 0.01, "time": 900}) == [0, 1112]
    assert local.evaluate(script, {"lat": 0.01, "time": 3600}) == [1112]
    assert local.evaluate(script, {"lat": 0.0, "time": 86400}) == [0]


def test_nights_elsewhere_do_not_mislead_the_observer(local: Page) -> None:
    script = """
    (e) => {
        const home = {x: 0, y: 0}, seen = new Map();
        for (let i = 0; i < 900; i += 1) seen.set(noise.report(i % 5 < 3 ? home : {x: 9000, y: 50 * i}, e), 1);
        return ownDay.guessHome(seen, e, null);
    }
    """
    guess = local.evaluate(script, 0.0138629)
    assert guess["sure"] is True
    assert math.hypot(guess["at"]["x"], guess["at"]["y"]) < 25


def test_an_observer_is_sure_when_ninety_of_a_hundred_such_would_be_right(local: Page) -> None:
    script = """
    (e) => {
        const count = Math.ceil(ownDay.enough(e)), home = {x: 0, y: 0};
        const right = Array.from({length: 2000}, () => {
            const reports = Array.from({length: count}, () => noise.report(home, e));
            return posterior.apart(posterior.middle(reports, reports.map(() => 1)), home) <= ownDay.FOUND;
        });
        return right.filter(Boolean).length / 2000;
    }
    """
    for epsilon in (0.0138629, 0.0069315):
        assert local.evaluate(script, epsilon) == pytest.approx(0.9, abs=0.03)


def test_a_day_without_a_night_has_its_home_where_most_time_is_spent(local: Page) -> None:
    script = """
    () => {
        const noon = Date.UTC(2026, 5, 1, 10) / 1000;
        const fixes = Array.from({length: 40}, (_, i) => ({lat: i < 30 ? 0 : 0.01, lon: 0, time: noon + 300 * i}));
        const steps = ownDay.sampled(fixes);
        return ownDay.homeOf(steps);
    }
    """
    home = local.evaluate(script)
    assert home["byNight"] is False
    assert math.hypot(home["x"], home["y"]) < 1
