"""The demo's shell in a real browser: the address, the pin, the request layer, the two colours."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Request, Route, expect

import webdemo
from geoind.maps import REPORT, TRUTH
from tests.webdemo.browser import click_map, sent, set_slider, settle, show

STYLE = Path(webdemo.__file__).parent / "static" / "app.css"


def asks(page: Page, path: str = "/api/explore") -> Any:
    return page.expect_request(lambda request: request.url.endswith(path))


def test_truth_and_report_have_the_same_colours_in_the_demo_and_on_maps() -> None:
    light = STYLE.read_text().split("}")[0]
    assert f"--truth: {TRUTH};" in light
    assert f"--report: {REPORT};" in light


def test_back_returns_to_the_tab_and_its_settings(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    set_slider(watched, "radius", 150)
    watched.get_by_role("tab", name="Near me").click()
    set_slider(watched, "radius", 80)
    watched.get_by_role("tab", name="Compare").dblclick()
    expect(watched.locator("#finding")).to_contain_text("planar Laplace costs")
    # A double click asks once: no control is there twice.
    names = watched.locator("#compare-priors input").evaluate_all("inputs => inputs.map(input => input.value)")
    assert len(names) == len({*names})
    # Visiting Compare changes no other setting.
    assert watched.locator("#radius").input_value() == "80"
    expect(watched).to_have_title(re.compile("^Compare"))
    watched.go_back()
    expect(watched.get_by_role("tab", name="Near me")).to_have_attribute("aria-selected", "true")
    watched.go_back()
    expect(watched.get_by_role("tab", name="Explore")).to_have_attribute("aria-selected", "true")
    assert watched.locator("#radius").input_value() == "150"
    watched.go_forward()
    expect(watched.get_by_role("tab", name="Near me")).to_have_attribute("aria-selected", "true")


def test_the_address_is_followed_and_a_bad_one_is_survived(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    watched.evaluate("location.hash = '#tab=near&confidence=80&kind=shop'")
    expect(watched.get_by_role("tab", name="Near me")).to_have_attribute("aria-selected", "true")
    expect(watched.locator("#confidence-out")).to_have_text("80 %")
    assert watched.locator("#kind").input_value() == "shop"
    for bad in (
        "tab=constructor&answer=no&radius=abc&at=,&kind=x",
        "%E0%A4%A",
        "tab=toString&at=91,999&path=1,2 x",
    ):
        watched.evaluate("hash => { location.hash = hash; }", bad)
        settle(watched)
        expect(watched.locator("#promise")).to_contain_text("up to 100 m apart")
        expect(watched.locator("input[name=answer]:checked")).to_have_count(1)
        watched.goto(f"{demo_url}?{len(bad)}#{bad}")
        expect(watched.locator("html[data-ready=yes]")).to_be_attached()
        expect(watched.get_by_role("tab", name="Explore")).to_have_attribute("aria-selected", "true")
        expect(watched.locator("#report-error")).to_have_text(re.compile(r"\d"))


def test_a_walk_is_in_the_link_only_when_asked(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "trace")
    watched.get_by_role("button", name="Draw a new path").click()
    for x, y in ((0.4, 0.4), (0.6, 0.4)):
        click_map(watched, x, y)
        settle(watched)
    assert "path=" not in watched.url
    watched.get_by_label("include my place and my walk in link and code").check()
    address = watched.evaluate("location.href")
    # The town's own place is public and needs no link: both corners of the walk are in it.
    assert address.count("24.9") == 2
    shown = [watched.locator(f"#naive-{name}").inner_text() for name in ("error", "guess")]
    watched.goto("about:blank")
    with asks(watched, "/api/trace") as asked:
        watched.goto(address)
    assert len(sent(asked.value)["path"]) == 2
    expect(watched.locator(".dot-truth")).to_have_count(2)
    # The same walk and the same noise.
    for name, text in zip(("error", "guess"), shown, strict=True):
        expect(watched.locator(f"#naive-{name}")).to_have_text(text)


SMALL_NOISES = """
let seed = 174n;
crypto.getRandomValues = (array) => { array[0] = seed++ << 15n; return array; };
"""
"""Seeds of eight reports in a row that lie well within the map: it has no reason to zoom out."""


def test_the_pin_is_dragged_by_mouse_by_keys_and_by_finger(watched: Page, demo_url: str) -> None:
    watched.add_init_script(SMALL_NOISES)
    show(watched, demo_url, "explore")
    pin = watched.locator(".pin-truth")
    box = pin.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    zoom = watched.evaluate("demo_map.getZoom()")
    asked: list[Request] = []
    watched.on("request", lambda request: asked.append(request) if "explore" in request.url else None)
    watched.mouse.move(x, y)
    watched.mouse.down()
    watched.mouse.move(x + 60, y + 30, steps=4)
    watched.mouse.up()
    settle(watched)
    # Questions of the drag may still wait when the pin is dropped; the last one is that of the drop.
    dropped = sent(asked[-1])
    moved = pin.bounding_box()
    assert moved is not None
    assert abs(moved["x"] - box["x"] - 60) < 3
    assert abs(moved["y"] - box["y"] - 30) < 3
    seed = dropped["seed"]
    pin.focus()
    # The same noise while the pin moves, and fresh noise for a fresh place once it rests.
    again = watched.expect_request(lambda request: "explore" in request.url and sent(request)["seed"] != seed)
    with again as rested, asks(watched) as pushed:
        watched.keyboard.press("Shift+ArrowDown")
    assert sent(pushed.value)["seed"] == seed
    assert sent(pushed.value)["lat"] < dropped["lat"]
    # A place that is kept has six decimals.
    assert sent(rested.value)["lat"] == round(sent(pushed.value)["lat"], 6)
    settle(watched)
    touch = watched.context.new_cdp_session(watched)
    at = pin.bounding_box()
    assert at is not None
    finger = {"x": at["x"] + 22, "y": at["y"] + 22}
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [finger]})
    for step in (10, 25, 40):
        touch.send(
            "Input.dispatchTouchEvent",
            {"type": "touchMove", "touchPoints": [{"x": finger["x"] - step, "y": finger["y"]}]},
        )
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    settle(watched)
    left = pin.bounding_box()
    assert left is not None
    assert left["x"] < at["x"] - 25
    assert watched.evaluate("demo_map.getZoom()") == zoom


def test_a_double_click_places_once_and_a_key_on_a_zoom_button_places_nothing(
    watched: Page, demo_url: str
) -> None:
    watched.add_init_script(SMALL_NOISES)
    show(watched, demo_url, "explore")
    asked: list[str] = []
    watched.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    zoom = watched.evaluate("demo_map.getZoom()")
    box = watched.locator(".folium-map").bounding_box()
    assert box is not None
    watched.mouse.dblclick(box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"])
    settle(watched)
    watched.wait_for_timeout(300)
    assert watched.evaluate("demo_map.getZoom()") == zoom
    assert len(asked) == 1
    watched.get_by_role("button", name="Zoom in").focus()
    watched.keyboard.press("Enter")
    watched.wait_for_function("zoom => demo_map.getZoom() > zoom", arg=zoom)
    settle(watched)
    assert len(asked) == 1


FAR_AWAY = "void demo_map.fire('click', {latlng: L.latLng(61.5, 25.5)})"


def test_a_refused_place_is_not_kept_in_explore_or_in_a_walk(page: Page, demo_url: str) -> None:
    show(page, demo_url, "explore")
    with asks(page) as first:
        page.get_by_role("button", name="Draw new noise").click()
    settle(page)
    pins = [page.locator(f".pin-{name}").bounding_box() for name in ("truth", "there")]
    page.evaluate(FAR_AWAY)
    expect(page.get_by_role("alert")).to_contain_text("within 3 km")
    assert [page.locator(f".pin-{name}").bounding_box() for name in ("truth", "there")] == pins
    with asks(page) as again:
        page.get_by_role("button", name="Draw new noise").click()
    assert sent(again.value)["lat"] == sent(first.value)["lat"]
    expect(page.get_by_role("alert")).to_be_hidden()

    # Nor is a refused corner part of the walk.
    page.get_by_role("tab", name="A trace").click()
    settle(page)
    corners = page.locator(".dot-truth").count()
    page.evaluate(FAR_AWAY)
    expect(page.get_by_role("alert")).to_contain_text("within 3 km")
    with asks(page, "/api/trace") as asked:
        click_map(page, 0.5, 0.5)
    assert len(sent(asked.value)["path"]) == corners + 1
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.locator(".dot-truth")).to_have_count(corners + 1)


def test_a_lost_server_is_shown_and_the_last_answer_stays_until_it_is_back(page: Page, demo_url: str) -> None:
    show(page, demo_url, "explore")
    shown = [
        page.locator(f"#{name}").inner_text() for name in ("promise", "epsilon", "mean-error", "report-error")
    ]
    address = re.compile(r"/(api/|static/icon)")
    page.route(address, lambda route: route.abort("connectionrefused"))
    set_slider(page, "radius", 200)
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    page.get_by_role("tab", name="Compare").click()
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    page.get_by_role("tab", name="Explore").click()
    for name, text in zip(("promise", "epsilon", "mean-error", "report-error"), shown, strict=True):
        expect(page.locator(f"#{name}")).to_have_text(text)
    page.unroute(address)
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.locator("#promise")).to_contain_text("up to 200 m apart")
    page.get_by_role("tab", name="Compare").click()
    expect(page.locator("#finding")).to_contain_text("planar Laplace costs")
    # What was asked of a lost server is answered when it is found.
    page.get_by_role("tab", name="Ask again").click()
    page.route(address, lambda route: route.abort("connectionrefused"))
    page.get_by_role("button", name="Ask once").click()
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    page.unroute(address)
    expect(page.locator("#answers")).to_have_text("1")
    expect(page.get_by_role("alert")).to_be_hidden()


@pytest.mark.parametrize(("tab", "width"), [("explore", 360), ("compare", 1280)])
def test_a_slow_answer_shows_that_it_is_awaited_and_hides_nothing(
    watched: Page, demo_url: str, tab: str, width: int
) -> None:
    watched.set_viewport_size({"width": width, "height": 800})
    show(watched, demo_url, tab)
    held: list[Route] = []
    watched.route("**/api/*", lambda route: held.append(route))
    watched.get_by_role("tabpanel").get_by_role("button", name="Draw new noise").click()
    sign = watched.get_by_text("Waiting for the answer")
    expect(sign).to_be_visible()
    box = sign.bounding_box()
    assert box is not None
    for others in (".leaflet-control-zoom", "#hint", "#mechanisms-title"):
        other = watched.locator(others)
        beside = other.bounding_box() if other.is_visible() else None
        if beside is not None:
            below, right = beside["y"] - box["y"], beside["x"] - box["x"]
            assert below >= box["height"] or right >= box["width"], others
    for route in held:
        route.continue_()
    expect(sign).to_be_hidden()


def test_before_the_scripts_have_come_there_are_words_and_no_dead_controls(page: Page, demo_url: str) -> None:
    held: list[Route] = []
    page.route("**/map.js", lambda route: held.append(route))
    page.goto(demo_url, wait_until="commit")
    expect(page.get_by_role("heading", name="One report")).to_be_visible()
    expect(page.locator("#finding")).to_have_text("Loading the map …")
    for control in ("button", "input", "select"):
        expect(page.locator(f"{control}:visible")).to_have_count(0)
    for route in held:
        route.continue_()
    expect(page.get_by_role("button", name="Draw new noise")).to_be_visible()
    expect(page.locator("#finding")).to_contain_text("This report is")
    page.unroute("**/map.js")
    page.route("**/js/near.js", lambda route: route.abort("connectionrefused"))
    page.reload()
    said = "getComputedStyle(document.getElementById('finding'), '::after').content"
    expect(page.locator("html[data-failed]")).to_be_attached()
    assert "did not arrive" in page.evaluate(said)


def test_no_mark_covers_another_and_the_wheel_zooms(watched: Page, demo_url: str) -> None:
    def exactly_here(route: Route) -> None:
        asked, answer = sent(route.request), route.fetch()
        content = answer.json()
        for mark in ("report", "remapped"):
            content[mark] |= {"lat": asked["lat"], "lon": asked["lon"]}
        route.fulfill(response=answer, json=content)

    watched.route("**/api/explore", exactly_here)
    show(watched, demo_url, "explore", "&show-remapped=1")
    for _ in range(4):
        centres = watched.locator(".pin-truth, .pin-there, .dot-report, .diamond").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect())"
            ".map(box => [box.x + box.width / 2, box.y + box.height / 2])"
        )
        assert len(centres) == 4
        for i, here in enumerate(centres):
            assert all(math.dist(here, there) > 17 for there in centres[:i])
        zoom = watched.evaluate("demo_map.getZoom()")
        watched.mouse.move(900, 400)
        watched.mouse.wheel(0, 240)
        watched.wait_for_function(
            "zoom => demo_map.getZoom() < zoom && !document.querySelector('.leaflet-zoom-anim')", arg=zoom
        )
        # Out of the town there are lines of latitude and longitude, not bare ground.
        expect(watched.locator(".graticule-label").first).to_be_attached()


def test_a_projector_gets_large_text_and_the_map_alone(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    size = "parseFloat(getComputedStyle(document.getElementById('finding')).fontSize)"
    usual = watched.evaluate(size)
    watched.get_by_role("button", name="Large text").click()
    assert watched.evaluate(size) == pytest.approx(1.5 * usual)
    address = watched.evaluate("location.href")
    watched.goto("about:blank")
    watched.goto(address)
    expect(watched.get_by_role("button", name="Large text")).to_have_attribute("aria-pressed", "true")
    assert watched.evaluate(size) == pytest.approx(1.5 * usual)
    watched.get_by_role("button", name="Full screen").click()
    watched.wait_for_function("() => document.fullscreenElement?.id === 'stage'")
    watched.wait_for_function("() => document.getElementById('mapframe').offsetWidth >= innerWidth - 1")
    watched.evaluate("() => document.exitFullscreen()")


def test_belief_compare_and_back_again_leave_no_error(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore", "&show-belief=1")
    for tab in ("Compare", "Explore"):
        watched.get_by_role("tab", name=tab).click()
        settle(watched)
    with asks(watched):
        watched.get_by_role("button", name="Draw new noise").click()
    settle(watched)
    expect(watched.get_by_text("Where an observer looks: chance of a building")).to_be_visible()


def test_every_window_leaves_room_for_map_and_controls(watched: Page, demo_url: str) -> None:
    watched.set_viewport_size({"width": 1440, "height": 900})
    # A report far away would widen the view to hold it: this one is near.
    show(watched, demo_url, "explore", "&seed=7")
    # The map fills a laptop without bars.
    assert watched.evaluate("demo_base.getBounds().pad(0.02).contains(demo_map.getBounds())")
    # The name of a pin stays on the map.
    watched.get_by_role("tab", name="Ask again").click()
    settle(watched)
    frame = watched.locator(".folium-map").bounding_box()
    assert frame is not None
    for x in (0.02, 0.98):
        click_map(watched, x, 0.5)
        name = watched.locator(".pin-label-truth").bounding_box()
        assert name is not None
        assert frame["x"] <= name["x"]
        assert name["x"] + name["width"] <= frame["x"] + frame["width"]
    watched.get_by_role("tab", name="Explore").click()
    settle(watched)
    # 1440 x 900 and 640 x 512 at a zoom of 200 %.
    for width, height in ((720, 450), (320, 256)):
        watched.set_viewport_size({"width": width, "height": height})
        for part in ("#panel", "#mapframe"):
            box = watched.locator(part).bounding_box()
            assert box is not None
            assert box["height"] >= 150 + 70 * (width > 320), part
        assert watched.evaluate("document.documentElement.scrollWidth <= innerWidth")
    watched.locator("#redraw").scroll_into_view_if_needed()
    expect(watched.locator("#redraw")).to_be_in_viewport()
