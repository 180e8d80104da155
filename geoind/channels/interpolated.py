"""A channel as a mechanism of every place: its rows, interpolated between its sites."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import shapely

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_points, as_unit
from geoind.channels.channel import Channel
from geoind.channels.rows import Rows, choose_each, choose_exactly, choose_one, parts_of, shares_within
from geoind.distances import euclidean
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import RandomnessLike, Space, as_randomness, fresh_pair
from geoind.space.sites import Grid, Sites, as_plane

if TYPE_CHECKING:
    from scipy.spatial import Delaunay

__all__ = ["Interpolated"]

TILE = 1 << 22
"""Numbers of a part of the audit."""

CLASSES = 4096
"""Distances are rounded up to this share of the largest one in `Interpolated.reach`."""


@dataclass(frozen=True, eq=False)
class Interpolated:
    """A channel between sites, as a mechanism of every place of the plane.

    A place becomes one of the sites around it, drawn with weights that are continuous in the place, and the report
    is drawn from this site's row. Between the four sites of a grid's square the weights are bilinear. Other sites
    are the corners of triangles (Delaunay), and the weights are the place's barycentric coordinates. A place
    outside the convex hull of the sites counts as the closest place of the hull, which is no farther from any
    other place.

    Parameters
    ----------
    channel : Channel
        Its inputs are points of the plane, not all on a line.

    Examples
    --------
    >>> from geoind import Grid, exponential
    >>> grid = Grid(0, 0, cell=100, columns=5, rows=5)
    >>> everywhere = Interpolated(exponential(grid, grid, epsilon=0.01))
    >>> round(everywhere.epsilon, 5)
    0.01012
    >>> everywhere.sample([[123.0, 45.0]]).shape
    (1, 2)
    """

    channel: Channel

    space: ClassVar[Space] = "xy"

    def __post_init__(self) -> None:
        as_plane(self.channel.inputs, "inputs")
        as_plane(self.channel.outputs, "outputs")
        _ = self._pieces  # raises here for sites on a line

    @property
    def purpose(self) -> str:
        """The name of its keyed random words."""
        return f"Interpolated {self.channel.purpose}"

    @cached_property
    def epsilon(self) -> float:
        """Privacy loss per metre between any two places of the plane: the largest of `rates`. Exact."""
        return float(self.rates.max())

    @cached_property
    def rates(self) -> FloatArray:
        """Privacy loss per metre in each square or triangle: the largest slope of the logarithm of a probability.

        At each place of a square or triangle the probability of a report and its gradient are means of their
        values at the corners, with the same weights, so the largest ratio of the two is attained at a corner.
        Between two places the losses along the straight line add up.
        """
        return self._pieces.rates(self.channel.rows)

    def rates_at(self, points: ArrayLike) -> FloatArray:
        """Return the privacy loss per metre around each of the (n, 2) points.

        Examples
        --------
        >>> from geoind import Grid, exponential
        >>> grid = Grid(0, 0, cell=100, columns=5, rows=5)
        >>> everywhere = Interpolated(exponential(grid, grid, epsilon=0.01))
        >>> everywhere.rates_at([[200.0, 210.0]]).round(4)
        array([0.0077])
        """
        return np.asarray(self.rates[self._pieces.locate(as_points(points))[0]])

    def reach(self, confidence: float) -> float:
        """Return the metres within which a report lies of any truth in the hull with at least this probability.

        At most 1 / 4096 of the largest distance more than the largest over all sites.
        """
        radii, shares = self._shares
        # The sum of a row may be rounded to just below the confidence.
        enough = np.searchsorted(shares, as_unit(confidence, "confidence"))
        return float(radii[min(int(enough), len(radii) - 1)])

    @cached_property
    def mean_radius(self) -> float:
        """The mean distance in metres of reports from the site where it is largest."""
        inputs, outputs = self.channel.inputs.xy, self.channel.outputs.xy
        parts = parts_of(self.channel.rows)
        return max(float((euclidean(inputs[part], outputs) * rows).sum(axis=1).max()) for part, rows in parts)

    def check_inside(self, points: FloatArray) -> None:
        """Raise an error for truths outside the convex hull of the sites."""
        inside = self._pieces.contains(as_points(points))
        if not inside.all():
            raise InvalidInputError(f"row {np.argmin(inside)} lies outside the convex hull of the sites")

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each of the (n, 2) points: an output of the channel."""
        return self.outputs.xy[self.sample_outputs(points, rng=rng)]

    @property
    def outputs(self) -> Sites:
        """The possible reports."""
        return self.channel.outputs

    def sample_outputs(self, points: ArrayLike, *, rng: RandomnessLike = None) -> IntArray:
        """Return the number of an output for each of the (n, 2) points.

        Examples
        --------
        >>> from geoind import Grid
        >>> street = Grid(0, 0, cell=100, columns=2, rows=2)
        >>> Interpolated(Channel.deterministic(street, street, [2, 2, 2, 2])).sample_outputs([[10.0, 20.0]])
        array([2])
        """
        truth = as_points(points)
        source, purpose = as_randomness(rng, len(truth)), self.purpose
        words = source.words(truth, 1, purpose)[:, 0]
        if len(truth) == 1:
            further = partial(source.further, 0, truth[0], purpose)
            site = self._site_of(truth.item(0), truth.item(1), words.item(0), further)
            return self.channel.sample_indices([site], rng=source)
        pieces, weights = self._pieces.locate(truth)
        chosen, undecided = choose_each(weights, words)
        for row in undecided.tolist():
            further = partial(source.further, row, truth[row], purpose)
            chosen[row] = choose_exactly(weights[row], int(words[row]), further)
        rows = self._pieces.corners[pieces, chosen]
        return self.channel.sample_indices(rows, rng=source)

    def sample_output(
        self,
        x: float,
        y: float,
        first: int,
        second: int,
        further: Callable[[int], tuple[int, int]] = fresh_pair,
    ) -> int:
        """Return the number of an output for one place from two random 64-bit words, without arrays.

        The first word chooses the site, the second the output; `further` has more words for the few draws that
        they do not decide.

        Examples
        --------
        >>> from geoind import Grid
        >>> street = Grid(0, 0, cell=100, columns=2, rows=2)
        >>> Interpolated(Channel.deterministic(street, street, [0, 1, 2, 3])).sample_output(90.0, 20.0, 2**63, 0)
        1
        """
        return self.channel.sample_index(self._site_of(x, y, first, further), second, further)

    def _site_of(self, x: float, y: float, word: int, further: Callable[[int], tuple[int, int]]) -> int:
        """Return the number of one of the sites around a place, drawn with their weights."""
        piece, weights = self._pieces.locate_one(x, y)
        # No number is near the last border.
        chosen = choose_one([*accumulate(weights[:-1]), 2.0], word)
        if chosen is None:
            chosen = choose_exactly(np.array(weights), word, further)
        return int(self._pieces.corners[piece, chosen])

    @cached_property
    def _pieces(self) -> "_Squares | _Triangles":
        inputs = self.channel.inputs
        if isinstance(inputs, Grid) and min(inputs.columns, inputs.rows) > 1:
            return _Squares(inputs)
        return _Triangles(inputs.xy)

    @cached_property
    def _shares(self) -> tuple[FloatArray, FloatArray]:
        """Distances, and the least share of reports within each, over all truths in the hull."""
        channel, pieces = self.channel, self._pieces
        # A corner is no farther from a truth of its square or triangle than from another of its corners.
        around = channel.inputs.xy[pieces.corners]
        longest = np.linalg.norm(around[:, :, None] - around[:, None], axis=3).max(axis=2)
        beyond = np.zeros(len(channel.inputs))
        np.maximum.at(beyond, pieces.corners, longest)
        return shares_within(channel.rows, channel.inputs, channel.outputs, beyond, CLASSES)


