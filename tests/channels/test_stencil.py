import numpy as np
import pytest
from hypothesis import given

from geoind import Grid, InvalidInputError
from geoind.channels.stencil import axis_cases, loss_per_step, spread_over
from geoind.distances import euclidean
from tests.channels.grids import grids


def test_every_entry_is_the_mass_of_its_offset_and_border() -> None:
    grid = Grid(0, 0, cell=1, columns=4, rows=3)
    masses = np.arange(9 * 7, dtype=float).reshape(9, 7) + 1
    matrix = spread_over(grid, masses)
    for truth in range(12):
        for report in range(12):
            x = abs(report % 4 - truth % 4) + 4 * (report % 4 in (0, 3))
            y = abs(report // 4 - truth // 4) + 3 * (report // 4 in (0, 2))
            assert matrix[truth, report] == masses[x, y]


def test_a_single_cell_takes_the_whole_line() -> None:
    assert axis_cases(1).tolist() == [[2]]


def test_nothing_underflows_to_zero() -> None:
    assert spread_over(Grid(0, 0, cell=1, columns=2, rows=1), np.zeros((5, 3))).min() == 1e-300


@given(grids())
def test_no_two_cells_are_closer_than_the_loss_per_step_says(grid: Grid) -> None:
    per_step = loss_per_step(grid, 1 / grid.cell)
    row, column = np.divmod(np.arange(len(grid)), grid.columns)
    steps = np.hypot(row[:, None] - row, column[:, None] - column)
    assert (per_step * steps <= euclidean(grid.xy, grid.xy) / grid.cell).all()
    assert 1 - 1e-3 < per_step < 1


def test_cells_that_share_a_coordinate_are_refused() -> None:
    for x, y in [(1e9, 0), (0, 1e9)]:
        with pytest.raises(InvalidInputError, match="cell"):
            loss_per_step(Grid(x, y, cell=1e-8, columns=2, rows=2), 1.0)
