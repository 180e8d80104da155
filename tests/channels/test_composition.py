"""The laws of composition, measured."""

import itertools
import math
import pickle
from collections.abc import Callable

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
    Prior,
    adversary_error,
    distances,
    exponential,
    geometric,
    randomised_response,
    tight_epsilon,
)
from geoind.arrays import FloatArray
from geoind.channels import after_query, compose, linear_laplace, sensitivity
from geoind.distances import Distance, euclidean, from_matrix, hamming, manhattan, normalised_manhattan
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
    all_persons = np.where(hamming(bits, bits) == 0, 0, 1)
    assert tight_epsilon(channel, from_matrix(all_persons)) == pytest.approx(3 * 0.5, rel=1e-11)


def test_reports_of_two_kinds_have_no_midpoint() -> None:
    records = Places([[0.0, 0.0, 0.0], [1.0, 0.0, 2.0]])
    one, other = (Channel(records, sites, np.eye(2)) for sites in (records, Places([[0.0], [1.0]])))
    assert compose(one, one).outputs.xy[1].tolist() == [0.5, 0, 1]
    with pytest.raises(SitesMismatchError, match="columns"):
        compose(one, other)


BITS = Places(list(itertools.product([0, 1], repeat=4)))
VALUES = Places(list(itertools.product([0, 2, 5], repeat=3)))


def total(databases: FloatArray) -> FloatArray:
    return np.asarray(databases.sum(axis=1))


@given(
    arrays(np.float64, (6, 3), elements=st.integers(0, 4), unique=False),
    arrays(np.float64, (5, 4), elements=st.floats(0.01, 1)),
    st.permutations(range(5)),
)
def test_a_mechanism_after_a_query_promises_sensitivity_times_as_much(
    table: FloatArray, weights: FloatArray, answers: list[int]
) -> None:
    records = Places(np.unique(table, axis=0))
    line = Grid(0, 0, cell=1, columns=5, rows=1)
    mechanism = Channel(line, Grid(0, 0, cell=1, columns=4, rows=1), weights / weights.sum(axis=1, keepdims=True))

    def query(rows: FloatArray) -> FloatArray:
        return np.asarray(np.array(answers, dtype=float)[rows.sum(axis=1).astype(int) % 5])

    for distance in (hamming, manhattan):
        rate = sensitivity(query, records, distance=distance)
        together = after_query(mechanism, query, records)
        assert tight_epsilon(together, distance) <= rate * mechanism.epsilon * (1 + 1e-12) + 1e-13


@pytest.mark.parametrize("make", [geometric, linear_laplace])
@pytest.mark.parametrize(
    ("distance", "expected"), [(hamming, 5.0), (manhattan, 1.0), (normalised_manhattan(5), 5.0)]
)
def test_noise_scaled_by_the_sensitivity_keeps_epsilon_in_the_records_metric(
    make: Callable[..., Channel], distance: Distance, expected: float
) -> None:
    rate = sensitivity(total, VALUES, distance=distance)
    assert rate == expected
    private = after_query(make(16, epsilon=0.7 / rate), total, VALUES)
    assert tight_epsilon(private, distance) == pytest.approx(0.7, rel=1e-9)


def test_sum_average_and_percentage_are_as_sensitive_under_the_normalised_distance_as_under_hamming() -> None:
    for query in (total, lambda rows: rows.mean(axis=1), lambda rows: 100 * (rows >= 5).mean(axis=1)):
        plain = sensitivity(query, VALUES, distance=hamming)
        assert sensitivity(query, VALUES, distance=normalised_manhattan(5)) >= plain * (1 - 1e-12)
    # For sum and average they are equal; a percentage of values at a threshold jumps with a small step.
    assert sensitivity(total, VALUES, distance=normalised_manhattan(5)) == 5.0
    assert sensitivity(total, VALUES, distance=hamming) == 5.0
    bits = sensitivity(lambda rows: 100 * rows.mean(axis=1), BITS, distance=normalised_manhattan(1))
    assert bits == sensitivity(lambda rows: 100 * rows.mean(axis=1), BITS, distance=hamming) == 25.0


def test_a_percentage_of_a_thousand_records_moves_by_a_tenth() -> None:
    # From no person to all, one person after the other.
    staircase = Places(np.tri(1001, 1000, -1)[::50])
    rate = sensitivity(lambda rows: 100 * rows.mean(axis=1), staircase, distance=hamming)
    assert rate == pytest.approx(0.1)


