"""Traces to evaluate sessions on: made-up commuters, GeoLife, check-ins, any table of person, time and place."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from geoind.arrays import FloatArray, as_count, as_positive
from geoind.errors import InvalidInputError, plural
from geoind.evaluation.checkins import is_snap, load_geolife, load_snap
from geoind.tables.columns import LATEST, NO_TIME, seconds_of
from geoind.traces import commuter

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Drive", "commuters", "drives_of", "read_traces"]

NAMES = {
    "person": ("person", "uid", "user", "user_id", "id"),
    "time": ("time", "datetime", "timestamp", "date"),
    "lat": ("lat", "latitude", "y"),
    "lon": ("lon", "lng", "long", "longitude", "x"),
}
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


def read_traces(path: str | Path, columns: Mapping[str, str] | None = None) -> "DataFrame":
    """Return person, time, lat and lon of a GeoLife folder, a SNAP file, or a CSV.

    The columns of a CSV are found by usual names; `columns` says what they are called where they have others, such
    as {"person": "driver"}. Times are dates, UTC without a zone, or seconds since 1970.
    """
    path, called = Path(path), dict(columns or {})
    if not path.exists():
        raise InvalidInputError(f"{path} does not exist")
    if path.is_dir() or is_snap(path):
        if called:
            raise InvalidInputError(f"{path} has no names of columns, as a CSV has: leave out {', '.join(called)}")
        return load_geolife(path) if path.is_dir() else load_snap(path)
    head = _read_csv(path, nrows=0)
    names = {_column(head, wanted, called.get(wanted), path): wanted for wanted in NAMES}
    if len(names) < len(NAMES):
        raise InvalidInputError(f"person, time, lat and lon of {path} must be four different columns")
    # As numbers, 001 and 1 would be one person.
    texts = {column: str for column, wanted in names.items() if wanted == "person"}
    table = _read_csv(path, usecols=list(names), dtype=texts).rename(columns=names)
    seconds, _, _ = seconds_of(pa.array(table["time"], from_pandas=True))
    places = [
        pd.to_numeric(table[name], errors="coerce").abs() <= most for name, most in (("lat", 90), ("lon", 180))
    ]
    good = table["person"].notna() & (np.abs(seconds) <= LATEST) & places[0] & places[1]
    if not good.all():
        row = int(np.argmin(good.to_numpy())) + 1
        raise InvalidInputError(
            f"row {row} of {path} lacks a person, a time or a place "
            f"({plural(int((~good).sum()), 'such row')}); {NO_TIME}"
        )
    table["time"] = pd.to_datetime(seconds, unit="s", utc=True)
    return table


def _read_csv(path: Path, **options: Any) -> "DataFrame":
    try:
        table: DataFrame = pd.read_csv(path, **options)
    except ValueError as error:
        raise InvalidInputError(f"{path} is not a table of traces") from error
    return table


def _column(table: "DataFrame", wanted: str, called: str | None, path: Path) -> str:
    """Return the one column that is meant."""
    if called is not None:
        if called not in table.columns:
            raise InvalidInputError(
                f"{path} has no column {called!r}: it has {', '.join(map(str, table.columns))}"
            )
        return called
    names = NAMES[wanted]
    columns = [column for column in table.columns if str(column).lower() in names]
    if len(columns) != 1:
        raise InvalidInputError(
            f"{path} must have one column for the {wanted}, called one of {', '.join(names)}: "
            "say which it is with --trace PERSON,TIME, --lat and --lon"
        )
    return str(columns[0])


def drives_of(table: "DataFrame", *, every: float = 60.0, most: int = 20) -> list[Drive]:
    """Return the longest drives of a table of person, time, lat and lon: one position in each `every` seconds.

    Examples
    --------
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
