"""The story in a real browser, opened from a disk: six cards, free play and a game for a class."""

import math
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.webdemo.browser import VIEWS, number, set_slider, turn_to
from webdemo.requests import Privacy
from webdemo.story import story_files

ARTEFACTS = Path(__file__).parents[2] / "artefacts"

SCREENS = {"phone": (390, 844), "tablet": (820, 1180), "laptop": (1280, 720), "wide": (1920, 1080)}

# What is wider than the window, and texts that are wider than their box.
OVERFLOW = """
[...document.querySelectorAll('body, button:not(.handle), label, output, td, th, figcaption, .tabs')].filter(
    e => e.offsetParent !== null && e.clientWidth && e.scrollWidth > e.clientWidth + 1
).map(e => e.outerHTML.slice(0, 200))
"""


def drag(page: Page, pin: str, x: float, y: float) -> None:
    box = page.locator(pin).bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] + x, middle[1] + y, steps=4)
    page.mouse.up()


def angle(page: Page, line: str, end: str) -> float:
    """Return the direction of a line's end from the hub of the gauge, to the right of straight up."""
    hub, tip = page.locator("#gauge .hub"), page.locator(line)
    x, y = (float(hub.get_attribute(f"c{axis}") or "nan") for axis in "xy")
    to_x, to_y = (float(tip.get_attribute(f"{axis}{end}") or "nan") for axis in "xy")
    return math.atan2(to_x - x, y - to_y)


def me(page: Page) -> tuple[float, float]:
    at = page.evaluate("scene.state.me")
    return at["x"], at["y"]


# The cards


def test_the_story_begins_with_what_geo_indistinguishability_is(story: Page) -> None:
    expect(story.locator("#definition")).to_contain_text(
        "Geo-indistinguishability: a report of yours can hardly change"
    )
    expect(story.locator("#count")).to_have_text("1 of 6")
    expect(story.locator(".foot")).to_contain_text("drawn by the module for devices, exactly")
    expect(story.locator(".foot")).to_contain_text("OpenStreetMap contributors")


def test_six_cards_of_one_sentence_lead_to_free_play_and_back(story: Page) -> None:
    titles = []
    for number_ in range(1, 7):
        expect(story.locator("#count")).to_have_text(f"{number_} of 6")
        titles.append(story.locator("#title").inner_text())
        sentence = story.locator("#sentence").inner_text()
        assert re.fullmatch(r"[^.]+\.", sentence), sentence
        assert story.locator("#drag").inner_text()
        story.locator("#next").click()
    assert len(set(titles)) == 6
    expect(story.get_by_role("tab", name="Free play")).to_have_attribute("aria-selected", "true")
    story.go_back()
    expect(story.locator("#count")).to_have_text("6 of 6")
    story.locator("#back").click()
    expect(story.locator("#count")).to_have_text("5 of 6")
    story.evaluate("() => { location.hash = 'card=99&part=%%'; }")
    expect(story.locator("#count")).to_have_text("1 of 6")
    assert "60." not in story.url


def test_without_noise_one_report_reveals_the_building(story: Page) -> None:
    before = me(story)
    drag(story, "#yours .handle-you", 60, 40)
    after = me(story)
    assert after[0] > before[0]
    assert after[1] < before[1]
    expect(story.locator("#finding")).to_contain_text("knows your building")
    story.locator("#yours .handle-you").press("ArrowUp")
    assert me(story)[1] > after[1]


def test_a_report_hides_you_among_more_buildings_as_the_dial_turns(story: Page) -> None:
    turn_to(story, "card=2")
    counts, errors = [], []
    for stop, name in enumerate(("street", "block", "neighbourhood", "town")):
        set_slider(story, "dial", stop)
        expect(story.locator("#stops .chosen")).to_have_text(name)
        assert name in (story.locator("#dial").get_attribute("aria-valuetext") or "")
        found = re.search(
            r"off by [\d.]+\sk?m.*: (?:this|one of these (\d+))", story.locator("#finding").inner_text()
        )
        assert found is not None
        counts.append(int(found[1] or 1))
        errors.append(story.evaluate("posterior.apart(scene.state.me, scene.report())"))
    assert counts == sorted(counts)
    # The same dice: noise grows as the radius does.
    assert errors[3] / errors[1] == pytest.approx(4, rel=0.02)
    before = story.evaluate("scene.report()")
    story.locator("#redraw").click()
    assert story.evaluate("scene.report()") != before


