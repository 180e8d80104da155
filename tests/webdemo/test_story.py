"""The story in a real browser, opened from a disk: six cards, free play and a game for a class."""

import math
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, Route, expect

from tests.webdemo.browser import VIEWS, number, set_slider, turn_to
from webdemo.requests import Privacy
from webdemo.story import story_files

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


def test_six_cards_of_200_words_lead_to_free_play_and_back(story: Page) -> None:
    expect(story.locator(".foot")).to_contain_text("drawn by the module for devices, exactly")
    expect(story.locator(".foot")).to_contain_text("OpenStreetMap contributors")
    titles, words = [], 0
    for number_ in range(1, 7):
        expect(story.locator("#count")).to_have_text(f"{number_} of 6")
        title = story.locator("#title").inner_text()
        titles.append(title)
        # The title of the page, and the heading has the focus, so that a screen reader reads the new card.
        assert story.title() == f"{title} · geoind"
        if number_ > 1:
            expect(story.locator("#title")).to_be_focused()
        words += len(story.locator("#part-card").inner_text().split()) - 3
        story.locator("#next").click()
    assert titles[2:] == ["The promise", "Ask again", "What helps", "Coffee nearby"]
    assert 120 <= words <= 200
    expect(story.get_by_role("tab", name="Free play")).to_have_attribute("aria-selected", "true")
    story.go_back()
    expect(story.locator("#count")).to_have_text("6 of 6")
    story.locator("#back").click()
    expect(story.locator("#count")).to_have_text("5 of 6")
    story.evaluate("() => { location.hash = 'card=99&part=%%&dial=7&seed=-1&remedy=<b>'; }")
    expect(story.locator("#count")).to_have_text("1 of 6")
    assert story.locator("#dial").input_value() == "2"
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
    for stop, name in enumerate(("25 m", "50 m", "100 m", "200 m")):
        set_slider(story, "dial", stop)
        expect(story.locator("#stops .chosen")).to_have_text(name)
        expect(story.locator("#dial")).to_have_attribute("aria-valuetext", name)
        # The same error as in the tools; the number and its unit are on one line.
        mean = Privacy(factor=4, radius=int(name.split()[0])).promise.mean_error
        expect(story.locator("#promise")).to_have_text(re.compile(rf"off by {mean:.0f}\u00a0m on average"))
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
    expect(story.locator("#definition")).to_contain_text("P(report | here) ≤ eε d · P(report | there)")
    expect(story.locator("#definition cite")).to_have_text("Andrés et al., CCS 2013")
    drag(story, "#yours .handle-there", 4000, -4000)
    west, south, east, north = story.evaluate("TownMap.bounds")
    there = story.evaluate("scene.state.there")
    assert west <= there["x"] <= east
    assert south <= there["y"] <= north


def test_near_me_finds_coffee_and_says_what_it_costs(story: Page) -> None:
    turn_to(story, "card=6")
    expect(story.locator("#finding")).to_contain_text("times the area")
    for radius in (50, 300):
        set_slider(story, "interest", radius)
        kept = story.evaluate(
            "(radius) => pointsOf(TOWN.food).filter((at) => posterior.apart(scene.state.me, at) <= radius).length",
            radius,
        )
        found = re.search(
            r"keeps the (\d+) near you and misses (none|\d+)", story.locator("#finding").inner_text()
        )
        assert found is not None
        assert int(found[1]) + (0 if found[2] == "none" else int(found[2])) == kept
        expect(story.locator("#interest-out")).to_have_text(f"{radius} m")


# Two maps


def test_asked_again_and_again_one_building_is_left_and_many_runs_say_what_is_typical(story: Page) -> None:
    turn_to(story, "card=4")
    expect(story.locator("#theirs")).to_be_visible()
    expect(story.locator("#theirs .handle")).to_have_count(0)
    story.get_by_label("Your guess: reports until found").fill("12")
    story.locator("#ask-once").click()
    expect(story.locator("#finding")).to_have_text(
        re.compile(r"^1 report\. 90\s% sure: one of these \d+ buildings\.$")
    )
    story.locator("#play").click()
    expect(story.locator("#finding")).to_contain_text("and it is yours")
    block = number(story.locator("#finding"))
    assert block > 3
    # The button that was pressed keeps the focus, and plays another run.
    expect(story.locator("#play")).to_be_focused()
    expect(story.locator("#play")).to_have_text("Play again")
    expect(story.locator("#ask-once")).to_have_attribute("aria-disabled", "true")
    note = story.locator("#chart-note")
    expect(note).to_have_text(
        re.compile(r"^You guessed 12\. 200 runs from here: typically \d+, nine in ten between \d+ and \d+\.$")
    )
    expect(story.locator("#chart .run")).to_have_count(1)
    expect(story.locator("#chart .bet")).to_have_count(1)
    set_slider(story, "dial", 0)
    expect(story.locator("#finding")).to_contain_text("Press Play")
    expect(story.locator("#chart-box")).to_be_hidden()
    story.locator("#play").click()
    expect(story.locator("#finding")).to_contain_text("Found after")
    assert number(story.locator("#finding")) < block


