"""The gain from trust: a map by a trusted curator and maps from private reports, at the same level per person.

python3 dev.py bench curator                         the synthetic city, known truth
python3 dev.py bench curator --checkins FILE         real check-ins, several per person, too (SNAP's layout)

Prints the tables, writes docs/benchmarks/curator.md and the picture docs/figures/curator.png.
"""

import argparse
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from geoind import Grid, PlanarLaplace, Prior, Projection, estimate_population
from geoind.curator import release_counts
from geoind.estimate import earth_movers_distance, hotspots_found, total_variation
from geoind.estimate.inversion import nearest_distribution
from geoind.evaluation import synthetic_city
from geoind.files import read_traces

DOCS = Path(__file__).resolve().parent.parent / "docs"
LEVEL = math.log(4)
RADIUS = 200.0
COUNTS = (1_000, 10_000, 100_000, 1_000_000)
HOTSPOTS = 20


def by_curator(truth: np.ndarray, grid: Grid, seed: int) -> Prior:
    """Return the curator's map; half of the level, because moving a person is taking out and putting in."""
    return release_counts(truth, grid, epsilon=LEVEL / 2, person=range(len(truth)), rng=seed).population()


def by_reports(truth: np.ndarray, grid: Grid, seed: int) -> Prior:
    """Return the map from reports that keep the level within the radius only."""
    noise = PlanarLaplace(LEVEL / RADIUS)
    return estimate_population(noise.sample(truth, rng=seed), noise, grid)


def by_reports_anywhere(truth: np.ndarray, grid: Grid, seed: int) -> Prior:
    """Return the map from randomised responses: they keep the level between any two cells."""
    rng, cells = np.random.default_rng(seed), len(grid)
    kept = math.exp(LEVEL) / (math.exp(LEVEL) + cells - 1)
    other = 1 / (math.exp(LEVEL) + cells - 1)
    there = grid.nearest(truth)
    report = np.where(rng.random(len(there)) < kept, there, (there + rng.integers(1, cells, len(there))) % cells)
    shares = np.bincount(report, minlength=cells) / len(there)
    return Prior.from_counts(grid, nearest_distribution((shares - other) / (kept - other)))


METHODS = {
    "curator, level between any two places": by_curator,
    "reports, level within 200 m": by_reports,
    "reports, level between any two cells": by_reports_anywhere,
}


def table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def quality(found: Prior, people: Prior, grid: Grid) -> list[str]:
    """Return the three measures of a map."""
    return [
        f"{earth_movers_distance(found, people):.0f} m",
        f"{total_variation(found, people):.3f}",
        f"{hotspots_found(found, people, count=HOTSPOTS, within=grid.cell):.0%}",
    ]


def comparison() -> str:
    """Return the table of one report per person."""
    city, rows = synthetic_city(64), []
    for count in COUNTS:
        truth = city.sample_xy(count, rng=count)
        people = Prior.from_points(city.grid, truth)
        for name, method in METHODS.items():
            rows.append([f"{count:,}", name, *quality(method(truth, city.grid, count + 1), people, city.grid)])
            print(*rows[-1], sep="  ", flush=True)
    header = [
        "people",
        "who publishes, and what is promised",
        "earth-mover's distance",
        "total variation",
        "hotspots",
    ]
    return f"## One place per person, ln 4\n\n{table(rows, header)}\n"


def with_persons(path: str, lon: float, lat: float) -> str:
    """Return what it costs to count several check-ins of each person, at the same promise to a person."""
    places, projection = read_traces(path), Projection(lon, lat)
    lonlat = places[["lon", "lat"]].to_numpy()
    near = (np.abs(lonlat - (lon, lat)) < (0.2, 0.1)).all(axis=1)
    grid = synthetic_city(64).grid
    xy, person = projection.to_xy(lonlat[near]), places["person"].to_numpy()[near]
    inside = grid.contains(xy)
    xy, person = xy[inside], person[inside]
    # In random order: the first check-ins of a person are a random sample.
    order = np.random.default_rng(0).permutation(len(xy))
    xy, person = xy[order], person[order]
    everything, rows = Prior.from_points(grid, xy), []
    for most in (1, 2, 5, 10, 20, 50):
        released = release_counts(xy, grid, epsilon=1.0, person=person, reports_per_person=most, rng=most)
        counted = sum(min(most, int(count)) for count in np.unique(person, return_counts=True)[1])
        rows.append(
            [
                f"{most}",
                f"{counted / len(xy):.0%}",
                f"±{released.margin(0.95)}",
                *quality(released.population(), everything, grid),
            ]
        )
        print(*rows[-1], sep="  ", flush=True)
    header = ["reports per person", "check-ins that count", "noise of a cell, 95 %", "earth-mover's distance"]
    return (
        f"## {len(xy):,} check-ins of {len(set(person.tolist())):,} people around {lon}, {lat}\n\n"
        f"Epsilon is 1 per person.\n\n"
        f"{table(rows, [*header, 'total variation', 'hotspots'])}\n\n"
        "The truth is the map of all check-ins. Few per person leave most of them out; many need more noise.\n"
    )


def picture(path: Path, count: int = 100_000) -> None:
    """Draw the truth and the two maps."""
    from matplotlib.figure import Figure

    city = synthetic_city(64)
    truth = city.sample_xy(count, rng=5)
    maps = {
        f"Where {count:,} people are": Prior.from_points(city.grid, truth),
        "Published by a trusted curator": by_curator(truth, city.grid, 6),
        "Recovered from private reports": by_reports(truth, city.grid, 6),
    }
    largest = float(next(iter(maps.values())).mass.max() / (city.grid.cell / 100) ** 2)
    figure = Figure(figsize=(12, 4.4), layout="compressed")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (title, population) in zip(panels, maps.items(), strict=True):
        image = population.plot(axes, largest=largest).images[0]
        axes.set_title(title)
        axes.label_outer()
    figure.colorbar(image, ax=panels, label="share of the people per hectare", format="{x:.1%}", pad=0.01)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def parts(checkins: str | None, centre: tuple[float, float]) -> Iterable[str]:
    """Yield the page."""
    yield "# What trust buys: measured"
    yield (
        "Written by `python3 dev.py bench curator`. 64 x 64 cells of 100 m; the truth is the map of the people.\n"
        "Every row promises a person ln 4 between two places: the curator and the randomised responses wherever\n"
        "these lie, planar Laplace noise within 200 m, and more beyond. The curator's epsilon is ln 2: moving a\n"
        "person is taking them out and putting them in again, so the curator hides who is in the table, too.\n"
        "A hotspot is one of the 20 densest cells, found if it or the cell next to it is among the 20 densest of\n"
        "the map."
    )
    yield comparison()
    if checkins:
        yield with_persons(checkins, *centre)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkins", metavar="FILE")
    parser.add_argument("--centre", type=float, nargs=2, metavar=("LON", "LAT"), default=(-73.985, 40.745))
    options = parser.parse_args()
    picture(DOCS / "figures" / "curator.png")
    page = parts(options.checkins, tuple(options.centre))
    (DOCS / "benchmarks" / "curator.md").write_text("\n\n".join(part.rstrip("\n") for part in page) + "\n")


if __name__ == "__main__":
    main()
