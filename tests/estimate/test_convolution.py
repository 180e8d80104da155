import math

import numpy as np
import pytest
from scipy.integrate import dblquad

from geoind import Grid, InvalidInputError, PlanarLaplace
from geoind.arrays import FloatArray
from geoind.estimate.convolution import BEYOND, TAIL, Convolution, laplace_kernel, window_around

GRID = Grid(150, -300, cell=100, columns=5, rows=3)


def by_hand(grid: Grid, window: Grid, epsilon: float) -> FloatArray:
    kernel = laplace_kernel(epsilon * grid.cell, (window.rows, window.columns))
    apart = np.rint(np.abs(grid.xy[:, None] - window.xy[None]) / grid.cell).astype(int)
    return np.asarray(kernel[apart[..., 1], apart[..., 0]])


@pytest.mark.parametrize("epsilon", [0.003, 0.02, 0.2])
def test_convolution_is_the_sum_over_cells(epsilon: float) -> None:
    window = window_around(GRID, epsilon)
    convolution = Convolution.between(GRID, window, [epsilon])
    mass = np.random.default_rng(1).random(len(GRID))
    [image] = convolution.spread(mass)
    expected = mass @ by_hand(GRID, window, epsilon)
    np.testing.assert_allclose(image.ravel(), expected, rtol=1e-9, atol=1e-15)


def test_it_works_where_the_people_fill_the_window() -> None:
    epsilon = 0.02
    convolution = Convolution.between(GRID, GRID, [epsilon])
    mass = np.random.default_rng(2).random(len(GRID))
    np.testing.assert_allclose(convolution.spread(mass)[0].ravel(), mass @ by_hand(GRID, GRID, epsilon), rtol=1e-9)


def test_gather_is_the_transpose_of_spread() -> None:
    rng = np.random.default_rng(3)
    window = window_around(GRID, 0.01)
    convolution = Convolution.between(GRID, window, [0.01, 0.05])
    mass = rng.random(len(GRID))
    images = [rng.random((window.rows, window.columns)) for _ in range(2)]
    there = sum((image * other).sum() for image, other in zip(images, convolution.spread(mass), strict=True))
    assert there == pytest.approx(float(convolution.gather(images) @ mass), rel=1e-12)


def test_reports_of_people_on_the_border_stay_in_the_window() -> None:
    epsilon = 0.01
    window = window_around(GRID, epsilon)
    west = window.bounds[0]
    margin = GRID.bounds[0] - west
    assert margin >= PlanarLaplace(epsilon).radius_quantile(1 - BEYOND)
    assert (GRID.x - window.x) % GRID.cell == 0
    corner = np.zeros(len(GRID))
    corner[0] = 1
    [image] = Convolution.between(GRID, window, [epsilon]).spread(corner)
    assert 1 - BEYOND <= image.sum() <= 1


def test_noise_far_wider_than_the_grid_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="larger cells"):
        window_around(Grid(0, 0, cell=1, columns=4, rows=4), math.log(2) / 50_000)


def full_sum(kernel: FloatArray) -> float:
    weights = np.full(kernel.shape, 4.0)
    weights[0] /= 2
    weights[:, 0] /= 2
    return float((weights * kernel).sum())


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 4.0, 30.0, 120.0])
def test_the_kernel_is_a_distribution(scale: float) -> None:
    reach = math.ceil(TAIL / scale) + 1
    kernel = laplace_kernel(scale, (reach, reach))
    assert full_sum(kernel) == pytest.approx(1, abs=1e-10)
    assert (kernel > 0).all()
    np.testing.assert_allclose(kernel, kernel.T, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.2, 1.5])
@pytest.mark.parametrize("offset", [(0, 0), (0, 1), (1, 1), (2, 0), (3, 2)])
def test_an_entry_is_the_density_under_a_tent(scale: float, offset: tuple[int, int]) -> None:
    row, column = offset

    def weighted(y: float, x: float) -> float:
        tent = max(0.0, 1 - abs(y - row)) * max(0.0, 1 - abs(x - column))
        return tent * scale**2 / (2 * math.pi) * math.exp(-scale * math.hypot(x, y))

    # The corners of the tents are the integers: integrated square by square the integrand is smooth.
    squares = [(a, b) for a in (column - 1, column) for b in (row - 1, row)]
    by_hand = sum(dblquad(weighted, a, a + 1, b, b + 1, epsabs=1e-9)[0] for a, b in squares)
    assert laplace_kernel(scale, (4, 4))[offset] == pytest.approx(by_hand, abs=1e-7)


def test_the_kernel_has_the_noise_s_spread_and_the_cell_s() -> None:
    scale = 0.4
    reach = math.ceil(TAIL / scale)
    kernel = laplace_kernel(scale, (reach, reach))
    rows = 2 * kernel.sum(axis=1) - kernel[:, 0]
    variance = 2 * (rows * np.arange(reach + 1) ** 2).sum()
    # The noise's 3 / scale^2, the person's 1/12 within the cell, and 1/12 from counting reports in cells.
    assert variance == pytest.approx(3 / scale**2 + 1 / 6, rel=1e-5)


def test_a_rectangle_is_part_of_the_square() -> None:
    np.testing.assert_array_equal(laplace_kernel(0.7, (3, 9)), laplace_kernel(0.7, (9, 9))[:4])
