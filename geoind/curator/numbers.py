"""Sums, means and quantiles of people's numbers: clipped to public limits, one person changes them little."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from geoind.accounting.promise import PersonLevel
from geoind.arrays import ArrayLike, FloatArray, IntArray, as_count, as_floats, as_unit
from geoind.curator.contributions import Contributors, Persons, as_contributors, as_person_level, bounded
from geoind.curator.limits import Limits
from geoind.curator.whole_noise import LARGEST, GeometricNoise, as_fresh_randomness, uniform_number
from geoind.errors import InvalidInputError
from geoind.randomness import Randomness, RandomnessLike

__all__ = ["ReleasedNumber", "release_mean", "release_quantile", "release_sum"]

FINEST = 10_000
"""Largest denominator of a quantile."""


@dataclass(frozen=True)
class ReleasedNumber:
    """A number that may be published. Everything here is public.

    Attributes
    ----------
    value : float
    promise : PersonLevel
        The level per person, not per metre.
    sensitivity : float
        By how much one person changes what the noise was added to, at most: the clipped sum; for a mean the sum
        of the values' distances from the middle of the limits; for a quantile the number of values below it.
    reports_per_person : int
        How many values of one person were counted at most.
    """

    value: float
    promise: PersonLevel
    sensitivity: float
    reports_per_person: int


def release_sum(
    values: ArrayLike,
    limits: Limits,
    *,
    epsilon: float,
    person: Persons,
    reports_per_person: int = 1,
    rng: RandomnessLike = None,
) -> ReleasedNumber:
    """Return the sum of the clipped values, with exact geometric noise.

    For a trusted curator; epsilon is a level *per person*, not per metre, as in `release_counts`. The sensitivity
    is `reports_per_person * max(|limits.lowest|, |limits.highest|)`.

    Parameters
    ----------
    values : (n,) array
        Such as kilometres driven, or minutes at a place.
    limits : Limits
        Public, chosen without a look at the values: what lies beyond counts as the limit.
    epsilon, person, reports_per_person, rng
        As in `release_counts`.

    Examples
    --------
    >>> trips = [1.5] * 3000 + [80.0]     # kilometres
    >>> total = release_sum(trips, Limits(0, 10), epsilon=1.0, person=range(3001))
    >>> total.sensitivity, abs(total.value - 4510) < 300
    (10.0, True)
    """
    table = _Table.of(values, limits, epsilon, person, reports_per_person, rng)
    per_value = round(max(abs(limits.lowest), abs(limits.highest)) / limits.step)
    steps = limits.steps_from(0.0, table.values, least=-per_value, most=per_value)
    sensitivity = per_value * table.most
    if per_value * len(steps) > LARGEST:
        raise InvalidInputError("the sum has more steps than there are integers: take a larger step")
    noise = GeometricNoise(table.promise.level, max(1, sensitivity))
    table.people.charge(table.promise, "release_sum")
    [total] = noise.added_to(np.array([steps.sum()]), table.source)
    return table.released(float(total) * limits.step, sensitivity * limits.step)


def release_mean(
    values: ArrayLike,
    limits: Limits,
    *,
    epsilon: float,
    person: Persons,
    reports_per_person: int = 1,
    rng: RandomnessLike = None,
) -> ReleasedNumber:
    """Return the mean of the clipped values: a noisy sum over a noisy count, half of epsilon for each.

    What is summed is the distance from the middle of the limits: one value adds at most half of their range.
    The result is clipped to the limits.

    Parameters
    ----------
    values, limits, epsilon, person, reports_per_person, rng
        As in `release_sum`.

    Examples
    --------
    >>> speeds = [30.0] * 500 + [50.0] * 500
    >>> mean = release_mean(speeds, Limits(0, 130), epsilon=1.0, person=range(1000))
    >>> mean.sensitivity, abs(mean.value - 40) < 5
    (65.0, True)
    """
    table = _Table.of(values, limits, epsilon, person, reports_per_person, rng)
    steps = limits.steps_from(limits.lowest, table.values, least=0, most=limits.steps)
    # In half steps, since the middle of an odd number of steps lies between two of them.
    from_middle, half_step = 2 * steps - limits.steps, limits.step / 2
    sensitivity, half = limits.steps * table.most, table.promise.level / 2
    of_sum, of_count = GeometricNoise(half, sensitivity), GeometricNoise(half, table.most)
    table.people.charge(table.promise, "release_mean")
    [total] = of_sum.added_to(np.array([from_middle.sum()]), table.source)
    [count] = of_count.added_to(np.array([len(steps)]), table.source)
    mean = (limits.lowest + limits.highest) / 2 + float(total) * half_step / max(1, int(count))
    return table.released(float(np.clip(mean, limits.lowest, limits.highest)), sensitivity * half_step)


def release_quantile(
    values: ArrayLike,
    q: float,
    limits: Limits,
    *,
    epsilon: float,
    person: Persons,
    reports_per_person: int = 1,
    rng: RandomnessLike = None,
) -> ReleasedNumber:
    """Return a value that about a share q of the clipped values lies below, chosen in private.

    Permute-and-flip (McKenna and Sheldon, NeurIPS 2020), exactly: a candidate is accepted with probability
    e^(-epsilon excess / (2 sensitivity)), where `excess` says how many values too many lie on its wrong side,
    compared with the best one, and one of the accepted is taken, each equally likely. Never farther off, on
    average, than the exponential mechanism.

    Parameters
    ----------
    values : (n,) array
    q : float
        Strictly between 0 and 1: 0.5 is the median.
    limits, epsilon, person, reports_per_person, rng
        As in `release_sum`. The candidates are the steps from the lowest to the highest.

    Examples
    --------
    >>> minutes = np.arange(1000) % 60
    >>> median = release_quantile(minutes, 0.5, Limits(0, 60, step=1), epsilon=1.0, person=range(1000))
    >>> abs(median.value - 30) < 5
    True
    """
    share = Fraction(repr(as_unit(q, "q"))).limit_denominator(FINEST)
    if not 0 < share < 1:
        raise InvalidInputError(f"q must be at least {1 / FINEST:g} from 0 and 1, got {q!r}")
    table = _Table.of(values, limits, epsilon, person, reports_per_person, rng)
    steps = limits.steps_from(limits.lowest, table.values, least=0, most=limits.steps)
    wrong = wrong_side(steps, limits.steps + 1, share)
    # One value more moves the counts by one and the target by q, in units of 1 / denominator.
    per_value = max(share.numerator, share.denominator - share.numerator)
    noise = GeometricNoise(table.promise.level, 2 * per_value * table.most)
    table.people.charge(table.promise, "release_quantile")
    accepted = np.flatnonzero(noise.pairs(len(wrong), table.source)[:, 0] >= wrong - wrong.min())
    chosen = accepted[uniform_number(len(accepted), table.source)]
    value = min(limits.highest, float(limits.lowest + chosen * limits.step))
    return table.released(value, per_value / share.denominator * table.most)


def wrong_side(steps: IntArray, candidates: int, share: Fraction) -> IntArray:
    """Return how many values lie on the wrong side of each candidate, times the share's denominator.

    None, if the values below are at most the share, and the values up to it at least the share.

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
    """A table of numbers whose every rule was checked: the values that count, and who is in it."""

    values: FloatArray
    people: Contributors
    most: int
    promise: PersonLevel
    source: Randomness

    @classmethod
    def of(
        cls,
        values: ArrayLike,
        limits: Limits,
        epsilon: float,
        person: Persons,
        reports_per_person: int,
        rng: RandomnessLike,
    ) -> "_Table":
        promise, source = as_person_level(epsilon), as_fresh_randomness(rng)
        most = as_count(reports_per_person, "reports_per_person")
        if not isinstance(limits, Limits):
            raise InvalidInputError(f"limits must be Limits(lowest, highest), got {type(limits).__name__}")
        numbers = as_floats(values, "values")
        if numbers.ndim != 1:
            raise InvalidInputError(f"values must be a list of numbers, got shape {numbers.shape}")
        if not np.isfinite(numbers).all():
            raise InvalidInputError(f"values must be finite, row {np.argmin(np.isfinite(numbers))} is not")
        people = as_contributors(person, len(numbers))
        return cls(numbers[bounded(people.names, most)], people, most, promise, source)

    def released(self, value: float, sensitivity: float) -> ReleasedNumber:
        return ReleasedNumber(value, self.promise, sensitivity, self.most)
