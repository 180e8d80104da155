"""The results of the comparison as Markdown, with audits of each library's epsilon."""

import math
import os
import platform
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import track
from pyproj import Geod
from scipy.stats import beta

import geoind
from geoind.distances import euclidean

MISSING = "no such function"
CONFIDENCE = 0.95


class Racer(Protocol):
    """A library and its results."""

    name: str
    version: str
    install: str
    results: dict[str, dict[str, Any]]


def measured_epsilon(matrix: np.ndarray, side: int) -> float:
    """Return the measured epsilon of a matrix on a square grid; rows are scaled to sum to 1 first."""
    grid = geoind.Grid(0, 0, cell=track.CELL, columns=side, rows=side)
    return geoind.Channel(grid, grid, matrix / matrix.sum(axis=1, keepdims=True)).epsilon


def audited_epsilon(from_a: list[np.ndarray], from_b: list[np.ndarray], apart: float) -> float:
    """Return a lower bound on epsilon, from events "the report is nearer to a than to b by t".

    The event is chosen on one half of the reports and counted on the other (Clopper-Pearson).
    """
    score_a, score_b = from_b[0] - from_a[0], from_b[1] - from_a[1]
    half_a, half_b = len(score_a) // 2, len(score_b) // 2
    thresholds = np.linspace(-apart, apart, 201)
    share_a = np.array([(score_a[:half_a] >= t).mean() for t in thresholds])
    share_b = np.array([(score_b[:half_b] >= t).mean() for t in thresholds])
    usable = share_a > 0.02
    t = thresholds[usable][np.argmax(share_a[usable] / np.maximum(share_b[usable], 1 / half_b))]
    hits_a, hits_b = int((score_a[half_a:] >= t).sum()), int((score_b[half_b:] >= t).sum())
    tail = (1 - CONFIDENCE) / 2
    low = beta.ppf(tail, hits_a, len(score_a) - half_a - hits_a + 1)
    high = beta.ppf(1 - tail, hits_b + 1, len(score_b) - half_b - hits_b)
    return float(np.log(low / high) / apart)


def promise(result: dict[str, Any]) -> list[float]:
    """Return for each latitude the larger of two bounds (north-south, east-west), over the requested epsilon."""
    geod, drawn, bounds = Geod(ellps="WGS84"), result["arrays"], []

    def distance(place: np.ndarray, reports: np.ndarray) -> np.ndarray:
        if result["plane"]:
            return np.asarray(np.hypot(*(reports - place).T))
        return np.asarray(geod.inv(*np.broadcast_to(place, reports.shape).T, *reports.T)[2])

    for latitude in track.LATITUDES[:1] if result["plane"] else track.LATITUDES:
        here, from_here = drawn[f"{latitude:.0f} here truth"], drawn[f"{latitude:.0f} here"]
        worst = -math.inf
        for direction in ("north", "east"):
            there, from_there = drawn[f"{latitude:.0f} {direction} truth"], drawn[f"{latitude:.0f} {direction}"]
            to_here, to_there = (
                [distance(place[0], z) for z in (from_here, from_there)] for place in (here, there)
            )
            worst = max(worst, audited_epsilon(to_here, to_there, float(distance(here[0], there)[0])))
        bounds.append(worst / track.EPSILON)
    return bounds


def on_lattice(result: dict[str, Any]) -> bool:
    """Return whether reports are rounded to a lattice (decimals of a degree, a power of two of metres)."""
    reports = result["arrays"]["0 here"]
    steps = reports * (1024 if result["plane"] else 1e5)
    return bool((np.abs(steps - np.rint(steps)) < 1e-6).all())


def number(value: float, digits: int = 3) -> str:
    """Return a short number."""
    return "∞" if value == math.inf else f"{value:.{digits}g}"


def cell(racer: Racer, task: str, show: Callable[[dict[str, Any]], str]) -> str:
    """Return a cell of a table: the result, or the reason why there is none."""
    result = racer.results.get(task)
    if result is None:
        return "not installed"
    if result.get("failed") == MISSING:
        return "–"
    return str(result["failed"]) if "failed" in result else show(result)


