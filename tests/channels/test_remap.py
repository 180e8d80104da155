import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import minimize

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Places,
    PlanarLaplace,
    PosteriorRemap,
    PostProcessed,
    Prior,
    SphericalLaplace,
    bayes_remap,
    discretise,
    expected_loss,
)
from geoind.arrays import FloatArray
from geoind.channels.remap import _Buckets, _Field, geometric_median
from geoind.distances import Distance, discrete, euclidean, hamming, manhattan, squared
from geoind.errors import SolverError
from tests.channels.test_metrics import BLOCK, masses, matrices


@given(matrices, masses)
@pytest.mark.parametrize("loss", [discrete, squared])
def test_remapping_never_raises_the_loss_or_epsilon(loss: Distance, channel: Channel, prior: Prior) -> None:
    better = channel @ bayes_remap(channel, prior, loss=loss)
    assert expected_loss(better, prior, loss=loss) <= expected_loss(channel, prior, loss=loss) + 1e-14
    assert better.epsilon <= channel.epsilon * (1 + 1e-12) + 1e-14


def test_no_other_deterministic_step_is_better() -> None:
    rng = np.random.default_rng(1)
    grid = Grid(0, 0, cell=1, columns=3, rows=1)
    channel = Channel(grid, grid, rng.dirichlet(np.ones(3), 3))
    prior = Prior(grid, rng.dirichlet(np.ones(3)))
    best = expected_loss(channel @ bayes_remap(channel, prior), prior)
    for targets in np.ndindex(3, 3, 3):
        assert expected_loss(channel @ Channel.deterministic(grid, grid, targets), prior) >= best - 1e-15


def test_reports_that_cannot_occur_stay_where_they_are() -> None:
    channel = Channel(BLOCK, BLOCK, np.eye(4))
    remap = bayes_remap(channel, Prior.over(BLOCK, [2]))
    assert (remap.matrix == np.eye(4)).all()


def test_reports_can_move_to_other_places() -> None:
    grid = Grid(0, 0, cell=100, columns=5, rows=5)
    channel = discretise(PlanarLaplace(0.01), grid)
    shops = Places([[110, 90], [390, 410]])
    remap = bayes_remap(channel, Prior.uniform(grid), outputs=shops)
    assert remap.outputs is shops
    assert (channel @ remap).epsilon <= 0.01


def test_reports_of_another_kind_are_remapped_and_impossible_ones_to_the_best_guess() -> None:
    records = Places([[0.0, 0.0, 0.0], [1.0, 0.0, 2.0]])
    letters = Places([[0.0], [1.0], [2.0]])
    channel = Channel(records, letters, [[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]])
    remap = bayes_remap(channel, Prior(records, [0.4, 0.6]), outputs=records, loss=hamming)
    assert remap.matrix.argmax(axis=1).tolist() == [0, 1, 1]


NOISE = PlanarLaplace(math.log(4) / 200)


def town(count: int = 3000, seed: int = 1) -> Prior:
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-4000, 4000, (8, 2))
    xy = centres[rng.integers(0, 8, count)] + rng.normal(size=(count, 2)) * 300
    return Prior.from_counts(Places(xy), rng.exponential(size=count))


def posterior(prior: Prior, report: FloatArray) -> FloatArray:
    distance = np.hypot(*(prior.sites.xy - report).T)
    weights = prior.mass * np.exp(NOISE.epsilon * (distance.min() - distance))
    return np.asarray(weights / weights.sum())


def reports(count: int = 60) -> FloatArray:
    """Around the town, one of them far away from everything."""
    return np.vstack([np.random.default_rng(2).uniform(-6000, 6000, (count - 1, 2)), [[300_000, -90_000]]])


@pytest.mark.parametrize("tolerance", [0.01, 1.0, 30.0])
def test_the_loss_is_within_the_tolerance_of_the_smallest(tolerance: float) -> None:
    prior = town()
    found = PosteriorRemap(prior, NOISE, tolerance=tolerance)(reports())
    for report, place in zip(reports(), found, strict=True):
        weights = posterior(prior, report)
        best = geometric_median(prior.sites.xy, weights[None], tolerance=1e-6)
        smallest, reached = weights @ euclidean(prior.sites.xy, np.vstack([best, place])).reshape(-1, 2)
        assert smallest - 1e-6 <= reached <= smallest + tolerance


