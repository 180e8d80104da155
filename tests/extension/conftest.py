"""One browser with the extension for all tests of a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Playwright

from tests.extension.browser import Extended, extended, served_pages
from webdemo.extension_build import write_extension


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked extension for Chromium."""
    folder = tmp_path_factory.mktemp("unpacked")
    write_extension(folder, "chromium")
    return folder


@pytest.fixture(scope="session")
def port() -> Iterator[int]:
    """The port of the pages."""
    with served_pages() as port:
        yield port


@pytest.fixture(scope="module")
def chromium(
    playwright: Playwright,
    browser_type_launch_args: dict[str, Any],
    folder: Path,
    port: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Extended]:
    """Chromium with the extension, at the true position."""
    profile = tmp_path_factory.mktemp("profile")
    with extended(playwright, browser_type_launch_args, folder, profile, port) as running:
        running.is_at()
        yield running
