"""The places of files of any format, traces for research, and reports with the epsilon of their release."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray, as_lonlat, as_positive
from geoind.errors import InvalidInputError, plural
from geoind.files.folders import files_in
from geoind.files.formats import Bytes, Reading, kind_of, open_source
from geoind.keys import KeyLike
from geoind.tables.columns import (
    NO_TIME,
    empty,
    listed,
    numbers_of,
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

__all__ = [
    "FileReports",
    "read_lonlat",
    "read_places",
    "read_reports",
    "read_rows",
    "read_traces",
    "read_zones",
]

SNAP = {"1": "person", "2": "time", "3": "lat", "4": "lon", "5": "venue"}
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
    for places, _, _ in read_rows(path, reading or Reading(), places_of(lon, lat, geometry, crs)):
        for place in places:
            yield place[~np.isnan(place[:, 0])]


def read_rows(
    path: str | Path, reading: Reading, given: tuple[LonLat | Points, ...] = (), columns: Iterable[str] = ()
) -> Iterator[tuple[list[FloatArray], pa.RecordBatch, IntArray]]:
    """Yield the places of each batch of a file, NaN in rows without one, further columns, and numbers of rows."""
    try:
        source = open_source(path, reading)
        places = places_in(source.schema, given or _recorded(path, reading, source.schema.names))
        wanted = {name for place in places for name in place.names}
        for rows in source.rows(sorted(wanted.union(only_column(source.schema, name) for name in columns))):
            for bad in rows.bad:
                raise InvalidInputError(f"{source.unit} {bad.row}: {bad.reason}")
            degrees, problems = degrees_of(places, rows.batch, missing=True)
            for row, reason in problems.items():
                raise InvalidInputError(f"{source.unit} {rows.numbers[row]}: {reason}")
            yield degrees, rows.batch, rows.numbers
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None


def _recorded(path: str | Path, reading: Reading, names: Sequence[str]) -> tuple[LonLat | Points, ...]:
    """Return where the file's release record says that its reports are, if they are there."""
    kind = kind_of(path, reading.format)
    if kind.format in ("geojson", "gpx", "vector") or not Path(path).is_file():
        return ()
    places = () if record_of(path) is None else read_promise(path).places
    if not {name for place in places for name in place} <= set(names):
        return ()
    return tuple(LonLat(*place) if len(place) == 2 else Points(*place) for place in places)


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
    has tabs, no header, and a fifth column, the venue. Rows of both without a valid position are left out.

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
    if not path.is_dir() and not _is_snap(path):
        return _traces(path, Reading(), _columns(path, called))
    if called:
        raise InvalidInputError(f"{path} has no names of columns, as a CSV has: leave out {', '.join(called)}")
    if path.is_file():
        return _traces(path, Reading(format="tsv", header=False), SNAP, research=True)
    tables = []
    for file in sorted(path.rglob("*.plt")):
        table = _traces(file, Reading(), {name: name for name in ("lat", "lon", "time")}, research=True)
        table["person"] = (file.parent.parent if file.parent.name == "Trajectory" else file.parent).name
        tables.append(table[["person", "time", "lat", "lon"]])
    if not tables:
        raise InvalidInputError(f"{path} holds no .plt files")
    return pd.concat(tables, ignore_index=True)


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


def _traces(path: Path, reading: Reading, names: Mapping[str, str], *, research: bool = False) -> "DataFrame":
    """Return some columns of a file under other names.

    A row without a person, a time or a place is an error. Of research data, rows without a position are left out:
    Brightkite has 0, 0 for none, and a GeoLife trajectory has latitude 400.
    """
    import pandas as pd

    source, tables = open_source(path, reading), []
    called = {wanted: name for name, wanted in names.items()}
    for rows in source.rows(list(names)):
        flaws = {bad.row: bad.reason for bad in rows.bad}
        (places,), problems = degrees_of([LonLat(called["lon"], called["lat"])], rows.batch, missing=research)
        gone = np.isnan(places[:, 0]) | ~places.any(axis=1) | (np.abs(places) > (180, 90)).any(axis=1)
        values = {wanted: values_of(rows.batch, name) for name, wanted in names.items()}
        seconds, missing, bad = seconds_of(values["time"])
        unnamed = empty(values["person"]) if "person" in values else np.zeros(len(seconds), bool)
        wrong = {*np.flatnonzero(missing | bad | unnamed).tolist(), *problems}
        left = np.flatnonzero(gone) if research else np.arange(0)
        flaws |= {int(rows.numbers[row]): "" for row in wrong - {*left.tolist()}}
        if flaws:
            raise InvalidInputError(
                f"{source.unit} {min(flaws)} of {path} lacks a person, a time or a place "
                f"({plural(len(flaws), 'such row')}); {NO_TIME}"
            )
        table = pd.DataFrame({name: column.to_pylist() for name, column in values.items()})
        table[["lon", "lat"]] = places
        table["time"] = pd.to_datetime(seconds, unit="s", utc=True)
        tables.append(table.drop(index=left.tolist()))
    if research and not sum(map(len, tables)):
        raise InvalidInputError(f"{path} holds no positions")
    joined: DataFrame = pd.concat(tables, ignore_index=True)
    return joined


