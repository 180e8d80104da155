import numpy as np
import pytest

from geoind import Grid, Prior, adversary_error, expected_loss, max_adversary_error_given_loss
from geoind.channels import posterior_entropy, worst_case_loss
from geoind.distances import Distance, discrete, euclidean, from_matrix, squared
from geoind.errors import InfeasibleError, InvalidInputError, SitesMismatchError
from geoind.optimal import expost, min_loss_given_adversary_error, optimal_error_range

GRID = Grid(0, 0, cell=100, columns=4, rows=4)
SKEWED = Prior(GRID, np.random.default_rng(7).dirichlet(np.ones(16)))


@pytest.mark.parametrize(
    ("side", "adversary_loss", "value"),
    [
        (5, discrete, 0.84845387),
        (9, discrete, 0.86293618),
        (5, squared, 36226.225460),
        (9, squared, 80168.186745),
        (5, euclidean, 100.0),
        (9, euclidean, 100.0),
    ],
)
def test_the_reference_values_are_met_and_proven(side: int, adversary_loss: Distance, value: float) -> None:
    prior = Prior.uniform(Grid(0, 0, cell=100, columns=side, rows=side))
    best = max_adversary_error_given_loss(prior, max_loss=100, adversary_loss=adversary_loss)
    assert best.certificate.objective == pytest.approx(value, rel=1e-7)
    assert best.certificate.bound == pytest.approx(value, rel=1e-7)
    assert best.certificate.optimal
    assert expected_loss(best, prior) <= 100
    assert adversary_error(best, prior, loss=adversary_loss) == pytest.approx(
        best.certificate.objective, rel=1e-12
    )


@pytest.mark.parametrize("adversary_loss", [euclidean, squared, discrete])
def test_the_adversary_strategy_holds_every_mechanism_down_to_the_optimum(adversary_loss: Distance) -> None:
    best = max_adversary_error_given_loss(SKEWED, max_loss=60, adversary_loss=adversary_loss)
    guess = best.adversary.matrix
    error = adversary_loss(GRID.xy, GRID.xy)
    against_best = SKEWED.mass @ ((best.matrix @ guess) * error).sum(axis=1)
    assert against_best == pytest.approx(best.certificate.objective, rel=1e-6)
    # Any other user within the same loss does no better against this adversary.
    for rate in (0.005, 0.02, 0.05):
        other = expost(SKEWED, epsilon=rate)
        if expected_loss(other, SKEWED) <= 60:
            assert SKEWED.mass @ ((other.matrix @ guess) * error).sum(axis=1) <= against_best * (1 + 1e-9)


@pytest.mark.parametrize("adversary_loss", [squared, discrete])
def test_the_converse_leads_back_to_the_loss(adversary_loss: Distance) -> None:
    best = max_adversary_error_given_loss(SKEWED, max_loss=50, adversary_loss=adversary_loss)
    wanted = best.certificate.objective
    back = min_loss_given_adversary_error(SKEWED, min_error=wanted, adversary_loss=adversary_loss)
    assert back.certificate.objective == pytest.approx(50, rel=1e-7)
    assert back.certificate.bound == pytest.approx(50, rel=1e-7)
    assert adversary_error(back, SKEWED, loss=adversary_loss) >= wanted * (1 - 1e-12)


@pytest.mark.parametrize("choose", ["symmetric", "vertex", "entropy", "worst_loss"])
@pytest.mark.parametrize("adversary_loss", [euclidean, discrete])
def test_every_choice_is_optimal_and_within_the_loss(choose: str, adversary_loss: Distance) -> None:
    best = max_adversary_error_given_loss(
        SKEWED,
        max_loss=60,
        adversary_loss=adversary_loss,
        choose=choose,  # type: ignore[arg-type]
    )
    reference = max_adversary_error_given_loss(SKEWED, max_loss=60, adversary_loss=adversary_loss)
    assert best.certificate.objective == pytest.approx(reference.certificate.objective, rel=1e-7)
    assert expected_loss(best, SKEWED) <= 60