@pytest.mark.parametrize("tolerance", [0.01, 1.0, 30.0])
def test_the_squared_loss_leads_to_the_mean(tolerance: float) -> None:
    prior = town()
    found = PosteriorRemap(prior, NOISE, loss=squared, tolerance=tolerance)(reports())
    means = np.array([posterior(prior, report) @ prior.sites.xy for report in reports()])
    assert np.hypot(*(found - means).T).max() <= tolerance


def test_a_report_in_the_middle_of_few_places_is_served_by_them() -> None:
    """They are farther from the middle of their square than the report is."""
    prior = Prior(Places([[0, 0], [140, 0], [0, 140], [140, 140]]), [0.25, 0.25, 0.25, 0.25])
    for loss in (euclidean, squared):
        found = PosteriorRemap(prior, NOISE, loss=loss, tolerance=0.01)([[70.0, 70.0]])
        np.testing.assert_allclose(found, [[70, 70]], atol=0.01)


def test_people_who_live_where_the_prior_says_are_served_better() -> None:
    prior = town()
    rng = np.random.default_rng(3)
    truth = prior.sites.xy[rng.choice(len(prior), 2000, p=prior.mass)]
    remapped = PostProcessed(NOISE, PosteriorRemap(prior, NOISE))
    before = np.hypot(*(NOISE.sample(truth, rng=4) - truth).T).mean()
    after = np.hypot(*(remapped.sample(truth, rng=4) - truth).T).mean()
    assert after < 0.95 * before
    assert remapped.epsilon == NOISE.epsilon


def test_the_batch_and_its_order_do_not_matter() -> None:
    remap = PosteriorRemap(town(), NOISE)
    together = remap(reports())
    one_by_one = np.vstack([remap(report[None]) for report in reports()])
    tolerance = remap.tolerance
    # Both are within the tolerance of the best loss; where they stand may differ by a little more.
    assert np.hypot(*(together - one_by_one).T).max() < 40 * tolerance
    assert remap(reports()[::-1])[::-1] == pytest.approx(together, abs=1e-6)


def test_a_single_place_takes_every_report() -> None:
    only = Prior.uniform(Places([[5.0, 7.0]]))
    assert PosteriorRemap(only, NOISE)([[0.0, 0.0], [1e6, 1e6]]) == pytest.approx(
        np.array([[5, 7], [5, 7]]), abs=1e-6
    )


def test_places_without_mass_attract_no_report() -> None:
    prior = Prior(Places([[0, 0], [100, 0]]), [1, 0])
    assert PosteriorRemap(prior, NOISE)([[100, 0]]) == pytest.approx(np.zeros((1, 2)), abs=1e-6)


def test_the_default_tolerance_follows_the_noise() -> None:
    assert PosteriorRemap(town(), NOISE).tolerance == pytest.approx(0.01 * NOISE.mean_radius)


def test_it_is_a_step_that_travels() -> None:
    remap = PosteriorRemap(town(), NOISE)
    remap(reports())
    assert pickle.loads(pickle.dumps(remap))(reports()) == pytest.approx(remap(reports()))
    assert remap(np.empty((0, 2))).shape == (0, 2)


def test_a_grid_is_a_set_of_places_too() -> None:
    grid = Grid(0, 0, cell=100, columns=20, rows=20)
    found = PosteriorRemap(Prior.uniform(grid), NOISE, tolerance=0.1)([[950, 950], [-2000, 950]])
    # In the middle by symmetry; from outside onto the grid.
    assert found[0] == pytest.approx([950, 950], abs=3)
    assert 0 <= found[1, 0] < 400


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((Places([[0, 0]]), NOISE), {}),
        ((town(10), SphericalLaplace(0.01)), {}),
        ((town(10), NOISE), {"loss": manhattan}),
        ((town(10), NOISE), {"tolerance": -1}),
        ((town(10), NOISE), {"tolerance": math.nan}),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[Any, Any], options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        PosteriorRemap(*arguments, **options)


def test_bad_reports_are_refused() -> None:
    with pytest.raises(InvalidInputError):
        PosteriorRemap(town(10), NOISE)([[math.nan, 0]])


