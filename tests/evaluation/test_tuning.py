import pytest

from geoind import Channel, Grid, InvalidInputError, PlanarLaplace, Prior, discretise, expected_loss
from geoind.errors import InfeasibleError
from geoind.evaluation.contenders import FAMILIES
from geoind.evaluation.tuning import epsilon_for_loss

GRID = Grid(0, 0, cell=100, columns=9, rows=9)


UNIFORM = Prior.uniform(GRID)


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
