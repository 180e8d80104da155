"""What counts as a symmetry: prior, loss and distance must all stay as they are."""

from functools import partial

import numpy as np
import pytest

from geoind import Grid, Places, Prior, max_adversary_error_given_loss, min_loss_given_epsilon
from geoind.distances import Distance, discrete, euclidean, from_matrix, hamming
from geoind.optimal.symmetry import symmetry_of

GRID = Grid(0, 0, cell=100, columns=3, rows=3)
UNIFORM = np.full(9, 1 / 9)


def towards_east(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A loss that minds reports to the west more than reports to the east."""
    step = b[None, :, 0] - a[:, None, 0]
    return np.asarray(euclidean(a, b) + np.where(step < 0, -step, 0))


def river(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A metric with a detour between the first column and the others."""
    return np.asarray(euclidean(a, b) + 150.0 * ((a[:, None, 0] < 50) != (b[None, :, 0] < 50)))


def group(loss: Distance = euclidean, distance: Distance = euclidean, mass: np.ndarray = UNIFORM) -> int:
    apart, cost = distance(GRID.xy, GRID.xy), loss(GRID.xy, GRID.xy)
    return len(symmetry_of(GRID, GRID, apart, cost, mass).inputs)


def test_a_square_has_eight_symmetries_and_a_rectangle_four() -> None:
    assert group() == 8
    wide = Grid(0, 0, cell=100, columns=4, rows=2)
    apart = euclidean(wide.xy, wide.xy)
    assert len(symmetry_of(wide, wide, apart, apart, np.full(8, 1 / 8)).inputs) == 4


def test_a_loss_a_distance_or_a_prior_without_symmetry_leaves_the_flip_that_it_has() -> None:
    assert group(loss=towards_east) == 2
    assert group(distance=river) == 2
    assert group(mass=np.array([3, 1, 1, 3, 1, 1, 3, 1, 1]) / 15) == 2
    assert group(loss=towards_east, mass=np.arange(1, 10) / 45) == 1


def test_every_symmetry_leaves_everything_as_it_is() -> None:
    apart, cost = river(GRID.xy, GRID.xy), towards_east(GRID.xy, GRID.xy)
    found = symmetry_of(GRID, GRID, apart, cost, UNIFORM)
    for image_in, image_out in zip(found.inputs, found.outputs, strict=True):
        assert sorted(image_in) == sorted(image_out) == list(range(9))
        np.testing.assert_allclose(apart[np.ix_(image_in, image_in)], apart)
        np.testing.assert_allclose(cost[np.ix_(image_in, image_out)], cost)


def test_outputs_that_are_not_symmetric_leave_no_symmetry() -> None:
    lone = Places([[0, 0], [100, 0], [200, 100]])
    found = symmetry_of(GRID, lone, euclidean(GRID.xy, GRID.xy), euclidean(GRID.xy, lone.xy), UNIFORM)
    assert len(found.inputs) == 1


@pytest.mark.parametrize(
    ("loss", "distance"),
    [(towards_east, euclidean), (euclidean, river), (euclidean, from_matrix(river(GRID.xy, GRID.xy)))],
)
def test_the_optimum_does_not_depend_on_what_was_found_to_be_symmetric(loss: Distance, distance: Distance) -> None:
    lopsided = UNIFORM * (1 + 1e-6 * np.random.default_rng(1).uniform(-1, 1, 9))
    solve = partial(min_loss_given_epsilon, epsilon=0.01, loss=loss, distance=distance)
    with_symmetry = solve(Prior.uniform(GRID)).certificate
    without = solve(Prior.from_counts(GRID, lopsided)).certificate
    assert "symmetries" not in without.method
    assert with_symmetry.objective == pytest.approx(without.objective, rel=1e-5)


def test_the_game_is_not_folded_along_a_symmetry_that_one_of_its_losses_lacks() -> None:
    lopsided = Prior.from_counts(GRID, UNIFORM * (1 + 1e-7 * np.random.default_rng(1).uniform(-1, 1, 9)))
    for loss, adversary_loss in [(towards_east, discrete), (euclidean, towards_east)]:
        values = [
            max_adversary_error_given_loss(
                prior, max_loss=60, loss=loss, adversary_loss=adversary_loss
            ).certificate.objective
            for prior in (Prior.uniform(GRID), lopsided)
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_records_of_any_number_of_columns_are_solved_like_places_with_the_same_table() -> None:
    days = Places([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1]])
    apart = from_matrix(hamming(days.xy, days.xy))
    plane = Places([[0, 0], [1, 0], [0, 1], [5, 7]])
    mass = [0.4, 0.3, 0.2, 0.1]
    solved = min_loss_given_epsilon(Prior(days, mass), epsilon=1, loss=hamming, distance=hamming)
    again = min_loss_given_epsilon(Prior(plane, mass), epsilon=1, loss=apart, distance=apart)
    assert solved.certificate.objective == pytest.approx(again.certificate.objective, rel=1e-6)
    game = max_adversary_error_given_loss(Prior(days, mass), max_loss=0.3, loss=hamming, adversary_loss=hamming)
    assert game.certificate.objective == pytest.approx(0.3, rel=1e-6)
