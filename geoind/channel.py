"""A finite mechanism: the probability of each report for each true site, as a matrix."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats, frozen
from geoind.distances import Distance, euclidean
from geoind.errors import NotStochasticError, SitesMismatchError
from geoind.sites import Sites

__all__ = ["Channel", "tight_epsilon"]

SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Channel:
    """A read-only row-stochastic matrix between two sets of sites.

    The promise of a channel holds *between its input sites*. Mapping a true location to the closest site
    happens before the noise and is not covered: two points a metre apart on both sides of a cell border
    count as a whole cell apart.

    Parameters
    ----------
    inputs, outputs : Sites
        Where a person may be, and what may be reported.
    matrix : (len(inputs), len(outputs)) array
        `matrix[x, z]` is the probability of report `z` at true site `x`; each row sums to 1.
    """

    inputs: Sites
    outputs: Sites
    matrix: FloatArray

    def __init__(self, inputs: Sites, outputs: Sites, matrix: ArrayLike) -> None:
        array = as_floats(matrix, "matrix")
        if array.shape != (len(inputs), len(outputs)):
            raise SitesMismatchError(
                f"matrix has shape {array.shape}, but there are {len(inputs)} inputs and {len(outputs)} outputs"
            )
        if not (array >= 0).all() or not (np.abs(array.sum(axis=1) - 1) <= SUM_TOLERANCE).all():
            raise NotStochasticError("matrix must not be negative and each row must sum to 1")
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "matrix", frozen(array))

    @cached_property
    def epsilon(self) -> float:
        """The measured privacy loss per metre of Euclidean distance."""
        return tight_epsilon(self)


def tight_epsilon(channel: Channel, distance: Distance = euclidean) -> float:
    """Return the smallest epsilon that the channel keeps: the largest log-ratio per unit of distance."""
    apart = distance(channel.inputs.xy, channel.inputs.xy)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(channel.matrix)
        worst = 0.0
        for x in range(len(apart)):
            gain = np.fmax.reduce(log[x] - log, axis=1, initial=-np.inf)
            rate = np.where(gain > 0, gain / apart[x], 0.0)
            worst = max(worst, float(rate.max()))
    return worst
