import math

import numpy as np
import pyproj
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from geoind import InvalidInputError
from geoind.arrays import ArrayLike, FloatArray
from geoind.distances import (
    EARTH_RADIUS,
    GEODESIC_STRETCH,
    Distance,
    discrete,
    euclidean,
    from_matrix,
    hamming,
    haversine,
    manhattan,
    normalised_manhattan,
    squared,
)
from geoind.errors import SitesMismatchError
from tests.mechanisms.ground import GEOD

METRICS = [euclidean, manhattan, normalised_manhattan(2e6), discrete, hamming]
three_points = arrays(np.float64, (3, 2), elements=st.floats(-1e6, 1e6))
records = st.integers(1, 6).flatmap(
    lambda width: arrays(np.float64, (3, width), elements=st.integers(-1000, 1000))
)
places = st.tuples(st.floats(-180, 180), st.floats(-90, 90))


@pytest.mark.parametrize("distance", METRICS)
@given(points=three_points)
def test_a_metric_is_symmetric_zero_at_home_and_obeys_the_triangle(distance: Distance, points: FloatArray) -> None:
    apart = distance(points, points)
    assert (apart == apart.T).all()
    assert (np.diag(apart) == 0).all()
    assert apart[0, 2] <= (apart[0, 1] + apart[1, 2]) * (1 + 1e-12)


@given(st.lists(places, min_size=3, max_size=3))
def test_great_circles_are_symmetric_and_obey_the_triangle(points: list[tuple[float, float]]) -> None:
    apart = haversine(points, points)
    assert (apart == apart.T).all()
    # Within a tenth of a millimetre; near the antipode the formula rounds to about a metre.
    assert apart[0, 2] <= (apart[0, 1] + apart[1, 2]) * (1 + 1e-7) + 1e-4


@pytest.mark.parametrize("distance", [*METRICS, squared, haversine])
def test_lists_are_as_good_as_arrays(distance: Distance) -> None:
    a, b = [[2, 48]], [[3.5, 48], [2, 50]]
    assert distance(a, b).tolist() == distance(np.array(a, float), np.array(b, float)).tolist()  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="points must be numbers"):
        distance([["a", "b"]], b)  # type: ignore[arg-type]


@given(three_points)
def test_each_metric_is_what_its_name_says(points: FloatArray) -> None:
    a, b = points[0], points[1]
    east, north = abs(a[0] - b[0]), abs(a[1] - b[1])
    pair = points[:1], points[1:2]
    assert euclidean(*pair)[0, 0] == pytest.approx(math.hypot(east, north))
    assert squared(*pair)[0, 0] == pytest.approx(east**2 + north**2)
    assert manhattan(*pair)[0, 0] == east + north
    assert hamming(*pair)[0, 0] == int(east > 0) + int(north > 0)
    assert discrete(*pair)[0, 0] == float(east > 0 or north > 0)


@given(records)
def test_every_coordinate_counts_however_many_there_are(table: FloatArray) -> None:
    difference = np.abs(table[:, None, :] - table[None, :, :])
    np.testing.assert_allclose(euclidean(table, table), np.sqrt((difference**2).sum(axis=2)), rtol=1e-12)
    np.testing.assert_allclose(squared(table, table), (difference**2).sum(axis=2), rtol=1e-12)
    np.testing.assert_allclose(manhattan(table, table), difference.sum(axis=2), rtol=1e-12)
    np.testing.assert_array_equal(hamming(table, table), (difference > 0).sum(axis=2))
    np.testing.assert_array_equal(discrete(table, table), (difference > 0).any(axis=2))


@given(records, st.floats(2000, 1e9))
def test_the_normalised_distance_never_exceeds_the_number_of_differing_records(
    table: FloatArray, largest: float
) -> None:
    apart = normalised_manhattan(largest)(table, table)
    assert (apart <= hamming(table, table) * (1 + 1e-12)).all()
    np.testing.assert_allclose(apart * largest, manhattan(table, table), rtol=1e-12)


