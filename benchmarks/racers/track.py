"""One task for one library, in its own environment; prints a line of JSON.

python track.py with_qif throughput OUT.npz

Beside each time stands the numpy baseline (gamma, cos, sin: no check, no secure generator, full doubles) measured
in the same process moments before and after, so that ratios survive a busy machine.
"""

import importlib
import json
import math
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

EPSILON = math.log(4) / 200
GRID_EPSILON = 0.02
CELL = 100.0
LATITUDES = (0.0, 48.0, 80.0)
PAIR = 2.5 / EPSILON
"""Metres between the two locations of an audit."""
DRAWS = 40_000


def numpy_baseline(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Add textbook planar Laplace noise to points in metres."""
    radius = rng.gamma(2.0, 1 / EPSILON, len(points))
    angle = rng.uniform(0, 2 * math.pi, len(points))
    return points + np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def seconds(action: Callable[[], object]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def baseline_seconds_per_point() -> float:
    """Return the best of five runs of the baseline."""
    rng, points = np.random.default_rng(1), np.zeros((300_000, 2))
    return min(seconds(lambda: numpy_baseline(points, rng)) for _ in range(5)) / len(points)


def some_places(count: int) -> np.ndarray:
    """Return different places around Paris, lon/lat."""
    rng = np.random.default_rng(2)
    return np.column_stack([rng.uniform(2.2, 2.5, count), rng.uniform(48.8, 48.9, count)])


def throughput(racer: ModuleType, _out: str) -> dict[str, Any]:
    """Measure the seconds per point when many are given at once."""
    racer.sample(some_places(100), EPSILON)
    before = baseline_seconds_per_point()
    count = 100
    while True:
        places = some_places(count)
        took = min(seconds(lambda: racer.sample(places, EPSILON)) for _ in range(2))  # noqa: B023
        if took > 0.3 or count >= 3_000_000:
            break
        count = int(min(count * max(2.0, min(10.0, 0.5 / max(took, 1e-6))), 3_000_000))
    took = min([took] + [seconds(lambda: racer.sample(places, EPSILON)) for _ in range(2)])
    return {"seconds": took / count, "count": count, "baseline": min(before, baseline_seconds_per_point())}


def latency(racer: ModuleType, _out: str) -> dict[str, Any]:
    """Measure the seconds for a single place: the median of many calls."""
    [[lon, lat]] = some_places(1).tolist()
    racer.one(lon, lat, EPSILON)
    rng, point = np.random.default_rng(1), np.zeros((1, 2))
    times = [seconds(lambda: racer.one(lon, lat, EPSILON)) for _ in range(1000)]
    baseline = [seconds(lambda: numpy_baseline(point, rng)) for _ in range(1000)]
    return {"seconds": float(np.median(times)), "baseline": float(np.median(baseline))}


def laplace(racer: ModuleType, out: str) -> dict[str, Any]:
    """Make the planar Laplace on 9x9 cells as a matrix."""
    racer.laplace_matrix(2, CELL, GRID_EPSILON)
    took = min(seconds(lambda: racer.laplace_matrix(9, CELL, GRID_EPSILON)) for _ in range(3))
    np.savez(out, matrix=racer.laplace_matrix(9, CELL, GRID_EPSILON))
    return {"seconds": took}


def optimal(racer: ModuleType, out: str, side: str) -> dict[str, Any]:
    """Solve for the least expected distance under geo-indistinguishability, uniform prior."""
    racer.optimal_matrix(2, CELL, GRID_EPSILON)
    start = time.perf_counter()
    matrix = racer.optimal_matrix(int(side), CELL, GRID_EPSILON)
    took = time.perf_counter() - start
    np.savez(out, matrix=matrix)
    return {"seconds": took}


def promise(racer: ModuleType, out: str) -> dict[str, Any]:
    """Draw reports of pairs of locations, for an audit by the parent process."""
    drawn = {}
    plane = getattr(racer, "PLANE", False)
    for latitude in LATITUDES[:1] if plane else LATITUDES:
        # Libraries for metres only get metres.
        north = PAIR if plane else PAIR * 180 / math.pi / 6_371_008.8
        east = north if plane else north / math.cos(math.radians(latitude))
        for name, (x, y) in {"here": (0, 0), "north": (0, north), "east": (east, 0)}.items():
            place = (20.0 + x, latitude + y)
            drawn[f"{latitude:.0f} {name}"] = racer.reports(*place, DRAWS, EPSILON)
            drawn[f"{latitude:.0f} {name} truth"] = np.array([place])
    np.savez(out, **drawn)
    return {"count": DRAWS, "plane": plane, "same": bool(racer.repeats())}


if __name__ == "__main__":
    module, task, *arguments = sys.argv[1:]
    print("RESULT " + json.dumps(globals()[task](importlib.import_module(module), *arguments)))
