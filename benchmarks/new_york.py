"""The optimal mechanism for a real city next to planar Laplace: loss, measured epsilon, adversary error and gap.

python3 dev.py bench new_york --checkins FILE            check-ins in SNAP's layout; else made-up ones
python3 dev.py bench new_york --sides 9 12 --limit 60    these sizes; seconds for each solve
python3 dev.py bench new_york --no-write                 only print the table

Print the table and write docs/benchmarks/new_york.md and docs/figures/new-york.png. On a machine with other work
the CPU time counts, not the wall time.
"""

import argparse
import math
import os
import time
from pathlib import Path

import numpy as np

from geoind import (
    Channel,
    Grid,
    PlanarLaplace,
    Prior,
    Projection,
    adversary_error,
    bayes_remap,
    discretise,
    expected_loss,
    min_loss_given_epsilon,
)
from geoind.arrays import FloatArray
from geoind.channels import Interpolated
from geoind.distances import euclidean
from geoind.files import read_traces
from geoind.optimal import OptimalChannel

CELL = 100.0
CENTRE = -73.985, 40.745
SMALL_MASS = 0.01
"""Added to the check-ins of each cell."""
RADII = (100, 200, 400)
"""Metres within which a report changes odds by a factor of 4 at most."""
SMALL = 256
"""Most cells that are solved to the smaller gap."""
FIGURE_RADII = (70, 100, 140, 200, 280, 400, 570)
ROOT = Path(__file__).resolve().parent.parent / "docs"

PAGE = """# New York: the optimal mechanism next to planar Laplace

![Loss against measured epsilon, with the certified bound](../figures/new-york.png)

By `python3 dev.py bench new_york{command}`, on {cores} cores, load {load:.0f} at the end. {source} Cells of 100 m
around 40.745 N, 73.985 W, {small} added to each count. A factor of 4 within the radius. All losses and errors are
in metres, at the centres of cells.

- **Laplace**: planar Laplace, moved to the closest cell; **remapped**: then to the best cell for the prior. Their
  promise holds between any two places.
- **optimal**: the least loss with this epsilon *between the centres*, with its certified gap.
- **everywhere, n**: the least loss of a channel that is interpolated between sites (`everywhere=True`), with n
  sites along each side of a cell (`prior.refined(n)`); the promise holds *between any two places*
  ([`Interpolated`](../optimal.md#a-mechanism-of-every-place)). Its bound is for all channels that are interpolated
  between these sites; the bound of "optimal" is one for every mechanism.

Epsilon is measured, relative to the promise: between the centres, for "everywhere" between any two places. The
adversary error is the mean distance of the best guess of an adversary who knows the prior.

| grid | radius | mechanism | loss | bound | gap | epsilon | adversary error | CPU s |
| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |
{lines}

{reading}

**The figure** is for {side} x {side} cells. The line is the certified lower bound on the loss of every mechanism
with an epsilon, between the centres of cells, computed at the circles: a mechanism below it does not have the
epsilon at which it is drawn. A mechanism above the line may be faulty, too, and is measured: *redrawn* repeats
planar Laplace until the report is inside, *normalised* has rows proportional to exp(-epsilon distance). Open marks
are at the promised epsilon, full ones at the measured epsilon.

Larger grids: [city.md](city.md) has times and gaps.
"""


def prior_of(side: int, places: FloatArray) -> tuple[Grid, Prior]:
    """Return a square of cells around the centre, and its check-ins."""
    half = (side - 1) * CELL / 2
    grid = Grid(-half, -half, cell=CELL, columns=side, rows=side)
    counts = np.bincount(grid.nearest(places[grid.contains(places)]), minlength=len(grid))
    return grid, Prior.from_counts(grid, counts + SMALL_MASS)


def made_up() -> FloatArray:
    """Return places in lumps of very different sizes."""
    rng = np.random.default_rng(7)
    lumps = rng.uniform(-1500, 1500, (300, 2))
    return np.asarray(np.repeat(lumps, np.ceil(20 * rng.pareto(1.0, 300)).astype(int), axis=0), dtype=np.float64)


