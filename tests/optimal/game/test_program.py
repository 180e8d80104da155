"""The game's linear program, against the plain one with a variable for every entry and a row for every guess."""

import numpy as np
import pytest
from scipy.optimize import linprog

from geoind import Grid, Prior
from geoind.arrays import FloatArray
from geoind.distances import Distance, discrete, euclidean, squared
from geoind.errors import InfeasibleError
from geoind.optimal.game import program
from geoind.optimal.game.game import Game

GRID = Grid(0, 0, cell=100, columns=4, rows=3)
UNIFORM = Prior.uniform(GRID)
SKEWED = Prior(GRID, np.random.default_rng(7).dirichlet(np.ones(12)))


def game_of(*priors: Prior, adversary_loss: Distance = euclidean, symmetric: bool = True) -> Game:
    return Game(list(priors), None, euclidean, adversary_loss, symmetric=symmetric)


def plainly(game: Game, max_loss: float) -> float:
    """Return the largest error within a loss, from the program as the literature writes it."""
    mass, (n, m) = game.masses[0], game.loss.shape
    guesses = game.error.shape[1]
    wanted = np.concatenate([np.zeros(n * m), -np.ones(m)])
    rows = np.zeros((m * guesses + 1, n * m + m))
    for report in range(m):
        for guess in range(guesses):
            row = rows[report * guesses + guess]
            row[: n * m].reshape(n, m)[:, report] = -mass * game.error[:, guess]
            row[n * m + report] = 1.0
    rows[-1, : n * m] = (mass[:, None] * game.loss).ravel()
    limits = np.append(np.zeros(m * guesses), max_loss)
    sums = np.column_stack([np.kron(np.eye(n), np.ones(m)), np.zeros((n, m))])
    bounds = [(0, None)] * (n * m) + [(None, None)] * m
    found = linprog(wanted, A_ub=rows, b_ub=limits, A_eq=sums, b_eq=np.ones(n), bounds=bounds).fun
    assert found is not None
    return -found


@pytest.mark.parametrize("adversary_loss", [euclidean, squared, discrete])
@pytest.mark.parametrize("prior", [UNIFORM, SKEWED], ids=["uniform", "skewed"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_it_is_the_plain_program(prior: Prior, adversary_loss: Distance, symmetric: bool) -> None:
    game = game_of(prior, adversary_loss=adversary_loss, symmetric=symmetric)
    found = game.program.solve(prize=(1.0,), max_loss=60)
    assert found.value == pytest.approx(plainly(game, 60), rel=1e-7)
    assert game.adversary_error(found.matrix) == pytest.approx(found.value, rel=1e-7)
    assert game.expected_loss(found.matrix) <= 60 * (1 + 1e-9)
    np.testing.assert_allclose(found.matrix.sum(axis=1), 1)
    assert found.matrix.min() >= 0


def test_guesses_that_join_later_lead_to_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = game_of(SKEWED).program.solve(prize=(1.0,), max_loss=60)
    assert whole.rounds == 1
    monkeypatch.setattr(program, "FIRST_GUESSES", 2)
    monkeypatch.setattr(program, "GUESSES_PER_ROUND", 1)
    game = game_of(SKEWED)
    grown = game.program.solve(prize=(1.0,), max_loss=60)
    assert grown.rounds > 1
    assert grown.value == pytest.approx(whole.value, rel=1e-7)
    assert all(len(guesses) < 12 for guesses in game.program.adversaries[0].guesses)
    assert all(len(set(guesses)) == len(guesses) for guesses in game.program.adversaries[0].guesses)


def test_symmetry_makes_the_program_smaller_and_the_answer_symmetric() -> None:
    game, whole = game_of(UNIFORM), game_of(UNIFORM, symmetric=False)
    # Burnside: all 144 pairs stay where they are by no move, the 16 of the middle row when it is the mirror.
    assert game.program.variables == (144 + 16) / 4
    assert whole.program.variables == 144
    matrix = game.program.solve(prize=(1.0,), max_loss=60).matrix
    turned = np.arange(12)[::-1]
    np.testing.assert_allclose(matrix[np.ix_(turned, turned)], matrix, atol=1e-12)


@pytest.mark.parametrize("prior", [UNIFORM, SKEWED], ids=["uniform", "skewed"])
def test_prices_say_what_one_more_metre_would_give(prior: Prior) -> None:
    game = game_of(prior, adversary_loss=discrete)
    found = game.program.solve(prize=(1.0,), max_loss=61.7)
    more = game.program.solve(prize=(1.0,), max_loss=61.8)
    assert (more.value - found.value) / 0.1 == pytest.approx(found.loss_price, rel=1e-5)
    # The adversary's answer to every report is a distribution over guesses, up to one scale for all.
    np.testing.assert_allclose(found.guess_price.sum(axis=1), found.guess_price.sum() / 12)
    assert found.guess_price.min() >= -1e-9
    wanted = 0.9 * found.value
    rewarded = game.program.solve(reward=-game.masses[0][:, None] * game.loss, min_error=wanted)
    asked_more = game.program.solve(reward=-game.masses[0][:, None] * game.loss, min_error=wanted + 1e-4)
    assert (rewarded.value - asked_more.value) / 1e-4 == pytest.approx(rewarded.error_price, rel=1e-5)


def test_a_reward_without_bounds_takes_the_best_report_of_each_place() -> None:
    reward = np.random.default_rng(3).normal(size=(12, 12))
    found = game_of(SKEWED).program.solve(reward=reward)
    np.testing.assert_array_equal(found.matrix.argmax(axis=1), reward.argmax(axis=1))
    assert found.value == pytest.approx(reward.max(axis=1).sum())
    assert (found.loss_price, found.error_price) == (0, 0)
    assert not found.guess_price.any()


def test_the_least_loss_of_an_error_keeps_that_error() -> None:
    game = game_of(SKEWED, adversary_loss=squared)
    best = game.program.solve(prize=(1.0,), max_loss=60)
    back = game.program.solve(reward=-game.masses[0][:, None] * game.loss, min_error=best.value)
    assert -back.value == pytest.approx(60, rel=1e-7)
    assert game.adversary_error(back.matrix) == pytest.approx(best.value, rel=1e-7)


def test_entries_that_are_not_allowed_stay_zero() -> None:
    game = game_of(UNIFORM)
    allowed = game.loss <= 100
    found = game.program.solve(prize=(1.0,), max_loss=60, allowed=allowed)
    assert not found.matrix[~allowed].any()
    assert found.matrix[allowed].any()


def test_a_second_adversary_with_a_prior_of_its_own_is_weighed_by_its_prize() -> None:
    game = game_of(SKEWED, UNIFORM, adversary_loss=squared)

    def errors(*prize: float) -> FloatArray:
        matrix = game.program.solve(prize=prize, max_loss=60).matrix
        return np.array([game.adversary_error(matrix), game.adversary_error(matrix, 1)])

    first, second, both = errors(1.0), errors(0.0, 1.0), errors(1.0, 1.0)
    assert first[0] >= both[0] * (1 - 1e-9)
    assert second[1] >= both[1] * (1 - 1e-9)
    assert both.sum() >= max(first.sum(), second.sum()) * (1 - 1e-9)
    assert second[1] > first[1]


def test_bounds_that_exclude_each_other_are_infeasible() -> None:
    game = game_of(SKEWED)
    with pytest.raises(InfeasibleError, match="no mechanism keeps both bounds"):
        game.program.solve(prize=(1.0,), max_loss=10, min_error=50)
