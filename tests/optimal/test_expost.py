import numpy as np
import pytest

from geoind import Grid, InvalidInputError, Prior, expected_loss, max_adversary_error_given_loss
from geoind.channels import posterior_entropy
from geoind.distances import euclidean, squared
from geoind.errors import InfeasibleError
from geoind.optimal import expost
from geoind.optimal.expost import blahut_arimoto

GRID = Grid(0, 0, cell=100, columns=4, rows=3)
SKEWED = Prior.from_counts(GRID, np.arange(1.0, 13.0))


@pytest.mark.parametrize("rate", [0.002, 0.01, 0.05])
def test_it_is_the_fixed_point_that_it_says(rate: float) -> None:
    cost = euclidean(GRID.xy, GRID.xy)
    matrix = blahut_arimoto(SKEWED.mass, cost, rate)
    likely = SKEWED.mass @ matrix
    wanted = likely * np.exp(-rate * cost)
    np.testing.assert_allclose(matrix, wanted / wanted.sum(axis=1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("loss", [euclidean, squared])
def test_an_epsilon_is_kept_as_measured(epsilon: float, loss: object) -> None:
    assert expost(SKEWED, epsilon=epsilon, loss=loss).epsilon <= epsilon  # type: ignore[arg-type]


@pytest.mark.parametrize("max_loss", [20.0, 60.0, 110.0])
def test_the_loss_is_met_and_no_channel_of_that_loss_hides_more(max_loss: float) -> None:
    found = expost(SKEWED, max_loss=max_loss)
    assert expected_loss(found, SKEWED) == pytest.approx(max_loss, rel=1e-6)
    other = max_adversary_error_given_loss(SKEWED, max_loss=max_loss, choose="entropy")
    assert posterior_entropy(found, SKEWED) >= posterior_entropy(other, SKEWED) - 1e-6


def test_a_loss_that_silence_meets_is_silence() -> None:
    silent = expost(SKEWED, max_loss=1e6)
    assert np.ptp(silent.matrix, axis=0).max() == 0


def test_what_cannot_be_asked_for_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="the least is 0"):
        expost(SKEWED, max_loss=-1.0)
    for epsilon, max_loss in ((None, None), (0.1, 10.0)):
        with pytest.raises(InvalidInputError, match="either epsilon or max_loss"):
            expost(SKEWED, epsilon=epsilon, max_loss=max_loss)
