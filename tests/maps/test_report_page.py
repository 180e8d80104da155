"""Maps of files: every format, any size, nothing from the network, and the promise."""

import base64
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from geoind import SphericalLaplace
from geoind.errors import InvalidInputError
from geoind.files import read_places
from geoind.maps import Basemap, report_map
from geoind.maps.report_page import CELLS, MOST_POINTS
from geoind.tables import PersonTotal, ReleaseRecord
from tests.hostile import HOSTILE

LONLAT = np.array([[24.9384, 60.1699], [24.9414, 60.1708], [24.95, 60.175]])


def write(path: Path, lonlat: np.ndarray = LONLAT) -> Path:
    frame = pd.DataFrame({"id": range(len(lonlat)), "Lon": lonlat[:, 0], "latitude": lonlat[:, 1]})
    points = geopandas.GeoDataFrame(frame[["id"]], geometry=geopandas.points_from_xy(*lonlat.T), crs="EPSG:4326")
    if path.name.startswith("geo"):
        if path.suffix == ".parquet":
            points.to_crs("EPSG:3067").to_parquet(path)
        else:
            points.to_file(path)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".ndjson":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


@pytest.mark.parametrize(
    "name",
    [
        "plain.parquet",
        "geo.parquet",
        "plain.csv",
        "plain.csv.gz",
        "plain.tsv",
        "plain.ndjson",
        "geo.geojson",
        "geo.gpkg",
    ],
)
def test_every_format_gives_the_same_places(tmp_path: Path, name: str) -> None:
    found = np.concatenate(list(read_places(write(tmp_path / name))))
    assert found == pytest.approx(LONLAT, abs=1e-8)


def test_columns_can_be_chosen_and_rows_without_a_place_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "two.parquet"
    pd.DataFrame({"x": [1.0, None, 3.0], "y": [4.0, 5.0, 6.0], "lat": 0.0, "lon": 0.0}).to_parquet(path)
    found = np.concatenate(list(read_places(path, lon="x", lat="y")))
    assert found.tolist() == [[1, 4], [3, 6]]


def heat_picture(page: str) -> np.ndarray:
    """The page's heat map: red, green, blue and alpha of each cell, from the north-west."""
    found = re.search(r"L\.imageOverlay\(\s*\"data:image/png;base64,([^\"]+)\"", page)
    assert found
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(found[1]))))


def heat_bounds(page: str) -> list[list[float]]:
    """South-west and north-east corner of the heat map."""
    found = re.search(r"L\.imageOverlay\(\s*\"[^\"]+\",\s*(\[\[.*?\]\])", page, re.DOTALL)
    assert found
    bounds: list[list[float]] = json.loads(found[1])
    return bounds


def test_few_reports_are_points_and_many_a_heat_map_of_bounded_size() -> None:
    rng = np.random.default_rng(1)
    few = report_map(lambda: iter([LONLAT]), title="few")
    assert "MultiPoint" in few
    assert "L.imageOverlay(" not in few.split("</script>")[-2]
    for count in (MOST_POINTS + 1, 40 * MOST_POINTS):
        lonlat = rng.normal([24.94, 60.17], [0.02, 0.01], (count, 2))
        page = report_map(np.array_split(lonlat, 7).__iter__, title="many")
        picture = heat_picture(page)
        assert picture.shape == (CELLS, CELLS, 4)
        # The more reports, the darker: around the centre.
        (south, west), (north, east) = heat_bounds(page)
        row, column = np.argwhere(picture[..., 0] == picture[..., 0][picture[..., 3] > 0].min()).mean(axis=0)
        assert north - (north - south) * row / CELLS == pytest.approx(60.17, abs=0.01)
        assert west + (east - west) * column / CELLS == pytest.approx(24.94, abs=0.02)
    assert f"{40 * MOST_POINTS:,} true locations" in page


def test_the_page_of_a_heat_map_works_under_its_policy(watched: Page, tmp_path: Path) -> None:
    lonlat = np.random.default_rng(1).normal([24.94, 60.17], [0.02, 0.01], (MOST_POINTS + 1, 2))
    path = tmp_path / "map.html"
    path.write_text(report_map(lambda: iter([lonlat]), title="many", basemap=town("town")), encoding="utf-8")
    watched.goto(path.as_uri())
    expect(watched.locator("img.leaflet-image-layer")).to_have_js_property("naturalWidth", CELLS)
    expect(watched.get_by_text("Map data: town")).to_be_visible()
    # The background is that of the legend's style sheet, the last one of the page.
    assert (
        watched.locator(".folium-map").evaluate("map => getComputedStyle(map).backgroundColor")
        == "rgb(247, 245, 240)"
    )


