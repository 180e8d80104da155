"""The epsilon' correction against exact cell masses of a coarse polar lattice (CCS 2013, Theorem 4.1)."""

import math

import numpy as np
import pytest

from geoind import InvalidInputError
from geoind.arrays import FloatArray
from geoind.mechanisms import corrected_epsilon, guarantee_of_noise
from geoind.mechanisms.precision import _loss, matrix_epsilon

TURN = 2 * math.pi


def cell_masses(epsilon: float, angles: int, reach: int) -> FloatArray:
    """Exact mass of each unit cell (reach cells each way) for angles on a lattice and a continuous radius."""
    masses = np.zeros((2 * reach + 1, 2 * reach + 1))
    edges = np.arange(-reach - 0.5, reach + 1.5)
    for angle in TURN * (np.arange(angles) + 0.5) / angles:
        cos, sin = math.cos(angle), math.sin(angle)
        with np.errstate(divide="ignore"):
            crossings = np.concatenate([edges / cos, edges / sin])
        crossings = np.sort(crossings[(crossings > 0) & (crossings < 4 * reach)])
        crossings = np.concatenate([[0.0], crossings])
        middle = (crossings[1:] + crossings[:-1]) / 2
        column, row = np.rint(middle * cos).astype(int), np.rint(middle * sin).astype(int)
        scaled = epsilon * crossings
        within = -np.diff((1 + scaled) * np.exp(-scaled)) / angles
        inside = (np.abs(column) <= reach) & (np.abs(row) <= reach)
        np.add.at(masses, (row[inside] + reach, column[inside] + reach), within[inside])
    return masses


def worst_epsilon(masses: FloatArray, r_max: float) -> float:
    """Largest log-ratio per unit between centres one step apart, at cells within r_max of both."""
    reach = len(masses) // 2
    column, row = np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1))
    near = np.hypot(column, row) <= r_max
    both = near[:, 1:] & near[:, :-1]
    with np.errstate(divide="ignore"):
        log = np.log(masses)
    return float(np.abs(log[:, 1:] - log[:, :-1])[both].max())


def test_the_machine_s_step_costs_epsilon_and_the_correction_pays_for_it() -> None:
    uncorrected = worst_epsilon(cell_masses(1.0, 300, 8), 8)
    assert uncorrected > 1.005
    epsilon = corrected_epsilon(1.0, cell=1, r_max=8, angle_resolution=TURN / 300)
    assert worst_epsilon(cell_masses(epsilon, 300, 8), 8) <= 1.0


@pytest.mark.parametrize(
    ("noise", "angles", "theorem", "slide"),
    [
        (0.1, 500, 0.5520, 0.8982),
        (0.1, 2000, 0.2112, 0.2594),
        (1, 500, 2.2269, 1.8353),
        (1, 2000, 1.2750, 1.1618),
        (2, 1000, 3.9135, 2.3602),
    ],
)
def test_both_forms_meet_their_reference_values(noise: float, angles: int, theorem: float, slide: float) -> None:
    machine = {"cell": 1.0, "r_max": 8.0, "angle_resolution": TURN / angles}
    assert corrected_epsilon(theorem, **machine) == pytest.approx(noise, rel=1e-3)
    assert guarantee_of_noise(noise, **machine) == pytest.approx(slide, abs=6e-5)


@pytest.mark.parametrize(("cell", "loss"), [(0.001, 4.0e-2), (0.01, 4.0e-4), (1.0, 4.1e-8)])
def test_double_precision_costs_what_the_literature_s_formula_says(cell: float, loss: float) -> None:
    epsilon = math.log(4) / 200
    kept = corrected_epsilon(epsilon, cell=cell, r_max=100_000, angle_resolution=TURN * 2**-53)
    assert 1 - kept / epsilon == pytest.approx(loss, rel=0.03)


def test_the_two_directions_do_not_contradict_each_other() -> None:
    machine = {"cell": 1.0, "r_max": 8.0, "angle_resolution": TURN / 2000}
    assert corrected_epsilon(1.0, **machine) < 1.0 < guarantee_of_noise(1.0, **machine)


def test_a_coarse_radius_counts_like_a_coarse_angle() -> None:
    by_angle = corrected_epsilon(1.0, cell=1, r_max=8, angle_resolution=0.01)
    by_radius = corrected_epsilon(1.0, cell=1, r_max=8, angle_resolution=1e-9, radius_resolution=0.08)
    assert by_angle == pytest.approx(by_radius)


