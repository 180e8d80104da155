"""The extension's own pages: the popup, the options and the limits."""

import json
import math
import re
from collections.abc import Iterator
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from geoind import SphericalLaplace
from tests.conftest import watch
from tests.extension.browser import FIND, TRUTH, Extended, Handler, metres
from tests.webdemo.test_access import RULES, violations

pytestmark = pytest.mark.browser

SLOW_FRAME = """new Promise((done) => {
    const made = document.createElement("iframe");
    made.src = "/slow";
    document.body.append(made);
    made.contentWindow.navigator.geolocation.getCurrentPosition(() => done("truth"), ({code}) => done(code));
})"""
"""Reads the position through the browser's own geolocation, unless that is blocked."""


@pytest.fixture
def site(chromium: Extended) -> Iterator[Page]:
    """A page of a site that got a report."""
    chromium.send(kind="forget")
    chromium.choose("medium")
    page = chromium.open()
    page.evaluate(FIND)
    yield page
    page.close()


@pytest.fixture
def popup(chromium: Extended, site: Page) -> Iterator[Page]:
    """The popup about that page, in a tab."""
    assert site.url
    tabs = chromium.worker.evaluate("chrome.storage.session.get(null)")
    [number] = [name.split()[1] for name in tabs if name.startswith("tab ")]
    page = chromium.own_page(f"popup.html?tab={number}")
    page.set_viewport_size({"width": 400, "height": 800})
    errors = watch(page)
    expect(page.locator("html[data-ready=yes]")).to_be_attached()
    yield page
    page.close()
    assert errors == []


@pytest.fixture
def options(chromium: Extended, site: Page) -> Iterator[Page]:
    assert site.url
    page = chromium.own_page("options.html")
    errors = watch(page)
    expect(page.locator("html[data-ready=yes]")).to_be_attached()
    yield page
    page.close()
    assert errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(
    popup: Page, options: Page, chromium: Extended, scheme: Literal["light", "dark"]
) -> None:
    popup.locator("summary").click()
    for page in (popup, options):
        page.emulate_media(color_scheme=scheme)
        assert violations(page, contrast_only=scheme == "dark") == [], page.url
        for slider in page.locator("input[type=range]").all():
            assert re.search(r"\d k?m|\d moves", slider.get_attribute("aria-valuetext") or "")
    limits = chromium.own_page("limits.html")
    limits.emulate_media(color_scheme=scheme)
    assert Axe().run(limits, options=RULES).response["violations"] == []
    limits.close()


def test_the_popup_shows_what_the_site_saw_and_what_it_cost(popup: Page, chromium: Extended) -> None:
    expect(popup.get_by_role("heading", level=1)).to_have_text(chromium.site("127.0.0.1", ""))
    expect(popup.get_by_role("radio", name="privacy medium")).to_be_checked()
    expect(popup.get_by_role("img")).to_have_accessible_name(re.compile(r"Map of 1 place .* radius of 1\.7 km"))
    # A fresh report and a run of tests: 2 ln 4 / 500 of 0.1.
    expect(popup.locator("#site-spent")).to_have_text("5.5 % spent")
    expect(popup.locator("#total-spent")).to_have_text("2.8 % spent")
    shown = popup.locator("body").inner_text() + popup.locator("#map").inner_html()
    for true in TRUTH:
        assert str(true)[:7] not in shown


def test_the_popup_says_that_a_budget_is_spent(popup: Page, chromium: Extended) -> None:
    expect(popup.locator("#status")).to_contain_text("saw 1 place. The page reads an accuracy of 1.7 km")
    chromium.send(kind="settings", settings={"budget": {"site": 0.01}})
    popup.get_by_role("radio", name="privacy low").check()
    expect(popup.locator("#status")).to_contain_text("this site gets an error")


def test_a_choice_in_the_popup_is_made_with_the_keyboard(popup: Page, site: Page) -> None:
    # A click or a key that was meant for a page has no effect in a popup that opens under it.
    popup.wait_for_function("() => !document.body.inert")
    popup.get_by_role("radio", name="privacy medium").focus()
    popup.keyboard.press("ArrowDown")
    expect(popup.get_by_role("radio", name="privacy high")).to_be_checked()
    popup.wait_for_function(
        """async () => Object.values((await chrome.storage.local.get("sites")).sites)[0].choice === "high" """
    )
    popup.get_by_role("radio", name="Nothing").check()
    popup.wait_for_function(
        """async () => Object.values((await chrome.storage.local.get("sites")).sites)[0].choice === "off" """
    )
    assert site.evaluate(FIND)["code"] == 1


