import numpy as np
import pytest

from geoind import InvalidInputError
from geoind.estimate import grid_over


@pytest.mark.parametrize("lon", [2.35, 180.0, -180.0])
def test_the_grid_covers_nearly_all_reports_on_both_sides_of_180_degrees(lon: float) -> None:
    reports = np.random.default_rng(1).normal([lon, 48.86], [0.02, 0.01], (20_000, 2))
    reports[:, 0] = (reports[:, 0] + 180) % 360 - 180
    grid, projection = grid_over(reports, cell=200)
    west, south, east, north = grid.bounds
    x, y = projection.to_xy(reports).T
    inside = (x >= west) & (x <= east) & (y >= south) & (y <= north)
    assert 0.975 < inside.mean() < 0.999
    assert grid.cell == 200


def test_bounds_replace_the_extent_of_the_reports() -> None:
    grid, projection = grid_over([[2.35, 48.86]], cell=500, bounds=(2.25, 48.81, 2.42, 48.91))
    corners = projection.to_lonlat([grid.bounds[:2], grid.bounds[2:]])
    assert corners[0] == pytest.approx([2.25, 48.81], abs=0.01)
    assert corners[1] == pytest.approx([2.42, 48.91], abs=0.01)


@pytest.mark.parametrize(
    "bounds", [(3, 48, 2, 49), (2, 49, 3, 48), (2, 48, 3, 91), (-181, 0, 1, 1), (float("nan"), 0, 1, 1)]
)
def test_bounds_that_are_no_rectangle_are_refused(bounds: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match="WEST < EAST and SOUTH < NORTH"):
        grid_over([[2.35, 48.86]], cell=500, bounds=bounds)
