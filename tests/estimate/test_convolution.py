import math

import numpy as np
import pytest

from geoind import Grid, InvalidInputError, PlanarLaplace
from geoind.arrays import FloatArray
from geoind.estimate.convolution import BEYOND, Convolution, window_around
from geoind.estimate.kernel import laplace_kernel

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
