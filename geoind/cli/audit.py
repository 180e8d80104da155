"""Test from samples whether a mechanism breaks its promise.

Bound the epsilon of a sampler from below. Exit code: 0 if the promise is not refuted, 1 if it is broken, 2 if it
could not be audited.
"""

import argparse
from pathlib import Path
from typing import Any

from geoind import Projected
from geoind.audits.audit import audit
from geoind.cli.program import add_privacy, epsilon_of, errors_of, load_named, option
from geoind.errors import InvalidInputError
from geoind.files import load_mechanism
from geoind.mechanisms.planar import PlanarLaplace
from geoind.mechanisms.spherical import SphericalLaplace

NAMES = "globe", "plane"
"""Mechanisms of the library, also where a file has such a name."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    text = (
        "globe (SphericalLaplace), plane (PlanarLaplace), MODULE:NAME of a callable for (n, 2) arrays, or a file "
        "of `geoind optimal`, by default with the promise of the file"
    )
    option(parser, "mechanism", text, nargs="?", default="globe")
    add_privacy(parser)
    text = "a true location, in metres or as lon lat; repeatable [0 0; of a file its centre]"
    option(parser, "--place X Y", text, action="append", nargs=2)
    option(parser, "--lonlat", "the callable takes and returns degrees of longitude and latitude")
    option(parser, "--draws N", "reports per location", default=100_000)
    option(parser, "--confidence P", "probability that a promise that holds is not refuted", default=0.95)


def run(options: argparse.Namespace) -> int:
    """Print the findings; return 1 if the promise is broken."""
    # A traceback has exit code 1, which means a broken promise here.
    with errors_of(f"{options.mechanism} could not be audited"):
        mechanism, epsilon, place = _audited(options)
        result = audit(
            mechanism,
            epsilon=epsilon,
            places=options.place or [place],
            lonlat=options.lonlat or None,
            draws=options.draws,
            confidence=options.confidence,
        )
    print(result)
    return int(result.refuted)


def _audited(options: argparse.Namespace) -> tuple[Any, float | None, Any]:
    """Return the mechanism, the epsilon to test (None for its own), and a place."""
    if options.mechanism in NAMES or not Path(options.mechanism).is_file():
        epsilon = epsilon_of(options)
        return _mechanism(options.mechanism, epsilon), epsilon, (0.0, 0.0)

    mechanism = load_mechanism(options.mechanism)
    inner: Any = mechanism.mechanism if isinstance(mechanism, Projected) else mechanism
    place = getattr(inner, "channel", inner).inputs.xy.mean(axis=0)
    if isinstance(mechanism, Projected):
        [place] = mechanism.projection.to_lonlat(place[None])
    given = any(value is not None for value in (options.epsilon, options.level, options.radius))
    return mechanism, epsilon_of(options) if given else None, place


def _mechanism(name: str, epsilon: float) -> Any:
    """Return the mechanism or the callable of this name."""
    globe = SphericalLaplace(epsilon)  # also checks epsilon for a callable
    if name in NAMES:
        return globe if name == "globe" else PlanarLaplace(epsilon)
    if ":" not in name:
        raise InvalidInputError(f"mechanism must be globe, plane, MODULE:NAME or a file, got {name!r}")
    return load_named(name)
