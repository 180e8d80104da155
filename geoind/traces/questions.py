"""Private questions about a true location, each paid for before it is answered.

A test such as "distance + Laplace noise >= limit + Laplace noise" answers with one bit. The bit's probability must
be that of real numbers, so the noise is a number of which only the first bits are drawn: doubles decide nearly
always, and where they cannot, more bits of the same numbers are drawn and ball arithmetic (Arb, of FLINT) decides.

The comparisons in doubles take arrays. `GuardedPlace` asks them about one row, tables of traces about many.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from geoind.arrays import as_positive
from geoind.distances import EARTH_RADIUS
from geoind.errors import InvalidInputError
from geoind.keys import Words
from geoind.mechanisms.spherical import WGS84_FACTOR, SphericalLaplace
from geoind.traces.laws import shares
from geoind.traces.words import CHOICE, FRESH, LIMIT, NEAR, NO_CHOICE, TEST, Block, SessionWords, as_words

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "AboveThreshold",
    "Flags",
    "GuardedPlace",
    "Place",
    "arc_length",
    "check_question",
    "distance_exceeds",
    "laplace_noise",
    "noisy_argmin",
    "scales_of_tests",
]

Place: TypeAlias = tuple[float, float]
"""Longitude and latitude."""

Flags: TypeAlias = npt.NDArray[np.bool_]

Numbers: TypeAlias = Any
"""One number, or an array of them. The comparisons take both: arrays of one row would take twice the time."""

SCALAR_FUNCTIONS: tuple[Any, ...] = (math.sin, math.cos, math.radians, math.hypot, math.atan2)
ARRAY_FUNCTIONS: tuple[Any, ...] = (np.sin, np.cos, np.radians, np.hypot, np.arctan2)
"""For single numbers, the functions of math take a fifth of the time of numpy's."""

WORD = 64
UNIT = 2.0**-WORD

SURE, CLOSE = 1e-9, 1e-7
"""Sums of doubles that differ by this share of their terms and this many metres differ as real numbers do.

Each term, a distance or a logarithm, is right to 1e-12 of its size and to 1e-15 of the Earth's radius: a thousand
times less, and ten times less."""

TAIL = 2.0**-30
"""Uniform numbers below this have too few known bits for the comparison in doubles."""


# The comparisons in doubles


def scales_of_tests(epsilon: float) -> tuple[float, float]:
    """Return the scales of the noise of a run's limit and of each of its tests, in great-circle metres.

    A great-circle metre may be 1.0057 WGS84 metres short: the noise is wider by as much.
    """
    for_limit, for_tests = shares(epsilon)
    return WGS84_FACTOR * (1 / for_limit), WGS84_FACTOR * (2 / for_tests)


def arc_length(lon: Numbers, lat: Numbers, other_lon: Numbers, other_lat: Numbers) -> Numbers:
    """Return great-circle distances in metres, of numbers or arrays.

    By the tangent of chord and its complement: unlike the haversine formula it is right at the antipode, too.
    """
    single = type(lat) is type(other_lat) is float
    sin, cos, radians, hypot, arctan2 = SCALAR_FUNCTIONS if single else ARRAY_FUNCTIONS
    here, there, turn = radians(lat), radians(other_lat), radians(lon - other_lon)
    sin_here, cos_here, sin_there, cos_there, cos_turn = sin(here), cos(here), sin(there), cos(there), cos(turn)
    across = hypot(cos_there * sin(turn), cos_here * sin_there - sin_here * cos_there * cos_turn)
    return EARTH_RADIUS * arctan2(across, sin_here * sin_there + cos_here * cos_there * cos_turn)


def laplace_noise(pair: Words | Sequence[int], scale: float) -> Numbers:
    """Return Laplace noise of a pair of words, or of (2, n); NaN where they have too few bits for doubles."""
    first, second = pair
    return _exponential_noise(second, scale) * (1.0 - 2.0 * (first & 1))


def _exponential_noise(words: Numbers, scale: float) -> Numbers:
    uniform = words * UNIT
    if type(uniform) is float:
        return math.nan if uniform < TAIL else -scale * math.log(uniform)
    return -scale * np.log(np.where(uniform < TAIL, np.nan, uniform))


def distance_exceeds(apart: Numbers, noise: Numbers, threshold: Numbers, size: float) -> tuple[Numbers, Numbers]:
    """Return where a distance plus noise is at least a threshold, and where doubles are sure of it.

    They are sure if the difference is larger than a share of the terms' sizes. `size` is the part of it that the
    arguments do not show: twice the limit inside the threshold, and the scale of each noise, because a logarithm
    near zero is right to 1e-16 of the scale only.
    """
    difference = apart + noise - threshold
    return difference > 0, abs(difference) > CLOSE + SURE * (apart + abs(noise) + abs(threshold) + size)


