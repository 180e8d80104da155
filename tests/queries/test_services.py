import math
from typing import Any

import numpy as np
import pyproj
import pytest
import shapely

from geoind import InvalidInputError, private_query
from geoind.queries.services import SERVICES, service_params
from tests.keywords import Place


class Circle(Place):
    radius: float


PLACE: Circle = {"lat": 48.85842, "lon": 2.29451, "radius": 992.23}


def test_google_places_gets_the_body_of_a_nearby_search() -> None:
    assert service_params("google_places", **PLACE, kind="restaurant") == {
        "locationRestriction": {
            "circle": {"center": {"latitude": 48.85842, "longitude": 2.29451}, "radius": 992.3}
        },
        "maxResultCount": 20,
        "includedTypes": ["restaurant"],
    }


def test_foursquare_gets_whole_metres_rounded_up() -> None:
    assert service_params("foursquare", **PLACE, kind=None) == {
        "ll": "48.85842,2.29451",
        "radius": 993,
        "limit": 50,
    }


def test_overpass_gets_a_program() -> None:
    assert service_params("overpass", **PLACE, kind="amenity=restaurant") == {
        "data": '[out:json][timeout:60];nwr["amenity"="restaurant"](around:992.3,48.85842,2.29451);out center;'
    }
    assert 'nwr["shop"](around' in str(service_params("overpass", **PLACE, kind="shop")["data"])
    with pytest.raises(InvalidInputError, match="tag"):
        service_params("overpass", **PLACE, kind='x"];node(1)')


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_no_service_gets_a_smaller_radius_than_the_query_has(service: str) -> None:
    query = private_query(lat=48.8584, lon=2.2945, radius=300, epsilon=0.01)
    assert query.as_params(service)
    area: Any = service_params("google_places", **PLACE, kind=None)["locationRestriction"]
    assert area["circle"]["radius"] >= PLACE["radius"]


def test_too_wide_a_query_is_refused_before_it_is_sent() -> None:
    with pytest.raises(InvalidInputError, match="at most 50000 m"):
        service_params("google_places", lat=48.85842, lon=2.29451, radius=50_001.0, kind=None)
    with pytest.raises(InvalidInputError, match="service must be one of"):
        service_params("bing", **PLACE, kind=None)


@pytest.mark.parametrize("radius", [50.0, 1000.0, 50_000.0, 1_000_000.0], ids=str)
@pytest.mark.parametrize(
    ("lat", "lon"),
    [(0.0, 0.0), (48.86, 2.35), (70.0, 179.99), (-60.0, -179.9), (89.0, 1.0), (89.9, 5.0), (-90.0, 0.0)],
    ids=str,
)
def test_the_polygon_holds_the_circle_and_little_more(lat: float, lon: float, radius: float) -> None:
    feature: dict[str, Any] = service_params("geojson", lat=lat, lon=lon, radius=radius, kind=None)
    assert feature["type"] == "Feature"
    polygon = shapely.geometry.shape(feature["geometry"])
    assert polygon.is_valid
    assert polygon.bounds[0] >= -180
    assert polygon.bounds[2] <= 180
    assert -90 <= polygon.bounds[1] < polygon.bounds[3] <= 90
    ones = np.ones(1000)
    geod = pyproj.Geod(ellps="WGS84")
    edge = geod.fwd(lon * ones, lat * ones, np.linspace(-180, 180, 1000), radius * ones)
    assert shapely.intersects_xy(polygon, edge[0], edge[1]).all()
    to_pole = geod.inv(lon, lat, lon, math.copysign(90, lat))[2]
    if to_pole > 2.01 * radius:
        area = abs(geod.geometry_area_perimeter(polygon)[0])
        assert area == pytest.approx(math.pi * radius**2, rel=0.02)


def test_all_sides_of_the_polygon_are_equally_long() -> None:
    feature: dict[str, Any] = service_params("geojson", lat=0.0, lon=10.0, radius=500.0, kind=None)
    corners = shapely.get_coordinates(shapely.geometry.shape(feature["geometry"]))
    sides = pyproj.Geod(ellps="WGS84").line_lengths(*corners.T)
    assert max(sides) == pytest.approx(min(sides), rel=1e-3)
