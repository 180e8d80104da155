"""Which of two noisy distances is larger, decided exactly.

A test such as "distance + Laplace noise >= limit + Laplace noise" answers with one bit. The bit's probability must
be that of real numbers, so the noise is a number of which only the first bits are drawn: doubles decide nearly
always, and where they cannot, more bits of the same numbers are drawn and ball arithmetic (Arb, of FLINT) decides.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from geoind.arrays import FloatArray
from geoind.distances import EARTH_RADIUS
from geoind.randomness import Words

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "Further",
    "Noise",
    "Quantity",
    "arc_length",
    "arc_lengths",
    "at_least",
    "smallest",
    "surely_smallest",
]

WORD = 64
UNIT = 2.0**-WORD

SURE, CLOSE = 1e-9, 1e-7
"""Sums of doubles that differ by this share of their terms and this many metres differ as real numbers do.

Each term, a distance or a logarithm, is right to 1e-12 of its size and to 1e-15 of the Earth's radius: a thousand
times less, and ten times less."""

TAIL = 2.0**-30
"""Uniform numbers below this have too few known bits for the comparison in doubles."""


@dataclass(frozen=True)
class Further:
    """The words that follow, for a report that its first two do not decide."""

    following: Iterator[int]

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:  # noqa: ARG002
        """Return (n, count) words."""
        return np.array([[next(self.following) for _ in range(count)] for _ in points], np.uint64)

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:  # noqa: ARG002
        """Return the next two: they are asked for once each, in order."""
        return next(self.following), next(self.following)


class Noise:
    """Exponential noise, with or without a random sign, of which more bits are drawn when they are needed."""

    def __init__(self, words: Iterator[int], scale: float, *, signed: bool) -> None:
        self._words = words
        self.scale = scale
        self._sign = -1 if signed and next(words) & 1 else 1
        self._bits, self._known = next(words), 1
        self.tail = self._bits * UNIT < TAIL
        self.value = 0.0 if self.tail else -self._sign * scale * math.log(self._bits * UNIT)

    def refine(self) -> None:
        """Draw 64 more bits."""
        self._bits = self._bits << WORD | next(self._words)
        self._known += 1

    def ball(self) -> "arb":
        """Return an interval that holds the noise, whatever bits would follow."""
        from flint import arb

        low = arb((self._bits, -WORD * self._known))
        high = arb((self._bits + 1, -WORD * self._known))
        uniform = low.union(high)
        return -self._sign * arb(self.scale) * uniform.log() if self._bits else arb("nan")


class Quantity(NamedTuple):
    """A distance in metres, or a plain number, and noise on top of it."""

    noise: Noise | None
    number: float = 0.0
    places: tuple[float, float, float, float] | None = None

    @classmethod
    def distance(cls, lon: float, lat: float, other: tuple[float, float], noise: Noise | None) -> "Quantity":
        """Return the great-circle distance between two places, with noise."""
        return cls(noise, arc_length(lon, lat, *other), (lon, lat, *other))

    def ball(self) -> "arb":
        """Return an interval that holds the sum."""
        from flint import arb

        total = arb(self.number) if self.places is None else _arc_ball(*self.places)
        return total if self.noise is None else total + self.noise.ball()


def at_least(first: Quantity, second: Quantity) -> bool:
    """Return whether the first is at least the second.

    Doubles decide if the difference is larger than a share of the terms' sizes and of the noise's scales: a
    logarithm near zero is right to 1e-16 of the scale only.
    """
    one, other = first.noise, second.noise
    apart, size = first.number - second.number, abs(first.number) + abs(second.number)
    if one is not None:
        apart += one.value
        size += abs(one.value) + one.scale
    if other is not None:
        apart -= other.value
        size += abs(other.value) + other.scale
    tail = (one is not None and one.tail) or (other is not None and other.tail)
    if not tail and abs(apart) > CLOSE + SURE * size:
        return apart > 0
    from flint import ctx

    noises = [noise for noise in (one, other) if noise is not None]
    precision = 2 * WORD
    while True:
        with ctx.workprec(precision):
            difference = first.ball() - second.ball()
            if difference > 0 or difference < 0:
                return bool(difference > 0)
        for noise in noises:
            noise.refine()
        precision += WORD


def smallest(quantities: list[Quantity]) -> int:
    """Return the number of the smallest."""
    best = 0
    for number in range(1, len(quantities)):
        if not at_least(quantities[number], quantities[best]):
            best = number
    return best


def surely_smallest(numbers: list[float], words: list[int], scale: float) -> int | None:
    """Return which number plus unsigned noise is the smallest, by its first word; None if doubles cannot say."""
    if min(words) * UNIT < TAIL:
        return None
    values = [number - scale * math.log(word * UNIT) for number, word in zip(numbers, words, strict=True)]
    best = min(values)
    # Noise and numbers are not negative, so that no term is larger than its sum.
    border = best + CLOSE + SURE * (2 * max(values) + 2 * scale)
    return values.index(best) if [value < border for value in values].count(True) == 1 else None


def arc_length(lon: float, lat: float, other_lon: float, other_lat: float) -> float:
    """Return the great-circle distance in metres."""
    [length] = arc_lengths(lon, lat, ((other_lon, other_lat),))
    return length


def arc_lengths(lon: float, lat: float, places: Iterable[tuple[float, float]]) -> list[float]:
    """Return the great-circle distances of a place to others, in metres.

    By the tangent of chord and its complement: unlike the haversine formula it is right at the antipode, too.
    """
    phi = math.radians(lat)
    sin_phi, cos_phi = math.sin(phi), math.cos(phi)
    lengths = []
    for other_lon, other_lat in places:
        other_phi, turn = math.radians(other_lat), math.radians(lon - other_lon)
        sin_other, cos_other, cos_turn = math.sin(other_phi), math.cos(other_phi), math.cos(turn)
        across = math.hypot(cos_other * math.sin(turn), cos_phi * sin_other - sin_phi * cos_other * cos_turn)
        along = sin_phi * sin_other + cos_phi * cos_other * cos_turn
        lengths.append(EARTH_RADIUS * math.atan2(across, along))
    return lengths


def _arc_ball(lon: float, lat: float, other_lon: float, other_lat: float) -> "arb":
    """Return an interval that holds the great-circle distance."""
    from flint import arb

    (sin_phi, cos_phi), (sin_other, cos_other) = ((arb(value) / 180).sin_cos_pi() for value in (lat, other_lat))
    sin_turn, cos_turn = ((arb(lon) - arb(other_lon)) / 180).sin_cos_pi()
    east, north = cos_other * sin_turn, cos_phi * sin_other - sin_phi * cos_other * cos_turn
    # Of a place and itself, an interval around zero: ** 2 and the root of less than zero are not numbers.
    across = (east * east + north * north).nonnegative_part().sqrt()
    along = sin_phi * sin_other + cos_phi * cos_other * cos_turn
    return arb(EARTH_RADIUS) * arb.atan2(across, along)
