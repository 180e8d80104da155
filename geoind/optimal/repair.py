"""From a solver's answer to a channel that keeps its promise as measured."""

import numpy as np

from geoind.arrays import FloatArray
from geoind.channel import Channel, tight_epsilon
from geoind.distances import Distance
from geoind.errors import SolverError
from geoind.sites import Sites

__all__ = ["keep_promise"]


def keep_promise(
    inputs: Sites, outputs: Sites, matrix: FloatArray, *, epsilon: float, distance: Distance
) -> tuple[Channel, float]:
    """Return a channel whose measured epsilon is at most `epsilon`, and that epsilon.

    Rows are scaled to sum to 1. If that, rounding, or a solver's tolerance breaks the promise by a hair, just
    enough of a channel that ignores its input is mixed in: its rows are equal, which draws every ratio towards 1.
    """
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    blind = matrix.max(axis=0) / matrix.max(axis=0).sum()
    for share in (0.0, *np.geomspace(1e-13, 1.0, 14)):
        channel = Channel(inputs, outputs, matrix if not share else (1 - share) * matrix + share * blind)
        measured = tight_epsilon(channel, distance)
        if measured <= epsilon:
            return channel, measured
    raise SolverError(f"no channel with a measured epsilon of at most {epsilon!r} was found")
