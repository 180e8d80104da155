"""What Location Guard's formula and cache do, re-implemented; writes docs/benchmarks/location_guard.md.

python3 dev.py bench location_guard

Location Guard is a browser extension and on no index of Python packages. Re-implemented here: the radius by
Newton's method for the Lambert function, rounded to six decimals, the direction, the spherical step with a radius
of 6378137 m, and a cache by the clock for each level. Nothing of its text is used.
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geoind import PlanarLaplace, Projection, SphericalLaplace, TraceSession
from geoind.distances import haversine
from geoind.traces import LOCATION_GUARD, SparseVector, average

sys.path.insert(0, str(Path(__file__).parent / "racers"))
import table
import track

DOCS = Path(__file__).resolve().parent.parent / "docs"
RADIUS = 6_378_137.0
ENOUGH = 1e-10
ROUNDS = 10_000
"""Steps of Newton's method after which it is said not to end."""
DAY = 24 * 60
HOME = (2.2945, 48.8584)


def lambert(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower branch of the Lambert function by Newton's method, and where it did not end."""
    first = np.log(-x)
    going = np.ones(len(x), dtype=bool)
    for _ in range(ROUNDS):
        with np.errstate(all="ignore"):
            half = (first**2 + x / np.exp(first)) / (first + 1)
            full = (half**2 + x / np.exp(half)) / (half + 1)
        first = np.where(going, full, first)
        going &= ~(np.abs(half - full) <= ENOUGH)
        if not going.any():
            break
    return np.round(first * 1e6) / 1e6, going


def radii(z: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the radius that is not exceeded with probability z."""
    return np.asarray(-(lambert((z - 1) / math.e)[0] + 1) / epsilon)


def reports(lon: float, lat: float, count: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Return reports of one place: longitude and latitude in full doubles."""
    radius, angle = radii(rng.random(count), epsilon), rng.uniform(0, 2 * math.pi, count)
    arc, phi = radius / RADIUS, math.radians(lat)
    north = np.arcsin(math.sin(phi) * np.cos(arc) + math.cos(phi) * np.sin(arc) * np.cos(angle))
    east = np.arctan2(np.sin(angle) * np.sin(arc) * math.cos(phi), np.cos(arc) - math.sin(phi) * np.sin(north))
    return np.column_stack([lon + np.degrees(east), np.degrees(north)])


def promise() -> list[float]:
    """Return the race's bound on epsilon over the promise, at its three latitudes."""
    rng, drawn = np.random.default_rng(1), {}
    for latitude in track.LATITUDES:
        north = math.degrees(track.PAIR / 6_371_008.8)
        east = north / math.cos(math.radians(latitude))
        for name, (x, y) in {"here": (0.0, 0.0), "north": (0.0, north), "east": (east, 0.0)}.items():
            drawn[f"{latitude:.0f} {name}"] = reports(20.0 + x, latitude + y, track.DRAWS, track.EPSILON, rng)
            drawn[f"{latitude:.0f} {name} truth"] = np.array([[20.0 + x, latitude + y]])
    result: dict[str, Any] = {"plane": False, "arrays": drawn}
    return table.promise(result)


def could_be(place: tuple[float, float], seen: np.ndarray, epsilon: float, tolerance: float) -> np.ndarray:
    """Return which reports lie at a distance from the place that the formula can draw."""
    lon, lat = np.radians(seen).T
    here_lon, here_lat = np.radians(place)
    square = np.sin((lat - here_lat) / 2) ** 2
    square += math.cos(here_lat) * np.cos(lat) * np.sin((lon - here_lon) / 2) ** 2
    metres = 2 * RADIUS * np.arcsin(np.sqrt(square))
    step = 1e-6 / epsilon
    return np.asarray(np.abs(metres - np.rint(metres / step) * step) < tolerance)


def one_report_names_the_place(count: int = 100_000, tolerance: float = 2e-8) -> str:
    """Return how often a single report can have come from its truth, and from a place 200 m away."""
    plane, rng, rows = Projection(*HOME), np.random.default_rng(2), []
    [other] = plane.to_lonlat([[0.0, 200.0]]).tolist()
    for name, method in LOCATION_GUARD.items():
        seen = reports(*HOME, count, method.epsilon, rng)
        shares = [could_be(place, seen, method.epsilon, tolerance).mean() for place in (HOME, tuple(other))]
        promised, measured = 200 * method.epsilon, math.log(shares[0] / shares[1])
        rows.append(
            [
                name,
                f"{1e-3 / method.epsilon:.2g} mm",
                f"{shares[0]:.3%}",
                f"{shares[1]:.3%}",
                f"e^{promised:.1f}",
                f"e^{measured:.1f}",
            ]
        )
        print(*rows[-1], sep="  ", flush=True)
    header = [
        "level",
        "steps of the radius",
        "fits the truth",
        "fits a place 200 m away",
        "promised",
        "distinguished by a factor of",
    ]
    return markdown(rows, header)


def staying(days: int = 1, trials: int = 200) -> str:
    """Return what a person at home who is asked every ten minutes pays and reveals."""
    rows = []
    for name, method in LOCATION_GUARD.items():
        steady = SparseVector.for_accuracy(PlanarLaplace(method.epsilon).reach(0.9))
        found: dict[str, list[tuple[float, float, float]]] = {"its cache": [], "`SparseVector`": []}
        for trial in range(trials):
            for title, how in (("its cache", method), ("`SparseVector`", steady)):
                session = TraceSession(how, key=trial.to_bytes(32))
                answers = [
                    session.report(lat=HOME[1], lon=HOME[0], time=60.0 * at) for at in range(0, days * DAY, 10)
                ]
                places = np.array([(answer.lon, answer.lat) for answer in dict.fromkeys(answers)])
                off = float(haversine(average(places)[None], np.array([HOME]))[0, 0])
                found[title].append((len(places), session.spent * 2 / method.epsilon, off))
        for title, all_trials in found.items():
            different, level, off = np.mean(all_trials, axis=0)
            one = SphericalLaplace(method.epsilon).mean_radius
            rows.append([name, title, f"{different:.1f}", f"{level:.1f}", f"{one:.0f} m", f"{off:.0f} m"])
            print(*rows[-1], sep="  ", flush=True)
    header = [
        "level",
        "answered by",
        "different reports",
        "level spent",
        "one report is off by",
        "their average by",
    ]
    return markdown(rows, header)


def endless() -> str:
    """Return where Newton's method does not end."""
    z = np.arange(1, 4097) * 2.0**-52
    _, going = lambert((z - 1) / math.e)
    if not going.any():
        return f"Newton's method ended for each of the {len(z)} smallest random numbers."
    return (
        f"Of the {len(z)} smallest random numbers (multiples of 2^-52, up to {z[-1]:.0e}) Newton's method for\n"
        f"the radius does not end for {going.sum()}, within {ROUNDS} rounds: the page that asked would hang.\n"
        f"One of them is drawn once in {1 / (going.sum() * 2.0**-52):.0e} times."
    )


def markdown(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """Return a table."""
    return "\n".join(table.row(*line) for line in [header, ["---"] * len(header), *rows])


PAGE = """# Location Guard's formula and cache

Written by `python3 dev.py bench location_guard`; do not edit. Location Guard is a browser extension, which
brought geo-indistinguishability to people first, and on no index of Python packages: its formula and its cache
are re-implemented from the published source, and measured. Its three levels are `geoind.traces.LOCATION_GUARD`,
with exact noise and a ledger.

## What is right

The noise is drawn on the sphere, not in degrees and not in Mercator metres (a function that would is there and
is not called). The race's bound on epsilon over the promise, at 0°, 48° and 80°: {promise}. (About 0.93 is what
an exact sampler shows. The sphere has the equator's radius, so that the promise is missed by up to 0.7 % in
WGS84 metres: too little to see.)

## One report can name the place

The Lambert function's value is rounded to six decimals, so that the radius is a multiple of 1e-6 / epsilon, and
the report is published in full doubles. An observer with a list of places that may be the truth, in the
digits of the device (an address of a geocoder, a fixed sensor, a lattice of few decimals), computes the distance
from each to the report and checks whether it is such a multiple, to 2e-8 m.
{count} reports of each level:

{names}

The truth always fits, another place nearly never: far more than the promise allows between places 200 m apart,
and more with finer digits. geoind's draws are exact and end on a public lattice ([exact
draws](../exact-draws.md)).

## Its cache depends on the clock

A report is repeated for 10, 30 or 60 minutes. Then fresh noise is drawn, also for a person who has not moved.
One day at home, asked every ten minutes, mean of {trials} days; "level spent" is what all reports of the day
cost together within the level's own radius, where a single one costs 2:

{staying}

`SparseVector.for_accuracy`, with as much noise in a report, draws anew when a private test finds a move. The
cache has one report for each level, so that sites at two levels get two independent reports of one place; no
budget ends it.

## Where the radius is not found

{endless}

## Read, not measured

* Random numbers are the browser's `Math.random()`, which is made for speed: its next numbers follow from
  earlier ones.
* Altitude, heading and speed are meant to be removed, but are set to nothing on the position instead of its
  coordinates, where they are (`src/js/content/content.js`): a device that has them passes the true ones on.
"""


def main() -> None:
    """Measure, print and write."""
    page = PAGE.format(
        promise=", ".join(f"{bound:.3f}" for bound in promise()),
        names=one_report_names_the_place(),
        count="100,000",
        staying=staying(),
        trials=200,
        endless=endless(),
    )
    (DOCS / "benchmarks" / "location_guard.md").write_text(page)


if __name__ == "__main__":
    main()
