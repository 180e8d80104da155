"""A page cannot read another site's reports, spend its budget, or command the extension."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.extension.browser import FIND, INSECURE, STATE, TRUTH, Extended, Handler, metres

pytestmark = pytest.mark.browser

POST = """<!DOCTYPE html><script>
    navigator.geolocation.getCurrentPosition(
        ({coords}) => parent.postMessage({lat: coords.latitude, lon: coords.longitude}, "*"),
        ({code}) => parent.postMessage({code}, "*"));
</script>"""

EMBED = """([address, allow]) => new Promise((done) => {
    addEventListener("message", ({data}) => done(data), {once: true});
    const made = document.createElement("iframe");
    if (allow) made.allow = "geolocation";
    made.src = address;
    document.body.append(made);
})"""


@pytest.fixture
def page(chromium: Extended) -> Iterator[Page]:
    chromium.send(kind="forget")
    page = chromium.open()
    yield page
    page.close()


def account(chromium: Extended) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(chromium.stored().get("account") or '{"spent": {}, "sessions": {}}')
    return found


def in_content_script(page: Page, expression: str) -> Any:
    """Evaluate code in the world of the extension's content script, as a renderer that was taken over could."""
    devtools = page.context.new_cdp_session(page)
    worlds: list[dict[str, Any]] = []
    devtools.on("Runtime.executionContextCreated", lambda event: worlds.append(event["context"]))
    devtools.send("Runtime.enable")
    [world] = [one["id"] for one in worlds if one["name"].startswith("geoind")]
    answer = devtools.send(
        "Runtime.evaluate",
        {"expression": expression, "contextId": world, "awaitPromise": True, "returnByValue": True},
    )
    return answer["result"].get("value", answer.get("exceptionDetails", {}).get("text"))


def test_each_site_has_reports_and_a_budget_of_its_own(chromium: Extended, page: Page) -> None:
    other = chromium.open("localhost")
    chromium.choose("medium")
    chromium.choose("high", "localhost")
    here, there = page.evaluate(FIND), other.evaluate(FIND)
    assert (here["lat"], here["lon"]) != (there["lat"], there["lon"])
    spent = account(chromium)["spent"]
    assert {*spent} == {chromium.site("127.0.0.1", ""), chromium.site("localhost", "")}
    assert here["accuracy"] < there["accuracy"]
    # The same report again, and nothing more is paid.
    assert page.evaluate(FIND)["lat"] == here["lat"]
    assert account(chromium)["spent"] == spent
    other.close()


def test_an_embedded_origin_pays_for_itself_and_only_with_a_delegation(chromium: Extended, page: Page) -> None:
    Handler.pages["/post"] = POST
    chromium.choose("medium")
    chromium.choose("medium", "localhost")
    assert page.evaluate(EMBED, [chromium.site("localhost", "/post"), False]) == {"code": 1}
    assert account(chromium)["spent"] == {}
    got = page.evaluate(EMBED, [chromium.site("localhost", "/post"), True])
    assert metres(got["lat"], got["lon"]) > 1
    assert {*account(chromium)["spent"]} == {chromium.site("localhost", "")}


def test_a_frame_cannot_make_its_parent_ask(chromium: Extended, page: Page) -> None:
    Handler.pages["/forge"] = """<!DOCTYPE html><script>
        for (const kind of ["position", "geoind-port", "geoind"]) {
            const {port1, port2} = new MessageChannel();
            parent.postMessage({id: 1, kind, timeout: 1000}, "*", [port2]);
            port1.postMessage({id: 1, kind: "position", timeout: 1000});
        }
        try { parent.dispatchEvent(new Event("geoind-port")); } catch {}
        setTimeout(() => parent.postMessage("tried", "*"), 1000);
    </script>"""
    chromium.choose("medium")
    page.evaluate(EMBED, [chromium.site("localhost", "/forge"), True])
    page.wait_for_timeout(1500)
    assert account(chromium)["spent"] == {}


