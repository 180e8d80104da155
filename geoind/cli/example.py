"""`geoind example`: the main job on a made-up city, with a result file and a map to look at."""

import argparse
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from geoind.cli.parameters import add_privacy, privacy_of
from geoind.errors import InvalidInputError

if TYPE_CHECKING:
    from geoind.arrays import FloatArray
    from geoind.evaluation.synthetic import City

__all__ = ["add_to"]

SEED = 2026
"""Of the city's people, never of the noise: that is fresh at every run."""
SHOWN = 500
"""People on the map."""
MOST = 1_000_000
"""People of the city."""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "example",
        help="obfuscate a made-up city and draw a map of it",
        description="Make up a city, write where its people are and what they report, and draw both on a page "
        "that needs no network. The noise is fresh at every run, and only an earlier example is written over.",
    )
    parser.add_argument("--out", metavar="FOLDER", default="output", help="where to write [%(default)s]")
    parser.add_argument("--people", type=int, default=5000, metavar="N", help="how many [%(default)s]")
    add_privacy(parser, reports=True)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Make the city, obfuscate it as a file, and say how it went."""
    import numpy as np

    from geoind import EACH_ROW, obfuscate_file
    from geoind.evaluation.synthetic import synthetic_city
    from geoind.maps.example import city_map
    from geoind.maps.offline import save_offline
    from geoind.mechanisms.spherical import SphericalLaplace
    from geoind.tables import sidecar_of

    if options.epsilon is options.level is options.radius is None:
        options.level, options.radius = math.log(4), 200.0
    privacy = privacy_of(options)
    if not 1 <= options.people <= MOST:
        raise InvalidInputError(f"--people must be from 1 to {MOST:,}, got {options.people}")
    city = synthetic_city(128)
    truth = city.sample_lonlat(options.people, rng=SEED).round(6)
    folder = Path(options.out)
    people, reports, picture = folder / "truth.csv", folder / "reports.csv", folder / "map.html"
    _refuse_overwriting(city, people, (people, reports, sidecar_of(reports), picture))
    folder.mkdir(parents=True, exist_ok=True)
    people.write_bytes(_table(truth).encode())
    promise = obfuscate_file(people, reports, person=EACH_ROW, keep=["person"], **privacy).record
    lonlat = np.loadtxt(reports, delimiter=",", skiprows=1, usecols=(2, 1), ndmin=2)
    noise = SphericalLaplace(promise.epsilon)
    save_offline(city_map(city, truth[:SHOWN], lonlat[:SHOWN], noise), picture)

    metres = np.hypot(*(city.projection.to_xy(lonlat) - city.projection.to_xy(truth)).T)
    expected = {p: float(noise.radius_quantile(p)) for p in (0.5, 0.95)}
    chosen = "" if promise.level is None else f" (level {promise.level:.4g} within {promise.radius:g} m)"
    print(f"{_people(options.people)} of a made-up city, epsilon {promise.epsilon:.6g} per metre{chosen}")
    print()
    print("  From truth to report         measured     expected")
    _row("on average", float(metres.mean()), noise.mean_radius)
    for p, radius in expected.items():
        _row(f"{p:.0%} are within", float(np.quantile(metres, p)), radius)
    print()
    files = (
        (reports, "what may be published: one report for each person"),
        (sidecar_of(reports), "the release record"),
        (people, "the truth, to compare with"),
        (picture, f"a map of {_people(min(SHOWN, options.people))}: open it in a browser, no network needed"),
    )
    width = max(len(str(path)) for path, _ in files)
    for path, what in files:
        print(f"  {path!s:<{width}}  {what}")


def _table(truth: "FloatArray") -> str:
    rows = [f"{person},{lat:.6f},{lon:.6f}" for person, (lon, lat) in enumerate(truth.tolist(), start=1)]
    return "\n".join(["person,lat,lon", *rows, ""])


def _refuse_overwriting(city: "City", people: Path, files: Iterable[Path]) -> None:
    """Refuse to write over files, unless they are beside the people of an earlier run: those are made up."""
    found = [path for path in files if path.exists()]
    if not found:
        return
    data = people.read_bytes() if people.is_file() else b""
    count = data.count(b"\n") - 1
    if not 1 <= count <= MOST or data != _table(city.sample_lonlat(count, rng=SEED).round(6)).encode():
        raise InvalidInputError(f"{found[0]} is there, and not from an earlier example: give another --out")


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


def _row(label: str, measured: float, expected: float) -> None:
    print(f"  {label:<24} {measured:>10,.1f} m {expected:>10,.1f} m")
