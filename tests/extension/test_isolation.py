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
    page.wait_for_timeout(1000)
    assert (
        chromium.worker.evaluate(
            "chrome.tabs.query({active: true}).then(([tab]) => chrome.action.getBadgeText({tabId: tab.id}))"
        )
        == "?"
    )
    chromium.choose("medium")
    assert metres(*(page.evaluate("answer")[name] for name in ("lat", "lon"))) > 1
    assert page.evaluate(STATE) == "granted"


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
    settings = own_settings(chromium, place={"lat": -33.9, "lon": 18.4})
    chromium.send(kind="settings", settings=settings)
    got = page.evaluate(FIND)
    assert (got["lat"], got["lon"]) == (-33.9, 18.4)
    assert account(chromium)["spent"] == {}


def test_a_spent_budget_is_an_error_and_nothing_is_drawn(chromium: Extended, page: Page) -> None:
    chromium.choose("medium")
    chromium.send(kind="settings", settings=own_settings(chromium, budget={"site": 0.005, "total": 0.2}))
    assert page.evaluate(FIND)["code"] == 2
    assert account(chromium)["spent"] == {}
    chromium.send(kind="settings", settings=own_settings(chromium, budget={"site": 0.1, "total": 0.005}))
    assert page.evaluate(FIND)["code"] == 2
    assert account(chromium)["spent"] == {}


def test_a_device_without_a_position_is_an_error(chromium: Extended, page: Page) -> None:
    chromium.choose("medium")
    chromium.offscreen("Emulation.setGeolocationOverride")
    assert page.evaluate(FIND)["code"] == 2
    assert account(chromium)["spent"] == {}
    chromium.is_at()
    assert metres(*(page.evaluate(FIND)[name] for name in ("lat", "lon"))) > 1


def test_bad_settings_are_refused(chromium: Extended, page: Page) -> None:
    assert page.evaluate("1") == 1
    options = chromium.own_page("options.html")
    for change in (
        {"newSites": "truth"},
        {"radii": {"low": 1, "medium": 500, "high": 500}},
        {"place": {"lat": 91, "lon": 0}},
    ):
        message = {"kind": "settings", "settings": own_settings(chromium, **change)}
        assert options.evaluate("message => chrome.runtime.sendMessage(message)", message)["problem"]
    options.close()
    assert "settings" not in chromium.stored()


def own_settings(chromium: Extended, **changes: Any) -> dict[str, Any]:
    page = chromium.own_page("options.html")
    kept: dict[str, Any] = page.evaluate("import('./store.js').then(async ({load}) => (await load()).settings)")
    page.close()
    return {**kept, **changes}


def test_messages_to_pages_have_no_digits_of_the_truth(chromium: Extended, page: Page) -> None:
    chromium.choose("medium")
    page.evaluate(FIND)
    # What is stored has no true position either.
    text = json.dumps(chromium.stored())
    for true in TRUTH:
        assert str(true)[:9] not in text
