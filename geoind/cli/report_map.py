"""`geoind map`: a file of reports as one HTML page that needs no network."""

import argparse
import sys
from pathlib import Path

from geoind.errors import InvalidInputError

__all__ = ["add_to"]


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "map",
        help="a file of reports as one HTML page that needs no network",
        description="Draw a file as one page: points, or a heat map where they are many, and what the file "
        "promises. The page of a file that promises nothing says that its places are true.",
    )
    parser.add_argument("source", type=Path, metavar="IN", help="Parquet, CSV, TSV, NDJSON, GeoJSON, ...")
    parser.add_argument("--out", type=Path, default=Path("map.html"), metavar="FILE", help="[%(default)s]")
    parser.add_argument("--lat", metavar="COLUMN", help="degrees [the column called lat or latitude]")
    parser.add_argument("--lon", metavar="COLUMN", help="degrees [the column called lon, lng, long or longitude]")
    parser.add_argument(
        "--basemap", type=Path, metavar="FILE", help="streets and buildings: .osm.pbf, GeoPackage or GeoJSON"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Write the page."""
    from geoind.files.delivery import Delivery
    from geoind.maps.basemap import read_basemap
    from geoind.maps.reports import read_places, report_map
    from geoind.tables.promise import Promise, read_promise

    if options.out.exists() and options.source.exists() and options.out.samefile(options.source):
        raise InvalidInputError("--out would overwrite the input")
    promise: Promise | None = None
    try:
        promise = read_promise(options.source)
    except InvalidInputError as error:
        if not options.source.exists():
            raise
        print(f"Warning: {error}. The map shows true places, and says so.", file=sys.stderr)
    page = report_map(
        lambda: read_places(options.source, lon=options.lon, lat=options.lat),
        title=f"Reports of {options.source.name}" if promise else options.source.name,
        promise=promise,
        basemap=None if options.basemap is None else read_basemap(options.basemap),
    )
    with Delivery() as delivery:
        delivery.open(str(options.out)).write(page.encode())
    print(f"{options.out}: {len(page) / 1e6:.1f} MB, opens without a network")
