import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    PlanarGaussian,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SphericalGaussian,
    SphericalLaplace,
    discretise,
)
from geoind.accounting import PersonLevel
from geoind.arrays import ArrayLike, FloatArray
from geoind.budgets.release import UNITS, Cost, Release, as_units, release_of
from geoind.mechanisms.protocol import Space
from geoind.randomness import RandomnessLike

PARIS = Projection(2.35, 48.86)


class Unknown:
    """A mechanism of which only the epsilon is known."""

    epsilon = 0.25
    space: Space = "lonlat"

    def reach(self, confidence: float) -> float:
        return confidence

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        raise NotImplementedError


@given(st.floats(1e-12, 1000.0))
def test_what_a_ledger_keeps_is_never_less_than_what_was_spent_nor_a_unit_more(epsilon: float) -> None:
    units = as_units(epsilon, "epsilon")
    assert units >= epsilon * UNITS * (1 - 1e-15)
    assert units - 1 < epsilon * UNITS * (1 + 1e-15)


def test_a_decimal_is_kept_as_it_is_written() -> None:
    assert as_units(0.1, "epsilon") == UNITS // 10
    assert as_units(0.3, "epsilon") == 3 * UNITS // 10


@pytest.mark.parametrize("sigma", [0.001, 123.4567890123, 1e6])
@pytest.mark.parametrize("noise", [PlanarGaussian, SphericalGaussian])
def test_a_sigma_is_never_more_than_that_of_the_noise(
    noise: type[PlanarGaussian] | type[SphericalGaussian], sigma: float
) -> None:
    if noise is SphericalGaussian and sigma > 5e5:
        sigma = 5e5
    kept = release_of(noise(sigma))
    assert kept.is_gaussian
    assert sigma - 2e-9 < kept.number <= sigma


def test_steps_afterwards_change_nothing_and_a_projection_counts_metres_on_the_ground() -> None:
    noise = PlanarLaplace(0.01)
    assert release_of(PostProcessed(noise, lambda reports: reports)) == release_of(noise)
    mercator = Projected(noise, Projection.from_crs("EPSG:2154"))
    assert release_of(mercator).number >= mercator.epsilon >= release_of(noise).number * 0.99
    wide = Projected(PlanarGaussian(500.0), Projection.from_crs("EPSG:2154"))
    assert release_of(wide).number <= 500.0 / wide.largest_scale


def test_between_sites_only_the_sites_count_and_the_loss_is_not_known() -> None:
    grid = Grid(0, 0, cell=100, columns=3, rows=3)
    release = release_of(Projected(discretise(PlanarLaplace(0.01), grid), PARIS))
    assert release.kind == "sites"
    assert release.largest(100) == math.inf
    with pytest.raises(InvalidInputError, match="between sites"):
        release.loss(100)


@pytest.mark.parametrize("cost", [SphericalLaplace(0.01), PlanarLaplace(0.01), 0.01])
def test_the_largest_loss_is_epsilon_times_the_radius(cost: float | PlanarLaplace | SphericalLaplace) -> None:
    release = release_of(cost)
    assert release.largest(200) == pytest.approx(2.0)
    assert release.loss(200).largest == pytest.approx(2.0, rel=1e-3)


def test_noise_that_no_integer_can_hold_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at most 1000 per metre"):
        as_units(1000.5, "epsilon")
    assert as_units(1000.0, "epsilon") == 1000 * UNITS
    for sigma in (math.nextafter(1e-3, 0), math.nextafter(1e9, math.inf)):
        with pytest.raises(InvalidInputError, match="millimetre"):
            release_of(PlanarGaussian(sigma))
    assert release_of(PlanarGaussian(1e-3)) == Release("PlanarGaussian", 10**6)
    assert release_of(PlanarGaussian(1e9)) == Release("PlanarGaussian", 10**18)
    street = Grid(0, 0, cell=1, columns=2, rows=1)
    with pytest.raises(InvalidInputError):
        release_of(Channel.deterministic(street, street, [0, 1]))


def test_a_release_says_what_it_is() -> None:
    assert str(Release("SphericalGaussian", 250 * 10**9)) == "SphericalGaussian(250)"


@pytest.mark.parametrize(
    ("cost", "release"),
    [
        (0.25, Release("any", UNITS // 4)),
        (SphericalLaplace(0.25), Release("SphericalLaplace", UNITS // 4)),
        (PlanarLaplace(0.25), Release("PlanarLaplace", UNITS // 4)),
        (PlanarGaussian(250.0), Release("PlanarGaussian", 250 * 10**9)),
        (SphericalGaussian(250.0), Release("SphericalGaussian", 250 * 10**9)),
        (PersonLevel(0.25), Release("PersonLevel", UNITS // 4)),
        (Unknown(), Release("any", UNITS // 4)),
    ],
    ids=lambda value: value.kind if isinstance(value, Release) else "",
)
def test_each_cost_is_kept_in_its_own_unit(cost: Cost, release: Release) -> None:
    kept = release_of(cost)
    assert kept == release
    assert kept.is_gaussian == release.kind.endswith("Gaussian")
    assert kept.is_per_person == (release.kind == "PersonLevel")
    assert kept.number == (250.0 if kept.is_gaussian else 0.25)
    assert kept.largest(200) == {"PersonLevel": 0.5}.get(kept.kind, math.inf if kept.is_gaussian else 50.0)


def test_a_projection_is_rounded_against_the_noise() -> None:
    """Never less epsilon and never more sigma than on the ground, however fine the units."""
    scale = Fraction(Projected(PlanarLaplace(0.01), PARIS).largest_scale)
    assert scale != 1
    for units in (1e-15, 3e-15, 0.0123):
        kept = release_of(Projected(PlanarLaplace(units), PARIS)).parameter
        assert kept - 1 < as_units(units, "epsilon") * scale <= kept
    kept = release_of(Projected(PlanarGaussian(1.2345), PARIS)).parameter
    assert kept <= 1_234_500_000 / scale < kept + 1
