"""The level and the delta of n reports together, each between an upper and a lower bound."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TypeAlias

from scipy.optimize import brentq

from geoind.accounting.composition import (
    LossPmf,
    composed,
    infinite_mass,
    rounded_down,
    rounded_up,
    tilt_for_delta,
    tilt_for_level,
)
from geoind.accounting.losses import Loss, Losses, loss_of, merged, scale_and_width
from geoind.arrays import as_count, as_finite, as_positive, as_unit
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism

__all__ = [
    "MechanismCounts",
    "delta_bounds",
    "delta_of_losses",
    "delta_of_reports",
    "level_bounds",
    "level_of_losses",
    "level_of_reports",
]

MechanismCounts: TypeAlias = Mechanism | Mapping[Mechanism, int] | Sequence[tuple[Mechanism, int]]
"""One mechanism, or several with the number of reports of each."""

MOST_REPORTS = 10**7

POINTS = 2.0**15
"""Points of the grid over the spread of the sum of 100 reports; more for more reports."""

MOST_POINTS = 2.0**20

MOST_CELLS = 2.0**15
"""Largest number of grid points of one loss."""

SPREAD = 18.0
"""Approximate width of a window, in standard deviations."""

LARGEST_LEVEL = 1e9
"""Where the search for a level ends."""


def level_of_reports(
    mechanism: MechanismCounts, *, reports: int | None = None, radius: float, delta: float
) -> float:
    """Return the level of n independent reports together, up to a probability delta.

    All reports together distinguish places up to `radius` metres apart by a factor e^level at most, except with
    probability delta. The level is never more than the plain sum of the budgets, and for many reports far less. It
    is an upper bound that includes every numerical error; `level_bounds` returns the lower bound as well.

    Parameters
    ----------
    mechanism : Mechanism, or a mapping or a list of pairs from mechanisms to numbers of reports
        The order of the reports has no effect.
    reports : int
        Number of reports, for a single mechanism.
    radius : float
        In metres. The true location may change between reports: the level holds for two paths that are never
        farther apart than this.
    delta : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> import math
    >>> from geoind import PlanarGaussian, PlanarLaplace
    >>> noise = PlanarLaplace(epsilon=math.log(4) / 200)
    >>> round(level_of_reports(noise, reports=100, radius=200, delta=1e-5), 1)    # the sum is 138.6
    75.9
    >>> mixture = {noise: 20, PlanarGaussian(1000): 5}
    >>> round(level_of_reports(mixture, radius=200, delta=1e-5), 1)
    22.1
    """
    return level_of_losses(_losses(mechanism, reports, radius), as_unit(delta, "delta"), above=True)


def level_bounds(
    mechanism: MechanismCounts, *, reports: int | None = None, radius: float, delta: float
) -> tuple[float, float]:
    """Return `level_of_reports` and a lower bound: no accountant can return less.

    Examples
    --------
    >>> import math
    >>> from geoind import PlanarLaplace
    >>> lower, upper = level_bounds(PlanarLaplace(math.log(4) / 200), reports=20, radius=200, delta=1e-5)
    >>> round(lower, 3), round(upper, 3)
    (21.808, 21.808)
    """
    losses, delta = _losses(mechanism, reports, radius), as_unit(delta, "delta")
    upper = level_of_losses(losses, delta, above=True)
    return min(level_of_losses(losses, delta, above=False), upper), upper


def delta_of_reports(
    mechanism: MechanismCounts, *, reports: int | None = None, radius: float, level: float
) -> float:
    """Return an upper bound of the delta of n independent reports together at a level.

    The inverse of `level_of_reports`, with its parameters.

    Examples
    --------
    >>> import math
    >>> from geoind import PlanarLaplace
    >>> noise = PlanarLaplace(epsilon=math.log(4) / 200)
    >>> delta_of_reports(noise, reports=100, radius=200, level=75.95) < 1e-5
    True
    """
    return delta_of_losses(_losses(mechanism, reports, radius), _level(level), above=True)


def delta_bounds(
    mechanism: MechanismCounts, *, reports: int | None = None, radius: float, level: float
) -> tuple[float, float]:
    """Return `delta_of_reports` and a lower bound.

    Examples
    --------
    >>> import math
    >>> from geoind import PlanarGaussian
    >>> lower, upper = delta_bounds(PlanarGaussian(1000), reports=16, radius=250, level=1.0)
    >>> round(lower, 6), round(upper, 6)    # that of one report with a quarter of the noise
    (0.126937, 0.126937)
    """
    losses, level = _losses(mechanism, reports, radius), _level(level)
    upper = delta_of_losses(losses, level, above=True)
    return min(delta_of_losses(losses, level, above=False), upper), upper


@lru_cache(maxsize=4096)
def level_of_losses(losses: Losses, delta: float, *, above: bool) -> float:
    """Return an upper or a lower bound of the least level of a sum of losses, up to delta."""
    losses = merged(losses)
    total = sum(reports * loss.largest for loss, reports in losses)
    if _is_single(losses):
        return _crossing(partial(losses[0][0].delta, above=above), delta, 1.0, 1.0, total, above)
    parts = _parts(losses, above)
    if infinite_mass(parts) >= delta:
        return math.inf
    total_loss = composed(parts, tilt_for_delta(parts, delta))
    delta_at = total_loss.delta_above if above else total_loss.delta_below
    return _crossing(delta_at, delta, total_loss.mean, total_loss.deviation, total, above)


@lru_cache(maxsize=4096)
def delta_of_losses(losses: Losses, level: float, *, above: bool) -> float:
    """Return an upper or a lower bound of the least delta of a sum of losses at a level."""
    losses = merged(losses)
    if level >= sum(reports * loss.largest for loss, reports in losses):
        return 0.0
    if _is_single(losses):
        return losses[0][0].delta(level, above=above)
    parts = _parts(losses, above)
    if infinite_mass(parts) == 1:
        return 1.0
    total_loss = composed(parts, tilt_for_level(parts, level))
    return total_loss.delta_above(level) if above else total_loss.delta_below(level)


def _is_single(losses: Losses) -> bool:
    """Return whether the sum is one loss, which needs no grid."""
    return len(losses) == 1 and losses[0][1] == 1


def _parts(losses: Losses, above: bool) -> list[LossPmf]:
    step = _step(losses)
    return [replace(_on_grid(loss, step, above), reports=reports, doubt=loss.doubt) for loss, reports in losses]


@lru_cache(maxsize=256)
def _on_grid(loss: Loss, step: float, above: bool) -> LossPmf:
    return (rounded_up if above else rounded_down)(loss.atoms(step, above=above), step)


def _step(losses: Losses) -> float:
    """Return the grid's step: the gap between the bounds is about reports * step^2 / 6."""
    reports = sum(count for _, count in losses)
    sizes = [(*scale_and_width(loss), count) for loss, count in losses]
    deviation = math.sqrt(sum(count * scale**2 for scale, _, count in sizes))
    points = min(MOST_POINTS, POINTS * math.sqrt(max(1.0, reports / 100)))
    # As fine as the narrowest loss needs, unless the widest one would have too many points.
    coarsest = max(SPREAD * deviation / MOST_POINTS, max(width for _, width, _ in sizes) / MOST_CELLS)
    return max(min(SPREAD * deviation / points, min(scale for scale, _, _ in sizes) / 50, 0.1), coarsest)


