import numpy as np
import pytest
from scipy.optimize import minimize

from geoind.arrays import FloatArray
from geoind.channels.median import geometric_median


@pytest.mark.parametrize("seed", range(5))
def test_no_search_finds_a_better_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(20, 2)) * 1000, rng.dirichlet(np.ones(20) / 2, 30)
    found = geometric_median(points, weights)
    for here, weight in zip(found, weights, strict=True):

        def cost(place: FloatArray, weight: FloatArray = weight) -> float:
            return float(weight @ np.hypot(*(points - place).T))

        best = min(minimize(cost, start, method="Nelder-Mead").fun for start in (here, points.mean(axis=0)))
        assert cost(here) <= min(best, *(cost(point) for point in points)) * (1 + 1e-9)


def test_a_point_with_half_of_the_weight_is_the_median() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [7.0, 3.0]])
    assert (geometric_median(points, np.array([[0.2, 0.2, 0.1, 0.5]])) == [7, 3]).all()


def test_a_point_with_more_than_half_of_the_weight_is_found_with_no_tolerance_at_all() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [7.0, 3.0]])
    weights = np.full((4, 4), 0.125) + 0.5 * np.eye(4)
    assert (geometric_median(points, weights, tolerance=0.0) == points).all()
    assert (geometric_median(points, weights, tolerance=0.0, start=points) == points).all()


def test_points_on_a_line_give_the_weighted_median() -> None:
    points = np.column_stack([np.arange(5.0), np.zeros(5)])
    assert geometric_median(points, np.array([[1.0, 1, 1, 1, 1.5]])) == pytest.approx(np.array([[2, 0]]), abs=1e-6)


def test_a_single_point_is_its_own_median() -> None:
    assert (geometric_median(np.array([[3.0, 4.0]]), np.array([[1.0]])) == [3, 4]).all()


@pytest.mark.parametrize("scale", [1e-12, 1e9])
def test_only_the_proportions_of_weights_count(scale: float) -> None:
    rng = np.random.default_rng(1)
    points, weights = rng.normal(size=(20, 2)) * 1000, rng.dirichlet(np.ones(20), 5)
    np.testing.assert_allclose(
        geometric_median(points, scale * weights), geometric_median(points, weights), atol=1e-3
    )


@pytest.mark.parametrize("along", [[1.0, 1.0], [1.0, -1.0], [0.0, 1.0]])
def test_points_on_a_line_in_any_direction_have_a_median(along: list[float]) -> None:
    points = 100 * np.outer(np.arange(5.0), along)
    found = geometric_median(points, np.array([[1.0, 1, 1, 1, 1.5]]))
    np.testing.assert_allclose(found, points[2:3], atol=1e-4)


def test_medians_move_with_their_points() -> None:
    rng = np.random.default_rng(2)
    points, weights, shift = rng.normal(size=(20, 2)) * 1000, rng.dirichlet(np.ones(20), 5), np.array([0.0, 1e9])
    moved = geometric_median(points + shift, weights) - shift
    np.testing.assert_allclose(moved, geometric_median(points, weights), atol=0.01)


def test_newtons_steps_find_it_in_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a wrong curvature Weiszfeld's steps alone would take hundreds."""
    rng = np.random.default_rng(3)
    points, weights = rng.normal(size=(20, 2)) * 1000, rng.dirichlet(np.ones(20), 50)
    monkeypatch.setattr("geoind.channels.median.STEPS", 40)
    geometric_median(points, weights)
