import math
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from geoind.accounting.composition import (
    LossPmf,
    composed,
    infinite_mass,
    rounded_down,
    rounded_up,
    tilt_for_delta,
    tilt_for_level,
)
from geoind.accounting.losses import Atoms, Loss, excess
from geoind.arrays import FloatArray
from tests.accounting.test_losses import gaussian, laplace

STEP = 0.05
LAPLACE = replace(rounded_up(laplace(1.0).atoms(STEP, above=True), STEP), reports=6)
GAUSSIAN = rounded_up(gaussian(0.5).atoms(STEP, above=True), STEP)
LEVELS = np.linspace(-3, 3, 61)


def convolved(parts: list[LossPmf]) -> Atoms:
    """Return the sum's distribution by plain convolution, in extended precision."""
    rows = [part.masses.astype(np.longdouble) for part in parts for _ in range(part.reports)]
    first = sum(part.reports * part.first for part in parts)
    masses = reduce(np.convolve, rows)
    return (first + np.arange(len(masses), dtype=np.float64)) * STEP, np.asarray(masses, np.longdouble), 0.0


def tilted(parts: list[LossPmf], tilt: float, losses: FloatArray) -> FloatArray:
    """Return the exact tilted masses at the losses of a window."""
    all_losses, all_masses, _ = convolved(parts)
    masses = all_masses * np.exp(tilt * all_losses.astype(np.longdouble))
    start = round((losses[0] - all_losses[0]) / STEP)
    return np.asarray((masses / masses.sum())[start : start + len(losses)], np.float64)


@pytest.mark.parametrize("parts", [[LAPLACE], [LAPLACE, GAUSSIAN]], ids=["one law", "two laws"])
@pytest.mark.parametrize("tilt", [0.0, 2.0, 7.0])
def test_masses_are_those_of_a_convolution_within_the_noise(parts: list[LossPmf], tilt: float) -> None:
    total = composed(parts, tilt)
    off = total.masses - tilted(parts, tilt, total.losses)
    assert np.linalg.norm(off) <= total.noise + total.lost
    assert total.noise < 1e-12
    assert total.mean == pytest.approx(float(total.masses @ total.losses), abs=1e-9)


@pytest.mark.parametrize("level", [0.0, 1.0, 3.0, 5.5])
@pytest.mark.parametrize("parts", [[LAPLACE], [LAPLACE, GAUSSIAN]], ids=["one law", "two laws"])
def test_the_bounds_hold_a_convolutions_delta_and_are_close_to_it(parts: list[LossPmf], level: float) -> None:
    exact = excess(convolved(parts), level)
    total = composed(parts, tilt_for_level(parts, level))
    assert total.delta_below(level) <= exact <= total.delta_above(level)
    assert total.delta_above(level) - total.delta_below(level) < 1e-9 * exact


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-30])
def test_the_tilt_for_a_delta_brings_the_mean_near_its_level(delta: float) -> None:
    parts = [replace(LAPLACE, reports=200)]
    total = composed(parts, tilt_for_delta(parts, delta))
    assert total.delta_above(total.mean - 3 * total.deviation) > delta
    assert total.delta_above(total.mean + 3 * total.deviation) < delta


def test_a_doubt_widens_the_bounds_once_per_report() -> None:
    sure, unsure = (composed([replace(LAPLACE, doubt=doubt)], 1.0) for doubt in (0.0, 0.01))
    assert unsure.delta_above(2.0) == pytest.approx(sure.delta_above(2.0) * math.exp(0.06))
    assert unsure.delta_below(2.0) == pytest.approx(sure.delta_below(2.0) * math.exp(-0.06))


def curve(grid: LossPmf) -> FloatArray:
    losses = (grid.first + np.arange(len(grid.masses), dtype=np.float64)) * grid.step
    return np.array([excess((losses, grid.masses, grid.infinite), level) for level in LEVELS])


def true_curve(atoms: Atoms) -> FloatArray:
    return np.array([excess(atoms, level) for level in LEVELS])


@st.composite
def distributions(draw: st.DrawFn) -> Atoms:
    losses = draw(hnp.arrays(float, st.integers(1, 30), elements=st.floats(-3, 3)))
    masses = draw(hnp.arrays(float, len(losses), elements=st.floats(0, 1))) + 1e-6
    return (losses, masses / masses.sum(), draw(st.sampled_from([0.0, 0.01])))


@given(distributions(), st.floats(0.01, 1.0))
def test_rounding_up_dominates_and_rounding_down_is_dominated_at_every_level(atoms: Atoms, step: float) -> None:
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
    assert grid.masses @ np.exp(-losses) == pytest.approx(atoms[1] @ np.exp(-atoms[0]))


@pytest.mark.parametrize("loss", [laplace(math.log(4)), laplace(0.2), gaussian(0.6)])
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


@given(st.lists(st.tuples(st.sampled_from([0.0, 1e-12, 1e-3, 0.2]), st.integers(1, 9)), min_size=1, max_size=3))
def test_one_infinite_loss_among_many_makes_the_sum_infinite(parts: list[tuple[float, int]]) -> None:
    pmfs = [replace(GAUSSIAN, infinite=mass, reports=reports) for mass, reports in parts]
    finite = math.prod((1 - mass) ** reports for mass, reports in parts)
    assert infinite_mass(pmfs) == pytest.approx(1 - finite, rel=1e-3, abs=1e-15)
    assert infinite_mass(pmfs) >= (1 - finite) * (1 - 1e-9)