def test_heat_is_where_the_reports_are_and_stronger_where_they_are_more() -> None:
    lonlat = np.repeat([[10.0, 50.0], [10.1, 60.0]], [4 * MOST_POINTS, MOST_POINTS], axis=0)
    page = report_map(lambda: iter([lonlat]), title="two places")
    picture, ((south, west), (north, east)) = heat_picture(page), heat_bounds(page)
    flat = [math.asinh(math.tan(math.radians(lat))) for lat in (south, 50.0, 60.0, north)]
    for place, lon in ((1, 10.0), (2, 10.1)):
        row = CELLS - 1 - int(CELLS * (flat[place] - flat[0]) / (flat[3] - flat[0]))
        column = int(CELLS * (lon - west) / (east - west))
        assert picture[row, column, 3] > 200
    reds = [
        picture[: CELLS // 2, :, 0][picture[: CELLS // 2, :, 3] > 200].min(),
        picture[CELLS // 2 :, :, 0].min(),
    ]
    assert reds[1] < reds[0]


def test_an_even_crowd_gives_an_even_picture() -> None:
    lonlat = np.random.default_rng(5).uniform([24.9, 60.1], [25.0, 60.2], (400_000, 2))
    picture = heat_picture(report_map(lambda: iter([lonlat]), title="even")).astype(float)
    inner = picture[20:-20, 20:-20, 1]
    # No rows or columns stand out, as they did when cells were drawn one by one.
    for axis in (0, 1):
        assert np.ptp(inner.mean(axis=axis)) < 0.15 * inner.mean()


@pytest.mark.parametrize("count", [100, MOST_POINTS + 100])
def test_reports_on_both_sides_of_the_antimeridian_are_drawn_together(count: int) -> None:
    rng = np.random.default_rng(2)
    lonlat = np.column_stack([rng.normal(180.0, 0.02, count), rng.normal(-16.8, 0.02, count)])
    lonlat[:, 0] = (lonlat[:, 0] + 180) % 360 - 180
    assert np.ptp(lonlat[:, 0]) > 359
    page = report_map(lambda: iter([lonlat]), title="Fiji")
    # The last script draws the map; those before it are Leaflet.
    found = re.search(r"\.fitBounds\(\s*(\[\[.*?\]\])", page.rsplit("<script>", 1)[1], re.DOTALL)
    assert found
    (_, west), (_, east) = json.loads(found[1])
    assert 179.8 < west < 180 < east < 180.2
    if count <= MOST_POINTS:
        drawn = re.search(r'"coordinates": (\[\[.*?\]\])', page, re.DOTALL)
        assert drawn
        longitudes = np.array(json.loads(drawn[1]))[:, 0]
        assert np.sort(longitudes % 360) == pytest.approx(np.sort(lonlat[:, 0] % 360), abs=1e-5)
        assert np.ptp(longitudes) < 1


def test_places_with_a_crs_of_their_own_must_say_which(tmp_path: Path) -> None:
    path = tmp_path / "lines.geojson"
    geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([1], [2]).buffer(1), crs="EPSG:4326").to_file(path)
    with pytest.raises(InvalidInputError, match="must be a point"):
        list(read_places(path))


def promised(**members: Any) -> ReleaseRecord:
    """A promise with members that a record could claim, whatever its reader allows."""
    promise = ReleaseRecord.of(SphericalLaplace(0.01), unit="column")
    for name, value in members.items():
        object.__setattr__(promise, name, value)
    return promise


def town(name: str) -> Basemap:
    house = geopandas.GeoDataFrame(
        {"kind": ["buildings"], "floors": [1.0]},
        geometry=geopandas.points_from_xy([24.94], [60.17]).buffer(0.002),
        crs="EPSG:4326",
    )
    return Basemap(name, f"Map data: {name}", house, house[:0])


@pytest.mark.parametrize("epsilon", [0.01, math.inf])
def test_text_from_outside_is_shown_and_not_run(
    watched: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epsilon: float
) -> None:
    monkeypatch.chdir(tmp_path)
    words = " ".join(HOSTILE)
    page = report_map(
        lambda: iter([LONLAT]),
        title=words,
        record=promised(mechanism=words, epsilon=epsilon, session=words),
        basemap=town(words),
    )
    path = tmp_path / "map.html"
    path.write_text(page, encoding="utf-8")
    watched.goto(path.as_uri())
    legend = watched.locator("details.legend")
    expect(legend.locator("summary")).to_contain_text("{{7*7}}")
    expect(legend).to_contain_text("Map data: {{7*7}}")
    # The browser leaves out NUL, and shows a lone surrogate as the page does.
    assert legend.inner_text().count("</script><script>window.pwned=1</script>") >= 3
    assert watched.title().startswith("{{7*7}} {{ cycler")
    assert watched.evaluate("window.pwned") is None
    assert [path.name for path in tmp_path.iterdir()] == ["map.html"]


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"epsilon": 100.0, "radius": 1e9}, "by a factor of more than 10^6."),
        ({"epsilon": 1e300, "radius": 1e300}, "by a factor of more than 10^6."),
        ({"epsilon": 3.5, "level": 700.0, "radius": 200.0}, "by a factor of more than 10^6."),
        ({"epsilon": 100.0, "session": "Session", "fresh": 0.01, "radius": 200.0}, "a person&#39;s whole trace"),
        (
            {"epsilon": 1.0, "session": "Session", "fresh": 0.01, "radius": 2.0},
            "all reports of a person together change",
        ),
        ({"epsilon": 0.01, "radius": 100.0}, "by a factor of 2.72 at most."),
        ({"epsilon": 1e12, "radius": 1e-6}, "Within 1e-06 m a report"),
        ({"epsilon": 1e12}, "Within 1.386e-12 m a report"),
        ({"epsilon": 5e-324}, "m a report changes the odds"),
        ({"epsilon": math.inf, "level": 700.0, "radius": 1e-6}, "No bound on the privacy loss per metre, Own"),
        ({"epsilon": math.inf, "level": 700.0, "radius": 1e-6, "delta": 0.1}, "level 700 within 1e-06 m"),
        ({"epsilon": math.inf, "sigma": 1e9}, "Gaussian noise, sigma 1e+09 m"),
    ],
    ids=str,
)
def test_every_promise_has_a_page_however_large_its_numbers(members: dict[str, Any], sentence: str) -> None:
    page = report_map(lambda: iter([LONLAT]), title="large", record=promised(mechanism="Own", **members))
    assert sentence in page
    assert "epsilon inf" not in page