def _columns(path: Path, called: Mapping[str, str], needed: Sequence[str] = tuple(NAMES)) -> dict[str, str]:
    """Return the names of the columns of persons, times, latitudes and longitudes, and which is which."""
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
        found[names[0]] = wanted
    if len(found) < len(needed):
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

    zones, columns = dict[str, PrivateZone](), _columns(file, {}, ("person", "lat", "lon"))
    own = {wanted: name for name, wanted in columns.items()}
    source = open_source(file, Reading())
    further = [name for name in ("epsilon", "margin") if name in source.schema.names]
    for rows in source.rows([*columns, *further]):
        (places,), problems = degrees_of([LonLat(own["lon"], own["lat"])], rows.batch, missing=False)
        names, codes, nameless = persons_in(values_of(rows.batch, own["person"], names=True), own["person"])
        flaws = {bad.row: bad.reason for bad in rows.bad}
        flaws |= {int(rows.numbers[row]): reason for row, reason in (problems | nameless).items()}
        values = {name: values_of(rows.batch, name) for name in further}
        own_values = {name: (numbers_of(column), empty(column)) for name, column in values.items()}
        for row, (number, code) in enumerate(zip(rows.numbers.tolist(), codes.tolist(), strict=True)):
            if number in flaws:
                continue
            given = {name: float(numbers[row]) for name, (numbers, gone) in own_values.items() if not gone[row]}
            if names[code] in zones:
                flaws[number] = f"person {names[code]!r} has a second zone"
            try:
                lon, lat = places[row].tolist()
                epsilon, margin = (given.get(name, usual[name]) for name in ("epsilon", "margin"))
                zones[names[code]] = PrivateZone.around(
                    lat=lat, lon=lon, epsilon=epsilon, margin=margin, key=key, person_id=names[code]
                )
            except InvalidInputError as error:
                flaws[number] = str(error)
        if flaws:
            first = min(flaws)
            raise InvalidInputError(f"{source.unit} {first}: {flaws[first]}")
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
    lonlats, epsilons = [], []
    for path in files_in(paths):
        if epsilon is None or record_of(path) is not None:
            value = _promised(path)
        else:
            value = as_positive(epsilon, "epsilon")
        if epsilon is not None and not math.isclose(value, epsilon, rel_tol=1e-6):
            raise InvalidInputError(
                f"{path} was made with epsilon {value:.6g} per metre, as its record says, not {epsilon:.6g}"
            )
        places = read_places(path, reading, lon=lon, lat=lat, geometry=geometry, crs=crs)
        lonlats.append(as_lonlat(np.concatenate([np.empty((0, 2)), *places]), path.name))
        epsilons.append(np.full(len(lonlats[-1]), value))
    if not sum(map(len, lonlats)):
        raise InvalidInputError("the files hold no reports")
    return FileReports(np.concatenate(lonlats), np.concatenate(epsilons))


def _promised(path: Path) -> float:
    if record_of(path) is None:
        raise InvalidInputError(f"{path} has no release record: give the epsilon that the reports were made with")
    promise = read_promise(path)
    if promise.mechanism != "SphericalLaplace":
        raise InvalidInputError(
            f"{path} was made by {promise.mechanism}, whose noise its record does not describe: "
            "use estimate_population with the mechanism itself"
        )
    return promise.epsilon
