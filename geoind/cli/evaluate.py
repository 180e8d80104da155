"""`geoind evaluate`: the paper's comparison of mechanisms, as a table, a page and CSV files."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from geoind.arrays import as_count
from geoind.cli.progress import Progress
from geoind.cli.reading import add_reading, reading_of, where_of
from geoind.cli.writing import check_target
from geoind.errors import InvalidInputError, plural
from geoind.extras import require

if TYPE_CHECKING:
    from geoind.arrays import FloatArray
    from geoind.evaluation import Setting
    from geoind.space.projection import Projection

__all__ = ["add_to"]

CITY = "synthetic city"
CITY_CELLS, CITY_SIDE = 64, 6400.0


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "evaluate",
        help="compare mechanisms at equal cost",
        description="Compare mechanisms at equal cost on 9 x 9 cells, as the CCS 2013 paper did, and go past it.",
    )
    parser.add_argument(
        "--prior",
        action="append",
        metavar="WHAT",
        help="one of the paper's regions by name, a file or folder of places (whatever `geoind obfuscate` reads, "
        "SNAP check-ins, GeoLife), or 'city' for a made-up one; may be given again [all regions and the city]",
    )
    parser.add_argument("--cell", type=float, default=100.0, metavar="M", help="side of a cell [%(default)g m]")
    parser.add_argument("--loss", type=float, metavar="M", help="expected distance wanted [what cloaking costs]")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a page, and CSV files beside it")
    parser.add_argument(
        "--traces",
        nargs="?",
        const="commuters",
        metavar="WHAT",
        help="compare ways to answer people who move, instead: a GeoLife folder, SNAP check-ins, or a CSV of "
        "person, time, lat and lon [made-up commuters]",
    )
    parser.add_argument(
        "--trace",
        metavar="PERSON,TIME",
        help="the columns of the CSV that say who and when; --lat and --lon say where [usual names]",
    )
    parser.add_argument(
        "--every", type=float, metavar="S", help="seconds between two positions of a trace [300, 60 of a file]"
    )
    parser.add_argument(
        "--drives", type=int, default=20, metavar="N", help="how many of the longest drives [%(default)d]"
    )
    add_reading(parser, "where in a file the places are")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Compute, print and write."""
    if options.out is not None:
        if options.out.suffix.lower() not in {".html", ".htm"}:
            raise InvalidInputError(f"--out must be an .html file, got {str(options.out)!r}")
        require("a page with figures", "matplotlib")
        if options.traces is None:
            from geoind.evaluation.report import report_files as files_of
        else:
            from geoind.traces.evaluation import trace_report_files as files_of
        for file in files_of(options.out):
            check_target(file, _inputs([*(options.prior or []), *filter(None, [options.traces])]))
    if options.traces is not None:
        run_traces(options)
        return
    if options.trace is not None:
        raise InvalidInputError("--trace says where the columns of --traces FILE are: give that, too")
    setting = setting_of(options)
    from geoind.evaluation.evaluate import evaluate
    from geoind.evaluation.report import terminal_tables, write_report
    from geoind.parallel import available_cores

    with Progress() as line:
        evaluation = evaluate(setting, workers=available_cores(), progress=line.show)
    print(terminal_tables(evaluation))
    if options.out is not None:
        print("\nWritten: " + ", ".join(str(file) for file in write_report(evaluation, options.out)))


def _inputs(sources: Sequence[str]) -> list[Path]:
    """Return the files that a page and what stands beside it could overwrite: HTML, CSV or JSON."""
    paths = [Path(source) for source in sources]
    return [file for path in paths for file in (path.rglob("*.[chj]*") if path.is_dir() else [path])]