def test_an_impossible_grid_names_the_smallest_usable_step() -> None:
    machine = {"r_max": 100_000.0, "angle_resolution": TURN * 2**-24}
    with pytest.raises(InvalidInputError, match="at least") as caught:
        corrected_epsilon(math.log(4) / 200, cell=1, **machine)
    smallest = float(str(caught.value).split("at least ")[1].split(" m")[0])
    assert corrected_epsilon(math.log(4) / 200, cell=1.01 * smallest, **machine) > 0
    with pytest.raises(InvalidInputError):
        corrected_epsilon(math.log(4) / 200, cell=0.98 * smallest, **machine)


@pytest.mark.parametrize("metres", [0.001, 1.0, 1000.0, 1e6])
def test_another_unit_of_length_changes_nothing(metres: float) -> None:
    machine = {"r_max": 8.0, "radius_resolution": 0.02}
    units = {name: value * metres for name, value in machine.items()} | {"angle_resolution": 0.002}
    for form in (corrected_epsilon, guarantee_of_noise):
        here = form(1.0, cell=1.0, angle_resolution=0.002, **machine)
        assert form(1 / metres, cell=metres, **units) * metres == pytest.approx(here, rel=1e-12)


@pytest.mark.parametrize("metres", [0.001, 1.0, 1000.0, 1e6])
@pytest.mark.parametrize("level", [1e-6, 0.01, 1.0, 25.0, 400.0])
def test_the_smallest_usable_cell_is_named_whatever_the_machine_s_step(level: float, metres: float) -> None:
    """The machine's step is one unit of length, and `level` what epsilon allows within it."""
    machine = {"r_max": 10 * metres, "angle_resolution": 0.1}
    with pytest.raises(InvalidInputError, match="at least") as caught:
        corrected_epsilon(level / metres, cell=2 * metres, **machine)
    smallest = float(str(caught.value).split("at least ")[1].split(" m")[0])
    assert corrected_epsilon(level / metres, cell=1.01 * smallest, **machine) > 0
    with pytest.raises(InvalidInputError):
        corrected_epsilon(level / metres, cell=0.99 * smallest, **machine)


def test_the_slide_s_form_refuses_a_grid_of_five_machine_steps() -> None:
    with pytest.raises(InvalidInputError, match="five machine steps"):
        guarantee_of_noise(1.0, cell=1, r_max=8, angle_resolution=0.03)


@pytest.mark.parametrize(
    "bad", [{"cell": 0}, {"r_max": -1}, {"angle_resolution": math.nan}, {"radius_resolution": -1}]
)
def test_nonsense_is_refused(bad: dict[str, float]) -> None:
    arguments = {"cell": 1.0, "r_max": 8.0, "angle_resolution": 1e-9} | bad
    with pytest.raises(InvalidInputError, match=next(iter(bad))):
        corrected_epsilon(1.0, **arguments)


@pytest.mark.parametrize("closest", [0.01, 1.0, 100.0])
def test_what_a_matrix_holds_back_is_the_same_between_the_two_closest_inputs(closest: float) -> None:
    held_back = 0.01 - matrix_epsilon(0.01, closest=closest)
    assert held_back * closest == pytest.approx(2.0**-40, rel=0.01)


def test_a_matrix_cannot_hold_back_all_that_was_promised() -> None:
    assert 0 < matrix_epsilon(2.0**-39, closest=1.0) < 2.0**-39
    for epsilon in (2.0**-40, 2.0**-41):
        with pytest.raises(InvalidInputError, match="below the precision of doubles"):
            matrix_epsilon(epsilon, closest=1.0)


def test_five_machine_steps_are_not_enough_for_a_guarantee() -> None:
    precision = {"r_max": 8.0, "angle_resolution": 0.125}
    for cell in (5.0, 4.0):
        with pytest.raises(InvalidInputError, match="too fine for this precision: it must exceed 5 m"):
            guarantee_of_noise(0.1, cell=cell, **precision)
    assert guarantee_of_noise(0.1, cell=5.01, **precision) > 0.1


def test_what_the_lattice_alone_costs_must_be_less_than_epsilon() -> None:
    precision = {"cell": 1.0, "r_max": 8.0, "angle_resolution": 1e-3}
    alone = _loss(0.0, 1.0, 8e-3)
    with pytest.raises(InvalidInputError, match="cell 1 m is too fine"):
        corrected_epsilon(alone, **precision)
    assert 0 < corrected_epsilon(1.01 * alone, **precision) < 0.02 * alone
