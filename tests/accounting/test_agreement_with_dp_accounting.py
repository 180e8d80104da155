"""Google's accountant composes losses of one dimension; where both can, both must say the same."""

import math
from collections.abc import Iterable

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from geoind import Grid, PlanarGaussian, PlanarLaplace, discretise, randomised_response
from geoind.accounting import delta_bounds, level_bounds
from geoind.accounting.losses import loss_of

STEP = 1e-3


def of_rows(here: Iterable[float], there: Iterable[float], *, pessimistic: bool) -> pld.PrivacyLossDistribution:
    """Return Google's distribution of the loss between two rows."""
    logs = ({z: math.log(p) for z, p in enumerate(row) if p > 0} for row in (there, here))
    return pld.from_two_probability_mass_functions(
        *logs, pessimistic_estimate=pessimistic, value_discretization_interval=STEP
    )


@pytest.mark.parametrize("reports", [1, 20, 400])
def test_gaussian_reports_agree(reports: int) -> None:
    theirs = pld.from_gaussian_mechanism(1000.0, sensitivity=200.0, value_discretization_interval=STEP)
    level = level_bounds(PlanarGaussian(1000.0), reports=reports, radius=200, delta=1e-6)[1]
    assert theirs.self_compose(reports).get_epsilon_for_delta(1e-6) == pytest.approx(level, rel=2e-3)


@pytest.mark.parametrize("reports", [2, 30])
def test_a_channel_of_three_answers_agrees(reports: int) -> None:
    channel = randomised_response(3, epsilon=1.0)
    lower, upper = delta_bounds(channel, reports=reports, radius=1, level=reports / 4)
    here, there = channel.matrix[:2]
    above, below = (
        of_rows(here, there, pessimistic=pessimistic).self_compose(reports).get_delta_for_epsilon(reports / 4)
        for pessimistic in (True, False)
    )
    assert lower <= above * (1 + 1e-9)
    assert below <= upper * (1 + 1e-9)
    assert upper == pytest.approx(above, rel=0.02)


def test_discretised_noise_agrees() -> None:
    channel = discretise(PlanarLaplace(0.01), Grid(0, 0, cell=50, columns=6, rows=1))
    lower, upper = delta_bounds(channel, reports=10, radius=50, level=2.0)
    theirs = max(
        of_rows(*channel.matrix[list(pair)], pessimistic=True).self_compose(10).get_delta_for_epsilon(2.0)
        for pair in [(x, y) for x in range(6) for y in (x - 1, x + 1) if 0 <= y < 6]
    )
    # From above ours covers reports at changing places, too.
    assert lower < theirs * (1 + 1e-9)
    assert theirs < upper * 1.02


@pytest.mark.parametrize("reports", [5, 100])
def test_planar_laplace_cut_into_cells_agrees(reports: int) -> None:
    edges = np.linspace(0, math.pi, 4001)
    angles = (edges[1:] + edges[:-1]) / 2
    size = math.log(4)
    losses, masses, _ = loss_of(PlanarLaplace(size), 1.0).atoms(0.001, above=True)
    cells = np.digitize(np.arccos(losses / size), edges[1:-1])
    here = np.bincount(cells, masses, minlength=len(angles))
    there = np.bincount(cells, masses * np.exp(-losses), minlength=len(angles))
    theirs = of_rows(here, there, pessimistic=True).self_compose(reports).get_epsilon_for_delta(1e-5)
    lower, upper = level_bounds(PlanarLaplace(size / 200), reports=reports, radius=200, delta=1e-5)
    assert lower < theirs + 1e-6
    # Theirs rounds every loss up by half a step on average.
    assert theirs - upper < reports * STEP