def noisy_argmin(scores: Numbers, words: Numbers, scale: float) -> tuple[Numbers, Numbers]:
    """Return the number of the smallest of k scores plus exponential noise, and where doubles are sure of it.

    `scores` and `words` are k numbers, or (k, n) arrays. Two or more of the scores are finite.
    """
    sums = [score + _exponential_noise(word, scale) for score, word in zip(scores, words, strict=True)]
    arrays = isinstance(sums[0], np.ndarray)
    ordered: Numbers = np.sort(sums, axis=0) if arrays else sorted(sums)
    number = np.argmin(sums, axis=0) if arrays else sums.index(ordered[0])
    best, second, total = ordered[0], ordered[1], sum(sums)
    # No other sum is nearer to the best than the second. NaN, of a word with too few bits, differs from itself.
    return number, (total == total) & (second > best + CLOSE + SURE * (best + second + 2 * scale))


# The same comparisons in exact arithmetic


class _Noise:
    """Exponential noise, with or without a random sign, of which more bits are drawn when they are needed."""

    def __init__(self, words: Iterator[int], scale: float, *, signed: bool) -> None:
        self._words = words
        self._scale = scale
        self._sign = -1 if signed and next(words) & 1 else 1
        self._bits, self._known = next(words), 1

    def refine(self) -> None:
        """Draw 64 more bits."""
        self._bits = self._bits << WORD | next(self._words)
        self._known += 1

    def ball(self) -> "arb":
        """Return an interval that holds the noise, whatever bits would follow."""
        from flint import arb

        low, high = (arb((bits, -WORD * self._known)) for bits in (self._bits, self._bits + 1))
        return -self._sign * arb(self._scale) * low.union(high).log() if self._bits else arb("nan")


class _Sum(NamedTuple):
    """A plain number or the distance of two places, in metres, and noise."""

    noise: _Noise | None
    number: float = 0.0
    places: tuple[Place, Place] | None = None

    def ball(self) -> "arb":
        """Return an interval that holds the sum."""
        from flint import arb

        total = arb(self.number) if self.places is None else _arc_ball(*self.places)
        return total if self.noise is None else total + self.noise.ball()


def _exactly_at_least(first: _Sum, second: _Sum) -> bool:
    """Return whether the first is at least the second."""
    from flint import ctx

    precision = 2 * WORD
    while True:
        with ctx.workprec(precision):
            difference = first.ball() - second.ball()
            if difference > 0 or difference < 0:
                return bool(difference > 0)
        for noise in (first.noise, second.noise):
            if noise is not None:
                noise.refine()
        precision += WORD


def _exact_argmin(sums: Sequence[_Sum]) -> int:
    """Return the number of the smallest sum."""
    best = 0
    for number in range(1, len(sums)):
        if not _exactly_at_least(sums[number], sums[best]):
            best = number
    return best


def _arc_ball(here: Place, there: Place) -> "arb":
    """Return an interval that holds the great-circle distance."""
    from flint import arb

    (sin_here, cos_here), (sin_there, cos_there) = ((arb(lat) / 180).sin_cos_pi() for _, lat in (here, there))
    sin_turn, cos_turn = ((arb(here[0]) - arb(there[0])) / 180).sin_cos_pi()
    east, north = cos_there * sin_turn, cos_here * sin_there - sin_here * cos_there * cos_turn
    # Of a place and itself, an interval around zero: ** 2 and the root of less than zero are not numbers.
    across = (east * east + north * north).nonnegative_part().sqrt()
    along = sin_here * sin_there + cos_here * cos_there * cos_turn
    return arb(EARTH_RADIUS) * arb.atan2(across, along)


# What a method may ask


class AboveThreshold(NamedTuple):
    """A run of the sparse vector technique: tests of whether a person has left a published place.

    All tests up to the first yes are paid for together.

    Parameters
    ----------
    number : int
        How many runs the session had before.
    epsilon : float
        What was paid, per metre: the tests have the noise of this epsilon, whatever a method wants later.
    place : (lon, lat)
        The published place.

    Examples
    --------
    >>> AboveThreshold(number=0, epsilon=0.01, place=(2.2945, 48.8584)).epsilon
    0.01
    """

    number: int
    epsilon: float
    place: Place


