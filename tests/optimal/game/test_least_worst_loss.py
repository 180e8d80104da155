"""Of all optimal mechanisms, the one whose largest loss is smallest: tried against every smaller one."""

import numpy as np
import pytest

from geoind import Grid, Prior
from geoind.distances import Distance, discrete, euclidean, squared
from geoind.errors import InfeasibleError
from geoind.optimal.game.game import Game
from geoind.optimal.game.least_worst_loss import least_worst_loss

GRID = Grid(0, 0, cell=100, columns=4, rows=3)
PRIORS = {
    "uniform": Prior.uniform(GRID),
    "skewed": Prior(GRID, np.random.default_rng(7).dirichlet(np.ones(12))),
    "with holes": Prior.over(GRID, [0, 1, 2, 5, 6, 11]),
}


@pytest.mark.parametrize("max_loss", [0.0, 30.0, 60.0, 500.0])
@pytest.mark.parametrize("adversary_loss", [euclidean, squared, discrete])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_no_smaller_largest_loss_is_optimal(prior: Prior, adversary_loss: Distance, max_loss: float) -> None:
    game = Game([prior], None, euclidean, adversary_loss, symmetric=True)
    optimum = game.program.solve(prize=(1.0,), max_loss=max_loss)
    matrix = least_worst_loss(game.program, max_loss, optimum)
    assert game.adversary_error(matrix) == pytest.approx(optimum.value, rel=1e-7, abs=1e-6)
    assert game.expected_loss(matrix) <= max_loss * (1 + 1e-9) + 1e-9
    worst = game.loss[matrix > 1e-9].max()
    smaller = game.loss[game.loss < worst - 1e-6]
    if not len(smaller):
        return
    try:
        rival = game.program.solve(prize=(1.0,), max_loss=max_loss, allowed=game.loss <= smaller.max() + 1e-6)
    except InfeasibleError:
        return
    assert rival.value < optimum.value * (1 - 1e-9)
