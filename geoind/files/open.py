"""Open a file of any format."""

import shutil
import tempfile
import weakref
from importlib import import_module
from pathlib import Path

from geoind.atomic import STANDARD
from geoind.errors import InvalidInputError
from geoind.files.formats import Bytes, kind_of
from geoind.files.source import Reading, Source
from geoind.space.vector_files import DRIVERS

__all__ = ["open_source"]

MODULES = {"csv": "delimited", "tsv": "delimited", "plt": "delimited"}
"""The module with the reader of a format, if it has another name."""
OPTIONS = {"delimiter": ("csv", "tsv"), "header": ("csv", "tsv"), "layer": ("vector", "geojson")}
"""The formats for which an option of `Reading` is."""


def open_source(path: str | Path, reading: Reading) -> Source:
    r"""Return the records of a file, which can be read several times; "-" is standard input.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trips.csv")
    ...     _ = path.write_text("lat,lon\n48.85,2.29\n")
    ...     open_source(path, Reading()).schema.names
    ['lat', 'lon']
    """
    kind = kind_of(path, reading.format)
    for name, formats in OPTIONS.items():
        if getattr(reading, name) != getattr(Reading(), name) and kind.format not in formats:
            raise InvalidInputError(f"`{name}=` is not for {kind.format} files")
    data = Bytes(path, kind.compression)
    if kind.format in ("geojson", "vector"):
        from geoind.files.vector import open_vector

        known = kind.format == "vector" or Path(path).name.lower().endswith(tuple(DRIVERS))
        plain = kind.compression == "" and str(path) != STANDARD and known
        return open_vector(Path(path), reading) if plain else _copied(data, reading)
    # A reader is loaded when it is needed: a command that reads CSV loads no XML parser.
    module = import_module(f"geoind.files.{MODULES.get(kind.format, kind.format)}")
    arguments = (data, reading) if kind.format in OPTIONS["delimiter"] else (data,)
    source: Source = getattr(module, f"open_{kind.format}")(*arguments)
    return source


def _copied(data: Bytes, reading: Reading) -> Source:
    """Return a GeoJSON file as a plain file in a private folder, because GDAL reads no streams."""
    from geoind.files.vector import open_vector

    folder = tempfile.TemporaryDirectory(prefix="geoind-")
    path = Path(folder.name, "input.geojson")
    with data.opened() as stream, path.open("wb") as file:
        shutil.copyfileobj(stream, file)
    source: Source = open_vector(path, reading)
    weakref.finalize(source, folder.cleanup)
    return source
