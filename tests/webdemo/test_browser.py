"""The demo in a real browser: every tab, every control; no error, no jump, no request that leaves the machine."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.webdemo.browser import TABS, answered, click_map, sent, set_slider, settle, show

ARTEFACTS = Path(__file__).parents[2] / "artefacts"


SCREENS = {"wide": (1440, 900), "phone": (390, 844), "zoom-200": (720, 450), "zoom-400": (360, 240)}

# What is wider than the window, and texts that are wider than their box.
OVERFLOW = """
[...document.querySelectorAll('body, button, label, output, dd, td')].filter(
    e => e.offsetParent !== null && e.clientWidth && !e.closest('.figures') && e.scrollWidth > e.clientWidth + 1
).map(e => e.outerHTML.slice(0, 200))
"""


@pytest.mark.parametrize("tab", TABS)
def test_each_tab_fits_every_screen_and_is_kept_as_pictures(watched: Page, demo_url: str, tab: str) -> None:
    ARTEFACTS.mkdir(exist_ok=True)
    show(watched, demo_url, tab, "&show-belief=1&show-remapped=1")
    if tab == "again":
        watched.get_by_role("button", name="Ask once").click()
        expect(watched.locator("#answers")).to_have_text("1")
    for screen, (width, height) in SCREENS.items():
        watched.set_viewport_size({"width": width, "height": height})
        # The header is one line; title, sentence and finding are seen without scrolling.
        tools = watched.locator(".bar > *, .tools > *").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).map(({top, bottom}) => (top + bottom) / 2)"
        )
        assert max(tools) - min(tools) < 4, screen
        for part in ("h2:visible", "p:visible >> nth=0", "#finding"):
            expect(watched.locator(f"#lead {part}").first).to_be_in_viewport(ratio=1)
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
    # The text disappears soon; on a busy machine it may be gone.
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


def test_the_documentation_opens_without_help_from_outside(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    watched.get_by_role("link", name="API", exact=True).click()
    expect(watched.get_by_role("heading", name="The API")).to_be_visible()
    expect(watched.get_by_text("POST /api/explore")).to_be_visible()