FORGED = [
    {"to": "offscreen", "question": {"radius": 0.001, "origin": "http://x.example", "time": 1, "key": "00" * 32,
     "account": None, "budget": {"site": 9, "total": 9}, "zone": None}},
    {"kind": "choose", "origin": "http://x.example", "choice": "low"},
    {"kind": "pause", "origin": "http://127.0.0.1", "pause": True},
    {"kind": "settings", "settings": {}},
    {"kind": "zone", "radius": 50},
    {"kind": "forget"},
    {"kind": "__proto__"},
    {"kind": "constructor"},
    {},
    None,
]  # fmt: skip


def test_even_a_content_script_cannot_command_the_extension(chromium: Extended, page: Page) -> None:
    chromium.choose("off")
    before = chromium.stored()
    for message in FORGED:
        got = in_content_script(
            page,
            f"Promise.race([chrome.runtime.sendMessage({json.dumps(message)}).then((got) => got ?? 'nothing', "
            "() => 'nothing'), new Promise((done) => setTimeout(() => done('nothing'), 500))])",
        )
        assert got == "nothing", message
    assert chromium.stored() == before


def test_a_content_script_cannot_read_what_is_stored(chromium: Extended, page: Page) -> None:
    chromium.choose("medium", "localhost")
    for area in ("local", "session"):
        got = in_content_script(page, f"chrome.storage.{area}.get(null).then(JSON.stringify, () => 'refused')")
        assert got in ("refused", "Uncaught", None), got


def test_a_message_names_no_other_site(chromium: Extended, page: Page) -> None:
    chromium.choose("medium", "localhost")
    chromium.choose("off")
    asked = json.dumps({"kind": "position", "origin": chromium.site("localhost", "")})
    got = in_content_script(page, f"chrome.runtime.sendMessage({asked})")
    assert got["error"] == 1
    assert account(chromium)["spent"] == {}


def test_a_site_without_a_choice_waits_for_it(chromium: Extended, page: Page) -> None:
    assert page.evaluate(STATE) == "prompt"
    page.evaluate(f"void (window.answer = ({FIND})())")
    badge = "chrome.tabs.query({active: true}).then(([tab]) => chrome.action.getBadgeText({tabId: tab.id}))"
    while chromium.worker.evaluate(badge) != "?":
        page.wait_for_timeout(20)
    chromium.choose("medium")
    assert metres(*(page.evaluate("answer")[name] for name in ("lat", "lon"))) > 1
    assert page.evaluate(STATE) == "granted"


@pytest.mark.parametrize(
    ("name", "hidden", "shown", "event"),
    [
        ("visibilityState", "'hidden'", "'visible'", "visibilitychange"),
        ("prerendering", "true", "false", "prerenderingchange"),
    ],
)
def test_a_page_that_is_not_shown_waits(
    chromium: Extended, page: Page, name: str, hidden: str, shown: str, event: str
) -> None:
    # A browser without a screen shows every tab: the script of the extension reads another state.
    define = f"Object.defineProperty(document, '{name}', {{value: VALUE, configurable: true}}); 1"
    in_content_script(page, define.replace("VALUE", hidden))
    chromium.choose("medium")
    page.evaluate(f"() => {{ window.answer = null; ({FIND})().then((got) => {{ window.answer = got; }}); }}")
    page.wait_for_timeout(700)
    assert page.evaluate("answer") is None
    assert account(chromium)["spent"] == {}
    in_content_script(page, define.replace("VALUE", shown) + f"; document.dispatchEvent(new Event('{event}'))")
    page.wait_for_function("() => answer")
    assert metres(*(page.evaluate("answer")[name] for name in ("lat", "lon"))) > 1


FAIL = """() => {
    const {location} = chrome.contentSettings, {set} = location;
    globalThis.repair = () => { location.set = set; };
    location.set = (given) => given.primaryPattern.includes("bad.example") ? Promise.reject(new Error("refused"))
        : set.call(location, given);
}"""


