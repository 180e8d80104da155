"""Fixtures of several folders (browser, databases, the demo), and which tests are slow."""

import shutil
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import hypothesis
import pytest
from playwright.sync_api import ConsoleMessage, Page, Request, expect
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.postgres import Server, find_programs, running_server
from tests.spark_session import events, spark  # noqa: F401
from tests.trials import trials

if TYPE_CHECKING:
    from fastapi import FastAPI

# The same examples in every run, and no verdict about speed.
hypothesis.settings.register_profile("geoind", deadline=None, derandomize=True, max_examples=trials(100))
hypothesis.settings.load_profile("geoind")

KINDS = {"browser": pytest.mark.browser, "spark": pytest.mark.jvm}
"""Markers of the tests that use a fixture."""

SLOW_FIXTURES = {"browser", "spark", "server", "demo_app"}
"""A browser, a JVM, a PostgreSQL server, the demo with its town."""

SLOW = [
    "webdemo",
    "adapters/test_spark.py",
    "adapters/test_engines.py",
    "docs/test_site.py",
    "extension",
    "audits/test_audit.py",
    "docs/test_notebooks.py",
    "files/test_paid_once.py",
    "docs/test_docs.py",
    "docs/test_commands.py",
    "files/test_paid_model.py",
    "traces/test_payment.py",
    "test_hostile_text.py",
    "evaluation/test_report.py",
    "adapters/test_dask.py",
    "cli/test_demo.py",
    "files/test_fuzz.py",
    "files/test_planted.py",
    "files/test_private.py",
    "files/test_vector.py",
    "files/test_what_leaves.py",
    "files/test_writers.py",
    "space/test_vector_files.py",
    "space/test_raster_files.py",
]
"""Files and folders whose tests start servers, clusters, kernels or a process of GDAL per file, kill processes, or
draw for long; the longest first. Single slow tests have the marker in their own files."""

ONE_WORKER = {
    "tests/adapters/test_spark.py": "JVM",
    "tests/adapters/test_engines.py": "JVM",
    "tests/webdemo/": "demo",
}
"""Files that share a costly fixture, by the beginning of their path: one worker runs all of a group."""

FOLDER = Path(__file__).parent
FAST = "not slow"
"""The expression of `python3 dev.py test --fast`."""

PATIENCE = 120_000
"""Milliseconds; a page may be slow on a busy machine."""
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


@cache
def slow_rank(path: Path) -> int:
    """Return where `SLOW` lists a file, or the folder that it is in; its length if it does not."""
    return next((rank for rank, slow in enumerate(SLOW) if path.is_relative_to(FOLDER / slow)), len(SLOW))


def is_slow(path: Path) -> bool:
    """Return whether a file is listed as slow, or in a folder that is."""
    return slow_rank(path) < len(SLOW)


class _ByFile(LoadFileScheduling):  # type: ignore[misc]
    """Give whole files to workers, and files that share a fixture to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((group for start, group in ONE_WORKER.items() if file.startswith(start)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Return the scheduler of `--dist loadfile`."""
    return _ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import slow files for the fast tests."""
    return True if config.option.markexpr == FAST and is_slow(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by what they need, put slow ones first, and refuse names that differ between processes."""
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"give this test ids without an address in memory: {item.nodeid}")
        fixtures = {*getattr(item, "fixturenames", ())}
        for fixture, kind in KINDS.items():
            if fixture in fixtures:
                item.add_marker(kind)
        # The fixture `url` starts the server only for this parameter.
        callspec = getattr(item, "callspec", None)
        on_postgresql = callspec is not None and callspec.params.get("url") == "postgresql"
        kinds = {mark.name for mark in item.iter_markers()} & {"browser", "jvm", "notebook"}
        if fixtures & SLOW_FIXTURES or kinds or on_postgresql or is_slow(item.path):
            item.add_marker(pytest.mark.slow)
    # Files are handed out in this order: a long one at the end would leave a worker without work.
    items.sort(key=lambda item: slow_rank(item.path))


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, object]:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    chromium = next((found for found in map(shutil.which, names) if found), None)
    if chromium is None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("chromium is not on this machine: nothing was tested in a browser", stacklevel=1)
        pytest.skip("chromium is not on this machine: nothing was tested in a browser")
    # A second page of a site uses the scripts that the first has compiled: half the time of a load.
    return {"executable_path": chromium, "args": [*QUIET, "--process-per-site"], "timeout": PATIENCE}


@pytest.fixture
def page(page: Page) -> Page:
    """A page with a long timeout."""
    page.set_default_timeout(PATIENCE)
    return page


@pytest.fixture
def watched(page: Page) -> Iterator[Page]:
    """A page that fails its test on a console error, a script error, or a request to another host."""
    errors = watch(page)
    yield page
    assert errors == []


def watch(page: Page) -> list[str]:
    """Return a list to which the errors of a page are added."""
    errors: list[str] = []

    def add_message(message: ConsoleMessage) -> None:
        # leaflet.heat reads its canvas; the browser prints advice on speed.
        advice = message.text.startswith("Canvas2D: Multiple readback")
        if message.type in {"error", "warning"} and not advice:
            errors.append(f"console {message.type}: {message.text}")

    def add_failure(request: Request) -> None:
        # Requests that are open when a page is left are cancelled.
        if request.failure != "net::ERR_ABORTED":
            errors.append(f"failed: {request.url[:200]}: {request.failure}")

    def add_outside(request: Request) -> None:
        if urlsplit(request.url).hostname not in LOOPBACK:
            errors.append(f"left the machine: {request.url}")

    page.on("console", add_message)
    page.on("pageerror", lambda error: errors.append(f"script error: {error}"))
    page.on("requestfailed", add_failure)
    page.on("request", add_outside)
    return errors


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of initdb and postgres."""
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
    """The demo with its default town."""
    from webdemo.app import create_app

    return create_app()


@contextmanager
def served(app: "FastAPI") -> Iterator[str]:
    """Serve an application on this machine, and yield its URL."""
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
    """The URL of the demo, served on this machine."""
    with served(demo_app) as url:
        yield url
