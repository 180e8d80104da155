"""The tab Explore: what the server answers, and what a browser shows."""

import math
import re

import httpx
import numpy as np
import pytest
from playwright.sync_api import Page, expect

from geoind import SphericalLaplace
from tests.webdemo.asking import HERE, ask, metres
from tests.webdemo.browser import answered, click_map, number, sent, set_slider, settle, show

TOPS = """
['redraw', 'epsilon', 'rings', 'show-cloud'].map(id => document.getElementById(id).getBoundingClientRect().top)
"""


def test_the_dial_has_named_stops_and_the_expert_sliders_run_the_same_way(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore", "&seed=7")
    errors = []
    for stop, radius in {"25 m": 25, "50 m": 50, "100 m": 100, "200 m": 200}.items():
        watched.get_by_role("button", name=stop, exact=True).click()
        expect(watched.locator("#promise")).to_contain_text(f"up to {radius} m apart")
        expect(watched.locator("#dial-out")).to_have_text(stop)
        settle(watched)
        errors.append(number(watched.locator("#mean-error")))
        # What is shown fits the window.
        ring = watched.locator(".circle-ring").nth(1).bounding_box()
        frame = watched.locator("#mapframe").bounding_box()
        assert ring is not None
        assert frame is not None
        assert frame["x"] - 1 <= ring["x"]
        assert ring["x"] + ring["width"] <= frame["x"] + frame["width"] + 1
        assert ring["height"] > 0.3 * frame["height"]
    assert errors == sorted(errors)
    assert "radius=200" in watched.url
    expect(watched.locator("#epsilon")).to_have_text("0.00693")
    expect(watched.locator("#mean-error")).to_have_text("290 m")
    expect(watched.locator("#rings tr").nth(2)).to_have_text(re.compile(r"95 % of them\s*688 m"))
    watched.get_by_text("Expert: factor and radius").click()
    # To the right is more private, with both: the average error grows.
    set_slider(watched, "radius", 100)
    settle(watched)
    for control in ("factor", "radius"):
        before = number(watched.locator("#mean-error"))
        watched.locator(f"#{control}").press("ArrowRight")
        settle(watched)
        assert number(watched.locator("#mean-error")) > before
    expect(watched.locator("#radius-out")).to_have_text("105 m")
    expect(watched.locator("#dial")).to_have_attribute("aria-valuetext", re.compile("within 105 metres"))


def test_here_or_there_shows_the_odds_and_their_limit(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    gauge = watched.get_by_role("img", name=re.compile("The report changed the odds"))
    # As far apart as the promise reaches: the stop is the promise's factor.
    expect(gauge).to_have_attribute("aria-label", re.compile("more than ×4.0"))
    expect(watched.locator("#odds-note")).to_contain_text("places 100 m apart can exceed ×4.0")
    before = watched.locator("#odds-before").inner_text()
    seen = set()
    for _ in range(6):
        with answered(watched, "/api/explore") as answer:
            watched.get_by_role("button", name="Draw new noise").click()
        settle(watched)
        odds = answer.value.json()["odds"]
        assert 1 / odds["limit"] <= odds["change"] <= odds["limit"]
        assert watched.locator("#odds-before").inner_text() == before
        seen.add(watched.locator("#odds-after").inner_text())
    assert len(seen) > 1
    watched.locator(".pin-there").focus()
    with answered(watched, "/api/explore") as answer:
        watched.keyboard.press("Shift+ArrowRight")
    settle(watched)
    assert answer.value.json()["odds"]["limit"] > 4.1
    watched.locator("#show-there").uncheck()
    expect(watched.locator("#odds")).to_be_hidden()
    expect(watched.locator(".pin-there")).to_have_count(0)


def test_the_belief_is_coloured_by_building_with_contours_a_legend_and_a_sentence(
    watched: Page, demo_url: str
) -> None:
    show(watched, demo_url, "explore", "&show-cloud=0&show-rings=0&show-report=0&show-there=0")
    watched.get_by_label("Where an observer looks for you").check()
    expect(watched.locator("path.contour")).to_have_count(2)
    expect(watched.locator("#legend")).to_contain_text(re.compile(r"90 % sure: .*buildings?\. 50 % sure:"))
    # The likeliest building stands out most from the map's ground, in both themes.
    contrast = """() => {
        const brightness = colour => colour.match(/\\d+/g).reduce((sum, part) => sum + Number(part), 0);
        const fills = [];
        demo_map.eachLayer(({options: {pane, fillColor}}) => {
            if (pane === 'belief' && fillColor) fills.push(brightness(fillColor));
        });
        return [Math.min(...fills), Math.max(...fills)];
    }"""
    for theme in ("light", "dark"):
        low, high = watched.evaluate(contrast)
        assert high - low > 300, theme
        watched.locator("#theme").click()
        settle(watched)
    expect(watched.locator("#map-summary")).to_contain_text("An observer is 90 % sure")
    watched.get_by_label("Where an observer looks for you").uncheck()
    expect(watched.locator("#legend")).to_be_hidden()
    expect(watched.locator("path.contour")).to_have_count(0)


def test_explore_draws_what_is_ticked_and_nothing_jumps(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    expect(watched.locator("#report-error")).to_have_text(re.compile(r"\d"))
    zoom = watched.evaluate("demo_map.getZoom()")
    watched.get_by_label("The lattice of reports").check()
    expect(watched.locator(".line-ring")).to_have_count(1)
    watched.get_by_label("The lattice of reports").uncheck()
    expect(watched.locator(".line-ring")).to_have_count(0)
    assert watched.evaluate("demo_map.getZoom()") == zoom
    expect(watched.locator("#lattice-note")).to_contain_text("1.1 m from row to row")
    before = watched.evaluate(TOPS)
    for factor, radius in ((2, 200), (16, 25), (10.5, 110)):
        set_slider(watched, "factor", factor)
        set_slider(watched, "radius", radius)
        settle(watched)
        assert watched.evaluate(TOPS) == before
    parts = {
        "One report": ".dot-report",
        "Rings of 50, 90, 95, 99 %": ".circle-ring",
        "Where an observer looks for you": "path.contour",
        "The report, remapped": ".diamond.remapped",
    }
    counts = {".circle-ring": 4, "path.contour": 2}
    for name, drawn in parts.items():
        watched.get_by_label(name).check()
        expect(watched.locator(drawn)).to_have_count(counts.get(drawn, 1))
        watched.get_by_label(name).uncheck()
        expect(watched.locator(drawn)).to_have_count(0)
    expect(watched.locator(".pin-truth")).to_have_count(1)


def test_new_noise_and_another_place_move_the_report_and_a_slider_scales_it(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    first = number(watched.locator("#report-error"))
    with answered(watched, "/api/explore") as scaled:
        set_slider(watched, "radius", 200)
    settle(watched)
    assert number(watched.locator("#report-error")) == pytest.approx(2 * first, abs=3, rel=0.06)
    with answered(watched, "/api/explore") as moved:
        watched.get_by_role("button", name="Draw new noise").click()
    settle(watched)
    # Places, not distances: two errors can be the same to the metre.
    reports = [answer.value.json()["report"] for answer in (scaled, moved)]
    assert (reports[0]["lat"], reports[0]["lon"]) != (reports[1]["lat"], reports[1]["lon"])
    assert number(watched.locator("#report-error")) == pytest.approx(reports[1]["error"], abs=1, rel=0.06)
    # Another place is in a building and gets fresh noise.
    inside = watched.evaluate("fetch('/api/town').then(a => a.json()).then(t => t.buildings.map(b => b.inside))")
    offsets = set()
    for _ in range(3):
        with answered(watched, "/api/explore") as answer:
            watched.get_by_role("button", name="Another place").click()
        settle(watched)
        asked = sent(answer.value.request)
        assert [asked["lat"], asked["lon"]] in inside
        report = answer.value.json()["report"]
        offsets.add((round(report["lat"] - asked["lat"], 5), round(report["lon"] - asked["lon"], 5)))
    assert len(offsets) == 3


def test_a_click_and_a_key_place_you(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    there = watched.evaluate("demo_map.containerPointToLatLng(demo_map.getSize().scaleBy(L.point(0.4, 0.7))).lat")
    with watched.expect_request(lambda request: request.url.endswith("/api/explore")) as first:
        click_map(watched, 0.4, 0.7)
    assert sent(first.value)["lat"] == pytest.approx(there, abs=1e-4)
    # The map may follow what was drawn: north of it is another place.
    settle(watched)
    middle = watched.evaluate("demo_map.panBy([0, -100], { animate: false }).getCenter().lat")
    watched.locator(".folium-map").focus()
    with watched.expect_request(lambda request: request.url.endswith("/api/explore")) as second:
        watched.keyboard.press("Enter")
    assert sent(second.value)["lat"] == pytest.approx(middle, abs=1e-6)
    assert sent(second.value)["lat"] > sent(first.value)["lat"]


def test_explore_states_the_meaning_of_epsilon(client: httpx.Client) -> None:
    answer = ask(client, "/api/explore", **HERE, factor=4, radius=200)
    assert answer["promise"]["epsilon"] == pytest.approx(math.log(4) / 200)
    assert answer["promise"]["sentence"] == (
        "Between two places up to 200 m apart, a report changes an observer's odds by a factor of 4 at most."
    )
    noise = SphericalLaplace(math.log(4) / 200)
    assert answer["promise"]["mean_error"] == pytest.approx(noise.mean_radius)
    assert [ring["share"] for ring in answer["rings"]] == [0.5, 0.9, 0.95, 0.99]
    for ring in answer["rings"]:
        assert ring["radius"] == pytest.approx(float(noise.radius_quantile(ring["share"])))


def test_the_cloud_has_the_radii_of_the_rings(client: httpx.Client) -> None:
    answer = ask(client, "/api/explore", **HERE, cloud=2000, seed=7)
    centre = (HERE["lat"], HERE["lon"])
    errors = np.array([metres(at, centre) for at in answer["cloud"]])
    for ring in answer["rings"]:
        share = (errors <= ring["radius"]).mean()
        assert abs(share - ring["share"]) < 4 * math.sqrt(ring["share"] * (1 - ring["share"]) / 2000)
    assert metres((answer["report"]["lat"], answer["report"]["lon"]), centre) == pytest.approx(
        answer["report"]["error"], rel=0.006
    )


def test_a_seed_repeats_the_noise_and_its_absence_does_not(client: httpx.Client) -> None:
    seeded = [ask(client, "/api/explore", **HERE, cloud=3, seed=5)["cloud"] for _ in range(2)]
    fresh = [ask(client, "/api/explore", **HERE, cloud=3)["cloud"] for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert fresh[0] != fresh[1]


def test_no_report_changes_the_odds_between_two_places_by_more_than_the_promise(client: httpx.Client) -> None:
    for seed, east in enumerate([0.0001, 0.001, 0.002, 0.004] * 5):
        there = {"lat": HERE["lat"], "lon": HERE["lon"] + east}
        answer = ask(client, "/api/explore", **HERE, there=there, factor=4, radius=100, cloud=0, seed=seed)
        odds, epsilon = answer["odds"], answer["promise"]["epsilon"]
        assert odds["distance"] == pytest.approx(
            metres((there["lat"], there["lon"]), (*HERE.values(),)), rel=0.006
        )
        assert odds["limit"] == pytest.approx(math.exp(epsilon * odds["distance"]))
        assert 1 / odds["limit"] <= odds["change"] <= odds["limit"]
        assert odds["after"] == pytest.approx(odds["before"] * odds["change"])
    assert ask(client, "/api/explore", **HERE)["odds"] is None
