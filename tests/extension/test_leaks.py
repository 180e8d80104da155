"""Pages that try to read the true position: no value that reaches any of them is near it."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.extension.browser import FIND, STATE, TRUTH, Extended, Handler, metres

pytestmark = pytest.mark.browser

NEAR = 1e-4
"""Degrees."""

ASK = """
const asked = (geolocation, call = geolocation?.getCurrentPosition, wait = PATIENCE) => new Promise((done) => {
    setTimeout(() => done("silence"), wait);
    try {
        call.call(geolocation, ({coords}) => done({lat: coords.latitude, lon: coords.longitude}),
            ({code}) => done({code}), {timeout: wait - 1000});
    } catch (error) { done({thrown: String(error)}); }
});
const frame = (settings, attributes = {}) => {
    const made = document.createElement("iframe");
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    Object.assign(made, settings);
    document.body.append(made);
    return made;
};
const loaded = (made) => new Promise((done) => made.addEventListener("load", () => done(made)));
"""

ATTEMPTS = {
    "the page itself": "asked(navigator.geolocation)",
    "the native function of a srcdoc frame's first document, applied to the top window's object": """
        asked(navigator.geolocation,
            frame({srcdoc: "<p>"}).contentWindow.Geolocation.prototype.getCurrentPosition)""",
    "a frame whose address loads slowly": "asked(frame({src: '/slow'}).contentWindow.navigator.geolocation)",
    "its watch": """(() => { const {geolocation} = frame({src: "/slow"}).contentWindow.navigator;
        return asked(geolocation, geolocation.watchPosition); })()""",
    "an element with autolocate": """new Promise((done) => {
        const element = document.createElement("geolocation");
        element.setAttribute("autolocate", "");
        element.addEventListener("location", () => done(element.position && {
            lat: element.position.coords.latitude, lon: element.position.coords.longitude}));
        element.style.cssText = "display: block; width: 200px; height: 40px";
        document.body.append(element);
        setTimeout(() => done("silence"), PATIENCE); })""",
    "the native getter of an element, from a frame": """new Promise((done) => {
        const element = document.createElement("geolocation");
        element.setAttribute("autolocate", "");
        document.body.append(element);
        const {get} = Object.getOwnPropertyDescriptor(
            frame({srcdoc: "<p>"}).contentWindow.HTMLGeolocationElement.prototype, "position");
        setTimeout(() => done(get.call(element)), 1500); })""",
    "an element of a frame that has no script yet": """new Promise((done) => {
        const other = frame({src: "about:blank"}).contentDocument, element = other.createElement("geolocation");
        element.setAttribute("autolocate", "");
        other.body.append(element);
        element.addEventListener("location", () => done(element.position && {
            lat: element.position.coords.latitude, lon: element.position.coords.longitude}));
        setTimeout(() => done("silence"), 2500); })""",
    "about:blank": "asked(frame({src: 'about:blank'}).contentWindow.navigator.geolocation)",
    "a frame without an address": "asked(frame({}).contentWindow.navigator.geolocation)",
    "a frame of javascript:": "asked(frame({src: 'javascript:\"<p>\"'}).contentWindow.navigator.geolocation)",
    "a srcdoc frame": """loaded(frame({srcdoc: "<p>"})).then((made) =>
        asked(made.contentWindow.navigator.geolocation))""",
    "a blob": """loaded(frame({src: URL.createObjectURL(new Blob(["<p>"], {type: "text/html"}))})).then((made) =>
        asked(made.contentWindow.navigator.geolocation))""",
    "a script inside a srcdoc frame": """new Promise((done) => {
        addEventListener("message", ({data}) => done(data));
        frame({srcdoc: `<script>navigator.geolocation.getCurrentPosition(
            ({coords}) => parent.postMessage({lat: coords.latitude, lon: coords.longitude}, "*"),
            ({code}) => parent.postMessage({code}, "*"))<\\/script>`}); })""",
    "a sandboxed frame": """new Promise((done) => {
        addEventListener("message", ({data}) => done(data));
        frame({srcdoc: `<script>navigator.geolocation.getCurrentPosition(
            ({coords}) => parent.postMessage({lat: coords.latitude, lon: coords.longitude}, "*"),
            ({code}) => parent.postMessage({code}, "*"))<\\/script>`}, {sandbox: "allow-scripts"}); })""",
    "a data: frame with a delegation": """new Promise((done) => {
        addEventListener("message", ({data}) => done(data));
        frame({src: `data:text/html,<script>navigator.geolocation.getCurrentPosition(
            ({coords}) => parent.postMessage({lat: coords.latitude, lon: coords.longitude}, "*"),
            ({code}) => parent.postMessage({code}, "*"))<\\/script>`}, {allow: "geolocation *"}); })""",
    "document.open in a frame": """(() => { const made = frame({}), {contentDocument} = made;
        contentDocument.open(); contentDocument.write("<p>"); contentDocument.close();
        return asked(made.contentWindow.navigator.geolocation); })()""",
    "a frame in a frame": """loaded(frame({srcdoc: "<iframe></iframe>"})).then((made) =>
        asked(made.contentWindow.frames[0].navigator.geolocation))""",
    "a frame that was removed": """(() => {
        const made = frame({src: "/x"}), {geolocation} = made.contentWindow.navigator;
        made.remove(); return asked(geolocation); })()""",
    "a popup": "asked(window.open('about:blank').navigator.geolocation)",
    "a popup that loads slowly": "asked(window.open('/slow').navigator.geolocation)",
    "a native function of a popup on the page's object": """
        asked(navigator.geolocation, window.open("about:blank").Geolocation.prototype.getCurrentPosition)""",
    "a page that took the prototype's functions": """(() => { const other = frame({}).contentWindow;
        Object.setPrototypeOf(navigator.geolocation, other.Geolocation.prototype);
        return asked(navigator.geolocation); })()""",
    "deleted replacements": """(() => { for (const name of ["getCurrentPosition", "watchPosition"])
        delete Geolocation.prototype[name]; return asked(navigator.geolocation); })()""",
    "tampered built-ins": """(() => { const got = [];
        for (const [owner, name] of [[Object, "entries"], [Object, "create"], [Object, "defineProperty"],
                [Map.prototype, "get"], [MessagePort.prototype, "postMessage"], [Reflect, "apply"]]) {
            const before = owner[name];
            owner[name] = function (...given) { got.push(given); return before.apply(this, given); };
        }
        return asked(navigator.geolocation).then((answer) => [answer, got.map((one) => {
            try { return JSON.stringify(one); } catch { return ""; } })]); })()""",
    "the other end of the channel": """(() => { const got = [];
        addEventListener("geoind-port", ({ports: [port]}) => { port.onmessage = ({data}) => got.push(data); });
        const {port1, port2} = new MessageChannel();
        port1.onmessage = ({data}) => got.push(data);
        dispatchEvent(new MessageEvent("geoind-port", {ports: [port2]}));
        dispatchEvent(new Event("geoind-gate"));
        for (const kind of ["position", "permission", "zone", "step", "offscreen", "settings", "choose"])
            port1.postMessage({id: 1, kind, timeout: 1000, to: "offscreen", origin: "http://b.localhost"});
        return asked(navigator.geolocation).then((answer) => [answer, got]); })()""",
    "a worker": """new Promise((done) => { const code = `postMessage(String(navigator.geolocation));
            navigator.permissions.query({name: "geolocation"}).then(({state}) => postMessage(state))`;
        const worker = new Worker(URL.createObjectURL(new Blob([code]))), got = [];
        worker.onmessage = ({data}) => { got.push(data); if (got.length === 2) done(got); }; })""",
    "the messaging of the extension": """(async () => [String(globalThis.chrome?.runtime),
        await asked(navigator.geolocation)])()""",
}

REAL = [
    "the native function of a srcdoc frame's first document, applied to the top window's object",
    "a frame whose address loads slowly",
    "an element with autolocate",
    "about:blank",
    "a srcdoc frame",
    "a popup that loads slowly",
    "a native function of a popup on the page's object",
]
"""Three known leaks of extensions that replace navigator.geolocation only, and others."""

EARLY = """<!DOCTYPE html><title>early</title>
<script>
    window.native = String(navigator.geolocation.getCurrentPosition).includes("[native code]");
    window.early = new Promise((done) => navigator.geolocation.getCurrentPosition(
        ({coords}) => done({lat: coords.latitude, lon: coords.longitude}), ({code}) => done({code})));
