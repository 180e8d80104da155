"""Exact noise on whole numbers: the geometric law, from doubles or, if they do not decide, from ball arithmetic.

A geometric number is the whole part of -ln(U) / rate for a uniform U, and two of them differ by noise of the
two-sided geometric law: z is as likely as tanh(rate / 2) e^(-rate |z|). The rate is epsilon over a whole
sensitivity, as rational numbers: no probability is rounded anywhere.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from flint import arb

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.keys import KeyedRandomness, Words
from geoind.mechanisms.exact import decided
from geoind.mechanisms.protocol import Randomness, RandomnessLike, as_randomness

__all__ = ["LARGEST", "GeometricNoise", "as_fresh_randomness", "uniform_number"]

PURPOSE = "curator"
WIDEST = 2.0**40
"""Largest mean of the noise: a release would be useless. The largest draw is below 2^54 then."""

LARGEST = 2**62
"""Largest true number, so that none overflows with noise."""


def as_fresh_randomness(rng: RandomnessLike) -> Randomness:
    """Return a source of randomness that is not keyed."""
    # The difference of two releases with the same noise, on tables that differ by one person, reveals that person.
    if isinstance(rng, KeyedRandomness):
        raise InvalidInputError("rng must not be keyed: the same noise on two tables cancels out")
    return as_randomness(rng, 0)


@dataclass(frozen=True)
class GeometricNoise:
    """Noise of the two-sided geometric law of rate epsilon / sensitivity.

    Noise that would be too wide raises an error: construct it before a person is charged.

    Examples
    --------
    >>> released = GeometricNoise(epsilon=1.0, sensitivity=2).added_to(np.full(10_000, 40), as_fresh_randomness(1))
    >>> round(released.mean()), float(released.std().round(1))
    (40, 2.8)
    """

    epsilon: float
    sensitivity: int

    def __post_init__(self) -> None:
        if not self.sensitivity / self.epsilon <= WIDEST:
            raise InvalidInputError(f"epsilon {self.epsilon:g} is too small: only noise would be left")

    def added_to(self, truth: IntArray, source: Randomness) -> IntArray:
        """Return the numbers with independent noise."""
        up, down = self.pairs(len(truth), source).T
        return np.asarray(truth + up - down, dtype=np.int64)

    def pairs(self, count: int, source: Randomness) -> IntArray:
        """Return (count, 2) independent numbers, each m or more with probability e^(-epsilon m / sensitivity)."""
        points = np.zeros((count, 2))
        words = source.words(points, 2, PURPOSE)
        found, certain = _by_doubles(words, self.epsilon / self.sensitivity)
        result = np.asarray(found, dtype=np.int64)
        for row in np.flatnonzero(~certain.all(axis=1)).tolist():
            first, second = words[row].tolist()
            pair = partial(_pair, epsilon=self.epsilon, sensitivity=self.sensitivity)
            result[row] = decided(pair, first, second, partial(source.further, row, points[row], PURPOSE))
        return result


def uniform_number(below: int, source: Randomness) -> int:
    """Return a uniformly random whole number below this one.

    Examples
    --------
    >>> uniform_number(1, as_fresh_randomness(None))
    0
    """
    fair = 2**64 // below * below
    number, attempt = 2**64, 0
    while number >= fair:
        number, attempt = source.further(0, np.zeros(2), f"{PURPOSE} choice", attempt)[0], attempt + 1
    return number % below


def _by_doubles(words: Words, rate: float) -> tuple[FloatArray, "np.ndarray[tuple[int, int], np.dtype[np.bool_]]"]:
    """Return the whole parts computed with doubles, and which of them are certain."""
    first_bits = words.astype(np.float64) + 0.5
    nats = np.log(2.0**64) - np.log(first_bits)
    steps = nats / rate
    # Error of the bits after the first 64; of logarithms of at most 45, a few units in the last place with a
    # processor's fast ones; of the quotient. All bounds are generous.
    off = (1 / first_bits + 2.0**-42) / rate + steps * 2.0**-48
    whole = np.floor(steps)
    # The logarithm of a number that begins with 64 zeros has no bound.
    certain = (words > 0) & (steps - whole > off) & (whole + 1 - steps > off)
    return np.where(certain, whole, 0.0), certain


def _pair(first: arb, second: arb, *, epsilon: float, sensitivity: int) -> tuple[int, int] | None:
    """Return both numbers, None if more bits are needed."""
    numbers = [
        (-uniform.log() * sensitivity / arb(epsilon)).floor().unique_fmpz() if uniform > 0 else None
        for uniform in (first, second)
    ]
    return None if numbers[0] is None or numbers[1] is None else (int(numbers[0]), int(numbers[1]))
