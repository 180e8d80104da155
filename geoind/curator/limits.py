"""Public limits of a number: what lies beyond is clipped, so that nobody counts for more than they allow."""

import math
from dataclasses import dataclass

import numpy as np

from geoind.arrays import FloatArray, IntArray, as_finite, as_positive
from geoind.errors import InvalidInputError

__all__ = ["Limits"]

STEPS = 1024
"""Steps between the limits, unless the caller chooses: values are rounded to a thousandth of their range."""

MOST_STEPS = 1 << 20

WIDEST = 2.0**40
"""Steps between zero and a limit."""

ROUNDING = 1e-9
"""How far the number of steps may be from a whole one, as a share: 0.1 and 0.3 are no exact doubles."""


@dataclass(frozen=True, init=False)
class Limits:
    """The limits that values are clipped to, and the step that they are rounded to.

    Parameters
    ----------
    lowest, highest : float
        Public, chosen without a look at the values: what lies beyond counts as the limit.
    step : float, optional
        Values are rounded to whole steps: from zero for a sum, otherwise from `lowest`. A whole number of them
        must lead to `highest`: 1024 by default.

    Examples
    --------
    >>> Limits(0, 120, step=1)
    Limits(lowest=0.0, highest=120.0, step=1.0)
    >>> Limits(0, 32).step
    0.03125
    """

    lowest: float
    highest: float
    step: float

    def __init__(self, lowest: float, highest: float, *, step: float | None = None) -> None:
        low, high = as_finite(lowest, "lowest"), as_finite(highest, "highest")
        if not low < high:
            raise InvalidInputError(f"lowest must be below highest, got {lowest!r} and {highest!r}")
        size = (high - low) / STEPS if step is None else as_positive(step, "step")
        if not 1 <= (high - low) / size <= MOST_STEPS:
            raise InvalidInputError(
                f"step must be 1 to {MOST_STEPS} times in the range of the limits, got {step!r}"
            )
        if not max(-low, high) / size < WIDEST:
            raise InvalidInputError(f"{low:g} to {high:g} is too far from zero for steps of {size:g}")
        if not math.isclose((high - low) / size, round((high - low) / size), rel_tol=ROUNDING):
            raise InvalidInputError(f"whole steps must lead from {low:g} to {high:g}, got step={step!r}")
        object.__setattr__(self, "lowest", low)
        object.__setattr__(self, "highest", high)
        object.__setattr__(self, "step", size)

    @property
    def steps(self) -> int:
        """How many steps lead from the lowest to the highest value."""
        return round((self.highest - self.lowest) / self.step)

    def steps_from(self, origin: float, values: FloatArray, *, least: int, most: int) -> IntArray:
        """Return the clipped values as whole steps from an origin, never beyond what the sensitivity counts.

        Examples
        --------
        >>> Limits(-2, 4, step=1).steps_from(0, np.array([-9, 1.2, 4]), least=-4, most=4)
        array([-2,  1,  4])
        """
        steps = np.rint((np.clip(values, self.lowest, self.highest) - origin) / self.step)
        return np.asarray(np.clip(steps, least, most), dtype=np.int64)
