"""The demo in a real browser: every tab, every control; no error, no jump, no request that leaves the machine."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from geoind.maps.colours import TRUTH
from tests.webdemo.browser import TABS, answered, click_map, number, sent, set_slider, settle, show

ARTEFACTS = Path(__file__).parents[2] / "artefacts"

# What is wider than the window, and texts that are wider than their box.
OVERFLOW = """
[...document.querySelectorAll('body, button, label, output, dd, td')].filter(
    e => e.offsetParent !== null && e.clientWidth && !e.closest('.figures') && e.scrollWidth > e.clientWidth + 1
).map(e => e.outerHTML.slice(0, 200))
"""

TOPS = """
['redraw', 'epsilon', 'rings', 'show-cloud'].map(id => document.getElementById(id).getBoundingClientRect().top)
"""


# The shell


@pytest.mark.parametrize("tab", TABS)
def test_each_tab_fits_every_screen_and_is_kept_as_pictures(watched: Page, demo_url: str, tab: str) -> None:
    ARTEFACTS.mkdir(exist_ok=True)
    show(watched, demo_url, tab, "&show-belief=1&show-remapped=1")
    if tab == "again":
        watched.get_by_role("button", name="Ask once").click()
        expect(watched.locator("#answers")).to_have_text("1")
    for screen, (width, height) in {"wide": (1440, 900), "phone": (390, 844)}.items():
        watched.set_viewport_size({"width": width, "height": height})
        for theme in ("light", "dark"):
            if watched.locator("html").get_attribute("data-theme") != theme:
                watched.locator("#theme").click()
            settle(watched)
            assert watched.evaluate(OVERFLOW) == []
            watched.screenshot(path=ARTEFACTS / f"demo-{tab}-{theme}-{screen}.png")


def test_tabs_follow_the_arrow_keys(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    watched.get_by_role("tab", name="Explore").focus()
    for name in [*list(TABS.values())[1:], "Explore"]:
        watched.keyboard.press("ArrowRight")
        chosen = watched.get_by_role("tab", name=name)
        expect(chosen).to_be_focused()
        expect(chosen).to_have_attribute("aria-selected", "true")
        expect(watched.get_by_role("tabpanel")).to_have_count(1)
    watched.keyboard.press("End")
    expect(watched.get_by_role("tab", name="Compare")).to_be_focused()


def test_every_control_has_a_name(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "compare")
    expect(watched.locator("#compare-priors input").first).to_be_visible()
    nameless = watched.evaluate(
        "[...document.querySelectorAll('input, select, button')].filter(e => !(e.labels?.length || "
        "e.getAttribute('aria-label') || e.textContent.trim())).map(e => e.outerHTML)"
    )
    assert nameless == []


def test_dark_and_light_switch_and_are_remembered(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    html = watched.locator("html")
    ground = "demo_base.getLayers()[0].options.fillColor"
    expect(html).to_have_attribute("data-theme", "light")
    light = watched.evaluate(ground)
    watched.locator("#theme").click()
    expect(html).to_have_attribute("data-theme", "dark")
    assert watched.evaluate(ground) != light
    watched.locator("#theme").click()
    assert watched.evaluate(ground) == light
    watched.locator("#theme").click()
    watched.reload()
    expect(html).to_have_attribute("data-theme", "dark")


def test_the_address_keeps_the_view_but_the_place_only_when_asked(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    set_slider(watched, "factor", 8)
    set_slider(watched, "radius", 200)
    watched.get_by_label("200 reports").uncheck()
    with answered(watched, "/api/explore"):
        click_map(watched, 0.5, 0.6)
    settle(watched)
    address = watched.evaluate("location.href")
    assert "factor=8" in address
    assert "radius=200" in address
    assert "show-cloud=0" in address
    assert not re.search(r"60\.1|24\.9|at=", address)
    watched.get_by_label("include my place and my walk in link and code").check()
    address = watched.evaluate("location.href")
    assert re.search(r"at=60\.1\d+%2C24\.9", address)
    watched.goto("about:blank")
    with watched.expect_request(lambda request: request.url.endswith("/api/explore")) as asked:
        watched.goto(address)
    body = sent(asked.value)
    assert body["factor"] == 8
    assert body["radius"] == 200
    assert f"{body['lat']:.6f}" in address
    expect(watched.get_by_label("200 reports")).not_to_be_checked()


def test_nothing_that_is_requested_has_a_location_in_its_address(watched: Page, demo_url: str) -> None:
    addresses: list[str] = []
    watched.on("request", lambda request: addresses.append(request.url))
    show(watched, demo_url, "explore")
    for tab in TABS.values():
        watched.get_by_role("tab", name=tab).click()
        if tab != "Compare":
            click_map(watched, 0.5, 0.5)
        settle(watched)
    assert addresses
    assert not [address for address in addresses if re.search(r"60\.|24\.9", address)]


def test_copy_link_says_that_it_copied(watched: Page, demo_url: str) -> None:
    watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
    show(watched, demo_url, "explore")
    # The word goes away again soon: on a busy machine nobody would see it.
    watched.evaluate(
        "window.said = [];"
        "new MutationObserver(() => said.push(share.textContent)).observe(share, {childList: true})"
    )
    watched.locator("#share").click()
    watched.wait_for_function("said.includes('Copied')")
    assert watched.evaluate("navigator.clipboard.readText()") == watched.evaluate("location.href")


def test_a_refusal_is_shown_as_a_sentence_and_goes_away(page: Page, demo_url: str) -> None:
    show(page, demo_url, "explore")
    page.evaluate("document.getElementById('radius').min = 1")
    set_slider(page, "radius", 5)
    expect(page.get_by_role("alert")).to_contain_text("radius: input should be greater than or equal to 10")
    set_slider(page, "radius", 100)
    expect(page.get_by_role("alert")).to_be_hidden()


def test_online_tiles_come_with_a_warning(watched: Page, demo_url: str) -> None:
    def with_tiles(route: Route) -> None:
        page = route.fetch()
        # A tile that this machine has stands for those of the tile server.
        route.fulfill(
            response=page, body=page.text().replace('data-tiles=""', 'data-tiles="/static/icon.svg?{z}"')
        )

    watched.route(demo_url, with_tiles)
    show(watched, demo_url, "explore")
    expect(watched.get_by_text("the tile server sees which streets you look at")).to_be_visible()
    expect(watched.locator("img.leaflet-tile").first).to_be_visible()


# Explore


def test_the_dial_has_named_stops_and_the_expert_sliders_run_the_same_way(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore", "&seed=7")
    errors = []
    for stop, radius in {"street": 25, "block": 50, "neighbourhood": 100, "town": 200}.items():
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
    expect(watched.locator("#dial")).to_have_attribute(
        "aria-valuetext", re.compile("neighbourhood: .* 105 metres")
    )


def test_here_or_there_shows_the_odds_and_their_limit(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    gauge = watched.get_by_role("img", name=re.compile("The report changed the odds"))
    # As far apart as the promise reaches: the stop is the promise's factor.
    expect(gauge).to_have_attribute("aria-label", re.compile("more than ×4.0"))
    expect(watched.locator("#odds-note")).to_contain_text("places 100 m apart can exceed ×4.0")
    before = watched.locator("#odds-before").inner_text()
    seen = set()
    for _ in range(6):
        with answered(watched, "/api/explore") as told:
            watched.get_by_role("button", name="Draw new noise").click()
        settle(watched)
        odds = told.value.json()["odds"]
        assert 1 / odds["limit"] <= odds["change"] <= odds["limit"]
        assert watched.locator("#odds-before").inner_text() == before
        seen.add(watched.locator("#odds-after").inner_text())
    assert len(seen) > 1
    watched.locator(".pin-there").focus()
    with answered(watched, "/api/explore") as told:
        watched.keyboard.press("Shift+ArrowRight")
    settle(watched)
    assert told.value.json()["odds"]["limit"] > 4.1
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


def test_another_place_is_in_a_building_and_gets_fresh_noise(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    inside = watched.evaluate("fetch('/api/town').then(a => a.json()).then(t => t.buildings.map(b => b.inside))")
    offsets = set()
    for _ in range(3):
        with answered(watched, "/api/explore") as told:
            watched.get_by_role("button", name="Another place").click()
        settle(watched)
        asked = sent(told.value.request)
        assert [asked["lat"], asked["lon"]] in inside
        report = told.value.json()["report"]
        offsets.add((round(report["lat"] - asked["lat"], 5), round(report["lon"] - asked["lon"], 5)))
    assert len(offsets) == 3


def test_explore_draws_what_is_ticked(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
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


def test_the_lattice_shows_when_ticked(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    expect(watched.locator("#report-error")).to_have_text(re.compile(r"\d"))
    zoom = watched.evaluate("demo_map.getZoom()")
    watched.get_by_label("The lattice of reports").check()
    expect(watched.locator(".line-ring")).to_have_count(1)
    watched.get_by_label("The lattice of reports").uncheck()
    expect(watched.locator(".line-ring")).to_have_count(0)
    assert watched.evaluate("demo_map.getZoom()") == zoom
    expect(watched.locator("#lattice-note")).to_contain_text("1.1 m from row to row")


def test_new_noise_moves_the_report_and_a_slider_scales_it(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    first = number(watched.locator("#report-error"))
    with answered(watched, "/api/explore") as scaled:
        set_slider(watched, "radius", 200)
    settle(watched)
    assert number(watched.locator("#report-error")) == pytest.approx(2 * first, abs=3)
    with answered(watched, "/api/explore") as moved:
        watched.get_by_role("button", name="Draw new noise").click()
    settle(watched)
    # Places, not distances: two errors can be the same to the metre.
    reports = [answer.value.json()["report"] for answer in (scaled, moved)]
    assert (reports[0]["lat"], reports[0]["lon"]) != (reports[1]["lat"], reports[1]["lon"])
    assert number(watched.locator("#report-error")) == pytest.approx(reports[1]["error"], abs=1)


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


def test_nothing_jumps_while_a_slider_moves(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    settle(watched)
    before = watched.evaluate(TOPS)
    for factor, radius in ((2, 200), (16, 25), (10.5, 110)):
        set_slider(watched, "factor", factor)
        set_slider(watched, "radius", radius)
        settle(watched)
        assert watched.evaluate(TOPS) == before


# Near me


def test_near_me_retrieves_keeps_and_says_what_it_costs(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "near")
    kept = number(watched.locator("#kept"))
    expect(watched.locator("#nearest li")).to_have_count(min(5, int(kept)))
    assert number(watched.locator("#retrieved")) >= kept
    expect(watched.locator(".circle-report")).to_have_count(1)
    expect(watched.locator(".circle-truth")).to_have_count(1)
    expect(watched.locator("#near-sentence")).to_contain_text("With probability at least 0.95")
    cost = number(watched.locator("#overhead"))
    set_slider(watched, "confidence", 99)
    expect(watched.locator("#confidence-out")).to_have_text("99 %")
    expect(watched.locator("#near-sentence")).to_contain_text("at least 0.99, everything within 150 m")
    assert number(watched.locator("#overhead")) > cost
    expect(watched.locator("#missed")).to_have_text(re.compile(r"none|\d+"))
    # Counts end where the map ends, and say so.
    set_slider(watched, "radius", 200)
    expect(watched.locator("#near-outside")).to_contain_text("lies beyond this map")
    # What is missed has the colour that its key has.
    set_slider(watched, "confidence", 50)
    settle(watched)
    for _ in range(40):
        watched.get_by_role("button", name="Ask again with new noise").click()
        settle(watched)
        if watched.locator("#missed").inner_text() != "none":
            break
    edges: list[str] = watched.evaluate(
        "() => { const found = []; demo_map.eachLayer(({options}) => {"
        " if (options.stroke && options.radius === 5) found.push(options.color); }); return found; }"
    )
    assert len(edges) == number(watched.locator("#missed"))
    assert {*edges} == {TRUTH}
    set_slider(watched, "radius", 100)
    set_slider(watched, "confidence", 99)
    set_slider(watched, "query-radius", 300)
    expect(watched.locator("#near-sentence")).to_contain_text("everything within 300 m")
    with watched.expect_request(lambda request: request.url.endswith("/api/near")) as asked:
        watched.get_by_label("Looking for").select_option("anything")
    assert sent(asked.value)["kind"] == "any"
    with answered(watched, "/api/near"):
        watched.get_by_role("button", name="Ask again with new noise").click()


# Ask again


def test_fresh_answers_walk_home_until_the_ledger_refuses(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "again")
    expect(watched.locator("#mean-error")).to_have_text("145 m")
    set_slider(watched, "budget", 10)
    watched.get_by_role("button", name="Ask until refused").click()
    expect(watched.locator("#again-verdict")).to_contain_text("Refused: the budget of 10 reports")
    expect(watched.locator("#answers")).to_have_text("10")
    expect(watched.locator("#again-together")).to_contain_text("the 10 paid answers together")
    expect(watched.locator("#meter-out")).to_have_text("0 %")
    assert watched.locator("#meter").evaluate("meter => meter.value") == 0
    watched.get_by_role("button", name="Ask once").click()
    expect(watched.locator("#answers")).to_have_text("10")
    watched.get_by_role("button", name="Start over").click()
    expect(watched.locator("#answers")).to_have_text("0")
    expect(watched.locator("#meter-out")).to_have_text("100 %")


def test_the_same_report_teaches_nothing_and_costs_once(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "again")
    set_slider(watched, "budget", 5)
    watched.get_by_label("the same report").check()
    watched.get_by_role("button", name="Ask once").click()
    expect(watched.locator("#answers")).to_have_text("1")
    error = watched.locator("#average-error").inner_text()
    watched.get_by_role("button", name="Ask until refused").click()
    expect(watched.locator("#answers")).to_have_text("6")
    expect(watched.locator("#meter-out")).to_have_text("80 %")
    expect(watched.locator("#again-verdict")).to_contain_text("learns nothing")
    assert number(watched.locator("#average-error")) > 0
    assert error


# A trace


def test_a_drawn_walk_is_compared(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "trace")
    expect(watched.locator("#budgeted-count")).to_have_text("5")
    watched.get_by_role("button", name="Draw a new path").click()
    expect(watched.locator(".dot-truth")).to_have_count(0)
    expect(watched.get_by_role("button", name="Walk again")).to_be_disabled()
    for x, y in ((0.4, 0.4), (0.6, 0.4), (0.6, 0.6)):
        click_map(watched, x, y)
    expect(watched.locator(".dot-truth")).to_have_count(3)
    set_slider(watched, "trace-budget", 3)
    expect(watched.locator("#budgeted-count")).to_have_text("3")
    set_slider(watched, "step", 50)
    expect(watched.locator("#step-out")).to_have_text("50 m")
    expect(watched.locator("#budgeted-factor")).to_have_text("64 ×")
    expect(watched.locator("#map-summary")).to_contain_text("with 3 reports in all")
    settle(watched)
    seeds = []
    for _ in range(2):
        with watched.expect_request(lambda request: request.url.endswith("/api/trace")) as asked:
            watched.get_by_role("button", name="Walk again").click()
        seeds.append(sent(asked.value)["seed"])
        settle(watched)
    assert seeds[0] != seeds[1]
    watched.get_by_label("Each step").uncheck()
    expect(watched.locator(".line-naive")).to_have_count(0)
    watched.get_by_label("Budgeted").uncheck()
    expect(watched.locator(".line-budgeted")).to_have_count(0)
    watched.get_by_role("button", name="Undo a corner").click()
    expect(watched.locator(".dot-truth")).to_have_count(2)


# Compare


def test_compare_opens_where_cloaking_fails_and_switches_priors_mechanisms_and_measures(
    watched: Page, demo_url: str
) -> None:
    watched.set_viewport_size({"width": 820, "height": 1180})
    show(watched, demo_url, "compare")
    finding = watched.locator("#compare-finding")
    expect(finding).to_contain_text("planar Laplace keeps the observer 55 m off, cloaking 0 m")
    # Readable on a tablet: no word is smaller than 12 px.
    sizes = watched.locator(".bars span, .bars b").evaluate_all(
        "words => words.map(word => parseFloat(getComputedStyle(word).fontSize))"
    )
    assert min(sizes) >= 12
    asked: list[str] = []
    watched.on("request", lambda request: asked.extend([request.url] if "/api/" in request.url else []))
    watched.get_by_label("uniform", exact=True).check()
    expect(finding).to_have_text("Uniform: cloaking and planar Laplace both keep the observer 107 m off.")
    watched.get_by_label("In detail").select_option("cloaking")
    expect(watched.locator("#comparison .card h2").nth(2)).to_have_text("Cloaking")
    watched.get_by_label("Measure").select_option("measured epsilon")
    expect(watched.locator("#comparison .card h2").first).to_have_text("Measured epsilon of each mechanism")
    expect(watched.locator("#comparison .card").first).to_contain_text("∞")
    watched.get_by_label("the prior at hand").check()
    # The bars are a list of choices, for keys as well.
    first = watched.get_by_role("list", name="measured epsilon by mechanism")
    first.get_by_role("button", name="cloaking").focus()
    watched.keyboard.press("End")
    watched.keyboard.press("Enter")
    expect(watched.locator("#mechanism")).to_have_value("dummies")
    expect(watched.get_by_role("button", name="dummies")).to_be_focused()
    watched.get_by_role("list", name="measured epsilon by prior").get_by_role(
        "button", name="four corners"
    ).click()
    expect(watched.get_by_label("four corners", exact=True)).to_be_checked()
    expect(watched).to_have_url(
        re.compile(r"(?=.*prior=four\+corners)(?=.*mechanism=dummies)(?=.*equalised=evaluated)(?=.*measure=)")
    )
    assert asked == []


def test_four_mechanisms_meet_the_same_place_at_the_same_cost(watched: Page, demo_url: str) -> None:
    with answered(watched, "/api/mechanisms") as first:
        show(watched, demo_url, "compare")
    told = first.value.json()["mechanisms"]
    assert [one["name"] for one in told] == ["cloaking", "Gaussian", "planar Laplace", "optimal"]
    assert {round(one["cost"]) for one in told} <= {round(told[0]["cost"]) + step for step in (-1, 0, 1)}
    assert told[0]["epsilon"] is None
    assert told[3]["epsilon"] < told[2]["epsilon"] < told[1]["epsilon"]
    for one in told:
        for share in ("reports", "belief"):
            assert sum(one[share]) == pytest.approx(1, abs=1e-4)
    expect(watched.locator("#four svg")).to_have_count(4)
    expect(watched.locator("#four .truth")).to_have_count(4)
    expect(watched.locator("#four figcaption").first).to_contain_text("ε unbounded")
    expect(watched.locator("#four .falls").first).to_be_visible()
    watched.get_by_label("what an observer believes after one").check()
    expect(watched.locator("#four .falls")).to_have_count(0)
    expect(watched.get_by_role("img", name=re.compile("cloaking: what an observer believes"))).to_be_visible()
    with answered(watched, "/api/mechanisms") as second:
        watched.locator("#mechanisms-place").click()
    settle(watched)
    assert sent(second.value.request)["lat"] != sent(first.value.request)["lat"]
    with answered(watched, "/api/mechanisms"):
        watched.locator("#mechanisms-redraw").click()


def test_the_documentation_opens_without_help_from_outside(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    watched.get_by_role("link", name="API", exact=True).click()
    expect(watched.get_by_role("heading", name="The API")).to_be_visible()
    expect(watched.get_by_text("POST /api/explore")).to_be_visible()
