"""Base maps: OpenStreetMap's tags where a file has them, geometry types where not."""

from pathlib import Path

import geopandas
import pandas as pd
import pyogrio
import pytest
import shapely

from geoind.errors import InvalidInputError
from geoind.maps.basemap import BASE_STYLE, Basemap, read_basemap

HOUSE = shapely.box(2.0, 48.0, 2.001, 48.001)
STREET = shapely.LineString([(2.0, 48.0), (2.01, 48.0)])
SHOP = shapely.Point(2.005, 48.0005)


@pytest.fixture(scope="module")
def helsinki() -> Basemap:
    return read_basemap()


def test_helsinki_has_streets_buildings_water_and_places(helsinki: Basemap) -> None:
    counts = helsinki.features["kind"].value_counts()
    assert set(counts.index) == {*BASE_STYLE} - {"extent"}
    assert counts["buildings"] > 450
    assert counts[["main", "streets", "paths"]].sum() > 2400
    assert 1650 < len(helsinki.places) < 1750
    assert set(helsinki.places["kind"]) == {"food", "shop", "sight", "other"}
    assert (helsinki.places["label"] == "cafe").sum() > 80
    assert (helsinki.buildings["floors"] > 1).sum() > 100


def test_helsinki_lies_where_it_lies(helsinki: Basemap) -> None:
    west, south, east, north = helsinki.bounds
    assert 24.93 < west < 24.94 < 24.95 < east < 24.96
    assert 60.16 < south < 60.165 < 60.175 < north < 60.18


def test_the_folium_layer_has_one_feature_per_kind(helsinki: Basemap) -> None:
    features = helsinki.to_folium().data["features"]
    assert [feature["properties"]["kind"] for feature in features] == list(BASE_STYLE)


@pytest.mark.parametrize("suffix", ["geojson", "gpkg"])
def test_without_tags_lines_are_streets_areas_buildings_and_points_places(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"town.{suffix}"
    geopandas.GeoDataFrame(geometry=[HOUSE, STREET, SHOP], crs="EPSG:4326").to_file(path)
    town = read_basemap(path)
    assert town.name == "town"
    assert sorted(town.features["kind"]) == ["buildings", "streets"]
    assert list(town.places["label"]) == ["place"]
    assert town.bounds == pytest.approx((2.0, 48.0, 2.01, 48.001))


def test_tags_decide_and_metres_become_degrees(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame(
        {
            "natural": ["water", None, None, None],
            "building": [None, "yes", None, None],
            "building:levels": [None, "5", None, None],
            "amenity": [None, "cafe", None, "bench"],
            "name": [None, "Chez nous", None, None],
        },
        geometry=[HOUSE, HOUSE, HOUSE, SHOP],
        crs="EPSG:4326",
    )
    path = tmp_path / "town.gpkg"
    frame.to_crs("EPSG:2154").to_file(path)
    town = read_basemap(path)
    assert sorted(town.features["kind"]) == ["buildings", "water"]
    assert list(town.buildings["floors"]) == [5]
    assert list(town.places["kind"]) == ["food", "other"]
    assert list(town.places["name"]) == ["Chez nous", ""]
    assert town.bounds == pytest.approx((2.0, 48.0, 2.005, 48.001), abs=1e-6)


def test_a_file_that_is_no_map_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="does not exist"):
        read_basemap(tmp_path / "none.gpkg")
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear reader")
    with pytest.raises(InvalidInputError, match=r"must end in one of \.gpkg"):
        read_basemap(letter)
    empty = tmp_path / "empty.geojson"
    geopandas.GeoDataFrame({"building": [None]}, geometry=[HOUSE], crs="EPSG:4326").to_file(empty)
    with pytest.raises(InvalidInputError, match="no streets, buildings or places"):
        read_basemap(empty)
    table = tmp_path / "table.gpkg"
    pyogrio.write_dataframe(pd.DataFrame({"id": [1]}), table)
    with pytest.raises(InvalidInputError, match="holds no shapes"):
        read_basemap(table)
    nowhere = tmp_path / "nowhere.gpkg"
    with pytest.warns(UserWarning, match="crs"):
        geopandas.GeoDataFrame(geometry=[HOUSE]).to_file(nowhere)
    with pytest.raises(InvalidInputError, match="must have a CRS"):
        read_basemap(nowhere)


def test_a_map_of_one_place_shows_its_surroundings(tmp_path: Path) -> None:
    path = tmp_path / "one.geojson"
    geopandas.GeoDataFrame(geometry=[shapely.Point(2.0, 48.0)], crs="EPSG:4326").to_file(path)
    west, south, east, north = read_basemap(path).bounds
    assert west < 2.0 < east
    assert south < 48.0 < north
    assert len(read_basemap(path).to_folium().data["features"]) == 1