def _crossing(
    delta_at: Callable[[float], float], delta: float, start: float, stride: float, total: float, above: bool
) -> float:
    """Return the level, from 0 to `total`, at which a decreasing function equals delta, rounded to the safe side.

    The search starts where the bounds are sharp: far from there their errors are larger than delta.
    """
    here = min(max(0.0, start), total)
    small = delta_at(here) <= delta
    while True:
        there = max(0.0, here - stride) if small else min(total, here + stride)
        if there == here:
            return here
        if there > LARGEST_LEVEL:
            return math.inf
        if (delta_at(there) <= delta) is not small:
            break
        here, stride = there, 2 * stride

    def excess(level: float) -> float:
        return math.log(max(delta_at(level), 1e-308) / delta)

    low, high = min(here, there), max(here, there)
    level, slack = float(brentq(excess, low, high, xtol=1e-12 * high, rtol=1e-13)), 1e-12 * high
    while low < level < high and (excess(level) > 0) is above:
        level, slack = level + slack if above else level - slack, 2 * slack
    return min(max(level, low), high)


def _losses(mechanism: MechanismCounts, reports: int | None, radius: float) -> Losses:
    radius = as_positive(radius, "radius")
    if hasattr(mechanism, "sample") or not isinstance(mechanism, Iterable):
        if reports is None:
            raise InvalidInputError("reports must be given: the number of reports of this mechanism")
        return ((loss_of(mechanism, radius), _count(reports)),)
    if reports is not None:
        raise InvalidInputError("give reports, or a number of reports with each mechanism, not both")
    pairs = list(mechanism.items() if isinstance(mechanism, Mapping) else mechanism)
    if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise InvalidInputError("several mechanisms must be given as pairs of a mechanism and a number of reports")
    return tuple((loss_of(each, radius), _count(count)) for each, count in pairs)


def _count(reports: int) -> int:
    count = as_count(reports, "reports")
    if count > MOST_REPORTS:
        raise InvalidInputError(f"reports must be at most {MOST_REPORTS:,}, got {count}")
    return count


def _level(level: float) -> float:
    if not as_finite(level, "level") >= 0:
        raise InvalidInputError(f"level must not be negative, got {level!r}")
    return float(level)
