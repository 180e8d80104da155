"""Accuracy of estimated populations: raw counts, inversion and the iterative update.

python3 dev.py bench estimate                         the synthetic city, known truth
python3 dev.py bench estimate --checkins FILE         real check-ins too (SNAP's tab-separated layout)

Prints the tables, writes docs/benchmarks/estimate.md and the picture docs/figures/estimate.png.
"""

import argparse
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geoind import (
    Grid,
    PlanarLaplace,
    PosteriorRemap,
    Prior,
    Projection,
    bayes_remap,
    discretise,
    estimate_population,
    expected_loss,
    geometric,
    randomised_response,
)
from geoind.estimate import (
    PopulationEstimate,
    bootstrap_intervals,
    earth_movers_distance,
    hotspots_found,
    invert_population,
    total_variation,
)
from geoind.evaluation import synthetic_city
from geoind.evaluation.synthetic import City
from geoind.files import read_traces

DOCS = Path(__file__).resolve().parent.parent / "docs"
LEVELS = {
    "ln 2 / 200 m": math.log(2) / 200,
    "ln 4 / 200 m": math.log(4) / 200,
    "ln 16 / 200 m": math.log(16) / 200,
}
COUNTS = (1_000, 10_000, 100_000, 1_000_000)
HOTSPOTS = 20

Method = Callable[[np.ndarray, PlanarLaplace, Grid], Prior]


def binned(reports: np.ndarray, _: PlanarLaplace, grid: Grid) -> Prior:
    """Return the raw reports as a heat map, without those outside the grid."""
    west, south, east, north = grid.bounds
    inside = ((reports >= (west, south)) & (reports <= (east, north))).all(axis=1)
    return Prior.from_points(grid, reports[inside])


METHODS: dict[str, Method] = {
    "raw reports": binned,
    "inversion, clipped": lambda reports, noise, grid: invert_population(reports, noise, grid, repair="clip"),
    "inversion, projected": invert_population,
    "update, converged": lambda reports, noise, grid: estimate_population(
        reports, noise, grid, stopping="converged", max_steps=500
    ),
    "update, held-out": estimate_population,
}


def compare(
    truth: np.ndarray, grid: Grid, epsilon: float, *, seed: int
) -> Iterable[tuple[str, float, float, float]]:
    """Yield (method, earth-mover's distance, total variation, hotspots found) for one report per person."""
    noise, people = PlanarLaplace(epsilon), Prior.from_points(grid, truth)
    reports = noise.sample(truth, rng=seed)
    for name, method in METHODS.items():
        found = method(reports, noise, grid)
        yield (
            name,
            earth_movers_distance(found, people),
            total_variation(found, people),
            hotspots_found(found, people, count=HOTSPOTS, within=grid.cell),
        )


def table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def comparison(title: str, sample: Callable[[int], np.ndarray], grid: Grid, counts: Sequence[int]) -> str:
    """Return the table of all methods over epsilon and the number of reports."""
    rows = []
    for level, epsilon in LEVELS.items():
        for count in counts:
            for name, moved, wrong, found in compare(sample(count), grid, epsilon, seed=count):
                rows.append([level, f"{count:,}", name, f"{moved:.0f} m", f"{wrong:.3f}", f"{found:.0%}"])
                print(*rows[-1], sep="  ", flush=True)
    header = ["epsilon", "reports", "method", "earth-mover's distance", "total variation", "hotspots found"]
    return f"## {title}\n\n{table(rows, header)}\n"


