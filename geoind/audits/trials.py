"""Trials of an audit: pairs of places, reports drawn at both, and events whose probabilities differ most.

A trial compares reports of two places: of many rows of a call, of pairs of rows, or of pairs of calls. An event is
a set of reports, chosen on draws of its own; fresh draws bound its two probabilities.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from geoind.arrays import ArrayLike, FloatArray, as_points
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism, RandomnessLike, as_randomness
from geoind.space.projection import Projection

__all__ = [
    "FAR",
    "SHARES",
    "Finding",
    "Reports",
    "as_sampler",
    "bound",
    "choose_event",
    "finding_of",
    "local_plane",
    "trials_at",
]

FAR = math.sqrt(6.2)
"""Distance of a pair in units of 1 / epsilon: about 2.5, where the bound is largest. Not a round number, so that
two places differ in their low digits too."""

NEAR = 0.5
"""Distance where few calls give the largest bound."""

BEARINGS = (0.0, 45.0, 90.0, 135.0)
"""Directions of the pairs, in degrees from east to north."""

LINES = (0.0, 135.0)
"""Directions of the search for jumps: across borders in the east, in the west and in the north."""

LEVELS, PARTS = 3, 8
"""Number of divisions of a line in the search for its largest jump, and parts of each division."""

SEARCH = 1_000_000
"""Largest number of reports in the search for noise that rows share, or for the largest jump of a line."""

CALLS = 300
"""Pairs of calls with one point each."""

SHARES = (0.5, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 0.003, 0.002, 0.001, 0.0005)
"""Shares of the first place's reports in the candidate events."""

CELLS = 12
"""Cells of the learned event per distance of the pair."""

SPAN = 4
"""Extent of the learned event's map from the first place, in distances of the pair."""

DIGITS = 6
"""Powers of ten below the width of the noise down to which low digits are examined."""

BINS = 64
"""Bins of a remainder."""

CHOOSING = 500_000
"""Largest number of reports from which events are learned, and again of those by which one is chosen."""

BLOCK = 1_000_000
"""Reports that are processed together, which bounds memory."""

Sampler = Callable[[FloatArray], FloatArray]
"""Returns one report for each of (n, 2) places."""


class Finding(NamedTuple):
    """The lower bound on epsilon, per metre, from one pair of places, and the event that gives it."""

    epsilon: float
    truth: tuple[float, float]
    other: tuple[float, float]
    distance: float
    event: str
    hits: tuple[int, int]
    draws: int


Reports: TypeAlias = tuple[FloatArray, FloatArray]
"""Reports as drawn, and in metres relative to the first place."""
_Score: TypeAlias = Callable[[Reports], FloatArray]
_Both: TypeAlias = tuple[Reports, Reports]
"""Reports from the first and from the second place."""


@dataclass(frozen=True)
class _Trial:
    """Two places, and a sampler of reports that should not distinguish them.

    Attributes
    ----------
    truth, other : (2,) arrays
        The two places.
    distance : float
        Between them, in metres.
    offset : (2,) array
        The second place relative to the first one, for the events, in metres.
    draws : int
        Reports per place that bound the probabilities.
    how : str
        Description of the reports, for the finding.
    draw : callable
        Returns a number of reports of one of the two places.
    """

    truth: FloatArray
    other: FloatArray
    distance: float
    offset: FloatArray
    draws: int
    how: str
    draw: Callable[[FloatArray, int], Reports]


def local_plane(place: FloatArray, *, lonlat: bool) -> "_LocalPlane":
    """Return metres around a place, which is in degrees if `lonlat`."""
    return _LocalPlane(place, Projection(*place) if lonlat else None)


