"""Universal optimality: the geometric mechanism on a line, and the proof that a cycle has none."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Places,
    Prior,
    exponential,
    geometric,
    min_loss_given_epsilon,
    randomised_response,
)
from geoind.arrays import FloatArray
from geoind.channels import after_query, linear_laplace
from geoind.distances import Distance, discrete, euclidean, from_matrix, hamming, normalised_manhattan, squared
from geoind.errors import SitesMismatchError
from geoind.optimal import regret, universality_gap
from tests.trials import trials


def in_steps(*costs: float) -> Distance:
    """A loss that rises with the number of steps from truth to report, as it likes."""
    return lambda a, b: np.array(costs)[np.rint(euclidean(a, b)).astype(int)]


MONOTONE = [discrete, euclidean, squared, in_steps(0, 1, 1, 1, 7), in_steps(0, 0, 3, 3.5, 4)]


@pytest.mark.parametrize("loss", MONOTONE)
@pytest.mark.parametrize("beyond", [0, 6])
@given(
    arrays(np.float64, 5, elements=st.sampled_from([0.0, 0.01, 0.3, 1.0, 4.0])).filter(np.any),
    st.sampled_from([0.1, 0.7, 2.0]),
)
@settings(max_examples=trials(5), deadline=None, derandomize=True)
def test_the_geometric_mechanism_remapped_is_optimal_for_every_prior_and_monotone_loss(
    loss: Distance, beyond: int, weights: FloatArray, epsilon: float
) -> None:
    count = geometric(5, epsilon=epsilon, beyond=beyond)
    prior = Prior.from_counts(count.inputs, weights)
    assert regret(count, prior, epsilon=epsilon, loss=loss) <= 1e-6


@pytest.mark.parametrize("mechanism", [exponential(*[Grid(0, 0, cell=1, columns=5, rows=1)] * 2, epsilon=0.7)])
def test_other_mechanisms_of_the_same_promise_have_a_regret(mechanism: Channel) -> None:
    laplace = linear_laplace(5, epsilon=0.7)
    flat = randomised_response(5, epsilon=0.7)
    people = Prior.from_counts(laplace.inputs, [3, 1, 1, 1, 3])
    for channel in (mechanism, laplace, flat):
        assert regret(channel, people, epsilon=0.7) > 0.01


def test_a_regret_is_the_distance_to_the_certified_optimum() -> None:
    flat = randomised_response(4, epsilon=0.7)
    people = Prior(flat.inputs, [0.4, 0.3, 0.2, 0.1])
    best = min_loss_given_epsilon(people, epsilon=flat.epsilon, loss=squared).certificate.objective
    guess = float((flat.joint(people).T @ squared(flat.inputs.xy, flat.inputs.xy)).min(axis=1).sum())
    assert regret(flat, people, loss=squared) == pytest.approx(guess - best, rel=1e-5)


BITS = Places(list(itertools.product([0, 1], repeat=3)))


def total(rows: FloatArray) -> FloatArray:
    return np.asarray(rows.sum(axis=1))


@pytest.mark.parametrize("loss", [discrete, squared])
def test_behind_a_counting_query_no_mechanism_on_the_databases_is_better(loss: Distance) -> None:
    answers = Grid(0, 0, cell=1, columns=4, rows=1)
    private = after_query(geometric(4, epsilon=0.6), total, BITS)
    # Who is ill does not matter, how many are does.
    people = Prior.from_counts(BITS, np.array([8.0, 3.0, 1.0, 2.0])[total(BITS.xy).astype(int)])

    def of_answers(rows: FloatArray, places: FloatArray) -> FloatArray:
        return loss(np.column_stack([rows.sum(axis=1), np.zeros(len(rows))]), places)

    assert regret(private, people, epsilon=0.6, outputs=answers, loss=of_answers, distance=hamming) <= 1e-6


def ring(length: int) -> Distance:
    steps = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    return from_matrix(np.minimum(steps, length - steps))


def two_places(answers: Grid, *pairs: tuple[int, int]) -> list[Prior]:
    return [Prior.over(answers, list(pair)) for pair in pairs]


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_on_a_cycle_of_four_two_priors_have_no_common_optimum(epsilon: float) -> None:
    answers = Grid(0, 0, cell=1, columns=4, rows=1)
    opposite = two_places(answers, (0, 2), (1, 3))
    gap = universality_gap(opposite, epsilon=epsilon, loss=discrete, distance=ring(4))
    # Alone each is wrong with e^-epsilon / 2: the two reports that tell 0 from 2 are as likely at 1 as at 3.
    # Shared, the reports stand for neighbours: 0 or 1, 1 or 2, ...
    assert gap == pytest.approx(1 / (1 + math.exp(epsilon)) - math.exp(-epsilon) / 2, rel=1e-5)
    assert gap > 0.01


def test_three_answers_that_are_all_neighbours_have_no_universal_mechanism_but_each_two_priors_do() -> None:
    answers = Grid(0, 0, cell=1, columns=3, rows=1)
    pairs = two_places(answers, (0, 1), (1, 2), (0, 2))
    assert universality_gap(pairs, epsilon=1, loss=discrete, distance=discrete) > 0.04
    assert universality_gap(pairs[:2], epsilon=1, loss=discrete, distance=discrete) == 0


def test_a_sum_query_has_no_universal_mechanism_under_hamming_but_has_one_under_the_normalised_distance() -> None:
    databases = Places(list(itertools.product([0, 1, 2], repeat=2)))
    answers = Grid(0, 0, cell=1, columns=5, rows=1)

    def between_answers(distance: Distance) -> Distance:
        """How far databases with these answers are from each other at least."""
        apart, answer = distance(databases.xy, databases.xy), total(databases.xy)
        return from_matrix(
            [[apart[np.ix_(answer == one, answer == other)].min() for other in range(5)] for one in range(5)]
        )

    priors = two_places(answers, (0, 3), (1, 2))
    people = between_answers(hamming)
    assert people(answers.xy, answers.xy)[0].tolist() == [0, 1, 1, 2, 2]
    assert universality_gap(priors, epsilon=1, loss=discrete, distance=people) > 0.04
    assert universality_gap(priors, epsilon=1, distance=people) > 0.1

    normalised = between_answers(normalised_manhattan(2))
    assert normalised(answers.xy, answers.xy)[0].tolist() == [0, 0.5, 1, 1.5, 2]
    for loss in (discrete, euclidean):
        assert universality_gap(priors, epsilon=1, loss=loss, distance=normalised) == 0
        for prior in priors:
            assert regret(geometric(5, epsilon=0.5), prior, epsilon=1, loss=loss, distance=normalised) < 1e-6


def test_a_single_prior_has_no_gap() -> None:
    answers = Grid(0, 0, cell=1, columns=3, rows=1)
    assert universality_gap([Prior.uniform(answers)], epsilon=1, distance=discrete) == 0


def test_bad_questions_are_refused() -> None:
    answers, others = (Grid(0, 0, cell=1, columns=n, rows=1) for n in (3, 4))
    with pytest.raises(InvalidInputError, match="at least one"):
        universality_gap([], epsilon=1)
    with pytest.raises(SitesMismatchError, match="same sites"):
        universality_gap([Prior.uniform(answers), Prior.uniform(others)], epsilon=1)
    with pytest.raises(InvalidInputError, match="combinations"):
        universality_gap([Prior.uniform(answers)] * 8, epsilon=1)
    blind = Channel(answers, answers, np.full((3, 3), 1 / 3))
    for channel in (blind, Channel(answers, answers, np.eye(3))):
        with pytest.raises(InvalidInputError, match="positive and finite"):
            regret(channel, Prior.uniform(answers))
