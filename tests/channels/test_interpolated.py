"""Channels as mechanisms of every place: the law of the reports, and the exact epsilon between any two places."""

import math

import numpy as np
import pytest
from scipy.spatial import Delaunay
from scipy.stats import chi2

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    KeyedRandomness,
    Places,
    exponential,
    planar_geometric,
    tight_epsilon,
)
from geoind.arrays import FloatArray, IntArray
from geoind.channels import Interpolated
from geoind.channels.rows import choose_each, choose_exactly
from geoind.distances import euclidean, manhattan
from tests.given_words import GivenWords

GRID = Grid(0, 0, cell=100, columns=5, rows=5)


MOVED = np.random.default_rng(3).uniform(-30, 30, (25, 2)) * ((GRID.xy > 0) & (GRID.xy < 400))
ANYWHERE = Places(GRID.xy + MOVED)
"""Sites of no grid, between which there are triangles."""


def pieces_of(sites: Grid | Places, points: FloatArray) -> IntArray:
    """The square or triangle of each point."""
    if isinstance(sites, Places):
        return np.asarray(Delaunay(sites.xy).find_simplex(points))
    return np.asarray((points // 100 @ [1, 4]).astype(int))


def probabilities(channel: Channel, points: FloatArray) -> FloatArray:
    """The law of the report of each point, from its definition: of the sites, along each axis or in a triangle."""
    if isinstance(channel.inputs, Grid):
        hat = np.maximum(0, 1 - np.abs(points[:, None] - channel.inputs.xy) / 100)
        return np.asarray(hat.prod(axis=2) @ channel.matrix)
    corners = Delaunay(channel.inputs.xy).simplices[pieces_of(ANYWHERE, points)]
    xy = channel.inputs.xy[corners]
    system = np.concatenate([xy.transpose(0, 2, 1), np.ones((len(points), 1, 3))], axis=1)
    right = np.column_stack([points, np.ones(len(points))])
    weights = np.linalg.solve(system, right[..., None])[..., 0]
    return np.asarray(np.einsum("nc,ncz->nz", weights, channel.matrix[corners]))


@pytest.mark.parametrize("sites", [GRID, ANYWHERE])
def test_epsilon_holds_between_any_two_places_and_is_attained(sites: Grid | Places) -> None:
    channel = exponential(sites, GRID, epsilon=0.01)
    mechanism = Interpolated(channel)
    rng = np.random.default_rng(1)
    first = rng.uniform(0, 400, (20_000, 2))
    step = rng.exponential(1.0, (20_000, 1)) * rng.choice([0.01, 10, 100], (20_000, 1))
    angle = rng.uniform(0, 2 * np.pi, 20_000)
    second = np.clip(first + step * np.column_stack([np.cos(angle), np.sin(angle)]), 0.01, 399.99)
    apart = np.hypot(*(second - first).T)
    loss = np.abs(np.log(probabilities(channel, first) / probabilities(channel, second))).max(axis=1)
    rates = loss[apart > 1e-3] / apart[apart > 1e-3]
    assert rates.max() <= mechanism.epsilon * (1 + 1e-6)
    assert rates.max() > 0.9 * mechanism.epsilon
    # A rate is local: short steps within a square or triangle lose no more than its own.
    near = (apart < 0.5) & (apart > 1e-3) & (pieces_of(sites, first) == pieces_of(sites, second))
    assert near.sum() > 1000
    assert (loss[near] <= apart[near] * mechanism.rates_at(first[near]) * (1 + 1e-6)).all()


def test_a_valley_at_a_site_is_steepest_between_its_row_and_its_column() -> None:
    """Private between the sites with epsilon along rows and columns, and steeper along the diagonal."""
    grid = Grid(0, 0, cell=100, columns=3, rows=3)
    valley = 1e-3 * np.exp(0.005 * manhattan(grid.xy, grid.xy[[4]])[:, 0])
    channel = Channel(grid, Grid(0, 0, cell=1, columns=2, rows=1), np.column_stack([valley, 1 - valley]))
    assert tight_epsilon(channel, manhattan) == pytest.approx(0.005, rel=1e-9)
    assert Interpolated(channel).epsilon == pytest.approx(math.sqrt(2) * math.expm1(0.5) / 100, rel=1e-9)


def test_reach_holds_at_every_place_and_is_not_much_more() -> None:
    for sites in (GRID, ANYWHERE):
        channel = exponential(sites, GRID, epsilon=0.02)
        mechanism, places = Interpolated(channel), np.random.default_rng(2).uniform(0, 399.99, (200, 2))
        apart, law = euclidean(places, GRID.xy), probabilities(channel, places)
        for confidence in (0.05, 0.5, 0.95):
            within = np.where(apart <= mechanism.reach(confidence), law, 0).sum(axis=1)
            assert within.min() >= confidence - 1e-9
    exact = max(
        float(np.sort(row)[np.searchsorted(np.cumsum(law[np.argsort(row)]), 0.5)])
        for row, law in zip(euclidean(GRID.xy, GRID.xy), exponential(GRID, GRID, epsilon=0.02).matrix, strict=True)
    )
    reach = Interpolated(exponential(GRID, GRID, epsilon=0.02)).reach(0.5)
    assert exact + math.sqrt(2) * 100 <= reach < exact + math.sqrt(2) * 100 + 1


def test_reports_have_the_interpolated_law() -> None:
    channel = planar_geometric(GRID, epsilon=0.02)
    mechanism = Interpolated(channel)
    for place in ([133.0, 271.0], [0.0, 400.0]):
        expected = 40_000 * probabilities(channel, np.array([place]))[0]
        reports = GRID.nearest(mechanism.sample([place] * 40_000, rng=5))
        counts = np.bincount(reports, minlength=25)
        statistic = ((counts - expected) ** 2 / expected).sum()
        assert statistic < chi2.isf(1e-9, 24)
        # And not that of a place 60 m away.
        other = 40_000 * probabilities(channel, np.clip(np.add([place], [60, -60]), 0, 400))[0]
        assert ((counts - other) ** 2 / other).sum() > chi2.isf(1e-9, 24)


def test_a_place_outside_counts_as_the_closest_one_of_the_hull() -> None:
    mechanism = Interpolated(exponential(GRID, GRID, epsilon=0.01))
    outside, border = [[-250.0, 130.0], [900.0, 900.0]], [[0.0, 130.0], [400.0, 400.0]]
    assert (mechanism.rates_at(outside) == mechanism.rates_at(border)).all()
    reports = mechanism.sample(outside * 3000, rng=1), mechanism.sample(border * 3000, rng=1)
    assert (reports[0] == reports[1]).all()
    with pytest.raises(InvalidInputError, match="row 1"):
        mechanism.check_inside(np.array([[1.0, 1.0], [-1.0, 0.0]]))


@pytest.mark.parametrize("sites", [GRID, ANYWHERE])
def test_a_report_that_only_one_corner_makes_has_no_epsilon(sites: Grid | Places) -> None:
    assert Interpolated(Channel.deterministic(sites, GRID, np.arange(25))).epsilon == math.inf
    assert Interpolated(Channel.deterministic(sites, GRID, np.zeros(25, int))).epsilon == 0


@pytest.mark.parametrize("sites", [GRID, ANYWHERE])
def test_the_rate_of_the_smallest_probabilities_is_measured(sites: Grid | Places) -> None:
    """They are whole multiples of the smallest double, which slopes per metre are not."""
    times = np.random.default_rng(4).integers(1, 9, 25)
    rates = []
    for smallest in (2.0**-900, 2.0**-1074):
        rare = times * smallest
        rates.append(
            Interpolated(Channel(sites, Places([[0, 0], [9, 9]]), np.column_stack([rare, 1 - rare]))).rates
        )
    assert rates[1] == pytest.approx(rates[0], rel=1e-12)
    assert rates[0].max() > 0.02


@pytest.mark.parametrize(
    "sites",
    [
        Grid(0, 0, cell=100, columns=5, rows=1),
        Places([[0, 0], [1, 1]]),
        Places([[0, 0], [1, 1], [2, 2], [3, 3]]),
        Places([[0, 0], [9, 0], [0, 9], [0, 0]]),
        Places([[0, 0, 1], [9, 0, 1], [0, 9, 1], [3, 3, 3]]),
    ],
)
def test_sites_without_triangles_are_refused(sites: Grid | Places) -> None:
    channel = Channel(sites, sites, np.full((len(sites), len(sites)), 1 / len(sites)))
    with pytest.raises(InvalidInputError, match="inputs"):
        Interpolated(channel)


@pytest.mark.parametrize("sites", [GRID, ANYWHERE])
def test_a_place_alone_has_the_report_that_it_has_among_others(sites: Grid | Places) -> None:
    """Also without arrays, from the same words; some places are sites, on borders, or outside."""
    mechanism = Interpolated(exponential(sites, GRID, epsilon=0.01))
    places = np.random.default_rng(6).uniform(-50, 450, (400, 2))
    places[:100] = np.clip(places[:100] // 100 * 100, 0, 400)
    source = KeyedRandomness(bytes(32), np.arange(400))
    many = mechanism.sample_outputs(places, rng=source).tolist()
    first = source.words(places, 1, mechanism.purpose)[:, 0].tolist()
    second = source.words(places, 1, "another purpose")[:, 0].tolist()
    sites_alone = Interpolated(Channel.deterministic(sites, sites, np.arange(25)))
    for number, place in enumerate(places):
        alone = mechanism.sample_outputs([place], rng=KeyedRandomness(bytes(32), [number]))
        assert alone.tolist() == [many[number]]
        given = GivenWords([(first[number],)]), GivenWords([(second[number],)])
        site = sites_alone.sample_outputs([place], rng=given[0])
        wanted = mechanism.channel.sample_indices(site, rng=given[1])
        found = mechanism.sample_output(place.item(0), place.item(1), first[number], second[number])
        assert [found] == wanted.tolist()


def test_a_grid_elsewhere_in_the_plane_has_the_same_reports() -> None:
    here, move = exponential(GRID, GRID, epsilon=0.01), np.array([-1700.0, 900.0])
    moved = Grid(-1700, 900, cell=100, columns=5, rows=5)
    elsewhere = Interpolated(Channel(moved, moved, here.matrix))
    # Whole numbers of metres: nothing is rounded on the way.
    places = np.random.default_rng(8).integers(-50, 450, (300, 2)).astype(float)
    wanted = Interpolated(here).sample_outputs(places, rng=1)
    assert (elsewhere.sample_outputs(places + move, rng=1) == wanted).all()
    assert len(np.unique(wanted)) == 25
    words = np.random.default_rng(9).integers(2**64, size=(100, 2), dtype=np.uint64).tolist()
    for (x, y), (first, second) in zip(places.tolist(), words, strict=False):
        alone = Interpolated(here).sample_output(x, y, first, second)
        assert elsewhere.sample_output(x - 1700, y + 900, first, second) == alone


def test_no_points_have_no_reports() -> None:
    assert Interpolated(exponential(GRID, GRID, epsilon=0.01)).sample(np.empty((0, 2))).shape == (0, 2)


def test_the_choice_among_sites_is_exact_where_doubles_cannot_decide() -> None:
    """Words next to the border of the first two weights: one more bit decides on either side."""
    weights = np.array([[0.25, 0.5, 0.25]] * 4)
    words = np.array([2**62 - 1, 2**62, 2**62 + 2**40, 3 * 2**62 - 1], dtype=np.uint64)
    chosen, undecided = choose_each(weights, words)
    assert undecided.tolist() == [0, 1, 3]
    assert chosen[2] == 1
    exact = [choose_exactly(weights[row], int(words[row]), lambda _: (0, 0)) for row in undecided]
    assert exact == [0, 1, 1]