def test_a_prior_may_pull_a_report_across_all_of_its_places_and_no_farther() -> None:
    prior = Prior(Places([[0, 0], [600, 800]]), [1e-9, 1 - 1e-9])
    noise = PlanarLaplace(0.001)
    pulled = PostProcessed(noise, PosteriorRemap(prior, noise))
    farthest = np.hypot(*pulled.sample(np.zeros((100, 2)), rng=1).T).max()
    assert farthest == pytest.approx(1000, abs=1)
    assert farthest <= pulled.reach(0.5) == 1000


def test_the_bound_is_for_truths_among_the_places_of_the_prior() -> None:
    remap = PosteriorRemap(Prior(Places([[0, 0], [600, 800], [900_000, 900_000]]), [0.5, 0.5, 0.0]), NOISE)
    remap.check_inside(np.array([[0.0, 0.0], [600.0, 800.0], [300.0, 10.0]]))
    for outside in ([-1.0, 10.0], [300.0, 801.0], [601.0, 300.0], [300.0, -1.0]):
        with pytest.raises(InvalidInputError, match="row 1 lies outside"):
            remap.check_inside(np.array([[1.0, 1.0], outside]))


@pytest.mark.parametrize("spread", [3.0, 300.0])
def test_buckets_hold_every_place_once_and_a_rectangle_meets_all_that_hold_its_places(spread: float) -> None:
    rng = np.random.default_rng(7)
    buckets = _Buckets(spread * rng.normal(size=(400, 2)), rng.uniform(1, 2, 400), 10.0)
    every = buckets.members(np.arange(len(buckets.mass)))
    assert np.sort(every).tolist() == list(range(400))
    squares = np.floor((buckets.xy - buckets.origin) / 10.0)
    assert len(np.unique(squares, axis=0)) == len(buckets.mass)
    for low in rng.normal(size=(20, 2)) * spread:
        high = low + spread
        inside = np.flatnonzero(((buckets.xy >= low) & (buckets.xy <= high)).all(axis=1))
        assert set(inside) <= set(buckets.members(buckets.within(low, high)))


def test_a_bucket_is_what_its_places_are_from_afar() -> None:
    rng = np.random.default_rng(8)
    xy, weight = 30 * rng.normal(size=(300, 2)), rng.uniform(0.1, 2, 300)
    buckets = _Buckets(xy, weight, 10.0)
    assert (buckets.origin == xy.min(axis=0)).all()
    squares = np.floor((xy - buckets.origin) / 10.0)
    for number, square in enumerate(zip(buckets.column, buckets.row, strict=True)):
        inside = (squares == square).all(axis=1)
        assert sorted(buckets.xy[buckets.members(np.array([number]))].tolist()) == sorted(xy[inside].tolist())
        centre = weight[inside] @ xy[inside] / weight[inside].sum()
        apart = np.hypot(*(xy[inside] - centre).T)
        assert buckets.mass[number] == pytest.approx(weight[inside].sum())
        assert buckets.centre[number] == pytest.approx(centre)
        assert buckets.variance[number] == pytest.approx(weight[inside] @ apart**2 / weight[inside].sum())
        assert buckets.radius[number] == pytest.approx(apart.max())
    # Row by row, so that a rectangle is one stretch of rows.
    assert sorted(zip(buckets.row, buckets.column, strict=True)) == list(
        zip(buckets.row, buckets.column, strict=True)
    )
    for low in 30 * rng.normal(size=(30, 2)):
        first, last = (np.floor((corner - buckets.origin) / 10.0) for corner in (low, low + 25))
        of_all = np.column_stack([buckets.column, buckets.row])
        met = ((of_all >= first) & (of_all <= last)).all(axis=1)
        assert buckets.within(low, low + 25).tolist() == np.flatnonzero(met).tolist()


@pytest.mark.parametrize("tolerance", [0.01, 1.0, 30.0])
def test_what_lies_beyond_the_cutoff_is_a_quarter_of_the_tolerance_and_hardly_less(tolerance: float) -> None:
    for prior in (town(), town(10)):
        remap = PosteriorRemap(prior, NOISE, tolerance=tolerance)
        for report, radius in zip(reports(), remap._cutoff(reports()), strict=True):
            distance = np.hypot(*(prior.sites.xy - report).T)
            closest = np.argsort(distance)[:32]
            near = distance[closest[0]]
            total = (prior.mass[closest] * np.exp(NOISE.epsilon * (near - distance[closest]))).sum()

            def left(r: float, near: float = near, total: float = total) -> float:
                return float(2 * r * np.exp(-NOISE.epsilon * (r - near)) / total)

            assert left(radius) <= tolerance / 4 * (1 + 1e-9)
            assert radius >= near + 1 / NOISE.epsilon
            if radius > near + 1 / NOISE.epsilon:
                assert left(radius - 0.25 / NOISE.epsilon) > tolerance / 4


