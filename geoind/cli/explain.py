"""The meaning of an epsilon, in metres and in odds.

Print the distance of a report from the true location, the radius that a query must ask for, and how much a report
changes the odds between two places; with --reports and --delta also the level of several reports together, and the
noise that several reports of this level need; with --trace what the traces of a file would cost by each method.
"""

import argparse
import csv
import math
import secrets

from geoind.arrays import as_count, as_positive, as_unit
from geoind.cli.shared import add_privacy, epsilon_of, option, print_rows
from geoind.errors import InvalidInputError, plural
from geoind.mechanisms.spherical import SphericalLaplace

__all__ = ["add_options", "run"]

PROBABILITIES = (0.5, 0.9, 0.95, 0.99)
DISTANCES = (10, 50, 100, 200, 500, 1000, 5000)
TRACE = ("person", "time", "lat", "lon")
RADIUS = 200.0
"""Metres of the level of a trace, if --radius is not given."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_privacy(parser, several=True)
    group = parser.add_argument_group("before traces are released")
    text = "a GeoLife folder, SNAP check-ins or a table: cost and error of each method on it; nothing is written"
    option(group, "--trace FILE", text)
    option(group, "--columns PERSON,TIME,LAT,LON", "of the table [usual names]")
    option(parser, "--interest M", "radius of interest of a query [%(default)g m]", type=float, default=300.0)
    option(parser, "--confidence P", "that the query misses nothing [%(default)g]", type=float, default=0.95)


def run(options: argparse.Namespace) -> None:
    """Print the tables."""
    globe = SphericalLaplace(epsilon_of(options))
    several = options.reports is not None or options.delta is not None
    if several:
        if None in (options.reports, options.delta, options.level):
            raise InvalidInputError("--reports and --delta go together, with --level and --radius")
        as_count(options.reports, "--reports")
        as_unit(options.delta, "--delta")
    if options.columns is not None and options.trace is None:
        raise InvalidInputError("--columns needs --trace")
    interest = as_positive(options.interest, "--interest")
    confidence = as_unit(options.confidence, "--confidence")
    retrieval = interest + globe.reach(confidence)
    wider = retrieval / interest
    chosen = "" if options.level is None else f" = level {options.level:g} / {options.radius:g} m"
    print(f"epsilon = {globe.epsilon:.6g} per metre{chosen}")
    within = [(f"{p:.0%} of reports within", _metres(float(globe.radius_quantile(p)))) for p in PROBABILITIES]
    _print("Distance of a report from the true location", ("mean", _metres(globe.mean_radius)), *within)
    _print(
        f"A query for everything within {interest:g} m of the true location",
        (f"radius around the report ({confidence:.10g} sure)", _metres(retrieval)),
        ("times the area", f"{wider * wider:.1f}" if wider < 1e4 else f"{wider * wider:.2g}"),
    )
    factors = [(f"{distance} m", _factor(globe.epsilon * distance)) for distance in DISTANCES]
    _print("A report changes the odds between two places this far apart by at most a factor of", *factors)
    if several:
        _print_several(globe, options.level, options.radius, options.reports, options.delta)
    if options.trace is not None:
        _print_traces(globe, options.trace, options.columns, options.radius or RADIUS)


def _print_several(globe: SphericalLaplace, level: float, radius: float, reports: int, delta: float) -> None:
    """Print the level of several reports together, and the noise with which they have the level of one."""
    from geoind.accounting.accountant import level_of_reports
    from geoind.accounting.calibration import Family, gaussian_is_smaller_from, mechanism_for_reports

    accounted = level_of_reports(globe, reports=reports, radius=radius, delta=delta)
    _print(
        f"Level of {plural(reports, 'such report')} together, within {radius:g} m",
        ("plain sum", f"{reports * level:.2f}"),
        (f"at most, except with probability {delta:g}", f"{accounted:.2f}"),
    )
    families: tuple[tuple[Family, str], ...] = (("laplace", "Laplace noise"), ("gaussian", "Gaussian noise"))
    rows = [("Laplace noise, by the plain sum", _metres(reports * globe.mean_radius))]
    for family, name in families:
        noise = mechanism_for_reports(
            reports=reports, level=level, radius=radius, delta=delta, family=family, space="lonlat"
        )
        rows.append((f"{name}, up to delta {delta:g}", _metres(noise.mean_radius)))
    _print(f"Mean distance of each report if {plural(reports, 'report')} together have level {level:.4g}", *rows)
    first, second = (
        gaussian_is_smaller_from(level=level, radius=radius, delta=delta, summed=summed)
        for summed in (True, False)
    )
    print(f"  from {plural(first, 'report')} on, Gaussian noise is smaller than Laplace noise by the plain sum;")
    print(f"  from {plural(second, 'report')} on, it is the smallest")


def _print_traces(globe: SphericalLaplace, path: str, columns: str | None, radius: float) -> None:
    """Print cost and error of each method on the traces of a file."""
    from geoind.files import read_traces
    from geoind.tables.recipe import METHODS, method_of
    from geoind.traces import trace_costs

    names = [] if columns is None else next(csv.reader([columns]), [])
    if columns is not None and (len(names) != len(TRACE) or not all(names)):
        raise InvalidInputError(f"--columns must be PERSON,TIME,LAT,LON, got {columns!r}")
    traces = read_traces(path, dict(zip(TRACE, names, strict=False)))
    methods = {str(name): method_of(name, globe) for name in METHODS}
    # The noise of a real release is under another key.
    costs = trace_costs(traces, methods, key=secrets.token_bytes(32))
    print(f"\n{plural(len(traces), 'position')} of {plural(traces['person'].nunique(), 'person')}, by each method")
    print(f"{'':<14}{'error':>10}{'':>12}   level within {radius:g} m of a whole trace    of fresh")
    print(f"{'':<14}{'mean':>10}{'90 %':>12}{'median person':>18}{'largest':>16}{'noise':>14}")
    for row in costs.to_dict("records"):
        errors = f"{_metres(row['mean_error']):>10}{_metres(row['error_90']):>12}"
        levels = f"{row['median'] * radius:>18.4g}{row['largest'] * radius:>16.4g}"
        print(f"  {row['method']:<12}{errors}{levels}{row['share']:>14.0%}")
    sessions = costs[costs["method"] != "independent"]
    if sessions["share"].min() > 0.5:
        print("  These persons seldom stay: every session costs more than half of fresh noise.")
    print("  The numbers are computed from the true traces: do not publish those of private data.")


def _print(title: str, *rows: tuple[str, str]) -> None:
    print(f"\n{title}")
    print_rows(rows, labels=44, values=12)


def _metres(distance: float) -> str:
    return f"{distance:.1f} m" if distance < 10_000 else f"{distance / 1000:.1f} km"


def _factor(log_factor: float) -> str:
    return f"{math.exp(log_factor):.4g}" if log_factor < 20 else f"10^{log_factor / math.log(10):.0f}"
