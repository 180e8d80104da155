"""What somebody learns who sees the whole sequence: a Bayesian who knows the method, the time and how people move.

A hidden Markov model over the cells of a grid. The forward-backward filter gives the belief about every moment,
given all reports, before and after it; the most likely path is one that could have been walked.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_floats, as_lonlat
from geoind.channels.remap import geometric_median
from geoind.errors import InvalidInputError
from geoind.traces.guarded import Place
from geoind.traces.mobility import Moves
from geoind.traces.session import Past, TraceMethod, changed

__all__ = ["Answers", "most_likely_path", "trace_adversary_error", "trace_beliefs"]

LEVELS = (np.arange(12) + 0.5) / 12
"""Quantiles that stand for the noise that a run of tests shares."""

COARSE = (np.arange(3) + 0.5) / 3
"""Fewer of them for the most likely path, which takes one of each run."""


@dataclass(frozen=True)
class Answers:
    """What everybody saw: before each answer the public past, and whether a run of tests began with it."""

    pasts: list[Past]
    reports: list[Place]
    begins: list[bool]
    hours: list[float]
    method: TraceMethod
    mobility: Moves
    levels: FloatArray

    @classmethod
    def of(
        cls, reports: ArrayLike, times: ArrayLike, method: TraceMethod, mobility: Moves, levels: FloatArray
    ) -> "Answers":
        """Return what everybody saw of a session's answers."""
        lonlat, seconds = as_lonlat(reports, "reports"), as_floats(times, "times")
        if seconds.shape != (len(lonlat),) or not len(lonlat):
            raise InvalidInputError(f"times must be one per report, got {seconds.shape} for {len(lonlat)}")
        if not (np.diff(seconds) > 0).all():
            raise InvalidInputError("times must increase")
        past = Past(float(seconds[0]), began=float(seconds[0]))
        pasts: list[Past] = []
        places: list[Place] = [(lon, lat) for lon, lat in lonlat.tolist()]
        begins: list[bool] = []
        for time, place in zip(seconds.tolist(), places, strict=True):
            past = changed(past, time=time)
            pasts.append(past)
            after = method.seen(past, place)
            begins.append(after.runs != past.runs)
            spent = past.spent + method.price(past, place)
            past = past.published(after, place, method.remembered, spent)
        used = levels if method.tests_in_runs else np.array([0.5])
        return cls(pasts, places, begins, (np.diff(seconds) / 3600).tolist(), method, mobility, used[:, None])

    def __len__(self) -> int:
        return len(self.reports)

    def likelihood(self, step: int) -> FloatArray:
        """Return the probability of an answer, by (level, row, column), up to a factor."""
        grid, projection = self.mobility.grid, self.mobility.projection

        def apart(place: Place) -> FloatArray:
            [[x, y]] = projection.to_xy([place])
            return np.asarray(np.hypot(grid.xy[:, 0] - x, grid.xy[:, 1] - y))

        law = self.method.likelihood(self.pasts[step], self.reports[step], apart, self.levels)
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
    reports: ArrayLike, times: ArrayLike, *, method: TraceMethod, mobility: Moves
) -> Iterator[FloatArray]:
    """Yield the belief about each moment, given all reports: rows by columns of the mobility model's grid.

    Parameters
    ----------
    reports : (n, 2) array
        Published longitudes and latitudes, in order.
    times : (n,) array
        When, in seconds.
    method : TraceMethod
        How the session answers; the adversary knows it.
    mobility : Mobility or LearnedMobility
        How people move.
    """
    answers = Answers.of(reports, times, method, mobility, LEVELS)
    # Only some beliefs are kept on the way there; the others are computed again on the way back.
    every = math.isqrt(len(answers)) + 1
    kept: dict[int, FloatArray] = {}
    ahead = mobility.mass
    for step in range(len(answers)):
        expected = answers.expected(step, ahead)
        if step % every == 0:
            kept[step] = expected
        ahead = expected * answers.likelihood(step)
    _possible(ahead.sum())
    behind = np.ones_like(ahead)
    beliefs: list[FloatArray] = []
    for first in reversed(range(0, len(answers), every)):
        block: list[tuple[int, FloatArray, FloatArray]] = []
        for step in range(first, min(first + every, len(answers))):
            expected = answers.expected(step, ahead) if block else kept[first]
            likelihood = answers.likelihood(step)
            ahead = expected * likelihood
            block.append((step, expected, likelihood))
        for step, expected, likelihood in reversed(block):
            behind = behind * likelihood
            belief = (expected * behind).sum(axis=0)
            beliefs.append(belief / belief.sum())
            if step:
                behind = mobility.backward(behind, answers.hours[step - 1])
                behind = _renewed(behind / behind.max(), answers.begins[step - 1])
    return reversed(beliefs)


def trace_adversary_error(
    reports: ArrayLike, truth: ArrayLike, *, times: ArrayLike, method: TraceMethod, mobility: Moves
) -> float:
    """Return the mean distance, in metres, between the truth and the guesses of somebody who sees every report.

    The guess about each moment has the least expected distance under the belief. Parameters as in `trace_beliefs`;
    `truth` is (n, 2) lon/lat.
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


def most_likely_path(reports: ArrayLike, times: ArrayLike, *, method: TraceMethod, mobility: Moves) -> FloatArray:
    """Return the one path that explains all reports best, (n, 2) longitudes and latitudes (Viterbi's algorithm).

    Parameters as in `trace_beliefs`. Each moment's likeliest place need not lie on one path that somebody can
    walk; this one can be walked.
    """
    answers = Answers.of(reports, times, method, mobility, COARSE)
    with np.errstate(divide="ignore"):
        score = np.log(answers.mobility.mass * answers.likelihood(0))
        came: list[IntArray] = []
        chosen: list[IntArray | None] = []
        for step in range(1, len(answers)):
            begins = answers.begins[step - 1]
            chosen.append(score.argmax(axis=0).ravel() if begins else None)
            score = np.broadcast_to(score.max(axis=0), score.shape) if begins else score
            moved, source = mobility.best(score, answers.hours[step - 1])
            came.append(source)
            score = moved + np.log(answers.likelihood(step))
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
