"""Speed of channels, measures and remapping, as ratios to named baselines in the same run.

python3 dev.py bench finite          prints the table and writes docs/benchmarks/finite.md (about two minutes)
"""

import math
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from geoind import (
    Channel,
    Grid,
    Places,
    PlanarLaplace,
    PosteriorRemap,
    Prior,
    Projected,
    Projection,
    adversary_error,
    discretise,
    obfuscate,
    planar_geometric,
    tight_epsilon,
)
from geoind.channels import Interpolated
from geoind.distances import euclidean, squared
from geoind.files import load_mechanism, save_mechanism

EPSILON = math.log(4) / 200
OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "finite.md"


def seconds(job: Callable[[], object]) -> float:
    """CPU seconds of one run of a job, which do not depend much on other work on the machine."""
    start = time.process_time()
    job()
    return time.process_time() - start


def plain_epsilon(channel: Channel, sources: int) -> float:
    """Compute epsilon for the first few sources with one line of numpy each."""
    log, apart = np.log(channel.matrix), euclidean(channel.inputs.xy, channel.inputs.xy)
    worst = 0.0
    for x in range(sources):
        gain = (log[x] - log).max(axis=1)
        worst = max(worst, float(np.divide(gain, apart[x], out=np.zeros_like(gain), where=apart[x] > 0).max()))
    return worst