def run_traces(options: argparse.Namespace) -> None:
    """Compare ways to answer people who move."""
    from geoind.traces.drives import commuters, drives_of, read_traces
    from geoind.traces.evaluation import evaluate_traces

    columns, most = _columns(options), as_count(options.drives, "--drives")
    if options.traces == "commuters":
        if columns:
            raise InvalidInputError("--trace, --lat and --lon go with --traces FILE")
        drives = commuters(every=300.0 if options.every is None else options.every)
    else:
        every = 60.0 if options.every is None else options.every
        drives = drives_of(read_traces(options.traces, columns), every=every, most=most)
    hours = sum(drive.hours for drive in drives)
    print(f"{options.traces}: {plural(len(drives), 'drive')}, {hours:.1f} hours", file=sys.stderr)
    with Progress() as line:
        evaluation = evaluate_traces(drives, progress=line.show)
    print(evaluation.text())
    if options.out is not None:
        print("\nWritten: " + ", ".join(str(file) for file in evaluation.write(options.out)))


def _columns(options: argparse.Namespace) -> dict[str, str]:
    """Return what the columns of a table of traces are called, where somebody says it."""
    who = [] if options.trace is None else [name.strip() for name in options.trace.split(",")]
    if who and (len(who) != 2 or not all(who)):
        raise InvalidInputError(f"--trace must be the columns PERSON,TIME, got {options.trace!r}")
    where = {"lat": options.lat, "lon": options.lon}
    if any(len(names or []) > 1 for names in where.values()):
        raise InvalidInputError("--lat and --lon of --traces are one column each")
    named = dict(zip(("person", "time"), who, strict=True)) if who else {}
    return named | {name: given[0] for name, given in where.items() if given}


def setting_of(options: argparse.Namespace) -> "Setting":
    """Return the paper's setting with the priors, the cell and the loss asked for."""
    from dataclasses import replace

    from geoind.evaluation import PAPER_SETTING
    from geoind.space.sites import Grid

    paper = PAPER_SETTING.grid
    grid = Grid(0, 0, cell=options.cell, columns=paper.columns, rows=paper.rows)
    weights, projections = {}, {}
    for what in options.prior or [*PAPER_SETTING.weights, "city"]:
        name, mass, projection = prior_of(what, options)
        if name in weights:
            raise InvalidInputError(f"two priors are called {name!r}: rename a file")
        weights[name] = mass
        if projection is not None:
            projections[name] = projection
    return replace(
        PAPER_SETTING,
        grid=grid,
        weights=weights,
        projections=projections,
        wanted_loss=options.loss,
    )


def prior_of(what: str, options: argparse.Namespace) -> "tuple[str, FloatArray, Projection | None]":
    """Return a prior's name, its weights on the paper's 9 x 9 cells, and where these lie."""
    from geoind.evaluation import PAPER_SETTING
    from geoind.evaluation.checkins import busiest_window, read_lonlat, window_of
    from geoind.evaluation.synthetic import synthetic_city

    grid, cell = PAPER_SETTING.grid, options.cell
    if what in PAPER_SETTING.weights:
        return what, PAPER_SETTING.prior(what).mass, None
    if what in {"city", CITY}:
        city = synthetic_city(CITY_CELLS, side=CITY_SIDE * cell / 100)
        return CITY, busiest_window(city.prior, columns=grid.columns, rows=grid.rows).mass, None
    if not Path(what).exists():
        known = ", ".join(PAPER_SETTING.weights)
        raise InvalidInputError(f"--prior must be a file, a folder, 'city' or one of {known}; got {what!r}")
    lonlat = read_lonlat(what, reading_of(options), **where_of(options))
    window = window_of(lonlat, cell=cell, columns=grid.columns, rows=grid.rows)
    west, south, east, north = window.bounds
    # A file name of bytes that are no UTF-8 cannot be printed, nor written into a table.
    shown = what.encode("utf-8", "replace").decode()
    print(
        f"{shown}: {window.positions:,} of {plural(len(lonlat), 'position')} in the busiest "
        f"{grid.columns} x {grid.rows} cells, between {west:.4f} and {east:.4f} E, {south:.4f} and {north:.4f} N",
        file=sys.stderr,
    )
    return Path(shown).name.split(".")[0], window.prior.mass, window.projection
