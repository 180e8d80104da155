import numpy as np
import pytest
from scipy.optimize import minimize

from geoind.arrays import FloatArray
from geoind.channels.median import _Field, geometric_median
from geoind.errors import SolverError


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


def field(points: FloatArray, touching: float) -> _Field:
    x, y = points.T
    return _Field(points, np.column_stack([np.ones_like(x), x, y, x * x, x * y]), touching)


def test_what_pulls_at_a_place_is_the_slope_and_the_curvature_of_the_mean_distance() -> None:
    rng = np.random.default_rng(4)
    points, weights, places = rng.normal(size=(9, 2)), rng.dirichlet(np.ones(9), 6), rng.normal(size=(6, 2))
    at = field(points, 1e-9).at(places, weights)
    for row, (place, weight) in enumerate(zip(places, weights, strict=True)):
        east, north = (points - place).T
        apart = np.hypot(east, north)
        assert at.value[row] == pytest.approx(weight @ apart)
        assert at.pull[row] == pytest.approx([weight @ (east / apart), weight @ (north / apart)])
        assert at.rate[row] == pytest.approx(weight / apart)
        hessian = np.array([[north * north, -east * north], [-east * north, east * east]]) @ (weight / apart**3)
        length = np.hypot(*at.pull[row])
        assert at.own[row] == 0
        assert at.excess[row] == pytest.approx(length)
        # The median is no farther than both mean distances together, so the slope bounds what it can gain.
        assert at.gap[row] == pytest.approx(2 * length * at.value[row])
        weiszfeld, newton = (steps[row] for steps in at.steps())
        assert weiszfeld == pytest.approx(at.pull[row] / (weight / apart).sum())
        assert newton == pytest.approx(np.linalg.solve(hessian, at.pull[row]))


@pytest.mark.parametrize(("own", "moves"), [(0.2, True), (0.9, False)])
def test_a_weight_at_the_place_itself_holds_it_back(own: float, moves: bool) -> None:
    """It counts as there up to the distance that is as good as none, and takes its share of the pull."""
    points = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, -4.0], [6.0, 0.0]])
    weights = np.array([[own, *[(1 - own) / 3] * 3]])
    for off in (0.0, 0.9e-3):
        at = field(points, 1e-3).at(np.array([[-off, 0.0]]), weights)
        assert at.own.tolist() == [own]
        assert at.value[0] == pytest.approx((1 - own) * 16 / 3, rel=1e-3)
        assert at.pull[0] == pytest.approx([(1 - own) / 3 * 2.2, 0], rel=1e-3)
        assert at.excess[0] == pytest.approx(max(0.0, (1 - own) / 3 * 2.2 - own), abs=1e-3)
        weiszfeld, newton = at.steps()
        # Where something is at the place itself the sum has a kink, and no curvature to be trusted.
        assert (weiszfeld == newton).all()
        assert bool(weiszfeld[0, 0] > 0) is moves
        assert weiszfeld[0, 0] == pytest.approx(at.excess[0] / at.stiffness[0])
    away = field(points, 1e-3).at(np.array([[-1.1e-3, 0.0]]), weights)
    assert away.own.tolist() == [0.0]


@pytest.mark.parametrize("tolerance", [1e-6, 1.0, 50.0])
def test_the_loss_is_within_the_tolerance_from_any_start(tolerance: float) -> None:
    rng = np.random.default_rng(5)
    points, weights = rng.normal(size=(20, 2)) * 1000, rng.dirichlet(np.ones(20), 30)
    best = geometric_median(points, weights)
    for start in (None, points[rng.integers(0, 20, 30)], rng.normal(size=(30, 2)) * 5000):
        found = geometric_median(points, weights, tolerance=tolerance, start=start)
        for here, there, weight in zip(found, best, weights, strict=True):
            smallest, reached = (weight @ np.hypot(*(points - place).T) for place in (there, here))
            assert reached <= smallest + tolerance
    assert geometric_median(points, np.empty((0, 20))).shape == (0, 2)


def test_a_median_that_is_not_found_in_time_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    monkeypatch.setattr("geoind.channels.median.STEPS", 1)
    with pytest.raises(SolverError, match="did not come within"):
        geometric_median(rng.normal(size=(20, 2)), rng.dirichlet(np.ones(20), 5))
