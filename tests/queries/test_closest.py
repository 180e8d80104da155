import geopandas
import numpy as np
import pytest
import shapely

from geoind import (
    InvalidInputError,
    private_query,
)
from tests.queries.test_private_query import ASK, EIFFEL, EPSILON, GEOD, distances, frame_of, places


def test_refining_gives_the_same_answer_for_frames_records_and_arrays() -> None:
    lonlat = places(5000)
    query = private_query(**ASK)
    expected = distances(lonlat, **EIFFEL)
    inside = np.flatnonzero(expected <= 300)
    inside = inside[np.argsort(expected[inside])]
    assert len(inside) > 20
    frame = query.refine(frame_of(lonlat))
    assert frame["number"].tolist() == inside.tolist()
    np.testing.assert_allclose(frame["distance"], expected[inside], atol=1e-6)
    assert frame.crs == "EPSG:4326"
    lambert = query.refine(frame_of(lonlat).to_crs(2154))
    assert lambert["number"].tolist() == inside.tolist()
    assert lambert.crs == "EPSG:2154"
    records = query.refine([{"number": n, "lat": lat, "lon": lon} for n, (lon, lat) in enumerate(lonlat.tolist())])
    assert [record["number"] for record in records] == inside.tolist()
    array = query.refine(lonlat)
    np.testing.assert_array_equal(array[:, :2], lonlat[inside])
    np.testing.assert_allclose(array[:, 2], expected[inside], atol=1e-6)


@pytest.mark.parametrize("lat", [0.0, 48.8584, -89.0])
@pytest.mark.parametrize("radius", [300.0, 1_000_000.0])
def test_refining_draws_its_line_in_wgs84_metres_in_every_direction(lat: float, radius: float) -> None:
    """On the equator a great circle to the north is 0.56 % longer than the geodesic: no filter may cut there."""
    bearing, ones = np.arange(0.0, 360.0, 5.0), np.ones(72)
    query = private_query(lat=lat, lon=10.0, radius=radius, epsilon=EPSILON)
    inside, outside = (
        np.column_stack(GEOD.fwd(10.0 * ones, lat * ones, bearing, factor * radius * ones)[:2])
        for factor in (1 - 1e-6, 1 + 1e-6)
    )
    for spots, kept in ((inside, 72), (outside, 0)):
        assert len(query.refine(spots)) == kept
        assert len(query.refine([{"lon": x, "lat": y} for x, y in spots.tolist()])) == kept
        assert len(query.refine(frame_of(spots))) == kept


def test_nothing_found_is_an_empty_answer_of_the_same_kind() -> None:
    query = private_query(**ASK)
    assert query.refine([]) == []
    assert query.refine(np.empty((0, 2))).shape == (0, 3)
    empty = query.refine(frame_of(np.empty((0, 2))))
    assert len(empty) == 0
    assert "distance" in empty.columns
    far = frame_of(np.array([[10.0, 10.0]]))
    assert len(query.refine(far)) == 0
    assert query.nearest([], k=3) == ([], False)


def test_answers_of_the_services_are_understood() -> None:
    query = private_query(**ASK)
    answers: list[dict[str, object]] = [
        {"id": 1, "location": {"latitude": 48.8585, "longitude": 2.2945}},
        {"id": 2, "center": {"lat": 48.8586, "lon": 2.2945}},
        {"id": 3, "latitude": 48.8587, "longitude": 2.2945},
        {"id": 4, "geocodes": {"main": {"latitude": 48.8588, "longitude": 2.2945}}},
    ]
    assert [record["id"] for record in query.refine(answers)] == [1, 2, 3, 4]
    with pytest.raises(InvalidInputError, match="record 0"):
        query.refine([{"name": "nowhere"}])


def test_a_frame_without_crs_or_with_an_empty_row_is_refused() -> None:
    query = private_query(**ASK)
    bare = geopandas.GeoDataFrame(geometry=[shapely.Point(2, 48)])
    with pytest.raises(InvalidInputError, match="CRS"):
        query.refine(bare)
    with pytest.raises(InvalidInputError, match="geometry"):
        query.refine(geopandas.GeoDataFrame(geometry=[None, shapely.Point(2, 48)], crs=4326))
