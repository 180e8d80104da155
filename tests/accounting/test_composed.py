import math
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from geoind.accounting.composed import Part, composed_of, tilt_for_delta, tilt_for_level
from geoind.accounting.losses import Atoms, GaussianLoss, LaplaceLoss, excess
from geoind.accounting.rounding import rounded_up
from geoind.arrays import FloatArray

STEP = 0.05
LAPLACE = Part(rounded_up(LaplaceLoss(1.0).atoms(STEP, above=True), STEP), 6, 0.0)
GAUSSIAN = Part(rounded_up(GaussianLoss(0.5).atoms(STEP, above=True), STEP), 1, 0.0)


def convolved(parts: list[Part]) -> Atoms:
    """Return the sum's distribution by plain convolution, in extended precision."""
    rows = [part.loss.masses.astype(np.longdouble) for part in parts for _ in range(part.reports)]
    first = sum(part.reports * part.loss.first for part in parts)
    masses = reduce(np.convolve, rows)
    return Atoms((first + np.arange(len(masses), dtype=np.float64)) * STEP, np.asarray(masses, np.longdouble))


def tilted(parts: list[Part], tilt: float, losses: FloatArray) -> FloatArray:
    """Return the exact tilted masses at the losses of a window."""
    exact = convolved(parts)
    masses = exact.masses * np.exp(tilt * exact.losses.astype(np.longdouble))
    start = round((losses[0] - exact.losses[0]) / STEP)
    return np.asarray((masses / masses.sum())[start : start + len(losses)], np.float64)


@pytest.mark.parametrize("parts", [[LAPLACE], [LAPLACE, GAUSSIAN]], ids=["one law", "two laws"])
@pytest.mark.parametrize("tilt", [0.0, 2.0, 7.0])
def test_masses_are_those_of_a_convolution_within_the_noise(parts: list[Part], tilt: float) -> None:
    composed = composed_of(parts, tilt)
    off = composed.masses - tilted(parts, tilt, composed.losses)
    assert np.linalg.norm(off) <= composed.noise + composed.lost
    assert composed.noise < 1e-12
    assert composed.mean == pytest.approx(float(composed.masses @ composed.losses), abs=1e-9)


@pytest.mark.parametrize("level", [0.0, 1.0, 3.0, 5.5])
@pytest.mark.parametrize("parts", [[LAPLACE], [LAPLACE, GAUSSIAN]], ids=["one law", "two laws"])
def test_the_bounds_hold_a_convolutions_delta_and_are_close_to_it(parts: list[Part], level: float) -> None:
    exact = excess(convolved(parts), level)
    composed = composed_of(parts, tilt_for_level(parts, level))
    assert composed.delta_below(level) <= exact <= composed.delta_above(level)
    assert composed.delta_above(level) - composed.delta_below(level) < 1e-9 * exact


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-30])
def test_the_tilt_for_a_delta_brings_the_mean_near_its_level(delta: float) -> None:
    parts = [replace(LAPLACE, reports=200)]
    composed = composed_of(parts, tilt_for_delta(parts, delta))
    assert composed.delta_above(composed.mean - 3 * composed.deviation) > delta
    assert composed.delta_above(composed.mean + 3 * composed.deviation) < delta


def test_a_doubt_widens_the_bounds_once_per_report() -> None:
    sure, unsure = (composed_of([replace(LAPLACE, doubt=doubt)], 1.0) for doubt in (0.0, 0.01))
    assert unsure.delta_above(2.0) == pytest.approx(sure.delta_above(2.0) * math.exp(0.06))
    assert unsure.delta_below(2.0) == pytest.approx(sure.delta_below(2.0) * math.exp(-0.06))
