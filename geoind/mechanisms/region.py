"""Truncation: reports outside a region move to its closest point."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import shapely

from geoind.arrays import ArrayLike, FloatArray, as_lonlat, as_points
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import SPOKEN, Space

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

__all__ = ["ClosestIn"]


@dataclass(frozen=True)
class ClosestIn:
    """A step for `PostProcessed` that moves each report to the closest point of a region.

    Mapping to the closest point reads the report only, so the promise stays whole. Drawing again until a report
    falls inside would not: the chance of falling inside depends on the truth, and measured epsilon grows by
    half on a 9 x 9 grid. For the cells of a grid use `grid.snap`.

    Parameters
    ----------
    region : shapely geometry
        In metres of the plane, or in degrees.
    space : {"xy", "lonlat"}
        Which of them: what the mechanism speaks. In degrees the closest point is closest in degrees.

    Examples
    --------
    >>> import shapely
    >>> ClosestIn(shapely.box(0, 0, 10, 10))([[5, 5], [12, 3]])
    array([[ 5.,  5.],
           [10.,  3.]])
    """

    region: "BaseGeometry"
    space: Space = field(default="xy", kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.region, shapely.Geometry) or self.region.is_empty or not self.region.is_valid:
            raise InvalidInputError("region must be a valid, non-empty shapely geometry")
        if self.space not in SPOKEN:
            raise InvalidInputError(f"space must be 'xy' or 'lonlat', got {self.space!r}")
        if self.space == "lonlat":
            as_lonlat(shapely.get_coordinates(self.region), "region")
        shapely.prepare(self.region)

    def __call__(self, reports: ArrayLike) -> FloatArray:
        """Return the closest points of the region."""
        closest = np.array(as_points(reports, "reports"))
        outside = ~shapely.intersects_xy(self.region, closest)
        if outside.any():
            lines = shapely.shortest_line(self.region, shapely.points(closest[outside]))
            closest[outside] = shapely.get_coordinates(shapely.get_point(lines, 0))
        return closest

    def reach_after(self, reach: float) -> float:
        """Return how far from a truth in the region a report lies after the step, if within `reach` before.

        The closest point of a convex region is no farther from the truth; that of another one is at most as far
        from the report as the truth is. In the plane only: a metre is not the same number of degrees everywhere.
        """
        if self.space == "lonlat":
            raise InvalidInputError(
                "how far ClosestIn moves a report is not known in degrees: use a region in metres, or give the "
                "caller's own bound (report_reach)"
            )
        return reach if self.region.equals(self.region.convex_hull) else 2 * reach

    def check_inside(self, points: FloatArray) -> None:
        """Refuse truths outside the region."""
        inside = np.asarray(shapely.intersects_xy(self.region, points))
        if not inside.all():
            raise InvalidInputError(f"row {np.argmin(inside)} lies outside the region that reports are moved to")
