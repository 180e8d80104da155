"""Least loss of large grids by neighbourhoods: time, memory and the proven gap against the size.

python3 dev.py bench city                      16x16 and 20x20; prints the table and writes docs/benchmarks/city.md
python3 dev.py bench city --sides 16 20 30 40  these sizes
python3 dev.py bench city --checkins FILE      real check-ins too (SNAP's tab-separated layout)

Every solve runs in its own process, for its peak memory. On a machine with other work the CPU time counts, not the
wall time.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from geoind import (
    Grid,
    PlanarLaplace,
    Prior,
    Projection,
    bayes_remap,
    discretise,
    expected_loss,
    min_loss_given_epsilon,
)
from geoind.files import read_traces
from geoind.optimal import least_loss

CELL = 100.0
CENTRE = -73.985, 40.745
SMALL_MASS = 0.01
"""Added to the check-ins of each cell."""
EXACT = {("skewed", 20): 113.998669, ("uniform", 20): 170.393104}
"""Optima of docs/benchmarks/optimal.md, at epsilon 0.01."""
OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "city.md"

PAGE = """# A whole city: time, memory and gap against the size

By `python3 dev.py bench city`, on {cores} cores, load {load:.0f} at the end: on a machine with other work
the CPU time counts, not the wall time. Cells of 100 m, epsilon 0.01 per metre, for check-ins (around 40.745 N,
73.985 W) ln 4 within 200 m. Uniform and skewed priors are those of [optimal.md](optimal.md); lumpy is a Pareto
distribution of index 1 in each cell.

`min_loss_given_epsilon(..., tolerance={options.tolerance:g})`, by neighbourhoods at every size: the loss of the
returned channel, a bound on the loss of every channel that is private over all pairs of cells, and where it is
known the exact optimum between them. Epsilon is measured over all pairs, relative to the requested one.
"Laplace" is the loss of planar Laplace with the best remapping, at the same epsilon.

| grid | prior | wall s | CPU s | peak MB | loss | bound | exact | gap | epsilon | Laplace | method |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
{lines}

CPU time grows like cells^p from the smallest to the largest size of a prior: {growth}.

The exact method and HiGHS at smaller sizes are in [optimal.md](optimal.md): HiGHS takes 219 s for 9x9 cells.
"""


def problem(kind: str, side: int, checkins: str) -> tuple[Grid, Prior, float]:
    """Return a grid, a prior and an epsilon per metre."""
    half = (side - 1) * CELL / 2
    grid = Grid(-half, -half, cell=CELL, columns=side, rows=side)
    row, column = np.divmod(np.arange(side * side), side)
    if kind == "check-ins":
        places = read_traces(checkins)[["lon", "lat"]].to_numpy()
        near = places[(np.abs(places - CENTRE) < (0.2, 0.1)).all(axis=1)]
        xy = Projection(*CENTRE).to_xy(near)
        counts = np.bincount(grid.nearest(xy[grid.contains(xy)]), minlength=len(grid))
        return grid, Prior.from_counts(grid, counts + SMALL_MASS), math.log(4) / 200
    mass = {
        "uniform": np.ones(side * side),
        "skewed": 1 / (1 + (row - 1.0) ** 2 + (column - 1.0) ** 2) ** 1.5,
        "lumpy": np.random.default_rng(7).pareto(1.0, side * side) + 0.01,
    }[kind]
    return grid, Prior.from_counts(grid, mass), 0.01


def child(kind: str, side: int, tolerance: float, limit: float, checkins: str) -> None:
    """Solve once and print the measurements."""
    import resource

    grid, prior, epsilon = problem(kind, side, checkins)
    # Sizes that are small enough for the exact method are solved by neighbourhoods here.
    least_loss.EXACT_WORK = 0
    start, cpu = time.perf_counter(), time.process_time()
    best = min_loss_given_epsilon(prior, epsilon=epsilon, tolerance=tolerance, time_limit=limit)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    laplace = discretise(PlanarLaplace(epsilon), grid)
    remapped = expected_loss(laplace @ bayes_remap(laplace, prior), prior)
    proof = best.certificate
    found = [seconds, cpu, memory, proof.objective, proof.bound, proof.gap, proof.epsilon / epsilon, remapped]
    print(json.dumps([*found, proof.method]))


def measure(kind: str, side: int, options: argparse.Namespace) -> tuple[str, float]:
    """Return a line of the table, and the CPU time."""
    arguments = [kind, str(side), str(options.tolerance), str(options.limit), options.checkins or ""]
    command = [sys.executable, __file__, "--child", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    if done.returncode:
        return f"| {side}x{side} | {kind} | failed: {done.stderr.strip().splitlines()[-1]} |||||||||", math.nan
    seconds, cpu, memory, loss, bound, gap, epsilon, remapped, method = json.loads(done.stdout)
    exact = EXACT.get((kind, side))
    line = (
        f"| {side}x{side} | {kind} | {seconds:.0f} | {cpu:.0f} | {memory:.0f} | {loss:.3f} | {bound:.3f} | "
        f"{'' if exact is None else f'{exact:.3f}'} | {gap:.2%} | {epsilon:.9f} | {remapped:.1f} | {method} |"
    )
    return line, cpu


def growth(kind: str, sides: list[int], times: list[float]) -> str:
    """Return the exponent of the CPU time in the number of cells."""
    if len(sides) < 2:
        return f"{kind} measured at one size"
    exponent = math.log(times[-1] / times[0]) / (2 * math.log(sides[-1] / sides[0]))
    return f"{kind} p = {exponent:.2f}"


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", type=int, nargs="+", default=[16, 20])
    parser.add_argument("--kinds", nargs="+", default=["uniform", "skewed", "lumpy"])
    parser.add_argument("--tolerance", type=float, default=0.02)
    parser.add_argument("--limit", type=float, default=1800.0)
    parser.add_argument("--checkins", metavar="FILE")
    parser.add_argument("--child", nargs=5)
    options = parser.parse_args()
    if options.child:
        kind, side, tolerance, limit, checkins = options.child
        child(kind, int(side), float(tolerance), float(limit), checkins)
        return
    kinds = options.kinds + ["check-ins"] * bool(options.checkins)
    sides = sorted(options.sides)
    lines, times = [], dict[str, list[float]]()
    for side in sides:
        for kind in kinds:
            line, cpu = measure(kind, side, options)
            lines.append(line)
            times.setdefault(kind, []).append(cpu)
            print(line, flush=True)
    grown = ", ".join(growth(kind, sides, times[kind]) for kind in kinds)
    print(grown)
    page = PAGE.format(
        cores=os.cpu_count(), load=os.getloadavg()[0], options=options, lines="\n".join(lines), growth=grown
    )
    OUT.write_text(page)


if __name__ == "__main__":
    main()
