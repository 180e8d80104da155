import math

import numpy as np
import pytest
from scipy.stats import binomtest

from geoind.arrays import FloatArray
from geoind.audits.events import Seen, bound, choose_event


@pytest.mark.parametrize(("here", "there", "draws"), [(15, 3, 40), (900, 300, 1000), (40, 0, 40), (1, 39, 40)])
def test_the_bound_is_clopper_and_pearsons(here: int, there: int, draws: int) -> None:
    low = binomtest(here, draws).proportion_ci(0.95, method="exact").low
    high = binomtest(there, draws).proportion_ci(0.95, method="exact").high
    assert bound(here, there, draws, 0.05) == pytest.approx(math.log(low / high), rel=1e-9)


def test_nothing_seen_bounds_nothing() -> None:
    assert bound(0, 5, 10, 0.05) == -math.inf
    assert bound(5, 10, 10, 0.05) < 0


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.05), (0.9, 0.6), (0.01, 0.01)])
def test_the_bound_is_wrong_at_most_as_often_as_said(p: float, q: float) -> None:
    rng = np.random.default_rng(1)
    hits = zip(rng.binomial(400, p, 4000), rng.binomial(400, q, 4000), strict=True)
    wrong = np.mean([bound(int(here), int(there), 400, 0.1) > math.log(p / q) for here, there in hits])
    assert wrong <= 0.1
    # And not by being useless: half of a bound's distance from the truth is gained with four times the draws.
    large = bound(round(p * 40_000), round(q * 40_000), 40_000, 0.1)
    assert math.log(p / q) - 0.6 < large < math.log(p / q)


def seen(reports: FloatArray) -> Seen:
    return Seen(reports, reports)


def test_a_difference_that_no_formula_knows_is_learned() -> None:
    rng = np.random.default_rng(2)

    def ring(centre: float | FloatArray, count: int = 4000) -> Seen:
        angle = rng.uniform(0, 2 * np.pi, count)
        radius = rng.uniform(2.0, 2.1, count)
        return seen(centre + np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))

    offset = np.array([1.0, 0.0])
    event = choose_event((ring(0), ring(offset)), (ring(0), ring(offset)), offset)
    assert event.name in ("learned cells", "out of the other place's reach")
    assert event.contains(ring(0)).mean() > 10 * event.contains(ring(offset)).mean()


def test_a_report_that_always_comes_back_is_an_event() -> None:
    same, other = seen(np.tile([[3.0, 4.0]], (50, 1))), seen(np.tile([[9.0, 9.0]], (50, 1)))
    event = choose_event((same, other), (same, other), np.array([1.0, 0.0]))
    assert event.contains(same).all()
    assert not event.contains(other).any()


@pytest.mark.parametrize("step", [100.0, 1.0, 1e-3, 1 / 1024])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_remainder_that_stays_is_an_event(step: float, axis: int) -> None:
    rng = np.random.default_rng(3)

    def noisy(remainder: float, count: int = 3000) -> Seen:
        reports = rng.normal(scale=500, size=(count, 2))
        reports[:, axis] = step * np.rint(reports[:, axis] / step) + remainder
        return seen(reports)

    offset = np.array([1.0, 0.0])
    places = 0.2 * step, 0.63 * step
    fit, select = ((noisy(places[0]), noisy(places[1])) for _ in range(2))
    event = choose_event(fit, select, offset)
    assert event.name.startswith(f"the remainder of coordinate {axis + 1}")
    assert event.contains(noisy(places[0])).mean() > 0.9
    assert event.contains(noisy(places[1])).mean() < 0.1


def test_reports_that_tell_nothing_leave_nothing_to_choose() -> None:
    rng = np.random.default_rng(4)
    one, other, third, fourth = (seen(rng.normal(scale=300, size=(20_000, 2))) for _ in range(4))
    event = choose_event((one, other), (third, fourth), np.array([100.0, 0.0]))
    fresh = [event.contains(seen(rng.normal(scale=300, size=(20_000, 2)))).sum() for _ in range(2)]
    assert bound(int(fresh[0]), int(fresh[1]), 20_000, 0.01) < 0
