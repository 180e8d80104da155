"""Test from samples whether a mechanism breaks its promise.

Bound the epsilon of a sampler from below. Exit code: 0 if the promise is not refuted, 1 if it is broken, 2 if it
could not be audited.
"""

import argparse
from typing import Any

from geoind.cli.shared import add_privacy, epsilon_of, errors_of, load_named, option
from geoind.errors import InvalidInputError
from geoind.mechanisms.spherical import SphericalLaplace


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    text = "globe (SphericalLaplace), plane (PlanarLaplace), or MODULE:NAME of a callable for (n, 2) arrays"
    option(parser, "mechanism", text, nargs="?", default="globe")
    add_privacy(parser)
    text = "a true location, in metres or as lon lat; repeatable [0 0]"
    option(parser, "--place X Y", text, action="append", nargs=2)
    option(parser, "--lonlat", "the callable takes and returns degrees of longitude and latitude")
    option(parser, "--draws N", "reports per location", default=100_000)
    option(parser, "--confidence P", "probability that a promise that holds is not refuted", default=0.95)


def run(options: argparse.Namespace) -> int:
    """Print the findings; return 1 if the promise is broken."""
    from geoind.audits.audit import audit

    epsilon = epsilon_of(options)
    # A traceback has exit code 1, which means a broken promise here.
    with errors_of(f"{options.mechanism} could not be audited"):
        result = audit(
            _mechanism(options.mechanism, epsilon),
            epsilon=epsilon,
            places=options.place or [[0.0, 0.0]],
            lonlat=options.lonlat or None,
            draws=options.draws,
            confidence=options.confidence,
        )
    print(result)
    return int(result.refuted)


def _mechanism(name: str, epsilon: float) -> Any:
    """Return the mechanism or the callable of this name."""
    from geoind.mechanisms.planar import PlanarLaplace

    globe = SphericalLaplace(epsilon)  # also checks epsilon for a callable
    if name in ("globe", "plane"):
        return globe if name == "globe" else PlanarLaplace(epsilon)
    if ":" not in name:
        raise InvalidInputError(f"mechanism must be globe, plane or MODULE:NAME, got {name!r}")
    return load_named(name)
