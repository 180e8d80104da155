"""Rows per second and memory of the adapters, Parquet to Parquet, and what that makes of a cluster.

python3 dev.py bench clusters                up to 1e8 rows: 6 GB of disk; writes docs/benchmarks/clusters.md
python3 dev.py bench clusters --rows 1e7     up to 1e7 rows

Every job runs in a process of its own, which tells its seconds, its processor seconds and its peak memory.
Processor seconds are what a cluster is billed for, and what a busy machine does not change much.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from geoind.adapters.recipe import Recipe

from geoind import KeyedRandomness, SphericalLaplace

EPSILON = 0.01
KEY = bytes(range(32))
FILE_ROWS = 5_000_000
GROUP_ROWS = 500_000
SCALING_ROWS = 4 * FILE_ROWS
BATCH_ROWS = 1 << 16
OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "clusters.md"


def make_dataset(folder: Path, rows: int) -> int:
    """Write files of trips and return their bytes."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(rows)
    for start in range(0, rows, FILE_ROWS):
        size = min(FILE_ROWS, rows - start)
        columns = {
            "trip": np.arange(start, start + size),
            "person": rng.integers(0, 1_000_000, size),
            "lon": rng.normal(2.35, 0.1, size),
            "lat": rng.normal(48.86, 0.05, size),
        }
        pq.write_table(pa.table(columns), folder / f"{start:012}.parquet", row_group_size=GROUP_ROWS)
    return sum(path.stat().st_size for path in folder.iterdir())


def job(name: str, source: Path, target: Path, workers: int) -> None:
    """Do one job; called in a process of its own."""
    if name == "dataset":
        from geoind.adapters.dataset import obfuscate_dataset

        obfuscate_dataset(source, target, workers=workers, epsilon=EPSILON, key=KEY)
    elif name == "copy":
        target.mkdir()
        for path in sorted(source.iterdir()):
            file = pq.ParquetFile(path)
            with pq.ParquetWriter(target / path.name, file.schema_arrow) as writer:
                for batch in file.iter_batches(BATCH_ROWS):
                    writer.write_batch(batch, row_group_size=1 << 20)