def test_a_run_is_announced_once_and_its_link_repeats_it(story: Page) -> None:
    story.emulate_media(reduced_motion="no-preference")
    try:
        turn_to(story, "card=4&dial=0&seed=7")
        assert story.locator("#dial").input_value() == "0"
        story.evaluate(
            """() => {
                window.heard = [];
                new MutationObserver(() => heard.push(announce.textContent)).observe(announce, {childList: true});
            }"""
        )
        story.locator("#play").click()
        expect(story.locator("#announce")).to_contain_text("Found after")
        assert story.evaluate("heard.filter(text => /report/.test(text)).length") == 1
    finally:
        story.emulate_media(reduced_motion="reduce")
    first = story.locator("#finding").inner_text()
    story.locator("#link").click()
    expect(story.locator("#link-note")).to_contain_text("repeats the run")
    assert "seed=7" in story.url
    assert "dial=0" in story.url
    address = story.url
    story.goto("about:blank")
    story.goto(address)
    story.locator("#play").click()
    expect(story.locator("#finding")).to_have_text(first)
    story.locator("#play").click()
    expect(story.locator("html")).to_have_attribute("data-playing", "no")
    assert story.evaluate("scene.state.seed") != 7


def test_an_observer_who_is_sure_of_the_wrong_building_has_not_found_you(story: Page) -> None:
    turn_to(story, "card=4&dial=0")
    story.evaluate("() => { scene.state.me = {...scene.state.me, building: scene.state.me.building + 1}; }")
    for _ in range(40):
        story.locator("#ask-once").click()
    expect(story.locator("#finding")).to_have_text("40 reports. 90 % sure: this one building.")
    expect(story.locator("#finding")).to_have_class("finding found")


def test_playing_takes_its_time_unless_motion_is_unwanted(story: Page) -> None:
    story.emulate_media(reduced_motion="no-preference")
    try:
        # With much noise a run has many reports: it does not end before the pause.
        turn_to(story, "card=4&dial=3")
        story.locator("#play").click()
        expect(story.locator("html")).to_have_attribute("data-playing", "yes")
        expect(story.locator("#play")).to_have_text("Pause")
        story.locator("#play").click()
        expect(story.locator("html")).to_have_attribute("data-playing", "no")
        assert "Found" not in story.locator("#finding").inner_text()
    finally:
        story.emulate_media(reduced_motion="reduce")


REMEDIES = [
    (
        "the same report",
        r"Asked 35,040 times, every 15 minutes of a year, always the same answer, paid once\."
        r" 90\s% sure: one of these \d+ buildings\.",
        "safe",
    ),
    (
        "within a budget",
        r"Refused: the budget of 3 reports is spent\. 90\s% sure: one of these \d+ buildings\.",
        "safe|risky",
    ),
    ("fresh noise each time", r"Found after \d+ reports", "found"),
]


def test_the_remedies_of_a_card(story: Page) -> None:
    turn_to(story, "card=5")
    for remedy, verdict, colour in REMEDIES:
        story.locator("#remedy-box").get_by_label(remedy).check()
        if "budget" in remedy:
            set_slider(story, "budget", 3)
        story.locator("#play").click()
        expect(story.locator("#finding")).to_have_text(re.compile(verdict))
        expect(story.locator("#finding")).to_have_class(re.compile(f"^finding ({colour})$"))


def test_a_session_says_what_it_pays_and_how_the_belief_shrinks(story: Page) -> None:
    turn_to(story, "card=5&remedy=session&seed=1")
    story.locator("#play").click()
    said = story.locator("#finding")
    expect(said).to_have_text(
        re.compile(r"Asked 35,040 times.*: (\d) fresh reports?, paid like \d+ reports with the tests\. 90\s% sure")
    )
    fresh, paid = (int(found) for found in re.findall(r"(\d+) fresh.* like (\d+) reports", said.inner_text())[0])
    # A report, and twice as much for its tests.
    assert paid == 3 * fresh
    first, last = (
        int(found)
        for found in re.findall(r"(\d+) at first, (\d+) after", story.locator("#chart-note").inner_text())[0]
    )
    assert 1 <= last <= first + 5
    expect(said).to_have_class("finding safe" if 2 * last >= first else re.compile("risky|found"))
    points = story.locator("#chart .left").get_attribute("points") or ""
    assert len(points.split()) > 20


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
    # One payment for the report, two for the tests whether you have left.
    stop = story.evaluate("times(posterior.oddsLimit(scene.state.me, scene.state.there, 3, scene.epsilon()))")
    label = re.compile(rf"by more than {re.escape(stop)}\.$")
    expect(story.locator("#gauge svg")).to_have_attribute("aria-label", label)
    story.locator("#ask-once").click()
    expect(story.locator("#finding")).to_contain_text("Asked 2 times: 1 fresh report, paid like 3 reports")