def test_here_or_there_is_the_definition(story: Page) -> None:
    turn_to(story, "card=3")
    for move in ((90, -60), (-200, 40), (30, 90)):
        drag(story, "#yours .handle-there", *move)
        change, limit, far = story.evaluate(
            "(() => { const {me, there} = scene.state, e = scene.epsilon();"
            " return [posterior.oddsChange(me, there, [scene.report()], scene.noiseEpsilon()),"
            " posterior.oddsLimit(me, there, 1, e),"
            " posterior.apart(me, there)]; })()"
        )
        assert limit == pytest.approx(math.exp(math.log(4) / 100 * far))
        left, right = (angle(story, f"#gauge .stop >> nth={side}", "1") for side in (0, 1))
        needle = angle(story, "#gauge .needle", "2")
        assert left <= needle <= right == pytest.approx(-left, abs=1e-5)
        # A fixed scale to the end at 75 degrees, a factor of 1,000: the stops follow e^(epsilon d).
        assert right == pytest.approx(math.radians(25 * math.log10(limit)), abs=1e-5)
        assert needle == pytest.approx(math.radians(25 * math.log10(change)), abs=1e-5)
        expect(story.locator("#finding")).to_contain_text("no report can make it more than")


def test_near_me_finds_coffee_and_says_what_it_costs(story: Page) -> None:
    turn_to(story, "card=4")
    expect(story.locator("#finding")).to_contain_text("times the area")
    for radius in (50, 300):
        set_slider(story, "interest", radius)
        kept = story.evaluate(
            "(radius) => TOWN.places.kind.filter((kind, i) => kind === 'food' && posterior.apart(scene.state.me, "
            "{x: TOWN.places.xy[2 * i] / 10, y: TOWN.places.xy[2 * i + 1] / 10}) <= radius).length",
            radius,
        )
        found = re.search(
            r"keeps the (\d+) near you and misses (none|\d+)", story.locator("#finding").inner_text()
        )
        assert found is not None
        assert int(found[1]) + (0 if found[2] == "none" else int(found[2])) == kept
        expect(story.locator("#interest-out")).to_have_text(f"{radius} m")


# Two maps


def test_asked_again_and_again_one_building_glows(story: Page) -> None:
    turn_to(story, "card=5")
    expect(story.locator("#theirs")).to_be_visible()
    expect(story.locator("#theirs .handle")).to_have_count(0)
    story.locator("#ask-once").click()
    expect(story.locator("#finding")).to_have_text(
        re.compile(r"^1 report\. 90\s% sure: one of these \d+ buildings\.$")
    )
    story.locator("#play").click()
    expect(story.locator("#finding")).to_contain_text("and it is yours")
    block = number(story.locator("#finding"))
    assert block > 10
    expect(story.locator("#play")).to_be_disabled()
    set_slider(story, "dial", 0)
    expect(story.locator("#finding")).to_contain_text("Press Play")
    story.locator("#play").click()
    expect(story.locator("#finding")).to_contain_text("Found after")
    assert number(story.locator("#finding")) < block


def test_an_observer_who_is_sure_of_the_wrong_building_has_not_found_you(story: Page) -> None:
    turn_to(story, "card=5")
    story.evaluate("() => { scene.state.me = {...scene.state.me, building: scene.state.me.building + 1}; }")
    story.locator("#play").click()
    expect(story.locator("#finding")).to_have_text("400 reports. 90 % sure: this one building.")


def test_playing_takes_its_time_unless_motion_is_unwanted(story: Page) -> None:
    story.emulate_media(reduced_motion="no-preference")
    try:
        turn_to(story, "card=5")
        story.locator("#play").click()
        expect(story.locator("html")).to_have_attribute("data-playing", "yes")
        expect(story.locator("#play")).to_have_text("Pause")
        story.locator("#play").click()
        expect(story.locator("html")).to_have_attribute("data-playing", "no")
        assert "Found" not in story.locator("#finding").inner_text()
    finally:
        story.emulate_media(reduced_motion="reduce")


