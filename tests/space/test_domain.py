import math

import numpy as np
import pytest
import shapely

from geoind import InvalidInputError, Projection
from geoind.space.domain import domain_of

PARIS = Projection(2.35, 48.86)


def test_a_local_plane_is_for_100_kilometres_and_stretches_them_by_their_curvature() -> None:
    domain = domain_of(PARIS)
    inside, outside = PARIS.to_lonlat([[0, 99_990], [70_000, 71_000], [100_010, 0], [71_000, 71_000]]).reshape(
        2, 2, 2
    )
    assert domain.contains(inside).all()
    assert not domain.contains(outside).any()
    angle = np.linspace(0, 2 * math.pi, 50)
    rim = PARIS.to_lonlat(100_000 * np.column_stack([np.cos(angle), np.sin(angle)]))
    measured = PARIS.scales_at(rim, 50.0).max()
    assert measured < domain.largest_scale == pytest.approx(measured, abs=1e-6)
    assert domain.smallest_scale(1e6) == 1


def test_a_region_of_a_local_plane_is_measured() -> None:
    wide = domain_of(PARIS, shapely.box(-5, 42, 8, 51))
    assert 1.001 < wide.largest_scale < 1.004
    assert wide.contains(np.array([[4.84, 45.76], [13.4, 52.52]])).tolist() == [True, False]


def test_an_area_of_use_may_cross_the_antimeridian() -> None:
    islands = domain_of(Projection.from_crs("EPSG:2193"))
    assert islands.contains(np.array([[178.0, -38.0], [178.6, -38.0], [2.35, 48.86]])).tolist() == [
        True,
        True,
        False,
    ]
    russia = domain_of(Projection.from_crs("EPSG:28472"))
    assert russia.largest_scale < 1.01


def test_a_pole_may_be_inside() -> None:
    south = domain_of(Projection.from_crs("EPSG:3031"))
    assert south.contains(np.array([[0.0, -90.0], [180.0, -60.5], [0.0, -59.0]])).tolist() == [True, True, False]
    # Stereographic: 2 / (1 + sin) of the standard parallel's own, at 60 degrees about 1.04.
    assert 1.03 < south.largest_scale < 1.06


def test_the_scale_is_bounded_along_geodesics_that_leave_the_box() -> None:
    """The geodesic between two corners at 60 degrees north runs farther north, where Mercator stretches more."""
    domain = domain_of(Projection.from_crs("EPSG:3857"), shapely.box(-40, 50, 40, 60))
    top = math.atan(math.tan(math.radians(60)) / math.cos(math.radians(40)))
    assert domain.largest_scale >= 0.995 / math.cos(top)


@pytest.mark.parametrize(
    ("crs", "region", "message"),
    [
        ("EPSG:3857", None, "narrower domain"),
        ("EPSG:6933", None, "narrower domain"),
        ("+proj=lcc +lat_1=40 +lat_2=50 +lon_0=3 +units=m", None, "does not say where"),
        ("EPSG:3832", shapely.box(-60, 0, 0, 10), "torn"),
        ("EPSG:3857", shapely.box(-180, 85, 180, 90), "cannot show|torn"),
        ("EPSG:2154", shapely.box(600_000, 6_000_000, 700_000, 6_100_000), "lon/lat"),
        ("EPSG:2154", shapely.Polygon(), "non-empty"),
        ("EPSG:2154", (0, 40, 5, 50), "shapely geometry"),
    ],
    ids=str,
)
def test_a_domain_without_a_bound_is_refused(crs: str, region: shapely.Geometry | None, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _ = domain_of(Projection.from_crs(crs), region).largest_scale


def test_the_british_grid_is_one_smooth_map() -> None:
    """PROJ knows eight; left to choose for each place, it would jump by 150 m at their borders."""
    lon, lat = np.meshgrid(np.linspace(-8.8, 1.9, 400), np.linspace(50, 60.8, 400))
    xy = Projection.from_crs("EPSG:27700").to_xy(np.column_stack([lon.ravel(), lat.ravel()])).reshape(400, 400, 2)
    second = np.abs(np.diff(xy, n=2, axis=0)).max(), np.abs(np.diff(xy, n=2, axis=1)).max()
    assert max(second) < 3
