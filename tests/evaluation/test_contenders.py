import numpy as np
import pandas as pd
import pytest

from geoind import Channel, Grid, InvalidInputError, PlanarLaplace, Prior, discretise, expected_loss
from geoind.errors import InfeasibleError
from geoind.evaluation.contenders import FAMILIES, epsilon_for_loss
from geoind.mechanisms.planar import PlanarGaussian
from tests.evaluation.small import SMALL

GRID = Grid(0, 0, cell=100, columns=9, rows=9)
UNIFORM = Prior.uniform(GRID)


def test_what_is_optimal_for_the_uniform_prior_is_not_one_mechanism(small: pd.DataFrame) -> None:
    table = small.set_index(["equalised", "prior", "mechanism"])["adversary_error"]
    ends = [f"optimal for uniform, {end} error" for end in ("least", "most")]
    least, most = (table["uniform", "left zone", end] for end in ends)
    assert least < most - 20
    for name in ("optimal for uniform", "optimal for uniform, most entropy", *ends):
        assert table["uniform", "uniform", name] == pytest.approx(SMALL.loss, rel=1e-6)
        assert least - 1e-6 <= table["uniform", "left zone", name] <= most + 1e-6


def test_the_optimum_for_the_prior_reaches_the_wanted_loss_or_the_priors_own_error(small: pd.DataFrame) -> None:
    table = small.set_index(["equalised", "prior", "mechanism"])["adversary_error"]
    assert table["uniform", "left zone", "optimal for the prior"] == pytest.approx(107.298, abs=1e-3)


def test_a_decoy_costs_no_distance_and_leaves_the_prior_on_two_cells(small: pd.DataFrame) -> None:
    row = small.set_index(["equalised", "prior", "mechanism"]).to_dict("index")["uniform", "uniform", "dummies"]
    assert row["expected_loss"] == 0
    assert row["bayes_vulnerability"] == pytest.approx(0.5)
    assert row["posterior_entropy"] == pytest.approx(1)
    assert row["measured_epsilon"] == np.inf


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_stochastic_rows_and_positive_entries(name: str) -> None:
    matrix = FAMILIES[name](GRID, 0.0162).matrix
    assert (matrix > 0).all()
    assert matrix.sum(axis=1) == pytest.approx(1, abs=1e-12)


def test_gaussian_cells_are_where_gaussian_samples_fall() -> None:
    draws = 200_000
    reports = PlanarGaussian(95.0).sample(np.tile(GRID.xy[20], (draws, 1)), rng=np.random.default_rng(5))
    counted = np.bincount(GRID.nearest(reports), minlength=81)
    expected = draws * FAMILIES["Gaussian"](GRID, 1 / 95).matrix[20]
    likely = expected > 20
    assert (np.abs(counted - expected)[likely] < 5 * np.sqrt(expected[likely])).all()
    wrong = draws * FAMILIES["Gaussian"](GRID, 1.05 / 95).matrix[20]
    assert (np.abs(counted - wrong)[likely] > 5 * np.sqrt(expected[likely])).any()


def planar_laplace(epsilon: float) -> Channel:
    return discretise(PlanarLaplace(epsilon), GRID)


def test_the_planar_laplace_that_costs_what_cloaking_costs_has_the_papers_epsilon() -> None:
    epsilon = epsilon_for_loss(planar_laplace, UNIFORM, loss=107.29838054991532)
    assert epsilon == pytest.approx(0.016163, abs=5e-7)
    assert round(epsilon_for_loss(planar_laplace, UNIFORM, loss=107.03), 6) == 0.016205
    assert expected_loss(planar_laplace(0.0162), UNIFORM) == pytest.approx(107.060, abs=5e-4)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("loss", [20.0, 107.3, 300.0])
def test_every_family_reaches_the_wanted_loss(name: str, loss: float) -> None:
    prior = Prior.over(GRID, [0, 1, 40])
    epsilon = epsilon_for_loss(lambda epsilon: FAMILIES[name](GRID, epsilon), prior, loss=loss)
    assert expected_loss(FAMILIES[name](GRID, epsilon), prior) == pytest.approx(loss, rel=1e-8)


def test_a_loss_out_of_reach_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="as large as"):
        epsilon_for_loss(planar_laplace, UNIFORM, loss=5000)
    with pytest.raises(InfeasibleError, match="single site"):
        epsilon_for_loss(planar_laplace, Prior.uniform(Grid(0, 0, cell=1, columns=1, rows=1)), loss=1)


@pytest.mark.parametrize("loss", [0, -3, float("nan")])
def test_a_loss_that_is_not_positive_is_refused(loss: float) -> None:
    with pytest.raises(InvalidInputError, match="loss"):
        epsilon_for_loss(planar_laplace, UNIFORM, loss=loss)
