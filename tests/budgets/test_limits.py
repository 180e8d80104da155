"""A ledger that accounts: as many reports as the accountant says, and not one more."""

import math
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geoind import (
    BudgetExceededError,
    Grid,
    InvalidInputError,
    Ledger,
    PlanarGaussian,
    PlanarLaplace,
    PostProcessed,
    Projected,
    Projection,
    SamePlace,
    SphericalGaussian,
    SphericalLaplace,
    discretise,
    level_of_reports,
    mechanism_for_reports,
    obfuscate,
    private_query,
)
from geoind.accounting import PersonLevel, Promise
from geoind.accounting.accountant import level_of_losses
from geoind.accounting.calibration import Family
from geoind.budgets.costs import UNITS, Cost, CostLike, as_cost, limit_of, most_reports
from geoind.mechanisms.protocol import Space
from tests.keywords import Place

LEVEL = math.log(4)
GOOD: dict[str, Any] = {"level": 1.0, "radius": 200.0, "delta": 1e-5}
EPSILON = LEVEL / 200
DELTA = 1e-5
GLOBE = SphericalLaplace(EPSILON)
NOISES = [GLOBE, PlanarLaplace(EPSILON), PlanarGaussian(900), SphericalGaussian(900)]
PARIS = Projection(2.35, 48.86)
HOME: Place = {"lat": 48.8584, "lon": 2.2945}
DAY = timedelta(days=1)


def promise(level: float, delta: float = DELTA) -> Promise:
    return Promise(level=level, radius=200, delta=delta)


def most(ledger: Ledger, mechanism: object) -> int:
    """How many reports a new person may make, one by one."""
    count = 0
    while True:
        try:
            ledger.charge("most", mechanism)  # type: ignore[arg-type]
        except BudgetExceededError:
            ledger.forget("most")
            return count
        count += 1


# What is allowed


@pytest.mark.parametrize("mechanism", NOISES, ids=repr)
def test_as_many_reports_are_allowed_as_the_accountant_says_and_not_one_more(mechanism: object) -> None:
    level = level_of_reports(mechanism, reports=20, radius=200, delta=DELTA)  # type: ignore[arg-type]
    with Ledger("sqlite://", budget=promise(level)) as ledger:
        assert most(ledger, mechanism) == 20
    with Ledger("sqlite://", budget=promise(level * (1 - 1e-6))) as ledger:
        assert most(ledger, mechanism) == 19


@pytest.mark.parametrize("space", ["xy", "lonlat"])
@pytest.mark.parametrize("family", ["laplace", "gaussian"])
def test_a_mechanism_made_for_n_reports_gives_n_reports(family: Family, space: Space, url: str) -> None:
    budget = promise(LEVEL)
    noise = mechanism_for_reports(reports=12, level=LEVEL, radius=200, delta=DELTA, family=family, space=space)
    with Ledger(url, budget=budget) as ledger:
        for _ in range(12):
            ledger.charge("ana", noise)
        assert ledger.remaining("ana") == pytest.approx(0, abs=1e-6)
        assert ledger.spent("ana") == pytest.approx(LEVEL)
        with pytest.raises(BudgetExceededError):
            ledger.charge("ana", noise)
        assert [(c.reports, c.mechanism) for c in ledger.history("ana")] == [(1, str(as_cost(noise)))] * 12
        assert ledger.charge("ben", noise) < LEVEL


def test_the_accountant_allows_more_than_the_sum_and_never_less() -> None:
    for level in (1.0, LEVEL, 7.0, 30.0, 76.0):
        with Ledger("sqlite://", budget=promise(level)) as accounted:
            assert most(accounted, GLOBE) >= int(level / LEVEL * (1 + 1e-9))
    with Ledger("sqlite://", budget=promise(75.95)) as ledger:
        ledger.charge("ana", GLOBE, reports=100)  # their sum is 138.6
        with pytest.raises(BudgetExceededError) as caught:
            ledger.charge("ana", GLOBE)
    assert caught.value.remaining == pytest.approx(75.95 - 75.926, abs=0.001)
    assert caught.value.requested == pytest.approx(0.602, abs=0.001)
    assert "of level within 200 m up to delta 1e-05" in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).measure == caught.value.measure


