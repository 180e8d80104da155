"""What one takes away from the demo: code that runs, a picture, a link."""

import io
import json
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import httpx
import pytest
from PIL import Image
from playwright.sync_api import Page, Route, expect

from geoind.maps import REPORT, TRUTH
from tests.webdemo.browser import TABS, click_map, sent, set_slider, settle, show


@pytest.mark.parametrize("tab", TABS)
def test_a_link_repeats_the_run_and_the_code_for_a_view_runs_without_a_location_unless_asked(
    watched: Page, demo_url: str, tab: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show(watched, demo_url, tab, "&budget=5&radius=150&answer=same" if tab == "again" else "&radius=150")
    where = "#four" if tab == "compare" else "#lead"
    if tab == "again":
        watched.get_by_role("button", name="Ask once").click()
        expect(watched.locator("#answers")).to_have_text("1")
    if tab == "compare":
        watched.get_by_label("where your reports fall").check()
        expect(watched.locator("#four svg")).to_have_count(4)
    settle(watched)
    shown, address = watched.locator(where).inner_html(), watched.evaluate("location.href")
    assert re.search(r"seed=\d+", address)
    watched.goto("about:blank")
    watched.goto(address)
    if tab == "again":
        expect(watched.get_by_label("the same report")).to_be_checked()
        watched.get_by_role("button", name="Ask once").click()
        expect(watched.locator("#answers")).to_have_text("1")
    expect(watched.locator("#four svg")).to_have_count(4 if tab == "compare" else 0)
    settle(watched)
    assert watched.locator(where).inner_html() == shown
    watched.get_by_text("The code for this view").click()
    if tab != "compare":
        set_slider(watched, "radius", 400)
        set_slider(watched, "radius", 150)
        settle(watched)
    if tab == "again":
        watched.get_by_role("button", name="Start over").click()
        expect(watched.locator("#answers")).to_have_text("0")
        watched.get_by_role("button", name="Ask once").click()
        expect(watched.locator("#answers")).to_have_text("1")
    if tab == "explore":
        watched.get_by_role("button", name="Another place").click()
        settle(watched)
    python, curl = (watched.locator(f"#code-{name}").inner_text() for name in ("python", "curl"))
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    with redirect_stdout(said):
        exec(compile(python, tab, "exec"), {})
    assert any(letter.isdigit() for letter in said.getvalue())
    if tab != "compare":
        assert "radius=150" in python
    command = shlex.split(curl.replace("\\\n", " "))
    address, body = command[2], json.loads(command[command.index("-d") + 1])
    assert httpx.post(address, json=body, trust_env=False, timeout=120).status_code == 200
    assert "seed" not in body
    home = watched.locator("body").get_attribute("data-home")
    assert home is not None
    if tab == "explore":
        assert f"{body['lat']},{body['lon']}" == home
        watched.get_by_label("include my place and my walk in link and code").check()
        body = json.loads(shlex.split(watched.locator("#code-curl").inner_text().replace("\\\n", " "))[-1])
        assert f"{body['lat']},{body['lon']}" != home
        assert str(body["lat"]) in watched.locator("#code-python").inner_text()


def colours_of_picture(page: Page, path: Path, name: str) -> tuple[int, dict[object, int]]:
    """Return the width of the picture to download, and how often each colour is in it."""
    with page.expect_download() as started:
        page.get_by_role("button", name="Download a picture").click()
    started.value.save_as(path)
    assert started.value.suggested_filename == name
    picture = Image.open(path).convert("RGB")
    return picture.width, {rgb: count for count, rgb in picture.getcolors(maxcolors=1 << 24) or []}


def test_the_picture_shows_the_view_and_whose_data_it_is(watched: Page, demo_url: str, tmp_path: Path) -> None:
    show(watched, demo_url, "explore", "&show-belief=1")
    expect(watched.locator("path.contour")).to_have_count(2)
    width, colours = colours_of_picture(watched, tmp_path / "map.png", "geoind-explore.png")
    frame = watched.locator("#mapframe").bounding_box()
    assert frame is not None
    assert width == 2 * int(frame["width"])
    truth, report = (tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5)) for colour in (TRUTH, REPORT))
    assert colours.get(truth, 0) > 300
    assert len(colours) > 50
    # Rings and outlines are there as well: the last layer is drawn by other means than the first.
    assert colours.get((0x4D, 0x56, 0x6B), 0) > 300
    watched.get_by_role("tab", name="Compare").click()
    expect(watched.locator("#four svg")).to_have_count(4)
    _, colours = colours_of_picture(watched, tmp_path / "four.png", "geoind-compare.png")
    # You and this time's report, on each of the small maps.
    assert colours.get(truth, 0) > 300
    assert colours.get(report, 0) > 300


