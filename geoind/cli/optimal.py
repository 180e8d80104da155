"""`geoind optimal`: the best mechanism on a grid, with its proof, as a file."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from geoind.cli.parameters import add_privacy, epsilon_of
from geoind.cli.progress import Progress
from geoind.cli.writing import check_target
from geoind.errors import InvalidInputError, plural

if TYPE_CHECKING:
    from geoind.channels.priors import Prior
    from geoind.optimal import Iterate, OptimalChannel
    from geoind.space.sites import Grid

__all__ = ["add_to"]

CHOICES = ("symmetric", "vertex", "entropy", "worst_loss")
"""Which of many optima: as the library names them, which takes too long to load for every help."""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "optimal",
        help="the best mechanism on a grid, with its proof",
        description="The least expected loss for a promise (--epsilon, or --level or --factor and --radius), "
        "or the largest error of an adversary for a loss (--max-loss).",
    )
    add_privacy(parser)
    grid = parser.add_argument_group("the grid, and who is where")
    grid.add_argument("--columns", type=int, required=True, metavar="N", help="cells from west to east")
    grid.add_argument("--rows", type=int, required=True, metavar="N", help="cells from south to north")
    grid.add_argument("--cell", type=float, required=True, metavar="M", help="side of a cell in metres")
    grid.add_argument(
        "--x", type=float, default=0.0, metavar="M", help="centre of the south-west cell [%(default)g]"
    )
    grid.add_argument("--y", type=float, default=0.0, metavar="M", help="the same, northwards [%(default)g]")
    grid.add_argument(
        "--counts",
        type=Path,
        metavar="FILE",
        help="text file of weights, one line per row of cells from south to north [everywhere alike]",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.npz", help="where the channel is saved")
    solver = parser.add_argument_group("least loss")
    solver.add_argument("--dilation", type=float, default=1.0, metavar="D", help="above 1: over a spanner [exact]")
    solver.add_argument(
        "--time-limit",
        type=float,
        default=math.inf,
        metavar="S",
        help="seconds; then the best so far, with its gap [none]",
    )
    game = parser.add_argument_group("largest error of an adversary")
    game.add_argument("--max-loss", type=float, metavar="L", help="bound on the expected loss")
    game.add_argument(
        "--adversary-loss", choices=("euclidean", "squared", "discrete"), default="euclidean", help="[%(default)s]"
    )
    game.add_argument("--choose", choices=CHOICES, default="symmetric", help="which optimum [%(default)s]")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Solve, save, and print the certificate."""
    from geoind.space.sites import Grid

    promised = options.epsilon is not None or options.level is not None or options.radius is not None
    if promised == (options.max_loss is not None):
        raise InvalidInputError(
            "give either a promise (--epsilon, or --level or --factor and --radius) or --max-loss"
        )
    if promised and (options.choose != CHOICES[0] or options.adversary_loss != "euclidean"):
        raise InvalidInputError("--choose and --adversary-loss go with --max-loss")
    if not promised and (options.dilation != 1 or options.time_limit < math.inf):
        raise InvalidInputError("--dilation and --time-limit go with a promise, not with --max-loss")
    if options.out.suffix != ".npz":
        raise InvalidInputError(f"--out must end in .npz, got {str(options.out)!r}")
    check_target(options.out, [] if options.counts is None else [options.counts])
    grid = Grid(options.x, options.y, cell=options.cell, columns=options.columns, rows=options.rows)
    best = _solve(options, _prior(grid, options.counts))
    best.save(options.out)
    proof = best.certificate
    print("optimal" if proof.optimal else "NOT proven optimal")
    _row("expected loss" if promised else "adversary's error", f"{proof.objective:.8g}")
    _row("no channel does better than", f"{proof.bound:.8g}")
    _row("gap", f"{proof.gap:.1e}")
    _row("measured epsilon per metre", f"{proof.epsilon:.10g}")
    _row("cost of the repair", f"{proof.repair:.1e}")
    _row("how", proof.method)
    _row("iterations", f"{proof.iterations}")
    _row("seconds", f"{proof.seconds:.2f}")
    _row("saved", str(options.out))


def _solve(options: argparse.Namespace, prior: "Prior") -> "OptimalChannel":
    from geoind import distances, max_adversary_error_given_loss, min_loss_given_epsilon

    if options.max_loss is not None:
        return max_adversary_error_given_loss(
            prior,
            max_loss=options.max_loss,
            adversary_loss=getattr(distances, options.adversary_loss),
            choose=options.choose,
        )
    with Progress() as line:

        def show(now: "Iterate") -> None:
            between = f"loss between {now.bound:.6g} and {now.objective:.6g}, gap {now.gap:.1e}"
            line.show(f"iteration {now.iteration}: {between}, {now.seconds:.0f} s")

        return min_loss_given_epsilon(
            prior,
            epsilon=epsilon_of(options),
            dilation=options.dilation,
            time_limit=options.time_limit,
            progress=show,
        )


def _prior(grid: "Grid", counts: Path | None) -> "Prior":
    import numpy as np

    from geoind.channels.priors import Prior

    if counts is None:
        return Prior.uniform(grid)
    try:
        lines = counts.read_text().replace(",", " ").splitlines()
        table = np.array([[float(word) for word in line.split()] for line in lines if line.strip()])
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"--counts must be a readable table of numbers, got {str(counts)!r}") from error
    if table.shape != (grid.rows, grid.columns):
        raise InvalidInputError(
            f"--counts must have {plural(grid.rows, 'line')} of {plural(grid.columns, 'number')}, "
            f"got shape {table.shape}"
        )
    return Prior.from_counts(grid, table.ravel())


def _row(label: str, value: str) -> None:
    print(f"  {label:<28} {value}")
