"""One parameter turned until a mechanism costs what is wanted."""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.optimize import brentq

from geoind.arrays import as_positive
from geoind.channels.channel import Channel
from geoind.channels.metrics import expected_loss
from geoind.channels.priors import Prior
from geoind.errors import InfeasibleError

__all__ = ["Family", "epsilon_for_loss"]

Family: TypeAlias = Callable[[float], Channel]
"""From a privacy parameter to a channel; the larger the parameter, the smaller the expected loss."""

RELATIVE = 1e-10
WIDEST = 4000.0
"""Largest ratio between the noise's scale and the size of the sites, and between their size and the scale."""


def epsilon_for_loss(family: Family, prior: Prior, *, loss: float) -> float:
    """Return the parameter at which a family of mechanisms has the wanted expected distance.

    Parameters
    ----------
    family : callable
        From epsilon to a channel whose loss falls as epsilon grows.
    prior : Prior
        What the expectation is taken over.
    loss : float
        Wanted expected distance between truth and report, in metres.

    Raises
    ------
    InfeasibleError
        The family cannot be that bad (or that good) however small (or large) epsilon is.

    Examples
    --------
    The planar Laplace that costs as much as cloaking on the paper's grid:

    >>> from geoind import Grid, PlanarLaplace, discretise
    >>> grid = Grid(0, 0, cell=100, columns=9, rows=9)
    >>> epsilon = epsilon_for_loss(
    ...     lambda epsilon: discretise(PlanarLaplace(epsilon), grid), Prior.uniform(grid), loss=107.29838
    ... )
    >>> round(epsilon, 6)
    0.016163
    """
    loss = as_positive(loss, "loss")
    size = float(np.ptp(prior.sites.xy, axis=0).max())
    if not size > 0:
        raise InfeasibleError("a single site has no distance to tune")
    low, high = 1 / (WIDEST * size), WIDEST / size

    def excess(log_epsilon: float) -> float:
        return expected_loss(family(math.exp(log_epsilon)), prior) / loss - 1

    # Widen from a likely place: the extremes are slow and need not be visited.
    near = far = min(max(2 / loss, low), high)
    while excess(math.log(near)) < 0:
        if near <= low:
            raise InfeasibleError(f"no epsilon makes the expected distance as large as {loss:g}")
        far, near = near, max(near / 2, low)
    while excess(math.log(far)) > 0:
        if far >= high:
            raise InfeasibleError(f"no epsilon makes the expected distance as small as {loss:g}")
        near, far = far, min(far * 2, high)
    return math.exp(brentq(excess, math.log(near), math.log(far), xtol=RELATIVE, rtol=4 * RELATIVE))
