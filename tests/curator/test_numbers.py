import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from geoind import InvalidInputError, Ledger
from geoind.accounting import PersonLevel
from geoind.arrays import IntArray
from geoind.curator import release_mean, release_quantile, release_sum
from geoind.curator.noise import GeometricNoise
from geoind.curator.numbers import wrong_side

RELEASES = [
    release_sum,
    release_mean,
    lambda values, bounds, **rest: release_quantile(values, 0.5, bounds, **rest),
]
BOUNDS: dict[str, Any] = {"bounds": (-2, 10), "step": 1}


def test_no_person_changes_a_sum_by_more_than_its_sensitivity() -> None:
    seen = 0.0
    for values in itertools.product([-50.0, -2.0, 0.4, 9.9, 1e9], repeat=3):
        for most in (1, 2):
            names = ["ana", "ana", "ben"]
            both, one = (
                release_sum(
                    values[rows], **BOUNDS, epsilon=1.0, person=names[rows], reports_per_person=most, rng=5
                )
                for rows in (slice(None), slice(2, None))
            )
            assert abs(both.value - one.value) <= both.sensitivity == 10.0 * most
            seen = max(seen, abs(both.value - one.value))
    assert seen == 20.0


def test_clipped_sums_and_means_are_right_where_noise_is_small() -> None:
    values = np.array([1.0, 2.0, 3.0, 99.0] * 5000)
    people = range(20_000)
    total = release_sum(values, **BOUNDS, epsilon=5.0, person=people, rng=2)
    mean = release_mean(values, **BOUNDS, epsilon=5.0, person=people, rng=2)
    assert total.value == pytest.approx(80_000, abs=60)
    assert mean.value == pytest.approx(4.0, abs=0.01)


def test_the_noise_of_a_sum_has_the_scale_of_its_sensitivity() -> None:
    drawn = [
        release_sum([0.0], (-3, 1), step=1, epsilon=0.5, person=["ana"], rng=seed).value for seed in range(4000)
    ]
    assert np.abs(drawn).mean() == pytest.approx(1 / math.sinh(0.5 / 3), rel=0.05)


def test_a_mean_lies_within_its_limits_even_of_nothing_but_noise() -> None:
    for seed in range(200):
        mean = release_mean([3.0], (0, 10), epsilon=0.01, person=["ana"], rng=seed)
        assert 0 <= mean.value <= 10
        assert mean.sensitivity == 5.0


@pytest.mark.parametrize("most", [1, 3])
def test_a_mean_spends_its_epsilon_on_a_sum_and_a_count_with_their_sensitivities(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[float, int, int]] = []

    def added_to(noise: GeometricNoise, truth: IntArray, source: object) -> IntArray:  # noqa: ARG001
        drawn.append((noise.epsilon, noise.sensitivity, int(truth[0])))
        return truth

    monkeypatch.setattr(GeometricNoise, "added_to", added_to)
    mean = release_mean(
        [-50, 2, 9], (0, 10), step=1, epsilon=0.8, person=["ana", "ben", "cem"], reports_per_person=most
    )
    assert mean.value == pytest.approx(11 / 3)
    # The sum in half steps: -10 - 6 + 8.
    assert drawn == [(0.4, 10 * most, -8), (0.4, most, 3)]


@pytest.mark.parametrize("highest", [1, 2, 5])
def test_the_mean_of_whole_numbers_is_theirs_whether_or_not_their_middle_is_one(highest: int) -> None:
    for value in range(highest + 1):
        mean = release_mean([value] * 4000, (0, highest), step=1, epsilon=20.0, person=range(4000), rng=value)
        assert mean.value == pytest.approx(value, abs=0.01)
        assert mean.sensitivity == highest / 2


