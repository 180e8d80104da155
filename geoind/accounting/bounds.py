"""The level and the delta of many reports, each between an upper and a lower bound."""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

from scipy.optimize import brentq

from geoind.accounting.composed import Part, beyond_all, composed_of, tilt_for_delta, tilt_for_level
from geoind.accounting.finite import ChannelLoss
from geoind.accounting.losses import GAUSSIAN_WIDTH, GaussianLoss, Loss
from geoind.accounting.rounding import OnGrid, rounded_down, rounded_up

__all__ = ["Bounds", "Losses", "delta_of_losses", "level_of_losses"]

POINTS = 2.0**15
"""Points of the grid over the spread of the sum of 100 reports; more for more reports."""

MOST_POINTS = 2.0**20

MOST_CELLS = 2.0**15
"""Points of the grid under one loss."""

SPREAD = 18.0
"""Standard deviations that a window is about wide."""

FARTHEST = 1e9
"""No level is looked for beyond."""

Losses: TypeAlias = tuple[tuple[Loss, int], ...]
"""Which losses add up, and how many of each."""


class Bounds(NamedTuple):
    """Two numbers between which the truth lies.

    Examples
    --------
    >>> Bounds(lower=1.0, upper=1.5).gap
    0.5
    """

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """How far the bounds are apart."""
        return self.upper - self.lower


@lru_cache(maxsize=4096)
def level_of_losses(losses: Losses, delta: float, *, above: bool) -> float:
    """Return a bound, from above or below, of the least level that a sum of losses keeps up to delta."""
    losses = _merged(losses)
    total = sum(reports * loss.largest for loss, reports in losses)
    if _is_single(losses):
        return _crossing(partial(losses[0][0].delta, above=above), delta, 1.0, 1.0, total, above)
    parts = _parts(losses, above)
    if beyond_all(parts) >= delta:
        return math.inf
    composed = composed_of(parts, tilt_for_delta(parts, delta))
    delta_at = composed.delta_above if above else composed.delta_below
    return _crossing(delta_at, delta, composed.mean, composed.deviation, total, above)


@lru_cache(maxsize=4096)
def delta_of_losses(losses: Losses, level: float, *, above: bool) -> float:
    """Return a bound, from above or below, of the least delta that a sum of losses has at a level."""
    losses = _merged(losses)
    if level >= sum(reports * loss.largest for loss, reports in losses):
        return 0.0
    if _is_single(losses):
        return losses[0][0].delta(level, above=above)
    parts = _parts(losses, above)
    if beyond_all(parts) == 1:
        return 1.0
    composed = composed_of(parts, tilt_for_level(parts, level))
    return composed.delta_above(level) if above else composed.delta_below(level)


def _is_single(losses: Losses) -> bool:
    """Return whether one loss alone is the sum, which then needs no grid."""
    return len(losses) == 1 and losses[0][1] == 1


def _merged(losses: Losses) -> Losses:
    """Return the losses with all Gaussian ones as a single one: their sum is Gaussian again."""
    rest: dict[Loss, int] = {}
    gaussian = GaussianLoss(0.0)
    for loss, reports in losses:
        if isinstance(loss, GaussianLoss):
            gaussian = gaussian.together(loss, reports)
        else:
            rest[loss] = rest.get(loss, 0) + reports
    return (*(((gaussian, 1),) if gaussian.ratio else ()), *rest.items())


def _parts(losses: Losses, above: bool) -> list[Part]:
    step = _step(losses)
    return [Part(_on_grid(loss, step, above), reports, loss.doubt) for loss, reports in losses]


@lru_cache(maxsize=256)
def _on_grid(loss: Loss, step: float, above: bool) -> OnGrid:
    return (rounded_up if above else rounded_down)(loss.atoms(step, above=above), step)


def _step(losses: Losses) -> float:
    """Return the grid's step: the bounds' gap is about reports * step^2 / 6."""
    reports = sum(count for _, count in losses)
    scales = [_scale(loss) for loss, _ in losses]
    deviation = math.sqrt(sum(count * scale**2 for scale, (_, count) in zip(scales, losses, strict=True)))
    points = min(MOST_POINTS, POINTS * math.sqrt(max(1.0, reports / 100)))
    # As fine as the narrowest loss needs, unless the widest one would have too many points.
    coarsest = max(SPREAD * deviation / MOST_POINTS, max(_width(loss) for loss, _ in losses) / MOST_CELLS)
    return max(min(SPREAD * deviation / points, min(scales) / 50, 0.1), coarsest)


def _width(loss: Loss) -> float:
    return 2 * GAUSSIAN_WIDTH * loss.ratio if isinstance(loss, GaussianLoss) else 2 * _scale(loss)


def _scale(loss: Loss) -> float:
    if isinstance(loss, GaussianLoss):
        return loss.ratio
    # A channel's masses are differences of doubles: no finer grid than these can show.
    return max(loss.largest_finite, 0.01) if isinstance(loss, ChannelLoss) else max(loss.largest, 1e-9)


def _crossing(
    delta_at: Callable[[float], float], delta: float, start: float, stride: float, total: float, above: bool
) -> float:
    """Return the level, from 0 to `total`, at which a falling delta is met; it errs to the side that is safe.

    The search begins where the bounds are sharp: far from there their errors are larger than delta.
    """
    here = min(max(0.0, start), total)
    small = delta_at(here) <= delta
    while True:
        there = max(0.0, here - stride) if small else min(total, here + stride)
        if there == here:
            return here
        if there > FARTHEST:
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
