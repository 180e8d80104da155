import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from geoind.accounting.losses import Atoms, GaussianLoss, LaplaceLoss, Loss, excess
from geoind.accounting.rounding import OnGrid, rounded_down, rounded_up
from geoind.arrays import FloatArray

LEVELS = np.linspace(-3, 3, 61)


def curve(grid: OnGrid) -> FloatArray:
    losses = (grid.first + np.arange(len(grid.masses), dtype=np.float64)) * grid.step
    return np.array([excess(Atoms(losses, grid.masses, grid.beyond), level) for level in LEVELS])


def true_curve(atoms: Atoms) -> FloatArray:
    return np.array([excess(atoms, level) for level in LEVELS])


@st.composite
def distributions(draw: st.DrawFn) -> Atoms:
    losses = draw(hnp.arrays(float, st.integers(1, 30), elements=st.floats(-3, 3)))
    masses = draw(hnp.arrays(float, len(losses), elements=st.floats(0, 1))) + 1e-6
    return Atoms(losses, masses / masses.sum(), draw(st.sampled_from([0.0, 0.01])))


@given(distributions(), st.floats(0.01, 1.0))
def test_rounding_up_tells_more_and_rounding_down_tells_less_at_every_level(atoms: Atoms, step: float) -> None:
    truth = true_curve(atoms)
    assert (curve(rounded_up(atoms, step)) >= truth - 1e-12).all()
    assert (curve(rounded_down(atoms, step)) <= truth + 1e-12).all()


@given(distributions(), st.floats(0.01, 1.0))
def test_rounding_keeps_the_mass_and_rounding_up_keeps_it_at_the_other_place_too(
    atoms: Atoms, step: float
) -> None:
    for rounding in (rounded_up, rounded_down):
        grid = rounding(atoms, step)
        assert (grid.masses >= 0).all()
        assert grid.masses.sum() == pytest.approx(1)
    grid = rounded_up(atoms, step)
    losses = (grid.first + np.arange(len(grid.masses))) * step
    assert grid.masses @ np.exp(-losses) == pytest.approx(atoms.masses @ np.exp(-atoms.losses))


@pytest.mark.parametrize("loss", [LaplaceLoss(math.log(4)), LaplaceLoss(0.2), GaussianLoss(0.6)])
def test_both_errors_fall_with_the_square_of_the_step(loss: Loss) -> None:
    def gap(step: float) -> float:
        atoms = loss.atoms(step, above=True)
        means = []
        for rounding in (rounded_up, rounded_down):
            grid = rounding(atoms, step)
            means.append(float(grid.masses @ (grid.first + np.arange(len(grid.masses)))) * step)
        return means[0] - means[1]

    for step in (0.02, 0.011, 0.005):
        assert 0 < gap(step) < 0.4 * step**2
