"""The story opened from a disk, without a server."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import PATIENCE, watch
from webdemo.static_build import write_static

# The page's own randomness, but the same in every run: each load begins it again.
FIXED_DRAWS = """
let a = 1, b = 2, c = 3, d = 4;
const word = () => {
    const t = (a + b + d) | 0;
    d = (d + 1) | 0; a = b ^ (b >>> 9); b = (c + (c << 3)) | 0; c = (c << 21) | (c >>> 11);
    c = (c + t) | 0; return t >>> 0;
};
for (let i = 0; i < 20; i += 1) word();
crypto.getRandomValues = (array) => array.map((_, i) => (array[i] = word()));
"""


# The seeds of the questions count from 1, also over several loads: a test draws the same noise in every run.
SEEDS = """
const drawn = crypto.getRandomValues.bind(crypto);
crypto.getRandomValues = (array) => {
    if (!(array instanceof BigUint64Array)) return drawn(array);
    sessionStorage.seeds = 1 + Number(sessionStorage.seeds ?? 0);
    array[0] = BigInt(sessionStorage.seeds) << 15n;
    return array;
};
"""


@pytest.fixture(scope="session")
def kept(browser: Browser, demo_url: str) -> Iterator[Page]:
    """A page of the demo's site that stays open: the process that has compiled the scripts stays, too."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"{demo_url}static/icon.svg")
    yield page
    context.close()


@pytest.fixture
def page(kept: Page) -> Iterator[Page]:
    """A new page, with nothing stored, whose noise is the same in every run."""
    page = kept.context.new_page()
    page.add_init_script(SEEDS)
    yield page
    page.close()
    kept.evaluate("localStorage.clear()")
    kept.context.clear_permissions()


@pytest.fixture(scope="module")
def client(demo_url: str) -> Iterator[httpx.Client]:
    """A client of the demo without a browser."""
    # The first question about mechanisms solves them, which takes long on a busy machine.
    with httpx.Client(base_url=demo_url, trust_env=False, timeout=120) as client:
        yield client


@pytest.fixture(scope="session")
def static_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The story as files."""
    folder = tmp_path_factory.mktemp("static")
    write_static(folder)
    return folder


@pytest.fixture(scope="session")
def local(browser: Browser, static_folder: Path) -> Iterator[Page]:
    """The story's page, opened once from a disk and watched."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.add_init_script(FIXED_DRAWS)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    complaints = watch(page)
    page.goto(static_folder.joinpath("index.html").as_uri())
    expect(page.locator("html[data-ready=yes]")).to_be_attached()
    yield page
    context.close()
    assert complaints == []


@pytest.fixture
def story(local: Page, static_folder: Path) -> Page:
    """The story from its beginning."""
    local.set_viewport_size({"width": 1280, "height": 800})
    local.goto("about:blank")
    local.goto(static_folder.joinpath("index.html").as_uri())
    expect(local.locator("html[data-ready=yes]")).to_be_attached()
    return local
