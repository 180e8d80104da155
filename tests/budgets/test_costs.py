import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind import (
    Channel,
    Grid,
    InvalidInputError,
    Ledger,
    PlanarGaussian,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SphericalGaussian,
    SphericalLaplace,
    discretise,
)
from geoind.accounting import PersonLevel, Promise
from geoind.accounting.accountant import level_of_losses
from geoind.arrays import ArrayLike, FloatArray
from geoind.budgets.costs import UNITS, Cost, CostLike, as_cost, as_units, limit_of, most_reports
from geoind.mechanisms.protocol import RandomnessLike, Space
from tests.budgets.test_limits import DELTA, GLOBE, LEVEL, promise

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
    kept = as_cost(noise(sigma))
    assert kept.is_gaussian
    assert sigma - 2e-9 < kept.number <= sigma


def test_steps_afterwards_change_nothing_and_a_projection_counts_metres_on_the_ground() -> None:
    noise = PlanarLaplace(0.01)
    assert as_cost(PostProcessed(noise, lambda reports: reports)) == as_cost(noise)
    mercator = Projected(noise, Projection.from_crs("EPSG:2154"))
    assert as_cost(mercator).number >= mercator.epsilon >= as_cost(noise).number * 0.99
    wide = Projected(PlanarGaussian(500.0), Projection.from_crs("EPSG:2154"))
    assert as_cost(wide).number <= 500.0 / wide.largest_scale


def test_between_sites_only_the_sites_count_and_the_loss_is_not_known() -> None:
    grid = Grid(0, 0, cell=100, columns=3, rows=3)
    release = as_cost(Projected(discretise(PlanarLaplace(0.01), grid), PARIS))
    assert release.kind == "sites"
    assert release.largest(100) == math.inf
    with pytest.raises(InvalidInputError, match="between sites"):
        release.loss(100)


@pytest.mark.parametrize("cost", [SphericalLaplace(0.01), PlanarLaplace(0.01), 0.01])
def test_the_largest_loss_is_epsilon_times_the_radius(cost: float | PlanarLaplace | SphericalLaplace) -> None:
    release = as_cost(cost)
    assert release.largest(200) == pytest.approx(2.0)
    assert release.loss(200).largest == pytest.approx(2.0, rel=1e-3)


def test_noise_that_no_integer_can_hold_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at most 1000 per metre"):
        as_units(1000.5, "epsilon")
    assert as_units(1000.0, "epsilon") == 1000 * UNITS
    for sigma in (math.nextafter(1e-3, 0), math.nextafter(1e9, math.inf)):
        with pytest.raises(InvalidInputError, match="millimetre"):
            as_cost(PlanarGaussian(sigma))
    assert as_cost(PlanarGaussian(1e-3)) == Cost("PlanarGaussian", 10**6)
    assert as_cost(PlanarGaussian(1e9)) == Cost("PlanarGaussian", 10**18)
    street = Grid(0, 0, cell=1, columns=2, rows=1)
    with pytest.raises(InvalidInputError):
        as_cost(Channel.deterministic(street, street, [0, 1]))


def test_a_release_says_what_it_is() -> None:
    assert str(Cost("SphericalGaussian", 250 * 10**9)) == "SphericalGaussian(250)"