def measured(name: str, source: Path, target: Path, workers: int) -> dict[str, float]:
    """Run one job in a fresh process and return its seconds, processor seconds and peak memory in MB."""
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, __file__, "--job", name, str(source), str(target), str(workers)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    shutil.rmtree(target, ignore_errors=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def peak_memory() -> float:
    """Return the largest memory this process had, in MB."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    # Not ru_maxrss, which a new process inherits from the one that started it.
    return float(status.read_text().split("VmHWM:")[1].split()[0]) / 1024


def run_job(name: str, source: str, target: str, workers: int) -> None:
    """Print what a job took, its own processes included."""
    start, used = time.perf_counter(), time.process_time()
    job(name, Path(source), Path(target), workers)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    usage = {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - used + children.ru_utime + children.ru_stime,
        "megabytes": peak_memory(),
    }
    print(json.dumps(usage))


def processor_times(jobs: dict[str, Callable[[], object]], rows: int, rounds: int = 25) -> dict[str, float]:
    """Return the median processor nanoseconds per row of each job; they take turns and meet the same noise."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, function in jobs.items():
            start = time.process_time()
            function()
            times[name].append((time.process_time() - start) / rows * 1e9)
    return {name: float(np.median(found)) for name, found in times.items()}


def overheads() -> dict[str, float]:
    """Return nanoseconds per row of the ways to the batch function, and of the function itself."""
    import dask
    import dask.dataframe as dd
    import shapely

    from geoind.adapters.dask import obfuscate

    rows = 1 << 20
    rng = np.random.default_rng(1)
    lonlat = np.column_stack([rng.normal(2.35, 0.1, rows), rng.normal(48.86, 0.05, rows)])
    trips = np.arange(rows)
    table = pa.table({"trip": trips, "lon": lonlat[:, 0], "lat": lonlat[:, 1]})
    batches = table.to_batches(BATCH_ROWS)
    words = pa.table({"trip": [f"trip {n:09}" for n in trips], "lon": table["lon"], "lat": table["lat"]})
    points = pa.table({"trip": trips, "place": pa.array(shapely.to_wkb(shapely.points(lonlat)))})
    noise = SphericalLaplace(EPSILON)
    recipe = Recipe.of(epsilon=EPSILON, id_column="trip", key=KEY)
    over_points = Recipe.of(epsilon=EPSILON, id_column="trip", key=KEY, geometry="place", crs="OGC:CRS84")
    frame = dd.from_pandas(table.to_pandas(), npartitions=4)
    lazy = obfuscate(frame, epsilon=EPSILON, id_column="trip", key=KEY).to_delayed()
    plain = frame.map_partitions(_same, meta=frame._meta).to_delayed()

    def bare() -> None:
        for start in range(0, rows, BATCH_ROWS):
            part = slice(start, start + BATCH_ROWS)
            noise.sample(lonlat[part], rng=KeyedRandomness(KEY, trips[part]))

    jobs: dict[str, Callable[[], object]] = {
        "mechanism alone, numpy arrays, keyed": bare,
        "Arrow batches, lon and lat": lambda: [recipe.obfuscate(batch) for batch in batches],
        "Arrow batches, WKB": lambda: [over_points.obfuscate(batch) for batch in points.to_batches(BATCH_ROWS)],
        "Arrow batches, identities of text": lambda: [recipe.obfuscate(b) for b in words.to_batches(BATCH_ROWS)],
        "Dask, 4 partitions, one thread": lambda: dask.compute(*lazy, scheduler="sync"),
        "(Dask without geoind)": lambda: dask.compute(*plain, scheduler="sync"),
    }
    return processor_times(jobs, rows)


def _same(part: Any) -> Any:
    return part.copy(deep=False)


def growth(folder: Path, largest: int) -> list[tuple[int, int, dict[str, float]]]:
    """Return (rows, bytes read, measurement of one worker) for growing datasets."""
    table = []
    rows = 100_000
    while rows <= largest:
        source = folder / f"in{rows}"
        size = make_dataset(source, rows)
        # The machine's own pace varies by a quarter from minute to minute: three runs, but one of the longest.
        runs = [measured("dataset", source, folder / "out", 1) for _ in range(3 if rows <= 10**7 else 1)]
        table.append((rows, size, sorted(runs, key=lambda run: run["processor"])[len(runs) // 2]))
        print(rows, table[-1][2], flush=True)
        shutil.rmtree(source)
        rows *= 10
    return table


def fitted(grown: list[tuple[int, int, dict[str, float]]]) -> tuple[float, float]:
    """Return processor seconds per row and at the start, from the runs of 1e6 and 1e7 rows."""
    seconds = {rows: run["processor"] for rows, _, run in grown}
    cost = (seconds[10_000_000] - seconds[1_000_000]) / 9e6
    return cost, seconds[1_000_000] - 1e6 * cost


def scaling(folder: Path, rows: int) -> dict[str, dict[str, float]]:
    """Return one worker, two workers, and the plain copy of a dataset, in turns."""
    source = folder / "scaling"
    make_dataset(source, rows)
    runs: dict[str, list[dict[str, float]]] = {"one worker": [], "two workers": [], "plain copy": []}
    for _ in range(2):
        runs["one worker"].append(measured("dataset", source, folder / "out", 1))
        runs["two workers"].append(measured("dataset", source, folder / "out", 2))
        runs["plain copy"].append(measured("copy", source, folder / "out", 1))
    shutil.rmtree(source)
    return {name: min(found, key=lambda run: run["seconds"]) for name, found in runs.items()}


def report(largest: int) -> str:
    """Measure everything and return the page."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="geoind-bench-") as name:
        folder = Path(name)
        ways = overheads()
        print(ways, flush=True)
        scaled = scaling(folder, SCALING_ROWS)
        print(scaled, flush=True)
        grown = growth(folder, largest)
    lines = [
        "# Files and clusters: measured",
        "",
        f"`python3 dev.py bench clusters`: {os.cpu_count()} cores, load average {load:.1f} when it began. ns are",
        "processor nanoseconds per row, which a busy machine changes little; seconds are those of the clock.",
        "",
        "## The way to the batch function",
        "",
        "| way | ns per row | over its baseline |",
        "| --- | ---: | ---: |",
    ]
    mechanism = ways["mechanism alone, numpy arrays, keyed"]
    arrow = ways["Arrow batches, lon and lat"]
    for way, cost in ways.items():
        baseline = arrow if "Dask," in way else mechanism
        over = "" if way.startswith("(") or cost is mechanism else f"{cost / baseline - 1:+.0%}"
        lines.append(f"| {way} | {cost:.0f} | {over} |")
    lines += [
        "",
        "Arrow is compared with the mechanism, Dask with Arrow. Medians of 25 rounds, in turns.",
        "",
        "## Parquet to Parquet, one worker",
        "",
        "| rows | MB read | seconds | rows per second | ns per row | peak memory, MB | by the model, s |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    cost, start = fitted(grown)
    for rows, size, run in grown:
        lines.append(
            f"| {rows:,} | {size / 1e6:,.0f} | {run['seconds']:,.1f} | {rows / run['seconds']:,.0f} "
            f"| {run['processor'] / rows * 1e9:,.0f} | {run['megabytes']:,.0f} | {start + rows * cost:,.1f} |"
        )
    lines += [
        "",
        f"The model: {start:.1f} s of start and {cost * 1e6:.2f} µs of one core per row, from 1e6 and 1e7 rows.",
        "Medians of three runs, one of 1e8 rows.",
        "",
        f"## One worker and two, {SCALING_ROWS:,} rows",
        "",
        "| job | seconds | ns per row | faster than one worker |",
        "| --- | ---: | ---: | ---: |",
    ]
    for job_name, run in scaled.items():
        speedup = scaled["one worker"]["seconds"] / run["seconds"]
        cost = run["processor"] / SCALING_ROWS * 1e9
        lines.append(f"| {job_name} | {run['seconds']:.1f} | {cost:,.0f} | {speedup:.2f} |")
    lines += [
        "",
        "The best of two runs each, in turns. Plain copy: read and write the same files, one process.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--job", nargs=4)
    options = parser.parse_args()
    if options.job:
        name, source, target, workers = options.job
        run_job(name, source, target, int(workers))
        return
    page = report(int(options.rows))
    print(page)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(page)


if __name__ == "__main__":
    main()
