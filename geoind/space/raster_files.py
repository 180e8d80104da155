"""Rasters of people: the only module that opens one. GDAL reads it in a process of its own, as a vector file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.extras import require
from geoind.space.crs import to_lonlat, wrap_lon
from geoind.space.vector_files import gdal_process, reading

__all__ = ["RASTERS", "read_raster"]

RASTERS: Mapping[str, str] = {".tif": "GTiff", ".tiff": "GTiff", ".asc": "AAIGrid"}
"""The driver that reads a raster, by its suffix."""

MOST_PIXELS = 2 * 10**9
MOST_PLACES = 10**7
"""Pixels with people, which are held in memory."""
MOST_OF_A_BLOCK = 1 << 25
"""Pixels of a block, which is decoded as a whole."""


def read_raster(path: str | Path) -> tuple[FloatArray, FloatArray]:
    r"""Return the centres of the pixels with a value above 0, (n, 2) WGS84 degrees, and these values.

    Parameters
    ----------
    path : str or Path
        A local file of `RASTERS` with one band and a CRS: GeoTIFF, or an ESRI ASCII grid with a .prj file.

    Examples
    --------
    >>> import tempfile
    >>> from geoind.space.crs import parsed_crs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     grid = Path(folder, "people.asc")
    ...     _ = grid.write_text("ncols 2\nnrows 1\nxllcorner 2.0\nyllcorner 48.0\ncellsize 0.5\n0 7\n")
    ...     _ = grid.with_suffix(".prj").write_text(parsed_crs("EPSG:4326").to_wkt("WKT1_ESRI"))
    ...     places, people = read_raster(grid)
    >>> places.tolist(), people.tolist()
    ([[2.75, 48.25]], [7.0])
    """
    path = Path(path)
    if path.suffix.lower() not in RASTERS:
        raise InvalidInputError(f"{path.name!r} must end in one of {', '.join(RASTERS)}")
    require("a raster", "rasterio")
    driver = RASTERS[path.suffix.lower()]
    with gdal_process(path, driver) as process:
        stdin, stdout = process.stdin, process.stdout
        if stdin is None or stdout is None:
            raise InvalidInputError(f"{path.name!r} cannot be read: its process has no pipes")
        with reading(path, driver):
            about = json.loads(stdout.readline())
        _check(about, path.name)
        parts, count = [np.empty((0, 3))], 0
        with reading(path, driver):
            stdin.write(b"\n")
            stdin.flush()
            for batch in pa.ipc.open_stream(stdout):
                count += len(batch)
                if count > MOST_PLACES:
                    break
                parts.append(np.column_stack([column.to_numpy() for column in batch.columns]))
            else:
                json.loads(stdout.readline())
    if count > MOST_PLACES:
        raise InvalidInputError(
            f"{path.name!r} has more than {MOST_PLACES:,} pixels with people: cut it to the area of the reports, "
            "or make its pixels larger"
        )
    pixels = np.concatenate(parts)
    return _centres(pixels[:, :2], about, path.name), pixels[:, 2]


def _check(about: Mapping[str, Any], name: str) -> None:
    if about["bands"] != 1 or not about["numbers"]:
        raise InvalidInputError(f"{name!r} must have one band of real numbers: people per pixel")
    height, width = about["shape"]
    if height * width > MOST_PIXELS or about["block"][0] * about["block"][1] > MOST_OF_A_BLOCK:
        raise InvalidInputError(
            f"{name!r} is too large ({width:,} x {height:,} pixels): at most {MOST_PIXELS:,} pixels, in blocks of "
            f"at most {MOST_OF_A_BLOCK:,}"
        )
    if about["crs"] is None:
        raise InvalidInputError(
            f"{name!r} must have a CRS: in the file, or in the .prj file of an ESRI ASCII grid"
        )


def _centres(pixels: FloatArray, about: Mapping[str, Any], name: str) -> FloatArray:
    """Return the degrees of the centres of pixels, given by column and row."""
    a, b, c, d, e, f = about["transform"]
    column, row = (pixels + 0.5).T
    lonlat = to_lonlat(np.column_stack([a * column + b * row + c, d * column + e * row + f]), about["crs"])
    lonlat[:, 0] = wrap_lon(lonlat[:, 0])
    if not ((np.abs(lonlat) <= (180, 90)).all() and a * e != b * d):
        raise InvalidInputError(f"{name!r} has people where its CRS has no places")
    return lonlat
