"""Every report in the plane is that of the whole real numbers, however close they come to a border."""

import math
from typing import Any

import numpy as np
import pytest

from geoind import PlanarGaussian, PlanarLaplace
from geoind.arrays import FloatArray
from geoind.mechanisms import exact, planar
from geoind.mechanisms.noise import DIRECTION_ERROR, RADIUS_ERROR, laplace_radius, survivals
from tests.mechanisms import reference
from tests.mechanisms.draws import PLANAR, planar_draws, planar_radius, source_of
from tests.mechanisms.reference import fraction


@pytest.mark.parametrize("noise", PLANAR, ids=repr)
@pytest.mark.parametrize("hunted", [False, True], ids=["random", "hunted"])
def test_planar_reports_are_those_of_a_hundred_digits(noise: PlanarLaplace | PlanarGaussian, hunted: bool) -> None:
    points, draws, reports = planar_draws(noise, 80, hunted=hunted)
    source = source_of(draws)
    assert noise.sample(points, rng=source).tolist() == reports
    assert (len(set(source.asked)) > 0.3 * len(points)) == hunted


def test_reports_that_doubles_cannot_decide_go_to_their_own_rows_in_every_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points, draws, reports = planar_draws(PLANAR[0], 80, hunted=True)
    monkeypatch.setattr("geoind.parallel.BLOCK", 7)
    assert PLANAR[0].sample(points, rng=source_of(draws)).tolist() == reports


def test_far_from_the_origin_more_is_left_to_exact_arithmetic() -> None:
    """2^46 steps away a double has 64 places in a step, and those within 2^-4 of a border are not trusted."""
    noise = PlanarLaplace(0.01)
    points = np.full((20_000, 2), 2.0**46 * noise.lattice_step)
    words = np.random.default_rng(1).integers(0, 1 << 64, (20_000, 2), np.uint64)
    unit = 1 / (noise.epsilon * noise.lattice_step)
    undecided = planar._block(
        points, words, np.empty_like(points), noise.lattice_step, lambda s: laplace_radius(s) * unit
    )
    assert 1 - len(undecided) / len(points) == pytest.approx((55 / 64) ** 2, abs=0.02)


@pytest.mark.parametrize("error", [0.0, -1.0], ids=["error bound zero", "borders ignored"])
def test_doubles_alone_would_fail_at_borders(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = PLANAR[0]
    points, draws, reports = planar_draws(noise, 80, hunted=True)
    monkeypatch.setattr(planar, "ERROR", error)
    monkeypatch.setattr(planar, "RELATIVE_ERROR", 0.0)
    assert noise.sample(points, rng=source_of(draws)).tolist() != reports


def test_the_error_that_is_allowed_for_is_more_than_that_of_radius_and_direction() -> None:
    """docs/exact-draws.md: at most 2048 steps make the noise's scale, and radii are less than 19 of them."""
    assert 2048 * (RADIUS_ERROR + 19 * DIRECTION_ERROR) < planar.ERROR == 2.0**-24
    assert planar.RELATIVE_ERROR == 2.0**-50


@pytest.mark.parametrize("noise", PLANAR, ids=repr)
def test_computed_coordinates_keep_their_error(noise: PlanarLaplace | PlanarGaussian) -> None:
    points, draws, _ = planar_draws(noise, 80, hunted=False)
    words = source_of(draws).words(points, 2, "")
    unit = noise.lattice_step

    def steps(s: FloatArray) -> FloatArray:
        if isinstance(noise, PlanarLaplace):
            return laplace_radius(s) / (noise.epsilon * unit)
        return s * noise.sigma / unit

    computed = planar.coordinates(points, survivals(words), words, unit, steps)
    for row, ((x, y), (first, second)) in enumerate(zip(points.tolist(), draws, strict=True)):
        drawn = reference.plane(x, y, planar_radius(noise, fraction(first)), fraction(second), unit)
        for axis in (0, 1):
            allowed = planar.ERROR + planar.RELATIVE_ERROR * abs(float(drawn[axis]))
            assert abs(computed[axis][row] - drawn[axis]) < allowed / 4


@pytest.mark.parametrize("power", [-600, -7, 0, 1, 7, 600])
def test_the_lattice_does_not_depend_on_how_a_logarithm_is_rounded(power: int) -> None:
    """Next to a power of two a logarithm is rounded to a whole number, on one machine or on another."""
    scale = 2.0**power
    for near in (math.nextafter(scale, 0), scale, math.nextafter(scale, math.inf)):
        assert 1024 <= near / planar.step_of(near) < 2048
    assert PlanarGaussian(math.nextafter(scale, 0)).lattice_step == PlanarGaussian(scale).lattice_step / 2
    assert PlanarLaplace(1 / scale).lattice_step == PlanarGaussian(scale).lattice_step == scale / 1024


@pytest.mark.parametrize("noise", [PlanarLaplace(0.01), PlanarGaussian(300.0)])
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_next_to_nothing_is_left_to_exact_arithmetic(
    noise: PlanarLaplace | PlanarGaussian, far: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is 2^-24 steps on each side: about one report in four million."""
    asked = []

    def counted(place: Any, draw: exact.Draw) -> Any:
        asked.append(draw)
        return decided(place, draw)

    decided = exact.decided
    monkeypatch.setattr(exact, "decided", counted)
    noise.sample(np.full((200_000, 2), far), rng=1)
    assert len(asked) <= 2
