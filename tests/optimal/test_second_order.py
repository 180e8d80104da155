"""The algebra of second-order cones, against its definitions."""

import numpy as np
import pytest

from geoind.arrays import FloatArray
from geoind.optimal.second_order import Scaling, divide, dot, eigenvalues, from_eigenvalues, product, steepest


def elements(seed: int, count: int = 50) -> FloatArray:
    """Elements strictly inside their cones, some of them close to the border."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, count))
    return np.stack([np.hypot(x, y) + 10.0 ** rng.uniform(-4, 1, count), x, y])


@pytest.mark.parametrize("seed", range(3))
def test_slack_and_multiplier_are_the_same_element_when_scaled(seed: int) -> None:
    s, z = elements(seed), elements(seed + 10)
    scaling = Scaling(s, z)
    point = scaling.inverse(s)
    # W^-1 s = W z, so that W^-2 s = z, and the scalar product is kept.
    np.testing.assert_allclose(scaling.inverse(point), z, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(scaling.press(s), z, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(dot(point, point), dot(s, z), rtol=1e-9)
    assert min(values.min() for values in eigenvalues(point)) > 0


def test_stiffness_is_the_matrix_that_presses() -> None:
    scaling, x = Scaling(elements(1), elements(2)), np.random.default_rng(3).normal(size=(3, 50))
    d00, d01, d02, d11, d12, d22 = scaling.stiffness()
    matrix = np.array([[d00, d01, d02], [d01, d11, d12], [d02, d12, d22]])
    np.testing.assert_allclose(np.einsum("ijc,jc->ic", matrix, x), scaling.press(x), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(scaling.inverse(scaling.inverse(x)), scaling.press(x), rtol=1e-6, atol=1e-6)


def test_division_undoes_the_product() -> None:
    x, y = elements(4), np.random.default_rng(5).normal(size=(3, 50))
    np.testing.assert_allclose(divide(x, product(x, y)), y, rtol=1e-6, atol=1e-8)


def test_an_element_is_made_of_its_eigenvalues() -> None:
    x = np.random.default_rng(6).normal(size=(3, 50))
    np.testing.assert_allclose(from_eigenvalues(*eigenvalues(x), x), x, rtol=1e-12)
    low, high = eigenvalues(x)
    squared = from_eigenvalues(low**2, high**2, x)
    np.testing.assert_allclose(squared, product(x, x), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(from_eigenvalues(np.ones(1), np.ones(1), np.zeros((3, 1)))[:, 0], [1, 0, 0])


@pytest.mark.parametrize("seed", range(20))
def test_the_longest_step_ends_on_the_border(seed: int) -> None:
    x = elements(seed)
    change = np.random.default_rng(seed).normal(size=x.shape)
    longest = 1 / steepest(x, change)
    assert longest > 0
    assert eigenvalues(x + 0.999 * longest * change)[0].min() > 0
    assert eigenvalues(x + 1.001 * longest * change)[0].min() < 0


def test_a_change_into_the_cones_may_go_on_for_ever() -> None:
    assert steepest(elements(1), elements(2)) < 0