def test_the_three_databases_of_the_lectures() -> None:
    databases = np.array([[32, 0, 27], [32, 0.01, 27], [32, 1e6, 27]])
    here = databases[:1]
    assert hamming(here, databases).tolist() == [[0, 1, 1]]
    assert manhattan(here, databases).tolist() == [[0, 0.01, 1e6]]
    assert normalised_manhattan(1e6)(here, databases).tolist() == [[0, 1e-8, 1]]


def test_values_farther_apart_than_the_largest_distance_are_refused() -> None:
    apart = normalised_manhattan(1.1)
    assert apart(np.array([[0.1]]), np.array([[1.2]]))[0, 0] == pytest.approx(1)
    with pytest.raises(InvalidInputError, match="largest"):
        apart(np.array([[0.0, 0.0]]), np.array([[1.0, 1.2]]))


@pytest.mark.parametrize("largest", [0, -1, math.nan, math.inf])
def test_bad_largest_distances_are_refused(largest: float) -> None:
    with pytest.raises(InvalidInputError):
        normalised_manhattan(largest)


@pytest.mark.parametrize("distance", [*METRICS, squared, haversine])
@pytest.mark.parametrize(("one", "other"), [((2, 3), (2, 2)), ((2, 1), (2, 3)), ((2, 0), (2, 0)), ((2,), (2, 2))])
def test_points_with_different_numbers_of_coordinates_are_refused(
    distance: Distance, one: tuple[int, ...], other: tuple[int, ...]
) -> None:
    with pytest.raises(SitesMismatchError):
        distance(np.zeros(one), np.zeros(other))


def test_great_circles_need_longitude_and_latitude() -> None:
    with pytest.raises(SitesMismatchError, match="latitude"):
        haversine(np.zeros((2, 3)), np.zeros((2, 3)))


@given(places, places)
def test_haversine_is_the_angle_between_two_directions(a: tuple[float, float], b: tuple[float, float]) -> None:
    def direction(place: tuple[float, float]) -> FloatArray:
        lon, lat = np.radians(place)
        return np.array([math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)])

    angle = math.atan2(
        float(np.linalg.norm(np.cross(direction(a), direction(b)))), float(direction(a) @ direction(b))
    )
    assert haversine(np.array([a]), np.array([b]))[0, 0] == pytest.approx(EARTH_RADIUS * angle, abs=0.3)


def test_haversine_keeps_centimetres_and_crosses_the_antimeridian() -> None:
    step = np.degrees(0.01 / EARTH_RADIUS)
    assert haversine(np.array([[0, 0]]), np.array([[0, step]]))[0, 0] == pytest.approx(0.01, rel=1e-9)
    assert haversine(np.array([[179.5, 0]]), np.array([[-179.5, 0]]))[0, 0] == pytest.approx(111_195, abs=1)


def test_a_table_answers_for_the_sites_it_fits_and_no_others() -> None:
    road = from_matrix([[0, 7], [9, 0]])
    assert road(np.zeros((2, 2)), np.ones((2, 2))).tolist() == [[0, 7], [9, 0]]
    with pytest.raises(SitesMismatchError):
        road(np.zeros((3, 2)), np.zeros((2, 2)))


@pytest.mark.parametrize("table", [[[0, -1], [1, 0]], [[0, math.nan], [1, 0]], [[0, math.inf], [1, 0]], [0, 1]])
def test_bad_tables_are_refused(table: ArrayLike) -> None:
    with pytest.raises(InvalidInputError):
        from_matrix(table)


def test_no_wgs84_distance_is_longer_than_the_stretched_great_circle() -> None:
    rng = np.random.default_rng(5)
    lon, lat = rng.uniform(-180, 180, (2, 200_000)), np.degrees(np.arcsin(rng.uniform(-1, 1, (2, 200_000))))
    lat[0, :1000], lat[1, :1000] = 90.0, 90 - np.linspace(1e-3, 5, 1000)  # the stretch is largest at the poles
    sphere = pyproj.Geod(a=6_371_008.8, b=6_371_008.8)
    great = np.asarray(sphere.inv(lon[0], lat[0], lon[1], lat[1])[2])
    true = np.asarray(GEOD.inv(lon[0], lat[0], lon[1], lat[1])[2])
    ratio = true[great > 1] / great[great > 1]
    assert 1.0044 < ratio.max() < GEODESIC_STRETCH
