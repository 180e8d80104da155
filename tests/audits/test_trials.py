import math

import numpy as np
import pytest
from scipy.stats import binomtest

from geoind import InvalidInputError, PlanarLaplace, SphericalLaplace
from geoind.arrays import FloatArray
from geoind.audits.trials import FAR, Reports, as_sampler, bound, choose_event, local_plane, trials_at

EPSILON = 0.01
HERE = local_plane(np.array([1000.0, -500.0]), lonlat=False)


def sampler(points: FloatArray) -> FloatArray:
    return PlanarLaplace(EPSILON).sample(points, rng=np.random.default_rng(len(points)))


def test_pairs_are_as_far_apart_as_they_say_and_in_every_direction() -> None:
    trials = trials_at(HERE, sampler, epsilon=EPSILON, draws=2000)
    for trial in trials:
        assert np.hypot(*(trial.other - trial.truth)) == pytest.approx(trial.distance)
    far = [trial for trial in trials if trial.how == ""]
    assert {round(trial.distance * EPSILON, 9) for trial in far} == {round(FAR, 9)}
    bearings = sorted(round(np.degrees(np.arctan2(*(trial.other - trial.truth)[::-1]))) for trial in far)
    assert bearings == [0, 45, 90, 135]


def test_on_the_globe_pairs_are_as_far_apart_in_metres_on_the_ground() -> None:
    spot = np.array([24.93, 60.17])
    plane = local_plane(spot, lonlat=True)
    globe = SphericalLaplace(EPSILON)
    trials = trials_at(plane, lambda points: globe.sample(points, rng=1), epsilon=EPSILON, draws=500)
    for trial in trials[:4]:
        assert np.hypot(*plane.to_xy(trial.other[None])[0]) == pytest.approx(trial.distance, rel=1e-6)


def test_the_two_places_between_which_reports_jump_are_found() -> None:
    """A truth that is rounded to 200 m before its noise jumps at 1100 m."""

    def rounded(points: FloatArray) -> FloatArray:
        return np.round(points / 200) * 200 + np.random.default_rng(0).normal(0, 1, points.shape)

    [jump, *_] = [trial for trial in trials_at(HERE, rounded, epsilon=EPSILON, draws=3000) if "jump" in trial.how]
    assert jump.truth[0] <= 1100 <= jump.other[0]
    assert jump.distance < 2


@pytest.mark.parametrize(("sign", "how"), [(1, "one minus the other"), (-1, "added")])
@pytest.mark.parametrize("lag", [1, 10])
def test_rows_that_share_their_noise_are_found_with_their_lag_and_sign(sign: int, how: str, lag: int) -> None:
    def shared(points: FloatArray) -> FloatArray:
        first = np.arange(len(points)) % (2 * lag) < lag
        noise = np.random.default_rng(3).normal(0, 100, points.shape)
        noise[lag:][~first[lag:]] = sign * noise[:-lag][~first[lag:]]
        return points + noise

    [rows] = [trial for trial in trials_at(HERE, shared, epsilon=EPSILON, draws=4000) if "two rows" in trial.how]
    assert f"{lag} apart, {how}" in rows.how
    seen = rows.draw(rows.truth, 50)[1]
    assert np.ptp(seen, axis=0).max() < 1e-6, "their common noise is gone"


def test_reports_that_are_not_one_per_point_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="one report per point, got 1 for 2"):
        as_sampler(lambda points: points[:1])(np.zeros((2, 2)))


def test_a_sampler_that_writes_into_its_argument_changes_no_truth() -> None:
    points = np.ones((2, 2))

    def careless(given: FloatArray) -> FloatArray:
        given += 5
        return given

    as_sampler(careless)(points)
    assert (points == 1).all()


@pytest.mark.parametrize(("here", "there", "draws"), [(15, 3, 40), (900, 300, 1000), (40, 0, 40), (1, 39, 40)])
def test_the_bound_is_that_of_two_exact_intervals(here: int, there: int, draws: int) -> None:
    low = binomtest(here, draws).proportion_ci(0.95, method="exact").low
    high = binomtest(there, draws).proportion_ci(0.95, method="exact").high
    assert bound(here, there, draws, 0.05) == pytest.approx(math.log(low / high), rel=1e-9)
    with_delta = math.log((low - 0.01) / high) if low > 0.01 else -math.inf
    assert bound(here, there, draws, 0.05, delta=0.01) == pytest.approx(with_delta, rel=1e-9)


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


def seen(reports: FloatArray) -> Reports:
    return reports, reports


def test_a_difference_that_no_formula_knows_is_learned() -> None:
    rng = np.random.default_rng(2)

    def ring(centre: float | FloatArray, count: int = 4000) -> Reports:
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

    def noisy(remainder: float, count: int = 3000) -> Reports:
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
