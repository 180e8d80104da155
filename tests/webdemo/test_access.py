"""Accessibility of the demo: axe-core and screens in every tab and theme, keys, spoken words, colours, motion."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.webdemo.browser import TABS, VIEWS, set_slider, settle, show, turn_to

RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]},
    # The story's policy forbids requests, also those of axe for a style sheet.
    "preload": False,
    # Of each rule that passes one element is enough: describing all of them takes longer than the check.
    "resultTypes": ["violations"],
}


def violations(page: Page, *, contrast_only: bool = False) -> list[str]:
    """Return what axe finds; a page in another theme differs in its contrast only."""
    rules = {**RULES, "runOnly": ["color-contrast"]} if contrast_only else RULES
    found = Axe().run(page, options=rules).response
    assert len(found["passes"]) > (0 if contrast_only else 20), "axe must have looked at something"
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found["violations"]]


SCREENS = {"wide": (1440, 900), "phone": (390, 844), "zoom-200": (720, 450), "zoom-400": (360, 240)}

# What is wider than the window, and texts that are wider than their box.
OVERFLOW = """
[...document.querySelectorAll('body, button, label, output, dd, td')].filter(
    e => e.offsetParent !== null && e.clientWidth && !e.closest('.figures') && e.scrollWidth > e.clientWidth + 1
).map(e => e.outerHTML.slice(0, 200))
"""


@pytest.mark.parametrize("tab", TABS)
def test_axe_finds_no_violation_and_each_tab_fits_every_screen(watched: Page, demo_url: str, tab: str) -> None:
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
        assert watched.evaluate(OVERFLOW) == [], screen
    watched.set_viewport_size({"width": 1440, "height": 900})
    watched.locator("#expert").evaluate("details => { details.open = true; }")
    assert violations(watched) == []
    watched.locator("#theme").click()
    expect(watched.locator("html")).to_have_attribute("data-theme", "dark")
    settle(watched)
    assert violations(watched, contrast_only=True) == []
    # Every slider says its value with its unit.
    sliders = watched.locator("input[type=range]:visible")
    for text in sliders.evaluate_all("all => all.map(slider => slider.getAttribute('aria-valuetext'))"):
        assert text
        assert not text.isdigit()
    if tab != "compare":
        # The map has a text description, too.
        expect(watched.locator("#map-summary")).not_to_be_empty()


def test_axe_finds_nothing_in_any_part_of_the_story(story: Page) -> None:
    for view in VIEWS:
        turn_to(story, view)
        if view == "part=day":
            story.locator("#example-day").click()
            expect(story.locator("#outcomes")).to_be_visible()
        if view == "card=4":
            # By keyboard alone: from the heading of the card to its controls.
            expect(story.locator("#title")).to_be_focused()
            for _ in range(20):
                story.keyboard.press("Tab")
                if story.evaluate("document.activeElement.id") == "play":
                    break
            story.keyboard.press("Enter")
            expect(story.locator("#finding")).to_contain_text("Found after")
            expect(story.locator("#chart svg")).to_have_attribute("aria-label", re.compile("200 runs"))
        assert violations(story) == [], view
        story.locator("#theme").click()
        assert violations(story, contrast_only=True) == [], (view, "dark")
        story.locator("#theme").click()
        for text in story.locator("input[type=range]:visible").evaluate_all(
            "all => all.map(slider => slider.getAttribute('aria-valuetext'))"
        ):
            assert text
            assert not text.isdigit()
        # A map has a text description, too.
        assert len(story.locator("#yours canvas").get_attribute("aria-label") or "") > 10


def test_a_zoom_of_200_percent_leaves_all_of_the_story_within_reach(story: Page) -> None:
    story.set_viewport_size({"width": 640, "height": 360})
    turn_to(story, "card=6")
    story.locator("#next").click()
    expect(story.get_by_role("tab", name="Free play")).to_have_attribute("aria-selected", "true")
    assert story.evaluate("document.documentElement.scrollHeight > innerHeight")
    assert story.locator("#panel").evaluate("panel => panel.scrollHeight <= panel.clientHeight + 1")


def test_axe_finds_nothing_in_the_documentation(watched: Page, demo_url: str) -> None:
    watched.goto(f"{demo_url}docs")
    assert violations(watched) == []


def test_reduced_motion_shows_the_end_at_once(watched: Page, demo_url: str) -> None:
    watched.emulate_media(reduced_motion="reduce")
    show(watched, demo_url, "again")
    set_slider(watched, "budget", 10)
    asked: list[str] = []
    watched.on("request", lambda request: asked.append(request.url) if request.url.endswith("again") else None)
    watched.get_by_role("button", name="Ask until refused").click()
    expect(watched.locator("#again-verdict")).to_contain_text("Refused: the budget of 10 reports")
    expect(watched.locator("#answers")).to_have_text("10")
    assert len(asked) == 1
    moving = "document.getAnimations().filter(one => one.playState === 'running').length"
    assert watched.evaluate(moving) == 0


MESSAGES = """
window.messages = [];
for (const region of document.querySelectorAll('[role=status], [role=alert], [aria-live]'))
  new MutationObserver(() => { if (region.textContent) messages.push(region.textContent); })
    .observe(region, { childList: true, characterData: true, subtree: true });
"""


def test_a_tab_moves_the_focus_to_its_title_and_a_run_has_one_message(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    for name in [*list(TABS.values())[1:], "Explore", "Ask again"]:
        watched.get_by_role("tab", name=name).click()
        title = watched.locator("#lead h2:visible")
        expect(title).to_be_focused()
        expect(watched).to_have_title(f"{name}: {title.inner_text()} · geoind")
    set_slider(watched, "budget", 5)
    expect(watched.locator("#map-summary")).to_have_text("No answers yet.")
    watched.evaluate(MESSAGES)
    button = watched.get_by_role("button", name="Ask until refused")
    button.focus()
    watched.keyboard.press("Enter")
    expect(watched.locator("#answers")).to_have_text("5")
    expect(watched.locator("#map-summary")).to_contain_text("Refused: the budget of 5 reports")
    expect(button).to_be_focused()
    assert len(watched.evaluate("messages")) == 1
    watched.get_by_role("tab", name="A trace").click()
    settle(watched)
    undo = watched.get_by_role("button", name="Undo a corner")
    for _ in range(watched.locator(".dot-truth").count()):
        undo.click()
    expect(watched.locator(".dot-truth")).to_have_count(0)
    expect(undo).to_be_focused()


def test_forced_colours_keep_what_colour_means(watched: Page, demo_url: str) -> None:
    watched.emulate_media(forced_colors="active")
    show(watched, demo_url, "explore", "&show-belief=1")
    pin = "getComputedStyle(document.querySelector('.pin-truth'), '::before').backgroundColor"
    assert watched.evaluate(pin) == "rgb(184, 18, 79)"
    keys = watched.locator(".layers .key.report, .layers .key.there").evaluate_all(
        "keys => keys.map(key => getComputedStyle(key).backgroundColor)"
    )
    assert len({*keys}) == 2
    chosen = watched.locator("[role=tab][aria-selected=true]")
    other = watched.locator("[role=tab][aria-selected=false]").first
    border = "tab => getComputedStyle(tab).borderBottomColor + getComputedStyle(tab).fontWeight"
    assert chosen.evaluate(border) != other.evaluate(border)