@pytest.mark.parametrize(
    ("remedy", "verdict"),
    [
        (
            "the same report",
            r"Asked 100 times, always the same answer, paid once\. 90\s% sure: one of these \d+ buildings\.",
        ),
        (
            "within a budget",
            r"Refused: the budget of 3 reports is spent.* 90\s% sure: one of these \d+ buildings\.",
        ),
        ("a session", r"Asked 100 times, \d fresh reports?\. 90\s% sure: one of these \d+ buildings\."),
        ("fresh noise each time", r"Found after \d+ reports"),
    ],
)
def test_the_remedies_of_the_last_card(story: Page, remedy: str, verdict: str) -> None:
    turn_to(story, "card=6")
    story.locator("#remedy-box").get_by_label(remedy).check()
    if "budget" in remedy:
        set_slider(story, "budget", 3)
    story.locator("#play").click()
    expect(story.locator("#finding")).to_have_text(re.compile(verdict))


def test_free_play_has_everything_at_once(story: Page) -> None:
    turn_to(story, "part=free")
    story.locator("#remedy-box").get_by_label("fresh noise each time").check()
    for _ in range(3):
        story.locator("#ask-once").click()
    expect(story.locator("#gauge")).to_be_visible()
    drag(story, "#yours .handle-there", 50, 50)
    limit = story.evaluate("posterior.oddsLimit(scene.state.me, scene.state.there, 3, scene.epsilon())")
    label = story.locator("#gauge svg").get_attribute("aria-label") or ""
    assert label.endswith(f"by more than {story.evaluate('(limit) => times(limit)', limit)}.")
    box = story.locator("#yours canvas").bounding_box()
    assert box is not None
    before = me(story)
    story.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.8)
    assert me(story)[1] < before[1]
    expect(story.locator("#finding")).to_contain_text("Press Play")


# A class


def test_free_play_counts_the_tests_of_a_session(story: Page) -> None:
    turn_to(story, "part=free")
    story.locator("#remedy-box").get_by_label("a session").check()
    story.locator("#ask-once").click()
    # One payment for the report, one for the tests whether somebody has left.
    stop = story.evaluate("times(posterior.oddsLimit(scene.state.me, scene.state.there, 2, scene.epsilon()))")
    label = re.compile(rf"by more than {re.escape(stop)}\.$")
    expect(story.locator("#gauge svg")).to_have_attribute("aria-label", label)
    needle = story.locator("#gauge .needle")
    once = needle.get_attribute("x2")
    story.locator("#ask-once").click()
    # The same report again: that nobody has left moves the odds a little.
    expect(story.locator("#finding")).to_contain_text("Asked 2 times, 1 fresh report.")
    assert needle.get_attribute("x2") != once


def test_what_a_button_brings_about_is_read_on_a_phone(story: Page) -> None:
    story.set_viewport_size({"width": 360, "height": 740})
    for view, button in {
        "card=2": "#redraw",
        "card=5": "#play",
        "card=6": "#play",
        "part=guess": "#reveal",
    }.items():
        turn_to(story, view)
        story.locator(button).click()
        expect(story.locator("html")).not_to_have_attribute("data-playing", "yes")
        # The end of the sentence is in sight: neither below the window nor behind Back and Next.
        assert story.locator("#finding").evaluate(
            "element => { const box = element.getBoundingClientRect();"
            " return document.elementFromPoint(box.left + 20, box.bottom - 4) === element; }"
        ), view
    turn_to(story, "card=4")
    # Nothing shows below Back and Next.
    assert story.evaluate("innerHeight - steps.getBoundingClientRect().bottom") < 2


def test_a_class_guesses_against_the_posterior(story: Page) -> None:
    turn_to(story, "part=guess")
    expect(story.locator("#yours .handle-you")).to_be_hidden()
    box = story.locator("#yours canvas").bounding_box()
    assert box is not None
    for turn in (1, 2):
        story.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.4)
        expect(story.locator("#yours .handle-guess")).to_be_visible()
        drag(story, "#yours .handle-guess", 20, 20)
        story.locator("#yours .handle-guess").press("Shift+ArrowDown")
        story.locator("#more").click()
        story.locator("#reveal").click()
        expect(story.locator("#finding")).to_contain_text("the observer by")
        expect(story.locator("#outcomes-caption")).to_have_text(f"{turn} round{'s' if turn > 1 else ''}")
        expect(story.locator("#yours .handle-you")).to_have_text("I was here")
        story.locator("#hide-again").click()
        expect(story.locator("#yours .handle-you")).to_be_hidden()
        expect(story.locator("#legend")).to_be_hidden()
    story.get_by_label("show what the observer believes").check()
    expect(story.locator("#legend")).to_be_visible()


# The page