</script><body>"""


def numbers(value: Any) -> list[float]:
    """Return all numbers in a value, also those inside text."""
    return [float(one) for one in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", json.dumps(value))]


def assert_hidden(value: Any) -> None:
    for number in numbers(value):
        assert min(abs(number - true) for true in TRUTH) > NEAR, value


@pytest.fixture(scope="module")
def asking(chromium: Extended) -> Extended:
    """A browser in which the site has the level medium, and a report that is not near the truth by chance.

    One report in thirty has a latitude or a longitude that is within `NEAR` of the true one.
    """
    for _ in range(10):
        chromium.send(kind="forget")
        chromium.choose("medium")
        page = chromium.open()
        got = page.evaluate(FIND)
        page.close()
        apart = min(abs(got["lat"] - TRUTH[0]), abs(got["lon"] - TRUTH[1]))
        if apart > NEAR and 20 < metres(got["lat"], got["lon"]) < 10_000:
            return chromium
    raise AssertionError("ten reports in a row are near the truth")


def attempt(page: Page, code: str, *, patience: int = 4000) -> Any:
    return page.evaluate(f"(async () => {{ const PATIENCE = {patience}; {ASK} return ({code}); }})()")


@pytest.mark.parametrize("name", ATTEMPTS)
def test_no_attempt_yields_the_truth(asking: Extended, name: str) -> None:
    page = asking.open()
    assert_hidden(attempt(page, ATTEMPTS[name]))
    close_all(asking)


def test_the_attempts_find_the_truth_where_the_block_is_lifted(asking: Extended) -> None:
    # So the attempts are real ones: what stops them is the content setting, and nothing else.
    asking.send(kind="pause", origin=asking.site("127.0.0.1", ""), pause=True)
    found = []
    for name in REAL:
        got = attempt(asking.open(), ATTEMPTS[name], patience=60_000)
        if isinstance(got, dict) and "lat" in got and metres(got["lat"], got["lon"]) < 1:
            found.append(name)
    close_all(asking)
    asking.send(kind="pause", origin=asking.site("127.0.0.1", ""), pause=False)
    assert found == REAL


def test_a_pause_is_for_one_port(asking: Extended) -> None:
    origin = "http://127.0.0.1"
    setting = "chrome.contentSettings.location"
    # As an earlier version allowed it: for every port.
    asking.worker.evaluate(f"{setting}.set({{primaryPattern: '{origin}/*', setting: 'allow'}})")
    asking.send(kind="pause", origin=origin, pause=True)
    assert asking.worker.evaluate(f"{setting}.get({{primaryUrl: '{origin}/'}})")["setting"] == "allow"
    assert attempt(asking.open(), ATTEMPTS["a frame whose address loads slowly"]) == {"code": 1}
    asking.send(kind="pause", origin=origin, pause=False)
    assert asking.worker.evaluate(f"{setting}.get({{primaryUrl: '{origin}/'}})")["setting"] == "block"
    close_all(asking)


def test_a_native_watch_ends_with_the_pause_in_which_it_began(asking: Extended) -> None:
    origin = asking.site("127.0.0.1", "")
    asking.send(kind="pause", origin=origin, pause=True)
    page = asking.open()
    page.evaluate("""() => {
        window.seen = [];
        navigator.geolocation.watchPosition(({coords}) => seen.push(coords.latitude), ({code}) => seen.push(code));
    }""")
    page.wait_for_function("() => seen.length === 1")
    assert page.evaluate("seen") == [TRUTH[0]]
    asking.send(kind="pause", origin=origin, pause=False)
    page.bring_to_front()
    page.wait_for_function("() => seen.length === 2")
    asking.context.set_geolocation({"latitude": 10, "longitude": 2})
    page.wait_for_timeout(1000)
    assert page.evaluate("seen") == [TRUTH[0], 1]
    asking.context.set_geolocation({"latitude": TRUTH[0], "longitude": TRUTH[1], "accuracy": 7})
    page.close()


def test_a_script_at_the_very_beginning_of_a_page_gets_a_report(asking: Extended) -> None:
    Handler.pages["/early"] = EARLY
    page = asking.open(path="/early")
    assert page.evaluate("native") is False
    got = page.evaluate("early")
    assert_hidden(got)
    assert 20 < metres(got["lat"], got["lon"]) < 10_000
    page.close()


def test_a_click_on_the_element_gives_a_report(asking: Extended) -> None:
    page = asking.open()
    page.evaluate("""() => {
        const element = document.createElement("geolocation");
        element.style.cssText = "display: block; width: 200px; height: 40px";
        document.body.append(element);
        window.located = new Promise((done) => element.addEventListener("location", () => done(
            [element.position.coords.latitude, element.position.coords.longitude, element.permissionStatus])));
    }""")
    page.locator("geolocation").click()
    lat, lon, state = page.evaluate("located")
    assert 20 < metres(lat, lon) < 10_000
    assert state == "granted"
    page.close()


def test_a_page_cannot_distinguish_the_answer_by_its_type(asking: Extended) -> None:
    page = asking.open()
    got = page.evaluate("""new Promise((done) => navigator.geolocation.getCurrentPosition((position) => done({
        position: position instanceof GeolocationPosition,
        coordinates: position.coords instanceof GeolocationCoordinates,
        json: JSON.parse(JSON.stringify(position)),
        number: navigator.geolocation.watchPosition(() => {}),
    })))""")
    assert got["position"]
    assert got["coordinates"]
    assert {*got["json"]["coords"]} >= {"latitude", "longitude", "accuracy"}
    for name in ("altitude", "altitudeAccuracy", "heading", "speed"):
        assert got["json"]["coords"][name] is None
    assert page.evaluate(STATE) == "granted"
    page.close()


def close_all(asking: Extended) -> None:
    """Close every page but one: a browser without pages ends."""
    for page in asking.context.pages[1:]:
        page.close()
