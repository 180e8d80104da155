"""`geoind explain`: what an epsilon means, in metres and in odds."""

import argparse
import math
from typing import TYPE_CHECKING

from geoind.accounting.promise import Promise
from geoind.arrays import as_count, as_positive, as_unit
from geoind.cli.parameters import add_privacy, add_together, epsilon_of
from geoind.errors import InvalidInputError, plural

if TYPE_CHECKING:
    from geoind.mechanisms.spherical import SphericalLaplace

__all__ = ["add_to"]

PROBABILITIES = (0.5, 0.9, 0.95, 0.99)
DISTANCES = (10, 50, 100, 200, 500, 1000, 5000)


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "explain",
        help="what an epsilon means, in metres and in odds",
        description="Print how far a report lies from the truth, what a query must ask for, and how well two "
        "places can be told apart; with --reports and --delta also what several reports tell together, and which "
        "noise would keep the level by all of them.",
    )
    add_privacy(parser)
    add_together(parser)
    parser.add_argument(
        "--interest", type=float, default=300.0, metavar="M", help="a query asks what is this near [%(default)g m]"
    )
    parser.add_argument(
        "--confidence", type=float, default=0.95, metavar="P", help="and misses nothing this often [%(default)g]"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    from geoind.mechanisms.spherical import SphericalLaplace

    globe = SphericalLaplace(epsilon_of(options))
    together = _together(options)
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
    wider = retrieval / interest
    _row("times the area", f"{wider * wider:.1f}" if wider < 1e4 else f"{wider * wider:.2g}")
    print()
    print("Two places this far apart can be told apart by a factor of at most")
    for distance in DISTANCES:
        _row(f"{distance} m", _factor(globe.epsilon * distance))
    if together is not None:
        _several(globe, *together)


def _together(options: argparse.Namespace) -> "tuple[int, Promise] | None":
    """Return the number of reports and the promise that they are compared with."""
    if options.reports is None and options.delta is None:
        return None
    if options.reports is None or options.delta is None or options.level is None:
        raise InvalidInputError("--reports and --delta go together, with --level and --radius")
    reports = as_count(options.reports, "--reports")
    return reports, Promise(level=options.level, radius=options.radius, delta=as_unit(options.delta, "--delta"))


def _several(globe: "SphericalLaplace", reports: int, promise: Promise) -> None:
    """Print what several reports tell together, and which noise would keep the promise by all of them."""
    from geoind.accounting.calibration import Family, gaussian_is_smaller_from, mechanism_for_reports
    from geoind.accounting.reports import level_of_reports

    level, radius, delta = promise.level, promise.radius, promise.delta
    print()
    print(
        f"{plural(reports, 'such report')} can tell places within {radius:g} m apart together by e to the power of"
    )
    _row("the plain sum", f"{reports * level:.2f}")
    accounted = level_of_reports(globe, reports=reports, radius=radius, delta=delta)
    _row(f"at most, except with probability {delta:g}", f"{accounted:.2f}")
    print()
    print(f"For a level of {level:.4g} by {plural(reports, 'report')}, each report's mean distance from the truth")
    _row("Laplace noise, by the plain sum", _metres(reports * globe.mean_radius))
    families: tuple[tuple[Family, str], ...] = (("laplace", "Laplace noise"), ("gaussian", "Gaussian noise"))
    for family, name in families:
        noise = mechanism_for_reports(
            reports=reports, level=level, radius=radius, delta=delta, family=family, space="lonlat"
        )
        _row(f"{name}, up to delta {delta:g}", _metres(noise.mean_radius))
    first, second = (
        gaussian_is_smaller_from(level=level, radius=radius, delta=delta, summed=summed)
        for summed in (True, False)
    )
    print(f"  from {_ordinal(first)} report on Gaussian noise is smaller than the plain sum's,")
    print(f"  from {_ordinal(second)} on it is the smallest")


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"the {number}{ending}"


def _row(label: str, value: str) -> None:
    print(f"  {label:<44} {value:>12}")


def _metres(distance: float) -> str:
    return f"{distance:.1f} m" if distance < 10_000 else f"{distance / 1000:.1f} km"


def _factor(log_factor: float) -> str:
    return f"{math.exp(log_factor):.4g}" if log_factor < 20 else f"10^{log_factor / math.log(10):.0f}"
