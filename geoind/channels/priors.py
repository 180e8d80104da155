"""The prior: a probability for each site, known before the report."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import shapely

from geoind.arrays import ArrayLike, FloatArray, as_count, as_finite, as_floats, as_points, frozen
from geoind.errors import InvalidInputError, NotStochasticError, SitesMismatchError
from geoind.pictures.card import card
from geoind.pictures.cells import as_grid_of, axes_or_new, density_layer, draw_density, layer_on_map, thumbnail
from geoind.space.crs import in_degrees
from geoind.space.sites import Grid, Outside, Sites, inside

if TYPE_CHECKING:
    from folium import Map
    from geopandas import GeoDataFrame, GeoSeries
    from matplotlib.axes import Axes

    from geoind.space.projection import Projection

__all__ = ["Prior"]

SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Prior:
    """A probability for each site.

    Examples
    --------
    >>> from geoind import Grid
    >>> home = Prior(Grid(0, 0, cell=100, columns=2, rows=1), [0.75, 0.25])
    >>> home.mass
    array([0.75, 0.25])
    """

    sites: Sites
    mass: FloatArray

    def __init__(self, sites: Sites, mass: ArrayLike) -> None:
        array = as_floats(mass, "mass")
        if array.shape != (len(sites),):
            raise SitesMismatchError(f"mass must have one entry per site: {array.shape} for {len(sites)}")
        # Written so that NaN fails.
        if not (array >= 0).all():
            raise NotStochasticError("mass must hold probabilities: an entry is negative or not a number")
        total = array.sum()
        if not abs(total - 1) <= SUM_TOLERANCE:
            raise NotStochasticError(f"mass must sum to 1, got {total:.12g}; for weights use Prior.from_counts")
        object.__setattr__(self, "sites", sites)
        object.__setattr__(self, "mass", frozen(array / total))

    def __len__(self) -> int:
        return len(self.sites)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sites!r}, largest mass {self.mass.max():.3g})"

    def _repr_html_(self) -> str:
        facts = {
            "sites": repr(self.sites),
            "largest mass": f"{self.mass.max():.3g}, at site {self.mass.argmax()}",
            "sites that are possible": np.count_nonzero(self.mass),
        }
        return card(type(self).__name__, facts, thumbnail(self.sites, self.mass))

    def plot(self, axes: "Axes | None" = None, *, largest: float | None = None) -> "Axes":
        """Draw the share per hectare of each cell, with its square root as brightness, and return the axes.

        Sites other than a grid are drawn as dots with an area proportional to their mass.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Where to draw, in kilometres; default: a new figure.
        largest : float, optional
            The value of full brightness; default: the largest one.

        Examples
        --------
        >>> from geoind import Grid
        >>> Prior.uniform(Grid(0, 0, cell=100, columns=2, rows=1)).plot().get_xlabel()
        'km east'
        """
        axes = axes_or_new(axes)
        draw_density(self.sites, self.mass, axes, largest=largest)
        return axes

    def explore(self, projection: "Projection", *, pixels: int = 1024, opacity: float = 0.75) -> "Map":
        """Return a folium map of the masses without tiles, so that no server learns the region.

        Write it with `geoind.maps.save_offline`, which embeds everything that the page needs.

        Parameters
        ----------
        projection : Projection
            From degrees to the grid's metres.
        pixels : int
            Pixels along the longer side.
        opacity : float
            Opacity of the densest cell.

        Examples
        --------
        >>> from geoind.evaluation import synthetic_city
        >>> city = synthetic_city(16)
        >>> type(city.prior.explore(city.projection)).__name__
        'Map'
        """
        grid = as_grid_of(self.sites, "what is shown on a map")
        return layer_on_map(
            density_layer(grid, self.mass, projection, pixels=pixels, opacity=opacity, name="people")
        )

    def refined(self, steps: int) -> "Prior":
        """Return the same masses on a grid with `steps` times as many sites along each side of a cell.

        The new sites have no mass. A channel that is interpolated between them may be closer to an optimum.

        Examples
        --------
        >>> from geoind import Grid
        >>> city = Prior(Grid(0, 0, cell=100, columns=2, rows=2), [0.4, 0.3, 0.2, 0.1])
        >>> city.refined(2).sites
        Grid(x=0.0, y=0.0, cell=50.0, columns=3, rows=3)
        >>> city.refined(2).mass
        array([0.4, 0. , 0.3, 0. , 0. , 0. , 0.2, 0. , 0.1])
        """
        grid, steps = as_grid_of(self.sites, "a prior that is refined"), as_count(steps, "steps")
        columns, rows = steps * (grid.columns - 1) + 1, steps * (grid.rows - 1) + 1
        mass = np.zeros((rows, columns))
        mass[::steps, ::steps] = self.mass.reshape(grid.rows, grid.columns)
        fine = Grid(grid.x, grid.y, cell=grid.cell / steps, columns=columns, rows=rows)
        return Prior(fine, mass.ravel())

    @classmethod
    def uniform(cls, sites: Sites) -> "Prior":
        """Return the same mass for every site.

        Examples
        --------
        >>> from geoind import Places
        >>> Prior.uniform(Places([[0, 0], [5, 0]])).mass
        array([0.5, 0.5])
        """
        return cls.from_counts(sites, np.ones(len(sites)))

    @classmethod
    def over(cls, sites: Sites, cells: ArrayLike) -> "Prior":
        """Return the same mass for the chosen sites and none for the others.

        Parameters
        ----------
        sites : Sites
        cells : list of int, or of bool with one per site
            Numbers of the chosen sites, or a mask.

        Examples
        --------
        >>> from geoind import Grid
        >>> Prior.over(Grid(0, 0, cell=100, columns=4, rows=1), [1, 2]).mass
        array([0. , 0.5, 0.5, 0. ])
        """
        chosen = np.asarray(cells)
        if chosen.dtype.kind == "b":
            if chosen.shape != (len(sites),):
                raise SitesMismatchError(f"a mask must have one entry per site: {chosen.shape} for {len(sites)}")
            chosen = np.flatnonzero(chosen)
        if chosen.ndim != 1 or not chosen.size or chosen.dtype.kind not in "iu":
            raise InvalidInputError("cells must be a list of at least one site number")
        if not ((chosen >= 0) & (chosen < len(sites))).all():
            raise InvalidInputError(f"cells must be numbers of sites, 0 to {len(sites) - 1}")
        weights = np.zeros(len(sites))
        weights[chosen] = 1
        return cls.from_counts(sites, weights)

    @classmethod
    def from_counts(cls, sites: Sites, counts: ArrayLike) -> "Prior":
        """Return masses proportional to non-negative weights, one per site.

        Examples
        --------
        >>> from geoind import Places
        >>> Prior.from_counts(Places([[0, 0], [5, 0]]), [30, 10]).mass
        array([0.75, 0.25])
        """
        weights = as_floats(counts, "counts")
        # Divided by the largest weight first, so that huge or tiny counts neither overflow nor underflow.
        largest = weights.max(initial=0)
        if not 0 < largest < np.inf:
            raise NotStochasticError("counts must be finite and at least one must be positive")
        scaled = weights / largest
        return cls(sites, scaled / scaled.sum())

    @classmethod
    def from_points(
        cls,
        sites: Sites,
        xy: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        smoothing: float = 0.0,
        outside: Outside = "raise",
    ) -> "Prior":
        """Return for each site the share of points that it is the closest site of.

        Parameters
        ----------
        sites : Sites
        xy : (n, 2) array
            Past locations, in metres; for records, as many columns as they have.
        weights : (n,) array, optional
            Weight of each point; default: one each.
        smoothing : float
            Added to the count of every site. Above zero every site has a positive mass.
        outside : "raise" or "drop"
            Whether points outside a grid raise an error or are dropped. `Places` have no outside.

        Examples
        --------
        >>> from geoind import Grid
        >>> street = Grid(0, 0, cell=100, columns=2, rows=1)
        >>> visits = [[3, 5], [-20, 1], [12, 40], [99, 0]]
        >>> Prior.from_points(street, visits).mass
        array([0.75, 0.25])
        >>> Prior.from_points(street, visits, smoothing=2).mass
        array([0.625, 0.375])
        >>> Prior.from_points(street, [*visits, [9999, 0]], outside="drop").mass
        array([0.75, 0.25])
        """
        points = as_points(xy, "xy", columns=sites.xy.shape[1])
        counted = np.ones(len(points)) if weights is None else as_floats(weights, "weights")
        if counted.shape != (len(points),):
            raise InvalidInputError(f"weights must be one per point: {counted.shape} for {len(points)}")
        if not (counted >= 0).all():
            raise InvalidInputError("weights must not be negative")
        if not as_finite(smoothing, "smoothing") >= 0:
            raise InvalidInputError(f"smoothing must not be negative, got {smoothing!r}")
        kept = inside(sites, points, outside)
        counts = np.bincount(sites.nearest(points[kept]), weights=counted[kept], minlength=len(sites))
        return cls.from_counts(sites, counts + smoothing)

    @classmethod
    def from_lonlat(
        cls,
        sites: Sites,
        lonlat: "ArrayLike | GeoDataFrame | GeoSeries",
        *,
        projection: "Projection",
        weights: ArrayLike | None = None,
        smoothing: float = 0.0,
        outside: Outside = "raise",
    ) -> "Prior":
        """Return for each site the share of lon/lat points that it is the closest site of.

        Parameters
        ----------
        sites : Sites
        lonlat : (n, 2) array, GeoDataFrame or GeoSeries
            Past locations: degrees, longitude first, or points with a CRS.
        projection : Projection
            From degrees to the sites' metres.
        weights, smoothing, outside
            As in `from_points`.

        Examples
        --------
        >>> from geoind import Grid, Projection
        >>> around = Grid(-100, 0, cell=100, columns=3, rows=1)
        >>> visits = [[2.35, 48.86], [2.3501, 48.8601], [2.3513, 48.86]]
        >>> Prior.from_lonlat(around, visits, projection=Projection(2.35, 48.86)).mass.round(3)
        array([0.   , 0.667, 0.333])
        """
        xy = projection.to_xy(lonlat)
        return cls.from_points(sites, xy, weights=weights, smoothing=smoothing, outside=outside)

    @classmethod
    def from_raster(cls, grid: Grid, path: str | Path, *, projection: "Projection") -> "Prior":
        r"""Return the values of a raster's pixels, such as people, by the cell of the grid that has their centres.

        Pixels outside the grid are ignored. Choose cells that are no smaller than the pixels.

        Parameters
        ----------
        grid : Grid
        path : str or Path
            A GeoTIFF or an ESRI ASCII grid with one band and a CRS; needs the extra `raster`.
        projection : Projection
            From lon/lat degrees to the grid's metres.

        Examples
        --------
        >>> import tempfile
        >>> from geoind import Grid, Projection
        >>> from geoind.space.crs import parsed_crs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     raster = Path(folder, "people.asc")
        ...     _ = raster.write_text("ncols 2\nnrows 1\nxllcorner 2.0\nyllcorner 48.0\ncellsize 0.01\n1 7\n")
        ...     _ = raster.with_suffix(".prj").write_text(parsed_crs("EPSG:4326").to_wkt("WKT1_ESRI"))
        ...     grid = Grid(-400, 0, cell=800, columns=2, rows=1)
        ...     Prior.from_raster(grid, raster, projection=Projection(2.01, 48.005)).mass
        array([0.125, 0.875])
        """
        from geoind.space.raster_files import read_raster

        lonlat, people = read_raster(path)
        return cls.from_lonlat(grid, lonlat, projection=projection, weights=people, outside="drop")

    @classmethod
    def from_polygons(
        cls,
        grid: Grid,
        frame: "GeoDataFrame",
        *,
        weights: str | ArrayLike | None = None,
        projection: "Projection | None" = None,
    ) -> "Prior":
        """Return the weights of polygons, spread evenly over their areas, by cell.

        Areas outside the grid are ignored.

        Parameters
        ----------
        grid : Grid
        frame : GeoDataFrame
            Polygons, e.g. census tracts. With a projection any CRS; without one, the grid's metres.
        weights : str or array, optional
            A column's name or one number per polygon, e.g. inhabitants; default: one each.
        projection : Projection, optional
            From lon/lat degrees to the grid's metres.

        Examples
        --------
        >>> import geopandas, shapely
        >>> from geoind import Grid
        >>> tracts = geopandas.GeoDataFrame({"people": [3, 1]}, geometry=[shapely.box(-50, -50, 50, 50),
        ...                                                               shapely.box(-50, -50, 150, 50)])
        >>> Prior.from_polygons(Grid(0, 0, cell=100, columns=2, rows=1), tracts, weights="people").mass
        array([0.875, 0.125])
        """
        polygons = _in_metres(frame, projection)
        if isinstance(weights, str):
            if weights not in frame.columns:
                raise InvalidInputError(f"weights: the frame has no column {weights!r}")
            weights = frame[weights].to_numpy()
        counted = np.ones(len(polygons)) if weights is None else as_floats(weights, "weights")
        if counted.shape != (len(polygons),) or not ((counted >= 0) & (counted < np.inf)).all():
            raise InvalidInputError("weights must be one finite, non-negative number per polygon")
        areas = shapely.area(polygons)
        if not (areas > 0).all():
            raise InvalidInputError(f"geometry must be polygons, row {np.argmin(areas > 0)} has no area")
        cells = grid.polygons()
        polygon, cell = shapely.STRtree(cells).query(polygons)
        shared = shapely.area(shapely.intersection(polygons[polygon], cells[cell]))
        counts = np.bincount(cell, weights=counted[polygon] * shared / areas[polygon], minlength=len(grid))
        if not counts.sum() > 0:
            raise NotStochasticError("no polygon with a positive weight meets the grid")
        return cls.from_counts(grid, counts)


def _in_metres(
    frame: "GeoDataFrame", projection: "Projection | None"
) -> "np.ndarray[tuple[int], np.dtype[np.object_]]":
    if projection is not None:
        return np.asarray(projection.transform(in_degrees(frame.geometry, "the frame").to_numpy()))
    if frame.crs is not None and frame.crs.is_geographic:
        raise InvalidInputError("the frame is in degrees: pass projection= for the grid's metres")
    return np.asarray(frame.geometry.to_numpy())
