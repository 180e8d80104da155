"""`geoind evaluate`: the paper's comparison of mechanisms, as a table, a page and CSV files."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from geoind.errors import InvalidInputError
from geoind.extras import require

if TYPE_CHECKING:
    from geoind.arrays import FloatArray
    from geoind.evaluation import Setting

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
        help="one of the paper's regions by name, a SNAP check-in file, a GeoLife folder, or 'city' for a made-up "
        "one; may be repeated [all regions and the city]",
    )
    parser.add_argument("--cell", type=float, default=100.0, metavar="M", help="side of a cell [%(default)g m]")
    parser.add_argument("--loss", type=float, metavar="M", help="expected distance wanted [what cloaking costs]")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a page, and CSV files beside it")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Compute, print and write."""
    if options.out is not None:
        if options.out.suffix.lower() not in {".html", ".htm"}:
            raise InvalidInputError(f"--out must be an .html file, got {str(options.out)!r}")
        require("a page with figures", "matplotlib")
    setting = setting_of(options)
    from geoind.evaluation.evaluate import evaluate
    from geoind.evaluation.report import terminal_tables, write_report
    from geoind.parallel import available_cores

    evaluation = evaluate(setting, workers=available_cores(), progress=show_progress)
    print(terminal_tables(evaluation))
    if options.out is not None:
        print("\nWritten: " + ", ".join(str(file) for file in write_report(evaluation, options.out)))


def setting_of(options: argparse.Namespace) -> "Setting":
    """Return the paper's setting with the priors, the cell and the loss asked for."""
    from dataclasses import replace

    from geoind.evaluation import PAPER_SETTING
    from geoind.space.sites import Grid

    asked = options.prior or [*PAPER_SETTING.weights, "city"]
    grid = PAPER_SETTING.grid
    return replace(
        PAPER_SETTING,
        grid=Grid(0, 0, cell=options.cell, columns=grid.columns, rows=grid.rows),
        weights=dict(weights_of(what, options.cell) for what in asked),
        wanted_loss=options.loss,
    )


def weights_of(what: str, cell: float) -> tuple[str, "FloatArray"]:
    """Return a prior's name and its weights on the paper's 9 x 9 cells."""
    from geoind.evaluation import PAPER_SETTING
    from geoind.evaluation.checkins import busiest_window, load_places, prior_from_lonlat
    from geoind.evaluation.synthetic import synthetic_city

    grid = PAPER_SETTING.grid
    if what in PAPER_SETTING.weights:
        return what, PAPER_SETTING.prior(what).mass
    if what in {"city", CITY}:
        city = synthetic_city(CITY_CELLS, side=CITY_SIDE * cell / 100)
        return CITY, busiest_window(city.prior, columns=grid.columns, rows=grid.rows).mass
    if not Path(what).exists():
        known = ", ".join(PAPER_SETTING.weights)
        raise InvalidInputError(f"--prior must be a file, a folder, 'city' or one of {known}; got {what!r}")
    places = load_places(what)
    prior = prior_from_lonlat(places[["lon", "lat"]].to_numpy(), cell=cell, columns=grid.columns, rows=grid.rows)
    return Path(what).name.split(".")[0], prior.mass


def show_progress(what: str, share: float) -> None:
    """Tell on standard error how far the work is: one line that renews itself, or lines in a log."""
    end, start = ("", "\r\033[K") if sys.stderr.isatty() else ("\n", "")
    print(f"{start}{share:4.0%} {what}", end=end if share < 1 else "\n", file=sys.stderr, flush=True)