def test_a_page_that_was_opened_from_a_disk_cannot_send_anything(local: Page) -> None:
    policy = local.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content") or ""
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert (
        local.evaluate("performance.getEntriesByType('resource').filter(e => !e.name.startsWith('file:')).length")
        == 0
    )


def test_every_view_fits_every_screen_in_both_themes(story: Page) -> None:
    ARTEFACTS.mkdir(exist_ok=True)
    for view in VIEWS:
        turn_to(story, view)
        if view == "part=day":
            story.locator("#example-day").click()
        if view in {"card=5", "card=6"}:
            story.locator("#play").click()
        for screen, (width, height) in SCREENS.items():
            story.set_viewport_size({"width": width, "height": height})
            assert story.evaluate(OVERFLOW) == [], (view, screen)
            if screen in {"tablet", "laptop"}:
                continue
            story.locator("#theme").click()
            theme = story.locator("html").get_attribute("data-theme")
            story.screenshot(path=ARTEFACTS / f"story-{view.replace('=', '-')}-{screen}-{theme}.png")


def test_a_belief_is_drawn_darker_where_it_is_larger_in_both_themes(story: Page) -> None:
    """The ramp runs from a building's own colour to the colour of belief, without a turn."""
    for _ in range(2):
        ramp = story.evaluate(
            "[1e-4, 1e-3, 1e-2, 0.1, 0.5, 1].map(share => palette().belief(share).match(/\\d+/g).map(Number))"
        )
        steps = [math.dist(colour, ramp[0]) for colour in ramp]
        assert steps == sorted(set(steps))
        story.locator("#theme").click()


def test_tabs_follow_the_arrow_keys_and_controls_have_names(story: Page) -> None:
    story.get_by_role("tab", name="Story").focus()
    for name in ("Free play", "Your day", "Guess", "Story"):
        story.keyboard.press("ArrowRight")
        expect(story.get_by_role("tab", name=name)).to_be_focused()
        expect(story.get_by_role("tabpanel")).to_have_count(1)
    nameless = story.evaluate(
        "[...document.querySelectorAll('input, select, button')].filter(e => !(e.labels?.length || "
        "e.getAttribute('aria-label') || e.textContent.trim())).map(e => e.outerHTML)"
    )
    assert nameless == []


# The server has the same files


def test_the_server_has_the_story_and_links_to_the_tools(watched: Page, demo_url: str) -> None:
    watched.goto(f"{demo_url}story/")
    expect(watched.locator("#count")).to_have_text("1 of 6")
    watched.get_by_role("link", name="Instruments").click()
    expect(watched.get_by_role("tab", name="Explore")).to_have_attribute("aria-selected", "true")
    watched.get_by_role("link", name="The story").click()
    expect(watched.locator("#count")).to_have_text("1 of 6")


def test_server_and_folder_give_the_same_files(static_folder: Path, demo_url: str, demo_app: Any) -> None:
    folder = {path.name: path.read_bytes() for path in static_folder.iterdir()}
    with httpx.Client(base_url=f"{demo_url}story/", trust_env=False, timeout=120) as client:
        for name, content in folder.items():
            answer = client.get(name)
            assert answer.status_code == 200
            assert answer.content == content or name == "index.html"
        assert client.get("secret.py").status_code == 400
    assert b"{{" not in folder["index.html"]
    assert b"Instruments" not in folder["index.html"]
    assert b"Instruments" in story_files(demo_app.state.town, with_server=True)["index.html"]


def test_the_story_and_the_tools_have_the_same_error(story: Page) -> None:
    turn_to(story, "card=2")
    for stop, radius in enumerate((25, 50, 100, 200)):
        set_slider(story, "dial", stop)
        found = Privacy(factor=4, radius=radius).promise.mean_error
        # The number and its unit are on one line.
        expect(story.locator("#promise")).to_have_text(re.compile(rf"off by {found:.0f}\u00a0m on average"))


def test_the_name_of_a_pin_stays_on_a_narrow_map(story: Page) -> None:
    story.set_viewport_size({"width": 360, "height": 740})
    ground, pin = story.locator("#yours .ground"), story.locator("#yours .handle-you")
    for x, y in ((-5000, 0), (5000, 0)):
        story.evaluate("([x, y]) => { scene.moveMe({x, y}); cards.open(cards.LIST[0]); }", [x, y])
        box, name = ground.bounding_box(), pin.bounding_box()
        assert box is not None
        assert name is not None
        assert box["x"] <= name["x"]
        assert name["x"] + name["width"] <= box["x"] + box["width"]
