"""Promises of a level and a delta put together by the textbook's laws: looser than the accountant, and simpler."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from geoind.arrays import as_count, as_finite
from geoind.errors import InvalidInputError

__all__ = ["LevelDelta", "group", "sequential"]


class LevelDelta(NamedTuple):
    """Places within some radius can be told apart by a factor e^level, except with probability delta."""

    level: float
    delta: float


def sequential(promises: Iterable[tuple[float, float]]) -> LevelDelta:
    """Return what reports with promises of their own keep together: both levels and deltas add up.

    It holds whatever the mechanisms are and however each was chosen from the reports before.

    Examples
    --------
    >>> sequential([(1.0, 1e-6), (0.5, 2e-6)])
    LevelDelta(level=1.5, delta=3e-06)
    """
    checked = [_checked(promise) for promise in promises]
    return LevelDelta(
        math.fsum(each.level for each in checked), min(1.0, math.fsum(each.delta for each in checked))
    )


def group(promise: tuple[float, float], size: int) -> LevelDelta:
    """Return the promise between places `size` times as far apart, or for as many persons who move together.

    The level grows `size` times; delta becomes delta * (1 + e^level + ... + e^((size - 1) level)), which is at
    most the textbook's size * e^(size * level) * delta.

    Examples
    --------
    >>> level, delta = group((math.log(2), 1e-6), 3)
    >>> round(math.exp(level), 9), round(delta, 9)
    (8.0, 7e-06)
    """
    level, delta = _checked(promise)
    size = as_count(size, "size")
    largest = (size - 1) * level
    if delta == 0 or largest > 700:
        return LevelDelta(size * level, min(1.0, delta and math.inf))
    grown = size if level == 0 else math.expm1(size * level) / math.expm1(level)
    return LevelDelta(size * level, min(1.0, delta * grown))


def _checked(promise: tuple[float, float]) -> LevelDelta:
    try:
        level, delta = promise
    except (TypeError, ValueError):
        raise InvalidInputError(f"a promise must be a pair, level and delta, got {promise!r}") from None
    level, delta = as_finite(level, "level"), as_finite(delta, "delta")
    if level < 0 or not 0 <= delta <= 1:
        raise InvalidInputError(f"a promise must have level >= 0 and 0 <= delta <= 1, got {(level, delta)!r}")
    return LevelDelta(level, delta)
