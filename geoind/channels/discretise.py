"""Planar Laplace noise on a grid as a matrix: the probability of each cell, with a relative error of 1e-13.

Epsilon is measured on ratios of tiny probabilities, so none may be computed as a difference of larger ones. In
polar coordinates around the truth the noise beyond radius r along a ray has mass S(r) = (1 + e r) exp(-e r). The
mass of a cell is the integral over the angle of S(in) - S(out) >= 0, where a ray enters and leaves the cell. That
difference is the sum of two positive terms, and the integral is a sum with positive weights.

With tan(angle) = exp(u) the integrand is smooth within pi/2 of the real axis even where the noise is far wider or
far narrower than a cell, so Gauss-Legendre panels in u converge geometrically.
"""

import math

import numpy as np
from scipy.special import gammainc

from geoind.arrays import FloatArray, IntArray
from geoind.channels.channel import Channel
from geoind.channels.formulas import loss_per_step, spread_over
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarLaplace
from geoind.space.sites import Grid

__all__ = ["discretise"]

NODES = 16
"""Gauss-Legendre nodes in a panel."""

PANEL = 0.5
"""Largest length of a panel in u, the logarithm of the angle's tangent."""

DECAY = 45.0
"""The part of an integrand below exp(-45) of its largest value is omitted."""

FAR = 700.0
"""Beyond this many scales of the noise a probability is below 1e-300."""

SWING = 10.0
"""Largest change, in scales of the noise, of a radius along a panel."""

AXIS = 40.0
"""Angles below exp(-40) from an axis are omitted; the limit is smaller where a cell is narrower than the noise."""

PANELS_AT_ONCE = 20_000


def discretise(noise: PlanarLaplace, grid: Grid) -> Channel:
    """Return the channel that adds noise to a cell's centre and snaps the result to the closest cell.

    Reports outside the grid go to cells on the border. Snapping is post-processing, so the measured epsilon is at
    most that of the noise.

    Parameters
    ----------
    noise : PlanarLaplace
    grid : Grid
        Truth and reports are its cells.

    Examples
    --------
    >>> channel = discretise(PlanarLaplace(0.9), Grid(0, 0, cell=1.1, columns=3, rows=3))
    >>> round(channel.epsilon, 4)
    0.8844
    """
    if not isinstance(noise, PlanarLaplace):
        raise InvalidInputError(f"noise must be a PlanarLaplace, got {type(noise).__name__}")
    # In units of the noise's scale 1 / epsilon.
    cell = loss_per_step(grid, noise.epsilon)
    (x_intervals, x_cases), (y_intervals, y_cases) = (_axis(n, cell) for n in (grid.columns, grid.rows))
    quadrant = _rectangles(x_intervals, y_intervals)
    return Channel(grid, grid, spread_over(grid, x_cases @ quadrant @ y_cases.T))


def _axis(count: int, cell: float) -> tuple[FloatArray, FloatArray]:
    """Return intervals of the positive half-line, and how many of each a case of `axis_cases` consists of."""
    steps = np.arange(1, count)
    low = np.concatenate([[0, 0], (steps - 0.5) * cell, (steps - 0.5) * cell])
    high = np.concatenate([[cell / 2, np.inf], (steps + 0.5) * cell, np.full(count - 1, np.inf)])
    cases = np.zeros((2 * count + 1, len(low)))
    cases[0, 0] = 2
    cases[count, [0, 1]] = 1
    cases[2 * count, 1] = 2
    cases[steps, 1 + steps] = 1
    cases[count + steps, count + steps] = 1
    return np.column_stack([low, high]), cases


def _rectangles(x_intervals: FloatArray, y_intervals: FloatArray) -> FloatArray:
    """Return the mass of unit planar Laplace noise in each rectangle of the first quadrant."""
    shape = len(x_intervals), len(y_intervals)
    sides = np.concatenate(
        [np.repeat(x_intervals, shape[1], axis=0), np.tile(y_intervals, (shape[0], 1))], axis=1
    ).T
    mass = np.zeros(sides.shape[1])
    near = np.flatnonzero(np.hypot(sides[0], sides[2]) <= FAR)
    rectangle, low, high = _panels(sides[:, near])
    for start in range(0, len(low), PANELS_AT_ONCE):
        part = slice(start, start + PANELS_AT_ONCE)
        target = near[rectangle[part]]
        np.add.at(mass, target, _integrate(sides[:, target], low[part], high[part]))
    return mass.reshape(shape)


def _panels(sides: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the panels in u over each rectangle: its number, lower and upper end.

    Between two breaks a ray enters through one edge and leaves through one. Breaks lie at the corners, and where
    the far edges come so close that the mass beyond them matters.
    """
    x0, x1, y0, y1 = sides
    farthest = np.hypot(x0, y0) + DECAY
    # The angle of a strip along an axis is proportional to its width.
    axis = AXIS - np.log(np.minimum(1.0, np.minimum(x1 - x0, y1 - y0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        corners = [np.log(y) - np.log(x) for y, x in ((y0, x1), (y1, x0), (y0, x0), (y1, x1))]
        upper = [np.log((farthest / x) ** 2 - 1) / 2 for x in (x0, x1)]
        lower = [-np.log((farthest / y) ** 2 - 1) / 2 for y in (y0, y1)]
    start = np.maximum.reduce([corners[0], lower[0], -axis])
    end = np.minimum.reduce([corners[1], upper[0], axis])
    inner = np.stack([corners[2], corners[3], lower[1], upper[1]])
    # A break that does not exist (no such corner, no such edge) is placed at the start.
    inner = np.clip(np.where(np.isnan(inner), start, inner), start, end)
    breaks = np.sort(np.concatenate([start[None], inner, end[None]]), axis=0)
    rectangle = np.tile(np.arange(len(x0)), len(breaks) - 1)
    low, high = breaks[:-1].ravel(), breaks[1:].ravel()
    kept = high > low
    low, high, rectangle = low[kept], high[kept], rectangle[kept]
    before, after = (_crossings(sides[:, rectangle], u) for u in (low, high))
    # The change of radii beyond the farthest relevant one does not matter.
    cut = farthest[rectangle] * (1 + 1e-9)
    change = np.where(
        np.maximum(before, after) <= cut, np.abs(np.minimum(before, cut) - np.minimum(after, cut)), 0
    )
    counts = np.ceil(np.maximum((high - low) / PANEL, change.max(axis=0) / SWING)).astype(np.int64)
    piece = np.repeat(np.arange(len(low)), counts)
    number = np.arange(len(piece)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = ((high - low) / counts)[piece]
    left = low[piece] + number * width
    return rectangle[piece], left, left + width


def _crossings(sides: FloatArray, u: FloatArray) -> FloatArray:
    """Return the two radii at which the ray with tangent exp(u) enters and leaves a rectangle."""
    x0, x1, y0, y1 = sides
    secant, cosecant = np.sqrt(1 + np.exp(2 * u)), np.sqrt(1 + np.exp(-2 * u))
    return np.stack([np.maximum(x0 * secant, y0 * cosecant), np.minimum(x1 * secant, y1 * cosecant)])


def _integrate(sides: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the mass over each panel: the integral over the angle of the mass along a ray."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = (high - low)[:, None] / 2
    u = low[:, None] + half * (1 + nodes)
    entry, leave = _crossings(sides[:, :, None], u)
    length = np.maximum(leave - entry, 0.0)
    along = np.exp(-entry) * (entry * -np.expm1(-length) + gammainc(2.0, length))
    integrals: FloatArray = (half * weights * along / (2 * np.cosh(u))).sum(axis=1) / (2 * math.pi)
    return integrals
