"""The program of least loss from matrices to matrices: reductions, the interior-point method, and back."""

import time
from dataclasses import dataclass, replace

import numpy as np

from geoind.arrays import FloatArray, IntArray, as_positive
from geoind.channels.priors import Prior
from geoind.distances import Distance
from geoind.errors import InvalidInputError, plural
from geoind.optimal.certificate import YARDSTICK
from geoind.optimal.least_loss.cones import Program
from geoind.optimal.least_loss.effort import Effort, Iterate, Stopped
from geoind.optimal.least_loss.interior import minimise
from geoind.optimal.least_loss.pairs import classes_of, nearest_pairs, spanner, unchained_pairs
from geoind.optimal.problem import as_loss, as_metric
from geoind.optimal.symmetry import Symmetry, symmetry_of
from geoind.space.sites import Sites

__all__ = ["LeastLoss", "Task", "as_task", "solve"]

LARGEST_EXPONENT = 200.0
"""exp(-200) = 1e-87 stands for all that is smaller: the square of a probability must not underflow."""
SMALLEST_EXPONENT = 1e-13
"""Inputs closer than this in epsilon * distance get equal rows: their ratio cannot be told from 1 in doubles."""
HEADROOM = 1e-11
"""The solver aims at epsilon * (1 - HEADROOM), so that rounding rows to doubles seldom needs a repair."""
MEMORY = 6e9
"""Bytes that the factors of all blocks may take."""
RELAXED_TOLERANCE = 1e-3
"""Relative gap of the relaxation that bounds a spanner's answer, which is some percent off anyway."""


@dataclass(frozen=True)
class Task:
    """What to minimise: sum mass cost K over the matrices K that keep exp(-epsilon apart)."""

    inputs: Sites
    outputs: Sites
    mass: FloatArray
    epsilon: float
    apart: FloatArray
    cost: FloatArray

    def objective(self, matrix: FloatArray) -> float:
        """Return the expected loss of a matrix."""
        return float(self.mass @ (matrix * self.cost).sum(axis=1))


def as_task(prior: Prior, epsilon: float, outputs: Sites | None, loss: Distance, distance: Distance) -> Task:
    """Return the program of least loss as matrices, checked."""
    inputs = prior.sites
    outputs = inputs if outputs is None else outputs
    return Task(
        inputs=inputs,
        outputs=outputs,
        mass=prior.mass,
        epsilon=as_positive(epsilon, "epsilon"),
        apart=as_metric(distance(inputs.xy, inputs.xy), len(inputs)),
        cost=as_loss(loss(inputs.xy, outputs.xy), (len(inputs), len(outputs))),
    )


@dataclass(frozen=True)
class LeastLoss:
    """A matrix strictly inside the promise, what is proven about it, and how it was found."""

    matrix: FloatArray
    last: Iterate
    method: str
    stopped: Stopped


def solve(task: Task, effort: Effort, *, dilation: float = 1.0) -> LeastLoss:
    """Return the least loss: proven to the tolerance, or as far as time and precision allow."""
    began = time.perf_counter()
    ignorant = _one_report_for_all(task)
    if ignorant.last.gap <= effort.tolerance:
        return ignorant
    least = task.cost.min(axis=1, keepdims=True)
    # Only differences within a row matter: what every output costs at least is a constant of the objective.
    offset = float(task.mass @ least[:, 0])
    excess = task.cost - least
    weighted = task.mass[:, None] * excess
    merged = classes_of(task.apart, SMALLEST_EXPONENT / task.epsilon)
    apart = task.apart
    if merged.max() + 1 < len(task.inputs):
        symmetry = Symmetry(np.arange(merged.max() + 1)[None], np.arange(len(task.outputs))[None])
        apart, weighted = _merge(apart, weighted, merged)
    else:
        merged = np.arange(len(task.inputs))
        symmetry = symmetry_of(task.inputs, task.outputs, apart, task.cost, task.mass)
    chosen, weight = symmetry.representatives()
    needed = len(chosen) * len(apart) ** 2 * 9.0
    if needed > MEMORY:
        raise InvalidInputError(
            f"{len(apart)} inputs and {len(chosen)} outputs would take {needed / 1e9:.0f} GB; "
            f"near_optimal_given_epsilon has no such limit"
        )
    pairs = unchained_pairs(apart)
    factor = 1.0
    if dilation > 1:
        pairs, factor = spanner(apart, dilation)

    def run(epsilon: float, effort: Effort) -> LeastLoss:
        exponent = np.minimum(epsilon * (1 - HEADROOM) * apart, LARGEST_EXPONENT)
        solution = minimise(
            Program(
                np.ascontiguousarray(weighted[:, chosen].T),
                np.where(pairs, np.exp(-exponent), 0.0),
                weight,
                symmetry.orbit_of_inputs(),
                merged[excess[:, chosen].argmin(axis=0)],
            ),
            offset=offset,
            yardstick=ignorant.last.yardstick,
            near=nearest_pairs(apart) & pairs,
            effort=effort,
        )
        method = "interior point"
        if len(symmetry.inputs) > 1:
            method += f", {len(symmetry.inputs)} symmetries"
        return LeastLoss(symmetry.expand(solution.columns)[merged], solution.last, method, solution.stopped)

    found = run(task.epsilon / factor, effort.after(time.perf_counter() - began))
    if factor > 1:
        # The same pairs at full epsilon are a subset of all constraints: their optimum bounds the true one.
        left = effort.after(time.perf_counter() - began)
        relaxed = replace(left, tolerance=max(effort.tolerance, RELAXED_TOLERANCE), progress=None)
        bound = run(task.epsilon, relaxed).last.bound
        method = f"{found.method}, spanner of {plural(pairs.sum() // 2, 'pair')} and dilation {factor:.4f}"
        found = replace(found, last=replace(found.last, bound=bound), method=method, stopped="spanner")
    bound = max(found.last.bound, ignorant.last.bound)
    if ignorant.last.objective < found.last.objective:
        found = replace(found, matrix=ignorant.matrix, method=ignorant.method)
    objective = min(found.last.objective, ignorant.last.objective)
    last = replace(found.last, objective=objective, bound=bound)
    return replace(found, last=last, stopped="optimal" if last.gap <= effort.tolerance else found.stopped)


def _one_report_for_all(task: Task) -> LeastLoss:
    """Return the best matrix whose rows are all equal."""
    least = task.cost.min(axis=1)
    offset = float(task.mass @ least)
    excess = task.cost - least[:, None]
    expected = task.mass @ excess
    best = int(np.argmin(expected))
    matrix = np.zeros_like(task.cost)
    matrix[:, best] = 1.0
    objective = offset + float(expected[best])
    # Every row is at least exp(-epsilon * distance) times the row of any one site.
    damped = (task.mass * np.exp(-task.epsilon * task.apart)) @ excess
    bound = offset + float(damped.min(axis=1).max())
    last = Iterate(0, objective, bound, 0.0, YARDSTICK * float(expected.max()))
    return LeastLoss(matrix, last, "one report for all", "optimal")


def _merge(apart: FloatArray, weighted: FloatArray, merged: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return distances between classes of inputs, the shortest of their members', and their summed costs."""
    count = int(merged.max()) + 1
    total = np.zeros((count, weighted.shape[1]))
    np.add.at(total, merged, weighted)
    shortest = np.full((count, count), np.inf)
    np.minimum.at(shortest, (merged[:, None], merged[None, :]), apart)
    np.fill_diagonal(shortest, 0.0)
    return shortest, total
