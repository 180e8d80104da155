"""Write an estimated population: cells with masses for other programs, a picture, a map."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from geoind.arrays import FloatArray
from geoind.channels.priors import Prior
from geoind.errors import GeoindError, InvalidInputError, SitesMismatchError
from geoind.extras import require
from geoind.files.writers import AtomicWriter
from geoind.maps.legend import add_legend, colour_bar
from geoind.maps.offline import save_offline
from geoind.pictures.cells import as_grid_of, colour_names, corners, density_layer
from geoind.pictures.page import fill
from geoind.space.projection import Projection
from geoind.space.sites import Grid

if TYPE_CHECKING:
    from folium.raster_layers import ImageOverlay
    from geopandas import GeoDataFrame

__all__ = ["check_output", "heat_layer", "population_frame", "save_population"]

DECIMALS = 6
"""Decimals of a degree in text files: a tenth of a metre."""

OPACITY = 0.75
"""Of the densest cell on a map, and of its colour in the legend."""

Intervals: TypeAlias = tuple[FloatArray, FloatArray]
"""The lower and the upper mass of each cell."""

EMPTY = 1e-6
"""Share of the largest mass below which a cell counts as empty."""


def population_frame(
    population: Prior, projection: Projection, *, intervals: Intervals | None = None
) -> "GeoDataFrame":
    """Return one row per cell, in the order of the grid: its mass and its outline in degrees.

    Columns are `mass` (the share of the people), with intervals also `low` and `high`, and `geometry`.

    Examples
    --------
    >>> from geoind.evaluation import synthetic_city
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
        if any(end.shape != population.mass.shape for end in intervals):
            raise SitesMismatchError("intervals must be of the population's cells")
        columns |= dict(zip(("low", "high"), intervals, strict=True))
    ends = corners(grid, projection)
    ring = [ends[:-1, :-1], ends[:-1, 1:], ends[1:, 1:], ends[1:, :-1], ends[:-1, :-1]]
    outlines = shapely.polygons(np.stack(ring, axis=2).reshape(len(grid), 5, 2))
    return geopandas.GeoDataFrame(columns, geometry=outlines, crs="EPSG:4326")


def save_population(
    population: Prior, path: str | Path, *, projection: Projection, intervals: Intervals | None = None
) -> None:
    """Write a population to a file; the suffix of its name selects the format.

    `.parquet` holds the cells as `population_frame` has them; `.geojson` the same without empty cells, whose mass
    (and `high`, with intervals) is less than a millionth of the largest mass; `.csv` holds `lon`, `lat` of each
    cell's centre and `mass` (`low`, `high`); `.png` is a picture, `.html` a map that needs no network. The file
    is complete, or after an error it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> from geoind.evaluation import synthetic_city
    >>> city = synthetic_city(8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_population(city.prior, f"{folder}/city.csv", projection=city.projection)
    ...     print(Path(folder, "city.csv").read_text().splitlines()[0])
    lon,lat,mass
    """
    check_output(path)
    with AtomicWriter() as delivery:
        WRITERS[Path(path).suffix.lower()](population, delivery.path(path), projection, intervals)


def check_output(path: str | Path) -> None:
    """Raise if the suffix is not known, or if matplotlib is missing for a picture."""
    if Path(path).suffix.lower() not in WRITERS:
        raise InvalidInputError(f"the output must end in one of {', '.join(WRITERS)}, got {Path(path).name!r}")
    if Path(path).suffix.lower() == ".png":
        require("a picture", "matplotlib")


def heat_layer(
    population: Prior, projection: Projection, *, pixels: int = 1024, opacity: float = 0.75, name: str = "people"
) -> "ImageOverlay":
    """Return a folium layer of the population: one picture, transparent where the mass is zero.

    The picture is drawn in the map's own projection, so that each pixel shows the cell at its location.

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
    >>> from geoind.evaluation import synthetic_city
    >>> city = synthetic_city(16)
    >>> there = folium.Map([48.86, 2.35], tiles=None)
    >>> _ = heat_layer(city.prior, city.projection).add_to(there)
    """
    return density_layer(
        _grid_of(population), population.mass, projection, pixels=pixels, opacity=opacity, name=name
    )


def _grid_of(population: Prior) -> Grid:
    return as_grid_of(population.sites, "the population")


def _write_geojson(population: Prior, path: Path, projection: Projection, intervals: Intervals | None) -> None:
    frame = population_frame(population, projection, intervals=intervals)
    # With intervals, a cell whose upper bound is not small is not empty.
    most = frame["mass"] if intervals is None else frame[["mass", "high"]].max(axis=1)
    frame = frame[most >= EMPTY * frame["mass"].max()]
    try:
        frame.to_file(path, driver="GeoJSON", COORDINATE_PRECISION=DECIMALS)
    except RuntimeError as error:
        # GDAL gives no reason: on a full disk, it reports a feature that it cannot write.
        raise GeoindError(f"GDAL cannot write {path.name} ({type(error).__name__}): is the disk full?") from None


def _write_parquet(population: Prior, path: Path, projection: Projection, intervals: Intervals | None) -> None:
    population_frame(population, projection, intervals=intervals).to_parquet(path)


def _write_csv(population: Prior, path: Path, projection: Projection, intervals: Intervals | None) -> None:
    columns = [projection.to_lonlat(population.sites.xy).round(DECIMALS), population.mass[:, None]]
    names = "lon,lat,mass"
    if intervals is not None:
        columns += [end[:, None] for end in intervals]
        names += ",low,high"
    formats = [f"%.{DECIMALS}f"] * 2 + ["%.9g"] * (names.count(",") - 1)
    np.savetxt(path, np.hstack(columns), fmt=formats, delimiter=",", header=names, comments="")


def _write_png(population: Prior, path: Path, projection: Projection, intervals: Intervals | None) -> None:  # noqa: ARG001
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    axes = figure.add_subplot()
    population.plot(axes)
    # PercentFormatter chooses the number of digits.
    figure.colorbar(
        axes.images[0], label="share of the people per hectare", format=PercentFormatter(1.0), shrink=0.85
    )
    figure.savefig(path, dpi=150)


def _write_html(population: Prior, path: Path, projection: Projection, intervals: Intervals | None) -> None:  # noqa: ARG001
    grid = _grid_of(population)
    chart = population.explore(projection, opacity=OPACITY)
    most = population.mass.max() / (grid.cell / 100) ** 2
    # Brightness is the square root of the share: the middle of the bar is a quarter of the largest share.
    bar = colour_bar(colour_names(13, opacity=OPACITY), ["0 %", f"{100 * most / 4:.2g} %", f"{100 * most:.2g} %"])
    lines = [
        fill("Share of the people per hectare, in cells of {{ cell }} m{{ bar }}", cell=f"{grid.cell:g}", bar=bar)
    ]
    add_legend(chart, "Where people are, estimated from their reports", lines)
    save_offline(chart, path)


WRITERS = {
    ".geojson": _write_geojson,
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".png": _write_png,
    ".html": _write_html,
}
