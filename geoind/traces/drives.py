"""Drives to evaluate sessions on: made-up commuters, and those of a table of person, time and place."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import FloatArray, as_count, as_positive
from geoind.errors import InvalidInputError
from geoind.traces import commuter

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Drive", "commuters", "drives_of"]

GAP = 1200.0
"""Seconds without a position after which another drive begins."""
LEAST = 10
"""Positions that a drive has at least."""


@dataclass(frozen=True, eq=False)
class Drive:
    """One person's positions without a long gap: times in seconds, (n, 2) longitudes and latitudes."""

    person: str
    times: FloatArray
    lonlat: FloatArray

    @property
    def hours(self) -> float:
        """How long it took."""
        return float(self.times[-1] - self.times[0]) / 3600


def commuters(*, persons: int = 6, days: int = 2, every: float = 300.0) -> list[Drive]:
    """Return made-up commuters, each a trace of some days.

    Examples
    --------
    >>> len(commuters(persons=2, days=1)[0].times)
    288
    """
    made = (commuter(days=days, every=every, rng=number) for number in range(as_count(persons, "persons")))
    return [Drive(f"commuter {number}", times, lonlat) for number, (times, lonlat) in enumerate(made)]


def drives_of(table: "DataFrame", *, every: float = 60.0, most: int = 20) -> list[Drive]:
    """Return the longest drives of a table of person, time, lat and lon: one position in each `every` seconds.

    Examples
    --------
    >>> import pandas as pd
    >>> start = pd.Timestamp("2024-05-01", tz="UTC")
    >>> table = pd.DataFrame({"person": "ana", "lat": 48.86, "lon": 2.29,
    ...                       "time": [start + pd.Timedelta(minutes=k) for k in range(30)]})
    >>> [len(drive.times) for drive in drives_of(table)]
    [30]
    """
    every = as_positive(every, "every")
    drives = []
    for person, rows in table.groupby("person", sort=True):
        seconds = rows["time"].to_numpy("datetime64[ns]").astype(np.int64) / 1e9
        order = np.argsort(seconds, kind="stable")
        seconds, lonlat = seconds[order], rows[["lon", "lat"]].to_numpy(np.float64)[order]
        _, first = np.unique(np.floor(seconds / every), return_index=True)
        seconds, lonlat = seconds[first], lonlat[first]
        ends = np.flatnonzero(np.diff(seconds) > max(GAP, 2 * every)) + 1
        for times, places in zip(np.split(seconds, ends), np.split(lonlat, ends), strict=True):
            if len(times) >= LEAST:
                drives.append(Drive(str(person), times, places))
    if not drives:
        raise InvalidInputError(f"no drive has {LEAST} positions without a gap of {GAP / 60:.0f} minutes")
    return sorted(drives, key=lambda drive: -drive.hours)[: as_count(most, "most")]
