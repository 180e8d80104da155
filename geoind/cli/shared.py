"""Options and output that several commands share."""

import argparse
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from geoind.arrays import as_count, as_positive, as_unit
from geoind.errors import MOST_SAID, InvalidInputError, plural, printable
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.pipeline import enough_noise

__all__ = [
    "add_privacy",
    "add_reading",
    "check_target",
    "epsilon_of",
    "find_sources",
    "option",
    "print_rows",
    "privacy_of",
    "progress_line",
    "reading_of",
]

FORMATS = ("csv", "tsv", "ndjson", "geojson", "gpx", "parquet", "plt", "google", "vector")
"""As `geoind.files` has them, which takes too long to import for a help text."""
LOGARITHM = re.compile(r"ln\s*([^\s()]+)|(?:ln|log)\s*\(\s*([^\s()]+)\s*\)", re.IGNORECASE)
"""A natural logarithm. `log` needs parentheses, because log10 is another logarithm."""
NAMED = 10
"""At most this many files that were not read are named."""
PAUSE = 0.1
"""Seconds between two updates of the progress line."""
WIDTH = 30


def option(parser: argparse._ActionsContainer, name: str, text: str, **settings: Any) -> None:
    """Add an argument; its name is as in a help text: `--radius M`, `IN`, or `--quiet` for a flag."""
    flag, _, metavar = name.partition(" ")
    if metavar:
        settings["metavar"] = tuple(metavar.split()) if "nargs" in settings and " " in metavar else metavar
    elif flag.startswith("-") and "choices" not in settings:
        settings["action"] = "store_true"
    parser.add_argument(flag, help=text, **settings)


def add_privacy(parser: argparse.ArgumentParser, *, reports: bool = False, several: bool = False) -> None:
    """Add --epsilon, --level or --factor, and --radius.

    `reports=True`, for commands that draw noise, adds --little-noise; `several=True` adds --reports and --delta;
    both together add --mechanism.
    """
    text = "either --epsilon, or --radius with one of --level and --factor"
    group = parser.add_argument_group("how much privacy", text)
    option(group, "--epsilon E", "privacy loss per metre", type=float)
    level = group.add_mutually_exclusive_group()
    text = "a report changes the odds between two places by a factor of at most e^L: a number, ln4 or log(4)"
    option(level, "--level L", text, type=_level)
    option(level, "--factor F", "the same as --level lnF", type=_level_of_factor, dest="level")
    option(group, "--radius M", "if the places are at most this many metres apart", type=float)
    if reports:
        text = "allow an epsilon above 0.2, which moves reports by less than 10 metres on average"
        option(group, "--little-noise", text)
    if several:
        group = parser.add_argument_group("several reports of a person", "with --level and --radius")
        option(group, "--reports N", "number of reports; --level then is the level of all of them", type=int)
        option(group, "--delta P", "probability with which the level may be exceeded, such as 1e-5", type=float)
    if several and reports:
        text = "with --delta: Laplace noise, Gaussian noise, or the smaller of both [best]"
        option(group, "--mechanism", text, choices=("best", "laplace", "gaussian"))


def _level(text: str) -> float:
    """Return a level from a number or a natural logarithm: 1.386, ln4, ln 4, ln(4) or log(4)."""
    logarithm = LOGARITHM.fullmatch(text.strip())
    if logarithm is not None:
        return _level_of_factor(logarithm[1] or logarithm[2])
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, ln4 or log(4), got {_quoted(text)}") from None


def _level_of_factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 1 < factor < math.inf:
        raise argparse.ArgumentTypeError(f"the factor must be greater than 1 and finite, got {_quoted(text)}")
    return math.log(factor)


def _quoted(text: str) -> str:
    return printable(repr(text), MOST_SAID)