def test_answers_of_several_columns_have_a_distance_of_their_own() -> None:
    def histogram(rows: FloatArray) -> FloatArray:
        return np.stack([(rows == value).sum(axis=1) for value in (0, 2, 5)], axis=1)

    assert sensitivity(histogram, VALUES, distance=hamming, answer_distance=manhattan) == 2.0
    assert sensitivity(histogram, VALUES, distance=hamming) == pytest.approx(math.sqrt(2))
    answers = Places(np.unique(histogram(VALUES.xy), axis=0))
    private = after_query(exponential(answers, answers, epsilon=0.25, distance=manhattan), histogram, VALUES)
    assert tight_epsilon(private, hamming) <= 0.5


def test_the_worst_pair_is_returned_and_survives_pickling() -> None:
    worst = sensitivity(lambda rows: rows[:, 0] * rows[:, 1], VALUES, distance=hamming)
    first, second = VALUES.xy[[worst.truth, worst.other]]
    assert abs(first[0] * first[1] - second[0] * second[1]) == worst * (first != second).sum()
    again = pickle.loads(pickle.dumps(worst))
    assert (again, again.truth, again.other) == (worst, worst.truth, worst.other)


def test_a_query_with_different_answers_at_distance_0_has_no_bound() -> None:
    twice = Places([[1, 1], [1, 1]])
    assert sensitivity(lambda rows: np.arange(len(rows)), twice, distance=hamming) == math.inf
    assert sensitivity(total, twice, distance=hamming) == 0.0


def test_numbers_are_inputs_of_one_column_or_lie_on_the_x_axis() -> None:
    plane = geometric(5, epsilon=0.5)
    line = Channel(Places(plane.inputs.xy[:, :1]), plane.outputs, plane.matrix)
    assert (after_query(line, total, BITS).matrix == after_query(plane, total, BITS).matrix).all()
    north = Channel(Places(plane.inputs.xy[:, ::-1]), plane.outputs, plane.matrix)
    with pytest.raises(SitesMismatchError, match="15 of 16 answers"):
        after_query(north, total, BITS)


@pytest.mark.parametrize("cell", [1e-6, 1e6])
def test_answers_may_be_off_by_rounding_only(cell: float) -> None:
    steps = geometric(5, epsilon=0.5 / cell, cell=cell)
    private = after_query(steps, lambda rows: total(rows) * cell * (1 + 1e-12), BITS)
    assert tight_epsilon(private, hamming) == pytest.approx(0.5, rel=1e-9)
    with pytest.raises(SitesMismatchError):
        after_query(steps, lambda rows: total(rows) * cell * (1 + 1e-6), BITS)


def test_answers_that_are_no_inputs_of_the_mechanism_are_refused() -> None:
    with pytest.raises(SitesMismatchError, match="1 of 16 answers"):
        after_query(geometric(4, epsilon=1), total, BITS)
    with pytest.raises(SitesMismatchError, match="columns"):
        after_query(geometric(4, epsilon=1), lambda rows: rows, BITS)


@pytest.mark.parametrize("answer", [[1.0], [math.nan] * 16, [[]] * 16, ["a"] * 16, np.zeros((16, 1, 1))])
def test_bad_answers_are_refused(answer: FloatArray) -> None:
    with pytest.raises(InvalidInputError):
        sensitivity(lambda _: answer, BITS, distance=hamming)
    with pytest.raises(InvalidInputError):
        after_query(geometric(5, epsilon=1), lambda _: answer, BITS)


def test_bad_distances_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="distance"):
        sensitivity(total, BITS, distance=lambda a, b: -euclidean(a, b))
    with pytest.raises(InvalidInputError, match="answer_distance"):
        sensitivity(total, BITS, distance=hamming, answer_distance=lambda a, _: a)


def test_the_lectures_three_records_with_a_mechanism_on_them() -> None:
    salaries = Places([[32.0, 0.0, 27.0], [32.0, 0.01, 27.0], [32.0, 1e6, 27.0]])
    normalised = distances.normalised_manhattan(1e6)
    assert normalised(salaries.xy, salaries.xy)[0].tolist() == [0, 1e-8, 1]
    private = exponential(salaries, salaries, epsilon=2.0, distance=normalised)
    assert tight_epsilon(private, normalised) <= 2
    # Nearly equal records get nearly equal rows; under Hamming they would be a whole unit apart.
    assert np.abs(private.matrix[0] - private.matrix[1]).max() < 1e-7