def finite(count: int = 100_000) -> str:
    """Return the table for finite channels, which suit inversion."""
    line, city = geometric(30, epsilon=0.3), synthetic_city(16)
    hill = Prior.from_counts(line.inputs, np.exp(-((np.arange(30) - 11.0) ** 2) / 30) + 0.02)
    cases = {
        "randomised response, 30 sites, epsilon 2": (randomised_response(30, epsilon=2.0), hill),
        "truncated geometric, 30 sites, epsilon 0.3": (line, hill),
        "discretised Laplace, 16 x 16 cells of 400 m, ln 4 / 200 m": (
            discretise(PlanarLaplace(math.log(4) / 200), city.grid),
            city.prior,
        ),
    }
    rows = []
    for name, (channel, truth) in cases.items():
        sites = channel.inputs
        people = sites.xy[np.random.default_rng(7).choice(len(sites), size=count, p=truth.mass)]
        reports, there = channel.sample(people, rng=8), Prior.from_points(sites, people)
        found = {
            "raw reports": Prior.from_points(sites, reports),
            "inversion, clipped": invert_population(reports, channel, sites, repair="clip"),
            "inversion, projected": invert_population(reports, channel, sites),
            "update, converged": estimate_population(
                reports, channel, sites, stopping="converged", max_steps=5000
            ),
            "update, held-out": estimate_population(reports, channel, sites),
        }
        for method, population in found.items():
            moved, wrong = earth_movers_distance(population, there), total_variation(population, there)
            rows.append([name, method, f"{moved:.3g}", f"{wrong:.3f}"])
            print(*rows[-1], sep="  ", flush=True)
    header = ["channel", "method", "earth-mover's distance, m", "total variation"]
    return f"## Finite channels, {count:,} reports\n\n{table(rows, header)}\n"


def speed() -> str:
    """Return the time and memory of a large grid, with the size of its dense matrix."""
    rows = []
    for cells in (64, 128, 256, 512):
        city, noise = synthetic_city(cells), PlanarLaplace(math.log(4) / 200)
        reports = noise.sample(city.sample_xy(1_000_000, rng=1), rng=2)
        start, busy = time.perf_counter(), time.process_time()
        found = estimate_population(reports, noise, city.grid)
        times = [f"{time.perf_counter() - start:.1f} s", f"{time.process_time() - busy:.1f} s"]
        gigabytes = 8 * len(city.grid) ** 2 / 1e9
        rows.append([f"{cells} x {cells}", *times, f"{found.steps}", f"{gigabytes:,.1f} GB"])
        print(*rows[-1], sep="  ", flush=True)
    header = ["cells", "on the clock", "of processors", "steps", "a dense matrix would take"]
    return (
        f"## Speed: 1,000,000 reports, epsilon = ln 4 / 200 m, {os.cpu_count()} processors\n\n"
        "Wall times, which include other work on the machine.\n\n"
        f"{table(rows, header)}\n"
    )


def two_ends(count: int = 100_000) -> str:
    """Return the adversary error and the loss after remapping with the estimate as prior."""
    city, rows = synthetic_city(32), []
    truth = city.sample_xy(count, rng=3)
    for level, epsilon in LEVELS.items():
        noise = PlanarLaplace(epsilon)
        reports = noise.sample(truth, rng=4)
        channel = discretise(noise, city.grid)
        known = {
            "nothing": Prior.uniform(city.grid),
            "the estimated map": estimate_population(reports, noise, city.grid),
            "the true map": city.prior,
        }
        for name, prior in known.items():
            guessed = expected_loss(channel @ bayes_remap(channel, prior), city.prior)
            moved = PosteriorRemap(prior, noise)(reports[:10_000])
            off = np.hypot(*(moved - truth[:10_000]).T).mean()
            rows.append([level, name, f"{guessed:.0f} m", f"{off:.0f} m"])
            print(*rows[-1], sep="  ", flush=True)
    header = ["epsilon", "what is known", "adversary's mean error, cells", "mean error after `PosteriorRemap`"]
    return f"## The estimate as an adversary's prior\n\n{table(rows, header)}\n"


