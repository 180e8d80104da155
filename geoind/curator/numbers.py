"""Sums, means and quantiles of people's numbers: clipped to public limits, one person changes them little."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from geoind.accounting.promise import PersonLevel
from geoind.arrays import ArrayLike, FloatArray, IntArray, as_count, as_finite, as_floats, as_positive, as_unit
from geoind.budgets.ledger import Ledger
from geoind.curator.contributions import Persons, as_person_level, bounded, charge, names_of
from geoind.curator.whole_noise import LARGEST, as_fresh_randomness, geometric_pairs, noisy, uniform_number
from geoind.errors import InvalidInputError
from geoind.randomness import Randomness, RandomnessLike

__all__ = ["ReleasedNumber", "release_mean", "release_quantile", "release_sum"]

STEPS = 1024
"""Steps between the limits, unless the caller chooses: values are rounded to a thousandth of their range."""

MOST_STEPS = 1 << 20

WIDEST = 2.0**40
"""Steps between zero and a limit."""

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
    *,
    lowest: float,
    highest: float,
    epsilon: float,
    person: Persons,
    reports_per_person: int = 1,
    step: float | None = None,
    ledger: Ledger | None = None,
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
    lowest, highest : float
        Public limits, chosen without a look at the values: what lies beyond counts as the limit.
    epsilon, person, reports_per_person, ledger, label, rng
        As in `release_counts`.
    step : float, optional
        Values are rounded to multiples of this one; by default 1024 steps from `lowest` to `highest`.

    Examples
    --------
    >>> trips = [1.5] * 3000 + [80.0]     # kilometres
    >>> total = release_sum(trips, lowest=0, highest=10, epsilon=1.0, person=range(3001))
    >>> total.sensitivity, abs(total.value - 4510) < 300
    (10.0, True)
    """
    table = _Table.of(values, lowest, highest, epsilon, person, reports_per_person, step, rng)
    per_value = round(max(abs(table.lowest), abs(table.highest)) / table.step)
    steps = table.steps_from(0.0, -per_value, per_value)
    sensitivity = per_value * table.most
    if per_value * len(steps) > LARGEST:
        raise InvalidInputError("the sum has more steps than there are integers: take a larger step")
    charge(ledger, table.names, table.promise, label)
    truth = np.array([steps.sum()])
    [total] = noisy(truth, epsilon=table.promise.level, sensitivity=max(1, sensitivity), source=table.source)
    return table.released(float(total) * table.step, sensitivity * table.step)


def release_mean(
    values: ArrayLike,
    *,
    lowest: float,
    highest: float,
    epsilon: float,
    person: Persons,
    reports_per_person: int = 1,
    step: float | None = None,
    ledger: Ledger | None = None,
    label: str = "release_mean",
    rng: RandomnessLike = None,
) -> ReleasedNumber:
    """Return the mean of the clipped values: a noisy sum over a noisy count, half of epsilon for each.

    What is summed is the distance from the middle of the limits: one value adds at most half of their range.
    The result is clipped to the limits.

    Parameters
    ----------
    values, lowest, highest, epsilon, person, reports_per_person, step, ledger, label, rng
        As in `release_sum`.

    Examples
    --------
    >>> speeds = [30.0] * 500 + [50.0] * 500
    >>> mean = release_mean(speeds, lowest=0, highest=130, epsilon=1.0, person=range(1000))
    >>> mean.sensitivity, abs(mean.value - 40) < 5
    (65.0, True)
    """
    table = _Table.of(values, lowest, highest, epsilon, person, reports_per_person, step, rng)
    middle = (table.lowest + table.highest) / 2
    per_value = round((table.highest - middle) / table.step)
    steps = table.steps_from(middle, -per_value, per_value)
    sensitivity = per_value * table.most
    charge(ledger, table.names, table.promise, label)
    half, source = table.promise.level / 2, table.source
    [total] = noisy(np.array([steps.sum()]), epsilon=half, sensitivity=max(1, sensitivity), source=source)
    [count] = noisy(np.array([len(steps)]), epsilon=half, sensitivity=table.most, source=source)
    mean = middle + float(total) * table.step / max(1, int(count))
    return table.released(float(np.clip(mean, table.lowest, table.highest)), sensitivity * table.step)


