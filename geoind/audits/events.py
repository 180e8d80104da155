"""Sets of reports by which an audit tells two places apart."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray

__all__ = ["Event", "bound", "choose_event"]

Score: TypeAlias = Callable[[FloatArray], FloatArray]
Both: TypeAlias = tuple[FloatArray, FloatArray]
"""Reports from the first and from the second place, in metres around the first."""

SHARES = (0.5, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 0.003)
"""How much of the first place's reports a candidate event holds."""

CELLS = 12
"""Cells of the learned event per distance of the pair."""

SPAN = 4
"""The learned event's map ends this many distances from the first place."""


@dataclass(frozen=True)
class Event:
    """The reports whose score is at least a threshold."""

    name: str
    score: Score
    threshold: float

    def contains(self, xy: FloatArray) -> npt.NDArray[np.bool_]:
        """Return for each report whether it belongs to the event."""
        return np.asarray(self.score(xy) >= self.threshold)


def bound(here: int, there: int, draws: int, risk: float) -> float:
    """Return a lower bound on ln(p / q) from hits among `draws` each, wrong with probability `risk` at most.

    Clopper and Pearson's intervals, half of the risk for each side.

    Examples
    --------
    >>> round(bound(900, 300, 1000, 0.05), 3)
    0.982
    """
    from scipy.special import betaincinv

    if here == 0:
        return -math.inf
    low = betaincinv(here, draws - here + 1, risk / 2)
    high = 1.0 if there == draws else betaincinv(there + 1, draws - there, 1 - risk / 2)
    return float(math.log(low / high))


def choose_event(fit: Both, select: Both, offset: FloatArray) -> Event:
    """Return the event that shows most on the draws `select`; what is learned is learned from `fit`.

    Parameters
    ----------
    fit, select : pairs of (n, 2) arrays
        Independent draws from both places, in metres around the first.
    offset : (2,) array
        The second place, seen from the first.
    """
    best, shown = Event("every report", lambda xy: np.zeros(len(xy)), 0.0), -math.inf
    for name, score in _scores(fit, offset).items():
        here, there = (score(xy) for xy in select)
        for threshold in np.unique(np.quantile(here, 1 - np.array(SHARES))):
            hits = int((here >= threshold).sum()), int((there >= threshold).sum())
            value = bound(*hits, len(here), 0.01)
            if value > shown:
                best, shown = Event(name, score, float(threshold)), value
    return best


def _scores(fit: Both, offset: FloatArray) -> dict[str, Score]:
    """Return what reports can be ranked by, by name."""
    distance = float(np.hypot(*offset))
    direction = offset / distance
    # An axis along which the two places do not differ takes no part in the corner.
    along = np.abs(direction) > 1e-9

    def corner(xy: FloatArray) -> FloatArray:
        return np.asarray((-xy * np.sign(direction))[:, along].min(axis=1))

    return {
        "closer to the truth": lambda xy: np.hypot(*(xy - offset).T) - np.hypot(*xy.T),
        "right at the truth": lambda xy: -np.hypot(*xy.T),
        "behind the truth": lambda xy: -(xy @ direction),
        "behind the truth on every axis": corner,
        "the same report again": _repeats(fit),
        "learned cells": _learned(fit, direction, distance),
    }


def _repeats(fit: Both) -> Score:
    """Return a score that is one for the report which the first place gave most often."""
    places, counts = np.unique(fit[0], axis=0, return_counts=True)
    usual = places[np.argmax(counts)]
    return lambda xy: (xy == usual).all(axis=1).astype(np.float64)


def _learned(fit: Both, direction: FloatArray, distance: float) -> Score:
    """Return the log-ratio of the counts of both places, cell by cell of a map along the pair."""
    turn = np.array([direction, [-direction[1], direction[0]]])
    width = 2 * SPAN * CELLS

    def cell(xy: FloatArray) -> npt.NDArray[np.int64]:
        steps = np.floor(xy @ turn.T * (CELLS / distance)) + SPAN * CELLS
        column, row = np.clip(steps, 0, width - 1).astype(np.int64).T
        return np.asarray(row * width + column)

    here, there = (np.bincount(cell(xy), minlength=width * width) for xy in fit)
    # Less than one count in doubt: cells that were hardly seen rank in the middle.
    ratio = np.log((here + 0.5) / (there + 0.5)) * ((here + there) > 0)
    return lambda xy: ratio[cell(xy)]
