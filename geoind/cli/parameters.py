"""The options that several commands share."""

import argparse
from typing import TypedDict

from geoind.arrays import as_count, as_positive, as_unit
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism
from geoind.mechanisms.sphere import SphericalLaplace
from geoind.pipeline import enough_noise

__all__ = ["Privacy", "add_privacy", "add_together", "epsilon_of", "privacy_of"]


def add_privacy(parser: argparse.ArgumentParser, *, reports: bool = False) -> None:
    """Add --epsilon, --level and --radius; where reports are made, also --little-noise."""
    group = parser.add_argument_group("how much privacy", "either --epsilon, or --level and --radius")
    group.add_argument("--epsilon", type=float, metavar="E", help="privacy loss per metre")
    group.add_argument("--level", type=float, metavar="L", help="places can be told apart by a factor e^L at most")
    group.add_argument("--radius", type=float, metavar="M", help="within this many metres")
    if reports:
        group.add_argument(
            "--little-noise",
            action="store_true",
            help="an epsilon above 0.2, which moves reports by less than 10 metres, is meant and no mistake",
        )


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
    """How `choose_mechanism` and everybody who calls it is told how much noise to make."""

    epsilon: float | None
    level: float | None
    radius: float | None
    delta: float | None
    reports: int | None
    mechanism: Mechanism


def privacy_of(options: argparse.Namespace) -> Privacy:
    """Return what the options of a command that makes reports say."""
    if getattr(options, "delta", None) is not None:
        return _together(options)
    if getattr(options, "reports", None) is not None or getattr(options, "mechanism", None) is not None:
        raise InvalidInputError("--reports and --mechanism go with --delta, --level and --radius")
    epsilon = epsilon_of(options)
    if options.little_noise:
        return {"mechanism": SphericalLaplace(epsilon)}
    enough_noise(epsilon, otherwise="adds --little-noise")
    return {"epsilon": options.epsilon, "level": options.level, "radius": options.radius}


def _together(options: argparse.Namespace) -> Privacy:
    """Return what is said of several reports together."""
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
        enough_noise(2 / noise.mean_radius, otherwise="adds --little-noise")
    return {"level": level, "radius": radius, "delta": delta, "reports": reports, "mechanism": noise}


def epsilon_of(options: argparse.Namespace) -> float:
    """Return the epsilon that the options name, however large."""
    if options.epsilon is not None:
        if options.level is not None or options.radius is not None:
            raise InvalidInputError("give --epsilon, or --level and --radius, not both")
        return as_positive(options.epsilon, "--epsilon")
    if options.level is None or options.radius is None:
        raise InvalidInputError("give --epsilon, or both --level and --radius")
    return as_positive(options.level, "--level") / as_positive(options.radius, "--radius")
