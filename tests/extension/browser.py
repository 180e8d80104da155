"""Chromium with the extension, pages that ask for the position, and a true position that only the device knows."""

import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, CDPSession, Page, Playwright, Worker

from tests.conftest import PATIENCE, QUIET

TRUTH = (48.858370123456, 2.294481987654)
"""With digits that no report has."""

ALLOWED = {"profile": {"default_content_setting_values": {"geolocation": 1}}}
"""The person has allowed every site to read the position. DevTools' own grant would ignore content settings."""

FIND = """() => new Promise((done) => {
    navigator.geolocation.getCurrentPosition(
        ({coords, timestamp}) => done({lat: coords.latitude, lon: coords.longitude, accuracy: coords.accuracy,
            altitude: coords.altitude, altitudeAccuracy: coords.altitudeAccuracy, heading: coords.heading,
            speed: coords.speed, timestamp}),
        ({code, message}) => done({code, message}), {timeout: 20000});
})"""

STATE = "navigator.permissions.query({name: 'geolocation'}).then(({state}) => state)"


INSECURE = "insecure.example"
"""A name of this machine whose pages are not secure contexts."""

OPEN_OFFSCREEN = (
    "chrome.offscreen.createDocument({url: 'offscreen.html', reasons: ['GEOLOCATION'], justification: 'test'})"
)
"""As the extension does before its first report."""


class Handler(BaseHTTPRequestHandler):
    """Pages by path; a path that contains `slow` is answered after a second."""

    pages: dict[str, str] = {}  # noqa: RUF012 - one server for all tests

    asked: list[str] = []  # noqa: RUF012 - by any part of the browser

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if "slow" in self.path:
            time.sleep(1)
        body = self.pages.get(self.path, "<!DOCTYPE html><title>page</title><body>").encode()
        self.send_response(200)
        kind = "text/javascript" if self.path.endswith(".js") else "text/html"
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # A test may close its page before a slow answer.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def served_pages() -> Iterator[int]:
    """Serve pages on this machine and yield the port; each name of the machine is a site of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


class Extended:
    """A running browser with the extension."""

    def __init__(self, context: BrowserContext, port: int) -> None:
        self.context, self.port = context, port
        context.set_default_timeout(PATIENCE)
        # What the browser's own geolocation would give to pages, frames and popups.
        context.set_geolocation({"latitude": TRUTH[0], "longitude": TRUTH[1], "accuracy": 7})
        self.worker: Worker = (
            context.service_workers[0] if context.service_workers else context.wait_for_event("serviceworker")
        )
        self.base = self.worker.url.rpartition("/")[0]
        assert context.browser is not None
        self._devtools: CDPSession = context.browser.new_browser_cdp_session()
        self._messages: list[dict[str, Any]] = []
        self._devtools.on(
            "Target.receivedMessageFromTarget", lambda event: self._messages.append(json.loads(event["message"]))
        )
        self._offscreen: str | None = None
        self._number = 0

    def site(self, name: str = "127.0.0.1", path: str = "/") -> str:
        """Return the address of a page; every name below localhost is a site."""
        return f"http://{name}:{self.port}{path}"

    def open(self, name: str = "127.0.0.1", path: str = "/") -> Page:
        """Open a page that the browser's own geolocation would tell the truth."""
        page = self.context.new_page()
        page.goto(self.site(name, path))
        return page

    def own_page(self, name: str) -> Page:
        """Open the popup or the options page in a tab."""
        page = self.context.new_page()
        page.goto(f"{self.base}/{name}")
        return page

    def send(self, **message: Any) -> Any:
        """Do what the extension's own pages do."""
        page = self.own_page("options.html")
        try:
            answer = page.evaluate("message => chrome.runtime.sendMessage(message)", message)
        finally:
            page.close()
        assert "problem" not in answer, answer
        return answer

    def choose(self, choice: str | None, name: str = "127.0.0.1") -> None:
        self.send(kind="choose", origin=self.site(name, ""), choice=choice)

    def stored(self) -> dict[str, Any]:
        kept: dict[str, Any] = self.worker.evaluate("chrome.storage.local.get(null)")
        return kept

    def is_at(self, lat: float = TRUTH[0], lon: float = TRUTH[1]) -> None:
        """Move the device."""
        self.offscreen("Emulation.setGeolocationOverride", latitude=lat, longitude=lon, accuracy=7)

    def in_offscreen(self, expression: str) -> Any:
        answer = self.offscreen("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def offscreen(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of DevTools to the offscreen document, which is opened if it is not there."""
        if self._offscreen is None:
            self.worker.evaluate(OPEN_OFFSCREEN)
            targets = self._devtools.send("Target.getTargets")["targetInfos"]
            [target] = [one for one in targets if one["url"] == f"{self.base}/offscreen.html"]
            attached = self._devtools.send(
                "Target.attachToTarget", {"targetId": target["targetId"], "flatten": False}
            )
            self._offscreen = attached["sessionId"]
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        self._devtools.send(
            "Target.sendMessageToTarget", {"sessionId": self._offscreen, "message": json.dumps(command)}
        )
        while not (found := [one for one in self._messages if one.get("id") == self._number]):
            # Any call handles events.
            self._devtools.send("Target.getTargets")
        assert "error" not in found[0], found[0]
        result: dict[str, Any] = found[0]["result"]
        return result


@contextmanager
def extended(
    playwright: Playwright, launch: dict[str, Any], extension: Path, profile: Path, port: int
) -> Iterator[Extended]:
    """Start Chromium with the extension and a profile in which every site may read the position."""
    preferences = profile / "Default" / "Preferences"
    if not preferences.exists():
        preferences.parent.mkdir(parents=True)
        preferences.write_text(json.dumps(ALLOWED))
    context = playwright.chromium.launch_persistent_context(
        str(profile),
        executable_path=launch["executable_path"],
        ignore_default_args=["--disable-extensions"],
        args=[
            *QUIET,
            f"--host-resolver-rules=MAP {INSECURE} 127.0.0.1",
            f"--disable-extensions-except={extension}",
            f"--load-extension={extension}",
        ],
        timeout=PATIENCE,
    )
    try:
        yield Extended(context, port)
    finally:
        context.close()


def metres(lat: float, lon: float) -> float:
    """Return the distance from the truth, on a small plane."""
    north = (lat - TRUTH[0]) * 111_195
    return math.hypot(north, (lon - TRUTH[1]) * 111_195 * math.cos(math.radians(TRUTH[0])))
