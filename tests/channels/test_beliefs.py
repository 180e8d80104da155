"""The readings of geo-indistinguishability are equivalent: at most epsilon for all priors, all of it for some."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Places,
    PlanarLaplace,
    Prior,
    cloaking,
    discretise,
    geometric,
    randomised_response,
    tight_epsilon,
)
from geoind.arrays import FloatArray
from geoind.channels import (
    after_query,
    epsilon_of_odds,
    epsilon_of_records,
    epsilon_of_two_priors,
    epsilon_within_balls,
)
from geoind.distances import Distance, discrete, euclidean, hamming, manhattan
from geoind.errors import SitesMismatchError

GRID = Grid(0, 0, cell=100, columns=3, rows=2)
DATABASES = Places(list(itertools.product([0, 1], [0, 1, 2], [0, 1])))
METRICS = pytest.mark.parametrize("distance", [euclidean, manhattan, discrete])

matrices = arrays(np.float64, (6, 4), elements=st.floats(0.01, 1)).map(
    lambda weights: Channel(
        GRID, Grid(0, 0, cell=1, columns=4, rows=1), weights / weights.sum(axis=1, keepdims=True)
    )
)
weights = arrays(np.float64, 6, elements=st.sampled_from([0.0, 1e-6, 0.1, 1.0, 30.0])).filter(np.any)
priors = weights.map(lambda each: Prior.from_counts(GRID, each))


def at_most(measured: float, epsilon: float) -> bool:
    return measured <= epsilon * (1 + 1e-9) + 1e-14


@METRICS
@given(matrices, priors, priors)
def test_whatever_the_prior_no_reading_exceeds_epsilon(
    distance: Distance, channel: Channel, prior: Prior, other: Prior
) -> None:
    epsilon = tight_epsilon(channel, distance)
    assert at_most(epsilon_of_odds(channel, prior, distance=distance), epsilon)
    assert at_most(epsilon_within_balls(channel, prior, distance=distance), epsilon)
    assert at_most(epsilon_of_two_priors(channel, prior, other, distance=distance), epsilon)


@METRICS
@given(matrices)
def test_some_prior_shows_all_of_epsilon_in_each_reading(distance: Distance, channel: Channel) -> None:
    worst = tight_epsilon(channel, distance)
    assert epsilon_of_odds(channel, Prior.uniform(GRID), distance=distance) == pytest.approx(worst, rel=1e-9)
    here, there = (Prior.over(GRID, [place]) for place in (worst.truth, worst.other))
    assert epsilon_of_two_priors(channel, here, there, distance=distance) == pytest.approx(worst, rel=1e-9)
    # Nearly certain to be at the one place: any report for the other one counts in full.
    rare = Prior(GRID, 1e-9 * here.mass + (1 - 1e-9) * there.mass)
    assert epsilon_within_balls(channel, rare, distance=distance) == pytest.approx(worst, rel=1e-6, abs=1e-9)


@pytest.mark.slow
@given(matrices, priors)
def test_a_ball_is_what_bayes_makes_of_knowing_it(channel: Channel, prior: Prior) -> None:
    posterior, apart = channel.posterior(prior), euclidean(GRID.xy, GRID.xy)
    expected = 0.0
    for x, r, z in itertools.product(range(6), (100.0, 100 * math.sqrt(2), 200.0, 100 * math.sqrt(5)), range(4)):
        ball = apart[x] <= r + 1e-9
        if prior.mass[x]:
            before = prior.mass[x] / prior.mass[ball].sum()
            after = posterior[z, x] / posterior[z, ball].sum()
            expected = max(expected, abs(math.log(after / before)) / r)
    assert epsilon_within_balls(channel, prior) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_the_promise_of_planar_laplace_in_three_readings() -> None:
    channel = discretise(PlanarLaplace(0.01), GRID)
    uniform = Prior.uniform(GRID)
    assert epsilon_of_odds(channel, uniform) == pytest.approx(channel.epsilon, rel=1e-12)
    assert epsilon_within_balls(channel, uniform) < channel.epsilon <= 0.01


def test_what_excludes_a_place_has_no_epsilon_in_any_reading() -> None:
    zones, uniform = cloaking(GRID, zone=(1, 2)), Prior.uniform(GRID)
    assert epsilon_of_odds(zones, uniform) == math.inf
    assert epsilon_within_balls(zones, uniform) == math.inf
    assert epsilon_of_two_priors(zones, Prior.over(GRID, [0]), uniform) == math.inf
    # An adversary who knows the zone learns nothing.
    assert epsilon_within_balls(zones, Prior.over(GRID, [0, 3])) == 0
    assert epsilon_of_odds(zones, Prior.over(GRID, [0, 3])) == 0


def test_a_report_of_probability_zero_changes_nothing() -> None:
    coin = randomised_response(2, epsilon=math.log(3))
    channel = Channel(coin.inputs, Places([[0], [1], [2]]), np.column_stack([coin.matrix, [0, 0]]))
    uniform, here, there = (Prior.over(coin.inputs, cells) for cells in ([0, 1], [0], [1]))
    assert epsilon_of_odds(channel, uniform) == pytest.approx(math.log(3))
    assert epsilon_within_balls(channel, uniform) == pytest.approx(math.log(2))
    assert epsilon_of_two_priors(channel, here, there) == pytest.approx(math.log(3))
    assert epsilon_of_records(channel, uniform) == pytest.approx(math.log(2))


def test_different_rows_at_no_distance_have_no_epsilon() -> None:
    twice = Places([[0, 0], [0, 0]])
    coin = Channel(twice, twice, [[0.75, 0.25], [0.25, 0.75]])
    assert epsilon_within_balls(coin, Prior.uniform(twice)) == math.inf
    assert epsilon_of_two_priors(coin, Prior.over(twice, [0]), Prior.over(twice, [1])) == math.inf
    blind = Channel(twice, twice, [[0.5, 0.5], [0.5, 0.5]])
    assert epsilon_within_balls(blind, Prior.uniform(twice)) == 0


databases = arrays(np.float64, 12, elements=st.sampled_from([0.0, 1e-6, 1.0, 5.0])).filter(np.any)


@given(databases, arrays(np.float64, (12, 3), elements=st.floats(0.01, 1)))
def test_belief_in_a_record_given_all_others_changes_by_at_most_epsilon(
    mass: FloatArray, table: FloatArray
) -> None:
    channel = Channel(DATABASES, Places([[0], [1], [2]]), table / table.sum(axis=1, keepdims=True))
    prior = Prior.from_counts(DATABASES, mass)
    measured = epsilon_of_records(channel, prior)
    assert at_most(measured, tight_epsilon(channel, hamming))
    posterior, expected = channel.posterior(prior), 0.0
    for x in np.flatnonzero(prior.mass).tolist():
        for person in range(3):
            known = (np.delete(DATABASES.xy, person, 1) == np.delete(DATABASES.xy[x], person)).all(axis=1)
            before, after = (
                prior.mass[x] / prior.mass[known].sum(),
                posterior[:, x] / posterior[:, known].sum(axis=1),
            )
            expected = max(expected, float(np.abs(np.log(after / before)).max()))
    assert measured == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_some_prior_on_databases_shows_all_of_epsilon() -> None:
    private = after_query(geometric(5, epsilon=0.5), lambda rows: rows.sum(axis=1), DATABASES)
    worst = tight_epsilon(private, hamming)
    assert worst == pytest.approx(1.0, rel=1e-9)  # the sum moves by two
    mass = np.full(12, 0.0)
    mass[[worst.truth, worst.other]] = 1e-9, 1 - 1e-9
    assert epsilon_of_records(private, Prior(DATABASES, mass)) == pytest.approx(worst, rel=1e-6)


def test_the_readings_need_the_priors_of_their_channel_and_a_real_distance() -> None:
    coin = randomised_response(6, epsilon=1)
    uniform = Prior.uniform(coin.inputs)
    with pytest.raises(SitesMismatchError):
        epsilon_of_odds(coin, Prior.uniform(GRID))
    with pytest.raises(SitesMismatchError):
        epsilon_of_records(coin, Prior.uniform(GRID))
    with pytest.raises(SitesMismatchError):
        epsilon_of_two_priors(coin, uniform, Prior.uniform(GRID))
    with pytest.raises(InvalidInputError, match="distance"):
        epsilon_within_balls(coin, uniform, distance=lambda a, b: -euclidean(a, b))
