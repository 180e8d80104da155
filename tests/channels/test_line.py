import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import laplace

from geoind import Channel, Grid, InvalidInputError, geometric, tight_epsilon
from geoind.channels import linear_laplace
from geoind.distances import discrete

both = pytest.mark.parametrize("make", [geometric, linear_laplace])


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 2.0])
def test_truncated_geometric_has_the_constants_of_the_literature(epsilon: float) -> None:
    expected = np.exp(-epsilon * np.abs(np.subtract.outer(np.arange(5), np.arange(5))))
    expected[:, 1:-1] *= (math.exp(epsilon) - 1) / (math.exp(epsilon) + 1)
    expected[:, [0, -1]] *= math.exp(epsilon) / (math.exp(epsilon) + 1)
    assert geometric(5, epsilon=epsilon).matrix == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("n", "epsilon", "condition"), [(5, 0.3, 46), (50, 0.05, 3292)])
def test_truncated_geometric_is_as_ill_conditioned_as_known(n: int, epsilon: float, condition: int) -> None:
    assert np.linalg.cond(geometric(n, epsilon=epsilon).matrix) == pytest.approx(condition, rel=0.01)


@pytest.mark.parametrize("beyond", [0, 3])
def test_linear_laplace_is_the_mass_of_each_rounding_interval(beyond: int) -> None:
    channel = linear_laplace(4, epsilon=0.02, cell=50, beyond=beyond)
    edges = np.concatenate([[-np.inf], (np.arange(3 + 2 * beyond) - beyond + 0.5) * 50, [np.inf]])
    for truth in range(4):
        expected = np.diff(laplace.cdf(edges, loc=50 * truth, scale=1 / 0.02))
        assert channel.matrix[truth] == pytest.approx(expected, rel=1e-9)


@both
@pytest.mark.parametrize("rate", [1e-6, 0.3, 5, 100, 2000])
@pytest.mark.parametrize(("n", "beyond"), [(1, 0), (1, 4), (2, 0), (9, 0), (5, 30)])
def test_rows_sum_to_one_and_the_promise_is_kept(
    make: Callable[..., Channel], rate: float, n: int, beyond: int
) -> None:
    channel = make(n, epsilon=rate / 10, cell=10, beyond=beyond)
    assert np.abs(channel.matrix.sum(axis=1) - 1).max() < 1e-12
    assert channel.epsilon <= rate / 10


@both
@given(st.integers(2, 300), st.floats(-4, 5), st.floats(-11, 2))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_promise_is_kept_on_any_line(make: Callable[..., Channel], n: int, cell: float, rate: float) -> None:
    epsilon = 10**rate / 10**cell
    assert make(n, epsilon=epsilon, cell=10**cell).epsilon <= epsilon


@both
def test_the_promise_is_attained(make: Callable[..., Channel]) -> None:
    assert make(5, epsilon=0.7, beyond=2).epsilon == pytest.approx(0.7, rel=1e-11)


@both
def test_a_group_of_steps_costs_that_many_times(make: Callable[..., Channel]) -> None:
    channel = make(5, epsilon=0.7, beyond=2)
    # Between the first and the last value, four steps apart, whatever their distance is called.
    assert tight_epsilon(channel, discrete) == pytest.approx(4 * 0.7, rel=1e-11)


def test_reports_reach_beyond_the_values() -> None:
    channel = geometric(3, epsilon=1, cell=2, beyond=2)
    assert channel.inputs == Grid(0, 0, cell=2, columns=3, rows=1)
    assert channel.outputs == Grid(-4, 0, cell=2, columns=7, rows=1)
    assert channel.matrix[1] == pytest.approx(channel.matrix[1, ::-1])


@both
@pytest.mark.parametrize(
    "options", [{"n": 0}, {"epsilon": 0}, {"epsilon": math.nan}, {"cell": -1}, {"beyond": -1}, {"beyond": 0.5}]
)
def test_bad_arguments_are_refused(make: Callable[..., Channel], options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        make(**{"n": 3, "epsilon": 1.0} | options)
