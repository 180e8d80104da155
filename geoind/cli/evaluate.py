"""Compare mechanisms at equal cost.

Compare mechanisms at equal cost on 9 x 9 cells, as the CCS 2013 paper did, with more measures. Print tables, and
write a page and CSV files.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from geoind.arrays import as_count
from geoind.cli.program import add_reading, check_target, columns_of, load_named, option, progress_line, reading_of
from geoind.errors import InvalidInputError, plural
from geoind.evaluation import PAPER_SETTING, Contender, Setting, synthetic_city
from geoind.evaluation.comparison import evaluate
from geoind.evaluation.report import report_files, terminal_tables, write_report
from geoind.evaluation.windows import busiest_window, window_of
from geoind.extras import require
from geoind.files import read_lonlat, read_traces
from geoind.parallel import available_cores
from geoind.space.sites import Grid
from geoind.traces import commuters, drives_of, evaluate_traces
from geoind.traces.evaluation import trace_report_files

CITY, COMMUTERS = "synthetic city", "commuters"
CITY_CELLS, CITY_SIDE = 64, 6400.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    text = (
        "a region of the paper by name, a file or folder of locations (all formats of `geoind obfuscate`, SNAP "
        "check-ins, GeoLife), or 'city' for a synthetic one; may be repeated [all regions and the city]"
    )
    option(parser, "--prior WHAT", text, action="append")
    option(parser, "--cell M", "side of a cell in metres", default=100.0)
    option(parser, "--loss M", "expected distance in metres of every mechanism [that of cloaking]")
    text = (
        "a mechanism of your own, from Python code that is imported and run: a Contender, a Mechanism, a Channel "
        "or a function from a prior to a Channel; MODULE:NAME=LABEL names it; may be repeated"
    )
    option(parser, "--mechanism MODULE:NAME", text, action="append")
    option(parser, "--out FILE", "write an HTML page, and CSV files next to it")
    text = "compare sessions of moving people: a GeoLife folder, SNAP check-ins or a CSV [synthetic commuters]"
    option(parser, "--traces WHAT", text, nargs="?", const=COMMUTERS)
    option(parser, "--columns PERSON,TIME,LAT,LON", "of the table of traces [usual names]")
    option(parser, "--every S", "seconds between two positions of a trace [300, 60 of a file]")
    option(parser, "--drives N", "number of drives: the longest ones", default=20)
    add_reading(parser, "where in a file the locations are")


def run(options: argparse.Namespace) -> None:
    """Compute, print and write."""
    if options.out is not None:
        if options.out.suffix.lower() not in {".html", ".htm"}:
            raise InvalidInputError(f"--out must be an .html file, got {str(options.out)!r}")
        require("a page with figures", "matplotlib")
        inputs = [Path(source) for source in [*(options.prior or []), *filter(None, [options.traces])]]
        # Files that the page and its CSV files could overwrite: HTML, CSV or JSON.
        inputs = [file for path in inputs for file in (path.rglob("*.[chj]*") if path.is_dir() else [path])]
        for file in (report_files if options.traces is None else trace_report_files)(options.out):
            check_target(file, inputs)
    if options.traces is not None:
        if options.mechanism:
            raise InvalidInputError("--mechanism and --traces do not go together")
        written = _evaluate_traces(options)
    else:
        columns_of(options, None)
        setting = _setting_of(options)
        contenders = [_contender(text) for text in options.mechanism or []]
        with progress_line() as show:
            evaluation = evaluate(setting, contenders=contenders, workers=available_cores(), progress=show)
        print(terminal_tables(evaluation))
        written = [] if options.out is None else write_report(evaluation, options.out)
    if written:
        print("\nWritten: " + ", ".join(map(str, written)))


def _evaluate_traces(options: argparse.Namespace) -> list[Path]:
    """Compare ways to report moving people, and return the written files."""
    most = as_count(options.drives, "--drives")
    every = {} if options.every is None else {"every": options.every}
    if options.traces == COMMUTERS:
        columns_of(options, None)
        drives = commuters(**every)
    else:
        drives = drives_of(read_traces(options.traces, columns_of(options, options.traces)), **every, most=most)
    hours = sum(float(times[-1] - times[0]) for times, _ in drives) / 3600
    print(f"{options.traces}: {plural(len(drives), 'drive')}, {hours:.1f} hours", file=sys.stderr)
    with progress_line() as show:
        evaluation = evaluate_traces(drives, progress=show)
    print(evaluation.text())
    return [] if options.out is None else list(evaluation.write(options.out))


def _contender(text: str) -> Contender:
    """Return the mechanism that MODULE:NAME[=LABEL] names; its module is imported, which runs its code."""
    where, _, label = text.partition("=")
    found = load_named(where)
    if isinstance(found, Contender):
        return replace(found, name=label or found.name)
    return Contender(label or where.partition(":")[2], found)


def _setting_of(options: argparse.Namespace) -> Setting:
    """Return the setting of the paper with the given priors, cell and loss."""
    size = {"columns": PAPER_SETTING.grid.columns, "rows": PAPER_SETTING.grid.rows}
    grid = Grid(0, 0, cell=options.cell, **size)
    weights, projections = dict[str, Any](), dict[str, Any]()
    for what in options.prior or [*PAPER_SETTING.weights, "city"]:
        name = CITY if what == "city" else what
        if what in PAPER_SETTING.weights:
            mass = PAPER_SETTING.weights[what]
        elif name == CITY:
            city = synthetic_city(CITY_CELLS, side=CITY_SIDE * options.cell / 100)
            mass = busiest_window(city.prior, **size).mass
        elif Path(what).exists():
            lonlat = read_lonlat(what, **reading_of(options))
            window = window_of(lonlat, cell=options.cell, **size)
            west, south, east, north = window.bounds
            # A file name with bytes that are not UTF-8 can be neither printed nor written to a table.
            shown = what.encode("utf-8", "replace").decode()
            count = f"{window.positions:,} of {plural(len(lonlat), 'position')}"
            where = f"between {west:.4f} and {east:.4f} E, {south:.4f} and {north:.4f} N"
            cells = f"{size['columns']} x {size['rows']} cells"
            print(f"{shown}: {count} in the busiest {cells}, {where}", file=sys.stderr)
            name, mass = Path(shown).name.split(".")[0], window.prior.mass
            projections[name] = window.projection
        else:
            known = ", ".join(PAPER_SETTING.weights)
            raise InvalidInputError(f"--prior must be a file, a folder, 'city' or one of {known}; got {what!r}")
        if name in weights:
            raise InvalidInputError(f"two priors are called {name!r}: rename a file")
        weights[name] = mass
    return replace(PAPER_SETTING, grid=grid, weights=weights, projections=projections, wanted_loss=options.loss)
