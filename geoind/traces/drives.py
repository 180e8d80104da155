"""Drives to evaluate sessions on: synthetic commuters, and those of a table of person, time and place."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from geoind.arrays import FloatArray, as_count, as_positive
from geoind.errors import InvalidInputError
from geoind.pipeline import Location
from geoind.space.projection import Projection

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["HOME", "WORK", "Trace", "answers_to", "commuter", "commuters", "drives_of"]

Trace: TypeAlias = tuple[FloatArray, FloatArray]
"""One person's positions: times in seconds, and (n, 2) longitudes and latitudes."""

HOME = (2.2945, 48.8584)
WORK = (0.8 * 7616.0, -0.6 * 7616.0)
"""In metres east and north of home."""

LEAVES, ARRIVES, BACK = 8.0, 8.5, 18.5
"""Hours of the day: the way takes half an hour, and the way back ends at the last one."""

GPS_NOISE = 8.0
"""Metres, standard deviation along each axis."""

GAP = 1200.0
"""Seconds without a position after which another drive begins."""
LEAST = 10
"""Positions that a drive has at least."""


def commuter(*, days: int = 7, every: float = 300.0, rng: np.random.Generator | int = 0) -> Trace:
    """Return times in seconds and (n, 2) positions of a person who goes to work, 7 616 m away, every day.

    Parameters
    ----------
    days : int
        How many days.
    every : float
        Seconds between two positions.
    rng : Generator or int
        For the noise of the receiver.

    Examples
    --------
    >>> times, lonlat = commuter(days=1)
    >>> len(times), lonlat.shape
    (288, (288, 2))
    """
    generator = np.random.default_rng(rng)
    times = np.arange(0.0, as_count(days, "days") * 86_400, as_positive(every, "every"))
    hours = times / 3600 % 24
    way = ARRIVES - LEAVES
    share = np.clip((hours - LEAVES) / way, 0, 1) - np.clip((hours - (BACK - way)) / way, 0, 1)
    plane = Projection(*HOME)
    xy = share[:, None] * np.array(WORK) + generator.normal(0, GPS_NOISE, (len(times), 2))
    return times, plane.to_lonlat(xy)


def commuters(*, persons: int = 6, days: int = 2, every: float = 300.0) -> list[Trace]:
    """Return synthetic commuters, each a trace of some days.

    Examples
    --------
    >>> times, lonlat = commuters(persons=2, days=1)[0]
    >>> len(times)
    288
    """
    return [commuter(days=days, every=every, rng=number) for number in range(as_count(persons, "persons"))]


def drives_of(table: "DataFrame", *, every: float = 60.0, most: int = 20) -> list[Trace]:
    """Return the longest drives of a table of person, time, lat and lon: one position in each `every` seconds.

    A drive is a trace without a gap of 20 minutes.

    Examples
    --------
    >>> import pandas as pd
    >>> start = pd.Timestamp("2024-05-01", tz="UTC")
    >>> table = pd.DataFrame({"person": "ana", "lat": 48.86, "lon": 2.29,
    ...                       "time": [start + pd.Timedelta(minutes=k) for k in range(30)]})
    >>> [len(times) for times, lonlat in drives_of(table)]
    [30]
    """
    every = as_positive(every, "every")
    drives: list[Trace] = []
    for _, rows in table.groupby("person", sort=True):
        seconds = rows["time"].to_numpy("datetime64[ns]").astype(np.int64) / 1e9
        order = np.argsort(seconds, kind="stable")
        seconds, lonlat = seconds[order], rows[["lon", "lat"]].to_numpy(np.float64)[order]
        _, first = np.unique(np.floor(seconds / every), return_index=True)
        seconds, lonlat = seconds[first], lonlat[first]
        ends = np.flatnonzero(np.diff(seconds) > max(GAP, 2 * every)) + 1
        for times, places in zip(np.split(seconds, ends), np.split(lonlat, ends), strict=True):
            if len(times) >= LEAST:
                drives.append((times, places))
    if not drives:
        raise InvalidInputError(f"no drive has {LEAST} positions without a gap of {GAP / 60:.0f} minutes")
    return sorted(drives, key=lambda drive: drive[0][0] - drive[0][-1])[: as_count(most, "most")]


def answers_to(trace: Trace, report: Callable[..., Location[float]]) -> FloatArray:
    """Return the (n, 2) longitudes and latitudes that a session's `report` answers to a trace."""
    steps = zip(trace[0].tolist(), trace[1].tolist(), strict=True)
    answers = [report(lat=lat, lon=lon, time=time) for time, (lon, lat) in steps]
    return np.array([(answer.lon, answer.lat) for answer in answers])
