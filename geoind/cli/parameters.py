"""The options that several commands share."""

import argparse

from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import choose_mechanism

__all__ = ["add_privacy", "mechanism_of"]


def add_privacy(parser: argparse.ArgumentParser) -> None:
    """Add --epsilon, --level and --radius."""
    group = parser.add_argument_group("how much privacy", "either --epsilon, or --level and --radius")
    group.add_argument("--epsilon", type=float, metavar="E", help="privacy loss per metre")
    group.add_argument("--level", type=float, metavar="L", help="places can be told apart by a factor e^L at most")
    group.add_argument("--radius", type=float, metavar="M", help="within this many metres")


def mechanism_of(options: argparse.Namespace) -> Mechanism:
    """Return the mechanism that the options name."""
    return choose_mechanism(epsilon=options.epsilon, level=options.level, radius=options.radius)
