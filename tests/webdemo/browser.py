"""Driving the demo in a real browser: what the tests of its pages share."""

import re
from typing import Any

from playwright.sync_api import Locator, Page, Request, expect

TABS = {"explore": "Explore", "near": "Near me", "again": "Ask again", "trace": "A trace", "compare": "Compare"}

VIEWS = [*(f"card={n}" for n in range(1, 7)), "part=free", "part=day", "part=guess"]
"""The cards of the story, and its other parts."""


def show(page: Page, url: str, tab: str, state: str = "") -> Page:
    page.goto(f"{url}#tab={tab}{state}")
    expect(page.locator("html[data-ready=yes]")).to_be_attached()
    expect(page.get_by_role("tab", name=TABS[tab])).to_have_attribute("aria-selected", "true")
    settle(page)
    return page


def settle(page: Page) -> None:
    """Wait until no question is under way: what is shown is the answer to the last one."""
    expect(page.locator("#panel:not([aria-busy=true])")).to_be_attached()


def set_slider(page: Page, control: str, value: float) -> None:
    page.locator(f"#{control}").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input', {bubbles: true}));"
        " slider.dispatchEvent(new Event('change', {bubbles: true})); }",
        value,
    )


def number(where: Locator) -> float:
    """Return the first number of a text; kilometres have one decimal, and are metres here."""
    expect(where).to_have_text(re.compile(r"\d"))
    found = re.search(r"([\d.,]+)( km)?", where.inner_text())
    assert found is not None
    return float(found[1].replace(",", "")) * (1000 if found[2] else 1)


def sent(request: Request) -> dict[str, Any]:
    """What a request carries."""
    body: dict[str, Any] | None = request.post_data_json
    assert body is not None
    return body


def click_map(page: Page, x: float, y: float) -> None:
    box = page.locator("#map_map, .folium-map").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])


def answered(page: Page, path: str) -> Any:
    return page.expect_response(lambda response: response.url.endswith(path) and response.ok)


def turn_to(page: Page, view: str) -> None:
    """Open a card of the story, or another part of it, by its address."""
    page.evaluate("(view) => { location.hash = view; }", view)
    part = view.split("=")[1] if view.startswith("part") else "card"
    expect(page.locator(f"#tab-{part}")).to_have_attribute("aria-selected", "true")
    if part == "card":
        expect(page.locator("#count")).to_have_text(f"{view[5]} of 6")
