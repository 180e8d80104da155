"""The mechanism of least expected loss among all that keep geo-indistinguishability."""

import math
import time
from collections.abc import Callable

import numpy as np

from geoind.arrays import FloatArray, IntArray, as_number, as_positive, as_unit
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError, SolverError
from geoind.optimal.certificate import Certificate, OptimalChannel
from geoind.optimal.cones import Program
from geoind.optimal.interior import Iterate, Solution, minimise
from geoind.optimal.pairs import classes_of, nearest_pairs, unchained_pairs
from geoind.optimal.problem import as_loss, as_metric
from geoind.optimal.repair import keep_promise
from geoind.optimal.symmetry import Symmetry, symmetry_of
from geoind.priors import Prior
from geoind.sites import Sites

__all__ = ["min_loss_given_epsilon"]

LARGEST_EXPONENT = 600.0
"""exp(-600) = 1e-261 stands for all that is smaller: doubles end at 1e-308."""
SMALLEST_EXPONENT = 1e-13
"""Inputs closer than this in epsilon * distance get equal rows: their ratio cannot be told from 1 in doubles."""
HEADROOM = 1e-11
"""The solver aims at epsilon * (1 - HEADROOM), so that rounding rows to doubles seldom needs a repair."""


def min_loss_given_epsilon(
    prior: Prior,
    *,
    epsilon: float,
    outputs: Sites | None = None,
    loss: Distance = euclidean,
    distance: Distance = euclidean,
    tolerance: float = 1e-7,
    time_limit: float = math.inf,
    progress: Callable[[Iterate], None] | None = None,
) -> OptimalChannel:
    """Return the channel of least expected loss that is epsilon-geo-indistinguishable, with its certificate.

    An exact solution of the linear program of Bordenabe et al. (CCS 2014), over all pairs of inputs. The returned
    matrix keeps the promise as measured: `tight_epsilon(channel, distance) <= epsilon`.

    Parameters
    ----------
    prior : Prior
        Where people are; sites of mass 0 keep their privacy, too.
    epsilon : float
        Privacy loss per unit of `distance`.
    outputs : Sites, optional
        What may be reported; the prior's sites by default.
    loss : Distance
        Cost of reporting an output at an input; any finite numbers.
    distance : Distance
        The metric of the promise: symmetric, not negative, 0 from a site to itself.
    tolerance : float
        Relative gap between objective and bound at which the channel counts as optimal.
    time_limit : float
        Seconds; then the best channel so far is returned, just as private, with the gap that it has.
    progress : callable, optional
        Called with an `Iterate` (iteration, objective, bound, gap, seconds) again and again.

    Raises
    ------
    SolverError
        If the tolerance cannot be met in double precision.

    Examples
    --------
    >>> from geoind import Grid, Prior
    >>> city = Prior.uniform(Grid(0, 0, cell=100, columns=3, rows=3))
    >>> best = min_loss_given_epsilon(city, epsilon=0.01)
    >>> round(best.certificate.objective, 4), best.epsilon <= 0.01
    (88.394, True)
    """
    began = time.perf_counter()
    epsilon = as_positive(epsilon, "epsilon")
    tolerance = as_unit(tolerance, "tolerance")
    if not as_number(time_limit, "time_limit") > 0:
        raise InvalidInputError(f"time_limit must be positive, got {time_limit!r}")
    inputs = prior.sites
    outputs = inputs if outputs is None else outputs
    apart = as_metric(distance(inputs.xy, inputs.xy), len(inputs))
    cost = as_loss(loss(inputs.xy, outputs.xy), (len(inputs), len(outputs)))

    matrix, last, method, optimal = _solve(
        prior, outputs, epsilon, apart, cost, tolerance=tolerance, time_limit=time_limit, progress=progress
    )
    before = float(prior.mass @ (matrix * cost).sum(axis=1))
    channel, measured = keep_promise(inputs, outputs, matrix, epsilon=epsilon, distance=distance)
    objective = float(prior.mass @ (channel.matrix * cost).sum(axis=1))
    certificate = Certificate(
        objective=objective,
        bound=min(last.bound, objective),
        epsilon=measured,
        repair=objective - before,
        iterations=last.iteration,
        seconds=time.perf_counter() - began,
        method=method,
        optimal=optimal,
    )
    return OptimalChannel(inputs, outputs, channel.matrix, certificate)


def _solve(
    prior: Prior,
    outputs: Sites,
    epsilon: float,
    apart: FloatArray,
    cost: FloatArray,
    *,
    tolerance: float,
    time_limit: float,
    progress: Callable[[Iterate], None] | None,
) -> tuple[FloatArray, Iterate, str, bool]:
    """Return a strictly private matrix, the last iterate, the method and whether the tolerance was met."""
    began = time.perf_counter()
    # Only differences within a row matter: what every output costs at least is a constant of the objective.
    least = cost.min(axis=1)
    offset = float(prior.mass @ least)
    expected = prior.mass @ (cost - least[:, None])
    blind = int(np.argmin(expected))
    matrix = np.zeros_like(cost)
    matrix[:, blind] = 1.0
    # A channel whose rows are all equal is within exp(-epsilon * diameter) of the optimum.
    objective = offset + float(expected[blind])
    bound = offset + float(expected[blind]) * math.exp(-epsilon * float(apart.max()))
    start = Iterate(0, objective, bound, time.perf_counter() - began)
    if start.gap <= tolerance:
        return matrix, start, "one report for all", True

    merged = classes_of(apart, SMALLEST_EXPONENT / epsilon)
    weighted = prior.mass[:, None] * (cost - least[:, None])
    if merged.max() + 1 < len(prior.sites):
        symmetry = Symmetry(np.arange(merged.max() + 1)[None], np.arange(len(outputs))[None])
        apart, weighted = _merge(apart, weighted, merged)
    else:
        merged = np.arange(len(prior.sites))
        symmetry = symmetry_of(prior.sites, outputs, apart, cost, prior.mass)
    chosen, weight = symmetry.representatives()
    needed = unchained_pairs(apart)
    ratio = np.where(needed, np.exp(-np.minimum(epsilon * (1 - HEADROOM) * apart, LARGEST_EXPONENT)), 0.0)
    solution: Solution = minimise(
        Program(np.ascontiguousarray(weighted[:, chosen].T), ratio, weight, symmetry.orbit_of_inputs()),
        offset=offset,
        tolerance=tolerance,
        time_limit=time_limit - (time.perf_counter() - began),
        near=nearest_pairs(apart) & needed,
        progress=progress,
    )
    if solution.stopped == "stuck":
        raise SolverError(
            f"the relative gap stays at {solution.last.gap:.1e}, above the tolerance of {tolerance:.1e}; "
            f"pass a larger tolerance to accept it"
        )
    method = (
        "interior point" if len(symmetry.inputs) == 1 else f"interior point, {len(symmetry.inputs)} symmetries"
    )
    return symmetry.expand(solution.columns)[merged], solution.last, method, solution.stopped == "optimal"


def _merge(apart: FloatArray, weighted: FloatArray, merged: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return distances between classes of inputs, the shortest of their members', and their summed costs."""
    count = int(merged.max()) + 1
    total = np.zeros((count, weighted.shape[1]))
    np.add.at(total, merged, weighted)
    shortest = np.full((count, count), np.inf)
    np.minimum.at(shortest, (merged[:, None], merged[None, :]), apart)
    np.fill_diagonal(shortest, 0.0)
    return shortest, total