def test_words_and_finding_are_seen_without_scrolling(story: Page) -> None:
    views = {"card=2": "#redraw", "card=3": "", "card=4": "#play", "part=guess": "#add-guess"}
    # A phone, and zooms of 200 and 400 %.
    for width, height in ((360, 740), (640, 360), (320, 256)):
        story.set_viewport_size({"width": width, "height": height})
        for view, button in views.items():
            turn_to(story, view)
            if button:
                story.locator(button).click()
            expect(story.locator("html")).not_to_have_attribute("data-playing", "yes")
            if width == 320 and view == "card=3":
                continue  # the definition is longer than this window
            panel = "[role=tabpanel]:not([hidden])"
            for name in (f"{panel} h2", f"{panel} .sentence", "#finding"):
                # Neither outside of the window nor behind a bar.
                assert story.locator(name).evaluate(
                    "element => { const box = element.getBoundingClientRect();"
                    " return element.contains(document.elementFromPoint(box.left + 20, box.bottom - 4)); }"
                ), (width, view, name)
        # The bar is one line, or out of the way.
        assert story.locator("header.bar").evaluate("bar => bar.getBoundingClientRect().height") < 50


def test_a_class_guesses_against_the_posterior(story: Page) -> None:
    turn_to(story, "part=guess")
    expect(story.locator("#yours .handle-you")).to_be_hidden()
    box = story.locator("#yours canvas").bounding_box()
    assert box is not None
    # Without a guess nothing is revealed.
    expect(story.locator("#reveal")).to_have_attribute("aria-disabled", "true")
    story.locator("#reveal").click(force=True)
    expect(story.locator("#outcomes")).to_be_hidden()
    for turn in (1, 2):
        for x, y in ((0.5, 0.4), (0.45, 0.6), (0.55, 0.5))[: 3 if turn == 1 else 1]:
            story.mouse.click(box["x"] + box["width"] * x, box["y"] + box["height"] * y)
        expect(story.locator("#yours .handle-guess")).to_have_text("guess 3" if turn == 1 else "your guess")
        story.locator("#add-guess").click()
        expect(story.locator("#yours .handle-guess")).to_be_focused()
        drag(story, "#yours .handle-guess", 20, 20)
        story.locator("#yours .handle-guess").press("Shift+ArrowDown")
        story.locator("#more").click()
        story.locator("#reveal").click()
        expect(story.locator("#finding")).to_contain_text(f"The best of {4 if turn == 1 else 2} guesses is off by")
        expect(story.locator("#outcomes-caption")).to_have_text(f"{turn} round{'s' if turn > 1 else ''}")
        expect(story.locator("#yours .handle-you")).to_have_text("I was here")
        story.locator("#hide-again").click()
        expect(story.locator("#yours .handle-you")).to_be_hidden()
        expect(story.locator("#legend")).to_be_hidden()
    story.get_by_label("show what the observer believes").check()
    expect(story.locator("#legend")).to_be_visible()


def test_no_name_covers_another(story: Page) -> None:
    turn_to(story, "part=guess")
    story.evaluate(
        """() => {
            const at = {x: 0, y: 0}, pin = (text) => ({at, text, move: () => {}});
            scene.yours.show({pins: {guess: pin("your guess"), you: pin("I was here")}});
        }"""
    )
    first, second = (story.locator(f"#yours .handle-{name}").bounding_box() for name in ("guess", "you"))
    assert first is not None
    assert second is not None
    assert first["y"] + first["height"] <= second["y"]


def test_the_wheel_brings_the_town_closer(story: Page) -> None:
    turn_to(story, "card=2")
    scale = story.evaluate("scene.yours.scale")
    box = story.locator("#yours canvas").bounding_box()
    assert box is not None
    where = box["width"] * 0.4, box["height"] * 0.6
    below = story.evaluate("([x, y]) => scene.yours.metres(x, y)", where)
    story.mouse.move(box["x"] + where[0], box["y"] + where[1])
    story.mouse.wheel(0, -300)
    story.wait_for_function("(scale) => scene.yours.scale > 1.5 * scale", arg=scale)
    assert story.evaluate("scene.yours.scale === scene.theirs.scale")
    # What is below the pointer stays there.
    now = story.evaluate("([x, y]) => scene.yours.metres(x, y)", where)
    assert math.dist((below["x"], below["y"]), (now["x"], now["y"])) < 5
    for _ in range(8):
        story.get_by_role("button", name="Farther").click()
    assert story.evaluate("scene.yours.scale") == pytest.approx(scale)


