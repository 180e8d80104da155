"""Channels with a formula: in the plane, on a line of equal steps, and between values.

Noise that does not depend on the location gives all pairs of cells at the same offset the same probability, except
that a cell on the border also takes the mass outside the grid. So a matrix of (columns * rows)^2 entries has only
about 4 * columns * rows different ones. Along one axis of n cells these *cases* are numbered

    k      (0 <= k < n)   an inner cell k steps away
    n + k  (0 <= k < n)   the border cell k steps away, with everything beyond it
    2 n                   the only cell of an axis of length one: the whole line
"""

import math

import numpy as np

from geoind.arrays import FloatArray, IntArray, as_count, as_number, as_positive
from geoind.channels.channel import Channel
from geoind.channels.rows import steepest_slope
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError
from geoind.mechanisms.precision import SMALLEST_ENTRY, matrix_epsilon
from geoind.space.sites import Grid, Places, Sites

__all__ = [
    "axis_cases",
    "cloaking",
    "exponential",
    "geometric",
    "linear_laplace",
    "loss_per_step",
    "planar_geometric",
    "randomised_response",
    "spread_over",
]


def cloaking(grid: Grid, *, zone: tuple[int, int] = (3, 3)) -> Channel:
    """Return the channel that reports the centre of the zone that a cell lies in.

    Spatial k-anonymity by a fixed partition: deterministic, and not geo-indistinguishable, because reports
    distinguish zones with certainty (epsilon is infinite unless there is one zone).

    Parameters
    ----------
    grid : Grid
    zone : (int, int)
        Columns and rows of a zone. Zones start in the south-west; the last ones may be smaller.

    Examples
    --------
    >>> channel = cloaking(Grid(0, 0, cell=100, columns=9, rows=9), zone=(3, 3))
    >>> len(channel.outputs), channel.outputs.xy[0], channel.epsilon
    (9, array([100., 100.]), inf)
    """
    wide, high = (as_count(side, "zone") for side in zone)
    column, row = np.arange(len(grid)) % grid.columns, np.arange(len(grid)) // grid.columns
    across = -(-grid.columns // wide)
    targets = row // high * across + column // wide
    sizes = np.bincount(targets)
    centres = np.column_stack([np.bincount(targets, weights=side) / sizes for side in grid.xy.T])
    return Channel.deterministic(grid, Places(centres), targets)


def exponential(
    inputs: Sites,
    outputs: Sites,
    *,
    epsilon: float,
    score: Distance | None = None,
    sensitivity: float | None = None,
    distance: Distance = euclidean,
) -> Channel:
    """Return the exponential mechanism: report z at x with probability proportional to e^(epsilon u / (2 delta)).

    u is the score of z at x, larger is better, and delta its sensitivity: the largest change of the score, for any
    report, per unit of distance between two inputs. Without a score, u is minus the distance to the report and
    delta is 1, which is the d-private form e^(-epsilon d / 2). (The factor 1/2 is needed because the sum over a
    finite set of reports also depends on x: the epsilon of e^(-epsilon d), normalised, is up to twice as large.)

    Parameters
    ----------
    inputs, outputs : Sites
    epsilon : float
        Privacy loss per unit of `distance`.
    score : Distance, optional
        From inputs' and outputs' locations to the (n, m) scores.
    sensitivity : float, optional
        An upper bound of delta; default: the exact value, computed from all scores. With `distance=discrete` it is
        the sensitivity of the lectures: the largest change between any two inputs.
    distance : Distance
        The metric of epsilon. Without a score it must obey the triangle inequality between inputs and outputs.

    Examples
    --------
    >>> grid = Grid(0, 0, cell=100, columns=3, rows=3)
    >>> exponential(grid, grid, epsilon=0.01).epsilon <= 0.01
    True
    """
    apart = distance(inputs.xy, inputs.xy)
    if score is None:
        scores, measured = -distance(inputs.xy, outputs.xy), 1.0
    else:
        scores = np.asarray(score(inputs.xy, outputs.xy), dtype=np.float64)
        if scores.shape != (len(inputs), len(outputs)) or not np.isfinite(scores).all():
            raise InvalidInputError("score must return a finite number for each pair of input and output")
        measured = steepest_slope(scores, apart).rate
    delta = measured if sensitivity is None else as_positive(sensitivity, "sensitivity")
    # The computed one has the rounding error of two scores.
    if not measured * (1 - 1e-12) <= delta < np.inf:
        raise InvalidInputError(f"sensitivity must be finite and at least that of the score, {measured:g}")
    closest = apart[apart > 0].min(initial=np.inf)
    rate = matrix_epsilon(epsilon, closest=closest) if closest < np.inf else as_positive(epsilon, "epsilon")
    scale = rate / (2 * delta) if delta > 0 else 0.0
    weights = np.exp(scale * (scores - scores.max(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    return Channel(inputs, outputs, np.maximum(weights, SMALLEST_ENTRY))


def randomised_response(n: int, *, epsilon: float) -> Channel:
    """Return randomised response: the truth with probability e^epsilon / (n - 1 + e^epsilon), else another value.

    The privacy loss is epsilon between any two different values (`distances.discrete`). With n = 2 and
    epsilon = ln 3 this is the coin protocol: three quarters and one quarter.

    Parameters
    ----------
    n : int
        Number of values, one metre apart on a line.
    epsilon : float
        Privacy loss between two values.

    Examples
    --------
    >>> randomised_response(2, epsilon=np.log(3)).matrix.round(9)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    values = Grid(0, 0, cell=1, columns=as_count(n, "n"), rows=1)
    lie = np.exp(-matrix_epsilon(epsilon, closest=1))
    matrix = np.full((len(values), len(values)), lie)
    np.fill_diagonal(matrix, 1.0)
    return Channel(values, values, np.maximum(matrix / (1 + (len(values) - 1) * lie), SMALLEST_ENTRY))


def planar_geometric(grid: Grid, *, epsilon: float) -> Channel:
    """Return the mechanism with probability proportional to e^(-epsilon d) on the infinite lattice, clamped.

    The infinite lattice is invariant under translation, so the normaliser does not depend on the truth and epsilon
    is attained exactly. Reports outside the grid go to cells on the border.

    Parameters
    ----------
    grid : Grid
    epsilon : float
        Privacy loss per metre.

    Examples
    --------
    >>> channel = planar_geometric(Grid(0, 0, cell=100, columns=5, rows=5), epsilon=0.01)
    >>> round(channel.epsilon, 9)
    0.01
    """
    rate = loss_per_step(grid, epsilon)
    x_steps, x_counts = _lattice_steps(grid.columns, rate, grid.columns + grid.rows)
    y_steps, y_counts = _lattice_steps(grid.rows, rate, grid.columns + grid.rows)
    terms = np.exp(-rate * np.hypot(x_steps[:, None], y_steps))
    half = _cases(len(x_steps), grid.columns, x_counts)
    masses = half @ terms @ _cases(len(y_steps), grid.rows, y_counts).T
    whole_x, whole_y = (2 * counts - (steps == 0) for steps, counts in ((x_steps, x_counts), (y_steps, y_counts)))
    return Channel(grid, grid, spread_over(grid, masses / (whole_x @ terms @ whole_y)))


def _cases(steps: int, count: int, counts: FloatArray) -> FloatArray:
    """Return how often each lattice step is part of a case of `axis_cases`."""
    cases = np.zeros((2 * count + 1, steps))
    place = np.arange(count)
    cases[place, place] = 1
    cases[count + place] = np.where(np.arange(steps) >= place[:, None], counts, 0)
    cases[2 * count] = 2 * counts
    cases[2 * count, 0] = 1
    return cases


def _lattice_steps(count: int, rate: float, farthest: int) -> tuple[FloatArray, FloatArray]:
    """Return steps 0, 1, 2, ... along an axis; far ones as blocks with a few weighted representatives.

    The length of a block follows the scale of the noise, and its representatives sum polynomials of degree 39 over
    the block's whole numbers exactly (Gauss quadrature for the counting measure). So the sum over an infinite
    lattice takes a few hundred terms, however wide the noise.
    """
    steps, counts = list(np.arange(max(count, EXACT), dtype=np.float64)), [1.0] * max(count, EXACT)
    start, last = len(steps), farthest + DECAY / rate
    while start < last:
        size = int(min(start // 2, max(1, SWING / rate)))
        nodes, weights = _counting_quadrature(size)
        steps.extend(start + nodes)
        counts.extend(weights)
        start += size
    return np.array(steps), np.array(counts)


EXACT = 64
"""Steps that are always summed one by one."""

DECAY = 45.0
SWING = 10.0
NODES = 20


def _counting_quadrature(size: int) -> tuple[FloatArray, FloatArray]:
    """Return positive weights and nodes that sum polynomials over 0, 1, ..., size - 1 (Golub and Welsch, 1969)."""
    if size <= NODES:
        return np.arange(size, dtype=np.float64), np.ones(size)
    k = np.arange(1, NODES)
    off_diagonal = np.sqrt(k**2 * (float(size) ** 2 - k**2) / (4 * (4 * k**2 - 1.0)))
    nodes, vectors = np.linalg.eigh(np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1))
    return (size - 1) / 2 + nodes, size * vectors[0] ** 2


def geometric(n: int, *, epsilon: float, cell: float = 1.0, beyond: int = 0) -> Channel:
    """Return the geometric mechanism on n values: report z at x has probability `c e^(-epsilon |z - x|)`.

    The coefficient c is (e^epsilon - 1) / (e^epsilon + 1), as on an infinite line. The range of reports extends
    `beyond` steps beyond the values; the first and the last report take the mass of all farther ones, with the
    coefficient e^epsilon / (e^epsilon + 1). With beyond 0, the default, this is the truncated geometric mechanism.
    Epsilon is attained exactly.

    Parameters
    ----------
    n : int
        Number of values: 0, 1, ..., n - 1 times `cell`, on the x axis.
    epsilon : float
        Privacy loss per metre (per value, if the cell is 1).
    cell : float
        Step between two values, in metres.
    beyond : int
        Number of further values that can be reported at each end.

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
    """Return Laplace noise on a line, density `epsilon / 2 * e^(-epsilon |r|)`, rounded to the closest value.

    Rounding is post-processing, so it does not change epsilon. With beyond 0, the default, the noise is truncated
    to the values: reports beyond an end become the end.

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
    """Return the values, the reports, epsilon per step, and the number of steps from each value to each report."""
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


def loss_per_step(grid: Grid, epsilon: float) -> float:
    """Return the privacy loss per step of the lattice for which a matrix on the grid has epsilon per metre.

    Formulas assume an ideal lattice. The grid's centres are doubles, and where coordinates are large (a national
    grid) two neighbours may be a little closer than a cell: the true distances are used.

    Examples
    --------
    >>> here, there = (Grid(x, 0, cell=0.1, columns=3, rows=1) for x in (0, 5e6))
    >>> loss_per_step(there, 1.0) < loss_per_step(here, 1.0) < 0.1
    True
    """
    west_to_east, south_to_north = grid.xy[: grid.columns, 0], grid.xy[:: grid.columns, 1]
    steps = np.concatenate([np.diff(west_to_east), np.diff(south_to_north)])
    # Relative to the ideal lattice, no distance on the grid is shorter than the shortest step.
    shortest = float(steps.min(initial=grid.cell))
    if not shortest > 0:
        raise InvalidInputError(f"cell {grid.cell:g} is too small: neighbouring cells have the same coordinates")
    return matrix_epsilon(epsilon, closest=shortest) * shortest


def axis_cases(count: int) -> IntArray:
    """Return the case of each pair (truth, report) along an axis of `count` cells.

    Examples
    --------
    >>> axis_cases(3)
    array([[3, 1, 5],
           [4, 0, 4],
           [5, 1, 3]])
    """
    if count == 1:
        return np.array([[2]])
    place = np.arange(count)
    steps: IntArray = np.abs(place[:, None] - place)
    steps[:, [0, -1]] += count
    return steps


def spread_over(grid: Grid, masses: FloatArray) -> FloatArray:
    """Return the matrix on the grid from `masses[case along x, case along y]`.

    No entry is smaller than `SMALLEST_ENTRY`, so that nothing underflows to zero.
    """
    columns, rows = axis_cases(grid.columns), axis_cases(grid.rows)
    matrix = masses[columns[None, :, None, :], rows[:, None, :, None]].reshape(len(grid), len(grid))
    return np.maximum(matrix, SMALLEST_ENTRY)
