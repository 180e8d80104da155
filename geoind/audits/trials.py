"""What an audit compares: reports of two places, alone, row beside row, and call after call."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_points
from geoind.audits.events import Seen
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism
from geoind.randomness import RandomnessLike, SimulatedRandomness, as_randomness
from geoind.space.projection import Projection

__all__ = ["FAR", "Trial", "Vicinity", "as_sampler", "trials_at"]

FAR = math.sqrt(6.2)
"""Distance of a pair in units of 1 / epsilon: about 2.5, where most can be seen. Not a round number, so that two
places differ in their low digits, too."""

NEAR = 0.5
"""Distance where few calls show most."""

BEARINGS = (0.0, 45.0, 90.0, 135.0)
"""Directions of the pairs, in degrees from east to north."""

LINES = (0.0, 135.0)
"""Directions in which jumps are looked for: across borders in the east, in the west and in the north."""

LEVELS, PARTS = 3, 8
"""How often a line is divided to find its largest jump, and into how many parts."""

SEARCH = 1_000_000
"""Reports, at most, in which noise that rows share is looked for, or the largest jump of a line."""

CALLS = 300
"""Pairs of calls with one point each."""

Sampler = Callable[[FloatArray], FloatArray]
"""From (n, 2) places to as many reports, in one call."""


@dataclass(frozen=True)
class Trial:
    """Two places, and how reports are seen that should not tell them apart.

    Attributes
    ----------
    truth, other : (2,) arrays
        The two places.
    distance : float
        Between them, in metres.
    offset : (2,) array
        Where events look for the second place, seen from the first, in metres.
    draws : int
        Reports per place that bound the probabilities.
    how : str
        What is special about the reports, for the finding.
    seen : callable
        From one of the two places and a number to that many reports.
    """

    truth: FloatArray
    other: FloatArray
    distance: float
    offset: FloatArray
    draws: int
    how: str
    seen: Callable[[FloatArray, int], Seen]


@dataclass(frozen=True)
class Vicinity:
    """A place, and the metres around it.

    Parameters
    ----------
    spot : (2,) array
        In metres, or in degrees if there is a plane.
    plane : Projection or None
        Around the spot: distances from there are the Earth's own.
    """

    spot: FloatArray
    plane: Projection | None

    def to_xy(self, reports: FloatArray) -> FloatArray:
        """Return reports in metres around the spot."""
        return reports - self.spot if self.plane is None else self.plane.to_xy(reports)

    def at(self, offset: FloatArray) -> FloatArray:
        """Return the place so many metres away."""
        return self.spot + offset if self.plane is None else self.plane.to_lonlat(offset[None])[0]

    def see(self, reports: FloatArray, origin: FloatArray | float = 0.0) -> Seen:
        """Return reports as they came, and in metres around an origin near the spot."""
        return Seen(reports, self.to_xy(reports) - origin)


def trials_at(here: Vicinity, sample: Sampler, *, epsilon: float, draws: int) -> list[Trial]:
    """Return all trials around a place. Some take draws of their own to find out where to look."""
    trials = [_pair(here, sample, FAR / epsilon * _direction(bearing), draws) for bearing in BEARINGS]
    trials += [_jump(here, sample, _direction(bearing), FAR / epsilon, draws) for bearing in LINES]
    trials.append(_rows(here, sample, FAR / epsilon * _direction(BEARINGS[0]), max(2, draws // 4)))
    trials.append(_calls(here, sample, NEAR / epsilon * _direction(BEARINGS[0]), min(draws, CALLS)))
    return trials


def as_sampler(mechanism: Mechanism | Callable[[FloatArray], ArrayLike], rng: RandomnessLike = None) -> Sampler:
    """Return a sampler that hands the randomness on to a mechanism, and checks what it returns."""
    call = _caller(mechanism, rng)

    def sample(points: FloatArray) -> FloatArray:
        reports = as_points(call(points.copy()), "reports")
        if len(reports) != len(points):
            raise InvalidInputError(
                f"mechanism must return one report per point, got {len(reports)} for {len(points)}"
            )
        return reports

    return sample


def _caller(
    mechanism: Mechanism | Callable[[FloatArray], ArrayLike], rng: RandomnessLike
) -> Callable[[FloatArray], ArrayLike]:
    if hasattr(mechanism, "sample"):
        if rng is None:
            return mechanism.sample
        source = as_randomness(rng, 0)
        # A generator goes on from call to call; a seed would start again.
        return partial(
            mechanism.sample, rng=source.generator if isinstance(source, SimulatedRandomness) else source
        )
    if not callable(mechanism):
        raise InvalidInputError("mechanism must have a sample method or be callable")
    return mechanism


def _pair(here: Vicinity, sample: Sampler, offset: FloatArray, draws: int) -> Trial:
    """Return the plain trial: many reports of one place in a call, and many of the other."""

    def seen(place: FloatArray, count: int) -> Seen:
        return here.see(sample(np.tile(place, (count, 1))))

    return Trial(here.spot, here.at(offset), float(np.hypot(*offset)), offset, draws, "", seen)


def _jump(here: Vicinity, sample: Sampler, along: FloatArray, length: float, draws: int) -> Trial:
    """Return the trial of two close places between which reports jump most, on a line from the spot.

    A truth that is rounded before the noise jumps where it is rounded the other way.
    """
    count = max(100, min(draws, SEARCH) // 30)
    low, high = 0.0, length
    for _ in range(LEVELS):
        steps = np.linspace(low, high, PARTS + 1)
        means = [
            float((here.to_xy(sample(np.tile(here.at(step * along), (count, 1)))) @ along).mean())
            for step in steps
        ]
        largest = int(np.argmax(np.diff(means)))
        low, high = float(steps[largest]), float(steps[largest + 1])

    def seen(place: FloatArray, number: int) -> Seen:
        return here.see(sample(np.tile(place, (number, 1))), low * along)

    places = (here.at(low * along), here.at(high * along))
    return Trial(*places, high - low, length * along, draws, ", where reports jump", seen)


def _rows(here: Vicinity, sample: Sampler, offset: FloatArray, draws: int) -> Trial:
    """Return the trial of two rows of a call: the second one's place is the truth or the other.

    Independent noise is as private in pairs as alone. Noise that rows share is gone from their difference, or from
    their sum if it is shared with the opposite sign.
    """
    lag, sign = _most_alike(here.to_xy(sample(np.tile(here.spot, (min(max(draws, 2), SEARCH), 1)))))

    def seen(place: FloatArray, count: int) -> Seen:
        first = np.arange(2 * lag * -(-count // lag)) % (2 * lag) < lag
        xy = here.to_xy(sample(np.where(first[:, None], here.spot, place)))
        both = xy[~first][:count] - sign * xy[first][:count]
        return Seen(both, both)

    how = f", of two rows {lag} apart, {'one minus the other' if sign > 0 else 'added'}"
    return Trial(here.spot, here.at(offset), float(np.hypot(*offset)), offset, draws, how, seen)


def _calls(here: Vicinity, sample: Sampler, offset: FloatArray, draws: int) -> Trial:
    """Return the trial of two calls with one point each: noise that starts again leaves their difference."""

    def seen(place: FloatArray, count: int) -> Seen:
        reports = [sample(point[None]) for _ in range(count) for point in (here.spot, place)]
        xy = here.to_xy(np.concatenate(reports))
        both = xy[1::2] - xy[::2]
        return Seen(both, both)

    how = ", of two calls, one minus the other"
    return Trial(here.spot, here.at(offset), float(np.hypot(*offset)), offset, draws, how, seen)


def _most_alike(noise: FloatArray) -> tuple[int, int]:
    """Return how many rows apart noise is most alike, and 1, or -1 if it is most opposite."""
    count = len(noise)
    spectrum = np.fft.rfft(noise, 2 * count, axis=0)
    products = np.fft.irfft((spectrum * spectrum.conj()).real, axis=0)[:count].sum(axis=1)
    # Few pairs of rows are far apart: their sum must stand out from its own spread.
    lags = np.arange(1, max(2, count - count // 8))
    likeness = products[lags] / np.sqrt(count - lags)
    best = int(np.argmax(np.abs(likeness)))
    return int(lags[best]), 1 if likeness[best] >= 0 else -1


def _direction(bearing: float) -> FloatArray:
    """Return the unit vector of a bearing."""
    angle = math.radians(bearing)
    return np.array([math.cos(angle), math.sin(angle)])
