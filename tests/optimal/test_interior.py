"""The pieces of the interior-point method, and how few iterations it takes."""

import numpy as np
import pytest

from geoind import Grid, Prior, min_loss_given_epsilon
from geoind.optimal.interior import _centring, longest_step, outliers


@pytest.mark.parametrize(
    ("side", "uniform", "skewed"),
    [(3, 9, 14), (5, 14, 23), (7, 18, 37)],
)
def test_few_iterations_suffice(side: int, uniform: int, skewed: int) -> None:
    # A wrong direction or a timid step still ends at the optimum, but takes its time.
    grid = Grid(0, 0, cell=100, columns=side, rows=side)
    priors = Prior.uniform(grid), Prior(grid, np.random.default_rng(0).dirichlet(np.ones(side * side)))
    for prior, most in zip(priors, (uniform, skewed), strict=True):
        found = min_loss_given_epsilon(prior, epsilon=0.01).certificate
        assert found.optimal
        assert found.iterations <= most


def test_a_step_ends_where_the_first_one_would_become_negative() -> None:
    values = np.array([1.0, 2.0, 4.0])
    change = np.array([-0.5, -4.0, -5.0])
    assert longest_step(change / values) == pytest.approx(0.5)
    assert (values + longest_step(change / values) * change).min() == pytest.approx(0)
    assert longest_step(np.array([-1.0, 3.0])) == 1
    assert longest_step(np.array([0.1, 3.0])) == 1


@pytest.mark.parametrize("seed", range(5))
def test_the_aim_is_the_cube_of_what_an_affine_step_would_leave(seed: int) -> None:
    rng = np.random.default_rng(seed)
    relative, products = rng.normal(scale=1.5, size=6), rng.random(6)
    mu = float(products.mean())
    # Slacks change by `relative`, multipliers by what takes every product to 0, each as far as they may.
    primal, dual = longest_step(relative), longest_step(-1 - relative)
    left = float((products * (1 + primal * relative) * (1 + dual * (-1 - relative))).mean())
    assert _centring(relative, products, mu, 0.0) == pytest.approx(max((left / mu) ** 3, 1e-8) * mu, rel=1e-9)


def test_the_aim_stays_between_its_limits() -> None:
    done, products = np.full(4, -1.0), np.full(4, 2.0)
    assert _centring(done, products, 2.0, 0.0) == pytest.approx(1e-8 * 2.0)
    assert _centring(done, products, 2.0, 0.3) == 0.3
    assert _centring(done, products, 2.0, 5.0) == 5.0


def test_products_far_from_the_aim_are_drawn_towards_it() -> None:
    products = np.array([0.01, 0.1, 1.0, 10.0, 11.0, 1000.0])
    # Up to a tenth, down to ten times, and never by more than ten times the aim.
    np.testing.assert_allclose(outliers(products, 1.0), [0.09, 0.0, 0.0, 0.0, -1.0, -10.0])
    np.testing.assert_allclose(outliers(products * 3, 3.0), 3 * outliers(products, 1.0))
