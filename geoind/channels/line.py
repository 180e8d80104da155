"""Channels on a line of equal steps: the mechanisms of the lectures for counts and other whole numbers."""

import math

import numpy as np

from geoind.arrays import FloatArray, as_count, as_number, as_positive
from geoind.channels.channel import Channel
from geoind.channels.stencil import loss_per_step
from geoind.errors import InvalidInputError
from geoind.mechanisms.precision import SMALLEST_ENTRY
from geoind.space.sites import Grid

__all__ = ["geometric", "linear_laplace"]


def geometric(n: int, *, epsilon: float, cell: float = 1.0, beyond: int = 0) -> Channel:
    """Return the geometric mechanism on n values: report z at x is as likely as c e^(-epsilon |z - x|).

    The coefficient c is (e^epsilon - 1) / (e^epsilon + 1), as on a line without end. Reports end `beyond` steps
    beyond the values, where the first and the last one take all that lies beyond: their coefficient is
    e^epsilon / (e^epsilon + 1). With beyond 0, the default, this is the truncated geometric mechanism. The promise
    is exact.

    Parameters
    ----------
    n : int
        Number of values: 0, 1, ..., n - 1 times `cell`, on the x axis.
    epsilon : float
        Privacy loss per metre (per value, if the cell is 1).
    cell : float
        Step between two values, in metres.
    beyond : int
        How many values beyond both ends can be reported.

    Examples
    --------
    >>> geometric(3, epsilon=math.log(2)).matrix.round(6)
    array([[0.666667, 0.166667, 0.166667],
           [0.333333, 0.333333, 0.333333],
           [0.166667, 0.166667, 0.666667]])
    """
    inputs, outputs, rate, steps = _line(n, epsilon, cell, beyond)
    inner = math.tanh(rate / 2) * np.exp(-rate * steps)
    tail = np.exp(-rate * steps) / (1 + math.exp(-rate))
    return _with_tails(inputs, outputs, inner, tail)


def linear_laplace(n: int, *, epsilon: float, cell: float = 1.0, beyond: int = 0) -> Channel:
    """Return Laplace noise on a line, density epsilon / 2 * e^(-epsilon |r|), rounded to the closest value.

    Rounding only sees the report, so epsilon is kept. With beyond 0, the default, the noise is truncated to the
    values: what falls beyond an end is reported as the end.

    Parameters
    ----------
    n, epsilon, cell, beyond
        As for `geometric`.

    Examples
    --------
    >>> linear_laplace(2, epsilon=math.log(4)).matrix
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    inputs, outputs, rate, steps = _line(n, epsilon, cell, beyond)
    farther = np.exp(-rate * np.abs(steps - 0.5)) / 2
    inner = np.where(steps > 0, farther * -math.expm1(-rate), -math.expm1(-rate / 2))
    tail = np.where(steps > 0, farther, 1 - math.exp(-rate / 2) / 2)
    return _with_tails(inputs, outputs, inner, tail)


def _line(n: int, epsilon: float, cell: float, beyond: int) -> tuple[Grid, Grid, float, FloatArray]:
    """Return the values, the reports, epsilon per step, and how many steps each report is from each value."""
    n, cell = as_count(n, "n"), as_positive(cell, "cell")
    if not (as_number(beyond, "beyond") >= 0 and beyond == int(beyond)):
        raise InvalidInputError(f"beyond must be a whole number and not negative, got {beyond!r}")
    inputs = Grid(0, 0, cell=cell, columns=n, rows=1)
    rate = loss_per_step(inputs, epsilon)
    outputs = Grid(-beyond * cell, 0, cell=cell, columns=n + 2 * int(beyond), rows=1)
    steps = np.abs(np.arange(n)[:, None] - (np.arange(len(outputs)) - int(beyond))).astype(np.float64)
    return inputs, outputs, rate, steps


def _with_tails(inputs: Grid, outputs: Grid, inner: FloatArray, tail: FloatArray) -> Channel:
    if len(outputs) == 1:
        return Channel(inputs, outputs, [[1.0]])
    inner[:, [0, -1]] = tail[:, [0, -1]]
    return Channel(inputs, outputs, np.maximum(inner, SMALLEST_ENTRY))