def test_a_projector_gets_larger_words_the_full_screen_and_a_picture(story: Page, tmp_path: Path) -> None:
    turn_to(story, "card=2")
    size = "parseFloat(getComputedStyle(sentence).fontSize)"
    before = story.evaluate(size)
    story.get_by_role("button", name="Size for a projector").click()
    assert story.evaluate(size) > 1.3 * before
    assert story.evaluate(OVERFLOW) == []
    story.get_by_role("button", name="Size for a projector").click()
    story.locator("#full").click()
    expect(story.locator("#theirs:fullscreen .said")).to_contain_text("This report is off by")
    story.evaluate("() => document.exitFullscreen()")
    with story.expect_download() as started:
        story.get_by_role("button", name="Picture of this card").click()
    assert started.value.suggested_filename == "geoind-2.png"
    started.value.save_as(tmp_path / "card.png")
    with Image.open(tmp_path / "card.png") as picture:
        assert picture.width == 1600
        colours = {rgb: count for count, rgb in picture.convert("RGB").getcolors(maxcolors=1 << 24) or []}
    # You, and the report on both maps.
    for name in ("truth", "report"):
        colour = story.evaluate(f"css('{name}')")
        assert colours.get(tuple(bytes.fromhex(colour[1:])), 0) > 100, name


# The page


def test_a_page_that_was_opened_from_a_disk_cannot_send_anything(local: Page) -> None:
    policy = local.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content") or ""
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "worker-src blob:;" in policy
    assert (
        local.evaluate("performance.getEntriesByType('resource').filter(e => !e.name.startsWith('file:')).length")
        == 0
    )


def test_every_view_fits_every_screen_in_both_themes(story: Page) -> None:
    for view in VIEWS:
        turn_to(story, view)
        if view == "part=day":
            story.locator("#example-day").click()
            expect(story.locator("#outcomes")).to_be_visible()
        if view == "card=4":
            story.locator("#play").click()
            expect(story.locator("#chart svg")).to_be_visible()
        for screen, (width, height) in SCREENS.items():
            story.set_viewport_size({"width": width, "height": height})
            assert story.evaluate(OVERFLOW) == [], (view, screen)
            if screen in {"phone", "wide"}:
                story.locator("#theme").click()
                assert story.evaluate(OVERFLOW) == [], (view, screen, "the other theme")


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


DEFERRED = re.compile(r"/(town|core|story)\.js$")
"""The scripts that come after the page; that of the theme is small and comes before."""


def test_a_slow_network_shows_the_first_card_and_no_control_that_does_nothing(
    browser: Browser, demo_url: str
) -> None:
    context = browser.new_context()
    page = context.new_page()
    held: list[Route] = []
    page.route(DEFERRED, lambda route: held.append(route))
    page.goto(f"{demo_url}story/", wait_until="commit")
    expect(page.locator("#title")).to_have_text("An app asks where you are")
    expect(page.locator("#sentence")).to_contain_text("where you live")
    expect(page.locator("#finding")).to_contain_text("Loading the map")
    # The scripts are still on their way: what can be seen has been sent without them.
    usable = (
        "[...document.querySelectorAll('.panel *, .tabs *, .stage button')]"
        ".filter(e => e.checkVisibility({visibilityProperty: true})).length"
    )
    assert page.evaluate(usable) == 0
    for route in held:
        route.continue_()
    expect(page.locator("html[data-ready=yes]")).to_be_attached()
    expect(page.get_by_role("button", name="Next")).to_be_visible()
    page.close()
    # Compressed: three and a half seconds of a network of 50 kB/s, not eighteen.
    page = context.new_page()
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    network.send("Network.setCacheDisabled", {"cacheDisabled": True})
    sizes: list[int] = []
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(f"{demo_url}story/")
    expect(page.locator("html[data-ready=yes]")).to_be_attached()
    assert 50_000 < sum(sizes) < 175_000
    # A worker of the page may not send anything either.
    script = """
    () => new Promise((done) => {
        const text = "addEventListener('securitypolicyviolation', (one) => postMessage(one.effectiveDirective));"
            + `fetch("${location.origin}/").then(() => postMessage("sent"), () => {});`;
        const worker = new Worker(URL.createObjectURL(new Blob([text])));
        worker.onmessage = ({data}) => done(data);
    })
    """
    assert page.evaluate(script) == "connect-src"
    context.close()


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