@dataclass(frozen=True, eq=False)
class _Squares:
    """The squares between the sites of a grid with at least two rows and columns."""

    grid: Grid

    @cached_property
    def corners(self) -> IntArray:
        """The numbers of the sites south-west, south-east, north-west and north-east of each square."""
        column, row = np.meshgrid(np.arange(self.grid.columns - 1), np.arange(self.grid.rows - 1))
        first = (row * self.grid.columns + column).reshape(-1, 1)
        return np.asarray(first + np.array([0, 1, self.grid.columns, self.grid.columns + 1]), np.int64)

    def contains(self, points: FloatArray) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
        """Return which points lie in the hull of the sites."""
        (west, south), (east, north) = self.grid.xy[0], self.grid.xy[-1]
        return np.asarray(((points >= (west, south)) & (points <= (east, north))).all(axis=1))

    def locate(self, points: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the square of each point, or of the closest point of the hull, and the bilinear weights in it."""
        grid = self.grid
        last = np.array([grid.columns - 1, grid.rows - 1])
        steps = np.clip((points - (grid.x, grid.y)) / grid.cell, 0, last)
        base = np.minimum(steps.astype(np.int64), last - 1)
        east, north = (steps - base).T
        west, south = 1 - east, 1 - north
        weights = np.stack([west * south, east * south, west * north, east * north], axis=1)
        return base[:, 1] * last[0] + base[:, 0], weights

    def locate_one(self, x: float, y: float) -> tuple[int, list[float]]:
        """Return what `locate` does, for one point."""
        columns, rows = self.grid.columns - 1, self.grid.rows - 1
        across = min(max((x - self.grid.x) / self.grid.cell, 0.0), columns)
        along = min(max((y - self.grid.y) / self.grid.cell, 0.0), rows)
        column, row = min(int(across), columns - 1), min(int(along), rows - 1)
        east, north = across - column, along - row
        west, south = 1 - east, 1 - north
        return row * columns + column, [west * south, east * south, west * north, east * north]

    def rates(self, matrix: Rows) -> FloatArray:
        """Return the largest slope of the logarithm of an interpolated column in each square."""
        columns, rows = self.grid.columns, self.grid.rows
        rates = np.zeros((rows - 1, columns - 1))
        step = max(1, TILE // (columns * matrix.shape[1]))
        for start in range(0, rows - 1, step):
            stop = min(start + step, rows - 1)
            table = _as_drawn(matrix[start * columns : (stop + 1) * columns]).reshape(-1, columns, matrix.shape[1])
            east, north = table[:, 1:] - table[:, :-1], table[1:] - table[:-1]
            for x in (0, 1):
                for y in (0, 1):
                    corner = table[y : len(table) - 1 + y, x : columns - 1 + x]
                    across, along = east[y : len(table) - 1 + y], north[:, x : columns - 1 + x]
                    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                        # Divided first: the smallest doubles have few digits.
                        steep = np.hypot(across / corner, along / corner) / self.grid.cell
                    # A report that is possible at no corner is 0 / 0.
                    largest = np.nanmax(steep, axis=2, initial=0.0)
                    np.maximum(rates[start:stop], largest, out=rates[start:stop])
        return rates.ravel()


@dataclass(frozen=True, eq=False)
class _Triangles:
    """The triangles between places."""

    xy: FloatArray

    def __post_init__(self) -> None:
        _ = self._delaunay

    @cached_property
    def corners(self) -> IntArray:
        """The numbers of the three sites of each triangle."""
        return self._delaunay.simplices.astype(np.int64)

    def contains(self, points: FloatArray) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
        """Return which points lie in the hull of the sites."""
        return np.asarray(shapely.intersects_xy(self._hull, points))

    def locate(self, points: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the triangle of each point, or of the closest point of the hull, and the coordinates in it."""
        if not len(points):
            return np.empty(0, np.int64), np.empty((0, 3))
        found = self._delaunay.find_simplex(points)
        if (outside := np.flatnonzero(found < 0)).size:
            points = points.copy()
            lines = shapely.shortest_line(self._hull, shapely.points(points[outside]))
            points[outside] = shapely.get_coordinates(shapely.get_point(lines, 0))
            # The tolerance is for points on the border, which are rounded.
            found[outside] = self._delaunay.find_simplex(points[outside], tol=1e-9)
        if (found < 0).any():
            raise InvalidInputError(f"row {np.argmin(found)} is in no triangle of the sites")
        transform = self._delaunay.transform[found]
        two = np.einsum("nij,nj->ni", transform[:, :2], points - transform[:, 2])
        weights = np.clip(np.column_stack([two, 1 - two.sum(axis=1)]), 0, 1)
        return found.astype(np.int64), weights / weights.sum(axis=1, keepdims=True)

    def locate_one(self, x: float, y: float) -> tuple[int, list[float]]:
        """Return what `locate` does, for one point."""
        pieces, weights = self.locate(np.array([[x, y]]))
        return int(pieces[0]), weights[0].tolist()

    def rates(self, matrix: Rows) -> FloatArray:
        """Return the largest slope of the logarithm of an interpolated column in each triangle.

        The slope of the column is constant in a triangle, and the column is least at a corner.
        """
        matrix = matrix[:]
        rates = np.empty(len(self.corners))
        step = max(1, TILE // max(1, matrix.shape[1]))
        two = self._delaunay.transform[:, :2]
        slopes = np.concatenate([two, -two.sum(axis=1, keepdims=True)], axis=1)
        sums = matrix.sum(axis=1)
        for start in range(0, len(rates), step):
            part = slice(start, start + step)
            rows = matrix[self.corners[part]] / sums[self.corners[part], None]
            least, possible = rows.min(axis=1, keepdims=True), rows.any(axis=1)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                # Only differences to the first corner count, because the slopes of the coordinates sum to 0.
                # Divided first: the smallest doubles have few digits.
                rows = (rows[:, 1:] - rows[:, :1]) / least
                east, north = (np.einsum("tc,tcz->tz", slopes[part, 1:, axis], rows) for axis in (0, 1))
                steep = np.hypot(east, north, out=east)
            # A report that is possible at some corners only is x / 0, one that is possible nowhere 0 / 0.
            steep = np.where(np.isfinite(steep), steep, np.where(possible, np.inf, 0.0))
            rates[part] = steep.max(axis=1)
        return rates

    @cached_property
    def _delaunay(self) -> "Delaunay":
        from scipy.spatial import Delaunay, QhullError

        try:
            triangles = Delaunay(self.xy)
        except (QhullError, ValueError) as error:
            raise InvalidInputError("inputs must be at least three places that are not on a line") from error
        if len(triangles.coplanar) or np.isnan(triangles.transform).any():
            raise InvalidInputError("inputs must be different places, and no triangle may be too thin")
        return triangles

    @cached_property
    def _hull(self) -> "shapely.Geometry":
        hull = shapely.MultiPoint(self.xy).convex_hull
        shapely.prepare(hull)
        return hull


def _as_drawn(rows: FloatArray) -> FloatArray:
    """Return the probabilities that are drawn: entries over their row's sum."""
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))
