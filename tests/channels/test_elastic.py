"""The elastic distance: a metric whose balls hold their people; and k-people cloaking, which hides nothing."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.stats import chi2

from geoind import (
    Grid,
    InvalidInputError,
    KeyedRandomness,
    Places,
    Prior,
    audit,
    exponential,
    min_loss_given_epsilon,
    tight_epsilon,
)
from geoind.arrays import FloatArray, IntArray
from geoind.channels import ElasticNoise, elastic_distance, elastic_noise, people_cloaking
from geoind.errors import NotStochasticError
from geoind.space import GraphDistance
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
def elastic() -> GraphDistance:
    return elastic_distance(town_and_country(), share=SHARE)


@pytest.fixture(scope="module")
def noise() -> ElasticNoise:
    return elastic_noise(town_and_country(32), share=0.03)


def held(elastic: GraphDistance, people: Prior, level: float) -> FloatArray:
    """The share of the people in the ball around each site, one ball at a time."""
    mass = Prior.from_points(elastic.sites, people.sites.xy, weights=people.mass).mass
    return np.array([mass[row <= level].sum() for row in elastic.apart])


def test_it_is_a_metric(elastic: GraphDistance) -> None:
    apart = elastic.apart
    assert (apart == apart.T).all()
    assert (np.diag(apart) == 0).all()
    assert (apart + np.eye(len(apart)) > 0).all()
    some = np.arange(0, len(apart), 5)
    detours = (apart[some][:, :, None] + apart[:, some]).min(axis=1)
    assert (apart[np.ix_(some, some)] <= detours * (1 + 1e-12)).all()


def test_every_ball_holds_its_people_and_not_many_more(elastic: GraphDistance) -> None:
    shares = held(elastic, town_and_country(), math.log(2))
    assert shares.min() >= SHARE * (1 - 1e-9)
    assert np.median(shares) < 2.5 * SHARE


def random_people(columns: int, rows: int, seed: int) -> Prior:
    mass = np.random.default_rng(seed).pareto(0.7, columns * rows)
    return Prior.from_counts(Grid(0, 0, cell=50, columns=columns, rows=rows), np.where(mass < 1, 0, mass))


@settings(max_examples=trials(20), deadline=None)
@given(st.integers(4, 16), st.integers(4, 16), st.integers(0, 1000), st.floats(0.02, 0.9), st.floats(0.1, 3))
def test_balls_hold_their_people_whatever_the_density(
    columns: int, rows: int, seed: int, share: float, level: float
) -> None:
    people = random_people(columns, rows, seed)
    elastic = elastic_distance(people, share=share, level=level)
    assert held(elastic, people, level).min() >= share * (1 - 1e-9)
    detours = (elastic.apart[:, :, None] + elastic.apart[None]).min(axis=1)
    assert (elastic.apart <= detours * (1 + 1e-12)).all()


def test_a_single_cell_with_all_people_is_in_every_ball() -> None:
    people = Prior.over(Grid(0, 0, cell=100, columns=16, rows=16), [40])
    assert held(elastic_distance(people, share=0.5), people, math.log(2)).min() == pytest.approx(1)


def test_exponential_and_optimal_mechanisms_keep_the_elastic_promise(elastic: GraphDistance) -> None:
    noise = exponential(elastic.sites, elastic.sites, epsilon=1.0, distance=elastic)
    assert 0.5 < tight_epsilon(noise, elastic) <= 1
    grid = Grid(600, 600, cell=900, columns=5, rows=5)
    people = town_and_country()
    prior = Prior.from_points(grid, people.sites.xy, weights=people.mass, outside="drop", smoothing=0.001)
    best = min_loss_given_epsilon(prior, epsilon=1.0, distance=elastic)
    assert tight_epsilon(best, elastic) <= 1


def test_noise_is_small_in_town_and_large_in_the_country(noise: ElasticNoise) -> None:
    town, country = [[960.0, 1920.0]], [[2900.0, 300.0]]
    rates = [noise.rates_at(place)[0] for place in (town, country)]
    assert noise.epsilon >= rates[0] > 2 * rates[1]
    errors = [np.median(np.hypot(*(noise.sample(place * 2000, rng=3) - place[0]).T)) for place in (town, country)]
    assert errors[1] > 1.3 * errors[0]


def line_integral(noise: ElasticNoise, first: FloatArray, second: FloatArray) -> FloatArray:
    """Metres over the scales of the triangles along the straight line: at least the elastic distance."""
    steps = (np.arange(400) + 0.5) / 400
    places = first[:, None] + steps[:, None] * (second - first)[:, None]
    rates = noise.rates_at(places.reshape(-1, 2)).reshape(len(first), -1)
    return np.asarray(rates.mean(axis=1) * np.hypot(*(second - first).T))


def test_the_loss_between_any_two_places_is_within_the_promise(noise: ElasticNoise) -> None:
    """Random places, far and near; the elastic distance is at most the integral along the straight line."""
    rng = np.random.default_rng(4)
    first = rng.uniform(-50, 3150, (1500, 2))
    step = rng.choice([1.0, 30.0, 300.0, 1500.0], (1500, 1)) * rng.normal(size=(1500, 2))
    second = np.clip(first + step, -50, 3150)
    apart = line_integral(noise, first, second)
    loss = np.abs(np.log(noise.probabilities(first) / noise.probabilities(second))).max(axis=1)
    # The integral is a sum over 400 points.
    assert (loss <= 1.02 * apart + 1e-9).all()
    assert (loss / apart).max() > 0.7


def test_the_slope_in_a_triangle_is_within_its_rate_and_not_far_below(noise: ElasticNoise) -> None:
    rng = np.random.default_rng(5)
    places = rng.uniform(0, 3100, (3000, 2))
    angle = rng.uniform(0, 2 * np.pi, len(places))
    near = places + 1e-3 * np.column_stack([np.cos(angle), np.sin(angle)])
    loss = np.abs(np.log(noise.probabilities(near) / noise.probabilities(places))).max(axis=1) / 1e-3
    rates = np.maximum(noise.rates_at(places), noise.rates_at(near))
    assert (loss <= rates * (1 + 1e-6)).all()
    assert (loss / rates).max() > 0.8


def test_all_pairs_of_a_grid_of_places_keep_the_promise_of_shortest_paths(noise: ElasticNoise) -> None:
    """The elastic distance by another method: paths over a fine lattice of places with 16 directions."""
    side = 33
    lattice = Grid(-50, -50, cell=3200 / (side - 1), columns=side, rows=side)
    moves = [(1, 0), (0, 1), (1, 1), (1, -1), (1, 2), (2, 1), (1, -2), (2, -1)]
    column, row = np.arange(side**2) % side, np.arange(side**2) // side
    ends, lengths = [], []
    for east, north in moves:
        to = (column + east, row + north)
        kept = (to[0] < side) & (to[1] >= 0) & (to[1] < side)
        pair = np.column_stack([np.arange(side**2), to[1] * side + to[0]])[kept]
        ends.append(pair)
        lengths.append(line_integral(noise, lattice.xy[pair[:, 0]], lattice.xy[pair[:, 1]]))
    graph = csr_array((np.concatenate(lengths), np.concatenate(ends).T), shape=(side**2, side**2))
    apart = dijkstra(graph, directed=False) + np.eye(side**2)
    logs = np.log(noise.probabilities(lattice.xy))
    for number in range(0, side**2, 7):
        loss = np.abs(logs[number] - logs).max(axis=1)
        assert (loss <= 1.01 * apart[number]).all()
    # Every ball of the level around these places holds its people; paths over the lattice are a little too long.
    people = town_and_country(32)
    mass = np.bincount(lattice.nearest(people.sites.xy), weights=people.mass, minlength=side**2)
    np.fill_diagonal(apart, 0)
    assert ((apart <= 1.1 * noise.level) @ mass).min() >= noise.share


@settings(max_examples=trials(15), deadline=None)
@given(st.integers(2, 12), st.integers(2, 12), st.integers(0, 1000), st.floats(0.02, 0.9), st.floats(0.1, 3))
def test_the_promise_holds_whatever_the_density(
    columns: int, rows: int, seed: int, share: float, level: float
) -> None:
    noise = elastic_noise(random_people(columns, rows, seed), share=share, level=level)
    rng = np.random.default_rng(seed)
    places = rng.uniform(-25, 50 * np.array([columns, rows]) - 25, (200, 2))
    near = places + 1e-4 * rng.normal(size=places.shape)
    loss = np.abs(np.log(noise.probabilities(near) / noise.probabilities(places))).max(axis=1)
    rates = np.maximum(noise.rates_at(places), noise.rates_at(near))
    assert (loss <= rates * np.hypot(*(near - places).T) * (1 + 1e-6) + 1e-11).all()


def test_reports_have_the_promised_law(noise: ElasticNoise) -> None:
    count = 60_000
    for place in ([1013.0, 1890.0], [2840.0, 415.0]):
        expected = count * noise.probabilities([place])[0]
        # Rare reports are counted together.
        order = np.argsort(expected)
        group = np.empty(len(order), np.int64)
        group[order] = np.unique(np.floor(np.cumsum(expected[order]) / 500), return_inverse=True)[1]
        counts = np.bincount(
            group[noise.sites.nearest(noise.sample([place] * count, rng=6))], minlength=max(group) + 1
        )

        def statistic(law: FloatArray, counts: IntArray = counts, group: IntArray = group) -> float:
            mean = np.bincount(group, weights=law)
            return float(((counts - mean) ** 2 / mean).sum())

        assert statistic(expected) < chi2.isf(1e-9, max(group))
        # And not that of a place half a unit away.
        towards = np.sign(np.subtract(1500.0, place)) * 0.5 / noise.rates_at([place])[0]
        other = count * noise.probabilities([place + towards])[0]
        assert statistic(other) > chi2.isf(1e-9, max(group))


def test_keyed_reports_do_not_depend_on_the_other_rows() -> None:
    people = town_and_country(16)
    noise = elastic_noise(people, share=0.03)
    places = np.random.default_rng(7).uniform(0, 1500, (400, 2))
    all_at_once = noise.sample(places, rng=KeyedRandomness(bytes(32), np.arange(400)))
    for part in (slice(0, 1), slice(150, 400)):
        again = noise.sample(places[part], rng=KeyedRandomness(bytes(32), np.arange(400)[part]))
        assert (again == all_at_once[part]).all()
    # In another process, and with rows that are not kept.
    for other in (pickle.loads(pickle.dumps(noise)), elastic_noise(people, share=0.03)):
        assert (other.sample(places, rng=KeyedRandomness(bytes(32), np.arange(400))) == all_at_once).all()


def test_an_audit_does_not_refute_the_noise(noise: ElasticNoise) -> None:
    found = audit(noise, places=[[960.0, 1920.0], [2900.0, 300.0]], draws=trials(20_000), rng=1)
    assert not found.refuted


def test_reach_holds_everywhere_and_outside_is_refused(noise: ElasticNoise) -> None:
    reach = noise.reach(0.8)
    rng = np.random.default_rng(8)
    worst = 0.0
    for place in rng.uniform(-50, 3150, (20, 2)):
        away = np.hypot(*(noise.sites.xy - place).T)
        inside = noise.probabilities([place])[0] @ (away <= reach)
        worst = max(worst, 1 - inside)
    assert worst <= 0.2
    outside, border = [[-900.0, 130.0], [9000.0, 9000.0]], [[-50.0, 130.0], [3150.0, 3150.0]]
    assert (noise.sample(outside, rng=1) == noise.sample(border, rng=1)).all()
    with pytest.raises(InvalidInputError, match="row 1"):
        noise.check_inside(np.array([[1.0, 1.0], [-300.0, 0.0]]))
    assert noise.sample(np.empty((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("share", [0, 1, -0.1, math.nan, 2])
def test_a_share_is_between_0_and_1(share: float) -> None:
    with pytest.raises(InvalidInputError, match="share"):
        elastic_distance(town_and_country(16), share=share)
    with pytest.raises(InvalidInputError, match="share"):
        elastic_noise(town_and_country(16), share=share)
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
    with pytest.raises(InvalidInputError, match="on a Grid"):
        elastic_noise(people, share=0.1)


def test_grids_without_cells_and_people_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="columns"):
        Grid(0, 0, cell=100, columns=0, rows=4)
    with pytest.raises(NotStochasticError, match="positive"):
        Prior.from_counts(Grid(0, 0, cell=100, columns=4, rows=4), np.zeros(16))


def test_too_many_sites_are_refused() -> None:
    people = Prior.uniform(Grid(0, 0, cell=100, columns=120, rows=120))
    with pytest.raises(InvalidInputError, match="larger share"):
        elastic_distance(people, share=1e-4)
    with pytest.raises(InvalidInputError, match="100,000"):
        elastic_noise(Prior.uniform(Grid(0, 0, cell=100, columns=400, rows=400)), share=1e-6)


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
