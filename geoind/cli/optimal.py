"""The optimal mechanism on a grid, with its certificate.

Compute the least expected loss for a promise (--epsilon, or --level or --factor and --radius), or the largest
adversary error for a loss (--max-loss), and save it. With --bounds the mechanism is for every place within them,
and `geoind obfuscate --mechanism FILE` draws from it; with --columns and --rows it is a channel between sites.
During the search --out is replaced by better mechanisms; --start continues from it after an interruption.
"""

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import shapely

import geoind
from geoind.arrays import FloatArray
from geoind.channels import Interpolated
from geoind.cli.program import (
    add_privacy,
    add_reading,
    check_target,
    epsilon_of,
    option,
    progress_line,
    reading_of,
)
from geoind.errors import InvalidInputError, plural
from geoind.estimate import grid_over
from geoind.files import load_mechanism, read_lonlat, save_mechanism
from geoind.files.mechanisms import device_scale
from geoind.optimal import Iterate, OptimalChannel
from geoind.optimal.adversary_error import Choice
from geoind.space.domain import domain_of

CHOICES = get_args(Choice)
COMPARED = 2500
"""Most cells for which the loss of planar Laplace is computed, too."""
STEP = 0.25
"""Sites are added between the cells until epsilon times their distance is at most this,"""
SITES = 600
"""and as long as there are not more than so many, for which a search takes seconds to a minute."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_privacy(parser)
    group = parser.add_argument_group("the grid and the prior")
    option(group, "--cell M", "side of a cell in metres", required=True)
    text = "degrees that the mechanism is for; choose them without the data that it will protect"
    option(group, "--bounds WEST SOUTH EAST NORTH", text, nargs=4)
    text = "public places, such as published check-ins: the mechanism shows where they are dense [uniform]"
    option(group, "--prior FILE", text)
    option(group, "--columns N", "without --bounds: cells from west to east")
    option(group, "--rows N", "without --bounds: cells from south to north")
    option(group, "--counts FILE", "weights of the cells, one line per row from south to north [uniform]")
    add_reading(parser, "where the places of --prior are")
    option(
        parser,
        "--out FILE",
        "where the mechanism is saved: a .parquet file, or .json for geoind.js",
        required=True,
    )
    group = parser.add_argument_group("least loss")
    text = "after so many seconds return the best channel so far, with its gap [none]"
    option(group, "--time-limit S", text)
    text = "largest relative gap to the optimum: 0.02 for a grid of thousands of cells [1e-7, with --bounds 1e-5]"
    option(group, "--gap P", text)
    text = "an earlier result to begin at: of another gap, epsilon or cell, or of a search that was stopped"
    option(group, "--start FILE", text)
    group = parser.add_argument_group("largest adversary error")
    option(group, "--max-loss M", "bound on the expected loss, in metres")
    option(group, f"--choose {'|'.join(CHOICES)}", "which of several optima", default=CHOICES[0])


def run(options: argparse.Namespace) -> None:
    """Solve, save, and print the certificate."""
    promised = options.epsilon is not None or options.level is not None or options.radius is not None
    if promised == (options.max_loss is not None):
        raise InvalidInputError("give either a promise (--epsilon, or --level and --radius) or --max-loss")
    if promised and options.choose != CHOICES[0]:
        raise InvalidInputError("--choose needs --max-loss")
    if not promised and any(given is not None for given in (options.time_limit, options.gap, options.start)):
        raise InvalidInputError("--time-limit, --gap and --start need a promise, not --max-loss")
    if options.gap is not None and not 0 < options.gap < 1:
        raise InvalidInputError(f"--gap must lie between 0 and 1, got {options.gap!r}")
    sides = options.columns is not None and options.rows is not None
    if sides == (options.bounds is not None) or (options.columns is None) != (options.rows is None):
        raise InvalidInputError("give either --bounds, or --columns and --rows")
    if (options.prior is not None and sides) or (options.counts is not None and not sides):
        raise InvalidInputError("--prior goes with --bounds, and --counts with --columns and --rows")
    if options.bounds is not None and not promised:
        raise InvalidInputError("--bounds needs a promise, not --max-loss")
    if options.out.suffix not in (".parquet", ".json"):
        raise InvalidInputError(f"--out must end in .parquet or .json, got {str(options.out)!r}")
    if options.out.suffix == ".json" and sides:
        raise InvalidInputError("--out FILE.json, for a device, goes with --bounds")
    check_target(options.out, [file for file in (options.counts, options.prior) if file is not None])
    if sides:
        prior = _planar_prior(options)

        def save(best: OptimalChannel) -> None:
            save_mechanism(options.out, best, prior=prior)

        best = _solve(options, prior, epsilon_of(options) if promised else None, save, _start(options, None))
    else:
        best = _everywhere(options)
    measure = "expected loss" if promised else "adversary error"
    print(f"{best.certificate}\n{measure} {best.certificate.objective:.8g}, saved in {options.out}")


def _everywhere(options: argparse.Namespace) -> OptimalChannel:
    """Save a mechanism with the promise between any two places within the bounds; return its channel."""
    grid, projection = grid_over([], cell=options.cell, bounds=options.bounds)
    domain, epsilon = shapely.box(*options.bounds), epsilon_of(options)
    start = _start(options, projection)
    if min(grid.columns, grid.rows) < 2:
        raise InvalidInputError(
            f"--cell must be smaller: there are {grid.columns} x {grid.rows} cells within --bounds"
        )
    prior = geoind.Prior.uniform(grid)
    if options.prior is not None:
        places = read_lonlat(options.prior, **reading_of(options))
        places = places[shapely.intersects_xy(domain, places)]
        if not len(places):
            raise InvalidInputError("--prior has no place within --bounds")
        print(f"{plural(len(places), 'place')} within the bounds", file=sys.stderr)
        prior = geoind.Prior.from_lonlat(grid, places, projection=projection, outside="drop")
    scale = domain_of(projection, domain).largest_scale
    if options.out.suffix == ".json":
        scale = max(scale, device_scale(grid, grid, projection, domain))
    planar = epsilon / scale
    steps = _steps(grid, planar)

    def everywhere(best: OptimalChannel) -> geoind.Projected:
        return geoind.Projected(Interpolated(best), projection, domain=domain)

    def save(best: OptimalChannel) -> None:
        save_mechanism(options.out, everywhere(best), epsilon=epsilon, prior=prior)

    # A little less, for rounding.
    best = _solve(options, prior.refined(steps), planar * (1 - 1e-9), save, start, grid)
    mechanism = everywhere(best)
    cells = f"{grid.columns} x {grid.rows} cells of {grid.cell:g} m, sites every {grid.cell / steps:g} m"
    print(f"epsilon {mechanism.epsilon:.8g} per metre between any two places, measured; {cells}")
    if len(grid) <= COMPARED:
        laplace = geoind.discretise(geoind.PlanarLaplace(planar), grid)
        other = geoind.expected_loss(laplace @ geoind.bayes_remap(laplace, prior), prior)
        print(f"planar Laplace with the best remapping has a loss of {other:.8g} with this epsilon")
    return best


def _steps(grid: geoind.Grid, epsilon: float) -> int:
    """Return the number of sites along a cell between which a mechanism is interpolated."""
    wanted = max(1, math.ceil(min(epsilon * grid.cell / STEP, SITES)))
    while wanted > 1 and (wanted * (grid.columns - 1) + 1) * (wanted * (grid.rows - 1) + 1) > SITES:
        wanted -= 1
    return wanted


def _start(options: argparse.Namespace, projection: geoind.Projection | None) -> geoind.Channel | None:
    """Return the channel of --start, which must be of the same plane: that of a projection, or none."""
    if options.start is None:
        return None
    mechanism = load_mechanism(options.start)
    if projection is None:
        if not isinstance(mechanism, geoind.Channel):
            raise InvalidInputError("--start must be a channel between sites, without --bounds")
        return mechanism
    inner = mechanism.mechanism if isinstance(mechanism, geoind.Projected) else None
    if not (isinstance(mechanism, geoind.Projected) and isinstance(inner, Interpolated)):
        raise InvalidInputError("--start must be a mechanism for every place, with --bounds")
    if mechanism.projection != projection:
        raise InvalidInputError("--start must be for the same --bounds")
    return inner.channel


def _planar_prior(options: argparse.Namespace) -> geoind.Prior:
    grid = geoind.Grid(0, 0, cell=options.cell, columns=options.columns, rows=options.rows)
    if options.counts is None:
        return geoind.Prior.uniform(grid)
    return geoind.Prior.from_counts(grid, _read_counts(options.counts, (grid.rows, grid.columns)).ravel())


def _solve(
    options: argparse.Namespace,
    prior: geoind.Prior,
    epsilon: float | None,
    save: Callable[[OptimalChannel], None],
    start: geoind.Channel | None,
    outputs: geoind.Grid | None = None,
) -> OptimalChannel:
    """Save and return the optimal channel; with outputs, one that is private at every place."""
    if epsilon is None:
        best: OptimalChannel = geoind.max_adversary_error_given_loss(
            prior, max_loss=options.max_loss, choose=options.choose
        )
        save(best)
        return best
    saved: OptimalChannel | None = None
    with progress_line() as show:

        def progress(now: Iterate) -> None:
            if now.iteration == 0:
                print(f"the search takes about {_size(now.memory)} of memory", file=sys.stderr)
            between = f"loss between {now.bound:.6g} and {now.objective:.6g}, gap {now.gap:.1e}"
            show(f"iteration {now.iteration}: {between}, {now.seconds:.0f} s, {_size(now.memory)}")

        def checkpoint(best: OptimalChannel) -> None:
            nonlocal saved
            save(best)
            saved = best

        try:
            best = geoind.min_loss_given_epsilon(
                prior,
                epsilon=epsilon,
                outputs=outputs,
                everywhere=outputs is not None,
                tolerance=options.gap,
                time_limit=math.inf if options.time_limit is None else options.time_limit,
                start=start,
                progress=progress,
                checkpoint=checkpoint,
            )
            save(best)
        except BaseException:
            if saved is not None:
                found = f"loss {saved.certificate.objective:.6g}, gap {saved.certificate.gap:.1e}"
                print(f"{options.out} has the best mechanism so far: {found}", file=sys.stderr)
            raise
    return best


def _size(number: float) -> str:
    """Return a number of bytes in words."""
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{math.ceil(number / 1e6)} MB"


def _read_counts(path: Path, shape: tuple[int, int]) -> FloatArray:
    """Return the table of a text file with commas or spaces between numbers."""
    try:
        table = np.loadtxt(path.read_text().replace(",", " ").splitlines(), ndmin=2)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"--counts must be a readable table of numbers, got {str(path)!r}") from error
    if table.shape != shape:
        wanted = f"{plural(shape[0], 'line')} of {plural(shape[1], 'number')}"
        raise InvalidInputError(f"--counts must have {wanted}, got shape {table.shape}")
    return table
