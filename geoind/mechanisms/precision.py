"""What finite precision costs: for samplers that draw a fixed number of bits, and for computed matrices.

geoind's own mechanisms draw exactly (docs/exact-draws.md). Where that is not possible, on a phone or in a
database, angle and radius come from finitely many values. Followed by a lattice that is coarse against the
machine's step, that costs a little epsilon; `corrected_epsilon` says how much to hold back.
"""

import math
from functools import lru_cache

from geoind.arrays import as_finite, as_positive
from geoind.errors import InvalidInputError

__all__ = ["SMALLEST_ENTRY", "corrected_epsilon", "guarantee_of_noise", "matrix_epsilon"]

SMALLEST_ENTRY = 1e-300
"""Entries of a computed matrix that would be smaller become this, so that none underflows to zero.

Raising every entry of a column to at least the same constant raises no ratio: max(a, c) <= k max(b, c) whenever
a <= k b and k >= 1. A zero beside a tiny number, though, would break any promise.
"""

ENTRY_PRECISION = 2.0**-40
"""Relative precision that every entry of a computed matrix keeps, and with room: exp(-700) has 700 ulps."""


@lru_cache(maxsize=256)
def corrected_epsilon(
    epsilon: float, *, cell: float, r_max: float, angle_resolution: float, radius_resolution: float = 0.0
) -> float:
    """Return the epsilon' to run the sampler with, so that the snapped reports keep epsilon.

    The largest epsilon' with epsilon' + ln((q + 2 e^(epsilon' u)) / (q - 2 e^(epsilon' u))) / u <= epsilon,
    where u is the cell, q = u / v, and v the machine's step as a length (Andrés et al., CCS 2013, Theorem 4.1).

    Parameters
    ----------
    epsilon : float
        The promise to keep, per metre.
    cell : float
        Step of the lattice that reports are snapped to, in metres.
    r_max : float
        Distance up to which the promise is to hold, in metres: the diameter of the region.
    angle_resolution : float
        Step between two angles that the sampler can draw, in radians.
    radius_resolution : float
        Step between two radii that the sampler can draw, in metres.

    Examples
    --------
    >>> round(corrected_epsilon(1.0, cell=1, r_max=8, angle_resolution=2 * math.pi / 500), 4)
    0.3886
    """
    epsilon = as_positive(epsilon, "epsilon")
    cell = as_positive(cell, "cell")
    step = _machine_step(r_max, angle_resolution, radius_resolution)
    if not _loss(0.0, cell, step) < epsilon:
        raise InvalidInputError(
            f"cell {cell:g} m is too fine for this precision: epsilon {epsilon:g} per metre needs a cell "
            f"of at least {_smallest_cell(epsilon, step):.3g} m"
        )
    low, high = 0.0, epsilon
    while (middle := (low + high) / 2) not in (low, high):
        if middle + _loss(middle, cell, step) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def guarantee_of_noise(
    noise_epsilon: float,
    *,
    cell: float,
    r_max: float,
    angle_resolution: float,
    radius_resolution: float = 0.0,
) -> float:
    """Return the epsilon that is kept when the sampler runs with `noise_epsilon`.

    The form of the lecture slides, in the other direction than `corrected_epsilon`: noise parameter in, resulting
    guarantee out, which is larger. Never feed its result to a sampler. Tighter than `corrected_epsilon` where
    epsilon times cell exceeds about one half.

    Examples
    --------
    >>> round(guarantee_of_noise(1.0, cell=1, r_max=8, angle_resolution=2 * math.pi / 500), 4)
    1.8353
    """
    epsilon = as_positive(noise_epsilon, "noise_epsilon")
    cell = as_positive(cell, "cell")
    step = _machine_step(r_max, angle_resolution, radius_resolution)
    q = cell / step
    if not q > 5:
        raise InvalidInputError(
            f"cell {cell:g} m is too fine for this precision: it must exceed {5 * step:.3g} m, five machine steps"
        )
    return epsilon + math.log((q - 2 + 3 * math.exp(epsilon * step * math.sqrt(2))) / (q - 5)) / cell


def matrix_epsilon(epsilon: float, *, closest: float) -> float:
    """Return the epsilon to compute a matrix with, so that its rounded entries keep the promised one.

    A formula that attains epsilon exactly may exceed it by a few ulps once its entries are doubles. Holding back
    2^-40 / closest, where `closest` is the smallest distance between two inputs, makes the *measured* epsilon at
    most the promise; at epsilon * closest = 1 that costs one part in 10^12.

    Examples
    --------
    >>> matrix_epsilon(0.01, closest=100) < 0.01
    True
    """
    held_back = ENTRY_PRECISION / as_positive(closest, "closest")
    if not held_back < as_positive(epsilon, "epsilon"):
        raise InvalidInputError(
            f"epsilon {epsilon:g} times the smallest distance {closest:g} is below what doubles can promise"
        )
    return epsilon - held_back


def _machine_step(r_max: float, angle_resolution: float, radius_resolution: float) -> float:
    r_max = as_positive(r_max, "r_max")
    angle_resolution = as_positive(angle_resolution, "angle_resolution")
    if not as_finite(radius_resolution, "radius_resolution") >= 0:
        raise InvalidInputError(f"radius_resolution must not be negative, got {radius_resolution!r}")
    return max(radius_resolution, r_max * angle_resolution)


def _loss(epsilon: float, cell: float, step: float) -> float:
    # Next to 0 an exponent is below it and its power is 1 all the same.
    share = math.exp(min(0.0, epsilon * cell + math.log(2 * step / cell)))
    return 2 * math.atanh(share) / cell if share < 1 else math.inf


def _smallest_cell(epsilon: float, step: float) -> float:
    low, high = 2 * step, 2 * step + math.sqrt(4 * step / epsilon) * 4
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if _loss(0.0, middle, step) < epsilon else (middle, high)
    return high
