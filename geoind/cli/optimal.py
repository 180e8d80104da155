"""The optimal mechanism on a grid, with its certificate.

Compute the least expected loss for a promise (--epsilon, or --level or --factor and --radius), or the largest
adversary error for a loss (--max-loss), and save the channel.
"""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import FloatArray
from geoind.cli.shared import add_privacy, check_target, epsilon_of, option, progress_line
from geoind.errors import InvalidInputError, plural

if TYPE_CHECKING:
    from geoind.optimal import Iterate, OptimalChannel

CHOICES = ("symmetric", "vertex", "entropy", "worst_loss")
"""As in `geoind.optimal`, which takes too long to import for a help text."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_privacy(parser)
    group = parser.add_argument_group("the grid and the prior")
    option(group, "--columns N", "cells from west to east", required=True)
    option(group, "--rows N", "cells from south to north", required=True)
    option(group, "--cell M", "side of a cell in metres", required=True)
    option(group, "--counts FILE", "weights of the cells, one line per row from south to north [uniform]")
    option(parser, "--out FILE", "where the channel is saved: a .npz file", required=True)
    group = parser.add_argument_group("least loss")
    text = "after so many seconds return the best channel so far, with its gap [none]"
    option(group, "--time-limit S", text)
    text = "largest relative gap to the optimum: 0.02 for a grid of thousands of cells [1e-7]"
    option(group, "--tolerance P", text)
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
    if not promised and (options.time_limit is not None or options.tolerance is not None):
        raise InvalidInputError("--time-limit and --tolerance need a promise, not --max-loss")
    if options.out.suffix != ".npz":
        raise InvalidInputError(f"--out must end in .npz, got {str(options.out)!r}")
    check_target(options.out, [] if options.counts is None else [options.counts])
    best = _solve(options)
    best.save(options.out)
    measure = "expected loss" if promised else "adversary error"
    print(f"{best.certificate}\n{measure} {best.certificate.objective:.8g}, saved in {options.out}")


def _solve(options: argparse.Namespace) -> "OptimalChannel":
    from geoind import Grid, Prior, max_adversary_error_given_loss, min_loss_given_epsilon
    from geoind.optimal.least_loss import TOLERANCE

    grid = Grid(0, 0, cell=options.cell, columns=options.columns, rows=options.rows)
    counts = None if options.counts is None else _read_counts(options.counts, (grid.rows, grid.columns))
    prior = Prior.uniform(grid) if counts is None else Prior.from_counts(grid, counts.ravel())
    if options.max_loss is not None:
        return max_adversary_error_given_loss(prior, max_loss=options.max_loss, choose=options.choose)
    with progress_line() as show:

        def progress(now: "Iterate") -> None:
            between = f"loss between {now.bound:.6g} and {now.objective:.6g}, gap {now.gap:.1e}"
            show(f"iteration {now.iteration}: {between}, {now.seconds:.0f} s")

        return min_loss_given_epsilon(
            prior,
            epsilon=epsilon_of(options),
            tolerance=TOLERANCE if options.tolerance is None else options.tolerance,
            time_limit=math.inf if options.time_limit is None else options.time_limit,
            progress=progress,
        )


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
