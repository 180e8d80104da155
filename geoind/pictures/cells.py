"""Pictures of one number per site: on matplotlib axes, as a folium layer, and as a thumbnail."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray, as_count
from geoind.errors import InvalidInputError
from geoind.extras import require
from geoind.space.crs import wrap_lon
from geoind.space.projection import Projection
from geoind.space.sites import Grid, Sites, as_plane

if TYPE_CHECKING:
    from folium import Map
    from folium.raster_layers import ImageOverlay
    from matplotlib.axes import Axes

__all__ = [
    "as_grid_of",
    "axes_or_new",
    "colour_names",
    "corners",
    "density_layer",
    "dot_on_map",
    "draw_density",
    "layer_on_map",
    "thumbnail",
]

COLOURS = "inferno"
SMALL = 96
"""Largest side of a thumbnail, in pixels."""


def axes_or_new(axes: "Axes | None") -> "Axes":
    """Return the axes, or those of a new pyplot figure, which a notebook displays."""
    require("a picture", "matplotlib")
    if axes is not None:
        return axes
    from matplotlib import pyplot

    new: Axes = pyplot.subplots(layout="constrained")[1]
    return new


def draw_density(sites: Sites, mass: FloatArray, axes: "Axes", *, largest: float | None = None) -> Any:
    """Draw the share per hectare of each cell and return the image; brightness is the square root of the share.

    Sites that are not a grid are drawn as dots whose area is their share.
    """
    require("a picture", "matplotlib")
    from matplotlib.colors import PowerNorm

    axes.set_xlabel("km east")
    axes.set_ylabel("km north")
    if not isinstance(sites, Grid):
        top = mass.max() if largest is None else largest
        axes.set_aspect("equal")
        x, y = as_plane(sites, "what is drawn").xy.T / 1000
        return axes.scatter(x, y, s=200 * mass / top, c=mass, cmap=COLOURS, vmin=0, vmax=top)
    west, south, east, north = (side / 1000 for side in sites.bounds)
    density = mass.reshape(sites.rows, sites.columns) / (sites.cell / 100) ** 2
    norm = PowerNorm(0.5, vmin=0, vmax=largest if largest is not None else density.max())
    return axes.imshow(density, origin="lower", extent=(west, east, south, north), cmap=COLOURS, norm=norm)


def density_layer(
    grid: Grid, mass: FloatArray, projection: Projection, *, pixels: int, opacity: float, name: str
) -> "ImageOverlay":
    """Return a folium layer: one picture in the map's own projection, transparent where the mass is zero."""
    from folium.raster_layers import ImageOverlay

    outline = corners(grid, projection).reshape(-1, 2)
    west, south = outline.min(axis=0)
    east, north = outline.max(axis=0)
    # Leaflet scales an image linearly in Web Mercator, so rows of pixels are equally spaced in that projection.
    bottom, top = _mercator(south), _mercator(north)
    width, height = np.radians(east - west), top - bottom
    scale = as_count(pixels, "pixels") / max(width, height)
    columns, rows = max(1, round(width * scale)), max(1, round(height * scale))
    lon = west + (east - west) * (np.arange(columns) + 0.5) / columns
    lat = _mercator_inverse(top - height * (np.arange(rows) + 0.5) / rows)
    xy = projection.to_xy(np.column_stack([axis.ravel() for axis in np.meshgrid(wrap_lon(lon), lat)]))
    left, low, right, high = grid.bounds
    inside = ((xy >= (left, low)) & (xy <= (right, high))).all(axis=1)
    shade = np.where(inside, np.sqrt(mass / mass.max())[grid.nearest(xy)], 0.0)
    picture = np.rint(255 * _on_map(shade, opacity)).astype(np.uint8).reshape(rows, columns, 4)
    return ImageOverlay(picture, [[float(south), float(west)], [float(north), float(east)]], name=name)


