"""Models of mobility over the cells of a grid: a walk in any direction, or learned from public data.

Beliefs are arrays of (levels, rows, columns).
"""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_floats, as_lonlat, as_positive
from geoind.channels.priors import Prior
from geoind.errors import InvalidInputError, SitesMismatchError
from geoind.space.projection import Projection
from geoind.space.sites import Grid, same_sites
from geoind.traces.methods import History
from geoind.traces.questions import Place

__all__ = ["LearnedMobility", "Mobility", "MobilityModel"]


class _Walk(NamedTuple):
    """A free walk for some time: those who stay, and a bell curve along each axis."""

    stay: float
    go: float
    rows: FloatArray
    columns: FloatArray
    norm: FloatArray

    def spread(self, belief: FloatArray) -> FloatArray:
        # Matrix products: faster than Fourier transforms at these sizes, and no small belief drowns in rounding.
        along = belief.reshape(-1, belief.shape[-1]) @ self.columns
        return self.stay * belief + self.go * (self.rows @ along.reshape(belief.shape))


@dataclass(frozen=True)
class Mobility:
    """A model without data: over an hour some people stay, the others go in any direction.

    Parameters
    ----------
    grid : Grid
        The cells that the adversary distinguishes.
    projection : Projection
        Between the grid's metres and degrees.
    speed : float
        Root mean square distance that a moving person covers in an hour, in metres.
    stay : float
        The share of people who are where they were, an hour later.
    prior : Prior, optional
        Where people are at any time: buildings, roads, a population. Cells of mass 0 are excluded. By default
        uniform.

    Examples
    --------
    >>> grid = Grid(0, 0, cell=500, columns=5, rows=1)
    >>> road = Prior(grid, [0.5, 0.5, 0, 0, 0])
    >>> Mobility(grid, Projection(2.35, 48.86), prior=road).forward(np.array([[[1.0, 0, 0, 0, 0]]]), 1)[0, 0, 2:]
    array([0., 0., 0.])
    """

    grid: Grid
    projection: Projection
    speed: float = 20_000.0
    stay: float = 0.5
    prior: Prior | None = None
    _walks: dict[float, _Walk] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        as_positive(self.speed, "speed")
        if not 0 <= self.stay < 1:
            raise InvalidInputError(f"stay must be at least 0 and less than 1, got {self.stay!r}")
        if self.prior is not None and not same_sites(self.prior.sites, self.grid):
            raise SitesMismatchError("the prior must be over the grid of the mobility model")

    @property
    def mass(self) -> FloatArray:
        """Where people are at any time, rows by columns."""
        flat = np.full(len(self.grid), 1 / len(self.grid)) if self.prior is None else self.prior.mass
        return np.asarray(flat).reshape(self.grid.rows, self.grid.columns)

    def forward(self, belief: FloatArray, hours: float) -> FloatArray:
        """Return the belief so many hours later: to a cell by its distance and the people there."""
        walk = self._walk(hours)
        return np.asarray(self.mass * walk.spread(belief / walk.norm))

    def backward(self, belief: FloatArray, hours: float) -> FloatArray:
        """Return how well each cell explains what is known about a moment so many hours later."""
        walk = self._walk(hours)
        return np.asarray(walk.spread(self.mass * belief) / walk.norm)

    def best(self, score: FloatArray, hours: float) -> tuple[FloatArray, IntArray]:
        """Return the logarithm of the best way into each cell, and the cell that it came from, (levels, cells)."""
        walk = self._walk(hours)
        with np.errstate(divide="ignore"):
            along_rows, along_columns, mass = np.log(walk.rows), np.log(walk.columns), np.log(self.mass)
            stay, go = np.log(walk.stay + walk.go), np.log(walk.go)
        score = score - np.log(walk.norm)
        # A bell curve is one along the columns after one along the rows: the best way is found axis by axis.
        best, columns = _best_along(score, along_columns)
        best, rows = _best_along(best.swapaxes(1, 2), along_rows)
        best, rows = best.swapaxes(1, 2) + go, rows.swapaxes(1, 2)
        came = rows * self.grid.columns + np.take_along_axis(columns, rows, axis=1)
        stays = score + stay >= best
        own = np.arange(len(self.grid), dtype=np.int32).reshape(self.mass.shape)
        best, came = np.where(stays, score + stay, best), np.where(stays, own, came)
        return best + mass, came.reshape(len(score), -1)

    def _walk(self, hours: float) -> _Walk:
        if hours not in self._walks:
            if len(self._walks) > 64:
                self._walks.clear()
            # A walk, not a flight: the distance grows with the time, the direction is kept.
            spread = max(self.speed * hours, self.grid.cell / 4)
            stay = self.stay**hours
            (rows, across), (columns, along) = (
                _bell(count, self.grid.cell / spread) for count in (self.grid.rows, self.grid.columns)
            )
            free = _Walk(stay, (1 - stay) / (across * along), rows, columns, np.ones(()))
            # A cell that cannot be reached cannot be left either.
            norm = np.maximum(free.spread(self.mass), np.finfo(float).tiny)
            self._walks[hours] = free._replace(norm=norm)
        return self._walks[hours]


