"""The meaning of an epsilon, in metres and in odds.

Print the distance of a report from the true location, the radius that a query must ask for, and how much a report
changes the odds between two places; with --reports and --delta also the level of several reports together, and the
noise that several reports of this level need; with --traces what the traces of a file would cost by each method.
"""

import argparse
import math
import secrets
from pathlib import Path
from typing import TypeAlias

from geoind.accounting.accountant import level_of_reports
from geoind.accounting.calibration import gaussian_is_smaller_from, mechanism_for_reports
from geoind.arrays import as_positive
from geoind.cli.program import add_privacy, columns_of, epsilon_of, option, print_rows
from geoind.errors import InvalidInputError, plural
from geoind.files import read_traces
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.tables.recipe import METHODS, method_of
from geoind.traces import trace_costs

Rows: TypeAlias = list[tuple[str, str]]
PROBABILITIES = (0.5, 0.9, 0.95, 0.99)
DISTANCES = (10, 50, 100, 200, 500, 1000, 5000)
RADIUS = 200.0
"""Metres of the level of a trace, if --radius is not given."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_privacy(parser, several=True)
    group = parser.add_argument_group("before traces are released")
    text = "a GeoLife folder, SNAP check-ins or a table: cost and error of each method on it; nothing is written"
    option(group, "--traces FILE", text)
    option(group, "--columns PERSON,TIME,LAT,LON", "of the table [usual names]")
    option(parser, "--interest M", "a query asks for everything within this many metres", default=300.0)
    option(parser, "--confidence P", "probability that the query misses nothing", default=0.95)


def run(options: argparse.Namespace) -> None:
    """Print the tables."""
    globe = SphericalLaplace(epsilon_of(options))
    interest = as_positive(options.interest, "interest")
    retrieval = interest + globe.reach(options.confidence)
    wider = retrieval / interest
    chosen = "" if options.level is None else f" = level {options.level:g} / {options.radius:g} m"
    within = [(f"{p:.0%} of reports within", _metres(float(globe.radius_quantile(p)))) for p in PROBABILITIES]
    tables: dict[str, Rows] = {
        "Distance of a report from the true location": [("mean", _metres(globe.mean_radius)), *within],
        f"A query for everything within {interest:g} m of the true location": [
            (f"radius around the report (confidence {options.confidence:.10g})", _metres(retrieval)),
            (
                "area, in multiples of the area asked for",
                f"{wider * wider:.1f}" if wider < 1e4 else f"{wider * wider:.2g}",
            ),
        ],
        "A report changes the odds between two places this far apart by at most a factor of": [
            (f"{distance} m", _factor(globe.epsilon * distance)) for distance in DISTANCES
        ],
    }
    if options.reports is not None or options.delta is not None:
        if None in (options.reports, options.delta, options.level):
            raise InvalidInputError("--reports and --delta go together, with --level and --radius")
        tables |= _several(globe, options.level, options.radius, options.reports, options.delta)
    columns = columns_of(options, options.traces)
    lines = [] if options.traces is None else _traces(globe, options.traces, columns, options.radius or RADIUS)
    print(f"epsilon = {globe.epsilon:.6g} per metre{chosen}")
    for title, rows in tables.items():
        print(f"\n{title}")
        print_rows(rows, labels=44, values=12)
    print(*lines, sep="\n", end="")


def _several(globe: SphericalLaplace, level: float, radius: float, reports: int, delta: float) -> dict[str, Rows]:
    """Return the level of several reports together, and the noise with which they have the level of one."""
    promise = {"level": level, "radius": radius, "delta": delta}
    accounted = level_of_reports(globe, reports=reports, radius=radius, delta=delta)
    noise = [("Laplace noise, by the plain sum", _metres(reports * globe.mean_radius))]
    for family in ("laplace", "gaussian"):
        mean = mechanism_for_reports(reports=reports, **promise, family=family, space="lonlat").mean_radius
        noise.append((f"{family.capitalize()} noise, up to delta {delta:g}", _metres(mean)))
    first, second = (gaussian_is_smaller_from(**promise, summed=summed) for summed in (True, False))
    return {
        f"Level of {plural(reports, 'such report')} together, within {radius:g} m": [
            ("plain sum", f"{reports * level:.2f}"),
            (f"at most, except with probability {delta:g}", f"{accounted:.2f}"),
        ],
        f"Mean distance of each report if {plural(reports, 'report')} together have level {level:.4g}": noise,
        "Gaussian noise is smaller than Laplace noise": [
            ("by the plain sum, from", plural(first, "report")),
            ("up to delta, from", plural(second, "report")),
        ],
    }


def _traces(globe: SphericalLaplace, path: Path, columns: dict[str, str], radius: float) -> list[str]:
    """Return the lines about cost and error of each method on the traces of a file."""
    traces = read_traces(path, columns)
    methods = {str(name): method_of(name, globe) for name in METHODS}
    # The noise of a real release is under another key.
    costs = trace_costs(traces, methods, key=secrets.token_bytes(32))
    lines = [
        f"\n{plural(len(traces), 'position')} of {plural(traces['person'].nunique(), 'person')}, by each method",
        f"{'':<14}{'error':>10}{'':>12}   level within {radius:g} m of a whole trace    of fresh",
        f"{'':<14}{'mean':>10}{'90 %':>12}{'median person':>18}{'largest':>16}{'noise':>14}",
    ]
    for row in costs.to_dict("records"):
        errors = f"{_metres(row['mean_error']):>10}{_metres(row['error_90']):>12}"
        levels = f"{row['median'] * radius:>18.4g}{row['largest'] * radius:>16.4g}"
        lines.append(f"  {row['method']:<12}{errors}{levels}{row['share']:>14.0%}")
    sessions = costs[costs["method"] != "independent"]
    if sessions["share"].min() > 0.5:
        lines.append("  These persons seldom stay: every session costs more than half of fresh noise.")
    return [*lines, "  The numbers are computed from the true traces: do not publish those of private data.", ""]


def _metres(distance: float) -> str:
    return f"{distance:.1f} m" if distance < 10_000 else f"{distance / 1000:.1f} km"


def _factor(log_factor: float) -> str:
    return f"{math.exp(log_factor):.4g}" if log_factor < 20 else f"10^{log_factor / math.log(10):.0f}"
