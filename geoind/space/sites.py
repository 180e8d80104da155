"""Finite ordered sets of locations: a regular `Grid` in the plane, or any `Places`."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import shapely
from scipy.spatial import cKDTree

from geoind.arrays import (
    ArrayLike,
    FloatArray,
    IntArray,
    as_count,
    as_finite,
    as_floats,
    as_points,
    as_positive,
    frozen,
)
from geoind.errors import InvalidInputError, plural

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

    from geoind.space.projection import Projection

__all__ = ["Grid", "Outside", "Places", "Sites", "as_plane", "as_sites", "inside", "same_sites", "sites_array"]

ROUNDING = 1e-9
"""Points outside a grid by at most this share of a cell count as on its border."""

Outside: TypeAlias = Literal["raise", "drop"]
"""Treatment of points outside a grid: raise an error, or drop them."""


class Sites(Protocol):
    """A finite ordered set of locations: in metres, or records with a column for each attribute."""

    @property
    def xy(self) -> FloatArray:
        """The locations, (n, 2), or the records, (n, columns), read-only."""
        ...

    def __len__(self) -> int: ...

    def nearest(self, points: ArrayLike) -> IntArray:
        """Return the number of the closest site for each point."""
        ...


@dataclass(frozen=True)
class Grid:
    """Square cells in rows and columns.

    Cells are numbered row by row from the south-west: `index = row * columns + column`.

    Parameters
    ----------
    x, y : float
        Centre of cell 0, the south-west one, in metres.
    cell : float
        Side of a cell, in metres.
    columns, rows : int
        Number of cells from west to east and from south to north.

    Examples
    --------
    >>> grid = Grid(0, 0, cell=100, columns=3, rows=2)
    >>> grid.xy[4]
    array([100., 100.])
    >>> grid.nearest([[149.0, -1000.0]])
    array([1])
    """

    x: float
    y: float
    _: KW_ONLY
    cell: float
    columns: int
    rows: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", as_finite(self.x, "x"))
        object.__setattr__(self, "y", as_finite(self.y, "y"))
        object.__setattr__(self, "cell", as_positive(self.cell, "cell"))
        object.__setattr__(self, "columns", as_count(self.columns, "columns"))
        object.__setattr__(self, "rows", as_count(self.rows, "rows"))

    def __len__(self) -> int:
        return self.columns * self.rows

    @cached_property
    def xy(self) -> FloatArray:
        """Centres of the cells, (rows * columns, 2), read-only."""
        column, row = np.meshgrid(np.arange(self.columns), np.arange(self.rows))
        centres = np.column_stack([column.ravel(), row.ravel()])
        return frozen(np.array([self.x, self.y]) + self.cell * centres)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Outer border: (west, south, east, north) in metres."""
        west, south = self.x - self.cell / 2, self.y - self.cell / 2
        return west, south, west + self.columns * self.cell, south + self.rows * self.cell

    def nearest(self, points: ArrayLike) -> IntArray:
        """Return for each point the cell with the closest centre; outside points go to the border."""
        steps = np.rint((as_points(points) - (self.x, self.y)) / self.cell)
        steps = np.clip(steps, 0, (self.columns - 1, self.rows - 1)).astype(np.int64)
        return steps[:, 1] * self.columns + steps[:, 0]

    def contains(self, points: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return for each point whether it lies in the grid, including its outer border.

        Examples
        --------
        >>> Grid(0, 0, cell=100, columns=3, rows=2).contains([[250, 150], [251, 0]])
        array([ True, False])
        """
        steps = (as_points(points) - (self.x, self.y)) / self.cell
        # The tolerance of `covering`.
        border = 0.5 + ROUNDING
        last = np.array([self.columns, self.rows]) - 1
        return np.asarray(((steps >= -border) & (steps <= last + border)).all(axis=1))

    @property
    def snap(self) -> "_Snap":
        """A step for `PostProcessed` that moves each point to the closest centre.

        Examples
        --------
        >>> Grid(0, 0, cell=100, columns=3, rows=2).snap([[149.0, -1000.0]])
        array([[100.,   0.]])
        """
        return _Snap(self)

    @property
    def cell_radius(self) -> float:
        """Largest distance of a point of a cell from its centre, in metres."""
        return self.cell / math.sqrt(2)

    def check_inside(self, points: ArrayLike) -> None:
        """Raise an error for points beyond the outer border."""
        west, south, east, north = self.bounds
        xy = as_points(points)
        inside = ((xy >= (west, south)) & (xy <= (east, north))).all(axis=1)
        if not inside.all():
            raise InvalidInputError(f"row {np.argmin(inside)} lies outside the grid")

    def polygons(self) -> npt.NDArray[np.object_]:
        """Return the cells as shapely boxes, in the grid's numbering."""
        half = self.cell / 2
        return np.asarray(shapely.box(*(self.xy - half).T, *(self.xy + half).T), dtype=object)

    @classmethod
    def covering(cls, region: "BaseGeometry", *, cell: float, projection: "Projection | None" = None) -> "Grid":
        """Return the smallest grid of whole cells over a region's bounding box.

        Parameters
        ----------
        region : shapely geometry
            In metres, or in lon/lat degrees if a projection is given.
        cell : float
            Side of a cell, in metres.
        projection : Projection, optional
            From the region's degrees to the grid's metres.

        Examples
        --------
        >>> import shapely
        >>> len(Grid.covering(shapely.box(0, 0, 250, 100), cell=100))
        3
        """
        cell = as_positive(cell, "cell")
        if region.is_empty:
            raise InvalidInputError("region must not be empty")
        if projection is not None:
            region = projection.transform(region)
        west, south, east, north = region.bounds
        columns, rows = (max(1, math.ceil(side / cell - ROUNDING)) for side in (east - west, north - south))
        return cls(west + cell / 2, south + cell / 2, cell=cell, columns=columns, rows=rows)


@dataclass(frozen=True)
class _Snap:
    """The step from reports to the closest centres of a grid's cells."""

    grid: Grid

    space: ClassVar[Literal["xy"]] = "xy"

    def __call__(self, points: ArrayLike) -> FloatArray:
        """Return the closest centre of each point."""
        return self.grid.xy[self.grid.nearest(points)]

    def reach_after(self, reach: float) -> float:
        """Return a bound on the distance from a truth in the grid to a report; `reach` is that before the step."""
        # Moving a report to the border of a convex region does not increase its distance to a truth inside.
        return reach + self.grid.cell_radius

    def check_inside(self, points: ArrayLike) -> None:
        """Raise an error for truths beyond the grid's border."""
        self.grid.check_inside(points)


@dataclass(frozen=True, eq=False, repr=False)
class Places:
    """Any points, in the order given: of the plane, or records with any number of columns.

    Records (ages and weights, the 24 hours of a smart meter, whole databases) are accepted by all functions that
    take a distance or a loss: channels, priors, optimal mechanisms. Functions of the plane raise an error for
    them.

    Parameters
    ----------
    xy : (n, columns) array
        Two columns, in metres, for points of the plane.

    Examples
    --------
    >>> cafes = Places([[0, 0], [120, 50]])
    >>> len(cafes), cafes.nearest([[100, 100]])
    (2, array([1]))
    >>> from geoind import distances
    >>> salaries = Places([[32, 0, 27], [32, 0.01, 27], [32, 1e6, 27]])
    >>> distances.hamming(salaries.xy, salaries.xy)[0]
    array([0., 1., 1.])
    """

    xy: FloatArray

    def __init__(self, xy: ArrayLike) -> None:
        points = as_points(xy, "xy", columns=None)
        if not len(points):
            raise InvalidInputError("xy must hold at least one place")
        object.__setattr__(self, "xy", frozen(points))

    def __len__(self) -> int:
        return len(self.xy)

    def __repr__(self) -> str:
        return f"Places({plural(len(self), 'place')})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Places) and np.array_equal(self.xy, other.xy)

    def __hash__(self) -> int:
        return hash(self.xy.tobytes())

    @cached_property
    def _tree(self) -> "cKDTree":
        return cKDTree(self.xy)

    def nearest(self, points: ArrayLike) -> IntArray:
        """Return the number of the closest place for each point."""
        rows = as_points(points, columns=self.xy.shape[1])
        return np.asarray(self._tree.query(rows)[1], dtype=np.int64)


def as_plane(sites: Sites, name: str = "sites") -> Sites:
    """Return the sites if they are points of the plane.

    Examples
    --------
    >>> len(as_plane(Places([[0, 0], [120, 50]])))
    2
    """
    if sites.xy.shape[1] != 2:
        raise InvalidInputError(
            f"{name} must be points of the plane, got records with {plural(sites.xy.shape[1], 'column')}"
        )
    return sites


def inside(sites: Sites, points: FloatArray, outside: Outside) -> npt.NDArray[np.bool_]:
    """Return which points lie in a grid (all of them for `Places`); with "raise", others are an error.

    Examples
    --------
    >>> grid = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> inside(grid, np.array([[10.0, 20.0], [900.0, 0.0]]), "drop").tolist()
    [True, False]
    """
    return inside_of(
        sites.contains(points) if isinstance(sites, Grid) else np.ones(len(points), dtype=bool), outside
    )


def inside_of(found: npt.NDArray[np.bool_], outside: Outside) -> npt.NDArray[np.bool_]:
    """Return which points lie inside; with "raise", others are an error."""
    if outside not in get_args(Outside):
        raise InvalidInputError(f"outside must be 'raise' or 'drop', got {outside!r}")
    if outside == "raise" and not found.all():
        raise InvalidInputError(
            f"the grid does not cover {len(found) - found.sum():,} of {plural(len(found), 'point')}: "
            "choose a grid that covers them, or drop them with outside='drop'"
        )
    return found


def same_sites(one: Sites, other: Sites) -> bool:
    """Return whether two sets have the same locations in the same order.

    Examples
    --------
    >>> grid = Grid(0, 0, cell=100, columns=2, rows=1)
    >>> same_sites(grid, Places([[0, 0], [100, 0]]))
    True
    """
    return one is other or np.array_equal(one.xy, other.xy)


def sites_array(sites: Sites) -> FloatArray:
    """Return the sites as an array for `as_sites`: five numbers for a grid, else the locations."""
    if isinstance(sites, Grid):
        return np.array([sites.x, sites.y, sites.cell, sites.columns, sites.rows], dtype=np.float64)
    return sites.xy


def as_sites(numbers: ArrayLike) -> "Grid | Places":
    """Return the sites of an array from `sites_array`.

    Examples
    --------
    >>> as_sites([0, 0, 100, 3, 2])
    Grid(x=0.0, y=0.0, cell=100.0, columns=3, rows=2)
    """
    array = as_floats(numbers, "sites")
    if array.ndim == 1 and len(array) == 5:
        x, y, cell, columns, rows = array.tolist()
        return Grid(x, y, cell=cell, columns=columns, rows=rows)
    return Places(array)
