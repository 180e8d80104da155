"""Where people really were: SNAP check-ins and GeoLife folders, and the prior they make on a grid."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import ArrayLike, as_count, as_lonlat, as_positive
from geoind.channels.priors import Prior
from geoind.distances import haversine
from geoind.errors import InvalidInputError
from geoind.space.projection import Projection
from geoind.space.sites import Grid

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["busiest_window", "load_geolife", "load_places", "load_snap", "prior_from_lonlat"]

SNAP_COLUMNS = ["person", "time", "lat", "lon", "venue"]
PLT_HEADER_LINES = 6
REACH = 25_000.0
"""Metres around the densest part of the data within which a window is looked for."""
FINEST = 4000
"""Cells per side, at most, among which it is looked for."""


def load_snap(path: str | Path) -> "DataFrame":
    """Return check-ins of a SNAP file (Gowalla, Brightkite): person, time, lat, lon, venue.

    The file is tab-separated without a header, plain or compressed. Rows without a position, which Brightkite
    writes as 0, 0, are left out.
    """
    import pandas as pd

    kinds = {"person": "string", "venue": "string", "lat": "float64", "lon": "float64"}
    try:
        table = pd.read_csv(path, sep="\t", header=None, names=SNAP_COLUMNS, dtype=kinds)
        table["time"] = pd.to_datetime(table["time"], utc=True)
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} is not a SNAP check-in file: person, time, lat, lon, venue") from error
    on_earth = table["lat"].between(-90, 90) & table["lon"].between(-180, 180)
    known = on_earth & ~((table["lat"] == 0) & (table["lon"] == 0))
    if not known.any():
        raise InvalidInputError(f"{path} holds no positions; a SNAP file has person, time, lat, lon, venue")
    return table[known].reset_index(drop=True)


def load_geolife(folder: str | Path) -> "DataFrame":
    """Return the fixes of a GeoLife folder: person, time, lat, lon.

    A person is the folder that holds `Trajectory/*.plt`; any folder above works too.
    """
    import pandas as pd

    files = sorted(Path(folder).rglob("*.plt"))
    if not files:
        raise InvalidInputError(f"{folder} holds no .plt files")
    tables = []
    for file in files:
        try:
            table = pd.read_csv(
                file,
                skiprows=PLT_HEADER_LINES,
                header=None,
                names=["lat", "lon", "zero", "altitude", "days", "date", "clock"],
                dtype={"lat": "float64", "lon": "float64", "date": "string", "clock": "string"},
            )
            table["time"] = pd.to_datetime(table["date"] + " " + table["clock"], utc=True)
        except (ValueError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{file} is not a GeoLife trajectory") from error
        home = file.parent.parent if file.parent.name == "Trajectory" else file.parent
        table["person"] = home.name
        # One trajectory of the published set has latitude 400.
        on_earth = table["lat"].between(-90, 90) & table["lon"].between(-180, 180)
        tables.append(table.loc[on_earth, ["person", "time", "lat", "lon"]])
    return pd.concat(tables, ignore_index=True).astype({"person": "string"})


def load_places(path: str | Path) -> "DataFrame":
    """Return the positions that a GeoLife folder or a SNAP file holds."""
    path = Path(path)
    if not path.exists():
        raise InvalidInputError(f"{path} does not exist")
    return load_geolife(path) if path.is_dir() else load_snap(path)


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


def prior_from_lonlat(lonlat: ArrayLike, *, cell: float = 100.0, columns: int = 9, rows: int = 9) -> Prior:
    """Return how often people were in each cell of the busiest window of the data.

    For evaluation only: where the window lies is itself learnt from the data.

    Parameters
    ----------
    lonlat : (n, 2) array
        Positions in degrees, longitude first.
    cell : float
        Side of a cell, in metres.
    columns, rows : int
        Size of the window in cells.

    Examples
    --------
    >>> prior = prior_from_lonlat([[2.3501, 48.8601], [2.3502, 48.8602], [2.353, 48.862]])
    >>> prior.mass.max().round(3)
    np.float64(0.667)
    """
    points = as_lonlat(lonlat)
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
    return busiest_window(Prior.from_counts(wide, hits), columns=columns, rows=rows)
