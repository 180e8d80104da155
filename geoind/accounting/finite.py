"""The least delta of a finite channel, measured over all pairs of inputs within a radius."""

import math
from collections.abc import Iterator

import numpy as np

from geoind.arrays import IntArray, as_finite, as_positive
from geoind.channels.channel import Channel, WorstCase
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError

__all__ = ["pairs_within", "tight_delta"]

LARGEST_EXPONENT = 700.0
"""e^level of a larger level is not a double; only ratios with denormal numbers are larger."""


def tight_delta(channel: Channel, *, level: float, radius: float, distance: Distance = euclidean) -> WorstCase:
    """Return the least delta with which inputs up to `radius` metres apart keep a level.

    The value is exact: every pair of inputs within the radius is compared, in both directions.

    Parameters
    ----------
    channel : Channel
    level : float
        Not negative. P(S | x) <= e^level * P(S | x') + delta for every set S of reports.
    radius : float
        In metres, between the inputs; or in the unit of `distance`.
    distance : Distance
        Metric between inputs. With `distances.hamming` and radius 1 the inputs are neighbouring databases.

    Returns
    -------
    WorstCase
        A float with the worst pair: P(S | truth) = e^level * P(S | other) + delta for some set S of reports.

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
    worst, matrix = WorstCase(0.0, 0, 0), channel.matrix
    for truth, others in pairs_within(channel, as_positive(radius, "radius"), distance):
        deltas = np.maximum(matrix[truth] - factor * matrix[others], 0).sum(axis=1)
        most = int(np.argmax(deltas))
        if deltas[most] > worst:
            worst = WorstCase(min(1.0, float(deltas[most])), truth, int(others[most]))
    return worst


def pairs_within(
    channel: Channel, radius: float, distance: Distance = euclidean
) -> Iterator[tuple[int, IntArray]]:
    """Yield each input with the other inputs within a radius of it."""
    apart = np.asarray(distance(channel.inputs.xy, channel.inputs.xy), dtype=np.float64)
    if apart.shape != (len(channel.inputs),) * 2 or not (apart >= 0).all():
        raise InvalidInputError("distance must return a non-negative number for each pair of sites")
    for truth, row in enumerate(apart):
        near = np.flatnonzero(row <= radius)
        others = near[near != truth]
        if len(others):
            yield truth, others
