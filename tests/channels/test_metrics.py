"""g-vulnerability and leakage: their theorems, and the lectures' exercises on utility."""

import math
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
    bayes_remap,
    cloaking,
    discretise,
    expected_loss,
    geometric,
    randomised_response,
    tight_epsilon,
)
from geoind.arrays import ArrayLike, FloatArray
from geoind.channels import (
    additive_leakage,
    bayes_risk,
    bayes_vulnerability,
    closeness_gain,
    distance_gain,
    expected_gain,
    g_vulnerability,
    identity_gain,
    linear_laplace,
    loss_quantile,
    metrics,
    min_entropy_leakage,
    multiplicative_leakage,
    mutual_information,
    posterior_entropy,
    prior_vulnerability,
    worst_case_loss,
)
from geoind.distances import discrete, manhattan, squared
from geoind.errors import SitesMismatchError
from geoind.mechanisms.planar import PlanarLaplace

PAPER = Grid(0, 0, cell=100, columns=9, rows=9)
BLOCK = Grid(0, 0, cell=1, columns=2, rows=2)
masses = arrays(np.float64, 4, elements=st.floats(0.01, 1)).map(lambda weights: Prior.from_counts(BLOCK, weights))
matrices = arrays(np.float64, (4, 4), elements=st.floats(0.01, 1)).map(
    lambda weights: Channel(BLOCK, BLOCK, weights / weights.sum(axis=1, keepdims=True))
)


def test_the_quality_losses_of_the_paper() -> None:
    uniform = Prior.uniform(PAPER)
    # Eight cells around a zone's centre: four at 100 m, four on the diagonal.
    assert expected_loss(cloaking(PAPER), uniform) == pytest.approx(400 * (1 + math.sqrt(2)) / 9)
    assert expected_loss(discretise(PlanarLaplace(0.0162), PAPER), uniform) == pytest.approx(107.060, abs=5e-4)


def test_an_adversary_who_knows_the_corners_defeats_cloaking_but_not_noise() -> None:
    corners = Prior.over(PAPER, [0, 8, 72, 80])
    assert adversary_error(cloaking(PAPER), corners) == 0
    assert adversary_error(discretise(PlanarLaplace(0.01616), PAPER), corners) == pytest.approx(3.7, abs=0.05)


def test_a_blind_channel_leaves_the_error_of_the_prior() -> None:
    prior = Prior(BLOCK, [0.4, 0.3, 0.2, 0.1])
    blind = Channel(BLOCK, BLOCK, np.full((4, 4), 0.25))
    assert adversary_error(blind, prior) == pytest.approx(0.3 + 0.2 + 0.1 * math.sqrt(2))
    assert adversary_error(blind, prior, loss=discrete) == pytest.approx(0.6)
    # The mean is (0.4, 0.3).
    assert adversary_error(blind, prior, loss=squared, guesses="plane") == pytest.approx(0.4 * 0.6 + 0.3 * 0.7)
    assert mutual_information(blind, prior) == pytest.approx(0, abs=1e-12)
    assert min_entropy_leakage(blind, prior) == pytest.approx(0, abs=1e-12)


def test_other_places_to_guess_from_can_be_given() -> None:
    blind = Channel(BLOCK, BLOCK, np.full((4, 4), 0.25))
    centre = Places([[0.5, 0.5]])
    assert adversary_error(blind, Prior.uniform(BLOCK), guesses=centre) == pytest.approx(math.sqrt(0.5))


@given(matrices, masses)
def test_the_plane_holds_better_guesses_than_the_sites(channel: Channel, prior: Prior) -> None:
    in_plane = adversary_error(channel, prior, guesses="plane")
    assert in_plane <= adversary_error(channel, prior) * (1 + 1e-9)
    fine = Grid(0, 0, cell=1 / 16, columns=17, rows=17)
    assert in_plane <= adversary_error(channel, prior, guesses=fine) + 1e-9


def test_the_plane_needs_a_loss_with_a_known_best_guess() -> None:
    with pytest.raises(InvalidInputError, match="plane"):
        adversary_error(Channel(BLOCK, BLOCK, np.eye(4)), Prior.uniform(BLOCK), loss=manhattan, guesses="plane")


@given(matrices, matrices, masses)
def test_post_processing_never_helps_the_adversary(channel: Channel, step: Channel, prior: Prior) -> None:
    after = channel @ step
    assert adversary_error(after, prior) >= adversary_error(channel, prior) - 1e-12
    assert bayes_vulnerability(after, prior) <= bayes_vulnerability(channel, prior) + 1e-12
    assert mutual_information(after, prior) <= mutual_information(channel, prior) + 1e-12


