"""`geoind estimate`: where people are, from files of reports."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from geoind.arrays import as_positive
from geoind.cli.progress import Progress
from geoind.cli.reading import add_reading, reading_of, sources_named, where_of
from geoind.cli.writing import check_target
from geoind.errors import InvalidInputError, plural

if TYPE_CHECKING:
    from geoind.arrays import FloatArray
    from geoind.channels.priors import Prior
    from geoind.space.projection import Projection
    from geoind.space.sites import Grid

__all__ = ["add_to"]

OUTSIDE = 0.005
"""Without --bounds the grid leaves out this share of the reports at each of its four sides."""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "estimate",
        help="where people are, from files of reports",
        description="Recover the distribution of people over a grid from reports that `geoind obfuscate` wrote, "
        "and write it: cells with the share of the people (.parquet, .csv; .geojson without the empty ones), a "
        "picture (.png) or a map that needs no network (.html).",
    )
    parser.add_argument(
        "reports", nargs="+", metavar="REPORTS", help="CSV, NDJSON, GeoJSON, Parquet, a folder, ..."
    )
    parser.add_argument("--grid", type=float, required=True, metavar="M", help="side of the cells in metres")
    parser.add_argument(
        "--bounds",
        type=float,
        nargs=4,
        metavar=("WEST", "SOUTH", "EAST", "NORTH"),
        help="degrees that the grid covers; across 180, EAST is larger [99 %% of the reports]",
    )
    parser.add_argument(
        "--out",
        action="append",
        required=True,
        metavar="FILE",
        help="may be given again, say for .geojson and .png",
    )
    source = parser.add_argument_group("the reports")
    source.add_argument("--epsilon", type=float, metavar="E", help="per metre, for files that do not tell theirs")
    add_reading(parser, "where the reports are")
    how = parser.add_argument_group("the estimate")
    how.add_argument("--method", choices=("update", "inversion"), default="update", help="[%(default)s]")
    how.add_argument(
        "--converged", action="store_true", help="climb to the most likely population instead of stopping in time"
    )
    how.add_argument(
        "--smoothing", type=float, default=0.0, metavar="M", help="nothing is sharper than this [0 m]"
    )
    how.add_argument("--closed", action="store_true", help="nobody is outside the grid: reports there are noise")
    how.add_argument(
        "--intervals", type=int, metavar="N", help="also the 90 %% interval of each cell, by N replicates"
    )
    parser.add_argument("--quiet", action="store_true", help="no summary")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Read, estimate, write."""
    from geoind import estimate_population
    from geoind.estimate import bootstrap_intervals, check_output, invert_population, save_population
    from geoind.estimate.bootstrap import CONFIDENCE, as_replicates
    from geoind.files import read_reports
    from geoind.tables.record import sidecar_of

    for path in options.out:
        check_output(path)
    cell = as_positive(options.grid, "--grid")
    files = list(sources_named(options.reports).values())
    for path in options.out:
        check_target(Path(path), files)
    if options.method == "inversion" and (options.converged or options.smoothing or options.intervals is not None):
        raise InvalidInputError("--converged, --smoothing and --intervals go with --method update")
    if options.intervals is not None:
        as_replicates(options.intervals, CONFIDENCE, "--intervals")
    reports = read_reports(
        *files,
        epsilon=options.epsilon,
        reading=reading_of(options),
        **where_of(options),
    )
    grid, projection = _grid(reports.lonlat, cell, options.bounds)
    intervals = None
    if options.method == "inversion":
        population: Prior = invert_population(
            reports.lonlat, reports.epsilon, grid, projection=projection, open_border=not options.closed
        )
    else:
        with Progress() as line:

            def say(what: str) -> Callable[[int, float], None]:
                return lambda number, value: line.show(f"{what} {number}, log-likelihood {value:.6f}")

            population = estimated = estimate_population(
                reports.lonlat,
                reports.epsilon,
                grid,
                projection=projection,
                smoothing=options.smoothing,
                open_border=not options.closed,
                stopping="converged" if options.converged else "held-out",
                progress=say("step"),
            )
            if options.intervals is not None:
                intervals = bootstrap_intervals(estimated, replicates=options.intervals, progress=say("replicate"))
    for path in options.out:
        save_population(population, path, projection=projection, intervals=intervals)
        # What reports that were there before promised is not said of cells.
        sidecar_of(path).unlink(missing_ok=True)
    if not options.quiet:
        cells = f"{grid.columns} x {grid.rows} cells of {grid.cell:g} m"
        print(f"{plural(len(reports.lonlat), 'report')}, {cells}{_how(population)}", file=sys.stderr)


def _grid(lonlat: "FloatArray", cell: float, bounds: Sequence[float] | None) -> "tuple[Grid, Projection]":
    """Return the cells over the bounds, or over all but the outermost reports, and the plane around them."""
    import numpy as np
    import shapely

    from geoind.space.crs import wrap_lon
    from geoind.space.projection import Projection
    from geoind.space.sites import Grid

    if bounds is None:
        # The reports are public, so the grid may follow them, across 180 degrees of longitude, too.
        sides = (OUTSIDE, 1 - OUTSIDE)
        lon, (south, north) = lonlat[:, 0], np.quantile(lonlat[:, 1], sides)
        west, east = min((np.quantile(turned, sides) for turned in (lon, lon % 360)), key=np.ptp)
    else:
        west, south, east, north = bounds
    if not (-180 <= west < east <= 360 and east - west <= 360 and -90 <= south < north <= 90):
        raise InvalidInputError("the bounds must be WEST < EAST and SOUTH < NORTH, in degrees: give --bounds")
    projection = Projection(float(wrap_lon(round((west + east) / 2, 3))), round((south + north) / 2, 3))
    ends = projection.to_xy([[wrap_lon(lon), lat] for lon in (west, east) for lat in (south, north)])
    return Grid.covering(shapely.box(*ends.min(axis=0), *ends.max(axis=0)), cell=cell), projection


def _how(population: "Prior") -> str:
    from geoind.estimate import PopulationEstimate

    if not isinstance(population, PopulationEstimate):
        return ""
    beyond = f", {plural(population.left_out, 'report')} too far away to count" if population.left_out else ""
    return f", {plural(population.steps, 'step')}{beyond}"
