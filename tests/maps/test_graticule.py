"""Pages of maps in a browser: a dark theme, and lines of latitude and longitude where there is no base map."""

from pathlib import Path

import numpy as np
from playwright.sync_api import Page, expect

from geoind import Grid, Prior, Projection
from geoind.evaluation.report import evaluation_page
from geoind.maps.population import save_population
from geoind.pictures.page import fill


def test_a_page_without_a_base_map_has_a_graticule_that_follows_the_view_and_the_theme(
    watched: Page, tmp_path: Path
) -> None:
    grid = Grid(0, 0, cell=100, columns=3, rows=3)
    save_population(
        Prior.from_counts(grid, np.arange(9.0)), tmp_path / "page.html", projection=Projection(-70.0, -33.4)
    )
    watched.goto((tmp_path / "page.html").as_uri())
    labels = watched.locator(".graticule-label")
    first = labels.all_inner_texts()
    assert any(text.endswith("S") for text in first)
    assert any(text.endswith("W") for text in first)
    assert 6 <= len(first) <= 24
    watched.mouse.move(300, 300)
    watched.mouse.wheel(0, 600)
    expect(labels.first).not_to_have_text(first[0])
    ground = "getComputedStyle(document.querySelector('.leaflet-container')).backgroundColor"
    legend = "getComputedStyle(document.querySelector('.legend')).color"
    light = [watched.evaluate(colour) for colour in (ground, legend)]
    watched.emulate_media(color_scheme="dark")
    dark = [watched.evaluate(colour) for colour in (ground, legend)]
    assert light[0] == "rgb(247, 245, 240)"
    assert dark[0] == "rgb(23, 27, 34)"
    assert light[1] != dark[1]
    # The bar of the legend lies on the ground of the map, as the cells do.
    bar = "getComputedStyle(document.querySelector('.colour-bar')).backgroundColor"
    assert watched.evaluate(bar) == dark[0]
    # The page of an evaluation has figures on white paper: they are inverted.
    picture = fill('<figure><img alt="a" src="data:image/gif;base64,R0lGODlhAQABAAAAACw="></figure>')
    (tmp_path / "evaluation.html").write_text(evaluation_page([picture]))
    watched.goto((tmp_path / "evaluation.html").as_uri())
    assert watched.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 28)"
    assert "invert" in watched.evaluate("getComputedStyle(document.querySelector('img')).filter")
    watched.emulate_media(color_scheme="light")
    assert watched.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert watched.evaluate("getComputedStyle(document.querySelector('img')).filter") == "none"
