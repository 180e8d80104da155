"""A file of reports as one HTML page that needs no network.

Draw a file as one page: points, or a heat map if there are many, and the promise of the file, also in total for
one person. The page of a file without a release record warns that its locations are true.
"""

import argparse
import sys
from pathlib import Path

from geoind.cli.program import add_reading, check_target, find_sources, option, reading_of
from geoind.errors import InvalidInputError
from geoind.files import read_places
from geoind.files.formats import STANDARD
from geoind.files.writers import AtomicWriter
from geoind.maps import read_basemap, report_map
from geoind.tables.sidecars import read_promise, record_of


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    option(parser, "sources IN", "files or folders that `geoind obfuscate` wrote", nargs="+")
    option(parser, "--out FILE", "where to write the page", default=Path("map.html"))
    option(parser, "--basemap FILE", "streets and buildings: .osm.pbf, GeoPackage or GeoJSON")
    add_reading(parser, "where the reports are")


def run(options: argparse.Namespace) -> None:
    """Write the page."""
    if STANDARD in options.sources:
        raise InvalidInputError("a map needs a file with a release record: standard input has none")
    files = find_sources(options.sources)
    check_target(options.out, files)
    true = next((file for file in files if record_of(file) is None), None)
    if true is not None:
        print(f"Warning: {true.name!r} has no release record: shown as true locations.", file=sys.stderr)
    records = set() if true is not None else set(map(read_promise, files))
    weakest = max(records, key=lambda record: record.epsilon, default=None)
    reading = reading_of(options)
    name = files[0].name if len(files) == 1 else f"{len(files)} files"
    page = report_map(
        lambda: (batch for file in files for batch in read_places(file, **reading)),
        title=f"Reports of {name}" if weakest else name,
        record=weakest,
        releases=len(records),
        basemap=None if options.basemap is None else read_basemap(options.basemap),
    )
    with AtomicWriter() as writer:
        writer.open(options.out).write(page.encode())
    print(f"{options.out}: {len(page) / 1e6:.1f} MB, opens without a network")
