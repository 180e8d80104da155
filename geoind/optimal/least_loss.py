"""The mechanism of least expected loss among all that are epsilon-geo-indistinguishable.

From the problem to matrices, from these to a smaller program (merged inputs, symmetries, needed pairs), then the
interior-point method, and back to a channel with a certificate. Large problems are solved by neighbourhoods.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.sparse.csgraph import floyd_warshall

from geoind.arrays import FloatArray, as_number, as_unit
from geoind.channels.channel import Channel, tight_epsilon
from geoind.channels.extended import LARGEST_EXPONENT
from geoind.channels.priors import Prior
from geoind.distances import Distance, euclidean
from geoind.errors import InvalidInputError, SolverError, plural
from geoind.optimal.candidates import cheap_candidate, first_candidate, one_report_for_all
from geoind.optimal.cones import (
    Program,
    classes_of,
    merge_classes,
    nearest_pairs,
    spanner,
    unchained_pairs,
)
from geoind.optimal.everywhere import as_squares, interpolated_epsilon, memory_needed, minimise_everywhere
from geoind.optimal.extension import extended_channel
from geoind.optimal.interior import Found, Iterate, Solution, minimise
from geoind.optimal.neighbourhoods import bracket
from geoind.optimal.problem import Certificate, OptimalChannel, Task, as_task, keep_promise, moved_to
from geoind.optimal.symmetry import Symmetry, symmetry_of
from geoind.space.sites import Sites

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
LEAST_SECONDS = 1e-9
"""Remaining time after the time limit: the first iterate ends the search."""
OFFERED = 0.1
"""Share of the time in which better channels are certified and given to `checkpoint`, at most."""


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
    checkpoint: Callable[[OptimalChannel], None] | None = None,
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
        An earlier answer, for the same sites or others of the same area, such as a coarser grid: the search begins
        at it. If its measured epsilon is within the requested one, the result costs at most as much. Its
        certificate is not used: bounds are proven anew.
    progress : callable, optional
        Called with an `Iterate` (iteration, objective, bound, gap, seconds, memory) before the search and after
        each iteration.
    checkpoint : callable, optional
        Called during the search with better channels, each certified like the result, in at most a tenth of the
        time: save them, and pass the last one as `start` to continue. The result is only returned.

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
    for name, callback in (("progress", progress), ("checkpoint", checkpoint)):
        if callback is not None and not callable(callback):
            raise InvalidInputError(f"{name} must be callable, got {type(callback).__name__}")
    if not 1 <= as_number(dilation, "dilation") < math.inf:
        raise InvalidInputError(f"dilation must be at least 1 and finite, got {dilation!r}")
    task = as_task(prior, epsilon, outputs, loss, distance)
    measure = interpolated_epsilon if everywhere else partial(tight_epsilon, distance=distance)
    if everywhere:
        if distance is not euclidean or dilation > 1:
            raise InvalidInputError("everywhere needs distance=euclidean and dilation=1")
        task = replace(task, everywhere=as_squares(prior.sites))
    known, seed = first_candidate(task, None if start is None else moved_to(*task.ends, start), measure)

    def certified(found: Solution) -> OptimalChannel:
        if distance is not euclidean and isinstance(found.kept, tuple):
            found = replace(found, kept=None)
        return _certified(task, found, measure, tolerance, began)

    offer = None if checkpoint is None else _Offers(checkpoint, certified, known.last.gap, tolerance)

    def tell(found: Solution) -> None:
        if progress is not None:
            progress(found.last)
        if offer is not None:
            offer(found)

    found = _solve(
        task,
        tolerance=tolerance,
        time_limit=time_limit,
        progress=tell,
        dilation=dilation,
        known=known,
        seed=seed,
    )
    if found.stopped == "stuck":
        raise SolverError(
            f"the relative gap stays at {found.last.gap:.1e}, above the tolerance of {tolerance:.1e}; "
            f"pass a larger tolerance to accept it"
        )
    if found.stopped in ("time limit", "memory") and not everywhere:
        matrix, method = cheap_candidate(task, prior)
        if task.objective(matrix) < found.last.objective:
            method = f"{found.method}, out of {found.stopped.split()[0]}: {method}"
            found = replace(found, kept=None, matrix=matrix, method=method)
    return certified(found)


class _Offers:
    """Gives channels with smaller gaps to a function, as long as that takes a small share of the time.

    Parameters
    ----------
    checkpoint : callable
        The function.
    certified : callable
        Returns the channel of a solution.
    gap, tolerance : float
        Channels have a smaller gap than the first, and a larger one than the second, which ends the search.
    """

    def __init__(
        self,
        checkpoint: Callable[[OptimalChannel], None],
        certified: Callable[[Solution], OptimalChannel],
        gap: float,
        tolerance: float,
    ) -> None:
        self.checkpoint, self.certified, self.gap, self.tolerance = checkpoint, certified, gap, tolerance
        self.next = -math.inf

    def __call__(self, found: Solution) -> None:
        began = time.perf_counter()
        if self.tolerance < found.last.gap < self.gap and began >= self.next:
            self.gap = found.last.gap
            self.checkpoint(self.certified(replace(found, stopped="time limit")))
            done = time.perf_counter()
            self.next = done + (done - began) * (1 / OFFERED - 1)


def _certified(
    task: Task, found: Solution, measure: Callable[[Channel], float], tolerance: float, began: float
) -> OptimalChannel:
    """Return the channel with its certificate, repaired where rounding exceeded epsilon."""
    before = task.objective(found.matrix)
    channel = found.kept
    if isinstance(channel, tuple):
        channel = extended_channel(*task.ends, found.matrix, channel)
    if channel is None or not (measured := measure(channel)) <= task.epsilon:
        channel, measured = keep_promise(*task.ends, found.matrix, epsilon=task.epsilon, measure=measure)
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
    return OptimalChannel(*task.ends, channel.rows, certificate)


def _solve(
    task: Task,
    *,
    tolerance: float,
    time_limit: float = math.inf,
    progress: Callable[[Solution], None] = lambda _: None,
    dilation: float = 1.0,
    known: Solution | None = None,
    seed: FloatArray | None = None,
) -> Solution:
    """Return the least loss: proven to the tolerance, or as far as time and precision allow.

    `known` is a private matrix with a bound, by default one report for all; `seed` need not be private. `progress`
    is called with the best matrix before the search and after each iteration.
    """
    deadline = time.perf_counter() + time_limit
    known = known or one_report_for_all(task)
    if known.last.gap <= tolerance:
        return known

    def tell(found: Solution) -> None:
        progress(_or_known(found, known, tolerance))

    excess = task.cost
    least = excess.min(axis=1, keepdims=True)
    # Only differences within a row matter: the least cost of each row is a constant of the objective.
    offset = float(task.mass @ least[:, 0])
    excess = excess - least
    weighted = task.mass[:, None] * excess
    if task.everywhere is not None:
        symmetry = symmetry_of(task.inputs, task.outputs, task.apart, task.cost, task.mass)
        chosen, weight = symmetry.representatives()
        needed = _check_memory(memory_needed(len(chosen), task.everywhere), task, "choose larger cells")
        method = "interior point on the corners"
        columns = minimise_everywhere(
            Program(
                np.ascontiguousarray(weighted[:, chosen].T),
                weight,
                symmetry.orbit_of_inputs(),
                excess[:, chosen].argmin(axis=0),
                None if seed is None else symmetry.columns(seed),
            ),
            task.everywhere,
            epsilon=task.epsilon * (1 - HEADROOM),
            offset=offset,
            yardstick=known.last.yardstick,
            tolerance=tolerance,
            time_limit=max(deadline - time.perf_counter(), LEAST_SECONDS),
            progress=lambda now, v: tell(_named((v, replace(now, memory=needed), "time limit"), symmetry, method)),
        )
        return _or_known(_named(columns, symmetry, method), known, tolerance)
    apart, triangles = task.apart, task.triangles
    merged = classes_of(apart, SMALLEST_EXPONENT / task.epsilon)
    # One input of each class; a slice copies nothing.
    whole = merged.max() + 1 == len(task.inputs)
    members = slice(None) if whole else np.unique(merged, return_index=True)[1]
    approximate = dilation == 1 and tolerance >= NEIGHBOURHOOD_TOLERANCE
    if not whole:
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
        # The constraints of a path imply that of its ends, so a table of distances may be replaced by its shortest
        # paths; the extension of columns needs the triangle inequality.
        distances = partial(getattr, task, "apart") if triangles else floyd_warshall(apart).copy
        del apart, excess

        def of_all(found: Solution) -> Solution:
            return found if whole else replace(found, matrix=found.matrix[merged], kept=None)

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
            progress=lambda found: progress(of_all(found)),
        )
        return of_all(around)
    # Factors, the active set, and what is temporary.
    needed = _check_memory(len(chosen) * len(apart) ** 2 * 11.0, task, "pass a larger tolerance, such as 0.02")
    pairs = unchained_pairs(apart)
    factor = 1.0
    if dilation > 1:
        pairs, factor = spanner(apart, dilation)

    def of_columns(found: Found) -> Solution:
        solution = _named(found, symmetry, "interior point")
        return replace(solution, matrix=solution.matrix[merged])

    def tell_spanner(now: Iterate, v: FloatArray) -> None:
        # The bound of a spanner is none for all pairs.
        bound = now.bound if factor == 1 else known.last.bound
        tell(of_columns((v, replace(now, bound=bound, memory=needed), "time limit")))

    def run(epsilon: float, tolerance: float, progress: Callable[[Iterate, FloatArray], None]) -> Solution:
        exponent = np.minimum(epsilon * (1 - HEADROOM) * apart, LARGEST_EXPONENT)
        columns = minimise(
            Program(
                np.ascontiguousarray(weighted[:, chosen].T),
                weight,
                symmetry.orbit_of_inputs(),
                merged[excess[:, chosen].argmin(axis=0)],
                None if seed is None else symmetry.columns(seed[members]),
            ),
            np.where(pairs, np.exp(-exponent), 0.0),
            offset=offset,
            yardstick=known.last.yardstick,
            near=nearest_pairs(apart) & pairs,
            tolerance=tolerance,
            time_limit=max(deadline - time.perf_counter(), LEAST_SECONDS),
            progress=progress,
        )
        return of_columns(columns)

    found = run(task.epsilon / factor, tolerance, tell_spanner)
    if factor > 1:
        # The same pairs at full epsilon are a subset of all constraints: their optimum bounds the true one.
        bound = run(task.epsilon, max(tolerance, RELAXED_TOLERANCE), lambda *_: None).last.bound
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
        found = replace(found, matrix=known.matrix, method=known.method, kept=known.kept)
    objective = min(found.last.objective, known.last.objective)
    last = replace(found.last, objective=objective, bound=bound)
    return replace(found, last=last, stopped="optimal" if last.gap <= tolerance else found.stopped)


def _check_memory(needed: float, task: Task, advice: str) -> float:
    """Return the bytes that a problem takes; raise an error if they are too many."""
    if needed > MEMORY:
        size = f"{len(task.inputs)} inputs and {len(task.outputs)} outputs"
        raise InvalidInputError(f"{size} would take {needed / 1e9:.0f} GB of memory; {advice}")
    return needed


def _along(sites: Sites) -> FloatArray:
    """Return the coordinate of the sites that has the largest range: the last one of equal ones, as grids are."""
    reverse = sites.xy[:, ::-1]
    return np.asarray(reverse[:, np.argmax(np.ptp(reverse, axis=0))])