class GuardedPlace:
    """The true location of a step: a `TraceMethod` cannot read it, only ask private questions about it.

    Every question calls `charge` before anything is drawn; a test of a run, which was paid for before, with a cost
    of 0. A step asks each question once: two answers would have the same noise, and could reveal more than was
    paid for.

    Examples
    --------
    >>> words = SessionWords(bytes(32))
    >>> person = words.person("ana")
    >>> seed = words.steps(person, 0.0, (2.2945, 48.8584))
    >>> place = GuardedPlace(2.2945, 48.8584, words, person, seed, lambda epsilon, label: None)
    >>> place, place.is_near((2.2945, 48.8584), limit=5000.0, epsilon=0.01)
    (GuardedPlace(...), True)
    """

    __slots__ = ("_asked", "_charge", "_person", "_place", "_seed", "_words", "run")

    def __init__(
        self,
        lon: float,
        lat: float,
        words: SessionWords,
        person: Block,
        seed: Block,
        charge: Callable[[float, str], None],
        run: AboveThreshold | None = None,
    ) -> None:
        self._place = lon, lat
        self._words, self._person, self._charge = words, person, charge
        # The seed is of the place, too: another place at the same time, after a step that was undone, must not
        # meet the same noise.
        self._seed = seed
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
        first, second = as_words(self._words.pairs(self._seed, epsilon, FRESH))
        further = self._words.fresh(np.array([as_words(self._seed)], np.uint64), epsilon)
        return _globe(epsilon).sample_one(*self._place, first, second, further=further)

    def is_near(self, other: Place, limit: float, epsilon: float) -> bool:
        """Return whether the place lies within about `limit` metres of another; costs epsilon.

        distance < limit + Laplace noise of scale 1 / epsilon.
        """
        self._ask(NEAR, epsilon, (other,), limit)
        self._charge(epsilon, "test")
        scale = WGS84_FACTOR * (1 / epsilon)
        threshold = limit + laplace_noise(as_words(self._words.pairs(self._seed, epsilon, NEAR)), scale)
        far, sure = distance_exceeds(arc_length(*self._place, *other), 0.0, threshold, 2 * limit + scale)
        if not sure:
            noise = _Noise(self._words.stream(self._seed, epsilon, NEAR), scale, signed=True)
            far = _exactly_at_least(_Sum(None, places=(self._place, other)), _Sum(noise, limit))
        return not far

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
        limit_scale, test_scale = scales_of_tests(run.epsilon)
        run_seed = self._words.runs(self._person, run.number, run.place)
        bar = as_words(self._words.pairs(run_seed, run.epsilon, LIMIT))
        noise = as_words(self._words.pairs(self._seed, run.epsilon, TEST))
        left, sure = distance_exceeds(
            arc_length(*self._place, *run.place),
            laplace_noise(noise, test_scale),
            limit + laplace_noise(bar, limit_scale),
            2 * limit + limit_scale + test_scale,
        )
        if not sure:
            exact_bar = _Noise(self._words.stream(run_seed, run.epsilon, LIMIT), limit_scale, signed=True)
            exact_noise = _Noise(self._words.stream(self._seed, run.epsilon, TEST), test_scale, signed=True)
            distance = _Sum(exact_noise, places=(self._place, run.place))
            left = _exactly_at_least(distance, _Sum(exact_bar, limit))
        if left:
            self.run = None
        return bool(left)

    def nearest(self, places: tuple[Place, ...], limit: float, epsilon: float) -> int | None:
        """Return the number of the place that is probably nearest, or None if none is within about `limit`.

        Costs epsilon. Noisy minimum with exponential noise (permute-and-flip; McKenna and Sheldon 2020).
        """
        self._ask(CHOICE, epsilon, places, limit)
        self._charge(epsilon, "choice among known places")
        count, scale = len(places), WGS84_FACTOR * (2 / epsilon)
        asked = [*((CHOICE, number) for number in range(count)), (NO_CHOICE, 0)]
        words = [as_words(self._words.pairs(self._seed, epsilon, *one))[0] for one in asked]
        scores = [*(arc_length(*self._place, *place) for place in places), limit]
        best, sure = noisy_argmin(scores, words, scale)
        if not sure:
            streams = (self._words.stream(self._seed, epsilon, *one) for one in asked)
            terms = [*((0.0, (self._place, place)) for place in places), (limit, None)]
            best = _exact_argmin(
                [
                    _Sum(_Noise(stream, scale, signed=False), *term)
                    for stream, term in zip(streams, terms, strict=True)
                ]
            )
        return best if best < count else None

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


@lru_cache(maxsize=256)
def _globe(epsilon: float) -> SphericalLaplace:
    return SphericalLaplace(epsilon)
