"""Metrics that adapt: roads of Helsinki against planar Laplace at the same promise, and noise in town and country.

python3 dev.py bench metrics          writes docs/benchmarks/metrics.md and a figure (some minutes)
"""

import math
import time
from pathlib import Path

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from pyrosm import OSM
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from geoind import (
    Channel,
    Grid,
    KeyedRandomness,
    Places,
    PlanarLaplace,
    Prior,
    Projected,
    Projection,
    adversary_error,
    bayes_remap,
    expected_loss,
    exponential,
    min_loss_given_epsilon,
    tight_epsilon,
)
from geoind.arrays import FloatArray
from geoind.channels import Interpolated, elastic_distance
from geoind.distances import euclidean
from geoind.maps.basemap import helsinki_file, read_basemap
from geoind.space import GraphDistance, road_distance
from webdemo.town import Town

DOCS = Path(__file__).resolve().parent.parent / "docs"
EPSILON = math.log(4) / 200
FINE = 10.0
"""Side in metres of the squares over which planar Laplace noise is summed."""
BEYOND = 1500.0
PEOPLE, AMONG, SIDE = 1_000_000, 1500, 1000
RELEASED = 1_000_000


class Roads:
    """The largest part of a network of pyrosm, with the members of a NetworkX graph that are read."""

    def __init__(self) -> None:
        nodes, edges = OSM(str(helsinki_file())).get_network("driving", nodes=True)
        number = {name: row for row, name in enumerate(nodes["id"])}
        ends = np.array([[number[u], number[v]] for u, v in zip(edges["u"], edges["v"], strict=True)])
        joined = csr_array((np.ones(len(ends)), ends.T), shape=(len(nodes), len(nodes)))
        _, part = connected_components(joined, directed=False)
        inside = part == np.bincount(part).argmax()
        self.nodes = {
            row: {"x": nodes["lon"].iloc[row], "y": nodes["lat"].iloc[row]} for row in np.flatnonzero(inside)
        }
        lengths = np.maximum(edges["length"].to_numpy(), 0.1)
        self.edges = {
            (u, v, key): {"length": lengths[key]} for key, (u, v) in enumerate(ends.tolist()) if inside[u]
        }

    def is_directed(self) -> bool:
        """Return whether the edges have a direction."""
        return True


def laplace_on(sites: Places, epsilon: float) -> Channel:
    """Return planar Laplace noise around each site, snapped to the closest site."""
    low, high = sites.xy.min(axis=0) - BEYOND, sites.xy.max(axis=0) + BEYOND
    x, y = (np.arange(a, b, FINE) for a, b in zip(low, high, strict=True))
    squares = np.array(np.meshgrid(x, y)).reshape(2, -1).T
    nearest = sites.nearest(squares)
    order = np.argsort(nearest, kind="stable")
    starts = np.flatnonzero(np.diff(nearest[order], prepend=-1))
    matrix = np.zeros((len(sites), len(sites)))
    for row, place in enumerate(sites.xy):
        mass = np.exp(-epsilon * np.hypot(*(squares[order] - place).T))
        matrix[row, nearest[order][starts]] = np.add.reduceat(mass, starts)
    return Channel(sites, sites, matrix / matrix.sum(axis=1, keepdims=True))


def row(name: str, channel: Channel, prior: Prior, roads: GraphDistance) -> str:
    """Return a line of the table of roads."""
    better = channel @ bayes_remap(channel, prior, loss=roads)
    numbers = [
        tight_epsilon(channel, roads) / EPSILON,
        expected_loss(channel, prior, loss=roads),
        expected_loss(better, prior, loss=roads),
        adversary_error(channel, prior, loss=roads),
    ]
    return f"| {name} | " + " | ".join(f"{value:.{2 if value < 10 else 0}f}" for value in numbers) + " |"