@pytest.mark.parametrize("decimals", [0, 2, 5])
@pytest.mark.parametrize("epsilon", [0.01, 1000.0, 1e12])
def test_the_page_says_how_far_reports_lie_with_the_rounding_of_the_lattice(epsilon: float, decimals: int) -> None:
    noise = SphericalLaplace(epsilon, decimals=decimals)
    page = report_map(lambda: iter([LONLAT]), title="coarse", record=ReleaseRecord.of(noise, unit="column"))
    said = re.search(r"95 % of the reports lie within ([\d.e+]+) m of the true location", page)
    assert said
    assert float(said[1]) == pytest.approx(noise.reach(0.95), rel=0.05)


@pytest.mark.parametrize("persons", [1, 2])
def test_the_page_states_the_totals_of_the_busiest_and_of_the_median_person(persons: int) -> None:
    totals = {
        "busiest": PersonTotal(reports=9, epsilon=0.09, level=8.0, radius=100.0, delta=1e-6),
        "median": PersonTotal(reports=2, epsilon=0.02),
    }
    record = ReleaseRecord.of(SphericalLaplace(0.01), unit="column", persons=persons, **totals)
    page = report_map(lambda: iter([LONLAT]), title="totals", record=record)
    assert f"the busiest has {totals['busiest']}." in page
    assert (f"The median person has {totals['median']}." in page) is (persons > 1)
    several = report_map(lambda: iter([LONLAT]), title="totals", record=record, releases=2)
    assert "busiest" not in several
    assert "2 releases: the reports of a person in all of them add up." in several


def test_one_report_is_singular() -> None:
    promise = ReleaseRecord.of(SphericalLaplace(0.01), unit="column")
    assert "\n1 report<br>" in report_map(lambda: iter([LONLAT[:1]]), title="one", record=promise)
    assert "\n1 true location\n" in report_map(lambda: iter([LONLAT[:1]]), title="one")
