"""Maps of files: every format, any size, nothing from the network, and what was promised."""

import base64
import io
import json
import math
import re
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Page, expect

from geoind.cli import main
from geoind.errors import InvalidInputError
from geoind.files import read_places
from geoind.maps.reports import CELLS, MOST_POINTS, report_map

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
    assert f"{40 * MOST_POINTS:,} true places" in page


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
    found = re.search(r"\.fitBounds\(\s*(\[\[.*?\]\])", page, re.DOTALL)
    assert found
    (_, west), (_, east) = json.loads(found[1])
    assert 179.8 < west < 180 < east < 180.2
    if count <= MOST_POINTS:
        drawn = re.search(r'"coordinates": (\[\[.*?\]\])', page, re.DOTALL)
        assert drawn
        longitudes = np.array(json.loads(drawn[1]))[:, 0]
        assert np.sort(longitudes % 360) == pytest.approx(np.sort(lonlat[:, 0] % 360), abs=1e-5)
        assert np.ptp(longitudes) < 1


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.csv", "lat,lon\n", "no places to draw"),
        ("names.csv", "a,b\n1,2\n", "say which with"),
        ("wrong.parquet", "no", "cannot be read"),
        ("wrong.gpkg", "no", "no file that GDAL can read"),
        ("bad.csv", "lat,lon\n91,2\n", "latitude"),
        ("bad.ndjson", "{", "line 1"),
    ],
)
def test_a_file_that_cannot_be_drawn_gets_a_sentence_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str, sentence: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    out = tmp_path / "map.html"
    assert main(["map", str(path), "--out", str(out)]) == 2
    assert sentence in capsys.readouterr().err
    assert not out.exists()


def test_a_missing_input_and_an_overwritten_one_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["map", str(tmp_path / "none.csv")]) == 2
    assert "no such file" in capsys.readouterr().err
    path = write(tmp_path / "plain.csv")
    assert main(["map", str(path), "--out", str(path)]) == 2
    assert "overwrite" in capsys.readouterr().err


def test_places_with_a_crs_of_their_own_must_say_which(tmp_path: Path) -> None:
    path = tmp_path / "lines.geojson"
    geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([1], [2]).buffer(1), crs="EPSG:4326").to_file(path)
    with pytest.raises(InvalidInputError, match="must be a Point"):
        list(read_places(path))


def test_a_sanitised_file_becomes_a_page_that_says_what_was_promised(
    watched: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = write(tmp_path / "truth.csv")
    reports, out = tmp_path / "reports.csv", tmp_path / "map.html"
    assert main(["obfuscate", str(truth), str(reports), "--level", "1.3862943611", "--radius", "200"]) == 0
    town = tmp_path / "town.geojson"
    geopandas.GeoDataFrame(
        geometry=geopandas.points_from_xy([24.94], [60.17]).buffer(0.002), crs="EPSG:4326"
    ).to_file(town)
    assert main(["map", str(reports), "--out", str(out), "--basemap", str(town)]) == 0
    assert "Warning" not in capsys.readouterr().err
    watched.goto(out.as_uri())
    expect(watched).to_have_title("Reports of reports.csv")
    expect(watched.get_by_text("3 reports")).to_contain_text("within 688 m of the truth")
    expect(watched.get_by_text("3 reports")).to_contain_text("told apart by a factor of 4 at most")
    expect(watched.locator("canvas.leaflet-zoom-animated")).to_be_visible()


def test_the_page_of_a_file_without_a_promise_says_that_its_places_are_true(
    watched: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write(tmp_path / "plain.parquet"), tmp_path / "map.html"
    assert main(["map", str(path), "--out", str(out)]) == 0
    assert "shows true places" in capsys.readouterr().err
    watched.goto(out.as_uri())
    expect(watched.get_by_role("alert")).to_contain_text("These are true places")
    expect(watched.get_by_text("3 true places")).to_be_visible()
    expect(watched.locator("html")).to_have_attribute("lang", "en")
    # On a phone the legend leaves the map to the reports, and folds away.
    watched.set_viewport_size({"width": 390, "height": 844})
    legend = watched.locator("details.told").bounding_box()
    assert legend is not None
    assert legend["x"] >= 50
    assert legend["x"] + legend["width"] <= 390
    assert legend["height"] < 200
    warning, scale = (
        watched.locator(which).bounding_box() for which in (".unprotected", ".leaflet-control-scale")
    )
    assert warning is not None
    assert scale is not None
    assert warning["y"] + warning["height"] <= scale["y"]
    watched.locator("details.told summary").click()
    folded = watched.locator("details.told").bounding_box()
    assert folded is not None
    assert folded["height"] < legend["height"] - 10
    rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa"]}}
    assert Axe().run(watched, options=rules).response["violations"] == []


def test_the_page_of_reports_does_not_warn(tmp_path: Path) -> None:
    truth, reports, out = write(tmp_path / "truth.csv"), tmp_path / "reports.csv", tmp_path / "map.html"
    assert main(["obfuscate", str(truth), str(reports), "--epsilon", "0.01"]) == 0
    assert main(["map", str(reports), "--out", str(out)]) == 0
    assert "true places" not in out.read_text()