def test_a_setting_that_fails_is_an_error_for_pages_and_leaves_no_other_site_open(
    chromium: Extended, page: Page
) -> None:
    chromium.choose("medium")
    name = chromium.site("127.0.0.1", "")
    options = chromium.own_page("options.html")

    def pause(origin: str, pause: bool) -> Any:
        message = {"kind": "pause", "origin": origin, "pause": pause}
        return options.evaluate("message => chrome.runtime.sendMessage(message)", message)

    def setting() -> Any:
        question = f"chrome.contentSettings.location.get({{primaryUrl: '{name}/'}})"
        return chromium.worker.evaluate(question)["setting"]

    chromium.worker.evaluate(FAIL)
    assert pause("http://bad.example", True)["problem"]
    pause(name, True)
    assert setting() == "allow"
    pause(name, False)
    assert setting() == "block"
    assert chromium.worker.evaluate("chrome.action.getBadgeText({})") == "!"
    assert page.evaluate(FIND)["code"] == 1
    assert page.evaluate(STATE) == "denied"
    chromium.worker.evaluate("repair()")
    assert "problem" not in pause("http://bad.example", False)
    assert chromium.worker.evaluate("chrome.action.getBadgeText({})") == ""
    assert metres(*(page.evaluate(FIND)[name] for name in ("lat", "lon"))) > 1
    options.close()


def test_a_tab_remembers_fifty_sites_that_asked(chromium: Extended, page: Page) -> None:
    chromium.choose("medium")
    page.evaluate(FIND)
    fill = """async () => {
        const [[name, {top}]] = Object.entries(await chrome.storage.session.get(null));
        const asked = Array.from({length: 70}, (_, number) => `https://site-${number}.example`);
        await chrome.storage.session.set({[name]: {top, asked}});
    }"""
    chromium.worker.evaluate(fill)
    page.evaluate(FIND)
    [noted] = chromium.worker.evaluate("chrome.storage.session.get(null).then(Object.values)")
    assert len(noted["asked"]) == 50
    assert noted["asked"][-1] == chromium.site("127.0.0.1", "")


def test_a_place_keeps_its_accuracy_when_the_level_changes(chromium: Extended, page: Page) -> None:
    chromium.choose("medium")
    before = page.evaluate(FIND)
    chromium.choose("high")
    chromium.worker.evaluate("globalThis.clock = Date.now; Date.now = () => clock() + 6000; 1")
    after = page.evaluate(FIND)
    chromium.worker.evaluate("Date.now = clock; 1")
    assert after["timestamp"] > before["timestamp"]
    # A fresh report of the new level has another accuracy; it is rare, because the device has not moved.
    assert (after["lat"] == before["lat"]) == (after["accuracy"] == before["accuracy"])


def test_a_page_without_encryption_gets_an_error(chromium: Extended, page: Page) -> None:
    chromium.choose("medium", INSECURE)
    page.goto(chromium.site(INSECURE))
    assert page.evaluate(FIND)["code"] == 1
    assert account(chromium)["spent"] == {}


def test_a_refused_site_gets_an_error(chromium: Extended, page: Page) -> None:
    chromium.choose("off")
    assert page.evaluate(STATE) == "denied"
    assert page.evaluate(FIND)["code"] == 1
    assert account(chromium)["spent"] == {}


def test_a_fixed_place_does_not_depend_on_the_truth(chromium: Extended, page: Page) -> None:
    assert page.evaluate("1") == 1
    chromium.choose("fixed")
    assert page.evaluate(FIND)["code"] == 2
    chromium.send(kind="settings", settings={"place": {"lat": -33.9, "lon": 18.4}})
    got = page.evaluate(FIND)
    assert (got["lat"], got["lon"]) == (-33.9, 18.4)
    assert account(chromium)["spent"] == {}


