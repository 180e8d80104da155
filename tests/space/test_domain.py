import math
from typing import Any

import numpy as np
import pyproj
import pytest
import shapely
from shapely.geometry.base import BaseGeometry

from geoind import InvalidInputError, Projection
from geoind.arrays import FloatArray
from geoind.space.domain import domain_of

PARIS = Projection(2.35, 48.86)


def contains(
    projection: Projection, lonlat: list[list[float]] | FloatArray, region: BaseGeometry | None = None
) -> list[bool]:
    places = np.asarray(lonlat)
    inside = domain_of(projection, region).contains(places, projection.to_xy(places))
    return [bool(each) for each in inside]


def test_a_local_plane_is_for_100_kilometres_and_stretches_them_by_their_curvature() -> None:
    domain = domain_of(PARIS)
    inside, outside = PARIS.to_lonlat([[0, 99_990], [70_000, 71_000], [100_010, 0], [71_000, 71_000]]).reshape(
        2, 2, 2
    )
    assert all(contains(PARIS, inside))
    assert not any(contains(PARIS, outside))
    angle = np.linspace(0, 2 * math.pi, 50)
    rim = PARIS.to_lonlat(100_000 * np.column_stack([np.cos(angle), np.sin(angle)]))
    measured = PARIS.scales_at(rim, 50.0).max()
    assert measured < domain.largest_scale == pytest.approx(measured, abs=1e-6)
    assert domain.smallest_scale(1e6) == 1


def test_a_region_of_a_local_plane_is_measured() -> None:
    france = shapely.box(-5, 42, 8, 51)
    assert 1.001 < domain_of(PARIS, france).largest_scale < 1.004
    assert contains(PARIS, [[4.84, 45.76], [13.4, 52.52]], france) == [True, False]


def test_an_area_of_use_may_cross_the_antimeridian() -> None:
    fiji = Projection.from_crs("EPSG:3460")
    places = [[178.4, -18.1], [-179.9, -17.0], [170.0, -18.0], [-170.0, -18.0]]
    assert contains(fiji, places) == [True, True, False, False]
    assert domain_of(fiji).largest_scale < 1.01


def test_a_pole_may_be_inside() -> None:
    south = Projection.from_crs("EPSG:3031")
    assert contains(south, [[0.0, -90.0], [180.0, -60.5], [0.0, -59.0]]) == [True, True, False]
    # Stereographic, true at 71 degrees: (1 + sin 71) / (1 + sin 60) at its border.
    expected = (1 + math.sin(math.radians(71))) / (1 + math.sin(math.radians(60)))
    assert expected < domain_of(south).largest_scale < 1.01 * expected + 0.005


def test_the_scale_is_bounded_along_geodesics_that_leave_the_box() -> None:
    """The geodesic between two corners at 60 degrees north runs farther north, where Mercator stretches more."""
    domain = domain_of(Projection.from_crs("EPSG:3857"), shapely.box(-40, 50, 40, 60))
    top = math.atan(math.tan(math.radians(60)) / math.cos(math.radians(40)))
    assert 0.995 / math.cos(top) <= domain.largest_scale <= 1.04 / math.cos(top)


@pytest.mark.parametrize(("bearing", "east"), [(270, True), (90, False), (180, True)])
def test_the_scale_is_bounded_as_far_around_as_was_asked(bearing: float, east: bool) -> None:
    """A report may fall 100 km outside, where another metre of the plane is worth less of the ground."""
    utm = Projection.from_crs("EPSG:32631")  # true at 180 km to both sides of 3 degrees, and 0.9996 on it
    region = shapely.box(5, 60, 6, 61) if east else shapely.box(0, 60, 1, 61)
    geod = pyproj.Geod(ellps="WGS84")
    lon, lat, _ = geod.fwd(5.0 if east else 1.0, 60.0, bearing, 100_000)
    assert domain_of(utm, region).smallest_scale(100_000) <= utm.scales_at([[lon, lat]], 50.0).min()
    assert domain_of(utm, region).smallest_scale(0) > domain_of(utm, region).smallest_scale(100_000)


@pytest.mark.parametrize(
    ("crs", "region", "message"),
    [
        ("EPSG:3857", None, "narrower domain"),
        ("EPSG:6933", None, "narrower domain"),
        ("+proj=lcc +lat_1=40 +lat_2=50 +lon_0=3 +units=m", None, "has no area of use"),
        ("EPSG:3832", shapely.box(-60, 0, 0, 10), "discontinuous"),
        ("EPSG:3857", shapely.box(-180, 85, 180, 90), "not defined on all|discontinuous"),
        ("+proj=ortho +lat_0=0 +lon_0=0 +units=m", shapely.box(80, 0, 100, 10), "not defined on all"),
        ("EPSG:3857", shapely.box(0, 0, 10, 89.9), "varies too much"),
        ("EPSG:2154", shapely.box(600_000, 6_000_000, 700_000, 6_100_000), "must be in lon/lat"),
        ("EPSG:2154", shapely.box(0, 45, 5, 90.5), "must be in lon/lat"),
        ("EPSG:2154", shapely.box(0, -90.5, 5, 50), "must be in lon/lat"),
        ("EPSG:2154", shapely.box(175, 45, 180.5, 50), "must be in lon/lat"),
        ("EPSG:2154", shapely.box(-180.5, 45, -175, 50), "must be in lon/lat"),
        ("EPSG:3031", shapely.box(-180, -80, 180, -60), "narrower domain"),
        ("EPSG:3413", shapely.box(-180, 60, 180, 80), "narrower domain"),
        ("EPSG:3031", shapely.box(-180, -90, 180, 10), "narrower domain"),
        ("EPSG:2154", shapely.Polygon(), "non-empty"),
        ("EPSG:2154", (0, 40, 5, 50), "shapely geometry"),
    ],
    ids=str,
)
def test_a_domain_without_a_bound_is_refused(crs: str, region: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _ = domain_of(Projection.from_crs(crs), region).largest_scale


def test_the_british_grid_is_one_smooth_map() -> None:
    """PROJ knows eight; left to choose for each place, it would jump by 150 m at their borders."""
    lon, lat = np.meshgrid(np.linspace(-8.8, 1.9, 400), np.linspace(50, 60.8, 400))
    xy = Projection.from_crs("EPSG:27700").to_xy(np.column_stack([lon.ravel(), lat.ravel()])).reshape(400, 400, 2)
    second = np.abs(np.diff(xy, n=2, axis=0)).max(), np.abs(np.diff(xy, n=2, axis=1)).max()
    assert max(second) < 3
