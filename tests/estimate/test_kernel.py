import math

import numpy as np
import pytest
from scipy.integrate import dblquad

from geoind.arrays import FloatArray
from geoind.estimate.kernel import TAIL, laplace_kernel


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
