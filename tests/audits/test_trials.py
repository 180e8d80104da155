import numpy as np
import pytest

from geoind import InvalidInputError, PlanarLaplace, Projection, SphericalLaplace
from geoind.arrays import FloatArray
from geoind.audits.trials import FAR, Vicinity, as_sampler, trials_at

EPSILON = 0.01
HERE = Vicinity(np.array([1000.0, -500.0]), None)


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
    vicinity = Vicinity(spot, Projection(*spot))
    globe = SphericalLaplace(EPSILON)
    trials = trials_at(vicinity, lambda points: globe.sample(points, rng=1), epsilon=EPSILON, draws=500)
    for trial in trials[:4]:
        assert np.hypot(*vicinity.to_xy(trial.other[None])[0]) == pytest.approx(trial.distance, rel=1e-6)


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
    seen = rows.seen(rows.truth, 50).xy
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
