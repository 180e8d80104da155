"""The game's linear program, against the plain one with a variable for every entry and a row for every guess."""

import numpy as np
import pytest
from scipy.optimize import linprog

from geoind import Grid, Prior, adversary_error, expected_loss, max_adversary_error_given_loss
from geoind.arrays import FloatArray
from geoind.distances import Distance, discrete, euclidean, squared
from geoind.errors import InfeasibleError
from geoind.optimal import game as game_module
from geoind.optimal.game import Game

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


WIDE = Grid(0, 0, cell=100, columns=4, rows=3)
UNIFORM = Prior.uniform(WIDE)
SKEWED = Prior(WIDE, np.random.default_rng(7).dirichlet(np.ones(12)))


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


@pytest.mark.parametrize("adversary_loss", [euclidean, squared, discrete])
@pytest.mark.parametrize(("seed", "max_loss"), [(1, 20), (2, 70), (3, 120), (4, 160)])
def test_random_priors_have_the_optimum_of_the_plain_program(
    seed: int, max_loss: float, adversary_loss: Distance
) -> None:
    # More sites than reports that the program starts with.
    grid = Grid(0, 0, cell=100, columns=6, rows=4)
    prior = Prior(grid, np.random.default_rng(seed).dirichlet(np.full(24, 0.4)))
    best = max_adversary_error_given_loss(prior, max_loss=max_loss, adversary_loss=adversary_loss)
    expected = plainly(game_of(prior, adversary_loss=adversary_loss, symmetric=False), max_loss)
    assert best.certificate.objective == pytest.approx(expected, rel=1e-7)
    assert best.certificate.optimal
    assert expected_loss(best, prior) <= max_loss
    assert adversary_error(best, prior, loss=adversary_loss) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("adversary_loss", [squared, discrete])
@pytest.mark.parametrize("symmetric", [True, False])
def test_guesses_and_reports_that_join_later_lead_to_the_same_optimum(
    adversary_loss: Distance, symmetric: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = game_of(UNIFORM, adversary_loss=adversary_loss, symmetric=symmetric)
    expected = whole.program.solve(prize=(1.0,), max_loss=60)
    assert expected.rounds == 1
    monkeypatch.setattr(game_module, "FIRST_GUESSES", 2)
    monkeypatch.setattr(game_module, "FIRST_REPORTS", 1)
    game = game_of(UNIFORM, adversary_loss=adversary_loss, symmetric=symmetric)
    grown = game.program.solve(prize=(1.0,), max_loss=60)
    assert grown.rounds > 1
    assert grown.value == pytest.approx(expected.value, rel=1e-7)
    # The multipliers prove the value over all guesses and reports.
    bound = game.error_bound(60, game.strategy(grown.guess_price), grown.loss_price)
    assert bound == pytest.approx(expected.value, rel=1e-7)


def test_bounds_that_only_later_reports_keep_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    best = game_of(SKEWED, adversary_loss=squared).optimum(60)
    monkeypatch.setattr(game_module, "FIRST_REPORTS", 1)
    game = game_of(SKEWED, adversary_loss=squared)
    floor = best.value * (1 - 1e-9)
    found = game.program.solve(reward=np.zeros((12, 12)), max_loss=60, min_error=floor)
    assert game.adversary_error(found.matrix) == pytest.approx(best.value, rel=1e-7)
    assert game.expected_loss(found.matrix) <= 60 * (1 + 1e-9)


def test_a_program_whose_optimum_is_too_small_ends_early_with_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game_module, "FIRST_REPORTS", 1)
    game = game_of(SKEWED, adversary_loss=squared)
    best = game.optimum(60).value
    found = game.program.solve(prize=(1.0,), max_loss=60, needed=best * 1.001)
    assert found.value <= best * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("max_loss", [0.0, 35.0, 70.0, 1000.0])
def test_with_equal_losses_the_optimum_is_the_loss_or_the_error_without_a_report(
    seed: int, max_loss: float
) -> None:
    prior = Prior(WIDE, np.random.default_rng(seed).dirichlet(np.full(12, 0.5)))
    game = game_of(prior)
    best = game.optimum(max_loss)
    expected = min(max_loss, game.error_without_report())
    assert best.bound == pytest.approx(expected, rel=1e-12)
    assert best.value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert game.adversary_error(best.matrix) == pytest.approx(expected, rel=1e-8, abs=1e-7)
    np.testing.assert_allclose(best.strategy.sum(axis=1), 1)


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
    assert not found.guess_prices


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


PRIORS = {
    "uniform": Prior.uniform(WIDE),
    "skewed": Prior(WIDE, np.random.default_rng(7).dirichlet(np.ones(12))),
    "with holes": Prior.over(WIDE, [0, 1, 2, 5, 6, 11]),
}


@pytest.mark.parametrize("max_loss", [0.0, 30.0, 60.0, 500.0])
@pytest.mark.parametrize("adversary_loss", [euclidean, squared, discrete])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_no_smaller_largest_loss_is_optimal(
    prior: Prior, adversary_loss: Distance, max_loss: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Game([prior], None, euclidean, adversary_loss, symmetric=True)
    monkeypatch.setattr(game_module, "FIRST_GUESSES", 4)
    monkeypatch.setattr(game_module, "FIRST_REPORTS", 2)
    game = Game([prior], None, euclidean, adversary_loss, symmetric=True)
    optimum = game.optimum(max_loss)
    matrix = game.least_worst_loss(max_loss, optimum)
    assert game.adversary_error(matrix) == pytest.approx(optimum.value, rel=1e-7, abs=1e-6)
    assert game.expected_loss(matrix) <= max_loss * (1 + 1e-9) + 1e-9
    worst = game.loss[matrix > 1e-9].max()
    smaller = game.loss[game.loss < worst - 1e-6]
    if not len(smaller):
        return
    try:
        rival = whole.program.solve(prize=(1.0,), max_loss=max_loss, allowed=game.loss <= smaller.max() + 1e-6)
    except InfeasibleError:
        return
    assert rival.value < optimum.value * (1 - 1e-9)
