"""Where a person probably is, from what everybody has seen: predictors get times and answers, and nothing else."""

from collections.abc import Callable
from typing import TypeAlias

from geoind.traces.guarded import Place
from geoind.traces.session import Past

__all__ = ["Predictor", "last_report", "straight_on"]

Predictor: TypeAlias = Callable[[Past], Place]
"""From what everybody has seen to where the person probably is: longitude and latitude."""


def last_report(past: Past) -> Place:
    """Return where the last answer was."""
    return past.last.place


def straight_on(past: Past) -> Place:
    """Return where somebody would be who goes on as between the last two fresh reports; at most as far again."""
    fresh = [report for report in past.reports if report.fresh][-2:]
    if len(fresh) < 2 or not fresh[1].time > fresh[0].time:
        return past.last.place
    share = min(1.0, (past.time - fresh[1].time) / (fresh[1].time - fresh[0].time))
    turn = (fresh[1].lon - fresh[0].lon + 180) % 360 - 180
    lon = (fresh[1].lon + share * turn + 180) % 360 - 180
    lat = fresh[1].lat + share * (fresh[1].lat - fresh[0].lat)
    return lon, max(-90.0, min(90.0, lat))
