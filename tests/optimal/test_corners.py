"""The corner constraints of interpolated columns: their epsilon, their transpose, and their Newton system."""

import numpy as np
import pytest

from geoind import Channel, Grid, Places
from geoind.arrays import FloatArray
from geoind.channels import Interpolated
from geoind.optimal.cones import Program
from geoind.optimal.corners import Corners, CornerSystem
from geoind.optimal.second_order import Scaling, eigenvalues
from geoind.parallel import Threads

ROWS, COLUMNS, OUTPUTS = 4, 3, 5


def iterate(seed: int) -> tuple[Corners, FloatArray, FloatArray]:
    """Corners with columns and multipliers that are strictly inside."""
    rng = np.random.default_rng(seed)
    corners = Corners(OUTPUTS, ROWS, COLUMNS, 0.8)
    columns = np.exp(0.2 * rng.uniform(-1, 1, (OUTPUTS, ROWS * COLUMNS)))
    multipliers = rng.normal(size=(3, *corners.shape))
    multipliers[0] = np.hypot(multipliers[1], multipliers[2]) + rng.uniform(0.1, 1, corners.shape)
    return corners, columns, multipliers


@pytest.mark.parametrize("seed", range(4))
def test_the_slack_has_the_epsilon_of_the_interpolation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grid = Grid(0, 0, cell=100, columns=COLUMNS, rows=ROWS)
    matrix = rng.uniform(0.5, 1.5, (len(grid), OUTPUTS))
    channel = Channel(grid, Places(rng.normal(size=(OUTPUTS, 2))), matrix / matrix.sum(axis=1, keepdims=True))
    epsilon = Interpolated(channel).epsilon
    for factor, positive in ((1 + 1e-9, True), (1 - 1e-9, False)):
        corners = Corners(OUTPUTS, ROWS, COLUMNS, factor * epsilon * grid.cell)
        assert (eigenvalues(corners.slack(channel.matrix.T))[0].min() > 0) == positive


def test_the_adjoint_is_the_transpose_of_the_slack() -> None:
    corners, columns, multipliers = iterate(1)
    assert len(corners) == OUTPUTS * 4 * (ROWS - 1) * (COLUMNS - 1)
    both = (corners.slack(columns) * multipliers).sum(), (columns * corners.adjoint(multipliers)).sum()
    assert both[0] == pytest.approx(both[1], rel=1e-12)


@pytest.mark.parametrize("orbit", [None, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("threads", [1, 2])
def test_both_newton_equations_hold(seed: int, orbit: list[int] | None, threads: int) -> None:
    corners, columns, multipliers = iterate(seed)
    rng = np.random.default_rng(100 + seed)
    n = ROWS * COLUMNS
    weight = np.ones(OUTPUTS) if orbit is None else rng.integers(1, 4, OUTPUTS).astype(float)
    numbers = np.arange(n) if orbit is None else np.array(orbit)
    program = Program(rng.random(columns.shape), weight, numbers, np.array([0, 4, 7, n - 1, 2]))
    right, residual = rng.normal(size=columns.shape), rng.normal(size=len(program.orbit_size))
    with Threads(threads) as team:
        system = CornerSystem(program, corners, team)
        system.factor(0.5 * columns, multipliers)
        system.factor(columns, multipliers)
        step, prices = system.solve(right, residual)
    pressed = corners.adjoint(Scaling(corners.slack(columns), multipliers).press(corners.slack(step)))
    np.testing.assert_allclose(pressed - program.spread(prices), right, atol=1e-8 * np.abs(pressed).max())
    np.testing.assert_allclose(program.row_sums(step), residual, atol=1e-10)
