import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from geoind import Grid, InvalidInputError, PostProcessed, discretise
from geoind.arrays import FloatArray
from geoind.mechanisms.planar import PlanarLaplace
from geoind.mechanisms.spherical import SphericalLaplace
from tests.channels.grids import grids
from tests.trials import trials


def reference(rate: float, x: tuple[float, float], y: tuple[float, float], panels: int = 60) -> float:
    """Mass of noise with `rate` in a rectangle away from the truth, summed in plain coordinates."""
    nodes, weights = np.polynomial.legendre.leggauss(24)

    def rule(low: float, high: float) -> tuple[FloatArray, FloatArray]:
        edges = np.linspace(low, high, panels + 1)
        half = np.diff(edges)[:, None] / 2
        return (edges[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()

    (across, x_weights), (up, y_weights) = rule(*x), rule(*y)
    density = rate**2 / (2 * np.pi) * np.exp(-rate * np.hypot(across[:, None], up))
    return float(x_weights @ density @ y_weights)


def test_the_three_by_three_case_of_the_literature() -> None:
    channel = discretise(PlanarLaplace(0.9), Grid(0, 0, cell=1.1, columns=3, rows=3))
    assert channel.epsilon == pytest.approx(0.8843955, abs=1e-7)


@pytest.mark.parametrize(("column", "row", "size"), [(1, 0, 1e-5), (2, 1, 1e-17), (4, 3, 1e-47), (6, 6, 1e-85)])
def test_inner_cells_keep_twelve_digits_however_small(column: int, row: int, size: float) -> None:
    grid = Grid(0, 0, cell=1, columns=12, rows=12)
    matrix = discretise(PlanarLaplace(25.0), grid).matrix
    exact = reference(25.0 - 2.0**-40, (column - 0.5, column + 0.5), (row - 0.5, row + 0.5))
    found = matrix[2 * 12 + 2, (2 + row) * 12 + 2 + column]
    assert found == pytest.approx(exact, rel=1e-12)
    assert size / 10 < found < size * 10


def test_the_truths_own_cell_and_the_border_keep_twelve_digits() -> None:
    matrix = discretise(PlanarLaplace(1.5), Grid(0, 0, cell=1, columns=3, rows=3)).matrix
    noise = PlanarLaplace(1.5 - 2.0**-40)
    own = (
        4
        / math.pi
        * quad(lambda angle: float(noise.radius_cdf(0.5 / math.cos(angle))), 0, math.pi / 4, epsabs=1e-14)[0]
    )
    assert matrix[4, 4] == pytest.approx(own, rel=1e-12)
    for entry, x, y in [
        ((4, 5), (0.5, 40), (-0.5, 0.5)),
        ((4, 8), (0.5, 40), (0.5, 40)),
        ((3, 5), (1.5, 40), (-0.5, 0.5)),
        ((3, 8), (1.5, 40), (0.5, 40)),
    ]:
        assert matrix[entry] == pytest.approx(reference(noise.epsilon, x, y), rel=1e-12)


@pytest.mark.parametrize("scales_per_cell", [1e-9, 1e-3, 0.3, 1.62, 10, 30, 100])
def test_a_finer_quadrature_changes_none_of_thirteen_digits(
    scales_per_cell: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise, grid = PlanarLaplace(scales_per_cell), Grid(0, 0, cell=1, columns=6, rows=5)
    usual = discretise(noise, grid).matrix
    module = sys.modules["geoind.channels.discretise"]
    for name, value in {"NODES": 40, "PANEL": 0.3, "SWING": 6.0, "DECAY": 60.0, "AXIS": 55.0}.items():
        monkeypatch.setattr(module, name, value)
    np.testing.assert_allclose(discretise(noise, grid).matrix, usual, rtol=1e-13)


@pytest.mark.parametrize("scales_per_cell", [1e-11, 1e-8, 1e-4, 0.02, 0.3, 1.62, 10, 30, 100, 500, 5000])
@pytest.mark.parametrize(("columns", "rows"), [(5, 4), (1, 7), (6, 1), (1, 1), (2, 2)])
def test_rows_sum_to_one_and_the_promise_is_kept_at_every_scale(
    scales_per_cell: float, columns: int, rows: int
) -> None:
    grid = Grid(50, -20, cell=100, columns=columns, rows=rows)
    epsilon = scales_per_cell / 100
    channel = discretise(PlanarLaplace(epsilon), grid)
    assert np.abs(channel.matrix.sum(axis=1) - 1).max() < 1e-12
    assert channel.epsilon <= epsilon
    assert channel.matrix.min() > 0


@given(grids(), st.floats(-11, 3))
@settings(max_examples=trials(60), deadline=None, derandomize=True)
def test_the_promise_is_kept_on_any_grid(grid: Grid, scales_per_cell: float) -> None:
    epsilon = 10**scales_per_cell / grid.cell
    assert discretise(PlanarLaplace(epsilon), grid).epsilon <= epsilon


def test_most_of_the_promise_is_used() -> None:
    # Two inner neighbours and a report far behind them: the ratio comes close to e^(epsilon d).
    for cell in (1, 100, 3000):
        channel = discretise(PlanarLaplace(0.01), Grid(0, 0, cell=cell, columns=5, rows=5))
        assert channel.epsilon > 0.997 * 0.01


def test_a_city_of_2500_cells_is_built_whole() -> None:
    channel = discretise(PlanarLaplace(math.log(4) / 200), Grid(0, 0, cell=100, columns=50, rows=50))
    assert np.abs(channel.matrix.sum(axis=1) - 1).max() < 1e-12
    assert 1e-24 < channel.matrix.min() < 1e-18


def test_the_matrix_is_what_the_sampler_does() -> None:
    grid = Grid(0, 0, cell=100, columns=4, rows=3)
    noise = PlanarLaplace(0.012)
    reports = PostProcessed(noise, grid.snap).sample(np.tile(grid.xy[5], (200_000, 1)), rng=7)
    seen = np.bincount(grid.nearest(reports), minlength=12)

    def misfit(epsilon: float) -> float:
        wanted = 200_000 * discretise(PlanarLaplace(epsilon), grid).matrix[5]
        return float(((seen - wanted) ** 2 / wanted).sum())

    # 99.99 % quantile of chi-square with 11 degrees of freedom; 5 % too much or too little noise is far beyond.
    assert misfit(0.012) < 38
    assert misfit(0.0126) > 38
    assert misfit(0.0114) > 38


def test_only_planar_noise_can_be_discretised() -> None:
    with pytest.raises(InvalidInputError, match="PlanarLaplace"):
        discretise(SphericalLaplace(0.01), Grid(0, 0, cell=1, columns=2, rows=2))  # type: ignore[arg-type]


def test_a_promise_finer_than_doubles_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="doubles"):
        discretise(PlanarLaplace(1e-14), Grid(0, 0, cell=1, columns=2, rows=2))


def test_cells_that_doubles_do_not_tell_apart_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="same coordinates"):
        discretise(PlanarLaplace(1.0), Grid(5e6, 0, cell=1e-10, columns=2, rows=2))
