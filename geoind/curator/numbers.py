"""Sums, means and quantiles of numbers, clipped to public bounds that limit the influence of one person."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_count, as_finite, as_floats, as_positive, as_unit
from geoind.curator.contributions import Persons, as_level, as_names, bounded, charge_release
from geoind.curator.noise import LARGEST, GeometricNoise, as_fresh_randomness, uniform_number
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Randomness, RandomnessLike

if TYPE_CHECKING:
    from geoind.budgets.ledger import Ledger

__all__ = ["ReleasedNumber", "release_mean", "release_quantile", "release_sum"]

FINEST = 10_000
"""Largest denominator of a quantile."""

STEPS = 1024
"""Default number of steps between the bounds: values are rounded to a thousandth of their range."""

MOST_STEPS = 1 << 20

WIDEST = 2.0**40
"""Largest number of steps between zero and a bound."""

ROUNDING = 1e-9
"""Relative tolerance of a whole number of steps: 0.1 and 0.3 are no exact doubles."""


@dataclass(frozen=True)
class ReleasedNumber:
    """A number that may be published, with all attributes.

    Attributes
    ----------
    value : float
    level : float
        The epsilon of the release, per person and not per metre.
    sensitivity : float
        The largest change by one person of the quantity that noise is added to: the clipped sum; for a mean the
        sum of the values' differences from the middle of the bounds; for a quantile the number of values below it.
    reports_per_person : int
        Largest number of counted values of one person.
    """

    value: float
    level: float
    sensitivity: float
    reports_per_person: int


def release_sum(
    values: ArrayLike,
    bounds: tuple[float, float],
    *,
    step: float | None = None,
    epsilon: float,
    person: Persons,
    reports_per_person: int = 1,
    ledger: "Ledger | None" = None,
    label: str = "release_sum",
    rng: RandomnessLike = None,
) -> ReleasedNumber:
    """Return the sum of the clipped values, with exact geometric noise.

    For a trusted curator; epsilon is a level *per person*, not per metre, as in `release_counts`. The sensitivity
    is `reports_per_person * max(|lowest|, |highest|)`.

    Parameters
    ----------
    values : (n,) array
        Such as kilometres driven, or minutes at a place.
    bounds : (float, float)
        Lowest and highest value. Public, chosen independently of the values: values beyond are clipped.
    step : float, optional
        Values are rounded to whole steps: from zero for a sum, otherwise from the lowest value. The range must be
        a whole number of steps, by default 1024.
    epsilon, person, reports_per_person, ledger, label, rng
        As in `release_counts`.

    Examples
    --------
    >>> trips = [1.5] * 3000 + [80.0]     # kilometres
    >>> total = release_sum(trips, (0, 10), epsilon=1.0, person=range(3001))
    >>> total.sensitivity, abs(total.value - 4510) < 300
    (10.0, True)
    """
    table, clip = _Table.of(values, epsilon, person, reports_per_person, rng), _Clip.of(bounds, step)
    per_value = round(max(abs(clip.lowest), abs(clip.highest)) / clip.step)
    steps = clip.steps_from(0.0, table.values, least=-per_value, most=per_value)
    sensitivity = per_value * table.most
    if per_value * len(steps) > LARGEST:
        raise InvalidInputError("the sum has more steps than a 64-bit integer holds: use a larger step")
    noise = GeometricNoise(table.level, max(1, sensitivity))
    charge_release(ledger, table.names, table.level, label)
    [total] = noise.added_to(np.array([steps.sum()]), table.source)
    return table.released(float(total) * clip.step, sensitivity * clip.step)


def release_mean(
    values: ArrayLike,
    bounds: tuple[float, float],
    *,
    step: float | None = None,
    epsilon: float,
    person: Persons,
    reports_per_person: int = 1,
    ledger: "Ledger | None" = None,
    label: str = "release_mean",
    rng: RandomnessLike = None,
) -> ReleasedNumber:
    """Return the mean of the clipped values: a noisy sum over a noisy count, half of epsilon for each.

    The sum is that of the differences from the middle of the bounds: one value adds at most half of their range.
    The result is clipped to the bounds.

    Parameters
    ----------
    values, bounds, step, epsilon, person, reports_per_person, ledger, label, rng
        As in `release_sum`.

    Examples
    --------
    >>> speeds = [30.0] * 500 + [50.0] * 500
    >>> mean = release_mean(speeds, (0, 130), epsilon=1.0, person=range(1000))
    >>> mean.sensitivity, abs(mean.value - 40) < 5
    (65.0, True)
    """
    table, clip = _Table.of(values, epsilon, person, reports_per_person, rng), _Clip.of(bounds, step)
    steps = clip.steps_from(clip.lowest, table.values, least=0, most=clip.steps)
    # In half steps, since the middle of an odd number of steps lies between two of them.
    from_middle, half_step = 2 * steps - clip.steps, clip.step / 2
    sensitivity, half = clip.steps * table.most, table.level / 2
    of_sum, of_count = GeometricNoise(half, sensitivity), GeometricNoise(half, table.most)
    charge_release(ledger, table.names, table.level, label)
    [total] = of_sum.added_to(np.array([from_middle.sum()]), table.source)
    [count] = of_count.added_to(np.array([len(steps)]), table.source)
    mean = (clip.lowest + clip.highest) / 2 + float(total) * half_step / max(1, int(count))
    return table.released(float(np.clip(mean, clip.lowest, clip.highest)), sensitivity * half_step)


def release_quantile(
    values: ArrayLike,
    q: float,
    bounds: tuple[float, float],
    *,
    step: float | None = None,
    epsilon: float,
    person: Persons,
    reports_per_person: int = 1,
    ledger: "Ledger | None" = None,
    label: str = "release_quantile",
    rng: RandomnessLike = None,
) -> ReleasedNumber:
    """Return a private quantile: a value that about a share q of the clipped values lies below.

    Exact permute-and-flip (McKenna and Sheldon, NeurIPS 2020): a candidate is accepted with probability
    e^(-epsilon excess / (2 sensitivity)), where `excess` is the number of values on its wrong side minus that of
    the best candidate, and one of the accepted is returned, each equally likely. Its expected error is at most
    that of the exponential mechanism.

    Parameters
    ----------
    values : (n,) array
    q : float
        Strictly between 0 and 1: 0.5 is the median.
    bounds, step, epsilon, person, reports_per_person, ledger, label, rng
        As in `release_sum`. The candidates are the steps from the lowest to the highest value.

    Examples
    --------
    >>> minutes = np.arange(1000) % 60
    >>> median = release_quantile(minutes, 0.5, (0, 60), step=1, epsilon=1.0, person=range(1000))
    >>> abs(median.value - 30) < 5
    True
    """
    share = Fraction(repr(as_unit(q, "q"))).limit_denominator(FINEST)
    if not 0 < share < 1:
        raise InvalidInputError(f"q must be at least {1 / FINEST:g} from 0 and 1, got {q!r}")
    table, clip = _Table.of(values, epsilon, person, reports_per_person, rng), _Clip.of(bounds, step)
    steps = clip.steps_from(clip.lowest, table.values, least=0, most=clip.steps)
    wrong = wrong_side(steps, clip.steps + 1, share)
    # One value more moves the counts by one and the target by q, in units of 1 / denominator.
    per_value = max(share.numerator, share.denominator - share.numerator)
    noise = GeometricNoise(table.level, 2 * per_value * table.most)
    charge_release(ledger, table.names, table.level, label)
    accepted = np.flatnonzero(noise.pairs(len(wrong), table.source)[:, 0] >= wrong - wrong.min())
    chosen = accepted[uniform_number(len(accepted), table.source)]
    value = min(clip.highest, float(clip.lowest + chosen * clip.step))
    return table.released(value, per_value / share.denominator * table.most)


def wrong_side(steps: IntArray, candidates: int, share: Fraction) -> IntArray:
    """Return the number of values on the wrong side of each candidate, times the share's denominator.

    It is 0 if the values below are at most the share, and the values up to it at least the share.

    Examples
    --------
    >>> wrong_side(np.array([0, 1, 1, 3]), 4, Fraction(1, 2))
    array([2, 0, 2, 2])
    """
    here = np.bincount(steps, minlength=candidates)
    up_to = np.cumsum(here)
    target = share.numerator * len(steps)
    too_many = share.denominator * (up_to - here) - target
    too_few = target - share.denominator * up_to
    return np.asarray(np.maximum(0, np.maximum(too_many, too_few)), dtype=np.int64)


@dataclass(frozen=True)
class _Table:
    """The checked values that count, and the persons of the table."""

    values: FloatArray
    names: tuple[str, ...]
    most: int
    level: float
    source: Randomness

    @classmethod
    def of(
        cls,
        values: ArrayLike,
        epsilon: float,
        person: Persons,
        reports_per_person: int,
        rng: RandomnessLike,
    ) -> "_Table":
        level, source = as_level(epsilon), as_fresh_randomness(rng)
        most = as_count(reports_per_person, "reports_per_person")
        numbers = as_floats(values, "values")
        if numbers.ndim != 1:
            raise InvalidInputError(f"values must be a list of numbers, got shape {numbers.shape}")
        if not np.isfinite(numbers).all():
            raise InvalidInputError(f"values must be finite, row {np.argmin(np.isfinite(numbers))} is not")
        names = as_names(person, len(numbers))
        return cls(numbers[bounded(names, most)], names, most, level, source)

    def released(self, value: float, sensitivity: float) -> ReleasedNumber:
        return ReleasedNumber(value, self.level, sensitivity, self.most)


@dataclass(frozen=True)
class _Clip:
    """Checked bounds, and the step that clipped values are rounded to."""

    lowest: float
    highest: float
    step: float

    @classmethod
    def of(cls, bounds: tuple[float, float], step: float | None) -> "_Clip":
        try:
            lowest, highest = bounds
        except (TypeError, ValueError):
            raise InvalidInputError("bounds must be a pair, the lowest and the highest value") from None
        low, high = as_finite(lowest, "lowest"), as_finite(highest, "highest")
        if not low < high:
            raise InvalidInputError(f"lowest must be below highest, got {lowest!r} and {highest!r}")
        size = (high - low) / STEPS if step is None else as_positive(step, "step")
        if not 1 <= (high - low) / size <= MOST_STEPS:
            raise InvalidInputError(f"the bounds must be 1 to {MOST_STEPS} steps apart, got step={step!r}")
        if not max(-low, high) / size < WIDEST:
            raise InvalidInputError(f"{low:g} to {high:g} is too far from zero for steps of {size:g}")
        if not math.isclose((high - low) / size, round((high - low) / size), rel_tol=ROUNDING):
            raise InvalidInputError(
                f"the range from {low:g} to {high:g} must be a whole number of steps, got step={step!r}"
            )
        return cls(low, high, size)

    @property
    def steps(self) -> int:
        return round((self.highest - self.lowest) / self.step)

    def steps_from(self, origin: float, values: FloatArray, *, least: int, most: int) -> IntArray:
        """Return the clipped values as whole steps from an origin, within the range of the sensitivity."""
        steps = np.rint((np.clip(values, self.lowest, self.highest) - origin) / self.step)
        return np.asarray(np.clip(steps, least, most), dtype=np.int64)