def test_choices_are_best_in_what_they_are_chosen_for() -> None:
    prior = Prior.uniform(GRID)
    found = {
        choose: max_adversary_error_given_loss(prior, max_loss=60, choose=choose)
        for choose in ("symmetric", "vertex", "entropy", "worst_loss")
    }
    entropy = {choose: posterior_entropy(channel, prior) for choose, channel in found.items()}
    worst = {choose: worst_case_loss(channel, prior) for choose, channel in found.items()}
    assert entropy["entropy"] >= max(entropy.values())
    assert entropy["entropy"] > 1.2 * entropy["vertex"]
    assert worst["worst_loss"] <= min(worst.values())
    assert worst["worst_loss"] == 100


def test_the_symmetric_choice_has_the_symmetry_of_the_grid() -> None:
    best = max_adversary_error_given_loss(Prior.uniform(GRID), max_loss=60, adversary_loss=discrete)
    turned = np.arange(16).reshape(4, 4)[::-1].T.ravel()
    np.testing.assert_allclose(best.matrix[np.ix_(turned, turned)], best.matrix, atol=1e-12)


def test_inputs_without_mass_get_the_row_of_a_neighbour() -> None:
    mass = np.zeros(16)
    mass[[0, 5, 10]] = 1 / 3
    best = max_adversary_error_given_loss(Prior(GRID, mass), max_loss=40)
    assert best.certificate.optimal
    np.testing.assert_array_equal(best.matrix[4], best.matrix[0])


def test_the_range_contains_every_choice() -> None:
    prior = Prior.uniform(Grid(0, 0, cell=100, columns=3, rows=3))
    other = Prior(prior.sites, [0.5, 0, 0, 0, 0, 0, 0, 0, 0.5])
    found = optimal_error_range(prior, other, max_loss=70)
    for choose in ("symmetric", "vertex", "entropy", "worst_loss"):
        channel = max_adversary_error_given_loss(prior, max_loss=70, choose=choose)
        assert found.lowest - 1e-6 <= adversary_error(channel, other) <= found.highest + 1e-6
    for end, error in ((found.lowest_channel, found.lowest), (found.highest_channel, found.highest)):
        assert adversary_error(end, other) == pytest.approx(error, abs=1e-6)
        assert adversary_error(end, prior) == pytest.approx(70, rel=1e-6)
        assert expected_loss(end, prior) <= 70


def test_the_lowest_error_is_that_of_the_last_descent_too() -> None:
    prior = Prior.uniform(Grid(0, 0, cell=100, columns=3, rows=3))
    corner = Prior.over(prior.sites, [0, 1, 3, 4])
    found = optimal_error_range(prior, corner, max_loss=70)
    assert found.lowest == pytest.approx(0, abs=1e-6)
    assert adversary_error(found.lowest_channel, corner) == pytest.approx(0, abs=1e-6)
    assert adversary_error(found.lowest_channel, prior) == pytest.approx(70, rel=1e-6)


def test_nonsense_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="max_loss must not be negative"):
        max_adversary_error_given_loss(SKEWED, max_loss=-1)
    with pytest.raises(InvalidInputError, match="max_loss"):
        max_adversary_error_given_loss(SKEWED, max_loss=float("nan"))
    with pytest.raises(InvalidInputError, match="choose"):
        max_adversary_error_given_loss(SKEWED, max_loss=10, choose="best")  # type: ignore[arg-type]
    with pytest.raises(SitesMismatchError, match="matrix"):
        max_adversary_error_given_loss(SKEWED, max_loss=10, loss=from_matrix(np.zeros((2, 2))))
    away = Grid(1000, 0, cell=100, columns=2, rows=1)
    with pytest.raises(InfeasibleError, match="the least is"):
        max_adversary_error_given_loss(SKEWED, max_loss=10, outputs=away)
    with pytest.raises(InfeasibleError, match="without any report"):
        min_loss_given_adversary_error(SKEWED, min_error=1e6)


def test_a_bound_of_zero_reveals_the_truth_and_a_large_one_nothing() -> None:
    assert max_adversary_error_given_loss(SKEWED, max_loss=0).certificate.objective == 0
    silent = max_adversary_error_given_loss(SKEWED, max_loss=1e9)
    alone = float((SKEWED.mass @ euclidean(GRID.xy, GRID.xy)).min())
    assert silent.certificate.objective == pytest.approx(alone, rel=1e-9)
