"""Obfuscate a synthetic city and draw a map of it.

Make a synthetic city, write the true locations and the reports of its people, and draw both on a page that needs
no network. Every run draws fresh noise. Only files of an earlier example are overwritten.
"""

import argparse
import math
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from geoind import EACH_ROW, SphericalLaplace, obfuscate_file
from geoind.arrays import FloatArray
from geoind.cli.program import add_privacy, option, print_rows, privacy_of
from geoind.errors import InvalidInputError
from geoind.evaluation import synthetic_city
from geoind.maps import save_offline
from geoind.maps.example import city_map
from geoind.tables import sidecar_of

SEED = 2026
"""Of the people of the city, never of the noise, which is fresh in every run."""
SHOWN = 500
"""People on the map."""
MOST = 1_000_000
"""People of the city."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    option(parser, "--out FOLDER", "where to write", default="output")
    option(parser, "--people N", "number of people", default=5000)
    add_privacy(parser, reports=True)


def run(options: argparse.Namespace) -> None:
    """Make the city, obfuscate it as a file, and print the distances."""
    if options.epsilon is options.level is options.radius is None:
        options.level, options.radius = math.log(4), 200.0
    privacy = privacy_of(options)
    if not 1 <= options.people <= MOST:
        raise InvalidInputError(f"--people must be from 1 to {MOST:,}, got {options.people}")
    city = synthetic_city(128)

    def locations(count: int) -> FloatArray:
        return city.sample_lonlat(count, rng=SEED).round(6)

    truth = locations(options.people)
    folder = Path(options.out)
    people, reports, picture = folder / "truth.csv", folder / "reports.csv", folder / "map.html"
    _check_overwriting(people, (people, reports, sidecar_of(reports), picture), locations)
    folder.mkdir(parents=True, exist_ok=True)
    people.write_bytes(_table(truth).encode())
    record = obfuscate_file(people, reports, person=EACH_ROW, keep=["person"], **privacy).record
    lonlat = np.loadtxt(reports, delimiter=",", skiprows=1, usecols=(2, 1), ndmin=2)
    noise = SphericalLaplace(record.epsilon)
    save_offline(city_map(city, truth[:SHOWN], lonlat[:SHOWN], noise), picture)

    metres = np.hypot(*(city.projection.to_xy(lonlat) - city.projection.to_xy(truth)).T)
    chosen = "" if record.level is None else f" (level {record.level:.4g} within {record.radius:g} m)"
    print(f"{_people(options.people)} of a synthetic city, epsilon {record.epsilon:.6g} per metre{chosen}\n")
    print("  From true location to report    measured     expected")
    rows = [("on average", metres.mean(), noise.mean_radius)]
    rows += [(f"{p:.0%} are within", np.quantile(metres, p), float(noise.radius_quantile(p))) for p in (0.5, 0.95)]
    print_rows([(name, f"{found:>10,.1f} m {mean:>10,.1f} m") for name, found, mean in rows], labels=27)
    print()
    files = [
        (str(reports), "what may be published: one report for each person"),
        (str(sidecar_of(reports)), "the release record"),
        (str(people), "the true locations, to compare with"),
        (str(picture), f"a map of {_people(min(SHOWN, options.people))}: open it in a browser, no network needed"),
    ]
    print_rows(files, labels=max(len(path) for path, _ in files) + 1)


def _table(truth: FloatArray) -> str:
    rows = [f"{person},{lat:.6f},{lon:.6f}" for person, (lon, lat) in enumerate(truth.tolist(), start=1)]
    return "\n".join(["person,lat,lon", *rows, ""])


def _check_overwriting(people: Path, files: Iterable[Path], locations: Callable[[int], FloatArray]) -> None:
    """Raise if a file exists, unless the file of people is that of an earlier example."""
    found = [path for path in files if path.exists()]
    if not found:
        return
    data = people.read_bytes() if people.is_file() else b""
    count = data.count(b"\n") - 1
    if not 1 <= count <= MOST or data != _table(locations(count)).encode():
        raise InvalidInputError(f"{found[0]} exists, and is not from an earlier example: give another --out")


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"