WRITTEN = """
window.written = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
  written.push(text);
  return fillText.call(this, text, ...at);
};
"""


def test_each_tab_has_a_picture_with_its_own_caption(watched: Page, demo_url: str) -> None:
    watched.add_init_script(WRITTEN)
    show(watched, demo_url, "near")
    for tab in ("near", "again", "trace", "compare"):
        watched.get_by_role("tab", name=TABS[tab]).click()
        if tab == "again":
            watched.get_by_role("button", name="Ask once").click()
            expect(watched.locator("#finding")).to_contain_text("1 answer: their average is")
        if tab == "compare":
            expect(watched.locator("#four svg")).to_have_count(4)
        settle(watched)
        with watched.expect_download() as started:
            watched.evaluate("written = []")
            watched.get_by_role("button", name="Download a picture").click()
        assert started.value.suggested_filename == f"geoind-{tab}.png"
        caption = " ".join(watched.evaluate("written")).replace("\xa0", " ")
        title = watched.locator("#lead h2:visible").inner_text()
        finding = watched.locator("#finding").inner_text().replace("\xa0", " ")
        assert f"{title}. " in caption
        assert finding in caption
        assert ("a report changes an observer's odds" in caption) == (tab != "compare")


def test_there_is_no_picture_of_maps_that_are_not_solved(watched: Page, demo_url: str) -> None:
    held: list[Route] = []
    watched.route("**/api/mechanisms", lambda route: held.append(route))
    show(watched, demo_url, "near")
    watched.get_by_role("tab", name=TABS["compare"]).click()
    watched.get_by_role("button", name="Download a picture").click()
    expect(watched.get_by_text("The four maps are not solved yet.")).to_be_visible()
    for route in held:
        route.continue_()
    expect(watched.locator("#four svg")).to_have_count(4)


def test_a_place_of_your_own_takes_the_seed_out_of_the_link(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    assert "seed=" in watched.url
    click_map(watched, 0.4, 0.6)
    settle(watched)
    assert "seed=" not in watched.url
    watched.get_by_label("include my place and my walk in link and code").check()
    assert "seed=" in watched.url


def test_no_name_hides_you_on_the_map_or_in_its_picture(watched: Page, demo_url: str, tmp_path: Path) -> None:
    def just_above(route: Route) -> None:
        asked, answer = sent(route.request), route.fetch()
        content = answer.json()
        content["report"] |= {"lat": asked["lat"] + 0.0002, "lon": asked["lon"]}
        route.fulfill(response=answer, json=content)

    watched.route("**/api/explore", just_above)
    show(watched, demo_url, "explore")
    # The name of a report that was drawn before fades out.
    expect(watched.locator(".leaflet-tooltip >> text=report")).to_have_count(1)
    name, pin = (
        watched.locator(which).bounding_box() for which in (".leaflet-tooltip >> text=report", ".pin-truth")
    )
    assert name is not None
    assert pin is not None
    assert name["y"] + name["height"] < pin["y"] + pin["height"] / 2
    _, colours = colours_of_picture(watched, tmp_path / "map.png", "geoind-explore.png")
    assert colours.get(tuple(bytes.fromhex(TRUTH[1:])), 0) > 800


def test_a_link_with_the_place_keeps_the_whole_view(watched: Page, demo_url: str) -> None:
    show(watched, demo_url, "explore")
    watched.locator(".pin-there").focus()
    watched.keyboard.press("Shift+ArrowDown")
    settle(watched)
    watched.get_by_label("include my place and my walk in link and code").check()
    kept = ("#report-error", "#odds-before", "#odds-after", "#odds-note")
    shown = [watched.locator(name).inner_text() for name in kept]
    address = watched.evaluate("location.href")
    watched.goto("about:blank")
    watched.goto(address)
    for name, text in zip(kept, shown, strict=True):
        expect(watched.locator(name)).to_have_text(text)
