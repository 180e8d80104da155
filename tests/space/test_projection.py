import pickle

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from geoind import InvalidInputError, PlanarLaplace, Projected, Projection

PARIS = Projection(2.35, 48.86)
GEOD = Geod(ellps="WGS84")


@given(st.floats(-3, 7), st.floats(45, 52))
def test_the_round_trip_ends_where_it_began(lon: float, lat: float) -> None:
    for projection in (PARIS, Projection.from_crs(2154)):
        back = projection.to_lonlat(projection.to_xy([[lon, lat]]))
        np.testing.assert_allclose(back, [[lon, lat]], atol=1e-9)


@given(st.floats(0, 360), st.floats(1, 50_000))
def test_distances_from_the_origin_are_geodesic(bearing: float, distance: float) -> None:
    lon, lat, _ = GEOD.fwd(2.35, 48.86, bearing, distance)
    assert np.hypot(*PARIS.to_xy([[lon, lat]])[0]) == pytest.approx(distance, abs=1e-4)


def test_the_scale_at_50_km_is_off_by_one_part_in_100_000() -> None:
    lon, lat, _ = GEOD.fwd(2.35, 48.86, 90, 50_000)
    there = shapely.Point(lon, lat).buffer(1e-4)
    assert 0.8e-5 < PARIS.largest_scale_error(there) < 1.3e-5
    assert PARIS.largest_scale(there) == pytest.approx(1 + 1.02e-5, abs=1e-6)


@pytest.mark.parametrize(("lat", "scale"), [(0.0, 1.0067), (60.0, 2.0), (80.0, 5.74)])
def test_web_mercator_shows_what_its_metres_are_worth(lat: float, scale: float) -> None:
    region = shapely.Point(10, lat).buffer(0.001)
    assert Projection.from_crs("EPSG:3857").largest_scale(region) == pytest.approx(scale, rel=4e-3)


def test_the_largest_scale_bounds_measured_lengths() -> None:
    projection = Projection.from_crs("EPSG:32631")
    region = shapely.box(0, 45, 6, 50)
    low, high = projection.scale_range(region)
    rng = np.random.default_rng(0)
    start = rng.uniform((0.1, 45.1), (5.9, 49.9), (500, 2))
    lon, lat, _ = GEOD.fwd(start[:, 0], start[:, 1], rng.uniform(0, 360, 500), np.full(500, 100.0))
    lengths = np.hypot(*(projection.to_xy(np.column_stack([lon, lat])) - projection.to_xy(start)).T) / 100
    assert low - 1e-6 <= lengths.min() <= lengths.max() <= high + 1e-6


def test_shapes_travel_too() -> None:
    square = shapely.box(2.3, 48.8, 2.4, 48.9)
    assert PARIS.inverse_transform(PARIS.transform(square)).equals_exact(square, 1e-9)


def test_a_projection_is_a_value() -> None:
    assert Projection(2.35, 48.86) == PARIS
    assert hash(Projection(2.35, 48.86)) == hash(PARIS)
    assert pickle.loads(pickle.dumps(PARIS)) == PARIS
    assert PARIS.to_xy(np.empty((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:2263", "EPSG:999999", "not a crs"])
def test_only_projected_crs_in_metres_are_taken(crs: str) -> None:
    with pytest.raises(InvalidInputError, match="crs"):
        Projection.from_crs(crs)


@pytest.mark.parametrize("origin", [(181, 0), (0, 91), (np.nan, 0), ("2", 48)])
def test_a_bad_origin_is_refused(origin: tuple[float, float]) -> None:
    with pytest.raises(InvalidInputError):
        Projection(*origin)


def test_an_empty_region_has_no_scale() -> None:
    with pytest.raises(InvalidInputError, match="empty"):
        PARIS.scale_range(shapely.Polygon())


def test_what_a_projection_cannot_show_is_an_error_without_coordinates() -> None:
    with pytest.raises(InvalidInputError, match="row 1"):
        Projection.from_crs("EPSG:2154").to_xy([[3, 46], [3, -90]])


def test_a_projected_mechanism_keeps_planar_distances() -> None:
    reports = Projected(PlanarLaplace(0.01), PARIS).sample([[2.35, 48.86]] * 20_000, rng=4)
    *_, metres = GEOD.inv(np.full(20_000, 2.35), np.full(20_000, 48.86), *reports.T)
    assert np.mean(metres) == pytest.approx(200, rel=0.02)
    np.testing.assert_array_equal(reports, np.round(reports, 5))