def city(count: int, seed: int = 0) -> Prior:
    """Weighted places, half of them in a centre 2 km wide, half over 20 km."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(-10_000, 10_000, (count, 2))
    xy[: count // 2] = rng.normal(size=(count // 2, 2)) * 2000
    return Prior.from_counts(Places(xy), rng.exponential(size=count))


def half_exponential(side: int) -> Channel:
    """Return the exponential mechanism of a grid around the origin, made row by row: 10 000 sites take 800 MB."""
    half = (side - 1) * 50.0
    grid = Grid(-half, -half, cell=100, columns=side, rows=side)
    matrix = np.empty((len(grid), len(grid)))
    for x, row in enumerate(matrix):
        np.exp(-EPSILON / 2 * np.hypot(*(grid.xy - grid.xy[x]).T), out=row)
        row /= row.sum()
    matrix.flags.writeable = False
    return Channel(grid, grid, matrix)


def deployed(side: int, folder: str) -> str:
    """Save and load a mechanism, draw from it, and return a line of the table."""
    file, rng = Path(folder, "city.parquet"), np.random.default_rng(1)
    made = [Projected(Interpolated(half_exponential(side)), Projection(2.35, 48.86))]
    written = seconds(lambda: save_mechanism(file, made.pop()))
    size = file.stat().st_size / 1e6
    start = time.process_time()
    city: Any = load_mechanism(file)
    read = time.process_time() - start
    planar = city.mechanism
    xy = rng.uniform(-50 * (side - 1), 50 * (side - 1), (1_000_000, 2))
    lonlat = city.projection.to_lonlat(xy)
    [[lon, lat]] = lonlat[:1].tolist()
    first = seconds(lambda: obfuscate(lat=lat, lon=lon, mechanism=city))
    drawn = seconds(lambda: planar.sample(xy)), seconds(lambda: city.sample(lonlat))
    some = lonlat[:2000].tolist()
    near = [(lon, lat)] * len(some)
    single = [
        each(lambda place: planar.channel.sample_indices([place]), [7] * len(some)),
        each(lambda place: planar.sample([place]), xy[[0] * len(some)].tolist()),
        each(lambda place: city.sample([place]), near),
        each(lambda place: obfuscate(lat=place[1], lon=place[0], mechanism=city), near),
        each(lambda place: obfuscate(lat=place[1], lon=place[0], mechanism=city), some),
    ]
    return (
        f"| {side * side:,} | {size:.0f} | {written:.2f} | {read:.2f} | {drawn[0]:.2f} | {drawn[1]:.2f} | "
        f"{1e3 * first:.1f} | {' | '.join(f'{1e6 * cost:.0f}' for cost in single)} |"
    )


def each(call: Callable[[Any], object], places: list[Any]) -> float:
    """CPU seconds of a call with one place, the least of three rounds."""
    return min(seconds(lambda: [call(place) for place in places]) for _ in range(3)) / len(places)


def main() -> None:
    """Measure and write the table."""
    grid = Grid(0, 0, cell=100, columns=50, rows=50)
    noise = PlanarLaplace(EPSILON)
    channel = discretise(noise, grid)
    product = seconds(lambda: channel.matrix @ channel.matrix)
    sources = 60
    plain = seconds(lambda: plain_epsilon(channel, sources)) * len(grid) / sources
    rows = [
        ("`matrix @ matrix` (baseline)", product),
        ("`discretise(PlanarLaplace, grid)`", seconds(lambda: discretise(noise, grid))),
        ("`planar_geometric(grid)`", seconds(lambda: planar_geometric(grid, epsilon=EPSILON))),
        ("`adversary_error(channel, prior)`", seconds(lambda: adversary_error(channel, Prior.uniform(grid)))),
        ("a line of plain numpy per source (extrapolated)", plain),
        ("`tight_epsilon(channel)`, exact, with the worst triple", seconds(lambda: tight_epsilon(channel))),
    ]
    tracemalloc.start()
    tight_epsilon(channel)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    prior = city(100_000)
    rng = np.random.default_rng(1)
    truth = prior.sites.xy[rng.choice(len(prior), 10_000, p=prior.mass)]
    reports = noise.sample(truth, rng=2)
    few = 40

    def everything() -> object:
        weights = prior.mass * np.exp(-EPSILON * euclidean(reports[:few], prior.sites.xy))
        return weights @ prior.sites.xy / weights.sum(axis=1, keepdims=True)

    every_place = seconds(everything) * len(reports) / few
    remaps = [
        ("posterior mean over all places, plain numpy (extrapolated)", every_place),
        ("`PosteriorRemap`, squared loss", seconds(lambda: PosteriorRemap(prior, noise, loss=squared)(reports))),
        ("`PosteriorRemap`, Euclidean loss", seconds(lambda: PosteriorRemap(prior, noise)(reports))),
    ]
    lines = [
        "# Mechanisms on a grid: measured",
        "",
        "A grid of 50 x 50 cells (2 500 sites):",
        "",
        "| job | processor seconds | time / baseline |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {taken:.2f} | {taken / product:.1f} |" for name, taken in rows),
        "",
        f"Peak memory of `tight_epsilon` beyond the matrix: {peak / channel.matrix.nbytes:.1f} times the matrix.",
        "",
        "10 000 reports remapped over 100 000 weighted places:",
        "",
        "| job | processor seconds | time / baseline |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {taken:.1f} | {taken / every_place:.2f} |" for name, taken in remaps),
    ]
    with tempfile.TemporaryDirectory() as folder:
        lines += [
            "",
            "A channel in a file, interpolated between its sites and projected",
            "([how](../optimal.md#a-mechanism-of-every-place)). Processor seconds to save it, to load it with its",
            "epsilon measured again, and to draw a million reports, of places in metres and in degrees;",
            "milliseconds of the first `obfuscate`; microseconds of a call with one place: the number of a site",
            "(`sample_indices`), metres and degrees (`sample`), and `obfuscate`, always at one place and at many.",
            "A row of the matrix is summed when it is first used; the sums of all rows of 10,000 sites do not fit",
            "into the 64 MB that are kept for them.",
            "",
            "| sites | MB | save | load | 1e6, metres | 1e6, degrees | first "
            "| site | metres | degrees | `obfuscate` | at many |",
            "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *(deployed(side, folder) for side in (20, 50, 100)),
        ]
    text = "\n".join(lines) + "\n"
    print(text)
    OUT.write_text(text)


if __name__ == "__main__":
    main()
