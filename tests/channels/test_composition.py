"""The laws of composition, measured."""

import itertools

import numpy as np
import pytest
from hypothesis import given

from geoind import Channel, Grid, Places, Prior, adversary_error, geometric, randomised_response, tight_epsilon
from geoind.channels import compose
from geoind.distances import from_matrix, hamming
from geoind.errors import SitesMismatchError
from tests.channels.test_metrics import BLOCK, masses, matrices


@given(matrices, matrices)
def test_two_reports_cost_at_most_the_sum(first: Channel, second: Channel) -> None:
    assert compose(first, second).epsilon <= (first.epsilon + second.epsilon) * (1 + 1e-12) + 1e-13


def test_two_reports_of_the_same_mechanism_cost_twice() -> None:
    channel = geometric(4, epsilon=0.3)
    both = compose(channel, channel)
    assert both.epsilon == pytest.approx(2 * channel.epsilon, rel=1e-12)
    assert compose(both, channel).epsilon == pytest.approx(3 * channel.epsilon, rel=1e-12)


@given(matrices, matrices, masses)
def test_a_second_report_never_hurts_the_adversary(first: Channel, second: Channel, prior: Prior) -> None:
    both = adversary_error(compose(first, second), prior)
    assert both <= min(adversary_error(first, prior), adversary_error(second, prior)) + 1e-12


def test_a_pair_has_its_number_and_its_midpoint() -> None:
    east = Channel.deterministic(BLOCK, Places([[0, 0], [10, 0]]), [0, 1, 0, 1])
    north = Channel.deterministic(BLOCK, Places([[0, 0], [0, 4], [0, 8]]), [0, 0, 2, 2])
    pair = compose(east, north)
    assert pair.matrix[3, 1 * 3 + 2] == 1
    assert pair.outputs.xy[1 * 3 + 2].tolist() == [5, 4]
    assert (pair.posterior(Prior.uniform(BLOCK))[5] == [0, 0, 0, 1]).all()


def test_channels_about_different_truths_are_refused() -> None:
    with pytest.raises(SitesMismatchError):
        compose(geometric(3, epsilon=1), geometric(4, epsilon=1))


def test_independent_persons_cost_the_larger_epsilon_where_distances_add_up() -> None:
    first, second = geometric(3, epsilon=0.4), geometric(4, epsilon=0.9)
    pairs = list(itertools.product(range(3), range(4)))
    sites = Places(np.array(pairs, dtype=float))
    joint = Channel(sites, Places(np.arange(24.0).reshape(-1, 2)), np.kron(first.matrix, second.matrix))
    apart = [[abs(a - c) + abs(b - d) for c, d in pairs] for a, b in pairs]
    assert tight_epsilon(joint, from_matrix(apart)) == pytest.approx(0.9, rel=1e-11)


def test_a_group_of_persons_costs_the_sum_over_its_members() -> None:
    # Three persons answer a yes-or-no question by the coin protocol; databases are tuples of three bits.
    coin = randomised_response(2, epsilon=0.5).matrix
    joint = np.kron(np.kron(coin, coin), coin)
    bits = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    line = Grid(0, 0, cell=1, columns=8, rows=1)
    channel = Channel(line, line, joint)
    one_person = tight_epsilon(channel, from_matrix(hamming(bits, bits)))
    assert one_person == pytest.approx(0.5, rel=1e-11)
    everybody = np.where(hamming(bits, bits) == 0, 0, 1)
    assert tight_epsilon(channel, from_matrix(everybody)) == pytest.approx(3 * 0.5, rel=1e-11)


def test_reports_of_two_kinds_have_no_midpoint() -> None:
    records = Places([[0.0, 0.0, 0.0], [1.0, 0.0, 2.0]])
    one, other = (Channel(records, sites, np.eye(2)) for sites in (records, Places([[0.0], [1.0]])))
    assert compose(one, one).outputs.xy[1].tolist() == [0.5, 0, 1]
    with pytest.raises(SitesMismatchError, match="columns"):
        compose(one, other)
