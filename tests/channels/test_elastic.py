"""The elastic distance: a metric whose balls hold their people; and k-people cloaking, which hides nothing."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoind import Grid, InvalidInputError, Places, Prior, exponential, min_loss_given_epsilon, tight_epsilon
from geoind.channels import ElasticDistance, Interpolated, elastic_distance, people_cloaking
from geoind.errors import NotStochasticError
from tests.trials import trials

SHARE = 0.01


def town_and_country(side: int = 48, seed: int = 1) -> Prior:
    """A dense town in a thin country with empty cells, which has no people in a corner."""
    grid = Grid(0, 0, cell=100, columns=side, rows=side)
    rng = np.random.default_rng(seed)
    away = np.hypot(*(grid.xy - 100 * side * np.array([0.3, 0.6])).T) / 100
    people = rng.poisson(40 * np.exp(-away / 4) + 0.3).astype(float)
    people[(grid.xy > 75 * side).all(axis=1)] = 0
    return Prior.from_counts(grid, people)


@pytest.fixture(scope="module")
def elastic() -> ElasticDistance:
    return elastic_distance(town_and_country(), share=SHARE)


def test_it_is_a_metric(elastic: ElasticDistance) -> None:
    apart = elastic.apart
    assert (apart == apart.T).all()
    assert (np.diag(apart) == 0).all()
    assert (apart + np.eye(len(apart)) > 0).all()
    some = np.arange(0, len(apart), 5)
    detours = (apart[some][:, :, None] + apart[:, some]).min(axis=1)
    assert (apart[np.ix_(some, some)] <= detours * (1 + 1e-12)).all()


def test_every_ball_holds_its_people_and_not_many_more(elastic: ElasticDistance) -> None:
    held = elastic.held(elastic.level)
    # Counted again, one ball at a time.
    balls = [elastic.people.mass[row <= elastic.level].sum() for row in elastic.apart]
    assert np.allclose(held, balls)
    assert held.min() >= SHARE
    assert np.median(held) < 2.5 * SHARE


@settings(max_examples=trials(20), deadline=None)
@given(st.integers(4, 16), st.integers(4, 16), st.integers(0, 1000), st.floats(0.02, 0.9), st.floats(0.1, 3))
def test_balls_hold_their_people_whatever_the_density(
    columns: int, rows: int, seed: int, share: float, level: float
) -> None:
    mass = np.random.default_rng(seed).pareto(0.7, columns * rows)
    people = Prior.from_counts(Grid(0, 0, cell=50, columns=columns, rows=rows), np.where(mass < 1, 0, mass))
    elastic = elastic_distance(people, share=share, level=level)
    assert elastic.held(level).min() >= share * (1 - 1e-9)


def test_a_single_cell_with_all_people_is_in_every_ball() -> None:
    people = Prior.over(Grid(0, 0, cell=100, columns=16, rows=16), [40])
    elastic = elastic_distance(people, share=0.5)
    assert elastic.held(elastic.level).min() == pytest.approx(1)


def test_noise_is_small_in_town_and_large_in_the_country(elastic: ElasticDistance) -> None:
    noise = Interpolated(exponential(elastic.sites, elastic.sites, epsilon=1.0, distance=elastic))
    town, country = [[1440.0, 2880.0]], [[4000.0, 600.0]]
    rates = [noise.rates_at(place)[0] for place in (town, country)]
    assert rates[0] > 3 * rates[1]
    errors = [np.median(np.hypot(*(noise.sample(place * 4000, rng=3) - place[0]).T)) for place in (town, country)]
    assert errors[1] > 1.5 * errors[0]


def test_exponential_and_optimal_mechanisms_keep_the_elastic_promise(elastic: ElasticDistance) -> None:
    noise = exponential(elastic.sites, elastic.sites, epsilon=1.0, distance=elastic)
    assert 0.5 < tight_epsilon(noise, elastic) <= 1
    grid = Grid(600, 600, cell=900, columns=5, rows=5)
    prior = Prior.from_points(grid, elastic.sites.xy, weights=elastic.people.mass, outside="drop", smoothing=0.001)
    best = min_loss_given_epsilon(prior, epsilon=1.0, distance=elastic)
    assert tight_epsilon(best, elastic) <= 1


@pytest.mark.parametrize("share", [0, 1, -0.1, math.nan, 2])
def test_a_share_is_between_0_and_1(share: float) -> None:
    with pytest.raises(InvalidInputError, match="share"):
        elastic_distance(town_and_country(16), share=share)
    with pytest.raises(InvalidInputError, match="share"):
        people_cloaking(town_and_country(16), share=share)


@pytest.mark.parametrize(
    "people",
    [
        Prior.uniform(Grid(0, 0, cell=100, columns=1, rows=1)),
        Prior.uniform(Grid(0, 0, cell=100, columns=9, rows=1)),
        Prior.uniform(Places([[0, 0], [5, 0], [0, 5]])),
    ],
)
def test_people_who_are_not_on_a_grid_of_the_plane_are_refused(people: Prior) -> None:
    with pytest.raises(InvalidInputError, match="on a Grid"):
        elastic_distance(people, share=0.1)


def test_grids_without_cells_and_people_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="columns"):
        Grid(0, 0, cell=100, columns=0, rows=4)
    with pytest.raises(NotStochasticError, match="positive"):
        Prior.from_counts(Grid(0, 0, cell=100, columns=4, rows=4), np.zeros(16))


def test_too_many_sites_are_refused() -> None:
    people = Prior.uniform(Grid(0, 0, cell=100, columns=120, rows=120))
    with pytest.raises(InvalidInputError, match="larger share"):
        elastic_distance(people, share=1e-4)


def test_cloaking_has_k_people_no_epsilon_and_does_not_compose() -> None:
    people = town_and_country()
    cloak = people_cloaking(people, share=SHARE)
    assert cloak.epsilon == math.inf
    mass = people.mass.reshape(48, 48)
    for number in range(0, 48 * 48, 37):
        low, side = np.zeros(2, int), 64
        cell = np.array(divmod(number, 48))
        while side > 1:
            south, west = quarter = low + side // 2 * (cell >= low + side // 2)
            if mass[south : south + side // 2, west : west + side // 2].sum() < SHARE:
                break
            low, side = quarter, side // 2
        centre = 100 * (low + np.minimum(low + side, 48) - 1) / 2
        assert cloak.outputs.xy[cloak.matrix[number].argmax()].tolist() == centre[::-1].tolist()
    # A second provider whose grid begins elsewhere: each block holds its share, their common part does not.
    grid = people.sites
    assert isinstance(grid, Grid)
    wider = Grid(grid.x - 1100, grid.y - 700, cell=100, columns=64, rows=64)
    wide = np.zeros(len(wider))
    wide[wider.nearest(grid.xy)] = people.mass
    other = people_cloaking(Prior.from_counts(wider, wide), share=SHARE)
    first = cloak.matrix.argmax(axis=1)
    second = other.matrix.argmax(axis=1)[wider.nearest(grid.xy)]
    _, both = np.unique(np.column_stack([first, second]), axis=0, return_inverse=True)
    common = np.bincount(both.ravel(), weights=people.mass)[both.ravel()]
    assert people.mass[common < SHARE / 2].sum() > 0.2
