"""Files of reports, read for analysis: the places, and the epsilon that they were made with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from geoind.arrays import FloatArray, as_lonlat, as_positive
from geoind.errors import InvalidInputError
from geoind.files.places import files_in, read_places
from geoind.files.source import Reading
from geoind.tables.record import read_promise, record_of

__all__ = ["FileReports", "read_reports"]


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
