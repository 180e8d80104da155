import math
from typing import Any

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from geoind import Grid, InvalidInputError, Places, Prior, Projection
from geoind.arrays import ArrayLike
from geoind.errors import NotStochasticError, SitesMismatchError

STREET = Grid(0, 0, cell=100, columns=2, rows=1)


@pytest.mark.parametrize(
    ("mass", "error"),
    [
        ([0.5, 0.4], NotStochasticError),
        ([1.5, -0.5], NotStochasticError),
        ([math.nan, 1], NotStochasticError),
        ([1], SitesMismatchError),
        ([0, 0], NotStochasticError),
    ],
)
def test_bad_masses_are_refused(mass: list[float], error: type[Exception]) -> None:
    with pytest.raises(error):
        Prior(STREET, mass)


@pytest.mark.parametrize("counts", [[0, 0], [-1, 2], [math.nan, 1], [math.inf, 1]])
def test_bad_counts_are_refused(counts: list[float]) -> None:
    with pytest.raises(NotStochasticError):
        Prior.from_counts(STREET, counts)


def test_huge_and_tiny_counts_keep_their_shares() -> None:
    assert Prior.from_counts(STREET, [1e308, 1e308]).mass.tolist() == [0.5, 0.5]
    assert Prior.from_counts(STREET, [5e-324, 5e-324]).mass.tolist() == [0.5, 0.5]


def test_chosen_cells_share_the_mass_by_number_or_by_mask() -> None:
    grid = Grid(0, 0, cell=1, columns=3, rows=3)
    by_number = Prior.over(grid, [0, 4, 4])
    assert by_number.mass[[0, 4]].tolist() == [0.5, 0.5]
    assert (Prior.over(grid, np.isin(np.arange(9), [0, 4])).mass == by_number.mass).all()


@pytest.mark.parametrize("cells", [[], [9], [-1], [0.5], [True, False]])
def test_bad_cells_are_refused(cells: ArrayLike) -> None:
    with pytest.raises(InvalidInputError):
        Prior.over(Grid(0, 0, cell=1, columns=3, rows=3), cells)


def test_points_count_at_the_closest_site() -> None:
    places = Places([[0, 0], [10, 0], [0, 10]])
    prior = Prior.from_points(places, [[1, 1], [9, 0], [8, 1], [2, 9]], weights=[1, 2, 3, 4])
    assert prior.mass == pytest.approx([0.1, 0.5, 0.4])


@pytest.mark.parametrize("point", [[-51, 0], [151, 0], [0, 51], [0, -51], [1e9, 1e9]])
def test_points_outside_of_the_grid_are_an_error_or_left_out(point: list[float]) -> None:
    visits = [[0.0, 0.0], [100.0, 0.0], [100.0, 10.0], point]
    with pytest.raises(InvalidInputError, match="the grid does not cover 1 of 4 points") as caught:
        Prior.from_points(STREET, visits)
    assert str(point[0]) not in str(caught.value)
    dropped = Prior.from_points(STREET, visits, weights=[1, 1, 2, 50], outside="drop")
    assert dropped.mass.tolist() == [0.25, 0.75]


def test_points_on_the_border_are_inside_and_places_have_no_outside() -> None:
    corners = [[-50, -50], [-50, 50], [150, 50], [150, -50]]
    assert Prior.from_points(STREET, corners).mass.tolist() == [0.5, 0.5]
    assert Prior.from_points(Places([[0, 0], [1, 0]]), [[1e6, 0]]).mass.tolist() == [0, 1]


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=1, max_size=9), st.floats(1, 1e6))
def test_a_grid_over_all_points_leaves_none_outside(points: list[tuple[float, float]], cell: float) -> None:
    grid = Grid.covering(shapely.MultiPoint(points), cell=max(cell, 2e5))
    assert Prior.from_points(grid, points).mass.sum() == pytest.approx(1)


def test_nothing_left_inside_is_no_prior() -> None:
    with pytest.raises(NotStochasticError):
        Prior.from_points(STREET, [[9999, 0]], outside="drop")


def test_degrees_and_frames_of_points_are_brought_to_the_plane() -> None:
    plane = Projection(2.35, 48.86)
    lonlat = plane.to_lonlat([[0, 0], [95, 5], [101, -8], [104, 0]])
    expected = [0.25, 0.75]
    assert Prior.from_lonlat(STREET, lonlat, projection=plane).mass.tolist() == expected
    frame = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(*lonlat.T), crs=4326)
    for points in (frame, frame.geometry, frame.to_crs("EPSG:2154")):
        assert Prior.from_lonlat(STREET, points, projection=plane).mass.tolist() == expected
    weighted = Prior.from_lonlat(STREET, lonlat, projection=plane, weights=[9, 1, 1, 1], smoothing=4)
    assert weighted.mass == pytest.approx([13 / 20, 7 / 20])
    far = [*lonlat.tolist(), [2.36, 48.86]]
    assert Prior.from_lonlat(STREET, far, projection=plane, outside="drop").mass.tolist() == expected
    with pytest.raises(InvalidInputError, match="outside"):
        Prior.from_lonlat(STREET, far, projection=plane)