@given(matrices, masses)
def test_the_adversary_errs_as_much_as_the_best_remapping(channel: Channel, prior: Prior) -> None:
    remapped = channel @ bayes_remap(channel, prior)
    assert adversary_error(channel, prior) == pytest.approx(expected_loss(remapped, prior))


@given(matrices, masses)
def test_entropies_add_up(channel: Channel, prior: Prior) -> None:
    joint = channel.joint(prior)
    product = prior.mass[:, None] * joint.sum(axis=0)
    divergence = (joint * np.log2(joint / product)).sum()
    assert mutual_information(channel, prior) == pytest.approx(divergence, abs=1e-12)
    prior_entropy = -(prior.mass * np.log2(prior.mass)).sum()
    assert posterior_entropy(channel, prior) == pytest.approx(prior_entropy - divergence, abs=1e-12)


def test_quantiles_step_through_the_losses() -> None:
    line = Grid(0, 0, cell=1, columns=3, rows=1)
    channel = Channel(line, line, [[0.5, 0.3, 0.2], [0.0, 1, 0], [0.0, 0, 1]])
    first = Prior.over(line, [0])
    assert [loss_quantile(channel, first, p) for p in (0.1, 0.5, 0.6, 0.8, 0.81, 1)] == [0, 0, 1, 1, 2, 2]
    assert worst_case_loss(channel, first) == 2
    assert worst_case_loss(channel, Prior.over(line, [1])) == 0


@pytest.mark.parametrize("p", [0, -1, 1.5, math.nan])
def test_bad_probabilities_are_refused(p: float) -> None:
    with pytest.raises(InvalidInputError):
        loss_quantile(randomised_response(2, epsilon=1), Prior.uniform(Grid(0, 0, cell=1, columns=2, rows=1)), p)


@pytest.mark.parametrize("metric", [expected_loss, adversary_error, posterior_entropy, worst_case_loss])
def test_a_prior_of_other_sites_is_refused(metric: Callable[[Channel, Prior], float]) -> None:
    with pytest.raises(SitesMismatchError):
        metric(randomised_response(2, epsilon=1), Prior.uniform(BLOCK))


gains = arrays(np.float64, (4, 3), elements=st.floats(0, 10)).filter(lambda table: table.max() > 1e-3)


@given(matrices, masses, gains)
def test_a_report_never_makes_guessing_worse_nor_better_than_the_capacity(
    channel: Channel, prior: Prior, gain: FloatArray
) -> None:
    before, after = prior_vulnerability(prior, gain=gain), g_vulnerability(channel, prior, gain=gain)
    assert after >= before * (1 - 1e-12)
    assert additive_leakage(channel, prior, gain=gain) == pytest.approx(max(0, after - before), abs=1e-12)
    leakage = multiplicative_leakage(channel, prior, gain=gain)
    assert leakage == pytest.approx(after / before, rel=1e-12)
    # The miracle theorem: no prior and no gain leaks a larger factor than the uniform prior and the identity.
    capacity = channel.matrix.max(axis=0).sum()
    assert leakage <= capacity * (1 + 1e-12)
    assert multiplicative_leakage(channel, Prior.uniform(BLOCK)) == pytest.approx(capacity)


@pytest.mark.slow
@given(matrices, matrices, masses, gains)
def test_post_processing_never_raises_a_vulnerability(
    channel: Channel, step: Channel, prior: Prior, gain: FloatArray
) -> None:
    assert g_vulnerability(channel @ step, prior, gain=gain) <= g_vulnerability(channel, prior, gain=gain) + 1e-12


@given(matrices, masses, gains)
def test_the_best_guess_is_the_best_of_all_strategies(channel: Channel, prior: Prior, gain: FloatArray) -> None:
    joint = channel.joint(prior)
    expected = 0.0
    for report in range(4):
        expected += max(float(joint[:, report] @ gain[:, guess]) for guess in range(3))
    assert g_vulnerability(channel, prior, gain=gain) == pytest.approx(expected, rel=1e-12)


@given(matrices, masses, st.floats(2, 1e3))
def test_another_largest_distance_changes_every_vulnerability_alike(
    channel: Channel, prior: Prior, largest: float
) -> None:
    gain = closeness_gain(largest)
    assert g_vulnerability(channel, prior, gain=gain) == pytest.approx(
        largest - adversary_error(channel, prior), rel=1e-12
    )
    plain = additive_leakage(channel, prior, gain=distance_gain)
    assert additive_leakage(channel, prior, gain=gain) == pytest.approx(plain, abs=1e-9)