def certainty(count: int = 100_000, again: int = 30) -> str:
    """Return how often the 90 % intervals contain the truth, and the mean estimate of other samples."""
    noise, rows = PlanarLaplace(math.log(4) / 200), []
    for cells in (16, 64):
        city = synthetic_city(cells)

        def estimated(seed: int, city: City = city, **options: Any) -> PopulationEstimate:
            reports = noise.sample(city.sample_xy(count, rng=seed), rng=seed + 1)
            return estimate_population(reports, noise, city.grid, **options)

        found = estimated(11)
        start = time.perf_counter()
        low, high = bootstrap_intervals(found)
        seconds = time.perf_counter() - start
        fixed: dict[str, Any] = {"stopping": "converged", "max_steps": found.steps, "tolerance": 1e-9}
        average = np.mean([estimated(100 + 2 * seed, **fixed).mass for seed in range(again)], axis=0)
        shares = [((low <= mass) & (mass <= high)).mean() for mass in (average, city.prior.mass)]
        rows.append([f"{cells} x {cells}", *(f"{share:.0%}" for share in shares), f"{seconds:.1f} s"])
        print(*rows[-1], sep="  ", flush=True)
    header = ["cells", "hold the estimate's expectation", "hold the truth", "200 replicates take"]
    return f"## 90 % bootstrap intervals, {count:,} reports, epsilon = ln 4 / 200 m\n\n{table(rows, header)}\n"


def picture(path: Path) -> None:
    """Draw truth, raw reports and the estimated population of 1,000,000 people."""
    from matplotlib.figure import Figure

    city, noise = synthetic_city(128), PlanarLaplace(math.log(4) / 200)
    truth = city.sample_xy(1_000_000, rng=5)
    reports = noise.sample(truth, rng=6)
    maps = {
        "Where people are": Prior.from_points(city.grid, truth),
        "What they report": binned(reports, noise, city.grid),
        "Estimated from the reports": estimate_population(reports, noise, city.grid),
    }
    largest = maps["Where people are"].mass.max() / (city.grid.cell / 100) ** 2 * 0.6
    figure = Figure(figsize=(12, 4.4), layout="compressed")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (title, population) in zip(panels, maps.items(), strict=True):
        image = population.plot(axes, largest=largest).images[0]
        axes.set_title(title)
        axes.label_outer()
    figure.colorbar(
        image, ax=panels, label="share of the people per hectare", format="{x:.1%}", extend="max", pad=0.01
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def checkins(path: str, lon: float, lat: float) -> str:
    """Return the comparison for real check-ins within 3.2 km of a city's centre."""
    places, projection = read_traces(path), Projection(lon, lat)
    lonlat = places[["lon", "lat"]].to_numpy()
    near = lonlat[(np.abs(lonlat - (lon, lat)) < (0.2, 0.1)).all(axis=1)]
    grid = synthetic_city(64).grid
    xy = projection.to_xy(near)
    inside = xy[(np.abs(xy) < 3200).all(axis=1)]
    order = np.random.default_rng(0).permutation(len(inside))
    counts = [count for count in COUNTS if count < len(inside)] + [len(inside)]
    return comparison(f"Real check-ins around {lon}, {lat}", lambda count: inside[order[:count]], grid, counts)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkins", metavar="FILE")
    parser.add_argument("--centre", type=float, nargs=2, metavar=("LON", "LAT"), default=(-73.985, 40.745))
    parser.add_argument("--picture-only", action="store_true")
    options = parser.parse_args()
    picture(DOCS / "figures" / "estimate.png")
    if options.picture_only:
        return
    city = synthetic_city(64)
    parts = [
        "# Estimation of the population: measurements",
        "Written by `python3 dev.py bench estimate`. 64 x 64 cells of 100 m. The truth is the map of the people\n"
        "who reported; the earth-mover's distance is exact. One of the 20 densest true cells is a hotspot found\n"
        "if it, or the cell next to it, is one of the 20 densest cells of the estimate.",
        comparison("The synthetic city", lambda count: city.sample_xy(count, rng=count), city.grid, COUNTS),
    ]
    if options.checkins:
        parts.append(checkins(options.checkins, *options.centre))
    parts += [finite(), two_ends(), certainty(), speed()]
    (DOCS / "benchmarks").mkdir(parents=True, exist_ok=True)
    (DOCS / "benchmarks" / "estimate.md").write_text("\n\n".join(part.rstrip("\n") for part in parts) + "\n")


if __name__ == "__main__":
    main()