@pytest.mark.parametrize("lonlat", [[[2.35, 91]], [[181, 0]], [[math.nan, 0]]])
def test_degrees_that_are_none_are_refused(lonlat: list[list[float]]) -> None:
    with pytest.raises(InvalidInputError):
        Prior.from_lonlat(STREET, lonlat, projection=Projection(2.35, 48.86))


def test_frames_without_a_crs_or_with_lines_are_refused() -> None:
    plane = Projection(2.35, 48.86)
    with pytest.raises(InvalidInputError, match="CRS"):
        Prior.from_lonlat(STREET, geopandas.GeoSeries.from_xy([2.35], [48.86]), projection=plane)
    line = geopandas.GeoSeries([shapely.LineString([[2.35, 48.86], [2.351, 48.86]])], crs=4326)
    with pytest.raises(InvalidInputError, match="points"):
        Prior.from_lonlat(STREET, line, projection=plane)


def test_smoothing_leaves_no_site_impossible() -> None:
    assert Prior.from_points(STREET, [[0, 0]]).mass.tolist() == [1, 0]
    assert Prior.from_points(STREET, [[0, 0]], smoothing=0.5).mass.tolist() == [0.75, 0.25]
    assert Prior.from_points(STREET, np.empty((0, 2)), smoothing=1).mass.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "options",
    [{"smoothing": -1}, {"smoothing": math.nan}, {"weights": [1, 2]}, {"weights": [-1]}, {"outside": "keep"}],
)
def test_bad_options_of_points_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        Prior.from_points(STREET, [[0, 0]], **options)


def test_no_points_and_no_smoothing_is_no_prior() -> None:
    with pytest.raises(NotStochasticError):
        Prior.from_points(STREET, np.empty((0, 2)))


def test_polygons_spread_their_weight_over_their_area() -> None:
    left, both, outside = (
        shapely.box(-50, -50, 50, 50),
        shapely.box(0, -50, 100, 50),
        shapely.box(500, 0, 600, 100),
    )
    frame = geopandas.GeoDataFrame({"people": [2, 4, 8]}, geometry=[left, both, outside])
    assert Prior.from_polygons(STREET, frame, weights="people").mass == pytest.approx([4 / 6, 2 / 6])
    assert Prior.from_polygons(STREET, frame, weights=[0, 1, 0]).mass == pytest.approx([0.5, 0.5])


def test_polygons_in_degrees_need_and_take_a_projection() -> None:
    projection = Projection(2.35, 48.86)
    corner = projection.inverse_transform(shapely.box(-50, -50, 50, 50))
    frame = geopandas.GeoDataFrame(geometry=[corner], crs=4326)
    assert Prior.from_polygons(STREET, frame, projection=projection).mass == pytest.approx([1, 0], abs=1e-6)
    assert Prior.from_polygons(STREET, frame.to_crs(3857), projection=projection).mass == pytest.approx(
        [1, 0], abs=1e-6
    )
    with pytest.raises(InvalidInputError, match="degrees"):
        Prior.from_polygons(STREET, frame)
    with pytest.raises(InvalidInputError, match="CRS"):
        Prior.from_polygons(STREET, frame.set_crs(None, allow_override=True), projection=projection)


@pytest.mark.parametrize("weights", ["unknown", [1], [1, 2, 3], [-1, 5], [math.nan, 1], [1, math.inf]])
def test_bad_weights_of_polygons_are_refused(weights: str | list[float]) -> None:
    frame = geopandas.GeoDataFrame(geometry=[shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1)])
    with pytest.raises(InvalidInputError, match="weights"):
        Prior.from_polygons(STREET, frame, weights=weights)


def test_polygons_away_from_the_grid_and_points_are_refused() -> None:
    with pytest.raises(NotStochasticError, match="meets"):
        Prior.from_polygons(STREET, geopandas.GeoDataFrame(geometry=[shapely.box(900, 0, 901, 1)]))
    with pytest.raises(InvalidInputError, match="area"):
        Prior.from_polygons(STREET, geopandas.GeoDataFrame(geometry=[shapely.Point(0, 0)]))


def test_masses_may_miss_one_by_rounding_and_no_more() -> None:
    for off in (0.9e-9, -0.9e-9):
        assert Prior(STREET, [0.5 + off, 0.5]).mass.sum() == pytest.approx(1, abs=1e-15)
    for off in (1.1e-9, -1.1e-9):
        with pytest.raises(NotStochasticError):
            Prior(STREET, [0.5 + off, 0.5])
