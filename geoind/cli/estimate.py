"""The distribution of people, from files of reports.

Estimate the distribution of people over a grid from reports of `geoind obfuscate`, and write it: cells with the
share of the people (.parquet, .csv; .geojson without the empty ones), a picture (.png) or a map that needs no
network (.html).
"""

import argparse
import sys
from collections.abc import Callable

from geoind import estimate_population
from geoind.accounting.record import sidecar_of
from geoind.arrays import as_positive
from geoind.cli.program import add_reading, check_target, find_sources, option, progress_line, reading_of
from geoind.errors import plural
from geoind.estimate import bootstrap_intervals, grid_over
from geoind.estimate.bootstrap import CONFIDENCE, as_replicates
from geoind.files import read_reports
from geoind.maps.population import check_output, save_population


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    option(parser, "reports REPORTS", "files or folders that `geoind obfuscate` wrote", nargs="+")
    option(parser, "--grid M", "side of the cells in metres", required=True)
    text = "degrees that the grid covers; EAST may exceed 180 [99 %% of the reports]"
    option(parser, "--bounds WEST SOUTH EAST NORTH", text, nargs=4)
    text = "where to write; repeat it for several formats, as for .geojson and .png"
    option(parser, "--out FILE", text, action="append", required=True)
    option(parser, "--epsilon E", "privacy loss per metre, for files without a release record")
    option(parser, "--closed", "all people are inside the grid: only noise moved reports outside")
    option(parser, "--intervals N", "also compute 90 %% intervals of each cell, from N bootstrap replicates")
    option(parser, "--quiet", "print no summary")
    add_reading(parser, "where the reports are")


def run(options: argparse.Namespace) -> None:
    """Read, estimate, write."""
    for path in options.out:
        check_output(path)
    cell = as_positive(options.grid, "--grid")
    files = find_sources(options.reports)
    for path in options.out:
        check_target(path, files)
    if options.intervals is not None:
        as_replicates(options.intervals, CONFIDENCE, "--intervals")
    reports = read_reports(*files, epsilon=options.epsilon, **reading_of(options))
    grid, projection = grid_over(reports.lonlat, cell=cell, bounds=options.bounds)
    intervals = None
    with progress_line() as show:

        def say(what: str) -> Callable[[int, float], None]:
            return lambda number, value: show(f"{what} {number}, log-likelihood {value:.6f}")

        population = estimate_population(
            reports.lonlat,
            reports.epsilon,
            grid,
            projection=projection,
            open_border=not options.closed,
            progress=say("step"),
        )
        if options.intervals is not None:
            intervals = bootstrap_intervals(population, replicates=options.intervals, progress=say("replicate"))
    for path in options.out:
        save_population(population, path, projection=projection, intervals=intervals)
        # A release record of reports that this file replaces does not apply to cells.
        sidecar_of(path).unlink(missing_ok=True)
    if not options.quiet:
        cells = f"{grid.columns} x {grid.rows} cells of {grid.cell:g} m"
        line = f"{plural(len(reports.lonlat), 'report')}, {cells}, {plural(population.steps, 'step')}"
        if population.left_out:
            line += f", {plural(population.left_out, 'report')} too far away to count"
        print(line, file=sys.stderr)
