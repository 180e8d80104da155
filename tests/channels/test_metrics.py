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
    randomised_response,
)
from geoind.channels import (
    bayes_vulnerability,
    loss_quantile,
    min_entropy_leakage,
    mutual_information,
    posterior_entropy,
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
