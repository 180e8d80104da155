"""The map of the example shows true locations and reports."""

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from geoind import SphericalLaplace
from geoind.evaluation import synthetic_city
from geoind.maps import save_offline
from geoind.maps.example import CONNECTED, city_map

CITY = synthetic_city(16)
NOISE = SphericalLaplace(0.01)


def drawn(count: int) -> tuple[np.ndarray, np.ndarray, str]:
    truth = CITY.sample_lonlat(count, rng=1)
    reports = NOISE.sample(truth, rng=2)
    return truth, reports, city_map(CITY, truth, reports, NOISE).get_root().render()


def coordinates(page: str, kind: str) -> list[Any]:
    found = re.findall(r'"geometry": (\{[^{}]*"type": "' + kind + r'"[^{}]*\})', page)
    return [json.loads(shape)["coordinates"] for shape in found]


@pytest.mark.parametrize("count", [5, CONNECTED + 20])
def test_people_and_reports_are_where_they_are_and_some_are_joined(count: int) -> None:
    truth, reports, page = drawn(count)
    people, drawn_reports = coordinates(page, "MultiPoint")
    assert people == truth.tolist()
    assert drawn_reports == reports.tolist()
    (lines,) = coordinates(page, "MultiLineString")
    assert lines == np.stack([truth, reports], axis=1)[:CONNECTED].tolist()
    assert f"for {min(count, CONNECTED)} people" in page


def test_the_circle_and_the_legend_say_how_far_reports_are() -> None:
    truth, _, page = drawn(3)
    circle = re.search(r"L\.circle\(\s*(\[.*?\]),\s*(\{.*?\})", page, re.DOTALL)
    assert circle
    assert json.loads(circle[1]) == truth[0, ::-1].tolist()
    assert json.loads(circle[2])["radius"] == pytest.approx(NOISE.radius_quantile(0.95))
    assert f"epsilon 0.01 per metre: the mean distance is {NOISE.mean_radius:.0f} m" in page


def test_the_background_is_darkest_where_most_people_live() -> None:
    _, _, page = drawn(1)
    found = re.search(r"data:image/png;base64,([A-Za-z0-9+/=]+)", page)
    assert found
    shades = np.asarray(Image.open(io.BytesIO(base64.b64decode(found[1]))).convert("L"))
    most = int(CITY.prior.mass.argmax())
    row, column = divmod(most, CITY.grid.columns)
    darkest = np.argwhere(shades == shades.min())
    # Rows of a picture go down, those of a grid go up; Mercator moves them a little.
    up = 1 - (darkest[:, 0].mean() + 0.5) / shades.shape[0]
    right = (darkest[:, 1].mean() + 0.5) / shades.shape[1]
    assert up == pytest.approx((row + 0.5) / CITY.grid.rows, abs=1 / CITY.grid.rows)
    assert right == pytest.approx((column + 0.5) / CITY.grid.columns, abs=1 / CITY.grid.columns)


def test_the_page_asks_for_no_tiles_and_has_the_title_of_its_legend() -> None:
    _, _, page = drawn(1)
    assert "tileLayer" not in page
    assert "<title>A synthetic city, obfuscated</title>" in page
    assert "<summary>A synthetic city, obfuscated</summary>" in page


def test_the_page_works_under_its_policy(watched: Page, tmp_path: Path) -> None:
    truth = CITY.sample_lonlat(20, rng=1)
    save_offline(city_map(CITY, truth, NOISE.sample(truth, rng=2), NOISE), tmp_path / "map.html")
    watched.goto((tmp_path / "map.html").as_uri())
    expect(watched.locator(".leaflet-control-layers-overlays label")).to_have_count(4)
    expect(watched.locator("details.legend svg")).to_have_count(4)
    watched.get_by_label("true locations", exact=True).uncheck()
    expect(watched.locator("img.leaflet-image-layer")).to_be_visible()
