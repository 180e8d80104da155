"""The part of a city with the most positions, and the prior that they make on its cells."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import ArrayLike, as_count, as_positive
from geoind.channels.priors import Prior
from geoind.distances import haversine
from geoind.errors import InvalidInputError
from geoind.space.crs import points_lonlat
from geoind.space.projection import Projection
from geoind.space.sites import Grid

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries

__all__ = ["busiest_window", "prior_from_lonlat", "window_of"]

REACH = 25_000.0
"""Metres around the densest part of the data in which the window is searched."""
FINEST = 4000
"""Most cells per side of the searched area."""


def busiest_window(prior: Prior, *, columns: int, rows: int) -> Prior:
    """Return the part of a prior on a grid that holds the most mass, as a prior on a smaller grid.

    Examples
    --------
    >>> wide = Prior(Grid(0, 0, cell=100, columns=4, rows=1), [0.1, 0.2, 0.3, 0.4])
    >>> busiest_window(wide, columns=2, rows=1).sites.x
    200.0
    """
    grid = prior.sites
    if not isinstance(grid, Grid) or not (as_count(columns, "columns") <= grid.columns and rows <= grid.rows):
        raise InvalidInputError(f"a window of {columns} x {rows} cells needs a grid of at least that size")
    table = prior.mass.reshape(grid.rows, grid.columns)
    total = np.zeros((grid.rows + 1, grid.columns + 1))
    total[1:, 1:] = table.cumsum(axis=0).cumsum(axis=1)
    inside = total[rows:, columns:] - total[:-rows, columns:] - total[rows:, :-columns] + total[:-rows, :-columns]
    row, column = divmod(int(inside.argmax()), inside.shape[1])
    corner_x, corner_y = grid.x + column * grid.cell, grid.y + row * grid.cell
    window = Grid(corner_x, corner_y, cell=grid.cell, columns=columns, rows=rows)
    return Prior.from_counts(window, table[row : row + rows, column : column + columns].ravel())


@dataclass(frozen=True, eq=False)
class _Window:
    """The cells of a city in which people were most often.

    Attributes
    ----------
    prior : Prior
        How often they were in each cell; the cell in the south-west is at (0, 0).
    projection : Projection
        From degrees to the cells' metres and back.
    positions : int
        How many positions lie in it.
    """

    prior: Prior
    projection: Projection
    positions: int

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east and north, in degrees."""
        half = self.prior.sites.cell / 2 if isinstance(self.prior.sites, Grid) else 0.0
        xy = self.prior.sites.xy
        corners = np.array([xy.min(axis=0) - half, xy.max(axis=0) + half])
        (west, south), (east, north) = self.projection.to_lonlat(corners).tolist()
        return west, south, east, north


def window_of(
    lonlat: "ArrayLike | GeoDataFrame | GeoSeries", *, cell: float = 100.0, columns: int = 9, rows: int = 9
) -> _Window:
    """Return the busiest window of the data, and where it lies.

    For evaluation only: where the window lies is itself learnt from the data.

    Parameters
    ----------
    lonlat : (n, 2) array, GeoDataFrame or GeoSeries
        Positions: degrees, longitude first, or points with a CRS.
    cell : float
        Side of a cell, in metres.
    columns, rows : int
        Size of the window in cells.

    Examples
    --------
    >>> window = window_of([[2.3501, 48.8601], [2.3502, 48.8602], [2.353, 48.862]])
    >>> window.prior.mass.max().round(3), [round(side, 2) for side in window.bounds]
    (np.float64(0.667), [2.34, 48.85, 2.35, 48.86])
    """
    points = points_lonlat(lonlat, "lonlat")
    if not len(points):
        raise InvalidInputError("lonlat must hold at least one position")
    cell = as_positive(cell, "cell")
    # A rough middle first: worldwide data would need a grid of the world.
    tenths, counts = np.unique(np.floor(points * 10).astype(np.int64), axis=0, return_counts=True)
    lon, lat = (tenths[counts.argmax()] + 0.5) / 10
    plane = Projection(float(np.clip(lon, -180, 180)), float(np.clip(lat, -90, 90)))
    near = haversine(points, np.array([[lon, lat]]))[:, 0] < 2 * REACH
    xy = plane.to_xy(points[near])
    side = min(2 * int(REACH // cell), FINEST) + max(columns, rows)
    corner = -(side // 2) * cell
    wide = Grid(corner, corner, cell=cell, columns=side, rows=side)
    inside = (np.abs(xy) <= side * cell / 2).all(axis=1)
    hits = np.bincount(wide.nearest(xy[inside]), minlength=len(wide))
    found = busiest_window(Prior.from_counts(wide, hits), columns=columns, rows=rows)
    own_cells = wide.nearest(found.sites.xy)
    # Around the window's own corner: then the cells of every window are the same cells.
    own = Projection(*plane.to_lonlat(found.sites.xy[:1])[0].tolist())
    grid = Grid(0, 0, cell=cell, columns=columns, rows=rows)
    return _Window(Prior(grid, found.mass), own, int(hits[own_cells].sum()))


def prior_from_lonlat(
    lonlat: "ArrayLike | GeoDataFrame | GeoSeries", *, cell: float = 100.0, columns: int = 9, rows: int = 9
) -> Prior:
    """Return how often people were in each cell of the busiest window of the data: `window_of`'s prior.

    Examples
    --------
    >>> prior_from_lonlat([[2.3501, 48.8601], [2.3502, 48.8602], [2.353, 48.862]]).mass.max().round(3)
    np.float64(0.667)
    """
    return window_of(lonlat, cell=cell, columns=columns, rows=rows).prior
