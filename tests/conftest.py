"""The browser that tests drive, watched for errors and for requests that leave the machine; the databases."""

import shutil
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import hypothesis
import pytest
from playwright.sync_api import ConsoleMessage, Page, Request, expect

from tests.postgres import Server, find_programs, running_server
from tests.spark_session import events, spark  # noqa: F401

if TYPE_CHECKING:
    from fastapi import FastAPI

# The same examples in every run, and no verdict about speed.
hypothesis.settings.register_profile("geoind", deadline=None, derandomize=True)
hypothesis.settings.load_profile("geoind")

# What makes a test one of a kind that other Pythons leave out (see dev.py): the fixture that it asks for.
KINDS = {"browser": pytest.mark.browser, "spark": pytest.mark.jvm}

PATIENCE = 120_000
"""Milliseconds: on a busy machine a page takes its time, which is no failure."""
expect.set_options(timeout=PATIENCE)

LOOPBACK = {"127.0.0.1", "localhost", None}

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that drive a browser or a JVM, and refuse names that another process would not find."""
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"give this test ids without an address in memory: {item.nodeid}")
        for fixture, kind in KINDS.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(kind)


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, object]:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    chromium = next((found for found in map(shutil.which, names) if found), None)
    if chromium is None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("chromium is not on this machine: nothing was tested in a browser", stacklevel=1)
        pytest.skip("chromium is not on this machine: nothing was tested in a browser")
    return {"executable_path": chromium, "args": QUIET, "timeout": PATIENCE}


@pytest.fixture
def page(page: Page) -> Page:
    """A page that is waited for."""
    page.set_default_timeout(PATIENCE)
    return page


@pytest.fixture
def watched(page: Page) -> Iterator[Page]:
    """A page that fails its test on a console error, a script error, or a request to another host."""
    complaints = watch(page)
    yield page
    assert complaints == []


def watch(page: Page) -> list[str]:
    """Return the list of complaints about a page, which grows while it is used."""
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        # leaflet.heat reads its canvas: the browser has advice on speed for it.
        advice = message.text.startswith("Canvas2D: Multiple readback")
        if message.type in {"error", "warning"} and not advice:
            complaints.append(f"console {message.type}: {message.text}")

    def fail(request: Request) -> None:
        # Whoever leaves a page cancels what is still under way: its icon, an answer.
        if request.failure != "net::ERR_ABORTED":
            complaints.append(f"failed: {request.url[:200]}: {request.failure}")

    def leave(request: Request) -> None:
        if urlsplit(request.url).hostname not in LOOPBACK:
            complaints.append(f"left the machine: {request.url}")

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(f"script error: {error}"))
    page.on("requestfailed", fail)
    page.on("request", leave)
    return complaints


@pytest.fixture(scope="session")
def programs() -> Path:
    """Where initdb and postgres are."""
    found = find_programs()
    if found is None:
        pytest.skip("NO POSTGRESQL ON THIS MACHINE: the ledger was tested on SQLite only")
    return found


@pytest.fixture(scope="session")
def server(programs: Path) -> Iterator[Server]:
    """A real PostgreSQL server."""
    with running_server(programs) as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    running: Server = request.getfixturevalue("server")
    return running.new_database()


@pytest.fixture(scope="session")
def demo_app() -> "FastAPI":
    """The demo with the town it has by default."""
    from webdemo.app import create_app

    return create_app()


@contextmanager
def served(app: "FastAPI") -> Iterator[str]:
    """Serve an application on this machine, and give its address."""
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, log_config=None))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def demo_url(demo_app: "FastAPI") -> Iterator[str]:
    """The demo served on this machine, as a person would use it."""
    with served(demo_app) as url:
        yield url
