import math
import pickle
from typing import Any

import numpy as np
import pytest

from geoind import Channel, Grid, InvalidInputError, PlanarLaplace, discretise, planar_geometric
from geoind.accounting.finite import tight_delta

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


def test_a_discretised_mechanism_tells_less_than_the_continuous_one() -> None:
    from geoind.accounting.reports import delta_of_reports

    noise = PlanarLaplace(0.01)
    for level in (0.0, 0.5):
        finite = tight_delta(discretise(noise, TOWN), level=level, radius=100)
        assert 0 < finite <= delta_of_reports(noise, reports=1, radius=100, level=level)


def test_sites_without_a_neighbour_within_the_radius_keep_everything() -> None:
    assert tight_delta(random_channel(1), level=0.0, radius=99) == 0.0


@pytest.mark.parametrize("arguments", [{"level": -1}, {"level": math.nan}, {"radius": 0}, {"radius": math.inf}])
def test_bad_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        tight_delta(random_channel(0), **({"level": 1.0, "radius": 100} | arguments))
