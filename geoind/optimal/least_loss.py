"""The mechanism of least expected loss among all that are epsilon-geo-indistinguishable.

From the problem to matrices, from these to a smaller program (merged inputs, symmetries, needed pairs), then the
interior-point method, and back to a channel with a certificate. Large problems are solved by neighbourhoods.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.sparse.csgraph import floyd_warshall

from geoind.arrays import FloatArray, as_number, as_positive, as_unit
from geoind.channels.channel import Channel, tight_epsilon
from geoind.channels.discretise import discretise
from geoind.channels.extended import LARGEST_EXPONENT
from geoind.channels.formulas import exponential
from geoind.channels.priors import Prior
from geoind.channels.remap import bayes_remap
from geoind.channels.rows import Rows, parts_of
from geoind.distances import Distance, euclidean, manhattan
from geoind.errors import InvalidInputError, SolverError, plural
from geoind.mechanisms.planar import PlanarLaplace
from geoind.optimal.cones import (
    Program,
    classes_of,
    merge_classes,
    nearest_pairs,
    spanner,
    unchained_pairs,
)
from geoind.optimal.everywhere import as_squares, interpolated_epsilon, memory_needed, minimise_everywhere
from geoind.optimal.expost import expost
from geoind.optimal.extension import extended_channel
from geoind.optimal.interior import Found, Iterate, Solution, minimise
from geoind.optimal.neighbourhoods import bracket
from geoind.optimal.problem import (
    YARDSTICK,
    Certificate,
    OptimalChannel,
    as_loss,
    as_metric,
    keep_promise,
    moved_to,
)
from geoind.optimal.symmetry import Symmetry, symmetry_of
from geoind.space.sites import Grid, Sites

__all__ = ["min_loss_given_epsilon"]

TOLERANCE, TOLERANCE_EVERYWHERE = 1e-7, 1e-5
SMALLEST_EXPONENT = 1e-13
"""Inputs closer than this in epsilon * distance get equal rows: in doubles their ratio is 1."""
HEADROOM = 1e-11
"""The solver runs with epsilon * (1 - HEADROOM), so that rounding the rows to doubles seldom needs a repair."""
MEMORY = 8e9
"""Largest memory, in bytes."""
RELAXED_TOLERANCE = 1e-3
"""Relative gap of the relaxation that bounds the answer of a spanner, whose loss is some percent larger anyway."""
NEIGHBOURHOOD_TOLERANCE = 1e-3
"""Smallest tolerance for which neighbourhoods are used; for less they would contain nearly all inputs."""
EXACT_WORK = 1e10
"""Operations of one iteration of the exact method, up to which it is faster than neighbourhoods."""
SYMMETRIES = 8
"""The most that are searched."""
WITNESSES = 256
"""Inputs that are tried for the first bound, the heaviest ones."""
METRICS = euclidean, manhattan
"""Distances whose triangle inequality need not be checked: that takes n^3 operations."""
EXPOST_INPUTS = 1000
"""With more inputs ExPost is not a candidate: its iterations would take minutes."""
LEAST_SECONDS = 1e-9
"""Remaining time after the time limit: the first iterate ends the search."""


def min_loss_given_epsilon(
    prior: Prior,
    *,
    epsilon: float,
    outputs: Sites | None = None,
    loss: Distance = euclidean,
    distance: Distance = euclidean,
    everywhere: bool = False,
    dilation: float = 1.0,
    tolerance: float | None = None,
    time_limit: float = math.inf,
    start: Channel | None = None,
    progress: Callable[[Iterate], None] | None = None,
) -> OptimalChannel:
    """Return the channel of least expected loss that is epsilon-geo-indistinguishable, with its certificate.

    A solution of the linear program of Bordenabe et al. (CCS 2014), over all pairs of inputs: exact by default,
    and with a `tolerance` such as 0.02 also for thousands of sites. The measured epsilon of the returned matrix is
    within the requested one: `tight_epsilon(channel, distance) <= epsilon`, and with `everywhere` that of
    `Interpolated(channel)`.

    Parameters
    ----------
    prior : Prior
        Distribution of the true locations; sites of mass 0 are protected as well.
    epsilon : float
        Privacy loss per unit of `distance`.
    outputs : Sites, optional
        The possible reports; default: the prior's sites.
    loss : Distance
        Cost of reporting an output at an input; any finite numbers.
    distance : Distance
        The metric of epsilon: symmetric, not negative, 0 from a site to itself.
    everywhere : bool
        Whether epsilon is to hold between any two places, for `Interpolated(channel)`, and not only between the
        sites. For a grid of at least two rows and columns and the Euclidean distance; `certificate.epsilon` is
        then that of the interpolation, and the bound is for all channels whose interpolation is private.
    dilation : float
        Above 1, only the pairs of a spanner are constraints, at epsilon divided by its actual dilation: fewer
        constraints, some percent more loss, the same epsilon. The certificate's bound is for the true optimum.
    tolerance : float, optional
        Relative gap between objective and bound at which a channel counts as optimal; default: 1e-7, or 1e-5 with
        `everywhere`. From 0.001 on, large problems between sites are solved by neighbourhoods; both bounds are
        proven for all pairs of inputs as well.
    time_limit : float
        Seconds; afterwards the best channel so far is returned, with the same epsilon and the gap that it has.
    start : Channel, optional
        An earlier answer, for the same sites or others of the same area, such as a coarser grid. If its measured
        epsilon is within the requested one, the result costs at most as much. The search by neighbourhoods begins
        at its columns.
    progress : callable, optional
        Called with an `Iterate` (iteration, objective, bound, gap, seconds) after each iteration.

    Raises
    ------
    InvalidInputError
        Also if the problem takes more than 8 GB of memory, before it starts.
    SolverError
        If the tolerance cannot be reached in double precision.

    Examples
    --------
    >>> from geoind import Grid, Prior
    >>> city = Prior.uniform(Grid(0, 0, cell=100, columns=3, rows=3))
    >>> best = min_loss_given_epsilon(city, epsilon=0.01)
    >>> round(best.certificate.objective, 4), best.epsilon <= 0.01
    (88.394, True)
    """
    began = time.perf_counter()
    if tolerance is None:
        tolerance = TOLERANCE_EVERYWHERE if everywhere else TOLERANCE
    tolerance = as_unit(tolerance, "tolerance")
    if not as_number(time_limit, "time_limit") > 0:
        raise InvalidInputError(f"time_limit must be positive, got {time_limit!r}")
    if progress is not None and not callable(progress):
        raise InvalidInputError(f"progress must be callable, got {type(progress).__name__}")
    if not as_number(dilation, "dilation") >= 1:
        raise InvalidInputError(f"dilation must be at least 1, got {dilation!r}")
    task = _Task(
        inputs=prior.sites,
        outputs=prior.sites if outputs is None else outputs,
        mass=prior.mass,
        epsilon=as_positive(epsilon, "epsilon"),
        distance=distance,
        loss=loss,
    )
    measure = interpolated_epsilon if everywhere else partial(tight_epsilon, distance=distance)
    if everywhere:
        if distance is not euclidean or dilation > 1:
            raise InvalidInputError("everywhere needs distance=euclidean and dilation=1")
        task = replace(task, everywhere=as_squares(prior.sites))
    seed = None if start is None else moved_to(prior.sites, task.outputs, start)
    found = _solve(
        task,
        tolerance=tolerance,
        time_limit=time_limit,
        progress=progress,
        dilation=dilation,
        known=_first(task, seed, measure),
        seed=seed,
    )
    if found.stopped == "stuck":
        raise SolverError(
            f"the relative gap stays at {found.last.gap:.1e}, above the tolerance of {tolerance:.1e}; "
            f"pass a larger tolerance to accept it"
        )
    if found.stopped in ("time limit", "memory") and not everywhere:
        matrix, method = _cheap_candidate(task, prior)
        if task.objective(matrix) < found.last.objective:
            method = f"{found.method}, out of {found.stopped.split()[0]}: {method}"
            found = replace(found, kept=None, matrix=matrix, method=method)
    if distance is not euclidean:
        found = replace(found, kept=None)
    return _certified(task, found, measure, tolerance, began)


@dataclass(frozen=True)
class _Task:
    """The program: minimise sum mass cost K over the matrices K with ratios of at most exp(epsilon apart)."""

    inputs: Sites
    outputs: Sites
    mass: FloatArray
    epsilon: float
    distance: Distance
    loss: Distance
    everywhere: Grid | None = None
    """The inputs, if the constraints are those of the interpolated matrix."""

    @property
    def apart(self) -> FloatArray:
        """The distances of the inputs, computed and checked at each call: for a city they take a gigabyte."""
        return as_metric(self.distance(self.inputs.xy, self.inputs.xy), len(self.inputs))

    @property
    def cost(self) -> FloatArray:
        """The loss of each output at each input, likewise."""
        return as_loss(self.loss(self.inputs.xy, self.outputs.xy), (len(self.inputs), len(self.outputs)))

    def objective(self, matrix: Rows) -> float:
        """Return the expected loss of a matrix."""
        cost = self.cost
        parts = parts_of(matrix)
        return float(sum(self.mass[part] @ np.einsum("xz,xz->x", rows, cost[part]) for part, rows in parts))


def _certified(
    task: _Task, found: Solution, measure: Callable[[Channel], float], tolerance: float, began: float
) -> OptimalChannel:
    """Return the channel with its certificate, repaired where rounding exceeded epsilon."""
    before = task.objective(found.matrix)
    ends = task.inputs, task.outputs
    channel = None if found.kept is None else extended_channel(*ends, found.matrix, found.kept)
    if channel is None or not (measured := channel.epsilon) <= task.epsilon:
        channel, measured = keep_promise(*ends, found.matrix, epsilon=task.epsilon, measure=measure)
    last = replace(found.last, objective=task.objective(channel.rows))
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
    return OptimalChannel(*ends, channel.rows, certificate)


def _solve(
    task: _Task,
    *,
    tolerance: float,
    time_limit: float = math.inf,
    progress: Callable[[Iterate], None] | None = None,
    dilation: float = 1.0,
    known: Solution | None = None,
    seed: FloatArray | None = None,
) -> Solution:
    """Return the least loss: proven to the tolerance, or as far as time and precision allow.

    `known` is a private matrix with a bound, by default one report for all; `seed` need not be private.
    """
    deadline = time.perf_counter() + time_limit
    known = known or _one_report_for_all(task)
    if known.last.gap <= tolerance:
        return known
    excess = task.cost
    least = excess.min(axis=1, keepdims=True)
    # Only differences within a row matter: the least cost of each row is a constant of the objective.
    offset = float(task.mass @ least[:, 0])
    excess = excess - least
    weighted = task.mass[:, None] * excess
    if task.everywhere is not None:
        symmetry = symmetry_of(task.inputs, task.outputs, task.apart, task.cost, task.mass)
        chosen, weight = symmetry.representatives()
        _check_memory(memory_needed(len(chosen), task.everywhere), task, "choose larger cells")
        columns = minimise_everywhere(
            Program(
                np.ascontiguousarray(weighted[:, chosen].T),
                weight,
                symmetry.orbit_of_inputs(),
                excess[:, chosen].argmin(axis=0),
            ),
            task.everywhere,
            epsilon=task.epsilon * (1 - HEADROOM),
            offset=offset,
            yardstick=known.last.yardstick,
            tolerance=tolerance,
            time_limit=max(deadline - time.perf_counter(), LEAST_SECONDS),
            progress=progress,
        )
        return _or_known(_named(columns, symmetry, "interior point on the corners"), known, tolerance)
    apart, triangles = task.apart, task.distance in METRICS
    merged = classes_of(apart, SMALLEST_EXPONENT / task.epsilon)
    approximate = dilation == 1 and tolerance >= NEIGHBOURHOOD_TOLERANCE
    if merged.max() + 1 < len(task.inputs):
        triangles = False
        symmetry = Symmetry(np.arange(merged.max() + 1)[None], np.arange(len(task.outputs))[None])
        apart, weighted = merge_classes(apart, weighted, merged)
    else:
        merged = np.arange(len(task.inputs))
        symmetry = Symmetry(merged[None], np.arange(len(task.outputs))[None])
        if not approximate or len(task.outputs) * len(apart) ** 3.0 <= SYMMETRIES * EXACT_WORK:
            symmetry = symmetry_of(task.inputs, task.outputs, apart, task.cost, task.mass)
    chosen, weight = symmetry.representatives()
    if approximate and len(chosen) * len(apart) ** 3.0 > EXACT_WORK:
        reference = merged[excess.argmin(axis=0)]
        whole = len(apart) == len(task.inputs)
        # One input of each class; a slice copies nothing.
        members = slice(None) if whole else np.unique(merged, return_index=True)[1]
        # The constraints of a path imply that of its ends, so a table of distances may be replaced by its shortest
        # paths; the extension of columns needs the triangle inequality.
        distances = partial(getattr, task, "apart") if triangles else floyd_warshall(apart).copy
        del apart, excess
        around = bracket(
            mass=np.bincount(merged, task.mass).astype(np.float64),
            cost=weighted,
            distances=distances,
            along=_along(task.inputs)[members],
            reference=reference,
            epsilon=task.epsilon,
            largest_exponent=LARGEST_EXPONENT,
            start=replace(known, matrix=known.matrix[members]),
            seed=None if seed is None else seed[members],
            offset=offset,
            tolerance=tolerance,
            deadline=deadline,
            memory=MEMORY,
            progress=progress,
        )
        return around if whole else replace(around, matrix=around.matrix[merged], kept=None)
    # Factors, the active set, and what is temporary.
    _check_memory(len(chosen) * len(apart) ** 2 * 11.0, task, "pass a larger tolerance, such as 0.02")
    pairs = unchained_pairs(apart)
    factor = 1.0
    if dilation > 1:
        pairs, factor = spanner(apart, dilation)

    def run(epsilon: float, tolerance: float, progress: Callable[[Iterate], None] | None) -> Solution:
        exponent = np.minimum(epsilon * (1 - HEADROOM) * apart, LARGEST_EXPONENT)
        columns = minimise(
            Program(
                np.ascontiguousarray(weighted[:, chosen].T),
                weight,
                symmetry.orbit_of_inputs(),
                merged[excess[:, chosen].argmin(axis=0)],
            ),
            np.where(pairs, np.exp(-exponent), 0.0),
            offset=offset,
            yardstick=known.last.yardstick,
            near=nearest_pairs(apart) & pairs,
            tolerance=tolerance,
            time_limit=max(deadline - time.perf_counter(), LEAST_SECONDS),
            progress=progress,
        )
        found = _named(columns, symmetry, "interior point")
        return replace(found, matrix=found.matrix[merged])

    found = run(task.epsilon / factor, tolerance, progress)
    if factor > 1:
        # The same pairs at full epsilon are a subset of all constraints: their optimum bounds the true one.
        bound = run(task.epsilon, max(tolerance, RELAXED_TOLERANCE), None).last.bound
        method = f"{found.method}, spanner of {plural(pairs.sum() // 2, 'pair')} and dilation {factor:.4f}"
        found = replace(found, last=replace(found.last, bound=bound), method=method, stopped="spanner")
    return _or_known(found, known, tolerance)


def _named(found: Found, symmetry: Symmetry, method: str) -> Solution:
    """Return the whole matrix of the columns that were found, and how."""
    columns, last, stopped = found
    if len(symmetry.inputs) > 1:
        method += f", {len(symmetry.inputs)} symmetries"
    return Solution(symmetry.expand(columns), last, method, stopped)


def _or_known(found: Solution, known: Solution, tolerance: float) -> Solution:
    """Return the better one of two matrices, with the better bound."""
    bound = max(found.last.bound, known.last.bound)
    if known.last.objective < found.last.objective:
        found = replace(found, matrix=known.matrix, method=known.method)
    objective = min(found.last.objective, known.last.objective)
    last = replace(found.last, objective=objective, bound=bound)
    return replace(found, last=last, stopped="optimal" if last.gap <= tolerance else found.stopped)


def _check_memory(needed: float, task: _Task, advice: str) -> None:
    """Raise an error if a problem takes too much memory."""
    if needed > MEMORY:
        size = f"{len(task.inputs)} inputs and {len(task.outputs)} outputs"
        raise InvalidInputError(f"{size} would take {needed / 1e9:.0f} GB of memory; {advice}")


def _along(sites: Sites) -> FloatArray:
    """Return the coordinate of the sites that has the largest range: the last one of equal ones, as grids are."""
    reverse = sites.xy[:, ::-1]
    return np.asarray(reverse[:, np.argmax(np.ptp(reverse, axis=0))])


def _first(task: _Task, seed: FloatArray | None, measure: Callable[[Channel], float]) -> Solution:
    """Return the seed, if it is private, or the best matrix whose rows are all equal if that costs less."""
    found = _one_report_for_all(task)
    if seed is None or not (objective := task.objective(seed)) < found.last.objective:
        return found
    if not measure(Channel(task.inputs, task.outputs, seed)) <= task.epsilon:
        return found
    return replace(
        found, matrix=seed, last=replace(found.last, objective=objective), method="the channel at the start"
    )


def _one_report_for_all(task: _Task) -> Solution:
    """Return the best matrix whose rows are all equal."""
    cost = task.cost
    least = cost.min(axis=1)
    offset = float(task.mass @ least)
    excess = cost - least[:, None]
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
    return Solution(np.broadcast_to(row, cost.shape), last, "one report for all", "optimal")


def _cheap_candidate(task: _Task, prior: Prior) -> tuple[FloatArray, str]:
    """Return the matrix of least loss among those of cheap mechanisms, remapped, and its name."""
    best, name = _one_report_for_all(task).matrix, "one report for all"
    for channel, mechanism in _mechanisms(task, prior):
        matrix = (channel @ bayes_remap(channel, prior, loss=task.loss, outputs=task.outputs)).matrix
        if task.objective(matrix) < task.objective(best):
            best, name = matrix, f"{mechanism} and Bayes remap"
    return best, name


def _mechanisms(task: _Task, prior: Prior) -> list[tuple[Channel, str]]:
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
