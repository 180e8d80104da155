"""A base map of others: its name and the names in it are shown, and run nothing."""

from pathlib import Path

import geopandas
import numpy as np
import pytest
import shapely
from playwright.sync_api import Page, expect

from tests.conftest import served
from tests.hostile import HOSTILE
from tests.webdemo.browser import TABS, VIEWS, settle, show, turn_to
from webdemo.app import create_app
from webdemo.static_build import write_static

NAMES = [text for text in HOSTILE if text.isprintable()]
FILE = "{{7*7}}<img src=x onerror='window.pwned=1'>{%\u202e\"`.geojson"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Houses and cafés whose names are hostile, in a file whose name is."""
    path = tmp_path_factory.mktemp("town") / FILE
    corners = np.array([(x, y) for x in np.arange(8) for y in np.arange(8)]) * 0.001 + [24.94, 60.165]
    houses = [shapely.box(x, y, x + 0.0004, y + 0.0004) for x, y in corners]
    middle = [shapely.Point(x + 0.0001, y + 0.0001) for x, y in corners[: len(NAMES)]]
    geopandas.GeoDataFrame(
        {
            "building": ["yes"] * len(houses) + [None] * len(middle),
            "amenity": [None] * len(houses) + ["cafe"] * len(middle),
            "name": [None] * len(houses) + NAMES,
        },
        geometry=[*houses, *middle],
        crs="EPSG:4326",
    ).to_file(path)
    return path


def test_the_demo_shows_text_of_a_base_map_and_does_not_run_it(
    watched: Page, town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served(create_app(town)) as url:
        # To compare mechanisms, the demo solves them for the town; that tab shows no name of the map.
        for tab in [name for name in TABS if name != "compare"]:
            show(watched, url, tab)
            assert watched.evaluate("window.pwned") is None
            assert watched.locator("body").get_attribute("data-attribution") == f"Map data: {FILE}"
        show(watched, url, "near", "&query-radius=300")
        settle(watched)
        expect(watched.locator("#nearest li").first).to_be_visible()
        expect(watched.locator(".leaflet-control-attribution")).to_contain_text("{{7*7}}<img src=x")
        assert watched.evaluate("document.querySelectorAll('img[src=x]').length") == 0
        watched.goto("about:blank")
    assert list(tmp_path.iterdir()) == []


def test_the_story_shows_text_of_a_base_map_and_does_not_run_it(
    watched: Page, town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_static(tmp_path / "story", town)
    watched.goto((tmp_path / "story" / "index.html").as_uri())
    expect(watched.locator("html[data-ready=yes]")).to_be_attached()
    for view in VIEWS:
        turn_to(watched, view)
    expect(watched.locator("#attribution")).to_contain_text(f"Map data: {FILE}")
    # The names of places are not part of the story.
    assert watched.evaluate("TOWN.food.every(Number.isInteger) && TOWN.food.length") == 2 * len(NAMES)
    assert watched.evaluate("window.pwned") is None
    assert [path.name for path in tmp_path.iterdir()] == ["story"]