def test_no_person_changes_the_sum_below_a_mean_by_more_than_its_sensitivity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[tuple[int, int]] = []

    def added_to(noise: GeometricNoise, truth: IntArray, source: object) -> IntArray:  # noqa: ARG001
        drawn.append((noise.sensitivity, int(truth[0])))
        return truth

    monkeypatch.setattr(GeometricNoise, "added_to", added_to)
    names, worst = ["ana", "ana", "ben"], 0
    for values in itertools.product([-50.0, -2.0, 0.4, 4.5, 1e9], repeat=3):
        drawn.clear()
        for rows in (slice(None), slice(2, None)):
            release_mean(values[rows], (-2, 5), step=1, epsilon=1.0, person=names[rows], reports_per_person=2)
        (sensitivity, total), (most, count), (_, less), (_, fewer) = drawn
        assert abs(total - less) <= sensitivity == 14
        assert abs(count - fewer) <= most == 2
        worst = max(worst, abs(total - less))
    assert worst == 14


def test_a_quantile_is_never_beyond_its_limits() -> None:
    for seed in range(20):
        found = release_quantile([9.0], 0.5, (0, 0.3), step=0.1, epsilon=20.0, person=["ana"], rng=seed)
        assert found.value <= 0.3


def law_of_quantile(values: tuple[int, ...], share: Fraction, rate: float) -> list[float]:
    """The probability of each candidate 0..3, by going through every set of accepted candidates."""
    wrong = wrong_side(np.array(values, np.int64), 4, share)
    accepts = np.exp(-rate * (wrong - wrong.min()))
    law = np.zeros(4)
    for accepted in itertools.product([False, True], repeat=4):
        if any(accepted):
            chance = np.prod(np.where(accepted, accepts, 1 - accepts))
            law[np.array(accepted)] += chance / sum(accepted)
    return law.tolist()


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 10), Fraction(2, 3)])
def test_a_quantile_keeps_epsilon_between_every_two_neighbouring_tables(share: Fraction) -> None:
    epsilon, per_value = 1.0, max(share.numerator, share.denominator - share.numerator)
    rate = epsilon / (2 * per_value)
    measured = 0.0
    for size in range(1, 5):
        for values in itertools.combinations_with_replacement(range(4), size):
            for leaving in range(size if size > 1 else 0):
                fewer = values[:leaving] + values[leaving + 1 :]
                ratio = np.log(law_of_quantile(values, share, rate)) - np.log(law_of_quantile(fewer, share, rate))
                measured = max(measured, np.abs(ratio).max())
    assert 0.3 * epsilon < measured <= epsilon + 1e-12


@pytest.mark.slow
def test_quantiles_are_drawn_from_that_law() -> None:
    values = (0, 1, 1, 3, 3)
    drawn = [
        release_quantile(values, 0.5, (0, 3), step=1, epsilon=1.0, person=range(5), rng=seed).value
        for seed in range(4000)
    ]
    shares = np.bincount(np.array(drawn, int), minlength=4) / 4000
    assert np.abs(shares - law_of_quantile(values, Fraction(1, 2), 0.5)).max() < 0.03
    assert np.abs(shares - law_of_quantile(values, Fraction(1, 2), 1.0)).max() > 0.03


@pytest.mark.parametrize(("q", "most", "sensitivity"), [(0.1, 1, 0.9), (0.5, 2, 1.0), (0.9, 3, 2.7)])
def test_a_person_moves_a_quantile_by_the_larger_share_of_each_value(
    q: float, most: int, sensitivity: float
) -> None:
    released = release_quantile([1.0], q, (0, 1), epsilon=1.0, person=["ana"], reports_per_person=most)
    assert released.sensitivity == pytest.approx(sensitivity)


