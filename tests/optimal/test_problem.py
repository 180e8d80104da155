"""A matrix that misses its promise becomes a channel that keeps it, at a small and known price."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind import (
    Channel,
    Grid,
    Places,
    Prior,
    expected_loss,
    max_adversary_error_given_loss,
    min_loss_given_epsilon,
    tight_epsilon,
)
from geoind.arrays import FloatArray
from geoind.distances import Distance, discrete, euclidean, manhattan
from geoind.errors import InvalidInputError, SitesMismatchError
from geoind.optimal import expost, least_loss, min_loss_given_adversary_error
from geoind.optimal.problem import as_loss, as_metric, keep_promise
from tests.trials import trials

METRIC = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.5], [2.0, 1.5, 0.0]])


def changed(row: int, column: int, value: float) -> FloatArray:
    matrix = METRIC.copy()
    matrix[row, column] = value
    return matrix


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (changed(0, 1, -1.0), "not negative"),
        (changed(0, 1, np.nan), "finite"),
        (changed(0, 1, np.inf), "finite"),
        (changed(1, 1, 1e-300), "0 from a site to itself"),
        (changed(0, 1, 1.0 + 1e-6), "symmetric"),
    ],
)
def test_what_is_no_metric_is_refused(matrix: FloatArray, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        as_metric(matrix, 3)


def test_of_two_distances_that_differ_by_rounding_the_smaller_one_counts() -> None:
    """The promise is epsilon times the distance: a larger one would promise less."""
    rounded = as_metric(changed(0, 1, 1.0 + 1e-12), 3)
    assert rounded[0, 1] == rounded[1, 0] == 1.0


def test_a_matrix_of_another_shape_is_refused() -> None:
    with pytest.raises(SitesMismatchError, match=r"\(3, 3\)"):
        as_metric(METRIC[:2], 3)
    with pytest.raises(SitesMismatchError, match="cost must give"):
        as_loss(METRIC, (3, 2), "cost")


def test_losses_may_be_negative_and_must_be_finite() -> None:
    assert as_loss(-METRIC, (3, 3)).min() == -2.0
    for bad in (np.nan, np.inf):
        with pytest.raises(InvalidInputError, match="loss must be finite"):
            as_loss(changed(0, 1, bad), (3, 3))


GRID = Grid(0, 0, cell=100, columns=3, rows=3)


def between_sites(distance: Distance) -> Callable[[Channel], float]:
    return partial(tight_epsilon, distance=distance)


def promising(epsilon: float, distance: Distance = euclidean) -> np.ndarray:
    """Rows proportional to e^(-epsilon d / 2): they attain a little less than epsilon."""
    weights = np.exp(-epsilon / 2 * distance(GRID.xy, GRID.xy))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@given(st.floats(-13, 0.5), st.sampled_from([euclidean, manhattan]), st.integers(0, 100))
@settings(max_examples=trials(60), deadline=None, derandomize=True)
def test_a_matrix_over_its_promise_is_brought_under_it_with_little_to_spare(
    over: float, distance: Distance, seed: int
) -> None:
    matrix = promising(0.02, distance)
    matrix *= np.random.default_rng(seed).uniform(0.9, 1.1, (9, 1))
    measured = tight_epsilon(
        keep_promise(GRID, GRID, matrix, epsilon=1.0, measure=between_sites(distance))[0], distance
    )
    promise = float(measured) / (1 + 10**over)
    channel, kept = keep_promise(GRID, GRID, matrix, epsilon=promise, measure=between_sites(distance))
    assert np.abs(channel.matrix.sum(axis=1) - 1).max() < 1e-12
    assert tight_epsilon(channel, distance) == kept <= promise
    # A fifth of the change would not have been enough, unless the change is down to rounding.
    rows = matrix / matrix.sum(axis=1, keepdims=True)
    change = channel.matrix - rows
    assert (
        np.abs(change).max() < 1e-12 or tight_epsilon(Channel(GRID, GRID, rows + change / 5), distance) > promise
    )


def test_a_matrix_within_its_promise_is_only_scaled() -> None:
    matrix = promising(0.02)
    channel, measured = keep_promise(GRID, GRID, 3 * matrix, epsilon=0.02, measure=between_sites(euclidean))
    np.testing.assert_allclose(channel.matrix, matrix, rtol=1e-15)
    assert measured == channel.epsilon


def test_the_identity_becomes_a_channel_within_epsilon() -> None:
    channel, measured = keep_promise(GRID, GRID, np.eye(9), epsilon=0.001, measure=between_sites(euclidean))
    assert measured <= 0.001
    assert channel.matrix.min() > 0


def test_sites_at_no_distance_share_a_row_in_the_end() -> None:
    twice = Places([[0, 0], [0, 0]])
    channel, measured = keep_promise(twice, twice, np.eye(2), epsilon=1.0, measure=between_sites(discrete))
    assert measured == 0
    np.testing.assert_array_equal(channel.matrix[0], channel.matrix[1])


def test_the_certificate_has_the_cost_of_the_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = Prior.uniform(GRID)
    honest = min_loss_given_epsilon(prior, epsilon=0.01).certificate
    # A solver that exceeds epsilon by its tolerance.
    monkeypatch.setattr(least_loss, "HEADROOM", -1e-5)
    best = min_loss_given_epsilon(prior, epsilon=0.01)
    found = best.certificate
    assert tight_epsilon(best) == found.epsilon <= 0.01
    assert np.abs(best.matrix.sum(axis=1) - 1).max() < 1e-12
    assert found.objective == pytest.approx(expected_loss(best, prior), rel=1e-12)
    # Before the repair the objective was better than any that keeps the promise; after it, it is not.
    assert found.objective - found.repair < honest.bound < honest.objective < found.objective * (1 + 1e-9)
    assert 0 < found.repair < 0.01 * found.objective


SOLVERS: list[Callable[..., Any]] = [
    partial(min_loss_given_epsilon, epsilon=0.01),
    partial(min_loss_given_epsilon, epsilon=0.01, tolerance=0.02),
    partial(max_adversary_error_given_loss, max_loss=10),
    partial(min_loss_given_adversary_error, min_error=0),
    partial(expost, epsilon=0.01),
]
by_every_solver = pytest.mark.parametrize("solve", SOLVERS, ids=lambda solve: solve.func.__name__)


@by_every_solver
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"outputs": []}, "outputs must be a Grid or Places, got list"),
        ({"outputs": GRID.xy}, "outputs must be a Grid or Places, got ndarray"),
        ({"outputs": Places([[1.0, 2.0, 3.0]])}, "same number of coordinates"),
        ({"loss": "euclidean"}, "loss must be a function"),
        ({"loss": lambda a, b: [["near"] * len(b)] * len(a)}, "loss must be numbers"),
        ({"loss": lambda a, b: np.full((len(a), len(b)), np.nan)}, "loss must be finite"),
    ],
)
def test_a_problem_with_wrong_parts_is_an_error(
    solve: Callable[..., Any], wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        solve(Prior.uniform(GRID), **wrong)


@by_every_solver
def test_a_problem_without_a_prior_is_an_error(solve: Callable[..., Any]) -> None:
    with pytest.raises(InvalidInputError, match="prior must be a Prior, got Grid"):
        solve(GRID)


@by_every_solver
@pytest.mark.parametrize(
    "prior",
    [
        Prior.uniform(Grid(0, 0, cell=100, columns=1, rows=1)),
        Prior(Places([[0, 0], [0, 0]]), [0.5, 0.5]),
        Prior(Places([[0, 0], [0, 0], [100, 0]]), [0.2, 0.3, 0.5]),
    ],
    ids=["single", "equal", "two equal"],
)
def test_single_and_equal_sites_are_problems_too(solve: Callable[..., Any], prior: Prior) -> None:
    channel = solve(prior)
    assert np.abs(channel.matrix.sum(axis=1) - 1).max() < 1e-12
    np.testing.assert_allclose(channel.matrix[0], channel.matrix[:2][-1], atol=1e-9)


def test_no_place_no_mass_and_no_cell_are_errors() -> None:
    with pytest.raises(InvalidInputError, match="at least one place"):
        Places(np.empty((0, 2)))
    for mass in (np.zeros(9), np.full(9, np.nan)):
        with pytest.raises(InvalidInputError, match="mass must"):
            Prior(GRID, mass)
        with pytest.raises(InvalidInputError, match="counts must"):
            Prior.from_counts(GRID, mass)
    for columns, rows in ((0, 3), (3, 0), (-1, 3)):
        with pytest.raises(InvalidInputError, match="positive whole number"):
            Grid(0, 0, cell=100, columns=columns, rows=rows)