def roads_tables() -> list[str]:
    """Return the part of the page about roads."""
    town = Town(read_basemap())
    roads = road_distance(Roads(), one_way="both", projection=town.projection)
    longer = roads.apart.sum() / euclidean(roads.sites.xy, roads.sites.xy).sum()
    lines = [
        "## Along the roads of Helsinki",
        "",
        f"The streets for cars in the extract of the demo: {len(roads.sites):,} nodes, one-way streets in both "
        f"directions. The way between two nodes is {longer:.2f} times as long as the straight line. The promise "
        "is ln 4 per 200 m *of road*. The prior is where people live: floor area, at the closest node. Losses are "
        "metres of road; the measured epsilon is relative to the promise.",
        "",
        "| mechanism | epsilon measured | loss | with remapping | adversary error |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    people = town.prior
    prior = Prior.from_points(roads.sites, people.sites.xy, weights=people.mass)
    lines.append(row("planar Laplace, snapped to a node", laplace_on(roads.sites, EPSILON), prior, roads))
    graph = exponential(roads.sites, roads.sites, epsilon=EPSILON, distance=roads)
    lines.append(row("graph-exponential, e^(-epsilon d / 2)", graph, prior, roads))
    middle = prior.mass @ roads.sites.xy
    chosen = np.argsort(np.hypot(*(roads.sites.xy - middle).T))[:: len(roads.sites) // 60][:60]
    some = GraphDistance(Places(roads.sites.xy[chosen]), roads.apart[np.ix_(chosen, chosen)])
    there = Prior.from_points(some.sites, people.sites.xy, weights=people.mass)
    lines += [
        "",
        f"The optimum for {len(chosen)} of these nodes, all over the town:",
        "",
        "| mechanism | epsilon measured | loss | with remapping | adversary error |",
        "| --- | ---: | ---: | ---: | ---: |",
        row("planar Laplace, snapped to a node", laplace_on(some.sites, EPSILON), there, some),
        row(
            "graph-exponential, e^(-epsilon d / 2)",
            exponential(some.sites, some.sites, epsilon=EPSILON, distance=some),
            there,
            some,
        ),
        row(
            "optimal",
            min_loss_given_epsilon(there, epsilon=EPSILON, distance=some, loss=some, tolerance=1e-4),
            there,
            some,
        ),
        "",
    ]
    return lines


def country(side: int, people: int) -> Prior:
    """Return a made-up country of cells of 100 m: towns of several sizes, villages, and land without people."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:side, 0:side] / side
    density = np.full((side, side), 0.02)
    for _ in range(40):
        (east, north), width, peak = rng.random(2), 0.004 + 0.05 * rng.random() ** 3, rng.pareto(1) * 5
        density += peak * np.exp(-np.hypot(x - east, y - north) / width)
    density *= rng.gamma(0.3, size=density.shape)
    density[(x - 0.2) ** 2 + (y - 0.8) ** 2 < 0.02] = 0
    counts = rng.poisson(density / density.sum() * people).astype(float)
    return Prior.from_counts(Grid(-50 * side, -50 * side, cell=100, columns=side, rows=side), counts.ravel())


def elastic_tables() -> list[str]:
    """Return the part of the page about the elastic metric, and draw its figure."""
    people = country(SIDE, PEOPLE)
    grid = people.sites
    if not isinstance(grid, Grid):
        raise TypeError
    start = time.process_time()
    elastic = elastic_distance(people, share=AMONG / PEOPLE)
    noise = Interpolated(exponential(elastic.sites, elastic.sites, epsilon=1.0, distance=elastic))
    epsilon, built = noise.epsilon, time.process_time() - start
    rng = np.random.default_rng(2)
    truth = grid.xy[rng.choice(len(grid), RELEASED, p=people.mass)] + rng.uniform(-50, 50, (RELEASED, 2))
    start = time.process_time()
    reports = noise.sample(truth)
    drawn = time.process_time() - start
    lonlat = Projection(2.35, 47.0).to_lonlat(truth)
    degrees = Projected(noise, Projection(2.35, 47.0))
    start = time.process_time()
    degrees.sample(lonlat, rng=KeyedRandomness(bytes(32), np.arange(RELEASED)))
    keyed = time.process_time() - start
    start = time.process_time()
    PlanarLaplace(EPSILON).sample(truth)
    plain = time.process_time() - start
    held = elastic.held(elastic.level) * PEOPLE
    of_triangle = (1 / elastic.scale[noise._pieces.corners]).max(axis=1)
    error = np.hypot(*(reports - truth).T)
    scale = elastic.scale[elastic.sites.nearest(truth)]
    lines = [
        "## Noise in town and country",
        "",
        f"A made-up country of {len(grid):,} cells of 100 m with {PEOPLE:,} people; every ball of level ln 2 "
        f"shall hold {AMONG:,}. The metric has {len(elastic.sites):,} sites.",
        "",
        "| | |",
        "| --- | ---: |",
        f"| people in a ball of level ln 2: least, median, most | {held.min():,.0f}, {np.median(held):,.0f}, "
        f"{held.max():,.0f} |",
        f"| metric, mechanism and its exact epsilon built in (CPU time, as below) | {built:.0f} s |",
        f"| {RELEASED:,} reports | {drawn:.1f} s ({drawn / plain:.1f} times planar Laplace) |",
        f"| the same with keyed noise, in degrees | {keyed:.1f} s |",
        f"| epsilon per metre, the largest of all places | {epsilon:.4f} |",
        "| loss per unit of the metric, of a place between the sites: median, 99 % of triangles, largest | "
        f"{np.median(noise.rates / of_triangle):.2f}, {np.quantile(noise.rates / of_triangle, 0.99):.2f}, "
        f"{(noise.rates / of_triangle).max():.2f} |",
        "",
        "| people by the density around them | metres per unit of privacy loss | median error | mean error |",
        "| --- | ---: | ---: | ---: |",
    ]
    borders = np.quantile(scale, [0, 0.25, 0.5, 0.75, 0.95, 1])
    names = ("densest quarter", "second quarter", "third quarter", "next fifth", "last twentieth")
    for name, low, high in zip(names, borders[:-1], borders[1:], strict=True):
        here = (scale >= low) & (scale <= high)
        typical, mean = np.median(error[here]), error[here].mean()
        lines.append(f"| {name} | {np.median(scale[here]):,.0f} | {typical:,.0f} m | {mean:,.0f} m |")
    draw(people, elastic.sites, elastic.scale, noise)
    return [*lines, ""]


def draw(people: Prior, sites: Places, scale: FloatArray, noise: Interpolated) -> None:
    """Draw people, the local noise, and reports of a person in town and of one in the country."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3, sharex=True, sharey=True)
    blocks = people.mass.reshape(SIDE // 5, 5, SIDE // 5, 5).sum(axis=(1, 3)) * PEOPLE
    half = SIDE / 20
    extent = (-half, half, -half, half)
    left.imshow(np.sqrt(blocks), origin="lower", extent=extent, cmap="magma")
    left.set_title("people")
    x, y = np.meshgrid(*[((np.arange(250) + 0.5) / 250 - 0.5) * SIDE * 100] * 2)
    local = scale[sites.nearest(np.column_stack([x.ravel(), y.ravel()]))].reshape(x.shape)
    shown = middle.imshow(local, origin="lower", extent=extent, norm=LogNorm(), cmap="viridis")
    figure.colorbar(shown, ax=middle, label="metres per unit of privacy loss")
    middle.set_title("the metric")
    right.imshow(np.sqrt(blocks), origin="lower", extent=extent, cmap="Greys")
    town = sites.xy[np.argsort(scale)[len(scale) // 50]]
    near = np.hypot(*(sites.xy - SIDE * np.array([-30.0, 30.0])).T)
    for place, colour in ((town, "#d1495b"), (sites.xy[near.argmin()], "#00798c")):
        reports = noise.sample(np.repeat(place[None], 300, axis=0), rng=4) / 1000
        right.plot(*reports.T, ".", color=colour, markersize=3, alpha=0.6)
        right.plot(*place / 1000, "x", color=colour, markersize=10, markeredgewidth=2.5)
    right.set_title("300 reports each of two persons (x)")
    for axes in (left, middle, right):
        axes.set_xlabel("km")
    figure.savefig(DOCS / "figures" / "elastic.png", dpi=110)


def main() -> None:
    """Print the page and write it."""
    lines = [
        "# Metrics that adapt",
        "",
        "`python3 dev.py bench metrics` writes this page and the figure. "
        "The guide is [Privacy that adapts](../adaptive.md).",
        "",
        *roads_tables(),
        *elastic_tables(),
        "![People, the metric, and the reports of two persons](../figures/elastic.png)",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    (DOCS / "benchmarks" / "metrics.md").write_text(text)


if __name__ == "__main__":
    main()