def test_a_pause_needs_two_deliberate_steps_and_says_what_it_means(popup: Page, site: Page) -> None:
    button = popup.get_by_role("button", name="Pause the protection")
    expect(button).to_be_hidden()
    popup.get_by_text("Give this site my true position").click()
    expect(popup.locator("#pausing")).to_contain_text("can read exactly where you are")
    button.click()
    expect(popup.locator("#paused")).to_contain_text("can read your true position")
    got = site.evaluate(FIND)
    assert metres(got["lat"], got["lon"]) < 1
    popup.get_by_role("button", name="End the pause").click()
    expect(popup.locator("#paused")).to_be_hidden()
    got = site.evaluate(FIND)
    assert metres(got["lat"], got["lon"]) > 1
    assert site.evaluate(SLOW_FRAME) == 1


def test_a_pause_is_shown_on_the_icon_and_ended_in_the_options(site: Page, chromium: Extended) -> None:
    badge = """async () => {
        const tabs = Object.keys(await chrome.storage.session.get(null)).filter((name) => name.startsWith("tab "));
        return chrome.action.getBadgeText({tabId: Number(tabs[0].slice(4))});
    }"""
    assert chromium.worker.evaluate(badge) == ""
    name = chromium.site("127.0.0.1", "")
    chromium.send(kind="pause", origin=name, pause=True)
    assert chromium.worker.evaluate(badge) == "!"
    options = chromium.own_page("options.html")
    expect(options.locator("#paused li")).to_contain_text(name)
    assert violations(options) == []
    options.get_by_role("button", name=f"End the pause of {name}").click()
    expect(options.locator("#paused")).to_be_hidden()
    options.close()
    assert chromium.worker.evaluate(badge) == ""
    assert site.evaluate(SLOW_FRAME) == 1


def test_the_options_say_metres_and_odds(options: Page, chromium: Extended) -> None:
    dial = options.locator("#dial-low")
    words = options.locator(".card", has=dial).locator(".promise")
    reach = SphericalLaplace(math.log(4) / 200).reach
    expect(words).to_contain_text("within 200 m of each other, a report changes the odds by a factor of 4 at most")
    expect(words).to_contain_text(
        f"Half of the reports are within {reach(0.5):.0f} m of you, 95 % within {reach(0.95):.0f} m."
    )
    dial.focus()
    options.keyboard.press("Home")
    expect(words).to_contain_text("within 50 m")
    expect(options.locator("#said")).to_have_text("Saved.")
    assert chromium.stored()["settings"]["radii"]["low"] == 50


def test_a_place_and_a_zone_are_set_and_removed(options: Page, chromium: Extended) -> None:
    options.get_by_label("Latitude").fill("60.17")
    options.get_by_label("Longitude").fill("24.94")
    options.get_by_role("button", name="Save the place").click()
    expect(options.locator("#said")).to_have_text("Saved.")
    assert chromium.stored()["settings"]["place"] == {"lat": 60.17, "lon": 24.94}
    options.get_by_role("button", name="Make a zone").click()
    expect(options.locator("#zone")).to_contain_text("There is a zone with a radius of")
    zone = chromium.stored()["settings"]["zone"]
    assert metres(zone["lat"], zone["lon"]) > 1
    # Sites learn its centre: 2 ln 4 / 500 of their own, and once more for the zone.
    expect(options.locator("#sites td").nth(2)).to_have_text("8.3 %")
    options.get_by_role("button", name="Remove the zone").click()
    expect(options.locator("#zone")).to_have_text("There is no zone.")


def test_a_deleted_site_is_gone_and_its_cost_stays(options: Page, chromium: Extended) -> None:
    name = chromium.site("127.0.0.1", "")
    options.get_by_role("button", name=f"Delete {name}").click()
    expect(options.locator("#no-sites")).to_be_visible()
    stored = chromium.stored()
    account = json.loads(stored["account"])
    assert stored["sites"] == account["sessions"] == {}
    assert [*account["spent"]] == ["deleted sites"]
    assert name not in json.dumps(stored)


def test_everything_can_be_deleted_and_pages_stay_blocked(options: Page, site: Page, chromium: Extended) -> None:
    chromium.send(kind="pause", origin=chromium.site("127.0.0.1", ""), pause=True)
    assert site.evaluate(SLOW_FRAME) == "truth"
    options.get_by_role("button", name="Delete everything").click()
    options.get_by_role("button", name="Keep").click()
    assert chromium.stored()["sites"]
    options.get_by_role("button", name="Delete everything").click()
    options.get_by_role("button", name="Delete", exact=True).click()
    expect(options.locator("#said")).to_have_text("Everything is deleted.")
    assert chromium.stored() == {}
    assert site.evaluate(SLOW_FRAME) == 1


def test_no_part_of_the_extension_sends_a_request(chromium: Extended) -> None:
    address = chromium.site("127.0.0.1", "/asked")
    fetching = "address => fetch(address).then(() => 'sent', () => 'refused')"
    page = chromium.own_page("options.html")
    for part in (page, chromium.worker):
        assert part.evaluate(fetching, address) == "refused"
    assert chromium.in_offscreen(f"({fetching})('{address}')") == "refused"
    page.evaluate("address => { new Image().src = address; navigator.sendBeacon(address); }", address)
    page.close()
    assert "/asked" not in Handler.asked
