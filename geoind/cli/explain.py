"""`geoind explain`: what an epsilon means, in metres and in odds."""

import argparse
import math

from geoind.cli.parameters import add_privacy, epsilon_of

__all__ = ["add_to"]

PROBABILITIES = (0.5, 0.9, 0.95, 0.99)
DISTANCES = (10, 50, 100, 200, 500, 1000, 5000)


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "explain",
        help="what an epsilon means, in metres and in odds",
        description="Print how far a report lies from the truth, what a query must ask for, and how well two "
        "places can be told apart.",
    )
    add_privacy(parser)
    parser.add_argument(
        "--interest", type=float, default=300.0, metavar="M", help="a query asks what is this near [%(default)g m]"
    )
    parser.add_argument(
        "--confidence", type=float, default=0.95, metavar="P", help="and misses nothing this often [%(default)g]"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    from geoind.arrays import as_positive, as_unit
    from geoind.mechanisms.sphere import SphericalLaplace

    globe = SphericalLaplace(epsilon_of(options))
    interest = as_positive(options.interest, "--interest")
    confidence = as_unit(options.confidence, "--confidence")
    retrieval = interest + globe.reach(confidence)
    chosen = "" if options.level is None else f" = level {options.level:g} / {options.radius:g} m"
    print(f"epsilon = {globe.epsilon:.6g} per metre{chosen}")
    print()
    print("A report's distance from the truth")
    _row("mean", _metres(globe.mean_radius))
    for p in PROBABILITIES:
        _row(f"{p:.0%} of reports within", _metres(float(globe.radius_quantile(p))))
    print()
    print(f"A query for everything within {interest:g} m of the truth")
    _row(f"ask around the report within ({confidence:.10g} sure)", _metres(retrieval))
    _row("times the area", f"{(retrieval / interest) ** 2:.1f}")
    print()
    print("Two places this far apart can be told apart by a factor of at most")
    for distance in DISTANCES:
        _row(f"{distance} m", _factor(globe.epsilon * distance))


def _row(label: str, value: str) -> None:
    print(f"  {label:<44} {value:>12}")


def _metres(distance: float) -> str:
    return f"{distance:.1f} m" if distance < 10_000 else f"{distance / 1000:.1f} km"


def _factor(log_factor: float) -> str:
    return f"{math.exp(log_factor):.4g}" if log_factor < 20 else f"10^{log_factor / math.log(10):.0f}"