@dataclass(frozen=True)
class _LocalPlane:
    """Metres around a place, which is in metres or, with a projection, in degrees."""

    spot: FloatArray
    plane: Projection | None

    def to_xy(self, reports: FloatArray) -> FloatArray:
        """Return reports in metres relative to the place."""
        return reports - self.spot if self.plane is None else self.plane.to_xy(reports)

    def at(self, offset: FloatArray) -> FloatArray:
        """Return the place at an offset in metres."""
        return self.spot + offset if self.plane is None else self.plane.to_lonlat(offset[None])[0]

    def located(self, reports: FloatArray, origin: FloatArray | float = 0.0) -> Reports:
        """Return reports as drawn, and in metres relative to an origin near the place."""
        return reports, self.to_xy(reports) - origin


def trials_at(here: _LocalPlane, sample: Sampler, *, epsilon: float, draws: int) -> list[_Trial]:
    """Return all trials around a place. Some draw reports to choose their second place."""
    trials = [_pair(here, sample, FAR / epsilon * _direction(bearing), draws) for bearing in BEARINGS]
    trials += [_jump(here, sample, _direction(bearing), FAR / epsilon, draws) for bearing in LINES]
    trials.append(_rows(here, sample, FAR / epsilon * _direction(BEARINGS[0]), max(2, draws // 4)))
    trials.append(_calls(here, sample, NEAR / epsilon * _direction(BEARINGS[0]), min(draws, CALLS)))
    return trials


def as_sampler(mechanism: Mechanism | Callable[[FloatArray], ArrayLike], rng: RandomnessLike = None) -> Sampler:
    """Return a sampler that passes the randomness to a mechanism and checks its reports."""
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
        source: RandomnessLike = as_randomness(rng, 0)
        if isinstance(rng, (int, np.integer, np.random.Generator)):
            # A generator continues from call to call; a seed would start again.
            source = np.random.default_rng(rng)
        return partial(mechanism.sample, rng=source)
    if not callable(mechanism):
        raise InvalidInputError("mechanism must have a sample method or be callable")
    return mechanism


def _pair(here: _LocalPlane, sample: Sampler, offset: FloatArray, draws: int) -> _Trial:
    """Return the trial of many reports of one place in a call, and many of the other."""

    def draw(place: FloatArray, count: int) -> Reports:
        return here.located(sample(np.tile(place, (count, 1))))

    return _Trial(here.spot, here.at(offset), float(np.hypot(*offset)), offset, draws, "", draw)


def _jump(here: _LocalPlane, sample: Sampler, along: FloatArray, length: float, draws: int) -> _Trial:
    """Return the trial of two close places with the largest difference of mean reports, on a line from the place.

    A true location that is rounded before the noise makes such a jump at a rounding border.
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

    def draw(place: FloatArray, number: int) -> Reports:
        return here.located(sample(np.tile(place, (number, 1))), low * along)

    places = (here.at(low * along), here.at(high * along))
    return _Trial(*places, high - low, length * along, draws, ", where reports jump", draw)


def _rows(here: _LocalPlane, sample: Sampler, offset: FloatArray, draws: int) -> _Trial:
    """Return the trial of two rows of a call, the second one at the first or at the other place.

    Independent noise is as private in pairs as alone. Noise that rows share cancels in their difference, or in
    their sum if it has the opposite sign.
    """
    lag, sign = _most_alike(here.to_xy(sample(np.tile(here.spot, (min(max(draws, 2), SEARCH), 1)))))

    def draw(place: FloatArray, count: int) -> Reports:
        first = np.arange(2 * lag * -(-count // lag)) % (2 * lag) < lag
        xy = here.to_xy(sample(np.where(first[:, None], here.spot, place)))
        both = xy[~first][:count] - sign * xy[first][:count]
        return both, both

    how = f", of two rows {lag} apart, {'one minus the other' if sign > 0 else 'added'}"
    return _Trial(here.spot, here.at(offset), float(np.hypot(*offset)), offset, draws, how, draw)


def _calls(here: _LocalPlane, sample: Sampler, offset: FloatArray, draws: int) -> _Trial:
    """Return the trial of two calls with one point each: noise that restarts cancels in their difference."""

    def draw(place: FloatArray, count: int) -> Reports:
        reports = [sample(point[None]) for _ in range(count) for point in (here.spot, place)]
        xy = here.to_xy(np.concatenate(reports))
        both = xy[1::2] - xy[::2]
        return both, both

    how = ", of two calls, one minus the other"
    return _Trial(here.spot, here.at(offset), float(np.hypot(*offset)), offset, draws, how, draw)


def _most_alike(noise: FloatArray) -> tuple[int, int]:
    """Return the lag of the largest autocorrelation of the noise, and its sign."""
    count = len(noise)
    spectrum = np.fft.rfft(noise, 2 * count, axis=0)
    products = np.fft.irfft((spectrum * spectrum.conj()).real, axis=0)[:count].sum(axis=1)
    # Few pairs of rows are far apart: their sum is divided by its own standard deviation.
    lags = np.arange(1, max(2, count - count // 8))
    likeness = products[lags] / np.sqrt(count - lags)
    best = int(np.argmax(np.abs(likeness)))
    return int(lags[best]), 1 if likeness[best] >= 0 else -1


def _direction(bearing: float) -> FloatArray:
    """Return the unit vector of a bearing."""
    angle = math.radians(bearing)
    return np.array([math.cos(angle), math.sin(angle)])


def finding_of(trial: "_Trial", risk: float, allowed: float) -> Finding:
    """Return the bound of one trial: one set of draws chooses the event, another bounds its probabilities.

    `allowed` is the part of the loss that the mechanism may have in addition to epsilon times distance.
    """
    half = min(-(-trial.draws // 2), CHOOSING)

    def reports(count: int) -> _Both:
        return trial.draw(trial.truth, count), trial.draw(trial.other, count)

    event = choose_event(reports(half), reports(half), trial.offset)
    here = there = 0
    for start in range(0, trial.draws, BLOCK):
        seen_here, seen_there = reports(min(BLOCK, trial.draws - start))
        here += int(event.contains(seen_here).sum())
        there += int(event.contains(seen_there).sum())
    loss = max(0.0, bound(here, there, trial.draws, risk) - allowed)
    truth, other = ((float(place[0]), float(place[1])) for place in (trial.truth, trial.other))
    name = event.name + trial.how
    return Finding(loss / trial.distance, truth, other, trial.distance, name, (here, there), trial.draws)


@dataclass(frozen=True)
class _Event:
    """The reports whose score is at least a threshold."""

    name: str
    score: _Score
    threshold: float

    def contains(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Return for each report whether it belongs to the event."""
        return np.asarray(self.score(reports) >= self.threshold)


def bound(here: int, there: int, draws: int, risk: float, *, delta: float = 0.0) -> float:
    """Return a lower bound on ln((p - delta) / q) from hits among `draws` each.

    It is wrong with probability `risk` at most.

    Intervals of Clopper and Pearson, half of the risk for each side.

    Examples
    --------
    >>> round(bound(900, 300, 1000, 0.05), 3)
    0.982
    """
    low = betaincinv(here, draws - here + 1, risk / 2) - delta if here else 0.0
    high = 1.0 if there == draws else betaincinv(there + 1, draws - there, 1 - risk / 2)
    return float(math.log(low / high)) if low > 0 else -math.inf


def choose_event(fit: _Both, select: _Both, offset: FloatArray) -> _Event:
    """Return the event with the largest bound on the draws `select`, among events learned from `fit`.

    Parameters
    ----------
    fit, select : pairs of Reports
        Independent draws from both places.
    offset : (2,) array
        The second place relative to the first one.
    """
    best, shown = _Event("every report", lambda reports: np.zeros(len(reports[1])), 0.0), -math.inf
    for name, score in _scores(fit, offset):
        here, there = (score(reports) for reports in select)
        for threshold in np.unique(np.quantile(here, 1 - np.array(SHARES))):
            hits = int((here >= threshold).sum()), int((there >= threshold).sum())
            value = bound(*hits, len(here), 0.01)
            if value > shown:
                best, shown = _Event(name, score, float(threshold)), value
    return best


def _scores(fit: _Both, offset: FloatArray) -> Iterator[tuple[str, _Score]]:
    """Yield scores of reports, with their names."""
    distance = float(np.hypot(*offset))
    direction = offset / distance
    # An axis along which the two places do not differ is not part of the corner.
    along = np.abs(direction) > 1e-9

    def corner(reports: Reports) -> FloatArray:
        return np.asarray((-reports[1] * np.sign(direction))[:, along].min(axis=1))

    def to_truth(reports: Reports) -> FloatArray:
        return np.asarray(np.hypot(*reports[1].T))

    def to_other(reports: Reports) -> FloatArray:
        return np.asarray(np.hypot(*(reports[1] - offset).T))

    yield "closer to the truth", lambda reports: to_other(reports) - to_truth(reports)
    yield "right at the truth", lambda reports: -to_truth(reports)
    yield "out of the other place's reach", to_other
    yield "behind the truth", lambda reports: -(reports[1] @ direction)
    yield "behind the truth on every axis", corner
    yield "the same report again", _repeats(fit)
    yield "learned cells", _learned(fit, direction, distance)
    yield from _low_digits(fit)


def _repeats(fit: _Both) -> _Score:
    """Return a score that is 1 for the most frequent report of the first place."""
    places, counts = np.unique(fit[0][0], axis=0, return_counts=True)
    usual = places[np.argmax(counts)]
    return lambda reports: (reports[0] == usual).all(axis=1).astype(np.float64)


def _learned(fit: _Both, direction: FloatArray, distance: float) -> _Score:
    """Return the log-ratio of the counts of both places in the cells of a map along the pair."""
    turn = np.array([direction, [-direction[1], direction[0]]])
    width = 2 * SPAN * CELLS

    def cell(reports: Reports) -> npt.NDArray[np.int64]:
        steps = np.floor(reports[1] @ turn.T * (CELLS / distance)) + SPAN * CELLS
        column, row = np.clip(steps, 0, width - 1).astype(np.int64).T
        return np.asarray(row * width + column)

    return _log_ratio(fit, cell, width * width)


def _low_digits(fit: _Both) -> Iterator[tuple[str, _Score]]:
    """Yield how much likelier a coordinate's remainder is at the first place, for decimal and binary steps.

    Noise that ends on a lattice of its own leaves the truth's remainder as it was, and so does a report that keeps
    the last digits of the truth.
    """
    spread = float(np.abs(fit[0][0] - np.median(fit[0][0], axis=0)).mean()) or 1.0
    tens, twos = math.floor(math.log10(spread)), math.floor(math.log2(spread))
    steps = [10.0**power for power in range(tens - DIGITS, tens + 2)]
    steps += [2.0 ** (twos - lower) for lower in (0, 10, 20)]
    for axis in (0, 1):
        for step in steps:
            name = f"the remainder of coordinate {axis + 1} by {step:.6g}"
            yield name, _log_ratio(fit, partial(_remainder, axis=axis, step=step), BINS)


def _remainder(reports: Reports, *, axis: int, step: float) -> npt.NDArray[np.int64]:
    """Return the bin of a coordinate's remainder."""
    steps = reports[0][:, axis] / step
    return np.minimum(((steps - np.floor(steps)) * BINS).astype(np.int64), BINS - 1)


def _log_ratio(fit: _Both, bin_of: Callable[[Reports], npt.NDArray[np.int64]], count: int) -> _Score:
    """Return the log-ratio of the counts of both places, bin by bin."""
    here, there = (np.bincount(bin_of(reports), minlength=count) for reports in fit)
    # Half a count is added, so that bins with few reports rank in the middle.
    ratio = np.log((here + 0.5) / (there + 0.5)) * ((here + there) > 0)
    return lambda reports: ratio[bin_of(reports)]
