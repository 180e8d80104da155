"""How hard a solver tries, and where it stands meanwhile."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from geoind.arrays import as_number, as_unit
from geoind.errors import InvalidInputError

__all__ = ["Effort", "Iterate", "Stopped"]

Stopped: TypeAlias = Literal["optimal", "time limit", "stuck", "spanner", "near"]
"""Why a search ended: proven, out of time, out of digits; over a spanner, or among cheap channels only."""

ROUNDING = float(np.finfo(float).eps)

LEAST_SECONDS = 1e-9
"""A time limit that is over is this long: the first iterate ends it."""


@dataclass(frozen=True)
class Iterate:
    """Where the method stands: both bounds hold at any time."""

    iteration: int
    objective: float
    bound: float
    seconds: float
    yardstick: float

    @property
    def gap(self) -> float:
        """How far the objective can be from the optimum, relative to it or to a yardstick that is larger."""
        apart = self.objective - self.bound
        if apart == 0:
            return 0.0
        # Both are rounded sums: they prove nothing beyond that.
        return max(apart / max(abs(self.objective), self.yardstick), ROUNDING)


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How hard to look for an optimum: how exactly, how long, and who hears of it meanwhile.

    Parameters
    ----------
    tolerance : float
        Relative gap between objective and bound at which a channel counts as optimal.
    time_limit : float
        Seconds; then the best channel so far is returned, just as private, with the gap that it has.
    progress : callable, optional
        Called with an `Iterate` (iteration, objective, bound, gap, seconds) again and again.

    Examples
    --------
    >>> Effort(time_limit=60)
    Effort(tolerance=1e-07, time_limit=60, progress=None)
    """

    tolerance: float = 1e-7
    time_limit: float = math.inf
    progress: Callable[[Iterate], None] | None = None

    def __post_init__(self) -> None:
        as_unit(self.tolerance, "tolerance")
        if not as_number(self.time_limit, "time_limit") > 0:
            raise InvalidInputError(f"time_limit must be positive, got {self.time_limit!r}")
        if self.progress is not None and not callable(self.progress):
            raise InvalidInputError(f"progress must be callable, got {type(self.progress).__name__}")

    def after(self, seconds: float) -> "Effort":
        """Return the effort that is left when so many seconds are over.

        Examples
        --------
        >>> Effort(time_limit=60).after(20).time_limit
        40
        """
        return replace(self, time_limit=max(self.time_limit - seconds, LEAST_SECONDS))
