"""The options of every command that reads a file."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from geoind.errors import MOST_SAID, plural, printable

if TYPE_CHECKING:
    from geoind.files import Reading

__all__ = ["add_reading", "reading_of", "sources_named", "where_of"]


class Where(TypedDict):
    """Where in a file its places are."""

    lon: list[str] | None
    lat: list[str] | None
    geometry: str | None
    crs: str | None


NAMED = 10
"""Files of a folder that are not read, and are named."""

FORMATS = ("csv", "tsv", "ndjson", "geojson", "gpx", "parquet", "plt", "google", "vector")


def add_reading(parser: argparse.ArgumentParser, title: str) -> None:
    """Add the options that say how a file is read and where in it the places are."""
    group = parser.add_argument_group(title)
    group.add_argument(
        "--lat", action="append", metavar="COLUMN", help="degrees [lat or latitude]; again for a second place"
    )
    group.add_argument(
        "--lon", action="append", metavar="COLUMN", help="degrees [lon, lng, long or longitude]; as often as --lat"
    )
    group.add_argument("--geometry", metavar="COLUMN", help="points [what the file declares]")
    group.add_argument("--crs", help="of the points, such as EPSG:4326, if the file does not declare it")
    group.add_argument("--layer", metavar="NAME", help="of a GeoPackage and the like")
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="of the input, where its name does not show it; vector is what GDAL reads",
    )
    group.add_argument(
        "--delimiter",
        metavar="CHARACTER",
        help="between the fields of a CSV file, or 'tab' [what its first line suggests]",
    )
    group.add_argument(
        "--no-header", action="store_true", help="the first line is a record; columns are numbers, from 1"
    )


def reading_of(options: argparse.Namespace) -> "Reading":
    """Return how files are read."""
    from geoind.files import Reading

    return Reading(
        format=options.format,
        delimiter={"tab": "\t", "\\t": "\t"}.get(options.delimiter, options.delimiter),
        header=not options.no_header,
        layer=options.layer,
    )


def where_of(options: argparse.Namespace) -> Where:
    """Return where in a file the places are."""
    return {"lon": options.lon, "lat": options.lat, "geometry": options.geometry, "crs": options.crs}


def sources_named(sources: Sequence[str]) -> "dict[str, Path]":
    """Return the files that sources stand for, and say which files of a folder are not among them."""
    from geoind.files.job import sources_in
    from geoind.files.places import others_in
    from geoind.tables.columns import named_path

    found = sources_in(sources)
    for folder in filter(Path.is_dir, map(Path, sources)):
        names = [named_path(file.relative_to(folder).as_posix()) for file in others_in(folder)]
        if names:
            shown = ", ".join([*names[:NAMED], "..."] if len(names) > NAMED else names)
            line = f"{folder}: {plural(len(names), 'file')} not read, because the suffix is not known: {shown}"
            print(printable(line, MOST_SAID), file=sys.stderr)
    return found