def test_reports_of_several_laws_are_allowed_while_their_plain_sum_is() -> None:
    """Which mechanism comes next may depend on the reports before: no accountant of fixed reports covers that."""
    coarse = SphericalLaplace(EPSILON / 2)
    with Ledger("sqlite://", budget=promise(10 * LEVEL)) as ledger:
        ledger.charge("ana", GLOBE, reports=8)
        ledger.charge("ana", coarse, reports=4)
        assert ledger.spent("ana") == pytest.approx(10 * LEVEL)
        for more in (coarse, GLOBE, PlanarLaplace(EPSILON), EPSILON):
            with pytest.raises(BudgetExceededError):
                ledger.charge("ana", more)
        # One law alone may go on where the sum would have ended.
        assert most(ledger, GLOBE) > 10


def test_gaussian_reports_add_up_whatever_their_sigmas() -> None:
    one = PlanarGaussian(1000)
    budget = promise(level_of_reports(one, reports=1, radius=200, delta=DELTA))
    with Ledger("sqlite://", budget=budget) as ledger:
        # 1 / 1000^2 = 2 / 2000^2 + 8 / 4000^2
        ledger.charge("ana", PlanarGaussian(2000), reports=2)
        ledger.charge("ana", PlanarGaussian(4000), reports=8)
        assert ledger.remaining("ana") == pytest.approx(0, abs=1e-8)
        with pytest.raises(BudgetExceededError):
            ledger.charge("ana", PlanarGaussian(100_000))


def test_gaussian_and_laplace_noise_do_not_mix() -> None:
    with Ledger("sqlite://", budget=promise(20)) as ledger:
        ledger.charge("ana", PlanarGaussian(5000))
        ledger.charge("ben", GLOBE)
        for person, noise in (("ana", GLOBE), ("ben", PlanarGaussian(5000))):
            with pytest.raises(BudgetExceededError) as caught:
                ledger.charge(person, noise)
            assert caught.value.requested == math.inf
            assert len(ledger.history(person)) == 1


def test_an_epsilon_alone_counts_as_the_worst_mechanism_that_keeps_it() -> None:
    with Ledger("sqlite://", budget=promise(75.95)) as ledger:
        known, unknown = most(ledger, GLOBE), most(ledger, EPSILON)
    assert int(75.95 / LEVEL) < unknown < known == 100


# What is stored


