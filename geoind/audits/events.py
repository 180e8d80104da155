"""Sets of reports by which an audit tells two places apart."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from geoind.arrays import FloatArray

__all__ = ["Event", "Seen", "bound", "choose_event"]


class Seen(NamedTuple):
    """Reports as they came, and in metres around the first place."""

    raw: FloatArray
    xy: FloatArray


Score: TypeAlias = Callable[[Seen], FloatArray]
Both: TypeAlias = tuple[Seen, Seen]
"""Reports from the first and from the second place."""

SHARES = (0.5, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 0.003, 0.002, 0.001, 0.0005)
"""How much of the first place's reports a candidate event holds."""

CELLS = 12
"""Cells of the learned event per distance of the pair."""

SPAN = 4
"""The learned event's map ends this many distances from the first place."""


DIGITS = 6
"""Low digits are looked at down to this many powers of ten below the width of the noise."""

BINS = 64
"""In which a remainder may lie."""


@dataclass(frozen=True)
class Event:
    """The reports whose score is at least a threshold."""

    name: str
    score: Score
    threshold: float

    def contains(self, reports: Seen) -> npt.NDArray[np.bool_]:
        """Return for each report whether it belongs to the event."""
        return np.asarray(self.score(reports) >= self.threshold)


def bound(here: int, there: int, draws: int, risk: float) -> float:
    """Return a lower bound on ln(p / q) from hits among `draws` each, wrong with probability `risk` at most.

    Clopper and Pearson's intervals, half of the risk for each side.

    Examples
    --------
    >>> round(bound(900, 300, 1000, 0.05), 3)
    0.982
    """
    if here == 0:
        return -math.inf
    low = betaincinv(here, draws - here + 1, risk / 2)
    high = 1.0 if there == draws else betaincinv(there + 1, draws - there, 1 - risk / 2)
    return float(math.log(low / high))


def choose_event(fit: Both, select: Both, offset: FloatArray) -> Event:
    """Return the event that shows most on the draws `select`; what is learned is learned from `fit`.

    Parameters
    ----------
    fit, select : pairs of Seen
        Independent draws from both places.
    offset : (2,) array
        The second place, seen from the first.
    """
    best, shown = Event("every report", lambda reports: np.zeros(len(reports.xy)), 0.0), -math.inf
    for name, score in _scores(fit, offset):
        here, there = (score(reports) for reports in select)
        for threshold in np.unique(np.quantile(here, 1 - np.array(SHARES))):
            hits = int((here >= threshold).sum()), int((there >= threshold).sum())
            value = bound(*hits, len(here), 0.01)
            if value > shown:
                best, shown = Event(name, score, float(threshold)), value
    return best


def _scores(fit: Both, offset: FloatArray) -> Iterator[tuple[str, Score]]:
    """Yield what reports can be ranked by, with its name."""
    distance = float(np.hypot(*offset))
    direction = offset / distance
    # An axis along which the two places do not differ takes no part in the corner.
    along = np.abs(direction) > 1e-9

    def corner(reports: Seen) -> FloatArray:
        return np.asarray((-reports.xy * np.sign(direction))[:, along].min(axis=1))

    def to_truth(reports: Seen) -> FloatArray:
        return np.asarray(np.hypot(*reports.xy.T))

    def to_other(reports: Seen) -> FloatArray:
        return np.asarray(np.hypot(*(reports.xy - offset).T))

    yield "closer to the truth", lambda reports: to_other(reports) - to_truth(reports)
    yield "right at the truth", lambda reports: -to_truth(reports)
    yield "out of the other place's reach", to_other
    yield "behind the truth", lambda reports: -(reports.xy @ direction)
    yield "behind the truth on every axis", corner
    yield "the same report again", _repeats(fit)
    yield "learned cells", _learned(fit, direction, distance)
    yield from _low_digits(fit)


def _repeats(fit: Both) -> Score:
    """Return a score that is one for the report which the first place gave most often."""
    places, counts = np.unique(fit[0].raw, axis=0, return_counts=True)
    usual = places[np.argmax(counts)]
    return lambda reports: (reports.raw == usual).all(axis=1).astype(np.float64)


def _learned(fit: Both, direction: FloatArray, distance: float) -> Score:
    """Return how much likelier a cell of a map along the pair is at the first place."""
    turn = np.array([direction, [-direction[1], direction[0]]])
    width = 2 * SPAN * CELLS

    def cell(reports: Seen) -> npt.NDArray[np.int64]:
        steps = np.floor(reports.xy @ turn.T * (CELLS / distance)) + SPAN * CELLS
        column, row = np.clip(steps, 0, width - 1).astype(np.int64).T
        return np.asarray(row * width + column)

    return _log_ratio(fit, cell, width * width)


def _low_digits(fit: Both) -> Iterator[tuple[str, Score]]:
    """Yield how much likelier a coordinate's remainder is at the first place, for decimal and binary steps.

    Noise that ends on a lattice of its own leaves the truth's remainder as it was, and so does a report that keeps
    the last digits of the truth.
    """
    spread = float(np.abs(fit[0].raw - np.median(fit[0].raw, axis=0)).mean()) or 1.0
    tens, twos = math.floor(math.log10(spread)), math.floor(math.log2(spread))
    steps = [10.0**power for power in range(tens - DIGITS, tens + 2)]
    steps += [2.0 ** (twos - lower) for lower in (0, 10, 20)]
    for axis in (0, 1):
        for step in steps:
            name = f"the remainder of coordinate {axis + 1} by {step:.6g}"
            yield name, _log_ratio(fit, partial(_remainder, axis=axis, step=step), BINS)


def _remainder(reports: Seen, *, axis: int, step: float) -> npt.NDArray[np.int64]:
    """Return the bin of a coordinate's remainder."""
    steps = reports.raw[:, axis] / step
    return np.minimum(((steps - np.floor(steps)) * BINS).astype(np.int64), BINS - 1)


def _log_ratio(fit: Both, bin_of: Callable[[Seen], npt.NDArray[np.int64]], count: int) -> Score:
    """Return the log-ratio of the counts of both places, bin by bin."""
    here, there = (np.bincount(bin_of(reports), minlength=count) for reports in fit)
    # Less than one count in doubt: bins that were hardly seen rank in the middle.
    ratio = np.log((here + 0.5) / (there + 0.5)) * ((here + there) > 0)
    return lambda reports: ratio[bin_of(reports)]
