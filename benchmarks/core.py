"""Speed and memory of the core, as ratios to named baselines in the same run.

python3 dev.py bench core            prints the table and writes docs/benchmarks/core.md
"""

import math
import os
import random
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from geoind import KeyedRandomness, PlanarLaplace, SphericalLaplace, obfuscate
from geoind.parallel import available_cores

EPSILON = math.log(4) / 200
POINTS = 1_000_000
METRES = 111_195.0
OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "core.md"


def least_times(jobs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Least seconds of each job; the jobs take turns, so that a busy machine slows all of them alike."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            times[name].append(time.perf_counter() - start)
    return {name: min(seconds) for name, seconds in times.items()}


def on_one_core(job: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Return the result of a job on one core, on systems with CPU affinity."""
    if not hasattr(os, "sched_setaffinity"):
        return job()
    granted = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(granted)})
    try:
        return job()
    finally:
        os.sched_setaffinity(0, granted)


def peak_memory(job: Callable[[], object]) -> int:
    """Peak memory of a job, in bytes."""
    tracemalloc.start()
    job()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def import_seconds(module: str) -> float:
    """Median seconds that a fresh interpreter takes to import a module."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True) for _ in range(7)]
    return statistics.median(float(run.stdout) for run in runs)


def main() -> None:
    """Measure and write the table."""
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(-80, 80, POINTS), rng.uniform(-180, 180, POINTS)
    lonlat = np.column_stack([lon, lat])
    keyed = KeyedRandomness(bytes(32), np.arange(POINTS))
    globe, plane = SphericalLaplace(EPSILON), PlanarLaplace(EPSILON)

    def insecure() -> object:
        radius, angle = rng.gamma(2, 1 / EPSILON, POINTS), rng.uniform(0, 2 * math.pi, POINTS)
        north = lat + radius * np.cos(angle) / METRES
        return north, lon + radius * np.sin(angle) / (METRES * np.cos(np.radians(lat)))

    def insecure_scalar() -> object:
        radius, angle = random.gammavariate(2, 1 / EPSILON), random.uniform(0, 2 * math.pi)
        north = 48.8584 + radius * math.cos(angle) / METRES
        east = 2.2945 + radius * math.sin(angle) / (METRES * math.cos(math.radians(48.8584)))
        return round(north, 5), round(east, 5)

    baseline, plain = "insecure numpy (PCG64 gamma, cos, sin, metres per degree)", "insecure plain Python"

    def sines(part: slice) -> None:
        for _ in range(8):
            np.sin(lat[part])

    def shared() -> None:
        with ThreadPoolExecutor(available_cores()) as pool:
            size = -(-POINTS // available_cores())
            list(pool.map(sines, (slice(start, start + size) for start in range(0, POINTS, size))))

    jobs = {
        baseline: insecure,
        "`obfuscate(lat=, lon=)`, exact, cryptographic, snapped": lambda: obfuscate(
            lat=lat, lon=lon, epsilon=EPSILON
        ),
        "`SphericalLaplace.sample`": lambda: globe.sample(lonlat),
        "`SphericalLaplace.sample`, keyed by record": lambda: globe.sample(lonlat, rng=keyed),
        "`PlanarLaplace.sample`": lambda: plane.sample(lonlat),
    }
    one = on_one_core(lambda: least_times(jobs, rounds=15))
    both = least_times(jobs, rounds=15)
    gain = least_times({"alone": lambda: sines(slice(None)), "shared": shared}, rounds=15)
    level = math.log(4)
    scalar = least_times(
        {
            plain: insecure_scalar,
            "`obfuscate(lat=, lon=, level=, radius=)`": lambda: obfuscate(
                lat=48.8584, lon=2.2945, level=level, radius=200
            ),
        },
        rounds=20_000,
    )
    memory = peak_memory(lambda: obfuscate(lat=lat, lon=lon, epsilon=EPSILON)) / lonlat.nbytes
    geoind_import, numpy_import = import_seconds("geoind"), import_seconds("numpy")
    lines = [
        "# The time of a call",
        "",
        "One million points, as ratios to the baseline, which takes one core in both columns (best of 15 runs;",
        f"baseline {one[baseline] * 1e3:.0f} ms on this machine):",
        "",
        f"| job | one core | {available_cores()} cores |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {one[name] / one[baseline]:.2f} | {both[name] / both[baseline]:.2f} |" for name in jobs),
        "",
        "Speedup by the other cores during the measurement: a numpy function in several threads took",
        f"{gain['shared'] / gain['alone']:.2f} of its time.",
        "",
        f"Peak memory of the first call beyond its input: {memory:.1f} times the input.",
        "",
        "One location (best of 20 000 calls):",
        "",
        "| job | microseconds | time / baseline |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {s * 1e6:.1f} | {s / scalar[plain]:.2f} |" for name, s in scalar.items()),
        "",
        f"`import geoind`: {geoind_import:.2f} s here, {geoind_import / numpy_import:.2f} times `import numpy`.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)


if __name__ == "__main__":
    main()