def test_a_spent_budget_is_an_error_and_nothing_is_drawn(chromium: Extended, page: Page) -> None:
    chromium.choose("medium")
    chromium.send(kind="settings", settings={"budget": {"site": 0.005}})
    assert page.evaluate(FIND)["code"] == 2
    assert account(chromium)["spent"] == {}
    chromium.send(kind="settings", settings={"budget": {"site": 0.1, "total": 0.005}})
    assert page.evaluate(FIND)["code"] == 2
    assert account(chromium)["spent"] == {}


def test_a_device_without_a_position_is_an_error(chromium: Extended, page: Page) -> None:
    chromium.choose("medium")
    chromium.offscreen("Emulation.setGeolocationOverride")
    assert page.evaluate(FIND)["code"] == 2
    assert account(chromium)["spent"] == {}
    chromium.is_at()
    chromium.worker.evaluate("globalThis.clock = Date.now; Date.now = () => clock() + 6000; 1")
    assert metres(*(page.evaluate(FIND)[name] for name in ("lat", "lon"))) > 1
    chromium.worker.evaluate("Date.now = clock; 1")


HOLD = """
globalThis.held = [];
globalThis.timers = [];
globalThis.later = setTimeout;
globalThis.setTimeout = (call) => timers.push(call);
navigator.geolocation.getCurrentPosition = (found) => held.push(found); 1"""
"""The device finds no position, and says nothing."""
RELEASE = "globalThis.setTimeout = later; delete navigator.geolocation.getCurrentPosition; 1"


def waits_for_device(chromium: Extended, page: Page, asks: int) -> None:
    """Let a page ask, and return when the device is asked."""
    page.evaluate(f"() => {{ window.answer = null; ({FIND})().then((got) => {{ window.answer = got; }}); }}")
    while chromium.in_offscreen("held.length") < asks:
        page.wait_for_timeout(20)


def test_commands_and_other_sites_do_not_wait_for_the_device(chromium: Extended, page: Page) -> None:
    other = chromium.open("localhost")
    chromium.choose("medium")
    chromium.in_offscreen(HOLD)
    try:
        waits_for_device(chromium, page, 1)
        chromium.choose("off", "localhost")
        assert other.evaluate(FIND)["code"] == 1
        for pause in (True, False):
            chromium.send(kind="pause", origin=chromium.site("localhost", ""), pause=pause)
        assert page.evaluate("answer") is None
        # The site loses its level during the draw: it gets no report, and nothing is paid.
        chromium.choose("off")
        chromium.in_offscreen("held[0]({coords: {latitude: 1, longitude: 2}})")
        page.wait_for_function("() => answer")
        assert page.evaluate("answer.code") == 1
        assert account(chromium)["spent"] == {}
        # A device that stays silent is an error after a while, which is repeated without asking the device.
        chromium.choose("medium")
        waits_for_device(chromium, page, 2)
        chromium.in_offscreen("timers.at(-1)()")
        page.wait_for_function("() => answer")
        assert page.evaluate("answer.code") == page.evaluate(FIND)["code"] == 2
        assert chromium.in_offscreen("held.length") == 2
    finally:
        chromium.in_offscreen(RELEASE)
        other.close()


def test_bad_settings_are_refused(chromium: Extended, page: Page) -> None:
    assert page.evaluate("1") == 1
    options = chromium.own_page("options.html")
    for change in (
        {"newSites": "truth"},
        {"radii": {"low": 1, "medium": 500, "high": 500}},
        {"place": {"lat": 91, "lon": 0}},
        {"budget": {"site": 0}},
        {"budget": {"total": 9.5}},
    ):
        message = {"kind": "settings", "settings": change}
        assert options.evaluate("message => chrome.runtime.sendMessage(message)", message)["problem"]
    options.close()
    assert "settings" not in chromium.stored()


def test_messages_to_pages_have_no_digits_of_the_truth(chromium: Extended, page: Page) -> None:
    chromium.choose("medium")
    page.evaluate(FIND)
    # What is stored has no true position either.
    text = json.dumps(chromium.stored())
    for true in TRUTH:
        assert str(true)[:9] not in text
