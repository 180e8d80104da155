import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

from geoind import Channel, Grid, InvalidInputError, Places, PlanarLaplace, discretise, planar_geometric
from geoind.accounting import Promise, delta_of_reports, group, sequential
from geoind.accounting.finite import tight_delta
from geoind.channels import after_query, compose, linear_laplace
from geoind.distances import discrete, euclidean, from_matrix, hamming

TOWN = Grid(0, 0, cell=100, columns=4, rows=3)


def random_channel(seed: int) -> Channel:
    return Channel(TOWN, TOWN, np.random.default_rng(seed).dirichlet(np.ones(12) * 0.4, size=12))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("level", "radius"), [(0.0, 150), (0.7, 100), (2.5, 1000)])
def test_delta_is_the_largest_over_all_pairs_within_the_radius_and_all_sets_of_reports(
    seed: int, level: float, radius: int
) -> None:
    channel = random_channel(seed)
    best = 0.0
    for x in range(12):
        for y in range(12):
            if 0 < np.hypot(*(TOWN.xy[x] - TOWN.xy[y])) <= radius:
                likelier = channel.matrix[x] > math.exp(level) * channel.matrix[y]
                gain = (channel.matrix[x] - math.exp(level) * channel.matrix[y])[likelier].sum()
                best = max(best, gain)
    delta = tight_delta(channel, level=level, radius=radius)
    assert delta == pytest.approx(best)
    gain = np.maximum(channel.matrix[delta.truth] - math.exp(level) * channel.matrix[delta.other], 0).sum()
    assert delta == pytest.approx(gain)
    assert pickle.loads(pickle.dumps(delta)).other == delta.other


def test_delta_is_zero_exactly_from_the_channels_own_level_on() -> None:
    channel = planar_geometric(TOWN, epsilon=0.01)
    assert tight_delta(channel, level=channel.epsilon * 100 * (1 + 1e-12), radius=100) < 1e-12
    assert tight_delta(channel, level=channel.epsilon * 100 * 0.99, radius=100) > 1e-4


def test_a_discretised_mechanism_reveals_less_than_the_continuous_one() -> None:
    noise = PlanarLaplace(0.01)
    for level in (0.0, 0.5):
        finite = tight_delta(discretise(noise, TOWN), level=level, radius=100)
        assert 0 < finite <= delta_of_reports(noise, reports=1, radius=100, level=level)


def test_delta_is_a_probability_whatever_the_rounding_of_a_row() -> None:
    """Two inputs without a common report: delta is 1, and rounded sums of some rows are above 1."""
    line, reports = (Grid(0, 0, cell=1, columns=columns, rows=1) for columns in (2, 20))
    for seed in range(100):
        halves = np.random.default_rng(seed).dirichlet(np.ones(10), size=2)
        channel = Channel(
            line, reports, np.block([[halves[:1], np.zeros((1, 10))], [np.zeros((1, 10)), halves[1:]]])
        )
        assert 1 - 1e-12 < tight_delta(channel, level=3.0, radius=1) <= 1


def test_sites_without_a_neighbour_within_the_radius_keep_everything() -> None:
    assert tight_delta(random_channel(1), level=0.0, radius=99) == 0.0


@pytest.mark.parametrize("arguments", [{"level": -1}, {"level": math.nan}, {"radius": 0}, {"radius": math.inf}])
def test_bad_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        tight_delta(random_channel(0), **({"level": 1.0, "radius": 100} | arguments))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("level", [0.0, 0.4, 1.5])
def test_k_reports_keep_k_times_the_level_and_k_times_the_delta(seed: int, level: float) -> None:
    channel = random_channel(seed)
    delta = tight_delta(channel, level=level, radius=100)
    together = channel
    for reports in (2, 3):
        together = compose(together, channel)
        promised = sequential([Promise(level=level, radius=100, delta=delta)] * reports)
        assert promised.delta == pytest.approx(min(1, reports * delta))
        assert tight_delta(together, level=promised.level, radius=100) <= promised.delta + 1e-12


@pytest.mark.parametrize("level", [0.05, 0.4])
def test_a_group_of_k_keeps_k_times_the_level_and_the_groups_delta(level: float) -> None:
    bits = Places(list(itertools.product([0, 1], repeat=4)))
    count = after_query(linear_laplace(5, epsilon=0.5), lambda rows: rows.sum(axis=1), bits)
    delta = tight_delta(count, level=level, radius=1, distance=hamming)
    assert delta > 0
    for size in (2, 3, 4):
        promised = group(Promise(level=level, radius=1, delta=delta), size)
        assert (
            tight_delta(count, level=promised.level, radius=promised.radius, distance=hamming)
            <= promised.delta + 1e-15
        )
        assert promised.delta <= size * math.exp(size * level) * delta


def test_delta_may_be_about_any_metric() -> None:
    channel = random_channel(2)
    road = from_matrix(2 * euclidean(TOWN.xy, TOWN.xy))
    assert tight_delta(channel, level=0.3, radius=200, distance=road) == tight_delta(
        channel, level=0.3, radius=100
    )
    all_pairs = tight_delta(channel, level=0.3, radius=1, distance=discrete)
    assert all_pairs == tight_delta(channel, level=0.3, radius=1e9)
    with pytest.raises(InvalidInputError, match="distance"):
        tight_delta(channel, level=0.3, radius=1, distance=lambda a, _: a)
