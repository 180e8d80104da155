"""`geoind map`: a file of reports as one HTML page that needs no network."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from geoind.cli.reading import add_reading, reading_of, sources_named, where_of
from geoind.cli.writing import check_target
from geoind.errors import InvalidInputError

if TYPE_CHECKING:
    from geoind.tables import ReleaseRecord

__all__ = ["add_to"]


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "map",
        help="a file of reports as one HTML page that needs no network",
        description="Draw a file as one page: points, or a heat map where they are many, and what the file "
        "promises, also in total for one person. The page of a file without a release record warns that its "
        "places are true.",
    )
    parser.add_argument(
        "sources", nargs="+", metavar="IN", help="whatever `geoind obfuscate` writes: files, folders, patterns"
    )
    parser.add_argument("--out", type=Path, default=Path("map.html"), metavar="FILE", help="[%(default)s]")
    parser.add_argument(
        "--basemap", type=Path, metavar="FILE", help="streets and buildings: .osm.pbf, GeoPackage or GeoJSON"
    )
    add_reading(parser, "where the reports are")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Write the page."""
    from geoind.atomic import STANDARD, AtomicWriter
    from geoind.files import read_places
    from geoind.maps.basemap import read_basemap
    from geoind.maps.reports import report_map

    if STANDARD in options.sources:
        raise InvalidInputError("a map needs a file with a release record: standard input has none")
    files = list(sources_named(options.sources).values())
    check_target(options.out, files)
    promises = _promises(files)
    promise = max(promises, key=lambda promise: promise.epsilon, default=None)
    reading, where = reading_of(options), where_of(options)
    name = files[0].name if len(files) == 1 else f"{len(files)} files"
    page = report_map(
        lambda: (batch for file in files for batch in read_places(file, reading, **where)),
        title=f"Reports of {name}" if promise else name,
        promise=promise,
        releases=len(promises),
        basemap=None if options.basemap is None else read_basemap(options.basemap),
    )
    with AtomicWriter() as delivery:
        delivery.open(options.out).write(page.encode())
    print(f"{options.out}: {len(page) / 1e6:.1f} MB, opens without a network")


def _promises(files: "list[Path]") -> "set[ReleaseRecord]":
    """Return the release records of files; none, with a warning, if a file has none."""
    from geoind.tables.record import read_promise, record_of

    for file in files:
        if record_of(file) is None:
            print(
                f"Warning: {file.name!r} has no release record. Its places are shown as true ones.",
                file=sys.stderr,
            )
            return set()
    return set(map(read_promise, files))
