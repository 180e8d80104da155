"""What limits count and allow, to the last unit, and what they refuse to count."""

import math

import pytest

from geoind import InvalidInputError, Ledger, PlanarGaussian
from geoind.accounting import PersonLevel, Promise
from geoind.accounting.accountant import level_of_losses
from geoind.budgets.limits import Accounted, Sum, _most
from geoind.budgets.release import UNITS, Cost, Release, release_of
from tests.budgets.test_limits import DELTA, GLOBE, LEVEL, promise


@pytest.mark.parametrize(
    ("budget", "cost", "message"),
    [
        (1.0, PersonLevel(0.5), r"PersonLevel\(0\.5\) is a level per person and this budget an epsilon per metre"),
        (1.0, PlanarGaussian(500), "PlanarGaussian keeps no epsilon, so a sum cannot count it"),
        (PersonLevel(1.0), 0.01, r"any\(0\.01\) is a report and this budget a level per person"),
        (PersonLevel(1.0), PlanarGaussian(500), r"PlanarGaussian\(500\) is a report and this budget"),
    ],
    ids=["level", "gaussian", "report", "gaussian report"],
)
def test_what_a_sum_cannot_count_is_refused_with_the_reason(
    budget: float | PersonLevel, cost: Cost, message: str
) -> None:
    release = release_of(cost)
    with pytest.raises(InvalidInputError, match=message):
        Sum(budget).check(release)
    assert Sum(budget).spent({release: 1}) == math.inf
    assert not Sum(budget).allows({release: 1})
    with Ledger("sqlite://", budget=budget) as ledger:
        with pytest.raises(InvalidInputError, match=message):
            ledger.charge("ana", cost)
        if isinstance(cost, float):
            with pytest.raises(InvalidInputError, match=message):
                ledger.charge_all({"ana": {cost: 1}})


def test_a_level_may_be_reached_to_the_last_digit_of_its_billionth() -> None:
    limit = Accounted(Promise(level=1.0, radius=1.0, delta=1e-9))
    half, rest = Release("any", UNITS // 2), UNITS // 2 + UNITS // 10**9
    assert limit.spent({half: 1, Release("PlanarLaplace", rest): 1}) == 1 + 1e-9
    assert limit.allows({half: 1, Release("PlanarLaplace", rest): 1})
    assert not limit.allows({half: 1, Release("PlanarLaplace", rest + 1): 1})


@pytest.mark.parametrize("share", [0.5, 1 - 1e-6, 1.0, 1.5, 2.5, 7.5])
def test_the_most_reports_are_those_that_the_rule_allows_one_by_one(share: float) -> None:
    """From none at all on."""
    release = release_of(GLOBE)
    limit = Accounted(promise(share * LEVEL))
    counts = [count for count in range(1, 12) if limit.spent({release: count}) <= limit.total * (1 + 1e-9)]
    assert _most(release, limit.budget) == len(counts)
    assert [limit.allows({release: count}) for count in range(1, 12)] == [
        count <= len(counts) for count in range(1, 12)
    ]


def test_more_reports_than_the_accountant_can_count_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (8, 12, 16, 17):
        monkeypatch.setattr("geoind.budgets.limits.MOST_REPORTS", most)
        _most.cache_clear()
        limit = Accounted(promise(100 * LEVEL))
        assert limit.allows({release_of(GLOBE): most})
        assert not limit.allows({release_of(GLOBE): most + 1})
    _most.cache_clear()


def test_what_is_spent_is_the_upper_bound_of_what_the_reports_tell() -> None:
    release = release_of(GLOBE)
    losses = ((release.loss(200), 20),)
    below, above = (level_of_losses(losses, DELTA, above=side) for side in (False, True))
    assert below < above
    assert Accounted(promise(5.0)).spent({release: 20}) == above
