import numpy as np
import pytest
from hypothesis import given

from geoind import Channel, Grid, Places, Prior, bayes_remap, discretise, expected_loss
from geoind.distances import Distance, discrete, hamming, squared
from geoind.mechanisms.planar import PlanarLaplace
from tests.channels.test_metrics import BLOCK, masses, matrices


@given(matrices, masses)
@pytest.mark.parametrize("loss", [discrete, squared])
def test_remapping_never_raises_the_loss_or_epsilon(loss: Distance, channel: Channel, prior: Prior) -> None:
    better = channel @ bayes_remap(channel, prior, loss=loss)
    assert expected_loss(better, prior, loss=loss) <= expected_loss(channel, prior, loss=loss) + 1e-14
    assert better.epsilon <= channel.epsilon * (1 + 1e-12) + 1e-14


def test_no_other_deterministic_step_is_better() -> None:
    rng = np.random.default_rng(1)
    grid = Grid(0, 0, cell=1, columns=3, rows=1)
    channel = Channel(grid, grid, rng.dirichlet(np.ones(3), 3))
    prior = Prior(grid, rng.dirichlet(np.ones(3)))
    best = expected_loss(channel @ bayes_remap(channel, prior), prior)
    for targets in np.ndindex(3, 3, 3):
        assert expected_loss(channel @ Channel.deterministic(grid, grid, targets), prior) >= best - 1e-15


def test_reports_that_cannot_occur_stay_where_they_are() -> None:
    channel = Channel(BLOCK, BLOCK, np.eye(4))
    remap = bayes_remap(channel, Prior.over(BLOCK, [2]))
    assert (remap.matrix == np.eye(4)).all()


def test_reports_can_move_to_other_places() -> None:
    grid = Grid(0, 0, cell=100, columns=5, rows=5)
    channel = discretise(PlanarLaplace(0.01), grid)
    shops = Places([[110, 90], [390, 410]])
    remap = bayes_remap(channel, Prior.uniform(grid), outputs=shops)
    assert remap.outputs is shops
    assert (channel @ remap).epsilon <= 0.01


def test_reports_of_another_kind_are_remapped_and_impossible_ones_to_the_best_guess() -> None:
    records = Places([[0.0, 0.0, 0.0], [1.0, 0.0, 2.0]])
    letters = Places([[0.0], [1.0], [2.0]])
    channel = Channel(records, letters, [[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]])
    remap = bayes_remap(channel, Prior(records, [0.4, 0.6]), outputs=records, loss=hamming)
    assert remap.matrix.argmax(axis=1).tolist() == [0, 1, 1]
