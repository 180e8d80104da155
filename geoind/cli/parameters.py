"""The options that several commands share."""

import argparse
import math
import re
from typing import TypedDict

from geoind.arrays import as_count, as_positive, as_unit
from geoind.errors import MOST_SAID, InvalidInputError, printable
from geoind.mechanisms.protocol import Mechanism
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.pipeline import enough_noise

__all__ = ["Privacy", "add_privacy", "add_together", "epsilon_of", "privacy_of"]

LOGARITHM = re.compile(r"ln\s*([^\s()]+)|(?:ln|log)\s*\(\s*([^\s()]+)\s*\)", re.IGNORECASE)
"""A natural logarithm. `log` needs parentheses: log10 would be the name of another logarithm."""


def add_privacy(parser: argparse.ArgumentParser, *, reports: bool = False) -> None:
    """Add --epsilon, --level or --factor, and --radius; where reports are made, also --little-noise."""
    group = parser.add_argument_group(
        "how much privacy", "either --epsilon, or --radius with one of --level and --factor"
    )
    group.add_argument("--epsilon", type=float, metavar="E", help="privacy loss per metre")
    level = group.add_mutually_exclusive_group()
    level.add_argument(
        "--level",
        type=_level,
        metavar="L",
        help="places can be told apart by a factor e^L at most: a number, or ln4 or log(4) for a factor of 4",
    )
    level.add_argument(
        "--factor", type=_level_of_factor, dest="level", metavar="F", help="the same as --level lnF"
    )
    group.add_argument("--radius", type=float, metavar="M", help="within this many metres")
    if reports:
        group.add_argument(
            "--little-noise",
            action="store_true",
            help="allow an epsilon above 0.2, which moves reports by less than 10 metres on average",
        )


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


def add_together(parser: argparse.ArgumentParser, *, mechanism: bool = False) -> None:
    """Add --reports and --delta; where there is a choice of noise, also --mechanism."""
    group = parser.add_argument_group("several reports of a person", "with --level and --radius")
    group.add_argument("--reports", type=int, metavar="N", help="how many there are; the level is that of all")
    group.add_argument("--delta", type=float, metavar="P", help="probability that it does not hold, such as 1e-5")
    if mechanism:
        group.add_argument(
            "--mechanism",
            choices=("best", "laplace", "gaussian"),
            help="which noise, with --delta: Laplace, Gaussian, or the smaller of both [best]",
        )


class Privacy(TypedDict, total=False):
    """The arguments of `choose_mechanism`."""

    epsilon: float | None
    level: float | None
    radius: float | None
    delta: float | None
    reports: int | None
    mechanism: Mechanism


def privacy_of(options: argparse.Namespace) -> Privacy:
    """Return how much noise the options of a command that makes reports ask for."""
    if getattr(options, "delta", None) is not None:
        return _together(options)
    if getattr(options, "reports", None) is not None or getattr(options, "mechanism", None) is not None:
        raise InvalidInputError("--reports and --mechanism go with --delta, --level and --radius")
    epsilon = epsilon_of(options)
    if options.little_noise:
        return {"mechanism": SphericalLaplace(epsilon)}
    enough_noise(epsilon, otherwise="add --little-noise")
    return {"epsilon": options.epsilon, "level": options.level, "radius": options.radius}


def _together(options: argparse.Namespace) -> Privacy:
    """Return the noise that several reports together need."""
    if options.level is None or options.radius is None or options.epsilon is not None:
        raise InvalidInputError("--delta goes with --level and --radius, not with --epsilon")
    from geoind.accounting.calibration import mechanism_for_reports

    level, radius = as_positive(options.level, "--level"), as_positive(options.radius, "--radius")
    reports, delta = (
        as_count(1 if options.reports is None else options.reports, "--reports"),
        as_unit(options.delta, "--delta"),
    )
    noise = mechanism_for_reports(
        level=level,
        radius=radius,
        delta=delta,
        reports=reports,
        family=options.mechanism or "best",
        space="lonlat",
    )
    if not options.little_noise:
        enough_noise(2 / noise.mean_radius, otherwise="add --little-noise")
    return {"level": level, "radius": radius, "delta": delta, "reports": reports, "mechanism": noise}


def epsilon_of(options: argparse.Namespace) -> float:
    """Return the epsilon that the options name, however large."""
    if options.epsilon is not None:
        if options.level is not None or options.radius is not None:
            raise InvalidInputError("give --epsilon, or --level (or --factor) and --radius, not both")
        return as_positive(options.epsilon, "--epsilon")
    if options.level is None or options.radius is None:
        raise InvalidInputError("give --epsilon, or --level (or --factor) and --radius")
    level, radius = as_positive(options.level, "--level"), as_positive(options.radius, "--radius")
    return as_positive(level / radius, "--level / --radius")