def _bell(count: int, step: float) -> tuple[FloatArray, float]:
    """Return a bell curve between any two of some cells in a line, and its sum over all offsets."""
    curve = np.exp(-((step * np.arange(count)) ** 2))
    offsets = np.abs(np.arange(count)[:, None] - np.arange(count))
    return curve[offsets], float(2 * curve.sum() - curve[0])


def _best_along(score: FloatArray, ways: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the best of score + way into each place along the last axis, and where it came from."""
    # Only sources that can matter: e^-40 of the best cannot.
    likely = np.flatnonzero((score > score.max() - 40).any(axis=(0, 1)))
    first, last = int(likely[0]), int(likely[-1]) + 1
    sums = score[:, :, None, first:last] + ways[None, None, :, first:last]
    came = sums.argmax(axis=-1)
    best = np.take_along_axis(sums, came[..., None], axis=-1)[..., 0]
    return best, (came + first).astype(np.int32)


@dataclass(frozen=True, eq=False)
class LearnedMobility:
    """A model learned from *public* traces: from which cell to which people go, in a step of time.

    An adversary's knowledge, and a predictor: `Predictive(..., predictor=model.predict)`.

    Parameters
    ----------
    grid : Grid
        The cells.
    projection : Projection
        Between the grid's metres and degrees.
    step : float
        Seconds of a step.
    transitions : csr_array
        Probabilities from cell (row) to cell (column).
    visits : array
        Where people are at any time: a probability for each cell.
    doubt : float
        Probability of a step that the data did not show: to any cell, by its visits.

    Examples
    --------
    >>> plane = Projection(2.35, 48.86)
    >>> grid = Grid(0, 0, cell=500, columns=3, rows=1)
    >>> lonlat = plane.to_lonlat(np.array([[0, 0], [500, 0], [1000, 0]] * 4, float))
    >>> model = LearnedMobility.learn(lonlat, persons=["ana"] * 12, times=300.0 * np.arange(12), grid=grid,
    ...                               projection=plane)
    >>> model.transitions.toarray().argmax(axis=1).tolist()
    [1, 2, 0]
    """

    grid: Grid
    projection: Projection
    step: float
    transitions: csr_array
    visits: FloatArray
    doubt: float = 0.01

    @classmethod
    def learn(
        cls,
        lonlat: ArrayLike,
        *,
        persons: ArrayLike,
        times: ArrayLike,
        grid: Grid,
        projection: Projection,
        step: float = 300.0,
    ) -> "LearnedMobility":
        """Return the model that counts how often persons of a *public* table went from cell to cell.

        Parameters
        ----------
        lonlat : (n, 2) array
            Positions; those off the grid are left out.
        persons, times : (n,) arrays
            Whose, and when in seconds.
        grid, projection : Grid and Projection
            The cells, and where they lie.
        step : float
            Seconds: positions of one person that are about as far apart are counted.
        """
        places, seconds = as_lonlat(lonlat, "lonlat"), as_floats(times, "times")
        names = np.asarray(persons)
        if not seconds.shape == names.shape == (len(places),):
            raise InvalidInputError("persons and times must be one per position")
        step = as_positive(step, "step")
        xy = projection.to_xy(places)
        inside = grid.contains(xy)
        cells, slots = grid.nearest(xy[inside]), np.round(seconds[inside] / step).astype(np.int64)
        _, numbers = np.unique(names[inside], return_inverse=True)
        # One position of each person in each step of time: the last.
        order = np.lexsort((seconds[inside], numbers))
        numbers, slots, cells = numbers[order], slots[order], cells[order]
        last = np.append((np.diff(numbers) != 0) | (np.diff(slots) != 0), True)[: len(cells)]
        numbers, slots, cells = numbers[last], slots[last], cells[last]
        if not len(cells):
            raise InvalidInputError("no position lies on the grid")
        follow = np.flatnonzero((np.diff(numbers) == 0) & (np.diff(slots) == 1))
        size = len(grid)
        # From a cell without an observed departure, people stay.
        start, end = np.append(cells[follow], np.arange(size)), np.append(cells[follow + 1], np.arange(size))
        weight = np.append(np.ones(len(follow)), np.full(size, 1e-9))
        counts = csr_array((weight, (start, end)), shape=(size, size))
        transitions = csr_array(counts.multiply(1 / counts.sum(axis=1)[:, None]))
        visits = np.bincount(cells, minlength=size) + 1 / size
        return cls(grid, projection, step, transitions, visits / visits.sum())

    @property
    def mass(self) -> FloatArray:
        """Where people are at any time, rows by columns."""
        return self.visits.reshape(self.grid.rows, self.grid.columns)

    def predict(self, history: History) -> Place:
        """Return where a person probably is who was at the place of the last answer."""
        here = int(self.grid.nearest(self.projection.to_xy([history.last.place]))[0])
        belief = np.zeros((1, *self.mass.shape))
        belief.flat[here] = 1.0
        there = int(self.forward(belief, (history.time - history.last.time) / 3600).argmax())
        if there == here:
            return history.last.place
        [[lon, lat]] = self.projection.to_lonlat(self.grid.xy[[there]]).tolist()
        return lon, lat

    def forward(self, belief: FloatArray, hours: float) -> FloatArray:
        """Return the belief about a moment so many hours later."""
        flat = belief.reshape(len(belief), -1)
        for _ in range(self._steps(hours)):
            known = (self.transitions.T @ flat.T).T
            flat = (1 - self.doubt) * known + self.doubt * flat.sum(axis=1, keepdims=True) * self.visits
        return flat.reshape(belief.shape)

    def backward(self, belief: FloatArray, hours: float) -> FloatArray:
        """Return how well each cell explains what is known about a moment so many hours later."""
        flat = belief.reshape(len(belief), -1)
        for _ in range(self._steps(hours)):
            known = (self.transitions @ flat.T).T
            flat = (1 - self.doubt) * known + self.doubt * (flat @ self.visits)[:, None]
        return flat.reshape(belief.shape)

    def best(self, score: FloatArray, hours: float) -> tuple[FloatArray, IntArray]:
        """Return the logarithm of the best way into each cell, and the cell that it came from, (levels, cells)."""
        into = self.transitions.tocsc()
        ways = np.log1p(-self.doubt) + np.log(into.data)
        flat = score.reshape(len(score), -1)
        came = np.broadcast_to(np.arange(flat.shape[1]), flat.shape)
        for _ in range(self._steps(hours)):
            sums = flat[:, into.indices] + ways
            known = np.maximum.reduceat(sums, into.indptr[:-1], axis=1)
            first = sums == np.repeat(known, np.diff(into.indptr), axis=1)
            number = np.where(first, np.arange(sums.shape[1]), sums.shape[1])
            sources = into.indices[np.minimum.reduceat(number, into.indptr[:-1], axis=1)]
            jump = flat.max(axis=1, keepdims=True) + np.log(self.doubt) + np.log(self.visits)
            jumped = jump > known
            sources = np.where(jumped, flat.argmax(axis=1)[:, None], sources)
            flat, came = np.where(jumped, jump, known), np.take_along_axis(came, sources, axis=1)
        return flat.reshape(score.shape), came.astype(np.int32)

    def _steps(self, hours: float) -> int:
        # After a day of steps, beliefs have long forgotten where they began.
        return int(min(max(1, round(hours * 3600 / self.step)), 86_400 / self.step))


MobilityModel: TypeAlias = Mobility | LearnedMobility
