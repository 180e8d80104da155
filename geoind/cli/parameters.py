"""The options that several commands share."""

import argparse
from typing import TypedDict

from geoind.arrays import as_positive
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism
from geoind.mechanisms.sphere import SphericalLaplace
from geoind.pipeline import enough_noise

__all__ = ["Privacy", "add_privacy", "epsilon_of", "privacy_of"]


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


class Privacy(TypedDict, total=False):
    """How `choose_mechanism` and everybody who calls it is told how much noise to make."""

    epsilon: float | None
    level: float | None
    radius: float | None
    mechanism: Mechanism


def privacy_of(options: argparse.Namespace) -> Privacy:
    """Return what the options of a command that makes reports say."""
    epsilon = epsilon_of(options)
    if options.little_noise:
        return {"mechanism": SphericalLaplace(epsilon)}
    enough_noise(epsilon, otherwise="adds --little-noise")
    return {"epsilon": options.epsilon, "level": options.level, "radius": options.radius}


def epsilon_of(options: argparse.Namespace) -> float:
    """Return the epsilon that the options name, however large."""
    if options.epsilon is not None:
        if options.level is not None or options.radius is not None:
            raise InvalidInputError("give --epsilon, or --level and --radius, not both")
        return as_positive(options.epsilon, "--epsilon")
    if options.level is None or options.radius is None:
        raise InvalidInputError("give --epsilon, or both --level and --radius")
    return as_positive(options.level, "--level") / as_positive(options.radius, "--radius")