@pytest.mark.parametrize("loss", [euclidean, squared])
@pytest.mark.parametrize("tolerance", [0.1, 5.0])
@pytest.mark.parametrize("side", [0.6, 3.0], ids=["some places in a bucket", "one place in a bucket"])
def test_the_buckets_that_are_left_out_are_the_least_and_a_quarter_of_the_tolerance(
    loss: Distance, tolerance: float, side: float
) -> None:
    """Bucket by bucket: the most that it can hold of the posterior, times what that can cost."""
    rng = np.random.default_rng(9)
    epsilon = NOISE.epsilon
    lattice = np.stack(np.meshgrid(np.arange(50.0), np.arange(50.0)), axis=-1).reshape(-1, 2)
    xy = (lattice + rng.uniform(-0.1, 0.1, lattice.shape)) * side / epsilon
    prior = Prior.from_counts(Places(xy), rng.exponential(size=len(xy)))
    remap = PosteriorRemap(prior, NOISE, loss=loss, tolerance=tolerance)
    buckets = remap._buckets
    asked = xy[[1275, 1276, 1325]] + 7.0
    cutoff = remap._cutoff(asked).max()
    around = buckets.within(asked.min(axis=0) - cutoff, asked.max(axis=0) + cutoff)
    costs = dict.fromkeys(around.tolist(), 0.0)
    for report in asked:
        apart = {number: math.dist(report, buckets.centre[number]) for number in costs}
        typical = {number: math.hypot(apart[number], math.sqrt(buckets.variance[number])) for number in costs}
        total = sum(buckets.mass[number] * math.exp(-epsilon * typical[number]) for number in costs)
        share, far = {}, {}
        for number in costs:
            near = max(0.0, apart[number] - buckets.radius[number])
            share[number] = buckets.mass[number] * math.exp(-epsilon * near) / total
            far[number] = apart[number] + buckets.radius[number]
        mean = sum(share[number] * far[number] for number in costs) + tolerance
        for number in costs:
            cost = share[number] * (2 * mean if loss is euclidean else far[number] + mean)
            costs[number] = max(costs[number], cost)
    left, out = 0.0, set()
    for number in sorted(costs, key=lambda number: costs[number]):
        left += costs[number]
        if left > tolerance / 4:
            break
        out.add(number)
    assert 0 < len(out) < len(costs)
    assert remap._near(asked).tolist() == sorted(set(costs) - out)


def test_reports_are_handled_square_by_square_and_each_once() -> None:
    remap = PosteriorRemap(town(10), NOISE)
    asked = 2 * reports(300)
    squares = np.floor(asked * NOISE.epsilon / 4)
    tiles = list(remap._tiles(asked))
    assert sorted(np.concatenate(tiles).tolist()) == list(range(300))
    assert [len(np.unique(squares[rows], axis=0)) for rows in tiles] == [1] * len(tiles)
    assert len(tiles) == len(np.unique(squares, axis=0))
    assert list(remap._tiles(np.empty((0, 2)))) == []


def test_the_parts_of_the_tolerance_are_no_more_than_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter each for places beyond the cutoff and for buckets left out, and something for that they are."""
    asked: list[float | None] = []

    def noted(*arguments: Any, tolerance: float | None = None, **options: Any) -> FloatArray:
        asked.append(tolerance)
        return geometric_median(*arguments, tolerance=tolerance, **options)

    monkeypatch.setattr("geoind.channels.remap.geometric_median", noted)
    PosteriorRemap(town(), NOISE, tolerance=0.01)(reports(10))
    assert {share for share in asked if share is not None and share < 0.01} == {0.45 * 0.01}


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
    monkeypatch.setattr("geoind.channels.remap.STEPS", 40)
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
    monkeypatch.setattr("geoind.channels.remap.STEPS", 1)
    with pytest.raises(SolverError, match="did not come within"):
        geometric_median(rng.normal(size=(20, 2)), rng.dirichlet(np.ones(20), 5))
