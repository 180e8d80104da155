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

__all__ = ["add_options", "run"]

CHOICES = ("symmetric", "vertex", "entropy", "worst_loss")
"""As in `geoind.optimal`, which takes too long to import for a help text."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_privacy(parser)
    group = parser.add_argument_group("the grid and the prior")
    option(group, "--columns N", "cells from west to east", type=int, required=True)
    option(group, "--rows N", "cells from south to north", type=int, required=True)
    option(group, "--cell M", "side of a cell in metres", type=float, required=True)
    option(group, "--x M", "centre of the south-west cell, eastwards [%(default)g]", type=float, default=0.0)
    option(group, "--y M", "the same, northwards [%(default)g]", type=float, default=0.0)
    text = "text file of weights, one line per row of cells from south to north [uniform]"
    option(group, "--counts FILE", text, type=Path)
    option(parser, "--out FILE.npz", "where the channel is saved", type=Path, required=True)
    group = parser.add_argument_group("least loss")
    option(group, "--dilation D", "above 1: over a spanner [exact]", type=float, default=1.0)
    text = "seconds; then the best channel so far, with its gap [none]"
    option(group, "--time-limit S", text, type=float, default=math.inf)
    group = parser.add_argument_group("largest adversary error")
    option(group, "--max-loss L", "bound on the expected loss", type=float)
    losses = ("euclidean", "squared", "discrete")
    option(group, "--adversary-loss", "[%(default)s]", choices=losses, default=losses[0])
    option(group, "--choose", "which optimum [%(default)s]", choices=CHOICES, default=CHOICES[0])


def run(options: argparse.Namespace) -> None:
    """Solve, save, and print the certificate."""
    promised = options.epsilon is not None or options.level is not None or options.radius is not None
    if promised == (options.max_loss is not None):
        raise InvalidInputError("give either a promise (--epsilon, or --level and --radius) or --max-loss")
    if promised and (options.choose != CHOICES[0] or options.adversary_loss != "euclidean"):
        raise InvalidInputError("--choose and --adversary-loss need --max-loss")
    if not promised and (options.dilation != 1 or options.time_limit < math.inf):
        raise InvalidInputError("--dilation and --time-limit need a promise, not --max-loss")
    if options.out.suffix != ".npz":
        raise InvalidInputError(f"--out must end in .npz, got {str(options.out)!r}")
    check_target(options.out, [] if options.counts is None else [options.counts])
    best = _solve(options)
    best.save(options.out)
    measure = "expected loss" if promised else "adversary error"
    print(f"{best.certificate}\n{measure} {best.certificate.objective:.8g}, saved in {options.out}")


def _solve(options: argparse.Namespace) -> "OptimalChannel":
    from geoind import Grid, Prior, distances, max_adversary_error_given_loss, min_loss_given_epsilon

    grid = Grid(options.x, options.y, cell=options.cell, columns=options.columns, rows=options.rows)
    counts = None if options.counts is None else _read_counts(options.counts, (grid.rows, grid.columns))
    prior = Prior.uniform(grid) if counts is None else Prior.from_counts(grid, counts.ravel())
    if options.max_loss is not None:
        return max_adversary_error_given_loss(
            prior,
            max_loss=options.max_loss,
            adversary_loss=getattr(distances, options.adversary_loss),
            choose=options.choose,
        )
    with progress_line() as show:

        def progress(now: "Iterate") -> None:
            between = f"loss between {now.bound:.6g} and {now.objective:.6g}, gap {now.gap:.1e}"
            show(f"iteration {now.iteration}: {between}, {now.seconds:.0f} s")

        return min_loss_given_epsilon(
            prior,
            epsilon=epsilon_of(options),
            dilation=options.dilation,
            time_limit=options.time_limit,
            progress=progress,
        )


def _read_counts(path: Path, shape: tuple[int, int]) -> FloatArray:
    """Return the table of a text file with commas or spaces between numbers."""
    try:
        lines = path.read_text().replace(",", " ").splitlines()
        table = np.array([[float(word) for word in line.split()] for line in lines if line.strip()])
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"--counts must be a readable table of numbers, got {str(path)!r}") from error
    if table.shape != shape:
        wanted = f"{plural(shape[0], 'line')} of {plural(shape[1], 'number')}"
        raise InvalidInputError(f"--counts must have {wanted}, got shape {table.shape}")
    return table