def duration(seconds: float) -> str:
    """Return a duration with a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def matrix_cell(side: int) -> Callable[[dict[str, Any]], str]:
    """Return the cell of a matrix: time, expected distance, row sums, measured epsilon."""

    def show(result: dict[str, Any]) -> str:
        matrix = result["arrays"]["matrix"]
        grid = geoind.Grid(0, 0, cell=track.CELL, columns=side, rows=side)
        loss = float((matrix * euclidean(grid.xy, grid.xy)).sum() / len(grid))
        error = float(np.abs(matrix.sum(axis=1) - 1).max())
        epsilon = measured_epsilon(matrix, side) / track.GRID_EPSILON
        return f"{duration(result['seconds'])}; {loss:.6f} m; rows off by {error:.0e}; ε × {number(epsilon, 5)}"

    return show


def row(*parts: str) -> str:
    """Return a line of a table."""
    return "| " + " | ".join(parts) + " |"


def sampling(racers: Sequence[Racer]) -> list[str]:
    """Return the table of times."""
    lines = [
        row("", "version", "environment", "per point, in bulk", "× numpy", "one call", "× numpy"),
        row(*["---"] * 7),
    ]
    for racer in racers:
        parts = [racer.name, racer.version or "–", racer.install]
        for task in ("throughput", "latency"):
            parts.append(cell(racer, task, lambda r: duration(r["seconds"])))
            parts.append(cell(racer, task, lambda r: number(r["seconds"] / r["baseline"])))
        lines.append(row(*parts))
    return lines


def promises(racers: Sequence[Racer]) -> list[str]:
    """Return the table of audited epsilons."""
    latitudes = [f"{latitude:.0f}°" for latitude in track.LATITUDES]
    lines = [row("", *latitudes, "a second call gives", "reports are"), row(*["---"] * (len(latitudes) + 3))]
    for racer in racers:
        result = racer.results.get("promise")
        if result is None or "failed" in result:
            lines.append(row(racer.name, cell(racer, "promise", str), *[""] * (len(latitudes) + 1)))
            continue
        shown = [number(bound) for bound in promise(result)]
        if result["plane"]:
            shown = [f"{shown[0]} in the plane", *["–"] * (len(latitudes) - 1)]
        same = "**the same noise**" if result["same"] else "fresh noise"
        lines.append(row(racer.name, *shown, same, "on a lattice" if on_lattice(result) else "full doubles"))
    return lines


def matrices(racers: Sequence[Racer]) -> list[str]:
    """Return the table of matrices."""
    lines = [row("", "planar Laplace 9x9", "optimal 5x5", "optimal 7x7", "optimal 9x9"), row(*["---"] * 5)]
    for racer in racers:
        parts = [cell(racer, "laplace", matrix_cell(9))]
        parts += [cell(racer, f"optimal {side}", matrix_cell(side)) for side in (5, 7, 9)]
        if set(parts) != {"–"}:
            lines.append(row(racer.name, *parts))
    return lines


PAGE = """# Comparison with other libraries

Written by `python3 dev.py bench race`; do not edit. All libraries ran on one machine, in one run, each in its
own virtual environment with its newest release (privkit with open3d below 0.20: it does not import with the one
that its requirement installs). Times are also given as multiples of a numpy baseline (gamma, cos, sin:
no checks, no secure generator, full doubles), measured in the same process.

{machine}

## Sampling

{sampling}

## Audited epsilon

A lower bound on the sampler's epsilon, divided by the requested epsilon, from {draws} reports of each of two
places {pair:.0f} m apart (north-south and east-west; the worse is shown; {confidence:.0%} confidence per pair).
A sampler with exactly the requested epsilon has a bound of about 0.93, the largest that this many reports can
show; **more than 1 means a larger epsilon than requested**. Distances are WGS84 metres; libraries for metres
only are tested in the plane. A library that repeats its noise in a second call reveals the truth to every user
of the library, whatever the bound. The low bits of full doubles reveal which locations could have produced them.

{promises}

## Matrices

Cells of {cell:.0f} m, epsilon {epsilon}/m, uniform prior. Each entry: time; expected distance; largest error of
a row's sum; measured epsilon divided by the requested one (rows scaled to sum to 1 first). An expected distance
below the true optimum (51.069854, 56.257875 and 59.198054 m) is possible only with a larger epsilon.

{matrices}

## Location Guard

A browser extension, not a Python package. Its formula and its cache, re-implemented from the published source,
are measured in [location_guard.md](location_guard.md), written by `python3 dev.py bench location_guard`. In
short: its noise is correct on the sphere, but one report, in full doubles at a rounded radius, confirms or
excludes a location, and its cache draws new noise at intervals for a person who stays.
"""


def markdown(racers: Sequence[Racer]) -> str:
    """Return the report as Markdown."""
    return PAGE.format(
        machine=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; load average "
        f"{os.getloadavg()[2]:.0f} over the last 15 minutes: times on a busy machine are longer, ratios noisier.",
        sampling="\n".join(sampling(racers)),
        promises="\n".join(promises(racers)),
        matrices="\n".join(matrices(racers)),
        draws=track.DRAWS,
        pair=track.PAIR,
        confidence=CONFIDENCE,
        cell=track.CELL,
        epsilon=track.GRID_EPSILON,
    )