@given(matrices, masses)
def test_the_identity_gain_counts_right_guesses(channel: Channel, prior: Prior) -> None:
    right = 1 - adversary_error(channel, prior, loss=discrete)
    assert g_vulnerability(channel, prior) == pytest.approx(right)
    assert g_vulnerability(channel, prior, guesses=Places(BLOCK.xy)) == pytest.approx(right)
    assert bayes_vulnerability(channel, prior) == pytest.approx(right)
    assert 2 ** min_entropy_leakage(channel, prior) == pytest.approx(multiplicative_leakage(channel, prior))


def test_randomised_response_is_guessed_as_often_as_it_reports_the_truth() -> None:
    channel = randomised_response(5, epsilon=1.0)
    prior = Prior.uniform(channel.inputs)
    often = math.e / (4 + math.e)
    assert bayes_vulnerability(channel, prior) == pytest.approx(often)
    assert bayes_risk(channel, prior) == pytest.approx(1 - often)
    assert expected_gain(channel, prior) == pytest.approx(often)
    assert min_entropy_leakage(channel, prior) == pytest.approx(math.log2(5 * often))


def test_a_distance_gain_is_a_loss_with_the_other_sign() -> None:
    channel, prior = randomised_response(5, epsilon=1.0), Prior.uniform(Grid(0, 0, cell=1, columns=5, rows=1))
    assert expected_gain(channel, prior, gain=distance_gain) == pytest.approx(-expected_loss(channel, prior))
    assert bayes_vulnerability(channel, prior, gain=distance_gain) == pytest.approx(
        -adversary_error(channel, prior)
    )


def test_fewer_possible_guesses_are_right_less_often() -> None:
    prior = Prior(BLOCK, [0.4, 0.3, 0.2, 0.1])
    honest, some = Channel(BLOCK, BLOCK, np.eye(4)), Places([[0, 1], [1, 1]])
    assert prior_vulnerability(prior, guesses=some) == pytest.approx(0.2)
    assert g_vulnerability(honest, prior, guesses=some) == pytest.approx(0.3)
    assert multiplicative_leakage(honest, prior, guesses=some) == pytest.approx(1.5)


def test_sites_at_one_place_are_guessed_together() -> None:
    twice = Places([[0, 0], [0, 0], [1, 0]])
    blind = Channel(twice, twice, np.full((3, 3), 1 / 3))
    prior = Prior(twice, [0.3, 0.3, 0.4])
    assert prior_vulnerability(prior) == pytest.approx(0.6)
    assert g_vulnerability(blind, prior) == pytest.approx(0.6)
    assert min_entropy_leakage(blind, prior) == 0


