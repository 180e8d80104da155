import numpy as np

from geoind import Grid
from geoind.channels.stencil import axis_cases, spread_over


def test_every_entry_is_the_mass_of_its_offset_and_border():
    grid = Grid(0, 0, cell=1, columns=4, rows=3)
    masses = np.arange(9 * 7, dtype=float).reshape(9, 7) + 1
    matrix = spread_over(grid, masses)
    for truth in range(12):
        for report in range(12):
            x = abs(report % 4 - truth % 4) + 4 * (report % 4 in (0, 3))
            y = abs(report // 4 - truth // 4) + 3 * (report // 4 in (0, 2))
            assert matrix[truth, report] == masses[x, y]


def test_a_single_cell_takes_the_whole_line():
    assert axis_cases(1).tolist() == [[2]]


def test_nothing_underflows_to_zero():
    assert spread_over(Grid(0, 0, cell=1, columns=2, rows=1), np.zeros((5, 3))).min() == 1e-300
