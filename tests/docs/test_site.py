"""The site builds without warnings, has every public name, loads nothing from elsewhere, and works from a disk."""

import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import dev
from geoind.cli import command_parsers
from tests.docs.pages import ROOT
from tests.test_public_face import PLACES, offered
from tests.webdemo.test_access import violations

MAIN = [
    "index",
    "start/index",
    "guides",
    "files",
    "explanations/epsilon",
    "reference/api/geoind.budgets",
]
"""A page of each kind."""

OLD_LINKS = [
    *(
        f"docs/{name}.md"
        for name in ("accounting", "audit", "clusters", "curator", "demo", "estimate", "evaluation")
    ),
    *(f"docs/{name}.md" for name in ("exact-draws", "glossary", "grids", "keyed-noise", "lectures", "optimal")),
    *(f"docs/{name}.md" for name in ("queries", "spark", "tables", "traces")),
    *(f"docs/benchmarks/{name}.md" for name in ("core", "estimate", "race")),
    "docs/budgets.md#up-to-a-delta-the-accountant",
    "CONTRIBUTING.md",
]
"""Where earlier versions of README led."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning of Sphinx is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, *dev.SITE, "-d", str(folder / "doctrees"), "docs", str(folder / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def entries(site: Path) -> dict[str, str]:
    """Return the documented names of the site's inventory, and the address of each."""
    lines = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    found = re.findall(r"^(\S+) py:\S+ \S+ (\S+) ", zlib.decompress(lines).decode(), re.MULTILINE)
    return dict(found)


@pytest.mark.parametrize("place", PLACES)
def test_every_public_name_is_described_in_the_reference(site: Path, place: str) -> None:
    names = entries(site)
    page = (site / "reference" / "api" / f"{place}.html").read_text(encoding="utf-8")
    parts = dict(part.split('"', 1) for part in page.split('<dt class="sig sig-object py" id="')[1:])
    undocumented = [
        name
        for name in offered(place)
        if not re.search(r"</dt>\s*<dd>\s*<p>\w", parts[f"{place}.{name}"])
        or not names[f"{place}.{name}"].startswith(f"reference/api/{place}.html")
    ]
    assert undocumented == []


def test_every_option_of_every_command_is_on_the_page_of_the_command_line(site: Path) -> None:
    page = (site / "command-line.html").read_text(encoding="utf-8")
    sections = dict(part.split('"', 1) for part in page.split('<section id="geoind-')[1:])
    for name, parser in command_parsers().items():
        section = re.sub(r"<[^>]+>", "", sections[name])
        assert [
            option for action in parser._actions for option in action.option_strings if option not in section
        ] == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = re.compile(
        r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*"""
        r"""|<link\b(?![^>]*rel=["']?(?:canonical|author))[^>]*\bhref=["']?(?:https?:)?//[^>]*"""
    )
    styles = re.compile(r"""(?:@import\s*|url\()["']?(?:https?:)?//[^)]*""")
    pages = {path: loads.findall(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 80
    assert {path.name: found for path, found in pages.items() if found} == {}
    sheets = {path: styles.findall(path.read_text(encoding="utf-8")) for path in site.rglob("*.css")}
    assert {path.name: found for path, found in sheets.items() if found} == {}


@pytest.mark.parametrize("name", MAIN)
def test_a_page_opens_from_a_disk_without_a_network_and_axe_finds_nothing(
    site: Path, page: Page, name: str
) -> None:
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if request.url.startswith("file:") else errors.append(request.url))
    page.context.set_offline(True)
    for theme in ("light", "dark"):
        # Colours that are still changing have another contrast.
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
        page.goto(f"file://{site}/{name}.html")
        assert violations(page, contrast_only=theme == "dark") == [], theme
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # Styles of the page itself are inline data.
    assert [error for error in errors if not error.startswith("data:")] == []


def test_search_works_from_a_disk(site: Path, page: Page) -> None:
    page.context.set_offline(True)
    page.goto(f"file://{site}/search.html?q=PrivateZone")
    page.locator(".search li a", has_text="PrivateZone").first.click()
    expect(page).to_have_url(re.compile(r"geoind\.traces\.html"))


@pytest.mark.parametrize("link", OLD_LINKS)
def test_an_old_link_of_readme_leads_somewhere(site: Path, link: str) -> None:
    file, _, anchor = link.partition("#")
    assert (ROOT / file).exists()
    if anchor:
        built = site / file.removeprefix("docs/").replace(".md", ".html")
        assert f'id="{anchor}"' in built.read_text(encoding="utf-8")