def test_a_quantile_is_right_where_people_are_many() -> None:
    ages = np.random.default_rng(1).integers(18, 90, 20_000)
    people = range(20_000)
    for q in (0.1, 0.5, 0.9):
        found = release_quantile(ages, q, (0, 120), step=1, epsilon=1.0, person=people, rng=4)
        assert abs(found.value - np.quantile(ages, q)) <= 1


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": 4}, "bounds must be a pair"),
        ({"bounds": (0, 4, 8)}, "bounds must be a pair"),
        ({"bounds": (3, 3)}, "lowest must be below highest"),
        ({"values": [math.nan]}, "values must be finite, row 0"),
        ({"values": [[1.0]]}, "list of numbers"),
        ({"values": [], "person": []}, "at least one record"),
        ({"person": ["ana", "ben"]}, "one name per record"),
        ({"epsilon": 21}, "per person here, not per metre"),
        ({"epsilon": 1e-13}, "only noise would be left"),
        ({"reports_per_person": 0}, "reports_per_person must be"),
    ],
)
def test_bad_input_is_an_error_and_is_not_charged(release, options: dict[str, object], message: str) -> None:  # type: ignore[no-untyped-def]
    ledger = Ledger("sqlite://", budget=PersonLevel(1.0))
    call = {"values": [1.0], "bounds": (0, 4), "epsilon": 0.5, "person": ["ana"], **options}
    with pytest.raises(InvalidInputError, match=message):
        release(**call, ledger=ledger)
    assert ledger.remaining("ana") == 1.0


@pytest.mark.parametrize("q", [0, 1, 1e-9, math.nan, "half"])
def test_a_quantile_is_of_a_share_between_0_and_1(q: float) -> None:
    with pytest.raises(InvalidInputError, match="q must"):
        release_quantile([1.0], q, (0, 1), epsilon=1.0, person=["ana"])


@pytest.mark.parametrize("release", RELEASES)
def test_each_person_pays_once_for_a_number(release) -> None:  # type: ignore[no-untyped-def]
    ledger = Ledger("sqlite://", budget=PersonLevel(1.0))
    people = ["ana", "ana", "ben"]
    release([1.0, 2.0, 3.0], (0, 4), epsilon=0.25, person=people, ledger=ledger)
    assert (ledger.remaining("ana"), ledger.remaining("ben")) == (0.75, 0.75)
    release([1.0, 2.0, 3.0], (0, 4), epsilon=0.25, person=people, ledger=ledger, label="trips")
    assert [one.label.split("_")[0] for one in ledger.history("ana")] == ["release", "trips"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": (math.nan, 4)}, "lowest must be finite"),
        ({"bounds": (0, math.inf)}, "highest must be finite"),
        ({"step": 0}, "step must be positive"),
        ({"step": 100.0}, "must be 1 to 1048576 steps apart"),
        ({"step": 1e-9}, "must be 1 to 1048576 steps apart"),
        ({"step": 3}, "range from 0 to 4 must be a whole number of steps, got step=3"),
        ({"bounds": (2.0**50, 2.0**50 + 4), "step": 1}, "too far from zero for steps of 1"),
        ({"bounds": (-(2.0**40), 4 - 2.0**40)}, "too far from zero for steps of"),
        ({"bounds": (-1e308, 1e308)}, "must be 1 to 1048576 steps apart"),
    ],
)
def test_bounds_that_bound_nothing_are_an_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        release_sum([1.0], **{"bounds": (0, 4), **options}, epsilon=1.0, person=["ana"])


@pytest.mark.parametrize(
    ("bounds", "step", "value"), [((0, 4), 4, 4.0), ((0, 1 << 20), 1, 1e6), ((-6, 10), None, 15 / 1024)]
)
def test_values_are_rounded_to_whole_steps(bounds: tuple[float, float], step: float | None, value: float) -> None:
    """A step may be the whole range or a millionth of it, and is a 1024th of it by default."""
    size = (bounds[1] - bounds[0]) / 1024 if step is None else step
    values = [value + 0.4 * size] * 3
    found = release_quantile(values, 0.5, bounds, step=step, epsilon=20.0, person=range(3))
    assert (found.value - bounds[0]) % size == 0
