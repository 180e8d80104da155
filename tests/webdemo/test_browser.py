"""The demo in a real browser: every tab, every control; no error, no jump, no request that leaves the machine."""

import re

from playwright.sync_api import Page, Route, expect

from tests.webdemo.browser import TABS, answered, click_map, sent, set_slider, settle, show


def test_tabs_follow_the_arrow_keys_and_no_address_has_a_location(watched: Page, demo_url: str) -> None:
    addresses: list[str] = []
    watched.on("request", lambda request: addresses.append(request.url))
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
    for name in TABS.values():
        watched.get_by_role("tab", name=name).click()
        if name != "Compare":
            click_map(watched, 0.5, 0.5)
        settle(watched)
    # The documentation opens without help from outside.
    watched.get_by_role("link", name="API", exact=True).click()
    expect(watched.get_by_role("heading", name="The API")).to_be_visible()
    expect(watched.get_by_text("POST /api/explore")).to_be_visible()
    assert addresses
    assert not [address for address in addresses if re.search(r"60\.|24\.9", address)]


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


def test_copy_link_says_that_it_copied(watched: Page, demo_url: str) -> None:
    watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
    show(watched, demo_url, "explore")
    # The text disappears soon; on a busy machine it may be gone. The policy of the page allows the evaluation of a
    # function once, but not of an expression again and again.
    watched.evaluate(
        "window.said = [];"
        "new MutationObserver(() => said.push(share.textContent)).observe(share, {childList: true})"
    )
    watched.locator("#share").click()
    watched.wait_for_function("() => said.includes('Copied')")
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
