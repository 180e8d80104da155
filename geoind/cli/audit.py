"""`geoind audit`: whether a sampler keeps its promise, from samples alone."""

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from geoind.cli.parameters import add_privacy, epsilon_of
from geoind.errors import GeoindError, InvalidInputError

if TYPE_CHECKING:
    from geoind.mechanisms.protocol import Mechanism

__all__ = ["add_to"]

OURS = ("globe", "plane")


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "audit",
        help="find out from samples whether a mechanism breaks its promise",
        description="Bound the epsilon of a sampler from below. Exit code: 0 if the promise is not refuted, 1 if "
        "it is broken, 2 if it could not be audited.",
    )
    parser.add_argument(
        "mechanism",
        nargs="?",
        default="globe",
        help="globe (SphericalLaplace, lon/lat), plane (PlanarLaplace, metres), or module:callable from (n, 2) "
        "places to (n, 2) reports [%(default)s]",
    )
    add_privacy(parser)
    parser.add_argument(
        "--place",
        action="append",
        nargs=2,
        type=float,
        metavar=("X", "Y"),
        help="where to look, in metres or lon lat; may be repeated [0 0]",
    )
    parser.add_argument("--lonlat", action="store_true", help="a callable takes and returns degrees")
    parser.add_argument("--draws", type=int, default=100_000, metavar="N", help="reports per place [%(default)s]")
    parser.add_argument("--confidence", type=float, default=0.95, metavar="P", help="[%(default)s]")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the findings; return 1 if the promise is broken."""
    from geoind.audits.audit import audit
    from geoind.mechanisms.spherical import SphericalLaplace

    globe = SphericalLaplace(epsilon_of(options))
    mechanism = globe if options.mechanism == "globe" else _find(options.mechanism, globe.epsilon)
    with _no_crash(options.mechanism):
        result = audit(
            mechanism,
            epsilon=globe.epsilon,
            places=options.place or [[0.0, 0.0]],
            lonlat=options.lonlat or None,
            draws=options.draws,
            confidence=options.confidence,
        )
    print(result)
    return int(result.refuted)


@contextmanager
def _no_crash(name: str) -> Iterator[None]:
    """Turn what somebody else's code raises into an error of ours: a traceback would exit like a broken promise.

    Even `sys.exit`, whose code is not the audit's.
    """
    try:
        yield
    except GeoindError:
        raise
    except (Exception, SystemExit) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise InvalidInputError(f"{name} could not be audited, {said}") from error


def _find(name: str, epsilon: float) -> "Mechanism | Callable[..., Any]":
    from geoind.mechanisms.planar import PlanarLaplace

    if name == "plane":
        return PlanarLaplace(epsilon)
    module, colon, attribute = name.partition(":")
    if not colon:
        raise InvalidInputError(f"mechanism must be one of {', '.join(OURS)} or module:callable, got {name!r}")
    # As with `python -m`: a module beside the caller is found.
    sys.path.insert(0, "")
    try:
        with _no_crash(name):
            found: Any = importlib.import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
    finally:
        sys.path.remove("")
    mechanism: Mechanism | Callable[..., Any] = found
    return mechanism
