"""Channels with a formula, between sites in the plane."""

import numpy as np

from geoind.arrays import FloatArray, as_count, as_positive
from geoind.channels.channel import Channel
from geoind.channels.stencil import loss_per_step, spread_over
from geoind.channels.tightness import steepest_slope
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError
from geoind.mechanisms.precision import SMALLEST_ENTRY, matrix_epsilon
from geoind.space.sites import Grid, Places, Sites

__all__ = ["cloaking", "exponential", "planar_geometric", "randomised_response"]


def cloaking(grid: Grid, *, zone: tuple[int, int] = (3, 3)) -> Channel:
    """Return the channel that reports the centre of the zone a cell lies in.

    Spatial k-anonymity by a fixed partition: no randomness, and no geo-indistinguishability either, because zones
    are told apart with certainty (epsilon is infinite unless there is one zone).

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
    delta is 1, which is the d-private form e^(-epsilon d / 2). (Half, because the sum over a finite set of
    reports depends on x too: e^(-epsilon d), normalised, breaks the promise by up to a factor of two.)

    Parameters
    ----------
    inputs, outputs : Sites
    epsilon : float
        Privacy loss per unit of `distance`.
    score : Distance, optional
        From inputs' and outputs' locations to the (n, m) scores.
    sensitivity : float, optional
        An upper bound of delta known from theory; default: measured, exactly. With `distance=discrete` it is the
        sensitivity of the lectures: the largest change between any two inputs.
    distance : Distance
        The metric of the promise. Without a score it must obey the triangle inequality between inputs and outputs.

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
    # The measured one carries the rounding of its two scores.
    if not measured * (1 - 1e-12) <= delta < np.inf:
        raise InvalidInputError(f"sensitivity must be finite and at least what the score has, {measured:g}")
    closest = apart[apart > 0].min(initial=np.inf)
    rate = matrix_epsilon(epsilon, closest=closest) if closest < np.inf else as_positive(epsilon, "epsilon")
    scale = rate / (2 * delta) if delta > 0 else 0.0
    weights = np.exp(scale * (scores - scores.max(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    return Channel(inputs, outputs, np.maximum(weights, SMALLEST_ENTRY))


def randomised_response(n: int, *, epsilon: float) -> Channel:
    """Return the flat mechanism: the truth with probability e^epsilon / (n - 1 + e^epsilon), else any other value.

    The promise is epsilon between any two different values (`distances.discrete`). With n = 2 this is the coin
    protocol; epsilon = ln 3 gives three quarters and one quarter.

    Parameters
    ----------
    n : int
        Number of values, laid out one metre apart on a line.
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

    The lattice that the grid's centres belong to is the same seen from each of them, so the normaliser does not
    depend on the truth and the promise is exactly epsilon. Cells on the border take all that falls outside.

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
    """Return which lattice steps, and how often, make up a case of `axis_cases`."""
    cases = np.zeros((2 * count + 1, steps))
    place = np.arange(count)
    cases[place, place] = 1
    cases[count + place] = np.where(np.arange(steps) >= place[:, None], counts, 0)
    cases[2 * count] = 2 * counts
    cases[2 * count, 0] = 1
    return cases


def _lattice_steps(count: int, rate: float, farthest: int) -> tuple[FloatArray, FloatArray]:
    """Return steps 0, 1, 2, ... along an axis, far ones in blocks by a few weighted representatives.

    Blocks are as long as the noise is smooth, and their representatives integrate polynomials of degree 39 over
    the block's whole numbers exactly (Gauss quadrature for the counting measure), so that the sum over an
    infinite lattice takes a few hundred terms however wide the noise.
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
"""Steps that are always counted one by one."""

DECAY = 45.0
SWING = 10.0
NODES = 20


def _counting_quadrature(size: int) -> tuple[FloatArray, FloatArray]:
    """Return positive weights and nodes that sum polynomials over 0, 1, ..., size - 1 (Golub and Welsch, 1969)."""
    if size <= NODES:
        return np.arange(size, dtype=np.float64), np.ones(size)
    k = np.arange(1, NODES)
    beside = np.sqrt(k**2 * (float(size) ** 2 - k**2) / (4 * (4 * k**2 - 1.0)))
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return (size - 1) / 2 + nodes, size * vectors[0] ** 2
