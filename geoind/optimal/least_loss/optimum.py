"""The mechanism of least expected loss among all that keep geo-indistinguishability."""

import time
from dataclasses import replace

from geoind.arrays import as_number
from geoind.channels.priors import Prior
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError, SolverError
from geoind.optimal.certificate import Certificate, OptimalChannel
from geoind.optimal.least_loss.effort import Effort, Iterate
from geoind.optimal.least_loss.exact import LeastLoss, Task, as_task, solve
from geoind.optimal.least_loss.near import cheap_candidate, partition_bound
from geoind.optimal.repair import keep_promise
from geoind.space.sites import Sites

__all__ = ["min_loss_given_epsilon", "near_optimal_given_epsilon"]


def min_loss_given_epsilon(
    prior: Prior,
    *,
    epsilon: float,
    outputs: Sites | None = None,
    loss: Distance = euclidean,
    distance: Distance = euclidean,
    dilation: float = 1.0,
    effort: Effort = Effort(),
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
    dilation : float
        Above 1, only the pairs of a spanner are constraints, at epsilon divided by its actual dilation: fewer
        constraints, some percent more loss, the same promise. The certificate's bound is for the true optimum.
    effort : Effort
        How exactly, how long, and who hears of it meanwhile: `geoind.optimal.Effort(time_limit=60)`.

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
    if not isinstance(effort, Effort):
        raise InvalidInputError(f"effort must be an Effort, such as Effort(time_limit=60), got {effort!r}")
    if not as_number(dilation, "dilation") >= 1:
        raise InvalidInputError(f"dilation must be at least 1, got {dilation!r}")
    task = as_task(prior, epsilon, outputs, loss, distance)
    found = solve(task, effort, dilation=dilation)
    if found.stopped == "stuck":
        raise SolverError(
            f"the relative gap stays at {found.last.gap:.1e}, above the tolerance of {effort.tolerance:.1e}; "
            f"pass an Effort with a larger tolerance to accept it"
        )
    if found.stopped == "time limit":
        matrix, method = cheap_candidate(task, prior, loss, distance)
        if task.objective(matrix) < found.last.objective:
            found = replace(found, matrix=matrix, method=f"{found.method} out of time: {method}")
    return _certified(task, found, distance, effort.tolerance, began)


def near_optimal_given_epsilon(
    prior: Prior,
    *,
    epsilon: float,
    outputs: Sites | None = None,
    loss: Distance = euclidean,
    distance: Distance = euclidean,
    largest_group: int = 100,
) -> OptimalChannel:
    """Return the best of some cheap epsilon-private channels, with a bound on what an optimal one could save.

    Planar Laplace on a grid, the exponential mechanism and ExPost, each followed by the remapping of least loss.
    The bound is proven: it splits the inputs into interleaved groups and solves each exactly. Privacy between
    groups is relaxed, so that the sum cannot exceed the optimum. For thousands of sites, where
    `min_loss_given_epsilon` takes too long.

    Parameters
    ----------
    prior, epsilon, outputs, loss, distance
        As in `min_loss_given_epsilon`.
    largest_group : int
        Inputs per group. Larger groups give a better bound and take longer, with the cube of their size.

    Examples
    --------
    >>> from geoind import Grid, Prior
    >>> city = Prior.uniform(Grid(0, 0, cell=100, columns=5, rows=5))
    >>> good = near_optimal_given_epsilon(city, epsilon=0.01)
    >>> good.epsilon <= 0.01, good.certificate.gap < 0.1
    (True, True)
    """
    began = time.perf_counter()
    if not as_number(largest_group, "largest_group") >= 1:
        raise InvalidInputError(f"largest_group must be at least 1, got {largest_group!r}")
    task = as_task(prior, epsilon, outputs, loss, distance)
    matrix, method = cheap_candidate(task, prior, loss, distance)
    bound, groups, yardstick = partition_bound(task, int(largest_group))
    last = Iterate(groups, task.objective(matrix), bound, 0.0, yardstick)
    return _certified(task, LeastLoss(matrix, last, method, "near"), distance, Effort().tolerance, began)


def _certified(task: Task, found: LeastLoss, distance: Distance, tolerance: float, began: float) -> OptimalChannel:
    """Return the channel, repaired where rounding broke the promise, with its proof."""
    before = task.objective(found.matrix)
    channel, measured = keep_promise(
        task.inputs, task.outputs, found.matrix, epsilon=task.epsilon, distance=distance
    )
    last = replace(found.last, objective=task.objective(channel.matrix))
    certificate = Certificate(
        objective=last.objective,
        bound=min(last.bound, last.objective),
        gap=last.gap,
        epsilon=float(measured),
        repair=last.objective - before,
        iterations=last.iteration,
        seconds=time.perf_counter() - began,
        method=found.method,
        optimal=found.stopped == "optimal" or last.gap <= tolerance,
    )
    return OptimalChannel(task.inputs, task.outputs, channel.matrix, certificate)
