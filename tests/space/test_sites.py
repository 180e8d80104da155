import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from geoind import Grid, InvalidInputError, Places, Projection
from geoind.arrays import ArrayLike
from geoind.space.sites import as_plane, as_sites, same_sites, sites_array

GRID = Grid(10, -20, cell=100, columns=3, rows=2)


def test_cells_are_numbered_row_by_row_from_the_south_west() -> None:
    assert GRID.xy.tolist() == [[10, -20], [110, -20], [210, -20], [10, 80], [110, 80], [210, 80]]
    assert len(GRID) == 6
    assert GRID.bounds == (-40, -70, 260, 130)


@given(st.floats(-39.9, 259.9), st.floats(-69.9, 129.9))
def test_a_point_of_the_grid_belongs_to_the_cell_that_holds_it(x: float, y: float) -> None:
    cell = int(GRID.nearest([[x, y]])[0])
    assert GRID.polygons()[cell].buffer(1e-9).contains(shapely.Point(x, y))


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_every_point_goes_to_its_closest_centre(x: float, y: float) -> None:
    chosen = GRID.xy[GRID.nearest([[x, y]])[0]]
    distances = np.hypot(*(GRID.xy - [x, y]).T)
    assert math.hypot(*(chosen - [x, y])) <= distances.min() * (1 + 1e-9)
    assert (GRID.snap([[x, y]])[0] == chosen).all()


def test_polygons_tile_the_bounds() -> None:
    assert shapely.union_all(GRID.polygons()).equals(shapely.box(*GRID.bounds))
    assert shapely.area(GRID.polygons()).tolist() == [10_000] * 6


def test_a_region_is_covered_by_whole_cells() -> None:
    triangle = shapely.Polygon([(0, 0), (250, 0), (0, 301)])
    grid = Grid.covering(triangle, cell=100)
    assert (grid.columns, grid.rows) == (3, 4)
    assert shapely.box(*grid.bounds).covers(triangle)
    assert len(Grid.covering(shapely.Point(5, 5), cell=100)) == 1


def test_a_region_in_degrees_is_covered_in_metres() -> None:
    paris = Projection(2.35, 48.86)
    region = shapely.box(2.3, 48.84, 2.4, 48.88)
    grid = Grid.covering(region, cell=250, projection=paris)
    assert shapely.box(*grid.bounds).buffer(1e-6).covers(paris.transform(region))
    assert grid.columns == math.ceil(np.ptp(np.array(paris.transform(region).bounds)[[0, 2]]) / 250)


def test_an_empty_region_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="empty"):
        Grid.covering(shapely.Polygon(), cell=1)


@pytest.mark.parametrize(
    "options", [{"cell": 0}, {"cell": math.nan}, {"columns": 0}, {"rows": 2.5}, {"columns": "3"}, {"rows": -1}]
)
def test_bad_grids_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        Grid(0, 0, **{"cell": 1, "columns": 2, "rows": 2} | options)


def test_the_origin_must_be_finite() -> None:
    with pytest.raises(InvalidInputError):
        Grid(math.inf, 0, cell=1, columns=1, rows=1)


def test_places_keep_their_order_and_cannot_be_changed() -> None:
    xy = np.array([[5.0, 5], [0, 0], [5, 5.5]])
    places = Places(xy)
    xy[:] = 0
    assert places.nearest([[6, 5], [-1, 2], [5, 9]]).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        places.xy[0, 0] = 1


@pytest.mark.parametrize("xy", [[], [[]], [[math.nan, 0]], [[1, 2, 3], [1, 2]], [1, 2], [[[1, 2]]]])
def test_bad_places_are_refused(xy: ArrayLike) -> None:
    with pytest.raises(InvalidInputError):
        Places(xy)


def test_equal_places_are_equal_and_hash_alike() -> None:
    assert Places([[1, 2]]) == Places([[1.0, 2.0]])
    assert hash(Places([[1, 2]])) == hash(Places([[1.0, 2.0]]))
    assert Places([[1, 2]]) != Places([[2, 1]])


def test_the_same_locations_are_the_same_sites_whatever_they_are_called() -> None:
    assert same_sites(GRID, Places(GRID.xy))
    assert not same_sites(GRID, Places(GRID.xy[::-1]))
    assert not same_sites(GRID, Places(GRID.xy[:5]))


@pytest.mark.parametrize(
    "sites",
    [
        GRID,
        Grid(1 / 3, 1e9, cell=0.1, columns=1, rows=7),
        Places([[1.0, 2], [3, 1 / 7]]),
        Places([[0.0, 0, 100, 3, 2]]),
    ],
)
def test_written_sites_are_read_again(sites: Grid | Places) -> None:
    assert as_sites(sites_array(sites)) == sites


def test_a_grid_knows_its_inside_and_how_far_its_centres_are() -> None:
    grid = Grid(0, 0, cell=100, columns=3, rows=2)
    corners = np.array([[-50.0, -50.0], [250.0, 150.0]])
    grid.check_inside(corners)
    for outside in ([-50.1, 0.0], [0.0, -50.1], [250.1, 0.0], [0.0, 150.1]):
        with pytest.raises(InvalidInputError, match="row 2 lies outside the grid"):
            grid.check_inside(np.vstack([corners, [outside]]))
    points = np.random.default_rng(0).uniform(corners[0], corners[1], (5000, 2))
    moved = np.hypot(*(grid.snap(points) - points).T)
    assert 0.98 * grid.cell_radius < moved.max() <= grid.cell_radius
    assert grid.snap.reach_after(10.0) == 10 + grid.cell_radius


@pytest.mark.parametrize("columns", [1, 3, 24])
def test_records_have_any_number_of_columns(columns: int) -> None:
    days = np.random.default_rng(0).integers(1, 5, (7, columns)).cumsum(axis=0).astype(float)
    records = Places(days)
    assert records.nearest(days[::-1]).tolist() == [6, 5, 4, 3, 2, 1, 0]
    assert records.nearest([]).tolist() == []
    with pytest.raises(InvalidInputError, match=rf"\(n, {columns}\)"):
        records.nearest([[0.0] * (columns + 1)])
    with pytest.raises(InvalidInputError, match="plane"):
        as_plane(records)
