"""A home, and a walk north from it."""

import math

from geoind import TraceSession
from geoind.traces.drives import HOME

__all__ = ["KEY", "LAT", "LON", "METRE", "walk_north"]

KEY = bytes(range(32))
LON, LAT = HOME
METRE = 180 / (math.pi * 6_371_008.8)
"""In degrees of latitude."""


def walk_north(
    session: TraceSession, norths: list[float], every: float = 300.0, begin: float = 0.0
) -> list[tuple[float, float]]:
    """Return the answers to positions so many metres north of home, one step after the other."""
    steps = enumerate(norths)
    reports = [
        session.report(lat=LAT + METRE * north, lon=LON, time=begin + every * step) for step, north in steps
    ]
    return [(report.lon, report.lat) for report in reports]