def layer_on_map(layer: "ImageOverlay") -> "Map":
    """Return a map without tiles with only this layer."""
    import folium

    view = folium.Map(tiles=None, control_scale=True)
    layer.add_to(view)
    view.fit_bounds(layer.bounds)
    return view


def dot_on_map(view: "Map", lonlat: list[float]) -> "Map":
    """Return the map with a dot."""
    import folium

    folium.CircleMarker(lonlat[::-1], radius=5, color="white", weight=2, fill=True, fill_color="black").add_to(
        view
    )
    return view


def thumbnail(sites: Sites, mass: FloatArray) -> bytes | None:
    r"""Return a small PNG of the shares of a grid's cells, north up; None for other sites.

    Examples
    --------
    >>> thumbnail(Grid(0, 0, cell=100, columns=2, rows=1), np.array([0.25, 0.75]))[:4]
    b'\x89PNG'
    """
    if not isinstance(sites, Grid):
        return None
    from branca.utilities import write_png

    block = math.ceil(max(sites.rows, sites.columns) / SMALL)
    table = mass.reshape(sites.rows, sites.columns)
    for axis in (0, 1):
        table = np.add.reduceat(table, np.arange(0, table.shape[axis], block), axis=axis)
    colours = _coloured(np.sqrt(table[::-1] / table.max()).ravel())
    return bytes(write_png(np.rint(255 * colours).astype(np.uint8).reshape(*table.shape, 4)))


def corners(grid: Grid, projection: Projection) -> FloatArray:
    """Return the corners of the cells in degrees, (rows + 1, columns + 1, 2).

    For a grid across 180 degrees of longitude they continue above 180, so that its cells stay connected.
    """
    west, south, _, _ = grid.bounds
    x, y = np.meshgrid(
        west + grid.cell * np.arange(grid.columns + 1), south + grid.cell * np.arange(grid.rows + 1)
    )
    degrees = projection.to_lonlat(np.column_stack([x.ravel(), y.ravel()]))
    if np.ptp(degrees[:, 0]) > 180:
        degrees[:, 0] %= 360
    return degrees.reshape(grid.rows + 1, grid.columns + 1, 2)


def as_grid_of(sites: Sites, what: str) -> Grid:
    """Return the sites; raise if they are not a grid."""
    if not isinstance(sites, Grid):
        raise InvalidInputError(f"{what} must be over a Grid, not {type(sites).__name__}")
    return sites


def colour_names(count: int, *, opacity: float) -> list[str]:
    """Return CSS colours of `density_layer` for equally spaced square roots of the share, from 0 to the largest.

    Examples
    --------
    >>> colour_names(2, opacity=0.75)
    ['rgb(0 0 4 / 0%)', 'rgb(252 255 164 / 75%)']
    """
    bands = _on_map(np.linspace(0, 1, count), opacity) * [255, 255, 255, 100]
    return [
        f"rgb({red} {green} {blue} / {alpha}%)" for red, green, blue, alpha in np.rint(bands).astype(int).tolist()
    ]


def _on_map(shade: FloatArray, opacity: float) -> FloatArray:
    """Return the colours of shades on a map, (n, 4): small shades are transparent."""
    colours = _coloured(shade)
    colours[:, 3] = np.minimum(1.0, 3 * shade) * opacity
    return colours


def _coloured(shade: FloatArray) -> FloatArray:
    """Return red, green, blue and opacity between 0 and 1, (n, 4), for shades between 0 and 1."""
    # branca is a core dependency; matplotlib is not.
    from branca.colormap import linear

    steps = np.asarray(linear.inferno.colors)
    place = np.linspace(0, 1, len(steps))
    return np.column_stack([np.interp(shade, place, band) for band in steps.T])


def _mercator(lat: npt.ArrayLike) -> Any:
    return np.arcsinh(np.tan(np.radians(lat)))


def _mercator_inverse(ordinate: npt.ArrayLike) -> Any:
    return np.degrees(np.arctan(np.sinh(ordinate)))
