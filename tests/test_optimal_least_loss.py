import numpy as np
import pytest

from geoind import Grid, Prior, min_loss_given_epsilon

REFERENCE = {
    (2, 0.01): 54.55511485,
    (2, 0.02): 26.64047415,
    (3, 0.01): 88.39396463,
    (3, 0.02): 39.54018205,
    (5, 0.01): 122.86772664,
    (5, 0.02): 51.06985434,
    (7, 0.01): 139.46174693,
    (7, 0.02): 56.25787517,
    (9, 0.01): 149.39592471,
    (9, 0.02): 59.19805429,
}


def square(side: int, cell: float = 100.0) -> Grid:
    return Grid(0, 0, cell=cell, columns=side, rows=side)


@pytest.mark.parametrize(("side", "epsilon"), REFERENCE)
def test_the_reference_objectives_are_met_and_the_promise_is_kept(side: int, epsilon: float) -> None:
    best = min_loss_given_epsilon(Prior.uniform(square(side)), epsilon=epsilon)
    value = best.certificate.objective
    assert value == pytest.approx(REFERENCE[side, epsilon], rel=1e-6)
    assert value > REFERENCE[side, epsilon] * (1 - 1e-9)
    assert best.certificate.bound <= REFERENCE[side, epsilon] * (1 + 1e-9)
    assert best.certificate.optimal
    assert best.certificate.gap <= 1e-6
    assert best.epsilon <= epsilon
    assert np.abs(best.matrix.sum(axis=1) - 1).max() < 1e-12
