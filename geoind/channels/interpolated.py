"""A channel as a mechanism of every place: its rows, interpolated between its sites."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import shapely

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_points
from geoind.channels.channel import Channel
from geoind.channels.rows import choose_each, choose_exactly, reaches
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Space
from geoind.randomness import RandomnessLike, as_randomness
from geoind.space.sites import as_plane

if TYPE_CHECKING:
    from scipy.spatial import Delaunay

__all__ = ["Interpolated"]

TILE = 1 << 22
"""Numbers of a part of the audit."""


@dataclass(frozen=True, eq=False)
class Interpolated:
    """A channel between sites, as a mechanism of every place of the plane.

    The sites are the corners of triangles (Delaunay). A place of a triangle becomes one of its corners, with the
    place's barycentric coordinates as probabilities, and the report is drawn from this corner's row. So the
    probability of a report is a linear function of the place in each triangle, and continuous. A place outside the
    convex hull of the sites counts as the closest place of the hull, which is no farther from any other place.

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
    0.01358
    >>> everywhere.sample([[123.0, 45.0]]).shape
    (1, 2)
    """

    channel: Channel

    space: ClassVar[Space] = "xy"

    def __post_init__(self) -> None:
        as_plane(self.channel.inputs, "inputs")
        as_plane(self.channel.outputs, "outputs")
        _ = self._triangles  # raises here for sites on a line

    @cached_property
    def epsilon(self) -> float:
        """Privacy loss per metre between any two places of the plane: the largest of `rates`. Exact."""
        return float(self.rates.max())

    @cached_property
    def rates(self) -> FloatArray:
        """Privacy loss per metre in each triangle: the largest slope of the logarithm of a report's probability.

        In a triangle the slope of the probability is constant and the probability is least at a corner, so the
        largest ratio of the two is attained at a corner. Between two places the losses along the straight line add
        up.
        """
        matrix, corners = self.channel.matrix, self._triangles.simplices
        rates = np.empty(len(corners))
        step = max(1, TILE // max(1, matrix.shape[1]))
        slopes = self._slopes
        for start in range(0, len(corners), step):
            part = slice(start, start + step)
            rows = matrix[corners[part]]
            least = rows.min(axis=1)
            # Only differences to the first corner count, because the slopes of the coordinates sum to 0.
            rows = rows[:, 1:] - rows[:, :1]
            east, north = (np.einsum("tc,tcz->tz", slopes[part, 1:, axis], rows) for axis in (0, 1))
            steep = np.hypot(east, north, out=east)
            with np.errstate(divide="ignore", invalid="ignore"):
                steep /= least
            # A report that is possible nowhere in a triangle, 0 / 0.
            rates[part] = np.nanmax(steep, axis=1, initial=0.0)
        return rates

    def rates_at(self, points: ArrayLike) -> FloatArray:
        """Return the privacy loss per metre around each of the (n, 2) points.

        Examples
        --------
        >>> from geoind import Grid, exponential
        >>> grid = Grid(0, 0, cell=100, columns=5, rows=5)
        >>> everywhere = Interpolated(exponential(grid, grid, epsilon=0.01))
        >>> everywhere.rates_at([[200.0, 210.0]]).round(4)
        array([0.0088])
        """
        return np.asarray(self.rates[self._located(as_points(points))[0]])

    def reach(self, confidence: float) -> float:
        """Return the metres within which a report lies of any truth in the hull with at least this probability."""
        corners, xy = self._triangles.simplices, self.channel.inputs.xy
        radius = reaches(self.channel.matrix, self.channel.inputs, self.channel.outputs, confidence)
        # From a truth to a corner of its triangle it is no farther than the longest side at this corner.
        sides = np.linalg.norm(xy[corners][:, :, None] - xy[corners][:, None], axis=3).max(axis=2)
        return float((radius[corners] + sides).max())

    def check_inside(self, points: FloatArray) -> None:
        """Raise an error for truths outside the convex hull of the sites."""
        inside = np.asarray(shapely.intersects_xy(self._hull, as_points(points)))
        if not inside.all():
            raise InvalidInputError(f"row {np.argmin(inside)} lies outside the convex hull of the sites")

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each of the (n, 2) points: an output of the channel."""
        truth = as_points(points)
        source = as_randomness(rng, len(truth))
        triangles, weights = self._located(truth)
        purpose = f"Interpolated {self.channel.purpose}"
        words = source.words(truth, 1, purpose)[:, 0]
        chosen, undecided = choose_each(weights, words)
        for row in undecided.tolist():
            further = partial(source.further, row, truth[row], purpose)
            chosen[row] = choose_exactly(weights[row], int(words[row]), further)
        rows = self._triangles.simplices[triangles, chosen].astype(np.int64)
        return self.channel.outputs.xy[self.channel.sample_indices(rows, rng=source)]

    def _located(self, points: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the triangle of each point, or of the closest point of the hull, and the coordinates in it."""
        if not len(points):
            return np.empty(0, np.int64), np.empty((0, 3))
        found = self._triangles.find_simplex(points)
        if (outside := np.flatnonzero(found < 0)).size:
            points = points.copy()
            lines = shapely.shortest_line(self._hull, shapely.points(points[outside]))
            points[outside] = shapely.get_coordinates(shapely.get_point(lines, 0))
            # The tolerance is for points on the border, which are rounded.
            found[outside] = self._triangles.find_simplex(points[outside], tol=1e-9)
        if (found < 0).any():
            raise InvalidInputError(f"row {np.argmin(found)} is in no triangle of the sites")
        transform = self._triangles.transform[found]
        two = np.einsum("nij,nj->ni", transform[:, :2], points - transform[:, 2])
        weights = np.clip(np.column_stack([two, 1 - two.sum(axis=1)]), 0, 1)
        return found.astype(np.int64), weights / weights.sum(axis=1, keepdims=True)

    @cached_property
    def _triangles(self) -> "Delaunay":
        from scipy.spatial import Delaunay, QhullError

        try:
            triangles = Delaunay(self.channel.inputs.xy)
        except (QhullError, ValueError) as error:
            raise InvalidInputError("inputs must be at least three places that are not on a line") from error
        if len(triangles.coplanar) or np.isnan(triangles.transform).any():
            raise InvalidInputError("inputs must be different places, and no triangle may be too thin")
        return triangles

    @cached_property
    def _slopes(self) -> FloatArray:
        """The slopes of the three coordinates of each triangle, (triangles, 3, 2)."""
        two = self._triangles.transform[:, :2]
        return np.concatenate([two, -two.sum(axis=1, keepdims=True)], axis=1)

    @cached_property
    def _hull(self) -> "shapely.Geometry":
        hull = shapely.MultiPoint(self.channel.inputs.xy).convex_hull
        shapely.prepare(hull)
        return hull