def release_quantile(
    values: ArrayLike,
    q: float,
    *,
    lowest: float,
    highest: float,
    epsilon: float,
    person: Persons,
    reports_per_person: int = 1,
    step: float | None = None,
    ledger: Ledger | None = None,
    label: str = "release_quantile",
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
    lowest, highest, epsilon, person, reports_per_person, step, ledger, label, rng
        As in `release_sum`. The candidates are the steps from `lowest` to `highest`.

    Examples
    --------
    >>> minutes = np.arange(1000) % 60
    >>> median = release_quantile(minutes, 0.5, lowest=0, highest=60, step=1, epsilon=1.0, person=range(1000))
    >>> abs(median.value - 30) < 5
    True
    """
    share = Fraction(repr(as_unit(q, "q"))).limit_denominator(FINEST)
    if not 0 < share < 1:
        raise InvalidInputError(f"q must be at least {1 / FINEST:g} from 0 and 1, got {q!r}")
    table = _Table.of(values, lowest, highest, epsilon, person, reports_per_person, step, rng)
    candidates = round((table.highest - table.lowest) / table.step) + 1
    wrong = wrong_side(table.steps_from(table.lowest, 0, candidates - 1), candidates, share)
    # One value more moves the counts by one and the target by q, in units of 1 / denominator.
    per_value = max(share.numerator, share.denominator - share.numerator)
    charge(ledger, table.names, table.promise, label)
    accepted = np.flatnonzero(
        geometric_pairs(
            candidates, epsilon=table.promise.level, sensitivity=2 * per_value * table.most, source=table.source
        )[:, 0]
        >= wrong - wrong.min()
    )
    chosen = accepted[uniform_number(len(accepted), table.source)]
    value = float(table.lowest + chosen * table.step)
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
    """A table of numbers whose every rule was checked: the values that count, clipped, and who is in it."""

    values: FloatArray
    names: list[str]
    lowest: float
    highest: float
    step: float
    promise: PersonLevel
    most: int
    source: Randomness

    @classmethod
    def of(
        cls,
        values: ArrayLike,
        lowest: float,
        highest: float,
        epsilon: float,
        person: Persons,
        reports_per_person: int,
        step: float | None,
        rng: RandomnessLike,
    ) -> "_Table":
        promise, source = as_person_level(epsilon), as_fresh_randomness(rng)
        most = as_count(reports_per_person, "reports_per_person")
        low, high = as_finite(lowest, "lowest"), as_finite(highest, "highest")
        if not low < high:
            raise InvalidInputError(f"lowest must be below highest, got {lowest!r} and {highest!r}")
        size = (high - low) / STEPS if step is None else as_positive(step, "step")
        if not 1 <= (high - low) / size <= MOST_STEPS or not max(-low, high) / size < WIDEST:
            raise InvalidInputError(
                f"step must be 1 to {MOST_STEPS} times in the range of the limits, got {step!r}"
            )
        numbers = as_floats(values, "values")
        if numbers.ndim != 1:
            raise InvalidInputError(f"values must be a list of numbers, got shape {numbers.shape}")
        if not np.isfinite(numbers).all():
            raise InvalidInputError(f"values must be finite, row {np.argmin(np.isfinite(numbers))} is not")
        names = names_of(person, len(numbers))
        clipped = np.clip(numbers[bounded(names, most)], low, high)
        return cls(clipped, names, low, high, size, promise, most, source)

    def steps_from(self, origin: float, least: int, most: int) -> IntArray:
        """Return the values as whole steps from an origin, never beyond the steps that the sensitivity counts."""
        steps = np.rint((self.values - origin) / self.step)
        return np.asarray(np.clip(steps, least, most), dtype=np.int64)

    def released(self, value: float, sensitivity: float) -> ReleasedNumber:
        return ReleasedNumber(value, self.promise, sensitivity, self.most)
