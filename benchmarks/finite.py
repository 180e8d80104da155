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
from geoind.arrays import FloatArray
from geoind.channels import Interpolated
from geoind.channels.extended import ExtendedMatrix
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


def extended(side: int) -> Channel:
    """Return a channel that falls like an optimal one, stored as entries at the inputs within three cells."""
    half = (side - 1) * 50.0
    grid = Grid(-half, -half, cell=100, columns=side, rows=side)
    report, outputs = len(grid) // 2, np.arange(len(grid))
    steps = np.array([(x, y) for y in range(-3, 4) for x in range(-3, 4) if x * x + y * y <= 9])
    places = np.stack(np.divmod(outputs, side)[::-1], axis=1)[:, None] + steps
    output, step = np.nonzero(((places >= 0) & (places < side)).all(axis=2) & (outputs != report)[:, None])
    value = np.exp(-0.6 * EPSILON * 100 * np.hypot(*steps[step].T))
    entries = places[output, step] @ [1, side], output

    def matrix(scale: float, column: FloatArray) -> ExtendedMatrix:
        return ExtendedMatrix(grid, len(grid), EPSILON, (*entries, scale * value), report, column)

    others = matrix(1e-3, np.full(len(grid), 0.5)).sums - 0.5
    scale = 0.8 / others.max()
    return Channel(grid, grid, matrix(1e-3 * scale, 1 - scale * others))


def deployed(channel: Channel, form: str, folder: str) -> str:
    """Save and load a mechanism, draw from it, and return a line of the table."""
    file, rng = Path(folder, "city.parquet"), np.random.default_rng(1)
    made, half = [Projected(Interpolated(channel), Projection(2.35, 48.86))], float(channel.inputs.xy.max())
    del channel
    written = seconds(lambda: save_mechanism(file, made.pop()))
    size = file.stat().st_size / 1e6
    start = time.process_time()
    city: Any = load_mechanism(file)
    read = time.process_time() - start
    planar = city.mechanism
    xy = rng.uniform(-half, half, (1_000_000, 2))
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
    memory = planar.channel.rows.nbytes / 1e6
    return (
        f"| {len(planar.outputs):,} | {form} | {size:.1f} | {memory:.0f} | {written:.2f} "
        f"| {read:.2f} | {drawn[0]:.2f} | {drawn[1]:.2f} | {1e3 * first:.1f} "
        f"| {' | '.join(f'{1e6 * cost:.0f}' for cost in single)} |"
    )


def both_forms(side: int, folder: str) -> list[str]:
    """Return the lines of a channel that is stored as all entries, and as extended columns."""
    channel = extended(side)
    return [
        deployed(Channel(channel.inputs, channel.outputs, channel.matrix), "all entries", folder),
        deployed(channel, "extended", folder),
    ]


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
            "The same channel is stored as [all entries, or as extended columns](../optimal.md#a-whole-city), in",
            "MB of the file and of memory. Of all entries a row is summed when it is first used; the sums of all",
            "rows of 10,000 sites do not fit into the 64 MB that are kept for them.",
            "",
            "| sites | stored | file | memory | save | load | 1e6, metres | 1e6, degrees | first "
            "| site | metres | degrees | `obfuscate` | at many |",
            f"| ---: | --- |{' ---: |' * 12}",
            *(line for side in (20, 50, 100) for line in both_forms(side, folder)),
        ]
    text = "\n".join(lines) + "\n"
    print(text)
    OUT.write_text(text)


if __name__ == "__main__":
    main()
