"""The effect of finite precision on epsilon: for samplers with a fixed number of bits, and for computed matrices.

geoind's own mechanisms draw exactly (docs/exact-draws.md). Samplers on a phone or in a database draw angle and
radius from finitely many values. If their reports are rounded to a lattice that is coarse compared with the
machine's step, epsilon grows a little; `corrected_epsilon` computes the epsilon to draw with.
"""

import math
from functools import lru_cache

from geoind.arrays import as_finite, as_positive
from geoind.errors import InvalidInputError

__all__ = ["SMALLEST_ENTRY", "corrected_epsilon", "guarantee_of_noise", "matrix_epsilon"]

SMALLEST_ENTRY = 1e-300
"""Smaller entries of a computed matrix are raised to this value, so that none underflows to zero.

Raising every entry of a column to at least the same constant raises no ratio: max(a, c) <= k max(b, c) whenever
a <= k b and k >= 1. A zero next to a tiny number would make epsilon infinite.
"""

ENTRY_PRECISION = 2.0**-40
"""Bound on the relative error of every entry of a computed matrix; that of exp(-700) is 700 ulps, far below it."""


@lru_cache(maxsize=256)
def corrected_epsilon(
    epsilon: float, *, cell: float, r_max: float, angle_resolution: float, radius_resolution: float = 0.0
) -> float:
    """Return the epsilon' to run the sampler with, so that the snapped reports are epsilon-private.

    The largest epsilon' with epsilon' + ln((q + 2 e^(epsilon' u)) / (q - 2 e^(epsilon' u))) / u <= epsilon,
    where u is the cell, q = u / v, and v the machine's step as a length (Andrés et al., CCS 2013, Theorem 4.1).

    Parameters
    ----------
    epsilon : float
        Privacy loss per metre of the snapped reports.
    cell : float
        Step of the lattice that reports are snapped to, in metres.
    r_max : float
        Distance up to which the guarantee is to hold, in metres: the diameter of the region.
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
    """Return the epsilon of snapped reports when the sampler runs with `noise_epsilon`.

    The formula of the lecture slides, the converse of `corrected_epsilon`: from the parameter of the noise to the
    resulting guarantee, which is larger. Do not run a sampler with its result. Tighter than `corrected_epsilon`
    where epsilon times cell exceeds about one half.

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
    """Return the epsilon to compute a matrix with, so that its rounded entries are epsilon-private.

    A formula that attains epsilon exactly may exceed it by a few ulps once its entries are doubles. Subtracting
    2^-40 / closest, where `closest` is the smallest distance between two inputs, makes the *measured* epsilon at
    most the requested one; at epsilon * closest = 1 that is one part in 10^12.

    Examples
    --------
    >>> matrix_epsilon(0.01, closest=100) < 0.01
    True
    """
    held_back = ENTRY_PRECISION / as_positive(closest, "closest")
    if not held_back < as_positive(epsilon, "epsilon"):
        raise InvalidInputError(
            f"epsilon {epsilon:g} times the smallest distance {closest:g} is below the precision of doubles"
        )
    return epsilon - held_back


def _machine_step(r_max: float, angle_resolution: float, radius_resolution: float) -> float:
    r_max = as_positive(r_max, "r_max")
    angle_resolution = as_positive(angle_resolution, "angle_resolution")
    if not as_finite(radius_resolution, "radius_resolution") >= 0:
        raise InvalidInputError(f"radius_resolution must not be negative, got {radius_resolution!r}")
    return max(radius_resolution, r_max * angle_resolution)


def _loss(epsilon: float, cell: float, step: float) -> float:
    # Rounding may make the exponent slightly positive, or its power 1.
    share = math.exp(min(0.0, epsilon * cell + math.log(2 * step / cell)))
    return 2 * math.atanh(share) / cell if share < 1 else math.inf


def _smallest_cell(epsilon: float, step: float) -> float:
    low, high = 2 * step, 2 * step + math.sqrt(4 * step / epsilon) * 4
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if _loss(0.0, middle, step) < epsilon else (middle, high)
    return high
