import numpy as np
import pytest

from geoind import Grid, Prior, adversary_error, expected_loss
from geoind.arrays import FloatArray
from geoind.distances import euclidean
from geoind.optimal.game.game import Game

GRID = Grid(0, 0, cell=100, columns=3, rows=3)
MASS = np.array([0.0, 0.3, 0.1, 0.2, 0.0, 0.15, 0.05, 0.2, 0.0])
PRIOR = Prior(GRID, MASS)


@pytest.fixture(scope="module")
def game() -> Game:
    return Game([PRIOR], None, euclidean, euclidean, symmetric=False)


def strategy(seed: int) -> FloatArray:
    return np.random.default_rng(seed).dirichlet(np.ones(9), 6)


@pytest.mark.parametrize("seed", range(5))
def test_losses_and_errors_are_those_of_the_channel(game: Game, seed: int) -> None:
    matrix = strategy(seed)
    channel = game.channel(matrix)
    assert game.expected_loss(matrix) == pytest.approx(expected_loss(channel, PRIOR))
    assert game.adversary_error(matrix) == pytest.approx(adversary_error(channel, PRIOR))


def test_sites_without_mass_get_the_row_of_the_closest_one_that_has_some(game: Game) -> None:
    matrix = strategy(1)
    channel = game.channel(matrix)
    np.testing.assert_array_equal(channel.matrix[MASS > 0], matrix)
    assert any((channel.matrix[4] == channel.matrix[near]).all() for near in (1, 3, 5, 7))


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_just_enough_of_the_cheapest_report_brings_a_loss_within_bounds(game: Game, share: float) -> None:
    matrix = strategy(2)
    bound = share * game.expected_loss(matrix)
    mixed = game.within_loss(matrix, bound)
    assert bound * (1 - 1e-6) < game.expected_loss(mixed) <= bound
    np.testing.assert_allclose(mixed.sum(axis=1), 1)
    assert game.within_loss(matrix, 2 * game.expected_loss(matrix)) is matrix


def test_just_enough_silence_brings_an_error_within_bounds(game: Game) -> None:
    matrix = game.cheapest_reports() * 0.8 + strategy(3) * 0.2
    bound = (game.adversary_error(matrix) + game.error_without_report()) / 2
    mixed = game.with_error(matrix, bound)
    assert bound <= game.adversary_error(mixed)
    np.testing.assert_allclose(mixed.sum(axis=1), 1)
    assert game.with_error(matrix, 0.0) is matrix


def test_without_a_report_the_best_guess_is_that_of_silence(game: Game) -> None:
    silent = np.zeros((6, 9))
    silent[:, 0] = 1.0
    assert game.error_without_report() == pytest.approx(game.adversary_error(silent))
    assert game.expected_loss(game.cheapest_reports()) == 0


def test_prices_become_a_strategy_and_a_report_without_price_the_best_guess(game: Game) -> None:
    prices = np.array([[1.0, 3.0] + [0.0] * 7, [-1e-12] + [0.0] * 8])
    guesses = game.strategy(prices)
    np.testing.assert_allclose(guesses[0, :2], [0.25, 0.75])
    assert guesses[1].sum() == 1
    best = int(guesses[1].argmax())
    assert MASS @ euclidean(GRID.xy, GRID.xy)[:, best] == pytest.approx(game.error_without_report())
