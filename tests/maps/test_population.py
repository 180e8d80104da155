import csv
import json
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest
from playwright.sync_api import Page, expect

from geoind import GeoindError, Grid, InvalidInputError, Places, Prior
from geoind.arrays import FloatArray
from geoind.errors import SitesMismatchError
from geoind.evaluation import synthetic_city
from geoind.maps import heat_layer, population_frame, save_population
from tests.full_disk import full_disk
from tests.maps.test_offline import loaded

CITY = synthetic_city(12)
SURE = (0.9 * CITY.prior.mass, 1.1 * CITY.prior.mass)


def saved(tmp_path: Path, name: str, **options: Any) -> Path:
    path = tmp_path / name
    save_population(CITY.prior, path, projection=CITY.projection, **options)
    return path


def test_the_frame_has_each_cell_where_it_is() -> None:
    frame = population_frame(CITY.prior, CITY.projection, intervals=SURE)
    assert list(frame.columns) == ["mass", "low", "high", "geometry"]
    assert np.array_equal(frame.mass, CITY.prior.mass)
    plane = frame.to_crs(CITY.projection.crs)
    assert np.column_stack([plane.centroid.x, plane.centroid.y]) == pytest.approx(CITY.grid.xy, abs=0.01)
    assert plane.area.to_numpy() == pytest.approx(CITY.grid.cell**2, rel=1e-5)
    assert frame.is_valid.all()


def test_a_rectangular_grid_keeps_its_numbering() -> None:
    grid = Grid(500, -200, cell=100, columns=4, rows=2)
    frame = population_frame(Prior.from_counts(grid, np.arange(8)), CITY.projection).to_crs(CITY.projection.crs)
    assert np.column_stack([frame.centroid.x, frame.centroid.y]) == pytest.approx(grid.xy, abs=0.01)


def test_geojson_holds_masses_and_outlines(tmp_path: Path) -> None:
    content = json.loads(saved(tmp_path, "city.geojson", intervals=SURE).read_text())
    assert len(content["features"]) == 144
    first = content["features"][0]
    assert set(first["properties"]) == {"mass", "low", "high"}
    assert len(first["geometry"]["coordinates"][0]) == 5


def test_geojson_leaves_out_empty_cells_and_other_formats_hold_them(tmp_path: Path) -> None:
    grid = Grid(0, 0, cell=100, columns=5, rows=1)
    population = Prior.from_counts(grid, [1.0, 0.0, 1e-12, 0.9e-6, 1.1e-6])
    high = np.where(np.arange(5) == 2, 0.5, population.mass)
    unsure = (0 * population.mass, high)
    for intervals, wanted in ((None, [0, 4]), (unsure, [0, 2, 4])):
        for suffix in ("geojson", "parquet", "csv"):
            save_population(
                population, tmp_path / f"cells.{suffix}", projection=CITY.projection, intervals=intervals
            )
        cells = json.loads((tmp_path / "cells.geojson").read_text())["features"]
        assert [cell["properties"]["mass"] for cell in cells] == pytest.approx(population.mass[wanted].tolist())
        assert len(geopandas.read_parquet(tmp_path / "cells.parquet")) == 5
        assert len((tmp_path / "cells.csv").read_text().splitlines()) == 6


def test_parquet_comes_back_as_it_was(tmp_path: Path) -> None:
    frame = geopandas.read_parquet(saved(tmp_path, "city.parquet"))
    assert np.array_equal(frame.mass, CITY.prior.mass)
    assert frame.crs.to_epsg() == 4326


def test_csv_holds_the_middle_of_each_cell(tmp_path: Path) -> None:
    with saved(tmp_path, "city.csv", intervals=SURE).open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["lon", "lat", "mass", "low", "high"]
    lonlat = np.array([[float(row["lon"]), float(row["lat"])] for row in rows])
    assert CITY.projection.to_xy(lonlat) == pytest.approx(CITY.grid.xy, abs=0.2)
    assert sum(float(row["mass"]) for row in rows) == pytest.approx(1, abs=1e-6)


@pytest.mark.slow
def test_the_picture_is_a_picture_and_the_map_needs_no_network(tmp_path: Path) -> None:
    import matplotlib.image

    picture = matplotlib.image.imread(saved(tmp_path, "city.png"))
    assert picture.shape[0] > 500
    assert np.unique(picture.reshape(-1, picture.shape[2]), axis=0).shape[0] > 100
    page = saved(tmp_path, "city.html").read_text()
    assert "<title>Where people are, estimated from their reports</title>" in page
    assert "data:image/png" in page
    assert "default-src &#39;none&#39;" in page
    assert loaded(page) <= {"https://leafletjs.com"}


def test_the_map_of_a_population_works_under_its_policy(watched: Page, tmp_path: Path) -> None:
    watched.goto(saved(tmp_path, "city.html").as_uri())
    expect(watched.locator("img.leaflet-image-layer")).to_have_js_property("complete", True)
    expect(watched.locator("details.legend .colour-bar")).to_be_visible()
    assert watched.locator("img.leaflet-image-layer").evaluate("image => image.naturalWidth") > 100


def test_every_pixel_of_the_layer_shows_the_cell_that_lies_there() -> None:
    # One crowded cell far from the middle: its pixels must be where its degrees are.
    grid = Grid(-20_000, -20_000, cell=2000, columns=21, rows=21)
    cell = 18 * 21 + 17
    layer = heat_layer(Prior.from_counts(grid, np.eye(441)[cell]), CITY.projection, pixels=800)
    picture, ((south, west), (north, east)) = decoded(layer.url), layer.bounds
    bright = np.argwhere(picture[:, :, 3] > 0)
    rows, columns = picture.shape[:2]
    lon = west + (east - west) * (bright[:, 1].mean() + 0.5) / columns

    def ordinate(lat: float) -> float:
        return float(np.arcsinh(np.tan(np.radians(lat))))

    height = ordinate(north) - (ordinate(north) - ordinate(south)) * (bright[:, 0].mean() + 0.5) / rows
    lat = np.degrees(np.arctan(np.sinh(height)))
    assert CITY.projection.to_xy([[lon, lat]])[0] == pytest.approx(grid.xy[cell], abs=60)


def decoded(url: str) -> FloatArray:
    import base64
    import io

    import matplotlib.image

    return matplotlib.image.imread(io.BytesIO(base64.b64decode(url.partition(",")[2])))


def test_what_cannot_be_written_is_refused_before_a_file_appears(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"must end in one of \.geojson"):
        saved(tmp_path, "city.tiff")
    with pytest.raises(InvalidInputError, match="over a Grid"):
        population_frame(Prior.uniform(Places([[0, 0]])), CITY.projection)
    with pytest.raises(SitesMismatchError):
        population_frame(Prior.uniform(Grid(0, 0, cell=1, columns=2, rows=1)), CITY.projection, intervals=SURE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".geojson", ".parquet", ".csv", ".png", ".html"])
def test_a_full_disk_leaves_the_older_file_as_it_was(tmp_path: Path, suffix: str) -> None:
    city = synthetic_city(64)
    path = tmp_path / f"city{suffix}"
    path.write_text("old")
    with full_disk(), pytest.raises((OSError, GeoindError)):
        save_population(city.prior, path, projection=city.projection)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
