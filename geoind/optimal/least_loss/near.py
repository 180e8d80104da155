"""Cheap private channels, and a bound on what an optimal one could save."""

from contextlib import suppress

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.channels.channel import Channel
from geoind.channels.discretise import discretise
from geoind.channels.formulas import exponential
from geoind.channels.priors import Prior
from geoind.channels.remap import bayes_remap
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarLaplace
from geoind.optimal.expost import expost
from geoind.optimal.least_loss.effort import Effort
from geoind.optimal.least_loss.exact import Task, solve
from geoind.space.sites import Grid, Places

__all__ = ["cheap_candidate", "partition_bound"]

GROUP_TOLERANCE = 1e-2


def cheap_candidate(task: Task, prior: Prior, loss: Distance, distance: Distance) -> tuple[FloatArray, str]:
    """Return the matrix of least loss among those of cheap mechanisms, remapped, and its name."""
    best, name = np.zeros_like(task.cost), "one report for all"
    best[:, int(np.argmin(task.mass @ task.cost))] = 1.0
    for channel, mechanism in _mechanisms(task, prior, loss, distance):
        matrix = (channel @ bayes_remap(channel, prior, loss=loss, outputs=task.outputs)).matrix
        if task.objective(matrix) < task.objective(best):
            best, name = matrix, f"{mechanism} and Bayes remap"
    return best, name


def _mechanisms(task: Task, prior: Prior, loss: Distance, distance: Distance) -> "list[tuple[Channel, str]]":
    """Return the cheap mechanisms that there are for this task, by name."""
    inputs, epsilon = task.inputs, task.epsilon
    found = [(exponential(inputs, inputs, epsilon=epsilon, distance=distance), "exponential mechanism")]
    if isinstance(inputs, Grid) and distance is euclidean:
        found.append((discretise(PlanarLaplace(epsilon), inputs), "planar Laplace"))
    # A loss that jumps between inputs at distance 0 has no ExPost; the others do not depend on the loss.
    with suppress(InvalidInputError):
        found.append(
            (expost(prior, epsilon=epsilon, outputs=task.outputs, loss=loss, distance=distance), "ExPost")
        )
    return found


def partition_bound(task: Task, largest_group: int) -> tuple[float, int, float]:
    """Return a lower bound on the loss of every private channel, the number of groups and the yardstick of gaps.

    Rows of one group keep the promise among themselves, so that they cannot lose less than the group's optimum.
    """
    groups = _interleaved(task, largest_group)
    bound = yardstick = 0.0
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero((groups == group) & (task.mass > 0))
        share = float(task.mass[rows].sum())
        if not len(rows):
            continue
        part = Task(
            inputs=Places(task.inputs.xy[rows]),
            outputs=task.outputs,
            mass=task.mass[rows] / share,
            epsilon=task.epsilon,
            apart=task.apart[np.ix_(rows, rows)],
            cost=task.cost[rows],
        )
        last = solve(part, Effort(tolerance=GROUP_TOLERANCE)).last
        bound += share * last.bound
        yardstick += share * last.yardstick
    return bound, int(groups.max()) + 1, yardstick


def _interleaved(task: Task, largest: int) -> IntArray:
    """Return a group for each input; each group is spread over all places, for that keeps its uncertainty."""
    n = len(task.inputs)
    if n <= largest:
        return np.zeros(n, dtype=np.int64)
    if isinstance(task.inputs, Grid):
        stride = int(np.ceil(np.sqrt(n / largest)))
        row, column = np.divmod(np.arange(n), task.inputs.columns)
        return np.asarray((row % stride) * stride + column % stride)
    count = -(-n // largest)
    # Along a sweep of the plane neighbours follow each other; dealing them out in turn spreads every group.
    order = np.lexsort(task.inputs.xy.T)
    groups = np.empty(n, dtype=np.int64)
    groups[order] = np.arange(n) % count
    return groups
