"""The places of files of any format, traces for research, and reports with the epsilon of their release."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, as_lonlat, as_positive
from geoind.errors import InvalidInputError
from geoind.files.folders import files_in
from geoind.files.formats import Bytes, Reading, kind_of, open_source
from geoind.keys import KeyLike
from geoind.tables.columns import (
    NO_TIME,
    empty,
    listed,
    only_column,
    persons_in,
    seconds_of,
    values_of,
)
from geoind.tables.places import LonLat, Points, degrees_of, places_in, places_of
from geoind.tables.sidecars import read_promise, record_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from geoind.traces.zones import PrivateZone

SNAP = {"person": "1", "time": "2", "lat": "3", "lon": "4"}
SNAP_FIELDS = 5
NAMES = {
    "person": ("person", "uid", "user", "user_id", "id"),
    "time": ("time", "datetime", "timestamp", "date"),
    "lat": ("lat", "latitude", "y"),
    "lon": ("lon", "lng", "long", "longitude", "x"),
}


def read_places(
    path: str | Path,
    reading: Reading | None = None,
    *,
    lon: str | Sequence[str] | None = None,
    lat: str | Sequence[str] | None = None,
    geometry: str | None = None,
    crs: str | None = None,
) -> Iterator[FloatArray]:
    r"""Yield the places of a file, batch by batch, as (n, 2) lon/lat degrees; rows without a place are left out.

    Parameters
    ----------
    path : path
        A file that `obfuscate_file` can read.
    reading : Reading, optional
        Format, delimiter, header, layer, where the file does not show it.
    lon, lat, geometry, crs : str, optional
        Where the places are; by default as the file's release record has it, as the file declares it, or the usual
        names.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "reports.csv")
    ...     _ = file.write_text("lat;lon\n48,86;2,35\n")
    ...     np.concatenate(list(read_places(file)))
    array([[ 2.35, 48.86]])
    """
    for rows in read_rows(path, reading, places_of(lon, lat, geometry, crs)):
        for place in rows["places"].transpose(1, 0, 2):
            yield place[~np.isnan(place[:, 0])]


def read_rows(
    path: str | Path,
    reading: Reading | None = None,
    places: tuple[LonLat | Points, ...] = (),
    columns: Mapping[str, str] | None = None,
    *,
    missing: bool = True,
    research: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield rows of a file, batch by batch: `places`, one array of degrees each, `numbers`, and named columns.

    Parameters
    ----------
    path, reading
        As in `read_places`.
    places : tuple of LonLat or Points
        Where the places are; by default as in `read_places`.
    columns : mapping, optional
        Names of columns of "person", "time" (in seconds), "id" (text); others are numbers, NaN where empty.
    missing : bool
        Whether rows without a place are good.
    research : bool
        Whether rows without a valid place are left out: Brightkite has 0, 0 for none, and a GeoLife trajectory has
        latitude 400.
    """
    reading, named = reading or Reading(), dict(columns or {})
    try:
        source = open_source(path, reading)
        places = places_in(source.schema, places or _recorded(path, reading, source.schema.names))
        for name in named.values():
            only_column(source.schema, name)
        for rows in source.rows([*named.values(), *(name for place in places for name in place.names)]):
            degrees, problems = degrees_of(places, rows.batch, missing=missing)
            found = {what: _values(what, name, rows.batch, problems) for what, name in named.items()}
            found |= {"places": np.stack(degrees, axis=1), "numbers": rows.numbers}
            if research:
                zero, far = ~degrees[0].any(axis=1), (np.abs(degrees[0]) > (180, 90)).any(axis=1)
                kept = ~(np.isnan(degrees[0][:, 0]) | zero | far)
                found = {what: values[kept] for what, values in found.items()}
                problems = {row: reason for row, reason in problems.items() if kept[row]}
            flaws = {bad.row: bad.reason for bad in rows.bad}
            flaws |= {int(rows.numbers[row]): reason for row, reason in problems.items()}
            if flaws:
                raise InvalidInputError(f"{source.unit} {min(flaws)}: {flaws[min(flaws)]}")
            yield found
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None


def _values(what: str, name: str, batch: pa.RecordBatch, problems: dict[int, str]) -> Any:
    """Return the values of a column, and add which rows have a bad one to the problems."""
    values = values_of(batch, name, names=what == "person")
    if what == "person":
        names, codes, nameless = persons_in(values, name)
        problems |= nameless
        return np.array([*names, ""], object)[codes]
    if what == "time":
        seconds, missing, bad = seconds_of(values)
        problems |= dict.fromkeys(np.flatnonzero(missing | bad).tolist(), NO_TIME)
        return seconds
    if what == "id":
        return np.array([str(value) for value in values.to_pylist()], object)
    numbers = np.array([_number(value) for value in values.to_pylist()], np.float64)
    # What is no number is not positive either.
    return np.where(empty(values), np.nan, np.where(np.isnan(numbers), -1.0, numbers))


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return np.nan


