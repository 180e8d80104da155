import json
import os
from pathlib import Path

import geopandas
import numpy as np
import pyproj
import pyproj.network
import pytest
import shapely

from geoind import InvalidInputError
from geoind.space.crs import LONLAT, as_crs, from_lonlat, points_lonlat, same_crs, to_lonlat

FRANCE = np.array([[2.2945, 48.8584], [7.75, 48.58], [-1.55, 47.22]])


@pytest.mark.parametrize("crs", ["EPSG:2154", "EPSG:3857", "EPSG:4326", "EPSG:32631", LONLAT])
def test_the_way_there_and_back_ends_where_it_began(crs: str) -> None:
    np.testing.assert_allclose(to_lonlat(from_lonlat(FRANCE, crs), crs), FRANCE, atol=1e-9)


def test_degrees_come_longitude_first_whatever_order_a_crs_writes_them_in() -> None:
    # In EPSG:4258 (ETRS89) the latitude is written first.
    np.testing.assert_allclose(to_lonlat(FRANCE, "EPSG:4258"), FRANCE, atol=1e-6)


def test_a_place_beyond_the_reach_of_a_crs_is_infinite_and_not_somewhere_else() -> None:
    from_space = "+proj=ortho +lat_0=48 +lon_0=2"
    assert np.isinf(from_lonlat(np.array([[-178.0, -48.0]]), from_space)).all()


def test_two_ways_to_write_one_crs_are_the_same_and_two_crs_are_not() -> None:
    assert same_crs("EPSG:4326", LONLAT)
    assert same_crs("EPSG:2154", pyproj.CRS("EPSG:2154").to_wkt())
    assert not same_crs("EPSG:2154", "EPSG:3857")


@pytest.mark.parametrize(
    ("crs", "message"),
    [
        (None, "the file must have a CRS"),
        ("EPSG:0", "crs is not known"),
        ("EPSG:4978", "geographic or projected"),
        (pyproj.CRS('LOCAL_CS["mine",UNIT["metre",1]]'), "cannot be transformed"),
    ],
)
def test_a_crs_that_leads_nowhere_is_refused(crs: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        as_crs(crs, "the file")


def test_points_of_a_frame_become_degrees_and_other_shapes_are_refused() -> None:
    frame = geopandas.GeoSeries(shapely.points(FRANCE), crs=4326).to_crs(2154)
    np.testing.assert_allclose(points_lonlat(frame, "places"), FRANCE, atol=1e-9)
    for bad in (shapely.LineString([(0, 0), (1, 1)]), None):
        with pytest.raises(InvalidInputError, match="places must be points, without missing"):
            points_lonlat(geopandas.GeoSeries([shapely.Point(1, 2), bad], crs=4326), "places")
    with pytest.raises(InvalidInputError, match="must have a CRS"):
        points_lonlat(geopandas.GeoSeries([shapely.Point(1, 2)]), "places")


@pytest.mark.parametrize(
    "text",
    [
        "+proj=longlat +ellps=bessel +nadgrids={}",
        "+proj=longlat +ellps=bessel +nadgrids = @null,{}",
        "+proj=longlat +ellps=bessel +geoidgrids=@{}",
        "+init={}:x",
        "+proj=tinshift +file={} +type=crs",
        '{{"proj": "longlat", "nadgr\\u0069ds": "{}"}}',
        '{{"in\\u0069t": "{}:x"}}',
        'GEOGCS["x",DATUM["x",SPHEROID["b",6377397,299],EXTENSION["PROJ4_GRIDS","{}"]],PRIMEM["g",0],UNIT["d",0.0174]]',
    ],
)
def test_a_crs_that_names_a_file_is_refused_before_the_file_is_opened(tmp_path: Path, text: str) -> None:
    # To open the pipe would wait for ever.
    os.mkfifo(tmp_path / "pipe")
    crs = text.format(tmp_path / "pipe")
    for check in (lambda: as_crs(crs, "the file"), lambda: same_crs(crs, "EPSG:4326")):
        with pytest.raises(InvalidInputError, match="the CRS refers to a file"):
            check()


def test_a_crs_whose_json_names_a_file_in_words_of_its_own_is_refused() -> None:
    grid = pyproj.CRS("+proj=longlat +ellps=bessel +nadgrids=no_such_grid.gsb").to_json_dict()
    for part in (grid, grid["source_crs"], grid["source_crs"]["datum"]):
        part["name"] = "x"
    with pytest.raises(InvalidInputError, match="the CRS refers to a file"):
        as_crs(json.dumps(grid), "the file")


@pytest.mark.parametrize("version", ["WKT1_GDAL", "WKT1_ESRI", "WKT2_2019"])
def test_web_mercator_whose_grids_are_null_names_no_file(version: str) -> None:
    assert same_crs(as_crs(pyproj.CRS("EPSG:3857").to_wkt(version), "the file"), "EPSG:3857")
    assert as_crs("+proj=merc +a=6378137 +b=6378137 +units=m +nadgrids=@null +wktext", "the file")


def test_proj_asks_no_server() -> None:
    assert not pyproj.network.is_network_enabled()  # type: ignore[attr-defined]
