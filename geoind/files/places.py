"""The places of files of any format, and the reports of files with the epsilon that they were made with."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from geoind.arrays import FloatArray, as_lonlat, as_positive
from geoind.errors import InvalidInputError
from geoind.files.folders import files_in
from geoind.files.formats import Reading, kind_of, open_source
from geoind.tables.places import LonLat, Points, degrees_of, places_in, places_of
from geoind.tables.record import read_promise, record_of

__all__ = ["FileReports", "read_places", "read_reports"]


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
    reading = reading or Reading()
    try:
        source = open_source(path, reading)
        given = places_of(lon, lat, geometry, crs) or _recorded(path, reading, source.schema.names)
        columns = places_in(source.schema, given)
        for rows in source.rows([name for place in columns for name in place.names]):
            for bad in rows.bad:
                raise InvalidInputError(f"{source.unit} {bad.row}: {bad.reason}")
            places, problems = degrees_of(columns, rows.batch, missing=True)
            for row, reason in problems.items():
                raise InvalidInputError(f"{source.unit} {rows.numbers[row]}: {reason}")
            for place in places:
                yield place[~np.isnan(place[:, 0])]
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None


def _recorded(path: str | Path, reading: Reading, names: Sequence[str]) -> tuple[LonLat | Points, ...]:
    """Return where the file's release record says that its reports are, if they are there."""
    kind = kind_of(path, reading.format)
    if kind.format in ("geojson", "gpx", "vector") or not Path(path).is_file():
        return ()
    if record_of(path) is None:
        return ()
    places = read_promise(path).places
    if not {name for place in places for name in place} <= set(names):
        return ()
    return tuple(LonLat(*place) if len(place) == 2 else Points(*place) for place in places)


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
