"""Private channels that are known before the search for the least loss, or cheap to compute after it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from geoind.arrays import FloatArray
from geoind.channels.channel import Channel
from geoind.channels.discretise import discretise
from geoind.channels.formulas import exponential
from geoind.channels.priors import Prior
from geoind.channels.remap import bayes_remap
from geoind.distances import euclidean
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarLaplace
from geoind.optimal.expost import expost
from geoind.optimal.interior import Iterate, Solution
from geoind.optimal.problem import YARDSTICK, Task
from geoind.space.sites import Grid

__all__ = ["cheap_candidate", "cheap_mechanisms", "first_candidate", "one_report_for_all"]

WITNESSES = 256
"""Inputs that are tried for the first bound, the heaviest ones."""
EXPOST_INPUTS = 1000
"""With more inputs ExPost is not a candidate: its iterations would take minutes."""


def first_candidate(
    task: Task, start: Channel | None, measure: Callable[[Channel], float]
) -> tuple[Solution, FloatArray | None]:
    """Return the start, if it is private, or the best matrix whose rows are all equal if that costs less.

    Also return the matrix of the start.
    """
    found = one_report_for_all(task)
    if start is None:
        return found, None
    seed, objective = start.matrix, task.objective(start.rows)
    if not (objective < found.last.objective and measure(start) <= task.epsilon):
        return found, seed
    last, method = replace(found.last, objective=objective), "the channel at the start"
    return replace(found, matrix=seed, last=last, method=method, kept=start), seed


def one_report_for_all(task: Task) -> Solution:
    """Return the best matrix whose rows are all equal."""
    excess = task.cost
    least = excess.min(axis=1)
    offset = float(task.mass @ least)
    excess = excess - least[:, None]
    expected = task.mass @ excess
    best = int(np.argmin(expected))
    row = np.zeros(len(task.outputs))
    row[best] = 1.0
    objective = offset + float(expected[best])
    # Every row is at least exp(-epsilon * distance) times the row of any one site.
    some = np.argsort(-task.mass, kind="stable")[:WITNESSES]
    damped = (task.mass * np.exp(-task.epsilon * task.apart[some])) @ excess
    bound = offset + float(damped.min(axis=1).max())
    last = Iterate(0, objective, bound, 0.0, YARDSTICK * float(expected.max()))
    return Solution(np.broadcast_to(row, excess.shape), last, "one report for all", "optimal")


def cheap_candidate(task: Task, prior: Prior) -> tuple[FloatArray, str]:
    """Return the matrix of least loss among those of cheap mechanisms, remapped, and its name."""
    best, name = one_report_for_all(task).matrix, "one report for all"
    for channel, mechanism in cheap_mechanisms(task, prior):
        matrix = (channel @ bayes_remap(channel, prior, loss=task.loss, outputs=task.outputs)).matrix
        if task.objective(matrix) < task.objective(best):
            best, name = matrix, f"{mechanism} and Bayes remap"
    return best, name


def cheap_mechanisms(task: Task, prior: Prior) -> list[tuple[Channel, str]]:
    """Return the cheap mechanisms that exist for this task, with their names."""
    inputs, epsilon, distance = task.inputs, task.epsilon, task.distance
    found = [(exponential(inputs, inputs, epsilon=epsilon, distance=distance), "exponential mechanism")]
    if isinstance(inputs, Grid) and distance is euclidean:
        found.append((discretise(PlanarLaplace(epsilon), inputs), "planar Laplace"))
    if len(inputs) <= EXPOST_INPUTS:
        # ExPost does not exist for a loss that differs between inputs at distance 0.
        with suppress(InvalidInputError):
            found.append(
                (expost(prior, epsilon=epsilon, outputs=task.outputs, loss=task.loss, distance=distance), "ExPost")
            )
    return found
