import math
from typing import Any

import numpy as np
import pytest

from geoind import (
    Grid,
    InvalidInputError,
    Mechanism,
    PlanarGaussian,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SphericalGaussian,
    level_of_reports,
    planar_geometric,
)
from geoind.accounting.concentrated import level_of_rho, rho_of_reports
from geoind.accounting.losses import loss_of


@pytest.mark.parametrize("order", [1.01, 2.0, 10.0])
def test_the_rate_bounds_every_renyi_divergence(order: float) -> None:
    noises: list[Mechanism] = [PlanarGaussian(500.0), PlanarLaplace(0.002)]
    for noise in noises:
        losses, masses, _ = loss_of(noise, 300.0).atoms(0.01, above=True)
        divergence = math.log(masses @ np.exp((order - 1) * losses)) / (order - 1)
        bound = order * rho_of_reports(noise) * 300**2
        assert divergence <= bound * (1 + 1e-9)
        if isinstance(noise, PlanarGaussian):
            assert divergence == pytest.approx(bound)


def test_rates_add_up_and_their_level_is_valid_but_looser_than_the_accountants() -> None:
    noise = PlanarGaussian(1500.0)
    assert rho_of_reports(noise, reports=20) == pytest.approx(20 * rho_of_reports(noise))
    assert rho_of_reports(noise, reports=20) == pytest.approx(rho_of_reports(PlanarGaussian(1500 / math.sqrt(20))))
    for mechanism in (noise, PlanarLaplace(0.001)):
        for delta in (1e-2, 1e-5, 1e-12):
            closed = level_of_rho(rho_of_reports(mechanism, reports=20), radius=200, delta=delta)
            exact = level_of_reports(mechanism, reports=20, radius=200, delta=delta)
            assert exact < closed
    gaussian = level_of_reports(noise, reports=20, radius=200, delta=1e-5)
    closed = level_of_rho(rho_of_reports(noise, reports=20), radius=200, delta=1e-5)
    assert closed < 1.3 * gaussian


def test_rates_pass_through_steps_and_grow_with_a_projections_scale() -> None:
    noise = PlanarGaussian(500.0)
    snapped = PostProcessed(noise, Grid(0, 0, cell=100, columns=9, rows=9).snap)
    assert rho_of_reports(snapped) == rho_of_reports(noise)
    paris = Projected(noise, Projection(2.35, 48.86))
    assert rho_of_reports(paris) == pytest.approx(rho_of_reports(noise) * paris.largest_scale**2)


def test_noise_without_an_epsilon_everywhere_has_no_rate() -> None:
    channel = planar_geometric(Grid(0, 0, cell=100, columns=3, rows=3), epsilon=0.01)
    for mechanism in (SphericalGaussian(500.0), Projected(channel, Projection(2.35, 48.86))):
        with pytest.raises(InvalidInputError, match="rate"):
            rho_of_reports(mechanism)


@pytest.mark.parametrize("mechanism", ["gaussian", None, Grid(0, 0, cell=1, columns=1, rows=1)])
def test_what_is_no_mechanism_has_no_rate(mechanism: Any) -> None:
    with pytest.raises(InvalidInputError):
        rho_of_reports(mechanism)