def privacy_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the noise that the options of a command that makes reports select, as keywords of a table."""
    if getattr(options, "delta", None) is not None:
        return _privacy_of_several(options)
    if getattr(options, "reports", None) is not None or getattr(options, "mechanism", None) is not None:
        raise InvalidInputError("--reports and --mechanism need --delta, --level and --radius")
    epsilon = epsilon_of(options)
    if options.little_noise:
        return {"mechanism": SphericalLaplace(epsilon)}
    enough_noise(epsilon, otherwise="add --little-noise")
    return {"epsilon": options.epsilon, "level": options.level, "radius": options.radius}


def _privacy_of_several(options: argparse.Namespace) -> dict[str, Any]:
    if options.level is None or options.radius is None or options.epsilon is not None:
        raise InvalidInputError("--delta needs --level and --radius, not --epsilon")
    from geoind.accounting.calibration import mechanism_for_reports

    promise: dict[str, Any] = {
        "level": as_positive(options.level, "--level"),
        "radius": as_positive(options.radius, "--radius"),
        "delta": as_unit(options.delta, "--delta"),
        "reports": as_count(1 if options.reports is None else options.reports, "--reports"),
    }
    noise = mechanism_for_reports(**promise, family=options.mechanism or "best", space="lonlat")
    if not options.little_noise:
        enough_noise(2 / noise.mean_radius, otherwise="add --little-noise")
    return {**promise, "mechanism": noise}


def epsilon_of(options: argparse.Namespace) -> float:
    """Return the epsilon that the options give, however large."""
    if options.epsilon is not None:
        if options.level is not None or options.radius is not None:
            raise InvalidInputError("give --epsilon, or --level (or --factor) and --radius, not both")
        return as_positive(options.epsilon, "--epsilon")
    if options.level is None or options.radius is None:
        raise InvalidInputError("give --epsilon, or --level (or --factor) and --radius")
    level, radius = as_positive(options.level, "--level"), as_positive(options.radius, "--radius")
    return as_positive(level / radius, "--level / --radius")


def add_reading(parser: argparse.ArgumentParser, title: str) -> None:
    """Add the options for how a file is read and where its locations are."""
    group = parser.add_argument_group(title)
    option(group, "--lat COLUMN", "degrees [lat or latitude]; again for a second location", action="append")
    option(group, "--lon COLUMN", "degrees [lon, lng, long or longitude]; as often as --lat", action="append")
    option(group, "--geometry COLUMN", "points [the geometry column of the file]")
    option(group, "--crs CRS", "of the points, such as EPSG:4326, if the file does not declare it")
    option(group, "--layer NAME", "of a GeoPackage or another file with layers")
    option(group, "--format", "of the input, if its name does not show it; vector is GDAL", choices=FORMATS)
    option(group, "--delimiter CHARACTER", "of a CSV file, or 'tab' [detected from its first line]")
    option(group, "--no-header", "the first line is a record; columns are numbers, from 1")


def reading_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return how files are read and where their locations are, as keywords of the readers in `geoind.files`."""
    from geoind.files import Reading

    reading = Reading(
        format=options.format,
        delimiter={"tab": "\t", "\\t": "\t"}.get(options.delimiter, options.delimiter),
        header=not options.no_header,
        layer=options.layer,
    )
    return {"reading": reading, **{name: getattr(options, name) for name in ("lon", "lat", "geometry", "crs")}}


def find_sources(sources: Sequence[str]) -> list[Path]:
    """Return the files of the sources; print which files of a folder are not read."""
    from geoind.files.folders import others_in, sources_in
    from geoind.tables.columns import named_path

    found = sources_in(sources)
    for folder in filter(Path.is_dir, map(Path, sources)):
        names = [named_path(file.relative_to(folder).as_posix()) for file in others_in(folder)]
        if names:
            shown = ", ".join([*names[:NAMED], "..."] if len(names) > NAMED else names)
            line = f"{folder}: {plural(len(names), 'file')} not read, because the suffix is not known: {shown}"
            print(printable(line, MOST_SAID), file=sys.stderr)
    return list(found.values())


def check_target(target: Path, inputs: Iterable[Path] = ()) -> None:
    """Raise if a file cannot be written, or is one of the inputs; called before anything is computed."""
    if not target.parent.is_dir() or target.is_dir():
        raise InvalidInputError(f"--out must be a file in a folder that exists, got {str(target)!r}")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InvalidInputError(f"--out cannot be written: {str(target)!r}")
    if target.exists() and any(target.samefile(file) for file in inputs if file.exists()):
        raise InvalidInputError(f"--out would overwrite the input {str(target)!r}")


def print_rows(rows: Iterable[tuple[str, str]], *, labels: int, values: int = 0) -> None:
    """Print a label and a value per line; the value is right-aligned if a width is given."""
    for label, value in rows:
        print(f"  {label:<{labels}} {value.rjust(values)}")


@contextmanager
def progress_line() -> Iterator[Callable[..., None]]:
    """Yield a function that shows a text, and the share of the work that is done, in one line on a terminal.

    The line is on standard error. It is removed at the end. If standard error is not a terminal, nothing is shown.
    """
    last = -PAUSE

    def show(text: str, share: float | None = None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PAUSE:
            last = now
            bar = "" if share is None else f"[{'#' * round(share * WIDTH):-<{WIDTH}}] {share:4.0%}  "
            draw(f"{bar}{text}")

    def draw(line: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        draw("")