def _recorded(path: str | Path, reading: Reading, names: Sequence[str]) -> tuple[LonLat | Points, ...]:
    """Return where the file's release record says that its reports are, if these are columns."""
    kind = kind_of(path, reading.format)
    if kind.format in ("geojson", "gpx", "vector") or not Path(path).is_file() or record_of(path) is None:
        return ()
    places = read_promise(path).places
    known = {name for place in places for name in place} <= set(names)
    return tuple(LonLat(*place) if len(place) == 2 else Points(*place) for place in places if known)


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
    place, batches = Path(path), [np.empty((0, 2))]
    if reading in (None, Reading()) and not any((lon, lat, geometry, crs)):
        is_geolife = place.is_dir() and next(place.rglob("*.plt"), None) is not None
        if is_geolife or _is_snap(place):
            return np.asarray(read_traces(place)[["lon", "lat"]].to_numpy(np.float64))
    for file in files_in([place]):
        batches += read_places(file, reading, lon=lon, lat=lat, geometry=geometry, crs=crs)
    return np.concatenate(batches)


def read_traces(path: str | Path, columns: Mapping[str, str] | None = None) -> "DataFrame":
    r"""Return person, time, lat and lon of a GeoLife folder, a SNAP file, or a table in another file.

    In a GeoLife folder the person is the folder that holds `Trajectory/*.plt`. A SNAP file (Gowalla, Brightkite)
    has tabs, no header, and a fifth column, the venue, which is not read. Rows of both without a valid position
    are left out.

    Parameters
    ----------
    path : path
        The folder or the file; it may be compressed.
    columns : mapping, optional
        What the columns of a table are called where they have other names, such as {"person": "driver"}. Times are
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
    import pandas as pd

    path, called = Path(path), dict(columns or {})
    if not path.exists():
        raise InvalidInputError(f"{path} does not exist")
    research, reading, files = path.is_dir() or _is_snap(path), Reading(), [path]
    if called and research:
        raise InvalidInputError(f"{path} has no names of columns, as a CSV has: leave out {', '.join(called)}")
    if path.is_dir():
        files, called = sorted(path.rglob("*.plt")), {name: name for name in ("time", "lat", "lon")}
    elif research:
        reading, called = Reading(format="tsv", header=False), dict(SNAP)
    else:
        called = _columns(path, called)
    places = (LonLat(called.pop("lon"), called.pop("lat")),)
    tables = []
    for file in files:
        folder = file.parent.parent if file.parent.name == "Trajectory" else file.parent
        for rows in read_rows(file, reading, places, called, missing=research, research=research):
            lons, lats = rows["places"][:, 0].T
            time = pd.to_datetime(rows["time"], unit="s", utc=True)
            about = {"person": rows.get("person", folder.name), "time": time, "lat": lats, "lon": lons}
            tables.append(pd.DataFrame(about))
    if research and not sum(map(len, tables)):
        raise InvalidInputError(f"{path} holds no positions, or no .plt files")
    joined: DataFrame = pd.concat(tables, ignore_index=True)
    return joined


def _is_snap(path: Path) -> bool:
    """Return whether a file begins like check-ins: tabs, no header, a place in the third and fourth field."""
    if not path.is_file() or not path.name.endswith((".txt", ".csv", ".tsv", ".gz")):
        return False
    try:
        with Bytes(path, "gzip" if path.suffix == ".gz" else "").opened() as stream:
            fields = stream.readline(1 << 16).split(b"\t")
        return len(fields) == SNAP_FIELDS and all(abs(float(field)) <= 180 for field in fields[2:4])
    except ValueError:
        # A header, or bytes that are not compressed.
        return False


def _columns(path: Path, called: Mapping[str, str], needed: Sequence[str] = tuple(NAMES)) -> dict[str, str]:
    """Return the names of the columns of persons, times, latitudes and longitudes."""
    there, found = open_source(path, Reading()).schema.names, dict[str, str]()
    for wanted in needed:
        usual = NAMES[wanted]
        names = [name for name in there if name == called.get(wanted) or name.lower() in usual]
        names = [name for name in names if name == called.get(wanted, name)]
        if wanted in called and not names:
            raise InvalidInputError(f"{path} has no column {called[wanted]!r}: it has {listed(there)}")
        if len(names) != 1:
            raise InvalidInputError(
                f"{path} must have one column for the {wanted}, called one of {', '.join(usual)}: "
                "say which it is with `columns=`"
            )
        found[wanted] = names[0]
    if len({*found.values()}) < len(needed):
        raise InvalidInputError(f"{', '.join(needed)} of {path} must be different columns")
    return found


def read_zones(
    path: str | Path, *, key: KeyLike, epsilon: float, margin: float = 200.0
) -> "tuple[PrivateZone, ...]":
    r"""Return private zones of persons from a table of homes: person, lat, lon, and perhaps margin and epsilon.

    Parameters
    ----------
    path : path
        A file that `obfuscate_file` can read. Columns have the usual names; other columns are not read. No person
        has two rows.
    key : Key or bytes
        32 secret bytes for zones alone: under one key the same home has the same centre in every release.
    epsilon, margin : float
        Per metre, and in metres, for rows without their own.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "zones.csv")
    ...     _ = file.write_text("person,lat,lon,margin\nana,48.8584,2.2945,300\n")
    ...     [zone.person_id for zone in read_zones(file, key=bytes(32), epsilon=0.01)]
    ['ana']
    """
    if not Path(path).is_file():
        raise InvalidInputError(f"zones: {path} does not exist")
    try:
        return _zones(Path(path), key, {"epsilon": epsilon, "margin": margin})
    except InvalidInputError as error:
        raise InvalidInputError(f"zones of {path}: {error}") from None


def _zones(file: Path, key: KeyLike, usual: dict[str, float]) -> "tuple[PrivateZone, ...]":
    from geoind.traces.zones import PrivateZone, zones_of_persons

    zones, named = dict[str, PrivateZone](), _columns(file, {}, ("person", "lat", "lon"))
    places = (LonLat(named.pop("lon"), named.pop("lat")),)
    named |= {name: name for name in usual if name in open_source(file, Reading()).schema.names}
    for rows in read_rows(file, None, places, named, missing=False):
        for row, (number, name) in enumerate(zip(rows["numbers"].tolist(), rows["person"].tolist(), strict=True)):
            lon, lat = rows["places"][row, 0].tolist()
            given = {what: float(rows[what][row]) for what in usual if what in rows}
            given = {what: value for what, value in given.items() if not np.isnan(value)}
            try:
                if name in zones:
                    raise InvalidInputError(f"person {name!r} has a second zone")
                epsilon, margin = (given.get(what, usual[what]) for what in ("epsilon", "margin"))
                zones[name] = PrivateZone.around(
                    lat=lat, lon=lon, epsilon=epsilon, margin=margin, key=key, person_id=name
                )
            except InvalidInputError as error:
                raise InvalidInputError(f"row {number}: {error}") from None
    return zones_of_persons(zones.values())


@dataclass(frozen=True, eq=False)
class FileReports:
    """Reports from files.

    Attributes
    ----------
    lonlat : (n, 2) array
        Degrees, longitude first.
    epsilon : (n,) array
        The epsilon of `SphericalLaplace` that each was made with, per metre.
    """

    lonlat: FloatArray
    epsilon: FloatArray


def read_reports(
    *paths: str | Path,
    epsilon: float | None = None,
    reading: Reading | None = None,
    lon: str | Sequence[str] | None = None,
    lat: str | Sequence[str] | None = None,
    geometry: str | None = None,
    crs: str | None = None,
) -> FileReports:
    r"""Return the reports of one or more files, each with the epsilon of its release record.

    Reads what `obfuscate_file` writes; a folder stands for its files. Records without a place are left out.

    Parameters
    ----------
    paths : path
        Files or folders.
    epsilon : float, optional
        Per metre, for files without a release record; a record with another epsilon is an error.
    reading, lon, lat, geometry, crs
        As in `geoind.files.read_places`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "reports.csv")
    ...     _ = file.write_text("lon,lat\n2.35000,48.86000\n2.36000,48.85000\n")
    ...     reports = read_reports(file, epsilon=0.01)
    >>> reports.lonlat.shape, reports.epsilon
    ((2, 2), array([0.01, 0.01]))
    """
    lonlats, epsilons = [np.empty((0, 2))], [np.empty(0)]
    for path in files_in(paths):
        value = _promised(path, epsilon)
        places = read_places(path, reading, lon=lon, lat=lat, geometry=geometry, crs=crs)
        lonlats.append(as_lonlat(np.concatenate([lonlats[0], *places]), path.name))
        epsilons.append(np.full(len(lonlats[-1]), value))
    if not sum(map(len, lonlats)):
        raise InvalidInputError("the files hold no reports")
    return FileReports(np.concatenate(lonlats), np.concatenate(epsilons))


def _promised(path: Path, epsilon: float | None) -> float:
    """Return the epsilon of a file's record, which must be the given one, or that one if there is no record."""
    if record_of(path) is None:
        if epsilon is None:
            raise InvalidInputError(
                f"{path} has no release record: give `epsilon=`, with which the reports were made"
            )
        return as_positive(epsilon, "epsilon")
    promise = read_promise(path)
    if promise.mechanism != "SphericalLaplace":
        raise InvalidInputError(
            f"{path} was made by {promise.mechanism}, whose noise its record does not describe: "
            "use estimate_population with the mechanism itself"
        )
    if epsilon is not None and not math.isclose(promise.epsilon, epsilon, rel_tol=1e-6):
        raise InvalidInputError(
            f"{path} was made with epsilon {promise.epsilon:.6g} per metre, as its record says, not {epsilon:.6g}"
        )
    return promise.epsilon
