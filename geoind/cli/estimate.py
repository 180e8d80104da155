"""The distribution of people, from files of reports.

Estimate the distribution of people over a grid from reports of `geoind obfuscate`, and write it: cells with the
share of the people (.parquet, .csv; .geojson without the empty ones), a picture (.png) or a map that needs no
network (.html).
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from geoind.arrays import as_positive
from geoind.cli.shared import add_reading, check_target, find_sources, option, progress_line, reading_of
from geoind.errors import InvalidInputError, plural

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    option(parser, "reports REPORTS", "CSV, NDJSON, GeoJSON, Parquet, a folder, ...", nargs="+")
    option(parser, "--grid M", "side of the cells in metres", type=float, required=True)
    text = "degrees that the grid covers; across 180, EAST is larger [99 %% of the reports]"
    option(parser, "--bounds WEST SOUTH EAST NORTH", text, type=float, nargs=4)
    option(parser, "--out FILE", "may be repeated, as for .geojson and .png", action="append", required=True)
    group = parser.add_argument_group("the reports")
    option(group, "--epsilon E", "per metre, for files without a release record", type=float)
    add_reading(parser, "where the reports are")
    group = parser.add_argument_group("the estimate")
    option(group, "--method", "[%(default)s]", choices=("update", "inversion"), default="update")
    option(group, "--converged", "maximise the likelihood instead of stopping early")
    option(group, "--smoothing M", "details below this size are smoothed [0 m]", type=float, default=0.0)
    option(group, "--closed", "all people are inside the grid: reports outside are noise")
    option(group, "--intervals N", "also 90 %% intervals of each cell, from N bootstrap replicates", type=int)
    option(parser, "--quiet", "no summary")


def run(options: argparse.Namespace) -> None:
    """Read, estimate, write."""
    from geoind import estimate_population
    from geoind.estimate import PopulationEstimate, bootstrap_intervals, grid_over, invert_population
    from geoind.estimate.bootstrap import CONFIDENCE, as_replicates
    from geoind.files import read_reports
    from geoind.maps.population import check_output, save_population
    from geoind.tables.record import sidecar_of

    for path in options.out:
        check_output(path)
    cell = as_positive(options.grid, "--grid")
    files = find_sources(options.reports)
    for path in options.out:
        check_target(Path(path), files)
    if options.method == "inversion" and (options.converged or options.smoothing or options.intervals is not None):
        raise InvalidInputError("--converged, --smoothing and --intervals need --method update")
    if options.intervals is not None:
        as_replicates(options.intervals, CONFIDENCE, "--intervals")
    reports = read_reports(*files, epsilon=options.epsilon, **reading_of(options))
    grid, projection = grid_over(reports.lonlat, cell=cell, bounds=options.bounds)
    border, intervals = not options.closed, None
    with progress_line() as show:

        def say(what: str) -> Callable[[int, float], None]:
            return lambda number, value: show(f"{what} {number}, log-likelihood {value:.6f}")

        if options.method == "inversion":
            population = invert_population(
                reports.lonlat, reports.epsilon, grid, projection=projection, open_border=border
            )
        else:
            population = estimated = estimate_population(
                reports.lonlat,
                reports.epsilon,
                grid,
                projection=projection,
                smoothing=options.smoothing,
                open_border=border,
                stopping="converged" if options.converged else "held-out",
                progress=say("step"),
            )
            if options.intervals is not None:
                intervals = bootstrap_intervals(estimated, replicates=options.intervals, progress=say("replicate"))
    for path in options.out:
        save_population(population, path, projection=projection, intervals=intervals)
        # A release record of reports that this file replaces does not apply to cells.
        sidecar_of(path).unlink(missing_ok=True)
    if not options.quiet:
        line = f"{plural(len(reports.lonlat), 'report')}, {grid.columns} x {grid.rows} cells of {grid.cell:g} m"
        if isinstance(population, PopulationEstimate):
            line += f", {plural(population.steps, 'step')}"
            if population.left_out:
                line += f", {plural(population.left_out, 'report')} too far away to count"
        print(line, file=sys.stderr)
