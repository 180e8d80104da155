"""The privacy loss of a finite channel between its worst two inputs within a radius, found by trying all."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geoind.accounting.losses import Atoms
from geoind.arrays import FloatArray, IntArray, as_finite, as_positive
from geoind.channels.channel import Channel
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError

__all__ = ["ChannelLoss", "TightDelta", "tight_delta"]

LARGEST_EXPONENT = 700.0
"""The factor of a level beyond it is not a double; no ratio of two doubles is as large, but for denormal ones."""


class TightDelta(float):
    """A measured delta that knows where it is attained.

    Attributes
    ----------
    truth, other : int
        Numbers of the two inputs: a set of reports is more likely at `truth` than e^level times its probability at
        `other` by delta.
    """

    truth: int
    other: int

    def __new__(cls, delta: float, truth: int, other: int) -> "TightDelta":
        """Return the number with its pair."""
        self = super().__new__(cls, delta)
        self.truth, self.other = truth, other
        return self

    def __reduce__(self) -> tuple[type["TightDelta"], tuple[float, int, int]]:
        return TightDelta, (float(self), self.truth, self.other)


def tight_delta(channel: Channel, *, level: float, radius: float, distance: Distance = euclidean) -> TightDelta:
    """Return the least delta with which inputs up to `radius` metres apart keep a level.

    Exact: every pair of inputs within the radius is tried, in both directions.

    Parameters
    ----------
    channel : Channel
    level : float
        Not negative: sets of reports differ by a factor e^level, and by delta.
    radius : float
        In metres, between the inputs; or in the unit of `distance`.
    distance : Distance
        The metric of the promise: with `distances.hamming` and radius 1 delta is that of neighbouring databases.

    Returns
    -------
    TightDelta
        A float with the worst pair: `truth` and `other`.

    Examples
    --------
    >>> from geoind import Grid
    >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> coin = Channel(street, street, [[0.75, 0.25], [0.25, 0.75]])
    >>> round(tight_delta(coin, level=math.log(2), radius=100), 6)
    0.25
    >>> float(tight_delta(coin, level=math.log(2), radius=99))
    0.0
    """
    level = as_finite(level, "level")
    if level < 0:
        raise InvalidInputError(f"level must not be negative, got {level!r}")
    factor = math.exp(min(level, LARGEST_EXPONENT))
    worst = TightDelta(0.0, 0, 0)
    for truth, others in _pairs(channel, as_positive(radius, "radius"), distance):
        deltas = np.maximum(channel.matrix[truth] - factor * channel.matrix[others], 0).sum(axis=1)
        most = int(np.argmax(deltas))
        if deltas[most] > worst:
            worst = TightDelta(min(1.0, float(deltas[most])), truth, int(others[most]))
    return worst


def _pairs(channel: Channel, radius: float, distance: Distance = euclidean) -> Iterator[tuple[int, IntArray]]:
    """Yield for each input those within a radius, but for itself."""
    apart = np.asarray(distance(channel.inputs.xy, channel.inputs.xy), dtype=np.float64)
    if apart.shape != (len(channel.inputs),) * 2 or not (apart >= 0).all():
        raise InvalidInputError("distance must return a non-negative number for each pair of sites")
    for truth, row in enumerate(apart):
        near = np.flatnonzero(row <= radius)
        others = near[near != truth]
        if len(others):
            yield truth, others


@dataclass(frozen=True, eq=False)
class ChannelLoss:
    """The privacy loss of a finite channel between inputs up to `radius` apart.

    From above it is a distribution that dominates every pair: its delta at a level is the largest one of all
    pairs, as a function convex like theirs, so that reports at changing places are covered as well. From below it
    is that of the pair with the largest mean loss.
    """

    channel: Channel
    radius: float
    doubt = 0.0

    @cached_property
    def largest(self) -> float:
        """The largest loss of any report; infinite where one betrays the place."""
        return max((float(losses.max()) for losses, _ in self._losses()), default=0.0)

    @cached_property
    def largest_finite(self) -> float:
        """The largest loss among those that are finite, in size."""
        sizes = (np.abs(losses[np.isfinite(losses)]) for losses, _ in self._losses())
        return max((float(size.max(initial=0.0)) for size in sizes), default=0.0)

    def delta(self, level: float, *, above: bool) -> float:  # noqa: ARG002
        """Return the least delta of one report at a level."""
        return float(tight_delta(self.channel, level=level, radius=self.radius))

    def atoms(self, step: float, *, above: bool) -> Atoms:
        """Return the distribution that dominates, on the grid; or the one of the worst pair."""
        return self._dominating(step) if above else self._worst_pair

    def _losses(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield losses and masses, (others, outputs) each, of every input against those within the radius."""
        for truth, others in _pairs(self.channel, self.radius):
            here = np.broadcast_to(self.channel.matrix[truth], (len(others), len(self.channel.outputs)))
            with np.errstate(divide="ignore", invalid="ignore"):
                losses = np.log(here) - np.log(self.channel.matrix[others])
            # What cannot be reported here loses nothing.
            yield np.where(here > 0, losses, -math.inf), here

    @cached_property
    def _worst_pair(self) -> Atoms:
        worst, most = Atoms(np.zeros(1), np.ones(1)), 0.0
        for losses, masses in self._losses():
            means = np.multiply(masses, losses, where=masses > 0, out=np.zeros(losses.shape)).sum(axis=1)
            pair = int(np.argmax(means))
            if means[pair] > most:
                most, held = float(means[pair]), np.isfinite(losses[pair])
                beyond = float(masses[pair][losses[pair] == math.inf].sum())
                worst = Atoms(losses[pair][held], masses[pair][held], beyond)
        return worst

    def _dominating(self, step: float) -> Atoms:
        reach = math.ceil(self.largest_finite / step)
        levels = np.asarray(np.arange(-reach, reach + 1) * step)
        highest = np.zeros(len(levels))
        for losses, masses in self._losses():
            for loss, mass in zip(losses, masses, strict=True):
                np.maximum(highest, _curve(loss, mass, levels), out=highest)
        # Between neighbours the curve is a chord in exp(level); its slope is the other place's mass above.
        factors = np.exp(levels)
        above = (highest[:-1] - highest[1:]) / np.diff(factors)
        first = (1 - highest[0]) / factors[0]
        there = -np.diff(np.minimum.accumulate(np.clip(np.concatenate([[first], above, [0.0]]), 0.0, 1.0)))
        # Differences of doubles: each mass is off by a few roundings over a step.
        beyond = float(highest[-1]) + len(levels) * 2.0**-50 / step
        return Atoms(levels, there * factors, min(1.0, beyond))


def _curve(losses: FloatArray, masses: FloatArray, levels: FloatArray) -> FloatArray:
    """Return the least delta of a distribution of losses at each level."""
    order = np.argsort(losses)
    losses, masses = losses[order], masses[order]
    there = masses * np.exp(-np.where(np.isfinite(losses), losses, math.inf))
    start = np.searchsorted(losses, levels, side="right")
    here_above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)[start]
    there_above = np.append(np.cumsum(there[::-1])[::-1], 0.0)[start]
    return np.asarray(np.maximum(here_above - np.exp(levels) * there_above, 0.0))
