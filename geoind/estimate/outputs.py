"""An estimated population for other programs and for people: cells with masses, a picture, a map layer."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray, as_count
from geoind.channels.priors import Prior
from geoind.errors import InvalidInputError, SitesMismatchError
from geoind.estimate.bootstrap import Intervals
from geoind.extras import require
from geoind.space.projection import Projection
from geoind.space.sites import Grid

if TYPE_CHECKING:
    from folium.raster_layers import ImageOverlay
    from geopandas import GeoDataFrame
    from matplotlib.axes import Axes

__all__ = ["check_output", "draw_population", "heat_layer", "population_frame", "save_population"]

COLOURS = "inferno"
DECIMALS = 6
"""Decimals of a degree in text files: a tenth of a metre."""


def population_frame(
    population: Prior, projection: Projection, *, intervals: Intervals | None = None
) -> "GeoDataFrame":
    """Return one row per cell, in the grid's numbering: its mass and its outline in degrees.

    Columns are `mass` (the share of the people), with intervals also `low` and `high`, and `geometry`.

    Examples
    --------
    >>> from geoind import synthetic_city
    >>> city = synthetic_city(8)
    >>> frame = population_frame(city.prior, city.projection)
    >>> frame.shape, frame.crs.to_epsg()
    ((64, 2), 4326)
    """
    import geopandas
    import shapely

    grid = _grid_of(population)
    columns: dict[str, FloatArray] = {"mass": population.mass}
    if intervals is not None:
        if intervals.sites != grid:
            raise SitesMismatchError("intervals must be of the population's cells")
        columns |= {"low": intervals.low, "high": intervals.high}
    corners = _corners(grid, projection)
    ring = [corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1], corners[:-1, :-1]]
    outlines = shapely.polygons(np.stack(ring, axis=2).reshape(len(grid), 5, 2))
    return geopandas.GeoDataFrame(columns, geometry=outlines, crs="EPSG:4326")


def save_population(
    population: Prior, path: str | Path, *, projection: Projection, intervals: Intervals | None = None
) -> None:
    """Write a population to a file; what kind of file, its name tells.

    `.geojson` and `.parquet` hold the cells as `population_frame` has them; `.csv` holds `lon`, `lat` of each
    cell's middle and `mass` (`low`, `high`); `.png` is a picture, `.html` a map that needs no network.

    Examples
    --------
    >>> import tempfile
    >>> from geoind import synthetic_city
    >>> city = synthetic_city(8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_population(city.prior, f"{folder}/city.csv", projection=city.projection)
    ...     print(Path(folder, "city.csv").read_text().splitlines()[0])
    lon,lat,mass
    """
    check_output(path)
    WRITERS[Path(path).suffix.lower()](population, Path(path), projection, intervals)


def check_output(path: str | Path) -> None:
    """Refuse a file name that does not tell what to write, or a picture nobody can draw, before any work."""
    if Path(path).suffix.lower() not in WRITERS:
        raise InvalidInputError(f"the output must end in one of {', '.join(WRITERS)}, got {Path(path).name!r}")
    if Path(path).suffix.lower() == ".png":
        require("a picture", "matplotlib")


def draw_population(population: Prior, axes: "Axes", *, largest: float | None = None) -> Any:
    """Draw a population as the share of the people per hectare and return the image; brightness is its root.

    Parameters
    ----------
    population : Prior
        Over a grid.
    axes : matplotlib Axes
        Where to draw, in kilometres.
    largest : float, optional
        Share of the people per hectare that is brightest; by default the largest one.
    """
    require("a picture", "matplotlib")
    from matplotlib.colors import PowerNorm

    grid = _grid_of(population)
    west, south, east, north = (side / 1000 for side in grid.bounds)
    density = population.mass.reshape(grid.rows, grid.columns) / (grid.cell / 100) ** 2
    norm = PowerNorm(0.5, vmin=0, vmax=largest if largest is not None else density.max())
    image = axes.imshow(density, origin="lower", extent=(west, east, south, north), cmap=COLOURS, norm=norm)
    axes.set_xlabel("km east")
    axes.set_ylabel("km north")
    return image


def heat_layer(
    population: Prior, projection: Projection, *, pixels: int = 1024, opacity: float = 0.75, name: str = "people"
) -> "ImageOverlay":
    """Return a folium layer of the population: one picture, transparent where nobody is.

    The picture is drawn in the map's own projection, so that every pixel shows the cell that lies there.

    Parameters
    ----------
    population : Prior
        Over a grid.
    projection : Projection
        From degrees to the grid's metres.
    pixels : int
        Pixels along the longer side.
    opacity : float
        Of the densest cell.
    name : str
        In the map's layer control.

    Examples
    --------
    >>> import folium
    >>> from geoind import synthetic_city
    >>> city = synthetic_city(16)
    >>> there = folium.Map([48.86, 2.35], tiles=None)
    >>> _ = heat_layer(city.prior, city.projection).add_to(there)
    """
    from branca.colormap import linear
    from folium.raster_layers import ImageOverlay

    grid = _grid_of(population)
    outline = _corners(grid, projection).reshape(-1, 2)
    west, south = outline.min(axis=0)
    east, north = outline.max(axis=0)
    # Leaflet stretches a picture evenly in Web Mercator: rows of pixels are even in the Mercator ordinate.
    bottom, top = _mercator(south), _mercator(north)
    width, height = np.radians(east - west), top - bottom
    scale = as_count(pixels, "pixels") / max(width, height)
    columns, rows = max(1, round(width * scale)), max(1, round(height * scale))
    lon = west + (east - west) * (np.arange(columns) + 0.5) / columns
    lat = _mercator_inverse(top - height * (np.arange(rows) + 0.5) / rows)
    xy = projection.to_xy(np.column_stack([axis.ravel() for axis in np.meshgrid(lon, lat)]))
    left, low, right, high = grid.bounds
    inside = ((xy >= (left, low)) & (xy <= (right, high))).all(axis=1)
    shade = np.where(inside, np.sqrt(population.mass / population.mass.max())[grid.nearest(xy)], 0.0)
    # folium's own colours, so that a map needs nothing but what geoind always has.
    steps = np.asarray(linear.inferno.colors)
    place = np.linspace(0, 1, len(steps))
    colours = np.column_stack([np.interp(shade, place, band) for band in steps.T])
    colours[:, 3] = np.where(inside, np.minimum(1.0, 3 * shade) * opacity, 0.0)
    picture = np.rint(255 * colours).astype(np.uint8).reshape(rows, columns, 4)
    return ImageOverlay(picture, [[float(south), float(west)], [float(north), float(east)]], name=name)


def _grid_of(population: Prior) -> Grid:
    if not isinstance(population.sites, Grid):
        raise InvalidInputError(f"the population must be over a Grid, not {type(population.sites).__name__}")
    return population.sites


def _corners(grid: Grid, projection: Projection) -> FloatArray:
    """Return the corners of the cells in degrees, (rows + 1, columns + 1, 2)."""
    west, south, _, _ = grid.bounds
    x, y = np.meshgrid(
        west + grid.cell * np.arange(grid.columns + 1), south + grid.cell * np.arange(grid.rows + 1)
    )
    degrees = projection.to_lonlat(np.column_stack([x.ravel(), y.ravel()]))
    return degrees.reshape(grid.rows + 1, grid.columns + 1, 2)


def _mercator(lat: npt.ArrayLike) -> Any:
    return np.arcsinh(np.tan(np.radians(lat)))


def _mercator_inverse(ordinate: npt.ArrayLike) -> Any:
    return np.degrees(np.arctan(np.sinh(ordinate)))


def _write_geojson(population: Prior, path: Path, projection: Projection, intervals: Intervals | None) -> None:
    frame = population_frame(population, projection, intervals=intervals)
    frame.to_file(path, driver="GeoJSON", COORDINATE_PRECISION=DECIMALS)


def _write_parquet(population: Prior, path: Path, projection: Projection, intervals: Intervals | None) -> None:
    population_frame(population, projection, intervals=intervals).to_parquet(path)


def _write_csv(population: Prior, path: Path, projection: Projection, intervals: Intervals | None) -> None:
    columns = [projection.to_lonlat(population.sites.xy).round(DECIMALS), population.mass[:, None]]
    names = "lon,lat,mass"
    if intervals is not None:
        columns += [intervals.low[:, None], intervals.high[:, None]]
        names += ",low,high"
    formats = [f"%.{DECIMALS}f"] * 2 + ["%.9g"] * (names.count(",") - 1)
    np.savetxt(path, np.hstack(columns), fmt=formats, delimiter=",", header=names, comments="")


def _write_png(population: Prior, path: Path, projection: Projection, intervals: Intervals | None) -> None:  # noqa: ARG001
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    axes = figure.add_subplot()
    image = draw_population(population, axes)
    figure.colorbar(image, label="share of the people per hectare", format="{x:.2%}", shrink=0.85)
    figure.savefig(path, dpi=150)


def _write_html(population: Prior, path: Path, projection: Projection, intervals: Intervals | None) -> None:  # noqa: ARG001
    import folium

    from geoind.maps.offline import save_offline

    grid = _grid_of(population)
    corners = _corners(grid, projection)
    view = folium.Map(tiles=None, control_scale=True)
    heat_layer(population, projection).add_to(view)
    view.fit_bounds([corners[0, 0, ::-1].tolist(), corners[-1, -1, ::-1].tolist()])
    save_offline(view, path)


WRITERS = {
    ".geojson": _write_geojson,
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".png": _write_png,
    ".html": _write_html,
}
