"""The grid of an estimate, chosen from the reports."""

from collections.abc import Sequence

import numpy as np
import shapely

from geoind.arrays import ArrayLike, as_lonlat, as_positive
from geoind.errors import InvalidInputError
from geoind.space.crs import wrap_lon
from geoind.space.projection import Projection
from geoind.space.sites import Grid

__all__ = ["grid_over"]

OUTSIDE = 0.005
"""Without bounds, the grid leaves out this share of the reports on each of its four sides."""


def grid_over(lonlat: ArrayLike, *, cell: float, bounds: Sequence[float] | None = None) -> tuple[Grid, Projection]:
    """Return a grid that covers 99 % of the reports in each direction, or given bounds, and its projection.

    Reports are public, so the grid may depend on them. True locations must not be used here.

    Parameters
    ----------
    lonlat : array
        Reports, (n, 2) degrees. They may lie on both sides of 180 degrees of longitude.
    cell : float
        Side of a cell in metres.
    bounds : sequence of float, optional
        West, south, east and north in degrees; east is above 180 for a grid across that meridian.

    Examples
    --------
    >>> grid, projection = grid_over([[2.30, 48.85], [2.40, 48.87]], cell=500)
    >>> grid.columns, grid.rows, grid.cell
    (15, 5, 500.0)
    """
    if bounds is None:
        reports, sides = as_lonlat(lonlat), (OUTSIDE, 1 - OUTSIDE)
        south, north = np.quantile(reports[:, 1], sides)
        west, east = min((np.quantile(lon, sides) for lon in (reports[:, 0], reports[:, 0] % 360)), key=np.ptp)
    else:
        west, south, east, north = bounds
    if not (-180 <= west < east <= 360 and east - west <= 360 and -90 <= south < north <= 90):
        problem = "the reports span no area: give `bounds=`" if bounds is None else "`bounds=` must be degrees"
        raise InvalidInputError(f"{problem}, WEST < EAST and SOUTH < NORTH")
    projection = Projection(float(wrap_lon(round((west + east) / 2, 3))), round((south + north) / 2, 3))
    ends = projection.to_xy([[wrap_lon(lon), lat] for lon in (west, east) for lat in (south, north)])
    box = shapely.box(*ends.min(axis=0), *ends.max(axis=0))
    return Grid.covering(box, cell=as_positive(cell, "cell")), projection
