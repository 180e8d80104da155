"""Research data: GeoLife folders, SNAP check-ins and tables of traces, as positions or as data frames."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError, plural
from geoind.files.folders import files_in
from geoind.files.formats import Bytes, Reading
from geoind.files.places import read_places
from geoind.tables.columns import LATEST, NO_TIME, seconds_of

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["read_lonlat", "read_traces"]

SNAP = ["person", "time", "lat", "lon", "venue"]
GEOLIFE = ["lat", "lon", "zero", "altitude", "days", "date", "clock"]
PLT_HEADER_LINES = 6
NAMES = {
    "person": ("person", "uid", "user", "user_id", "id"),
    "time": ("time", "datetime", "timestamp", "date"),
    "lat": ("lat", "latitude", "y"),
    "lon": ("lon", "lng", "long", "longitude", "x"),
}


def read_lonlat(
    path: str | Path,
    reading: Reading | None = None,
    *,
    lon: str | Sequence[str] | None = None,
    lat: str | Sequence[str] | None = None,
    geometry: str | None = None,
    crs: str | None = None,
) -> FloatArray:
    r"""Return the positions of a GeoLife folder, a SNAP file, or any file or folder that `geoind obfuscate` reads.

    Parameters
    ----------
    path : path
        A file or a folder.
    reading, lon, lat, geometry, crs
        As in `geoind.files.read_places`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "trips.csv")
    ...     _ = file.write_text("lat,lon\n48.86,2.35\n")
    ...     read_lonlat(file)
    array([[ 2.35, 48.86]])
    """
    place = _existing(path)
    if reading in (None, Reading()) and not any((lon, lat, geometry, crs)):
        is_geolife = place.is_dir() and next(place.rglob("*.plt"), None) is not None
        if is_geolife or _is_snap(place):
            return np.asarray(read_traces(place)[["lon", "lat"]].to_numpy(np.float64))
    batches = [np.empty((0, 2))]
    for file in files_in([place]):
        batches += read_places(file, reading, lon=lon, lat=lat, geometry=geometry, crs=crs)
    return np.concatenate(batches)


def read_traces(path: str | Path, columns: Mapping[str, str] | None = None) -> "DataFrame":
    r"""Return person, time, lat and lon of a GeoLife folder, a SNAP file, or a CSV.

    In a GeoLife folder the person is the folder that holds `Trajectory/*.plt`. A SNAP file (Gowalla, Brightkite)
    has tabs, no header, and a fifth column, the venue. Rows of both without a valid position are left out.

    Parameters
    ----------
    path : path
        The folder or the file; it may be compressed.
    columns : mapping, optional
        What the columns of a CSV are called where they have other names, such as {"person": "driver"}. Times are
        dates, UTC without a zone, or seconds since 1970.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "check-ins.txt")
    ...     _ = file.write_text("007\t2010-10-12T00:21:28Z\t40.5\t-73.75\t23261\n")
    ...     read_traces(file)["person"].tolist()
    ['007']
    """
    path, called = _existing(path), dict(columns or {})
    if path.is_dir() or _is_snap(path):
        if called:
            raise InvalidInputError(f"{path} has no names of columns, as a CSV has: leave out {', '.join(called)}")
        return _geolife(path) if path.is_dir() else _snap(path)
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


def _existing(path: str | Path) -> Path:
    if not Path(path).exists():
        raise InvalidInputError(f"{path} does not exist")
    return Path(path)


def _is_snap(path: Path) -> bool:
    """Return whether a file begins like check-ins: tabs, no header, a place in the third and fourth field."""
    if not path.is_file() or not path.name.endswith((".txt", ".csv", ".tsv", ".gz")):
        return False
    try:
        with Bytes(path, "gzip" if path.suffix == ".gz" else "").opened() as stream:
            fields = stream.readline(1 << 16).split(b"\t")
        return len(fields) == len(SNAP) and all(abs(float(field)) <= 180 for field in fields[2:4])
    except ValueError:
        # A header, or bytes that are not compressed.
        return False


def _snap(path: Path) -> "DataFrame":
    table = _read_csv(path, sep="\t", header=None, names=SNAP, dtype={"person": "string", "venue": "string"})
    known = _valid(table, path)
    if known.empty:
        raise InvalidInputError(f"{path} holds no positions; a SNAP file has {', '.join(SNAP)}")
    return known


def _geolife(folder: Path) -> "DataFrame":
    files = sorted(folder.rglob("*.plt"))
    if not files:
        raise InvalidInputError(f"{folder} holds no .plt files")
    tables = []
    for file in files:
        texts = dict.fromkeys(("date", "clock"), "string")
        table = _read_csv(file, skiprows=PLT_HEADER_LINES, header=None, names=GEOLIFE, dtype=texts)
        table["time"] = table["date"] + " " + table["clock"]
        table["person"] = (file.parent.parent if file.parent.name == "Trajectory" else file.parent).name
        tables.append(_valid(table, file)[["person", "time", "lat", "lon"]])
    return pd.concat(tables, ignore_index=True).astype({"person": "string"})


def _valid(table: "DataFrame", path: Path) -> "DataFrame":
    """Return the rows with a position: Brightkite has 0, 0 for none, and a GeoLife trajectory has latitude 400."""
    try:
        table = table.astype({"lat": "float64", "lon": "float64"})
        table["time"] = pd.to_datetime(table["time"], utc=True)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"{path} is not a table of traces") from error
    on_earth = table["lat"].between(-90, 90) & table["lon"].between(-180, 180)
    return table[on_earth & ~((table["lat"] == 0) & (table["lon"] == 0))].reset_index(drop=True)


def _read_csv(path: Path, **options: Any) -> "DataFrame":
    try:
        table: DataFrame = pd.read_csv(path, **options)
    except ValueError as error:
        raise InvalidInputError(f"{path} is not a table of traces") from error
    return table


def _column(table: "DataFrame", wanted: str, called: str | None, path: Path) -> str:
    """Return the name of the column of persons, times, latitudes or longitudes."""
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
