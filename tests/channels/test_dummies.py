import math

import numpy as np
import pytest

from geoind import Grid, InvalidInputError, KeyedRandomness, Mechanism, Places, Prior
from geoind.channels import Dummies
from geoind.errors import SitesMismatchError

STREET = Grid(0, 0, cell=100, columns=4, rows=1)
UNIFORM = Prior.uniform(STREET)


def test_the_truth_is_in_every_set_and_in_any_place_of_it() -> None:
    sets = Dummies(UNIFORM, k=3).sample_sets(np.tile([[210.0, 5.0]], (6000, 1)), rng=1)
    assert sets.shape == (6000, 3, 2)
    assert (sets == [200, 0]).all(axis=2).any(axis=1).all()
    # Truth with certainty in one of three places, a decoy there in one of four cases: (1 + 2 / 4) / 3 each.
    at_each = (sets == [200, 0]).all(axis=2).mean(axis=0)
    assert at_each == pytest.approx([0.5] * 3, abs=0.025)


def test_one_report_is_a_random_member() -> None:
    hidden = Dummies(UNIFORM, k=5)
    assert isinstance(hidden, Mechanism)
    assert hidden.epsilon == math.inf
    reports = hidden.sample(np.zeros((8000, 2)), rng=2)
    assert (reports == 0).all(axis=1).mean() == pytest.approx(1 / 5 + 4 / 5 / 4, abs=0.02)


def test_decoys_follow_their_distribution() -> None:
    decoys = Prior(STREET, [0, 0.1, 0.2, 0.7])
    sets = Dummies(decoys, k=2).sample_sets(np.zeros((20_000, 2)), rng=3)
    decoy = sets.sum(axis=1)[:, 0] / 100
    assert np.bincount(decoy.astype(int), minlength=4) / 20_000 == pytest.approx(decoys.mass, abs=0.012)


def test_the_posterior_is_bayes_rule_over_every_set() -> None:
    decoys, prior = Prior(STREET, [0.4, 0.3, 0.2, 0.1]), Prior(STREET, [0.1, 0.2, 0.3, 0.4])
    for a in range(4):
        for b in range(4):
            # The truth is a and the decoy b, or the other way round.
            chances = np.array([prior.mass[a] * decoys.mass[b], prior.mass[b] * decoys.mass[a]])
            assert Dummies(decoys, k=2).posterior([[a, b]], prior)[0] == pytest.approx(chances / chances.sum())


def test_a_member_that_no_decoy_can_be_is_the_truth() -> None:
    found = Dummies(Prior(STREET, [0, 0.5, 0.5, 0]), k=2).posterior([[0, 1]], UNIFORM)
    assert found.tolist() == [[1, 0]]


def test_members_without_prior_mass_are_equally_likely() -> None:
    assert Dummies(UNIFORM, k=2).posterior([[0, 1]], Prior.over(STREET, [3])).tolist() == [[0.5, 0.5]]


def test_the_adversarys_error_is_that_of_every_set() -> None:
    # Two sites: with probability 1/2 the decoy differs, and any guess is then wrong half of the time.
    pair = Grid(0, 0, cell=100, columns=2, rows=1)
    error = Dummies(Prior.uniform(pair), k=2).adversary_error(Prior.uniform(pair), draws=40_000, rng=4)
    assert error == pytest.approx(25, abs=0.8)


def test_simulated_persons_may_be_drawn_with_a_key() -> None:
    decoys, prior = Prior(STREET, [0.4, 0.3, 0.2, 0.1]), Prior(STREET, [0.1, 0.2, 0.3, 0.4])
    keyed = KeyedRandomness(bytes(32), range(9001))
    error = Dummies(decoys, k=2).adversary_error(prior, draws=9001, rng=keyed)
    assert error == Dummies(decoys, k=2).adversary_error(prior, draws=9001, rng=keyed)
    # Every truth with every decoy, and the best guess for the two of them in either order.
    apart = np.abs(np.subtract.outer(range(4), range(4))) * 100.0
    chances = np.outer(prior.mass, decoys.mass)
    both = chances[:, :, None] * apart[:, None, :] + chances.T[:, :, None] * apart[None, :, :]
    assert error == pytest.approx(both.min(axis=2).sum() / 2, abs=1.5)


def test_more_decoys_protect_better_and_unlikely_ones_hardly() -> None:
    grid = Grid(0, 0, cell=100, columns=5, rows=5)
    prior = Prior.over(grid, [0, 1, 5, 6])
    errors = [Dummies(prior, k=k).adversary_error(prior, draws=4000, rng=5) for k in (1, 2, 5)]
    assert errors[0] == 0
    assert errors[0] < errors[1] < errors[2]
    assert Dummies(Prior.uniform(grid), k=5).adversary_error(prior, draws=4000, rng=6) < errors[2] / 2


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidInputError):
        Dummies(STREET, k=2)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError):
        Dummies(UNIFORM, k=0)
    with pytest.raises(SitesMismatchError):
        Dummies(UNIFORM, k=2).adversary_error(Prior.uniform(Grid(0, 0, cell=1, columns=4, rows=1)))
    with pytest.raises(InvalidInputError):
        Dummies(UNIFORM, k=2).sample([[math.nan, 0]])


def test_its_reach_is_the_quantile_of_truth_and_decoys_and_half_a_cell() -> None:
    half = 100 / math.sqrt(2)
    assert Dummies(UNIFORM, k=1).reach(0.99) == pytest.approx(half)
    # At the end of the street: the truth or a decoy there with 1/2 + 1/8, then 1/8 for each site farther away.
    hidden = Dummies(UNIFORM, k=2)
    expected = {0.6: 0, 0.7: 100, 0.8: 200, 0.9: 300}
    assert [hidden.reach(confidence) for confidence in expected] == pytest.approx(
        [apart + half for apart in expected.values()]
    )
    with pytest.raises(InvalidInputError, match="outside the grid"):
        hidden.check_inside(np.array([[0.0, 51.0]]))
    with pytest.raises(InvalidInputError, match="use a Grid"):
        Dummies(Prior.uniform(Places(STREET.xy)), k=2).reach(0.9)