def row(prior: Prior, radius: float, name: str, channel: Channel, epsilon: float, seconds: float | None) -> str:
    """Return a line of the table."""
    side, promise = math.isqrt(len(channel.outputs)), math.log(4) / radius
    proof = channel.certificate if isinstance(channel, OptimalChannel) else None
    bound, gap = ("", "") if proof is None else (f"{proof.bound:.1f}", f"{proof.gap:.2%}")
    taken = "" if seconds is None else f"{seconds:.0f}"
    return (
        f"| {side}x{side} | {radius:.0f} | {name} | {expected_loss(channel, prior):.1f} | {bound} | {gap} | "
        f"{epsilon / promise:.4f} | {adversary_error(channel, prior):.1f} | {taken} |"
    )


def solved(
    prior: Prior, epsilon: float, options: argparse.Namespace, outputs: Grid | None = None
) -> tuple[OptimalChannel, float]:
    """Return the optimal channel and the CPU seconds that it took; with outputs, one for every place."""
    start = time.process_time()
    best = min_loss_given_epsilon(
        prior,
        epsilon=epsilon,
        outputs=outputs,
        everywhere=outputs is not None,
        tolerance=options.gap if len(prior.sites) <= SMALL or outputs is not None else options.large_gap,
        time_limit=options.limit,
    )
    return best, time.process_time() - start


def table(places: FloatArray, options: argparse.Namespace) -> list[str]:
    """Return the lines of the table; each is printed when it is known."""
    lines = []
    for side in options.sides:
        grid, prior = prior_of(side, places)
        for radius in RADII:
            epsilon = math.log(4) / radius
            laplace = discretise(PlanarLaplace(epsilon), grid)
            remapped = laplace @ bayes_remap(laplace, prior)
            new = [row(prior, radius, "Laplace", laplace, laplace.epsilon, None)]
            new += [row(prior, radius, "remapped", remapped, remapped.epsilon, None)]
            best, seconds = solved(prior, epsilon, options)
            new += [row(prior, radius, "optimal", best, best.epsilon, seconds)]
            for steps in options.steps:
                fine = prior.refined(steps)
                if len(fine) > options.sites:
                    continue
                best, seconds = solved(fine, epsilon, options, grid)
                new += [row(fine, radius, f"everywhere, {steps}", best, Interpolated(best).epsilon, seconds)]
            print("\n".join(new), flush=True)
            lines += new
    return lines


def faulty(prior: Prior, epsilon: float) -> dict[str, Channel]:
    """Return two mechanisms whose epsilon is larger than they promise."""
    # The density of planar Laplace, averaged over 5 x 5 places of each cell, and normalised: what redrawing does.
    steps = (np.arange(5) - 2) * CELL / 5
    moves = np.column_stack([axis.ravel() for axis in np.meshgrid(steps, steps)])
    inside = np.mean(
        [np.exp(-epsilon * euclidean(prior.sites.xy, prior.sites.xy + move)) for move in moves], axis=0
    )
    grid = prior.sites
    made = {"redrawn": inside, "normalised": np.exp(-epsilon * euclidean(grid.xy, grid.xy))}
    return {name: Channel(grid, grid, each / each.sum(axis=1, keepdims=True)) for name, each in made.items()}


