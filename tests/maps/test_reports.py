"""Maps of files: every format, any size, nothing from the network, and what was promised."""

import json
import re
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pytest
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


def heat_cells(page: str) -> list[tuple[float, float, float]]:
    """Latitude, longitude and weight of each cell of the page's heat map."""
    found = re.search(r"L\.heatLayer\(\s*(\[\[.*?\]\])", page, re.DOTALL)
    assert found
    return [(lat, lon, weight) for lat, lon, weight in json.loads(found[1])]


def test_few_reports_are_points_and_many_a_heat_map_of_bounded_size() -> None:
    rng = np.random.default_rng(1)
    few = report_map(lambda: iter([LONLAT]), title="few")
    assert "MultiPoint" in few
    assert "L.heatLayer(" not in few.replace("L.heatLayer=function", "")
    sizes = []
    for count in (MOST_POINTS + 1, 40 * MOST_POINTS):
        lonlat = rng.normal([24.94, 60.17], [0.02, 0.01], (count, 2))
        page = report_map(np.array_split(lonlat, 7).__iter__, title="many")
        cells = heat_cells(page)
        assert max(weight for _, _, weight in cells) == 1
        centre = max(cells, key=lambda cell: cell[2])
        assert centre[:2] == pytest.approx((60.17, 24.94), abs=0.05)
        sizes.append(len(cells))
    assert sizes[1] <= CELLS**2
    assert f"{40 * MOST_POINTS:,} true places" in page


def test_heat_counts_every_report_once() -> None:
    lonlat = np.repeat([[10.0, 50.0], [10.1, 50.1]], [4 * MOST_POINTS, MOST_POINTS], axis=0)
    page = report_map(lambda: iter([lonlat]), title="two places")
    cells = heat_cells(page)
    assert sorted(weight for _, _, weight in cells) == pytest.approx([0.5, 1.0], abs=0.01)


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


def test_the_page_of_reports_does_not_warn(tmp_path: Path) -> None:
    truth, reports, out = write(tmp_path / "truth.csv"), tmp_path / "reports.csv", tmp_path / "map.html"
    assert main(["obfuscate", str(truth), str(reports), "--epsilon", "0.01"]) == 0
    assert main(["map", str(reports), "--out", str(out)]) == 0
    assert "true places" not in out.read_text()
