import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from geoind import Grid, InvalidInputError, Places, Prior
from geoind.errors import SitesMismatchError
from geoind.estimate import earth_movers_distance, hotspots_found, total_variation
from tests.trials import trials

GRID = Grid(0, 0, cell=100, columns=6, rows=5)


def random_prior(seed: int, grid: Grid = GRID) -> Prior:
    return Prior(grid, np.random.default_rng(seed).dirichlet(np.full(len(grid), 0.5)))


def point(cell: int, grid: Grid = GRID) -> Prior:
    return Prior.from_counts(grid, np.eye(len(grid))[cell])


def test_total_variation_is_a_share() -> None:
    assert total_variation(point(0), point(7)) == 1
    assert total_variation(random_prior(1), random_prior(1)) == 0


@pytest.mark.slow
def test_one_pile_moves_in_a_straight_line() -> None:
    assert earth_movers_distance(point(0), point(9)) == pytest.approx(np.hypot(300, 100))
    assert earth_movers_distance(point(0), point(9), exact=False) == pytest.approx(np.hypot(300, 100), rel=1e-3)


def test_the_distance_is_the_optimum_of_the_transport_program() -> None:
    small = Grid(0, 0, cell=10, columns=3, rows=3)
    first, second = random_prior(2, small), random_prior(3, small)
    apart = np.hypot(*(small.xy[:, None] - small.xy[None]).transpose(2, 0, 1))
    leaves, arrives = np.kron(np.eye(9), np.ones(9)), np.kron(np.ones(9), np.eye(9))
    best = linprog(
        apart.ravel(), A_eq=np.vstack([leaves, arrives]), b_eq=np.concatenate([first.mass, second.mass])
    )
    assert earth_movers_distance(first, second) == pytest.approx(best.fun, rel=1e-6)


@settings(max_examples=trials(25), deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_sliced_distance_is_a_lower_bound_and_not_a_loose_one(one: int, other: int) -> None:
    first, second = random_prior(one), random_prior(other)
    exact, sliced = (earth_movers_distance(first, second, exact=exact) for exact in (True, False))
    assert 0.4 * exact <= sliced <= 1.001 * exact


def test_everybody_moving_the_same_way_is_measured_exactly_either_way() -> None:
    mass = np.zeros((5, 6))
    mass[1:3, 1:4] = np.random.default_rng(4).random((2, 3))
    first = Prior.from_counts(GRID, mass.ravel())
    second = Prior.from_counts(GRID, np.roll(mass, (2, 1), axis=(0, 1)).ravel())
    for exact in (True, False):
        assert earth_movers_distance(first, second, exact=exact) == pytest.approx(np.hypot(200, 100), rel=1e-3)


def test_equal_populations_do_not_move() -> None:
    assert earth_movers_distance(random_prior(5), random_prior(5)) == 0
    assert earth_movers_distance(random_prior(5), random_prior(5), exact=False) == 0


def test_hotspots_are_found_in_place_or_nearby() -> None:
    assert hotspots_found(random_prior(6), random_prior(6), count=5) == 1
    assert hotspots_found(point(0), point(1), count=1) == 0
    assert hotspots_found(point(0), point(1), count=1, within=100) == 1


def test_different_sites_and_bad_numbers_are_refused() -> None:
    other = Prior.uniform(Places(GRID.xy))
    for measure in (total_variation, earth_movers_distance, hotspots_found):
        with pytest.raises(SitesMismatchError):
            measure(other, point(0))
    with pytest.raises(InvalidInputError):
        hotspots_found(point(0), point(0), count=0)
    with pytest.raises(InvalidInputError):
        hotspots_found(point(0), point(0), within=-1)