def figure(places: FloatArray, options: argparse.Namespace) -> None:
    """Draw loss against measured epsilon."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grid, prior = prior_of(options.figure, places)
    bound, shown = [], dict[str, list[tuple[float, float]]]()
    claims: list[tuple[float, float]] = []

    def add(name: str, epsilon: float, channel: Channel, prior: Prior = prior) -> None:
        shown.setdefault(name, []).append((1000 * epsilon, expected_loss(channel, prior)))

    for radius in FIGURE_RADII:
        epsilon = math.log(4) / radius
        best, _ = solved(prior, epsilon, options)
        bound.append((1000 * epsilon, best.certificate.bound))
        add("optimal between centres", best.epsilon, best)
        fine = prior.refined(max(options.steps))
        everywhere, _ = solved(fine, epsilon, options, grid)
        add("optimal, everywhere", Interpolated(everywhere).epsilon, everywhere, fine)
        laplace = discretise(PlanarLaplace(epsilon), grid)
        add("planar Laplace", laplace.epsilon, laplace)
        add("with remapping", laplace.epsilon, laplace @ bayes_remap(laplace, prior))
        if radius in RADII:
            for name, channel in faulty(prior, epsilon).items():
                add(name, channel.epsilon, channel)
                claims.append((1000 * epsilon, expected_loss(channel, prior)))
    fig, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    x, y = np.array(bound[::-1]).T
    axes.fill_between(x, 0, y, color="#f3d9d3", label="below the bound: not private as promised")
    axes.plot(x, y, color="#b5432a", linewidth=1.5, label="certified bound")
    axes.margins(x=0.02)
    marks = ["o", "D", "s", "^", "P", "X"]
    colours = ["#b5432a", "#6b3fa0", "#888888", "#1f6f8b", "#2f7d32", "#b8860b"]
    for (name, points), mark, colour in zip(shown.items(), marks, colours, strict=True):
        across, up = np.array(points).T
        joined = "none" if name in ("redrawn", "normalised") else ":"
        axes.plot(across, up, marker=mark, linestyle=joined, color=colour, markersize=6, linewidth=1, label=name)
    measured = [point for name in ("redrawn", "normalised") for point in shown[name]]
    promised = claims[::2] + claims[1::2]
    for claim, found in zip(promised, measured, strict=True):
        axes.annotate("", found, claim, arrowprops={"arrowstyle": "->", "color": "#999999", "linewidth": 0.8})
    axes.plot(
        *np.array(claims).T, "o", markerfacecolor="white", color="#555555", markersize=5, label="as promised"
    )
    axes.set(
        xscale="log", yscale="log", xlabel="epsilon per kilometre, measured", ylabel="expected loss in metres"
    )
    for axis, ticks in ((axes.xaxis, [2, 5, 10, 20]), (axes.yaxis, [20, 50, 100, 200, 500, 1000])):
        axis.set_major_locator(matplotlib.ticker.FixedLocator(ticks))
        axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        axis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.set_ylim(min(y) * 0.7, 1200)
    axes.set_title(f"New York, {options.figure} x {options.figure} cells of 100 m")
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper right")
    fig.savefig(ROOT / "figures" / "new-york.png", dpi=110)


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkins", metavar="FILE")
    parser.add_argument("--sides", type=int, nargs="+", default=[9, 12])
    parser.add_argument("--steps", type=int, nargs="+", default=[1, 2, 3], help="sites along a cell")
    parser.add_argument("--sites", type=int, default=700, help="most sites of a mechanism of every place")
    parser.add_argument("--figure", type=int, default=9, metavar="SIDE")
    parser.add_argument("--gap", type=float, default=0.005)
    parser.add_argument("--large-gap", type=float, default=0.02, help="of more than 256 cells")
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--no-write", action="store_true", help="print the table, write nothing")
    options = parser.parse_args()
    places, source = made_up(), "The check-ins are made up."
    if options.checkins:
        lonlat = read_traces(options.checkins)[["lon", "lat"]].to_numpy()
        near = lonlat[(np.abs(lonlat - CENTRE) < (0.2, 0.1)).all(axis=1)]
        places, source = Projection(*CENTRE).to_xy(near), "Check-ins of Gowalla (SNAP)."
    if options.no_write:
        table(places, options)
        return
    figure(places, options)
    lines = table(places, options)
    old = ROOT.joinpath("benchmarks", "new_york.md")
    # The paragraph after the table is written by hand.
    reading = old.read_text().split("<!-- reading -->")[1] if old.exists() else "\n"
    page = PAGE.format(
        command=" --checkins FILE" if options.checkins else "",
        cores=os.cpu_count(),
        load=os.getloadavg()[0],
        source=source,
        small=SMALL_MASS,
        side=options.figure,
        lines="\n".join(lines),
        reading=f"<!-- reading -->{reading}<!-- reading -->",
    )
    old.write_text(page)


if __name__ == "__main__":
    main()