@pytest.mark.parametrize(
    ("cost", "release"),
    [
        (0.25, Cost("any", UNITS // 4)),
        (SphericalLaplace(0.25), Cost("SphericalLaplace", UNITS // 4)),
        (PlanarLaplace(0.25), Cost("PlanarLaplace", UNITS // 4)),
        (PlanarGaussian(250.0), Cost("PlanarGaussian", 250 * 10**9)),
        (SphericalGaussian(250.0), Cost("SphericalGaussian", 250 * 10**9)),
        (PersonLevel(0.25), Cost("PersonLevel", UNITS // 4)),
        (Unknown(), Cost("any", UNITS // 4)),
    ],
    ids=lambda value: value.kind if isinstance(value, Cost) else "",
)
def test_each_cost_is_kept_in_its_own_unit(cost: CostLike, release: Cost) -> None:
    kept = as_cost(cost)
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
        kept = as_cost(Projected(PlanarLaplace(units), PARIS)).parameter
        assert kept - 1 < as_units(units, "epsilon") * scale <= kept
    kept = as_cost(Projected(PlanarGaussian(1.2345), PARIS)).parameter
    assert kept <= 1_234_500_000 / scale < kept + 1


@pytest.mark.parametrize(
    ("budget", "cost", "message"),
    [
        (1.0, PersonLevel(0.5), r"PersonLevel\(0\.5\) is a level per person and this budget an epsilon per metre"),
        (1.0, PlanarGaussian(500), "PlanarGaussian has no epsilon, so a sum cannot count it"),
        (PersonLevel(1.0), 0.01, r"any\(0\.01\) is a report and this budget a level per person"),
        (PersonLevel(1.0), PlanarGaussian(500), r"PlanarGaussian\(500\) is a report and this budget"),
    ],
    ids=["level", "gaussian", "report", "gaussian report"],
)
def test_what_a_sum_cannot_count_is_refused_with_the_reason(
    budget: float | PersonLevel, cost: CostLike, message: str
) -> None:
    release = as_cost(cost)
    with pytest.raises(InvalidInputError, match=message):
        limit_of(budget).check(release)
    assert limit_of(budget).spent({release: 1}) == math.inf
    assert not limit_of(budget).allows({release: 1})
    with Ledger("sqlite://", budget=budget) as ledger:
        with pytest.raises(InvalidInputError, match=message):
            ledger.charge("ana", cost)
        if isinstance(cost, float):
            with pytest.raises(InvalidInputError, match=message):
                ledger.charge_all({"ana": {cost: 1}})


def test_a_level_may_be_reached_to_the_last_digit_of_its_billionth() -> None:
    limit = limit_of(Promise(level=1.0, radius=1.0, delta=1e-9))
    half, rest = Cost("any", UNITS // 2), UNITS // 2 + UNITS // 10**9
    assert limit.spent({half: 1, Cost("PlanarLaplace", rest): 1}) == 1 + 1e-9
    assert limit.allows({half: 1, Cost("PlanarLaplace", rest): 1})
    assert not limit.allows({half: 1, Cost("PlanarLaplace", rest + 1): 1})


@pytest.mark.parametrize("share", [0.5, 1 - 1e-6, 1.0, 1.5, 2.5, 7.5])
def test_the_most_reports_are_those_that_the_rule_allows_one_by_one(share: float) -> None:
    """From none at all on."""
    release = as_cost(GLOBE)
    limit = limit_of(promise(share * LEVEL))
    counts = [count for count in range(1, 12) if limit.spent({release: count}) <= limit.total * (1 + 1e-9)]
    assert most_reports(release, limit.budget) == len(counts)
    assert [limit.allows({release: count}) for count in range(1, 12)] == [
        count <= len(counts) for count in range(1, 12)
    ]


def test_more_reports_than_the_accountant_can_count_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (8, 12, 16, 17):
        monkeypatch.setattr("geoind.budgets.costs.MOST_REPORTS", most)
        most_reports.cache_clear()
        limit = limit_of(promise(100 * LEVEL))
        assert limit.allows({as_cost(GLOBE): most})
        assert not limit.allows({as_cost(GLOBE): most + 1})
    most_reports.cache_clear()


def test_what_is_spent_is_the_upper_bound_of_what_the_reports_tell() -> None:
    release = as_cost(GLOBE)
    losses = ((release.loss(200), 20),)
    below, above = (level_of_losses(losses, DELTA, above=side) for side in (False, True))
    assert below < above
    assert limit_of(promise(5.0)).spent({release: 20}) == above