@pytest.mark.parametrize("sites", [BLOCK, Places(BLOCK.xy)], ids=["grid", "places"])
def test_guessing_among_thousands_of_different_places_takes_no_table_of_pairs(
    sites: Grid | Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = Channel(sites, sites, np.full((4, 4), 0.1) + 0.6 * np.eye(4))
    prior = Prior(sites, [0.4, 0.3, 0.2, 0.1])
    leaks = prior_vulnerability(prior), g_vulnerability(channel, prior), multiplicative_leakage(channel, prior)
    table = np.eye(4)
    assert leaks == pytest.approx(
        (
            prior_vulnerability(prior, gain=table),
            g_vulnerability(channel, prior, gain=table),
            multiplicative_leakage(channel, prior, gain=table),
        )
    )
    monkeypatch.setattr(metrics, "_gains", None)
    again = prior_vulnerability(prior), g_vulnerability(channel, prior), multiplicative_leakage(channel, prior)
    assert again == leaks


def test_guesses_may_be_other_places_and_a_gain_of_a_metric_of_ones_choice() -> None:
    blind, uniform = Channel(BLOCK, BLOCK, np.full((4, 4), 0.25)), Prior.uniform(BLOCK)
    middle = Places([[0.5, 0.5], [40.0, 40.0]])
    assert g_vulnerability(blind, uniform, gain=closeness_gain(5, manhattan), guesses=middle) == 4
    assert g_vulnerability(blind, uniform, gain=closeness_gain(5), guesses=middle) == pytest.approx(
        5 - math.sqrt(0.5)
    )


@pytest.mark.parametrize("gain", [[[1, 2]], [1, 2, 3, 4], 3.0, [[], [], [], []]])
def test_gains_of_another_shape_are_refused(gain: ArrayLike) -> None:
    blind, uniform = Channel(BLOCK, BLOCK, np.full((4, 4), 0.25)), Prior.uniform(BLOCK)
    for function in (g_vulnerability, additive_leakage, multiplicative_leakage):
        with pytest.raises(SitesMismatchError, match="a row per place, 4, and a column per guess"):
            function(blind, uniform, gain=gain)
    with pytest.raises(SitesMismatchError):
        g_vulnerability(blind, uniform, gain=np.ones((4, 3)), guesses=BLOCK)


def test_bad_gains_and_ratios_without_a_meaning_are_refused() -> None:
    blind, uniform = Channel(BLOCK, BLOCK, np.full((4, 4), 0.25)), Prior.uniform(BLOCK)
    with pytest.raises(InvalidInputError, match="finite"):
        g_vulnerability(blind, uniform, gain=np.full((4, 2), math.nan))
    for gain in (distance_gain, np.zeros((4, 2)), [[1, -1]] * 4):
        with pytest.raises(InvalidInputError, match="ratio"):
            multiplicative_leakage(blind, uniform, gain=gain)
    with pytest.raises(SitesMismatchError):
        g_vulnerability(blind, Prior.uniform(Places([[0, 0]])))
    with pytest.raises(InvalidInputError):
        closeness_gain(math.inf)


# The lectures' exercises: a count of 0 to 100, every one equally likely.


@pytest.mark.parametrize("epsilon", [0.1, math.log(2), 1.5])
@pytest.mark.parametrize("beyond", [0, 40])
def test_how_often_a_geometric_count_is_guessed(epsilon: float, beyond: int) -> None:
    alpha = math.exp(-epsilon)
    count = geometric(101, epsilon=epsilon, beyond=beyond)
    expected = (99 * (1 - alpha) / (1 + alpha) + 2 / (1 + alpha)) / 101
    assert g_vulnerability(count, Prior.uniform(count.inputs)) == pytest.approx(expected, rel=1e-9)


def test_the_gain_of_closeness_on_a_geometric_count() -> None:
    count = geometric(101, epsilon=math.log(2))
    uniform = Prior.uniform(count.inputs)
    # Without a remapping the noise is |z - x|, cut at the ends.
    away = [[min(max(z, 0), 100) - x for z in range(-200, 301)] for x in range(101)]
    mass = [[2.0 ** -abs(z - x) / 3 for z in range(-200, 301)] for x in range(101)]
    plain = float((np.abs(away) * mass).sum(axis=1).mean())
    assert expected_gain(count, uniform, gain=closeness_gain(100)) == pytest.approx(100 - plain, rel=1e-9)
    # The median of the posterior is the report, so that nothing can be gained by remapping.
    assert g_vulnerability(count, uniform, gain=closeness_gain(100)) == pytest.approx(100 - plain, rel=1e-9)


def test_a_mechanism_of_the_same_epsilon_can_be_worse() -> None:
    best, other = geometric(101, epsilon=0.5), linear_laplace(101, epsilon=0.5)
    uniform = Prior.uniform(best.inputs)
    assert tight_epsilon(best) == pytest.approx(tight_epsilon(other), rel=1e-9)
    for gain in (identity_gain, closeness_gain(100)):
        assert g_vulnerability(other, uniform, gain=gain) < g_vulnerability(best, uniform, gain=gain) - 1e-4


def test_post_processing_can_lower_utility() -> None:
    count = geometric(101, epsilon=0.5)
    uniform = Prior.uniform(count.inputs)
    merged = Channel.deterministic(count.outputs, count.outputs, 10 * (np.arange(101) // 10))
    for gain in (identity_gain, closeness_gain(100)):
        assert (
            g_vulnerability(count @ merged, uniform, gain=gain) < g_vulnerability(count, uniform, gain=gain) - 0.01
        )
    # What the user can undo lowers nothing.
    mirrored = Channel.deterministic(count.outputs, count.outputs, 100 - np.arange(101))
    assert g_vulnerability(count @ mirrored, uniform) == pytest.approx(g_vulnerability(count, uniform))
    # And the user's own step, the best remapping, is worth all that a report is worth.
    skewed = Prior.from_counts(count.inputs, 0.9 ** np.arange(101))
    remapped = count @ bayes_remap(count, skewed, loss=discrete)
    assert expected_gain(remapped, skewed) == pytest.approx(g_vulnerability(count, skewed))
