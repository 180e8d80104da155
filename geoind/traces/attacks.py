"""Simple guesses of somebody who sees every report, beside the Bayesian: no weak attack passes for privacy."""

from collections.abc import Iterator

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats, as_lonlat, as_positive
from geoind.channels.remap import geometric_median
from geoind.errors import InvalidInputError
from geoind.space.projection import Projection
from geoind.traces.adversary import LEVELS, Answers, trace_beliefs
from geoind.traces.mobility import Moves
from geoind.traces.session import TraceMethod

__all__ = ["average", "home_beliefs", "middle", "most_likely_places", "smooth"]


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

    Without a window, the one whose means foretell the reports that were left out best: a choice by what everybody
    sees. One that was chosen by a look at the truth would not be an attack.

    Examples
    --------
    >>> smooth([[2.0, 48.0], [2.0, 48.2], [2.0, 48.4]], [0, 60, 120], window=60).round(3)[:, 1].tolist()
    [48.1, 48.2, 48.3]
    """
    lonlat, seconds = _some(reports), as_floats(times, "times")
    if seconds.shape != (len(lonlat),):
        raise InvalidInputError(f"times must be one per report, got {seconds.shape} for {len(lonlat)}")
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
    """Return how far the mean of the others around a moment is from its own report; a lone report is no help."""
    totals, counts = _around(xy, seconds, window)
    others = np.where(counts > 1, (totals - xy) / np.maximum(counts - 1, 1), xy.mean(axis=0))
    return float(np.hypot(*(others - xy).T).mean())


def most_likely_places(
    reports: ArrayLike, times: ArrayLike, *, method: TraceMethod, mobility: Moves
) -> FloatArray:
    """Return the cell with the most belief at each moment, given all reports: (n, 2) longitudes and latitudes."""
    best = [int(belief.argmax()) for belief in trace_beliefs(reports, times, method=method, mobility=mobility)]
    return np.asarray(mobility.projection.to_lonlat(mobility.grid.xy[best]))


def home_beliefs(
    reports: ArrayLike, times: ArrayLike, *, at_home: ArrayLike, method: TraceMethod, mobility: Moves
) -> Iterator[FloatArray]:
    """Yield after each answer what a Bayesian believes about a home, rows by columns, who knows when it is one.

    The silence of tests counts as well as the reports: nobody who only averages places sees what it tells.

    Parameters
    ----------
    reports, times, method, mobility
        As in `trace_beliefs`; of the mobility only the grid and where people are.
    at_home : (n,) array of bool
        Which answers were given at home: those of the night.
    """
    answers = Answers.of(reports, times, method, mobility, LEVELS)
    known = np.asarray(at_home, bool)
    if known.shape != (len(answers),):
        raise InvalidInputError(f"at_home must be one per report, got {known.shape} for {len(answers)}")
    with np.errstate(divide="ignore"):
        done = np.log(mobility.mass)
        run = np.zeros((len(answers.levels), *mobility.mass.shape))
        for step in range(len(answers)):
            if known[step]:
                run = run + np.log(answers.likelihood(step))
            told = done + _mean_log(run)
            if answers.begins[step]:
                done, run = told - told.max(), np.zeros_like(run)
            belief = np.exp(told - told.max())
            yield belief / belief.sum()


def _mean_log(run: FloatArray) -> FloatArray:
    """Return the logarithm of the mean over the levels of a run's noise."""
    best = run.max(axis=0)
    return np.asarray(best + np.log(np.exp(run - best).mean(axis=0)))


def _some(reports: ArrayLike) -> FloatArray:
    lonlat = as_lonlat(reports, "reports")
    if not len(lonlat):
        raise InvalidInputError("reports must not be empty")
    return lonlat