@pytest.mark.parametrize(
    ("mechanism", "kind"),
    [
        (GLOBE, "SphericalLaplace"),
        (PostProcessed(GLOBE, np.copy), "SphericalLaplace"),
        (PlanarLaplace(EPSILON), "PlanarLaplace"),
        (Projected(PlanarLaplace(EPSILON), PARIS), "PlanarLaplace"),
        (PostProcessed(Projected(PlanarGaussian(500), PARIS), np.copy), "PlanarGaussian"),
        (Projected(discretise(PlanarLaplace(0.01), Grid(0, 0, cell=100, columns=3, rows=3)), PARIS), "sites"),
        (SphericalGaussian(500), "SphericalGaussian"),
        (EPSILON, "any"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_report_is_stored_with_its_law_never_as_more_noise_than_it_had(mechanism: object, kind: str) -> None:
    release = as_cost(mechanism)  # type: ignore[arg-type]
    assert release.kind == kind
    if kind.endswith("Gaussian"):
        assert 499.9 < release.number <= 500
    else:
        epsilon = mechanism if isinstance(mechanism, float) else mechanism.epsilon  # type: ignore[attr-defined]
        assert epsilon * (1 - 1e-15) <= release.number <= epsilon * (1 + 1e-9)


def test_the_ground_is_what_counts() -> None:
    """Web Mercator stretches Oslo twofold: Gaussian noise of 500 of its metres is 250 m there."""
    import shapely

    oslo = Projected(PlanarGaussian(500), Projection.from_crs("EPSG:3857"), domain=shapely.box(10, 59.8, 11, 60.2))
    assert as_cost(oslo).number == pytest.approx(500 / oslo.largest_scale, rel=1e-8)
    assert as_cost(oslo).number < 252


def test_a_mechanism_between_sites_pays_a_sum_and_is_not_accounted_for() -> None:
    channel = discretise(PlanarLaplace(0.01), Grid(0, 0, cell=100, columns=3, rows=3))
    mechanism = Projected(channel, PARIS)
    with Ledger("sqlite://", budget=1) as ledger:
        ledger.charge("ana", mechanism)
        assert ledger.spent("ana") == pytest.approx(mechanism.epsilon)
    with Ledger("sqlite://", budget=promise(5)) as ledger, pytest.raises(InvalidInputError, match="off its sites"):
        ledger.charge("ana", mechanism)
    assert limit_of(promise(5)).spent({Cost("sites", 1): 1}) == math.inf


def test_a_sum_refuses_noise_without_an_epsilon_and_does_not_forget_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Ledger(url, budget=1) as ledger, pytest.raises(InvalidInputError, match="Promise"):
        ledger.charge("ana", PlanarGaussian(500))
    with Ledger(url, budget=promise(5)) as accounted:
        accounted.charge("ana", PlanarGaussian(500))
        assert accounted.history("ana")[0].epsilon == math.inf
    with Ledger(url, budget=1) as ledger:
        assert (ledger.spent("ana"), ledger.remaining("ana")) == (math.inf, 0)
        with pytest.raises(BudgetExceededError) as caught:
            ledger.charge("ana", 0.001)
        assert (caught.value.requested, caught.value.remaining) == (math.inf, 0)


def test_a_promise_that_allows_nothing_or_everything_or_some_reports_is_no_budget() -> None:
    for name, bad in {"level": promise(0), "delta": promise(1, 1), "reports": Promise(**GOOD, reports=3)}.items():
        with pytest.raises(InvalidInputError, match=name):
            Ledger("sqlite://", budget=bad)


def test_without_a_delta_a_promise_counts_the_plain_sum_and_needs_an_epsilon() -> None:
    with Ledger("sqlite://", budget=Promise(level=3 * LEVEL, radius=200)) as ledger:
        assert most(ledger, GLOBE) == 3
        assert ledger.charge("ana", 0.25 * EPSILON) == pytest.approx(2.75 * LEVEL)
        with pytest.raises(InvalidInputError, match="SphericalGaussian has no epsilon"):
            ledger.charge("ana", SphericalGaussian(900))


# In the ledger


def test_calls_are_accounted_and_refused_before_anything_is_drawn(url: str) -> None:
    noise = mechanism_for_reports(reports=3, level=LEVEL, radius=200, delta=DELTA, family="gaussian")
    paris = Projected(noise, PARIS)
    drawn: list[int] = []

    class Watched:
        def words(self, points: np.ndarray, count: int, purpose: str) -> np.ndarray:  # noqa: ARG002
            drawn.append(len(points))
            return np.full((len(points), count), 2**63, np.uint64)

        def further(self, *_: object) -> tuple[int, int]:
            return 2**63, 2**63

    # On the ground a little more is revealed than in the plane.
    with Ledger(url, budget=promise(LEVEL * 1.001)) as ledger:
        ask: dict[str, Any] = {**HOME, "mechanism": paris, "ledger": ledger, "person_id": "ana", "rng": Watched()}
        for _ in range(3):
            obfuscate(**ask)
        with pytest.raises(BudgetExceededError):
            obfuscate(**ask)
        with pytest.raises(BudgetExceededError):
            obfuscate(**{**ask, "lat": np.full(4, 48.86), "lon": np.full(4, 2.3), "person_id": "ben"})
        assert drawn == [1, 1, 1]
        assert ledger.spent("ben") == 0


def test_the_same_place_and_queries_are_of_one_law_with_calls() -> None:
    level = level_of_reports(GLOBE, reports=6, radius=200, delta=DELTA)
    with Ledger("sqlite://", budget=promise(level)) as ledger:
        memory = SamePlace(bytes(32))
        for _ in range(3):
            memory.obfuscate(**HOME, epsilon=EPSILON, ledger=ledger, person_id="ana")
            obfuscate(**HOME, epsilon=EPSILON, ledger=ledger, person_id="ana")
        private_query(**HOME, radius=300, epsilon=EPSILON, ledger=ledger, person_id="ana")
        private_query(**HOME, radius=300, epsilon=EPSILON, ledger=ledger, person_id="ana")
        assert {c.mechanism for c in ledger.history("ana")} == {str(as_cost(GLOBE))}
        assert ledger.spent("ana") == pytest.approx(level)


def test_a_window_gives_back_and_pruning_keeps_what_a_lifetime_counts(url: str) -> None:
    level = level_of_reports(GLOBE, reports=10, radius=200, delta=DELTA)
    with Ledger(url, budget=promise(level), window=DAY) as daily:
        daily.charge("ana", GLOBE, reports=10)
        with daily._database.transaction(writes=True) as connection:
            connection.exec_driver_sql(f"UPDATE geoind_charge SET at = at - {2 * 86_400_000_000}")
        assert daily.spent("ana") == 0
        daily.charge("ana", SphericalLaplace(EPSILON / 3))  # another law in another window
        assert daily.prune() == 1
        assert daily.lifetime("ana") == pytest.approx((10 + 1 / 3) * LEVEL)
    with Ledger(url, budget=promise(level)) as ledger, pytest.raises(BudgetExceededError):
        ledger.charge("ana", GLOBE)


def test_a_database_of_sums_can_be_accounted_from_then_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Ledger(url, budget=1) as ledger:
        ledger.charge("ana", EPSILON, reports=2)
        ledger.charge("ben", GLOBE, reports=2)
    with Ledger(url, budget=promise(75.95)) as accounted:
        accounted.charge("ben", GLOBE, reports=98)
        assert accounted.spent("ana") == pytest.approx(2 * LEVEL, rel=1e-4)
        with pytest.raises(BudgetExceededError):
            accounted.charge("ana", GLOBE, reports=98)
        assert pickle.loads(pickle.dumps(accounted)).budget == accounted.budget


@pytest.mark.slow
def test_processes_never_exceed_what_the_accountant_allows(url: str) -> None:
    level = level_of_reports(GLOBE, reports=70, radius=200, delta=DELTA)
    script = (
        "import sys\n"
        "from geoind import BudgetExceededError, Ledger, SphericalLaplace\n"
        "from geoind.accounting import Promise\n"
        f"ledger = Ledger({url!r}, budget=Promise(level={level!r}, radius=200, delta={DELTA}), timeout=60)\n"
        "for _ in range(30):\n"
        f"    try: ledger.charge_counts({{'ana': 1}}, SphericalLaplace({EPSILON!r}))\n"
        "    except BudgetExceededError: print('refused')\n"
        "    else: print('charged')\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
        for _ in range(3)
    ]
    said = Counter("".join(worker.communicate()[0] for worker in started).split())
    assert said == {"charged": 70, "refused": 20}


# The rule


def worst_delta(level: float, allows: Callable[[Mapping[Cost, int]], bool], small: float) -> float:
    """The largest delta that any strategy reaches with reports of losses `small` and twice that.

    Each report is a bit that is right with odds e^loss, and which of the two comes next may depend on all bits
    before, as far as the limit allows: dynamic programming over what was made and lost so far.
    """
    releases = [as_cost(step * small / 200) for step in (1, 2)]

    @cache
    def best(made: tuple[int, int], lost: int) -> float:
        found = max(0.0, 1 - math.exp(level - lost * small))
        for step in (1, 2):
            after = (made[0] + (step == 1), made[1] + (step == 2))
            if allows({release: count for release, count in zip(releases, after, strict=True) if count}):
                right = 1 / (1 + math.exp(-step * small))
                found = max(found, right * best(after, lost + step) + (1 - right) * best(after, lost - step))
        return found

    return best((0, 0), 0)


@pytest.mark.parametrize(("level", "delta"), [(1.0, 0.1), (1.2, 0.05), (1.5, 0.05), (0.8, 0.2)])
def test_choosing_by_the_reports_before_never_breaks_the_promise(level: float, delta: float) -> None:
    assert worst_delta(level, limit_of(promise(level, delta)).allows, 0.25) <= delta * (1 + 1e-9)


def test_accounting_for_what_happened_to_be_reported_would_break_the_promise() -> None:
    """Why reports of several laws are only allowed by their sum."""

    def allows(reports: Mapping[Cost, int]) -> bool:
        losses = tuple((cost.loss(200), count) for cost, count in reports.items())
        return level_of_losses(losses, 0.1, above=True) <= 1.0

    assert worst_delta(1.0, allows, 0.25) > 0.115


def test_a_sum_and_an_accounted_limit_agree_where_delta_is_nearly_nothing() -> None:
    tiny = limit_of(Promise(level=5 * LEVEL, radius=200, delta=1e-300))
    plain = limit_of(5 * EPSILON)
    for count in range(1, 9):
        reports = {as_cost(GLOBE): count}
        assert tiny.allows(reports) == plain.allows(reports) == (count <= 5)


def test_a_promise_counts_a_curators_release_as_moving_a_person_twice_its_level() -> None:
    with Ledger("sqlite://", budget=Promise(level=2.0, radius=200, delta=1e-9)) as ledger:
        assert ledger.charge("ana", PersonLevel(0.5)) == pytest.approx(1.0, abs=1e-6)
        assert ledger.charge("ana", SphericalLaplace(0.5 / 200)) == pytest.approx(0.5, abs=1e-6)
        with pytest.raises(BudgetExceededError):
            ledger.charge("ana", PersonLevel(0.3))


def test_a_sum_is_infinite_where_another_ledger_of_the_database_counted_another_unit(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/both.db"
    with Ledger(url, budget=PersonLevel(1)) as curator, Ledger(url, budget=0.02) as reports:
        reports.charge("ana", 0.01)
        assert curator.remaining("ana") == 0.0
        with pytest.raises(BudgetExceededError):
            curator.charge("ana", PersonLevel(0.5))
        assert curator.charge("ben", PersonLevel(0.5)) == 0.5
        with pytest.raises(BudgetExceededError):
            reports.charge("ben", 0.01)


@pytest.mark.parametrize(("budget", "kind"), [(1.0, "any"), (PersonLevel(1.0), "PersonLevel")])
def test_a_sum_may_be_passed_by_a_billionth_and_by_no_unit_more(budget: float | PersonLevel, kind: str) -> None:
    limit = limit_of(budget)
    assert limit.total == 1
    assert limit.allows({Cost(kind, UNITS + UNITS // 10**9): 1})
    assert not limit.allows({Cost(kind, UNITS + UNITS // 10**9 + 1): 1})


@pytest.mark.parametrize(
    "reports",
    [{SphericalLaplace(0.01): 7}, {PlanarGaussian(500): 3, PlanarGaussian(800): 2}, {GLOBE: 2, 0.01: 1}],
    ids=["one law", "gaussian", "sum"],
)
def test_an_accounted_level_may_be_passed_by_a_billionth_and_not_by_two(reports: dict[CostLike, int]) -> None:
    counted = {as_cost(cost): count for cost, count in reports.items()}
    level = limit_of(promise(1.0)).spent(counted)
    assert limit_of(promise(level / (1 + 5e-10))).allows(counted)
    assert not limit_of(promise(level / (1 + 2e-9))).allows(counted)


def test_the_accountant_computes_before_the_database_is_locked() -> None:
    limit = limit_of(promise(3.3))
    release = as_cost(SphericalLaplace(0.0033))
    limit.check(release)
    computed = most_reports.cache_info().misses
    assert limit.allows({release: 1})
    assert most_reports.cache_info().misses == computed


def test_a_limit_says_in_which_unit_it_counts() -> None:
    assert limit_of(1.0).measure == "per metre"
    assert limit_of(PersonLevel(1.0)).measure == "of level per person"
    assert limit_of(promise(2.0, 1e-6)).measure == "of level within 200 m up to delta 1e-06"
