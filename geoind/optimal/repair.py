"""From a solver's answer to a channel that keeps its promise as measured."""

from geoind.arrays import FloatArray
from geoind.channels.channel import Channel, tight_epsilon
from geoind.distances import Distance
from geoind.space.sites import Sites

__all__ = ["keep_promise"]

SMALLEST_SHARE = 1e-13
"""Of the channel that is mixed in at first; less would be lost in rounding."""


def keep_promise(
    inputs: Sites, outputs: Sites, matrix: FloatArray, *, epsilon: float, distance: Distance
) -> tuple[Channel, float]:
    """Return a channel whose measured epsilon is at most `epsilon`, and that epsilon.

    Rows are scaled to sum to 1. If that, rounding, or a solver's tolerance breaks the promise by a little, just
    enough of a channel that ignores its input is mixed in: its rows are equal, which draws every ratio towards 1.
    """
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    blind = matrix.max(axis=0) / matrix.max(axis=0).sum()
    channel, share = Channel(inputs, outputs, matrix), 0.0
    # It ends: with a share of 1 all rows are equal, and the measured epsilon is 0.
    while (measured := tight_epsilon(channel, distance)) > epsilon:
        share = min(1.0, max(SMALLEST_SHARE, 4 * share))
        channel = Channel(inputs, outputs, (1 - share) * matrix + share * blind)
    return channel, measured
