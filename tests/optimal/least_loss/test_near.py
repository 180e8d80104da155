"""Cheap mechanisms and the bound of interleaved groups."""

import numpy as np
import pytest

from geoind import Grid, Places, Prior, tight_epsilon
from geoind.arrays import FloatArray
from geoind.channels.channel import Channel
from geoind.distances import Distance, discrete, euclidean, manhattan
from geoind.optimal.least_loss.effort import Effort
from geoind.optimal.least_loss.exact import as_task, solve
from geoind.optimal.least_loss.near import _interleaved, _mechanisms, cheap_candidate, partition_bound

GRID = Grid(0, 0, cell=100, columns=6, rows=5)
SKEWED = Prior(GRID, np.random.default_rng(1).dirichlet(np.ones(30)))


@pytest.mark.parametrize("largest", [1, 4, 8, 29, 30, 100])
@pytest.mark.parametrize("sites", [GRID, Places(np.random.default_rng(2).uniform(0, 500, (30, 2)))])
def test_groups_are_small_and_spread_over_all_places(sites: Grid | Places, largest: int) -> None:
    groups = _interleaved(as_task(Prior.uniform(sites), 0.01, None, euclidean, euclidean), largest)
    sizes = np.bincount(groups)
    assert groups.shape == (30,)
    assert sizes.max() <= largest + (largest < 30) * (largest if isinstance(sites, Grid) else 0)
    assert sizes.min() > 0
    if largest >= 30:
        assert len(sizes) == 1
    elif largest >= 4:
        spread = np.ptp(sites.xy, axis=0).min()
        assert all(np.ptp(sites.xy[groups == group], axis=0).max() > 0.4 * spread for group in range(len(sizes)))


@pytest.mark.parametrize("largest", [5, 15, 30])
def test_the_bound_of_the_groups_holds_and_is_exact_for_one_group(largest: int) -> None:
    problem = as_task(SKEWED, 0.01, None, euclidean, euclidean)
    best = solve(problem, Effort(tolerance=1e-7)).last
    bound, groups, yardstick = partition_bound(problem, largest)
    assert bound <= best.objective * (1 + 1e-9)
    assert yardstick > 0
    if largest == 30:
        assert groups == 1
        assert bound > 0.98 * best.objective
    else:
        assert groups > 1
        assert bound > 0.2 * best.objective


def test_groups_without_mass_cost_nothing() -> None:
    few = Prior.over(GRID, [0, 1])
    problem = as_task(few, 0.01, None, euclidean, euclidean)
    assert partition_bound(problem, 5)[0] <= solve(problem, Effort(tolerance=1e-7)).last.objective


@pytest.mark.parametrize(
    ("loss", "distance"), [(euclidean, euclidean), (manhattan, manhattan), (discrete, euclidean)]
)
def test_the_cheap_candidate_keeps_the_promise_and_is_not_far_off(loss: Distance, distance: Distance) -> None:
    problem = as_task(SKEWED, 0.01, None, loss, distance)
    matrix, name = cheap_candidate(problem, SKEWED, loss, distance)
    assert tight_epsilon(Channel(GRID, GRID, matrix), distance) <= 0.01 * (1 + 1e-9)
    best = solve(problem, Effort(tolerance=1e-7)).last.objective
    assert best * (1 - 1e-9) <= problem.objective(matrix) <= 1.8 * best
    assert name.endswith(("and Bayes remap", "one report for all"))


def half(a: FloatArray, b: FloatArray) -> FloatArray:
    """A metric in which a promise is twice as strict."""
    return np.asarray(euclidean(a, b) / 2)


@pytest.mark.parametrize("sites", [GRID, Places(GRID.xy)], ids=["grid", "places"])
@pytest.mark.parametrize("distance", [euclidean, manhattan, half], ids=lambda distance: distance.__name__)
def test_every_mechanism_that_is_compared_keeps_the_promise_in_its_metric(
    sites: Grid | Places, distance: Distance
) -> None:
    prior = Prior(sites, SKEWED.mass)
    found = _mechanisms(as_task(prior, 0.01, None, euclidean, distance), prior, euclidean, distance)
    assert all(tight_epsilon(channel, distance) <= 0.01 * (1 + 1e-9) for channel, _ in found)
    # Planar Laplace is cut into cells, and speaks of metres.
    laplace = {"planar Laplace"} if isinstance(sites, Grid) and distance is euclidean else set()
    assert {name for _, name in found} == {"exponential mechanism", "ExPost"} | laplace


def test_where_one_report_is_best_it_is_the_candidate() -> None:
    problem = as_task(SKEWED, 1e-9, None, euclidean, euclidean)
    matrix, name = cheap_candidate(problem, SKEWED, euclidean, euclidean)
    assert problem.objective(matrix) == pytest.approx((SKEWED.mass @ problem.cost).min(), rel=1e-6)
    assert (np.ptp(matrix, axis=0) < 1e-6).all()
    assert name
