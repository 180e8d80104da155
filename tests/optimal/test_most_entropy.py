"""The optimal mechanism of largest conditional entropy, against other ways to find it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from geoind import Grid, Prior, max_adversary_error_given_loss
from geoind.arrays import FloatArray
from geoind.channels.metrics import adversary_error, expected_loss, posterior_entropy
from geoind.distances import Distance, discrete, euclidean
from geoind.optimal import GameChannel, expost
from geoind.optimal.game import Game
from geoind.optimal.most_entropy import most_entropy


def found(
    prior: Prior, max_loss: float, adversary_loss: Distance, *, symmetric: bool = True
) -> tuple[Any, Game, float]:
    game = Game([prior], None, euclidean, adversary_loss, symmetric=symmetric)
    optimum = game.optimum(max_loss)
    best = most_entropy(
        game.masses[0],
        game.loss,
        game.error,
        game.program.symmetry,
        max_loss=max_loss,
        matrix=optimum.matrix,
        strategy=optimum.strategy,
        loss_price=optimum.loss_price,
    )
    return best, game, optimum.value


def random_prior(columns: int, rows: int, seed: int) -> Prior:
    grid = Grid(0, 0, cell=100, columns=columns, rows=rows)
    return Prior(grid, np.random.default_rng(seed).dirichlet(np.ones(columns * rows)))


def by_a_general_solver(game: Game, max_loss: float, value: float, start: FloatArray) -> float:
    """Return the largest entropy that scipy finds, with every guess as a constraint of its own."""
    mass, shape = game.masses[0][:, None], game.loss.shape

    def joint(v: FloatArray) -> FloatArray:
        return np.asarray(mass * v[: mass.size * shape[1]].reshape(shape))

    def negative_entropy(v: FloatArray) -> float:
        p = np.maximum(joint(v), 1e-12)
        return float((p * np.log2(p / p.sum(axis=0))).sum())

    constraints: list[dict[str, str | Callable[[FloatArray], FloatArray]]] = [
        {"type": "eq", "fun": lambda v: v[: mass.size * shape[1]].reshape(shape).sum(axis=1) - 1},
        {"type": "ineq", "fun": lambda v: np.atleast_1d(1 - (joint(v) * game.loss).sum() / max_loss)},
        {"type": "ineq", "fun": lambda v: np.atleast_1d(v[-shape[1] :].sum() / value - 1 + 1e-6)},
        {
            "type": "ineq",
            "fun": lambda v: ((joint(v).T @ game.error - v[-shape[1] :, None]) / value).ravel(),
        },
    ]
    errors = ((mass * start).T @ game.error).min(axis=1)
    # The stubs know constraints of one number only; scipy takes arrays of them.
    answer = minimize(  # type: ignore[call-overload]
        negative_entropy,
        np.append(start.ravel(), errors),
        method="SLSQP",
        bounds=[(0, 1)] * start.size + [(None, None)] * shape[1],
        constraints=constraints,
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert answer.success
    return -float(answer.fun)


@pytest.mark.parametrize("adversary_loss", [euclidean, discrete])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_general_solver_finds_the_same_entropy(adversary_loss: Distance, seed: int) -> None:
    best, game, value = found(random_prior(3, 1, seed), 40.0, adversary_loss)
    other = by_a_general_solver(game, 40.0, value, best.matrix * 0.9 + 0.1 / 3)
    assert best.entropy == pytest.approx(other, abs=1e-4)
    assert best.short < 1e-6


@pytest.mark.slow
@given(
    seed=st.integers(0, 10_000),
    size=st.sampled_from([(2, 2), (3, 2), (3, 3)]),
    max_loss=st.floats(1, 300),
    adversary_loss=st.sampled_from([euclidean, discrete]),
)
def test_the_bound_is_met_and_no_optimal_vertex_beats_it(
    seed: int, size: tuple[int, int], max_loss: float, adversary_loss: Distance
) -> None:
    prior = random_prior(*size, seed)
    best, game, value = found(prior, max_loss, adversary_loss)
    assert best.short < 1e-3
    assert game.expected_loss(best.matrix) <= max_loss * (1 + 1e-9)
    assert game.adversary_error(best.matrix) >= value * (1 - 1e-7)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        vertex = game.program.solve(
            reward=rng.normal(size=game.loss.shape), max_loss=max_loss, min_error=value * (1 - 1e-9)
        ).matrix
        rival = posterior_entropy(game.channel(vertex), prior)
        assert best.entropy + best.short >= rival - 1e-6


def test_where_expost_is_optimal_it_is_the_answer() -> None:
    # Of all mechanisms of this loss ExPost has the largest entropy.
    prior = Prior.uniform(Grid(0, 0, cell=100, columns=5, rows=5))
    rival = expost(prior, max_loss=80)
    assert adversary_error(rival, prior) == pytest.approx(80, rel=1e-6)
    best, _, _ = found(prior, 80.0, euclidean)
    assert best.entropy == pytest.approx(posterior_entropy(rival, prior), abs=1e-6)


@pytest.mark.slow
def test_a_large_skewed_problem_is_solved_to_the_last_digits() -> None:
    prior = random_prior(9, 9, 1)
    best = max_adversary_error_given_loss(prior, max_loss=107, choose="entropy")
    assert isinstance(best, GameChannel)
    assert best.certificate.optimal
    assert float(best.certificate.method.split("within ")[1].split()[0]) < 1e-6
    assert expected_loss(best, prior) <= 107
    assert posterior_entropy(best, prior) == pytest.approx(3.511959, abs=1e-5)
    vertex = max_adversary_error_given_loss(prior, max_loss=107, choose="vertex")
    assert posterior_entropy(best, prior) > posterior_entropy(vertex, prior) + 1


@pytest.mark.parametrize("max_loss", [0.0, 1e6])
def test_nothing_hidden_and_everything_hidden(max_loss: float) -> None:
    prior = random_prior(3, 3, 4)
    best = max_adversary_error_given_loss(prior, max_loss=max_loss, choose="entropy")
    alone = float(-(prior.mass * np.log2(prior.mass)).sum())
    assert posterior_entropy(best, prior) == pytest.approx(alone if max_loss else 0.0, abs=1e-5)


@pytest.mark.parametrize("max_loss", [60.0, 90.0, 1e6])
def test_one_block_for_each_orbit_gives_the_entropy_of_one_for_each_report(max_loss: float) -> None:
    # The mirrors of this prior leave two medians, and some reports are their own images.
    grid = Grid(0, 0, cell=100, columns=4, rows=3)
    prior = Prior.from_counts(grid, [1, 2, 2, 1, 3, 5, 5, 3, 1, 2, 2, 1])
    best, game, value = found(prior, max_loss, discrete)
    assert len(game.program.symmetry.inputs) == 4
    alone, _, _ = found(prior, max_loss, discrete, symmetric=False)
    assert best.entropy == pytest.approx(alone.entropy, abs=1e-6)
    assert best.short < 1e-6
    assert game.adversary_error(best.matrix) >= value * (1 - 1e-7)
    np.testing.assert_allclose(best.matrix[::-1, ::-1], best.matrix, atol=1e-12)
