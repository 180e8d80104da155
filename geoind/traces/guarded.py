"""A true place that a method cannot read: it answers private questions, each paid for before it is answered."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from geoind.arrays import as_positive
from geoind.errors import InvalidInputError
from geoind.mechanisms.spherical import WGS84_FACTOR, SphericalLaplace
from geoind.traces.comparison import Further, Noise, Quantity, arc_lengths, at_least, smallest, surely_smallest
from geoind.traces.laws import shares
from geoind.traces.words import CHOICE, FRESH, LIMIT, NEAR, NO_CHOICE, TEST, SessionSource

__all__ = ["GuardedPlace", "Place", "Run", "check_question"]

Place: TypeAlias = tuple[float, float]
"""Longitude and latitude."""


@dataclass(frozen=True)
class Run:
    """Tests of whether a person has left a published place, paid for together until the first yes.

    Parameters
    ----------
    number : int
        How many runs there were before.
    epsilon : float
        What was paid for it, per metre: its tests have the noise of this epsilon, whatever a method wants later.
    place : (lon, lat)
        The published place.
    """

    number: int
    epsilon: float
    place: Place


class GuardedPlace:
    """A true place that can only be asked, and answers with noise after it was paid for.

    Every question calls `charge` before anything is drawn; a test of a run, which was paid for before, with a cost
    of 0. A step asks each question once: two answers would have the same noise, and could reveal more than was
    paid for.
    """

    __slots__ = ("_asked", "_charge", "_lat", "_lon", "_seed", "_source", "run")

    def __init__(
        self,
        lon: float,
        lat: float,
        source: SessionSource,
        seed: int,
        charge: Callable[[float, str], None],
        run: Run | None = None,
    ) -> None:
        self._lon, self._lat = lon, lat
        # The seed is of the place, too: another place at the same time, after a step that was undone, must not
        # meet the same noise.
        self._source, self._seed, self._charge = source, seed, charge
        self._asked: list[tuple[int, float]] = []
        self.run = run

    def __repr__(self) -> str:
        return "GuardedPlace(...)"

    def __reduce__(self) -> str:
        raise InvalidInputError("a guarded place stays in its process")

    def report(self, epsilon: float) -> Place:
        """Return a fresh report of the place; costs epsilon."""
        self._ask(FRESH, epsilon)
        self._charge(epsilon, "fresh report")
        words = self._source.stream(self._seed, epsilon, FRESH)
        return _globe(epsilon).sample_one(self._lon, self._lat, next(words), next(words), further=Further(words))

    def is_near(self, other: Place, limit: float, epsilon: float) -> bool:
        """Return whether the place lies within about `limit` metres of another; costs epsilon.

        distance < limit + Laplace noise of scale 1 / epsilon.
        """
        self._ask(NEAR, epsilon, (other,), limit)
        self._charge(epsilon, "test")
        noise = _noise(self._source.stream(self._seed, epsilon, NEAR), 1 / epsilon, signed=True)
        return not at_least(Quantity.distance(self._lon, self._lat, other, None), Quantity(noise, limit))

    def has_left(self, limit: float) -> bool:
        """Return whether the place lies about `limit` metres or more from that of the run, which has paid for it.

        The sparse vector technique (AboveThreshold; Dwork and Roth 2014, Lyu, Su and Li 2017): the limit's noise
        is drawn once per run, each test's noise afresh. All answers of a run up to its first yes cost its epsilon
        together, however many they are. After a yes the run is over.
        """
        run = self.run
        if run is None:
            raise InvalidInputError("no run of tests is going on: one must be begun, and paid for, first")
        self._ask(TEST, run.epsilon, (run.place,), limit)
        self._charge(0.0, "test of a run")
        for_limit, for_tests = shares(run.epsilon)
        seed = self._source.run(run.number, *run.place)
        bar = _noise(self._source.stream(seed, run.epsilon, LIMIT), 1 / for_limit, signed=True)
        noise = _noise(self._source.stream(self._seed, run.epsilon, TEST), 2 / for_tests, signed=True)
        left = at_least(Quantity.distance(self._lon, self._lat, run.place, noise), Quantity(bar, limit))
        if left:
            self.run = None
        return left

    def nearest(self, places: tuple[Place, ...], limit: float, epsilon: float) -> int | None:
        """Return the number of the place that is probably nearest, or None if none is within about `limit`.

        Costs epsilon. Noisy minimum with exponential noise (permute-and-flip; McKenna and Sheldon 2020).
        """
        self._ask(CHOICE, epsilon, places, limit)
        self._charge(epsilon, "choice among known places")
        purposes = [(CHOICE, number) for number in range(len(places))]
        purposes.append((NO_CHOICE, 0))
        numbers = [*arc_lengths(self._lon, self._lat, places), limit]
        words = self._source.first_words(self._seed, epsilon, purposes)
        best = surely_smallest(numbers, words, WGS84_FACTOR * 2 / epsilon)
        if best is None:
            best = self._nearest_exactly(places, limit, epsilon, purposes)
        return best if best < len(places) else None

    def _nearest_exactly(
        self, places: tuple[Place, ...], limit: float, epsilon: float, purposes: list[tuple[int, int]]
    ) -> int:
        streams = (self._source.stream(self._seed, epsilon, *purpose) for purpose in purposes)
        *noises, none = (_noise(words, 2 / epsilon, signed=False) for words in streams)
        scores = [
            Quantity.distance(self._lon, self._lat, place, noise)
            for place, noise in zip(places, noises, strict=True)
        ]
        return smallest([*scores, Quantity(none, limit)])

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return len(self._asked)

    def _ask(self, purpose: int, epsilon: float, places: tuple[Place, ...] = (), limit: float = 0.0) -> None:
        """Refuse a question that is invalid, or comes again, before it is paid for."""
        check_question(epsilon, places)
        if not 0 <= limit < math.inf:
            raise InvalidInputError(f"limit must be at least 0 and finite, got {limit!r}")
        if (purpose, epsilon) in self._asked:
            raise InvalidInputError("a step can ask each question once: two answers would share their noise")
        self._asked.append((purpose, epsilon))


def check_question(epsilon: float, places: tuple[Place, ...]) -> None:
    """Refuse an epsilon that is not positive, and places that are not on the globe."""
    as_positive(epsilon, "epsilon")
    for lon, lat in places:
        if not (-180 <= lon <= 180 and -90 <= lat <= 90):
            raise InvalidInputError("a question must be about places with longitude and latitude on the globe")


def _noise(words: Iterator[int], scale: float, *, signed: bool) -> Noise:
    # A great-circle metre may be 1.0057 WGS84 metres short: the noise is wider by as much.
    return Noise(words, WGS84_FACTOR * scale, signed=signed)


@lru_cache(maxsize=256)
def _globe(epsilon: float) -> SphericalLaplace:
    return SphericalLaplace(epsilon)
