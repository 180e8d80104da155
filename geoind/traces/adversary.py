"""Attacks by an observer of all reports, who knows the method and the times.

The Bayesian attacks use a hidden Markov model over the cells of a grid. The forward-backward filter gives the
belief about every moment, given all reports before and after it; the most likely path is one that could have been
walked.
The simple guesses, averages and smoothing, are for comparison: a weak attack alone is no evidence of privacy.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_floats, as_lonlat, as_positive
from geoind.audits.attacks import weighted_median
from geoind.audits.visits import at_night
from geoind.channels.remap import geometric_median
from geoind.errors import InvalidInputError
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.space.projection import Projection
from geoind.space.sites import Grid
from geoind.tables.recipe import METHODS, described, method_of
from geoind.traces.methods import History, Independent, TraceMethod
from geoind.traces.mobility import Mobility, MobilityModel
from geoind.traces.questions import Place

if TYPE_CHECKING:
    from geoind.accounting.record import ReleaseRecord
    from geoind.audits.attempts import Guess

__all__ = [
    "average",
    "home_beliefs",
    "home_guess",
    "home_guesses",
    "middle",
    "most_likely_path",
    "most_likely_places",
    "smooth",
    "trace_adversary_error",
    "trace_beliefs",
]

LEVELS = (np.arange(12) + 0.5) / 12
"""Quantiles that stand for the noise that a run of tests shares."""

SIDE = 51
"""Cells in each direction of the grid on which a home is searched."""

COARSE = (np.arange(3) + 0.5) / 3
"""Fewer quantiles for the most likely path, which takes one for each run."""


@dataclass(frozen=True)
class _Observed:
    """The answers of a session: before each the public history, and whether a run of tests began with it."""

    histories: list[History]
    reports: list[Place]
    begins: list[bool]
    hours: list[float]
    method: TraceMethod
    mobility: MobilityModel
    levels: FloatArray

    @classmethod
    def of(
        cls,
        reports: ArrayLike,
        times: ArrayLike,
        method: TraceMethod,
        mobility: MobilityModel,
        levels: FloatArray = LEVELS,
    ) -> "_Observed":
        lonlat, seconds = _reports_at(reports, times)
        if not (np.diff(seconds) > 0).all():
            raise InvalidInputError("times must increase")
        history = History(math.nan, began=float(seconds[0]))
        histories: list[History] = []
        places: list[Place] = [(lon, lat) for lon, lat in lonlat.tolist()]
        begins: list[bool] = []
        for time, place in zip(seconds.tolist(), places, strict=True):
            history = history._replace(time=time)
            histories.append(history)
            after, price = method.seen(history, place)
            begins.append(after.runs != history.runs)
            history = history.published(after, place, method.remembered, history.spent + price)
        used = levels if method.tests_in_runs else np.array([0.5])
        hours = (np.diff(seconds) / 3600).tolist()
        return cls(histories, places, begins, hours, method, mobility, used[:, None])

    def __len__(self) -> int:
        return len(self.reports)

    def likelihood(self, step: int) -> FloatArray:
        """Return the probability of an answer, by (level, row, column), up to a factor."""
        grid, projection = self.mobility.grid, self.mobility.projection

        def apart(place: Place) -> FloatArray:
            [[x, y]] = projection.to_xy([place])
            return np.asarray(np.hypot(grid.xy[:, 0] - x, grid.xy[:, 1] - y))

        law = self.method.likelihood(self.histories[step], self.reports[step], apart, self.levels)
        _possible(law.max())
        layers = np.broadcast_to(law / law.max(), (len(self.levels), len(grid)))
        return layers.reshape(-1, grid.rows, grid.columns)

    def expected(self, step: int, before: FloatArray) -> FloatArray:
        """Return the belief about a step given the answers before it, from the belief at the last of them."""
        if not step:
            return self.mobility.mass
        belief = _renewed(before / _possible(before.sum()), self.begins[step - 1])
        return self.mobility.forward(belief, self.hours[step - 1])


def trace_beliefs(
    reports: ArrayLike, times: ArrayLike, *, method: TraceMethod, mobility: MobilityModel
) -> Iterator[FloatArray]:
    """Yield the belief about each moment, given all reports: rows by columns of the mobility model's grid.

    Parameters
    ----------
    reports : (n, 2) array
        Published longitudes and latitudes, in order.
    times : (n,) array
        When, in seconds.
    method : TraceMethod
        How the session observed; the adversary knows it.
    mobility : Mobility or LearnedMobility
        How people move.

    Examples
    --------
    >>> from geoind import Grid, Projection
    >>> from geoind.traces import Independent, Mobility
    >>> grid = Grid(-500, -500, cell=100, columns=11, rows=11)
    >>> known = {"method": Independent(0.02), "mobility": Mobility(grid, Projection(2.35, 48.86), stay=0.9)}
    >>> reports, times = [[2.35, 48.86], [2.351, 48.86]], [0, 300]
    >>> [belief.shape for belief in trace_beliefs(reports, times, **known)]
    [(11, 11), (11, 11)]
    """
    observed = _Observed.of(reports, times, method, mobility)
    # Only some beliefs are kept on the way there; the others are computed again on the way back.
    every = math.isqrt(len(observed)) + 1
    kept: dict[int, FloatArray] = {}
    ahead = mobility.mass
    for step in range(len(observed)):
        expected = observed.expected(step, ahead)
        if step % every == 0:
            kept[step] = expected
        ahead = expected * observed.likelihood(step)
    _possible(ahead.sum())
    behind = np.ones_like(ahead)
    beliefs: list[FloatArray] = []
    for first in reversed(range(0, len(observed), every)):
        block: list[tuple[int, FloatArray, FloatArray]] = []
        for step in range(first, min(first + every, len(observed))):
            expected = observed.expected(step, ahead) if block else kept[first]
            likelihood = observed.likelihood(step)
            ahead = expected * likelihood
            block.append((step, expected, likelihood))
        for step, expected, likelihood in reversed(block):
            behind = behind * likelihood
            belief = (expected * behind).sum(axis=0)
            beliefs.append(belief / belief.sum())
            if step:
                behind = mobility.backward(behind, observed.hours[step - 1])
                behind = _renewed(behind / behind.max(), observed.begins[step - 1])
    return reversed(beliefs)


def trace_adversary_error(
    reports: ArrayLike, truth: ArrayLike, *, times: ArrayLike, method: TraceMethod, mobility: MobilityModel
) -> float:
    """Return the mean distance, in metres, between the truth and the guesses of an observer of all reports.

    The guess about each moment has the least expected distance under the belief. Parameters as in `trace_beliefs`;
    `truth` is (n, 2) lon/lat.

    Examples
    --------
    >>> from geoind import Grid, Projection
    >>> from geoind.traces import Independent, Mobility
    >>> grid = Grid(-500, -500, cell=100, columns=11, rows=11)
    >>> known = {"method": Independent(0.02), "mobility": Mobility(grid, Projection(2.35, 48.86), stay=0.9)}
    >>> reports, times = [[2.35, 48.86], [2.351, 48.86]], [0, 300]
    >>> trace_adversary_error(reports, reports, times=times, **known) < 100
    True
    """
    places = mobility.projection.to_xy(as_lonlat(truth, "truth"))
    xy = mobility.grid.xy
    errors = []
    for place, belief in zip(places, trace_beliefs(reports, times, method=method, mobility=mobility), strict=True):
        weights = belief.ravel()
        likely = weights > 1e-9 * weights.max()
        [guess] = geometric_median(xy[likely], weights[None, likely], tolerance=mobility.grid.cell / 1000)
        errors.append(float(np.hypot(*(guess - place))))
    return float(np.mean(errors))


def most_likely_path(
    reports: ArrayLike, times: ArrayLike, *, method: TraceMethod, mobility: MobilityModel
) -> FloatArray:
    """Return the one path that explains all reports best, (n, 2) longitudes and latitudes (Viterbi's algorithm).

    Parameters as in `trace_beliefs`. The likeliest places of all moments need not lie on one path that can be
    walked; this path can.

    Examples
    --------
    >>> from geoind import Grid, Projection
    >>> from geoind.traces import Independent, Mobility
    >>> grid = Grid(-500, -500, cell=100, columns=11, rows=11)
    >>> known = {"method": Independent(0.02), "mobility": Mobility(grid, Projection(2.35, 48.86), stay=0.9)}
    >>> reports, times = [[2.35, 48.86], [2.351, 48.86]], [0, 300]
    >>> most_likely_path(reports, times, **known).shape
    (2, 2)
    """
    observed = _Observed.of(reports, times, method, mobility, COARSE)
    with np.errstate(divide="ignore"):
        score = np.log(observed.mobility.mass * observed.likelihood(0))
        came: list[IntArray] = []
        chosen: list[IntArray | None] = []
        for step in range(1, len(observed)):
            begins = observed.begins[step - 1]
            chosen.append(score.argmax(axis=0).ravel() if begins else None)
            score = np.broadcast_to(score.max(axis=0), score.shape) if begins else score
            moved, source = mobility.best(score, observed.hours[step - 1])
            came.append(source)
            score = moved + np.log(observed.likelihood(step))
            score -= _possible(score.max(), than=-math.inf)
    level, cell = divmod(int(score.argmax()), len(mobility.grid))
    cells = [cell]
    for source, levels in zip(reversed(came), reversed(chosen), strict=True):
        cell = int(source[level, cell])
        level = level if levels is None else int(levels[cell])
        cells.append(cell)
    return np.asarray(mobility.projection.to_lonlat(mobility.grid.xy[cells[::-1]]))


def _renewed(belief: FloatArray, renewal: bool) -> FloatArray:
    """Return the belief after a new draw of the noise that a run shares."""
    return np.broadcast_to(belief.mean(axis=0), belief.shape) if renewal else belief


def _possible(total: float, than: float = 0.0) -> float:
    if not total > than:
        raise InvalidInputError("no cell explains the reports: the mobility model must allow more")
    return total


def average(reports: ArrayLike) -> FloatArray:
    """Return the mean of reports about one place, as longitude and latitude.

    Examples
    --------
    >>> average([[2.0, 48.0], [2.0, 48.2]]).round(3).tolist()
    [2.0, 48.1]
    """
    lonlat = _some(reports)
    plane = Projection(*lonlat[0])
    return np.asarray(plane.to_lonlat(plane.to_xy(lonlat).mean(axis=0, keepdims=True))[0])


def middle(reports: ArrayLike) -> FloatArray:
    """Return the geometric median of reports about one place: the most likely place under planar Laplace noise.

    Examples
    --------
    >>> middle([[2.0, 48.0], [2.0, 48.0], [2.0, 49.0]]).round(3).tolist()
    [2.0, 48.0]
    """
    lonlat = _some(reports)
    plane = Projection(*lonlat[0])
    weights = np.full((1, len(lonlat)), 1 / len(lonlat))
    return np.asarray(plane.to_lonlat(geometric_median(plane.to_xy(lonlat), weights, tolerance=0.01))[0])


def smooth(reports: ArrayLike, times: ArrayLike, *, window: float | None = None) -> FloatArray:
    """Return for each moment the mean of the reports within `window` seconds of it.

    Without a window, the one whose means predict left-out reports best: a choice by public data. An attacker
    cannot choose it by the truth.

    Examples
    --------
    >>> smooth([[2.0, 48.0], [2.0, 48.2], [2.0, 48.4]], [0, 60, 120], window=60).round(3)[:, 1].tolist()
    [48.1, 48.2, 48.3]
    """
    lonlat, seconds = _reports_at(reports, times)
    plane = Projection(*lonlat[0])
    xy = plane.to_xy(lonlat)
    if window is None:
        tried = np.geomspace(60.0, max(120.0, float(np.ptp(seconds))), 16)
        window = min(tried.tolist(), key=lambda width: _left_out_error(xy, seconds, width))
    totals, counts = _around(xy, seconds, as_positive(window, "window"))
    return np.asarray(plane.to_lonlat(totals / counts))


def _around(xy: FloatArray, seconds: FloatArray, window: float) -> tuple[FloatArray, FloatArray]:
    """Return the sum and the number of the reports around each moment."""
    sums = np.vstack((np.zeros(2), xy.cumsum(axis=0)))
    begins = np.searchsorted(seconds, seconds - window, "left")
    ends = np.searchsorted(seconds, seconds + window, "right")
    return sums[ends] - sums[begins], (ends - begins)[:, None].astype(float)


def _left_out_error(xy: FloatArray, seconds: FloatArray, window: float) -> float:
    """Return how far the mean of the others around a moment is from its own report; the mean of all if alone."""
    totals, counts = _around(xy, seconds, window)
    others = np.where(counts > 1, (totals - xy) / np.maximum(counts - 1, 1), xy.mean(axis=0))
    return float(np.hypot(*(others - xy).T).mean())


def most_likely_places(
    reports: ArrayLike, times: ArrayLike, *, method: TraceMethod, mobility: MobilityModel
) -> FloatArray:
    """Return the cell with the most belief at each moment, given all reports: (n, 2) longitudes and latitudes.

    Examples
    --------
    >>> from geoind import Grid, Projection
    >>> from geoind.traces import Independent, Mobility
    >>> grid = Grid(-500, -500, cell=100, columns=11, rows=11)
    >>> known = {"method": Independent(0.02), "mobility": Mobility(grid, Projection(2.35, 48.86), stay=0.9)}
    >>> reports, times = [[2.35, 48.86], [2.351, 48.86]], [0, 300]
    >>> most_likely_places(reports, times, **known).shape
    (2, 2)
    """
    best = [int(belief.argmax()) for belief in trace_beliefs(reports, times, method=method, mobility=mobility)]
    return np.asarray(mobility.projection.to_lonlat(mobility.grid.xy[best]))


def home_beliefs(
    reports: ArrayLike, times: ArrayLike, *, at_home: ArrayLike, method: TraceMethod, mobility: MobilityModel
) -> Iterator[FloatArray]:
    """Yield after each answer the belief about a home, rows by columns, of a Bayesian who knows the nights.

    Repeated answers count as well as new ones: each shows that a test was negative, which averages of places
    ignore.

    Parameters
    ----------
    reports, times, method, mobility
        As in `trace_beliefs`; of the mobility only the grid and where people are.
    at_home : (n,) array of bool
        Which answers were given at home: those of the night.

    Examples
    --------
    >>> from geoind import Grid, Projection
    >>> from geoind.traces import Independent, Mobility
    >>> grid = Grid(-500, -500, cell=100, columns=11, rows=11)
    >>> known = {"method": Independent(0.02), "mobility": Mobility(grid, Projection(2.35, 48.86), stay=0.9)}
    >>> reports, times = [[2.35, 48.86], [2.351, 48.86]], [0, 300]
    >>> beliefs = home_beliefs(reports, times, at_home=[True, True], **known)
    >>> [round(float(belief.sum()), 6) for belief in beliefs]
    [1.0, 1.0]
    """
    observed = _Observed.of(reports, times, method, mobility)
    known = np.asarray(at_home, bool)
    if known.shape != (len(observed),):
        raise InvalidInputError(f"at_home must be one per report, got {known.shape} for {len(observed)}")
    with np.errstate(divide="ignore"):
        done = np.log(mobility.mass)
        run = np.zeros((len(observed.levels), *mobility.mass.shape))
        for step in range(len(observed)):
            if known[step]:
                run = run + np.log(observed.likelihood(step))
            total = done + _mean_log(run)
            if observed.begins[step]:
                done, run = total - total.max(), np.zeros_like(run)
            belief = np.exp(total - total.max())
            yield belief / belief.sum()


def home_guess(reports: FloatArray, times: FloatArray, *, method: TraceMethod, reach: float) -> FloatArray:
    """Return the longitude and latitude that the Bayesian of `home_beliefs` takes for the home of one person.

    It is an attack for `geoind.audits.assess(guesses=...)`.

    Parameters
    ----------
    reports, times : (n, 2) and (n,) array
        Degrees, and seconds since 1970, in order.
    method : TraceMethod
        How the session answered.
    reach : float
        Metres within which nearly all fresh reports are: the size of the neighbourhood that is searched.

    Examples
    --------
    >>> from geoind.traces import Independent
    >>> reports = np.array([[2.35, 48.86], [2.352, 48.86], [2.351, 48.861]])
    >>> home_guess(reports, np.array([0.0, 60.0, 120.0]), method=Independent(0.02), reach=240.0).round(2)
    array([ 2.35, 48.86])
    """
    night = at_night(reports, times)
    night = night if night.any() else np.ones(len(reports), bool)
    plane, cell = Projection(*reports[night][0]), reach / 12
    xy = plane.to_xy(reports)
    centre = weighted_median(xy[night], np.full(night.sum(), 1 / night.sum()))
    west, south = centre - cell * (SIDE // 2)
    grid = Grid(west, south, cell=cell, columns=SIDE, rows=SIDE)
    # Nights elsewhere are not at home.
    here = night & (np.hypot(*(xy - centre).T) < cell * (SIDE // 2))
    # Times must increase: rows of the same second follow each other by a millisecond.
    moments = times + 1e-3 * np.arange(len(times))
    try:
        [belief] = deque(
            home_beliefs(reports, moments, at_home=here, method=method, mobility=Mobility(grid, plane)), maxlen=1
        )
        best = weighted_median(grid.xy, belief.ravel())
    except InvalidInputError:
        # No cell of the grid explains the answers of a session.
        best = centre
    return np.asarray(plane.to_lonlat(best[None])[0])


def _mean_log(run: FloatArray) -> FloatArray:
    """Return the logarithm of the mean over the levels of a run's noise."""
    best = run.max(axis=0)
    return np.asarray(best + np.log(np.exp(run - best).mean(axis=0)))


def _some(reports: ArrayLike) -> FloatArray:
    lonlat = as_lonlat(reports, "reports")
    if not len(lonlat):
        raise InvalidInputError("reports must not be empty")
    return lonlat


def _reports_at(reports: ArrayLike, times: ArrayLike) -> tuple[FloatArray, FloatArray]:
    lonlat, seconds = _some(reports), as_floats(times, "times")
    if seconds.shape != (len(lonlat),):
        raise InvalidInputError(f"times must be one per report, got {seconds.shape} for {len(lonlat)}")
    return lonlat, seconds


def home_guesses(record: "ReleaseRecord") -> "dict[str, Guess]":
    """Return `home_guess` with the method of a release, by its name in a statement; none if it is not known."""
    if record.mechanism != "SphericalLaplace" and record.session is None:
        return {}
    noise = SphericalLaplace(record.epsilon if record.session is None else record.fresh or record.epsilon)
    known: dict[str | None, TraceMethod] = {None: Independent(noise.epsilon)}
    if record.session is not None:
        known |= {described(method): method for method in (method_of(name, noise) for name in METHODS)}
    if record.session not in known:
        return {}
    guess = partial(home_guess, method=known[record.session], reach=noise.reach(0.95))
    return {"trace adversary at night": guess}
