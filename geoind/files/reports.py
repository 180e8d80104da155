"""Files of reports, read for analysis: the places, and the epsilon that they were made with."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geoind.arrays import FloatArray, as_lonlat, as_positive
from geoind.errors import InvalidInputError
from geoind.files.columns import coordinate_columns
from geoind.files.delimited import Delimited
from geoind.files.formats import STANDARD, decompressed, kind_of, opened
from geoind.files.geojson import FeatureCollection
from geoind.files.ndjson import LineJson
from geoind.files.text import TextFormat
from geoind.tables.promise import read_promise, sidecar_of

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
    *paths: str | Path, epsilon: float | None = None, lon: str | None = None, lat: str | None = None
) -> FileReports:
    r"""Return the reports of one or more files, each with the epsilon that its file promises.

    Reads what `obfuscate_file` writes; a folder stands for its Parquet files. Records without a place are left
    out.

    Parameters
    ----------
    paths : path
        Files or folders.
    epsilon : float, optional
        Per metre, for files that do not tell; the files' own word is not asked for then.
    lon, lat : str, optional
        Columns of the coordinates, by default those called lon, lng, long or longitude, and lat or latitude.

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
    for path in _files(paths):
        value = _promised(path) if epsilon is None else as_positive(epsilon, "epsilon")
        lonlats.append(as_lonlat(_lonlat(path, lon, lat), path.name))
        epsilons.append(np.full(len(lonlats[-1]), value))
    if not sum(map(len, lonlats)):
        raise InvalidInputError("the files hold no reports")
    return FileReports(np.concatenate(lonlats), np.concatenate(epsilons))


def _files(paths: tuple[str | Path, ...]) -> Iterator[Path]:
    for path in map(Path, paths):
        if not path.exists():
            raise InvalidInputError(f"no such file: {path}")
        if not path.is_dir():
            yield path
            continue
        inside = sorted(file for file in path.rglob("*.*") if _format(file) == "parquet")
        if not inside:
            raise InvalidInputError(f"the folder {path} holds no Parquet files")
        yield from inside


def _format(path: Path) -> str:
    kind = kind_of(str(path))
    return STANDARD if kind is None else kind.format


def _promised(path: Path) -> float:
    try:
        promise = read_promise(path)
    except InvalidInputError as error:
        if sidecar_of(path).exists():
            raise
        raise InvalidInputError(f"{error}; give the epsilon that the reports were made with") from None
    if promise.mechanism != "SphericalLaplace":
        raise InvalidInputError(
            f"{path} was made by {promise.mechanism}, whose noise the file does not describe: "
            "use estimate_population with the mechanism itself"
        )
    return promise.epsilon


def _lonlat(path: Path, lon: str | None, lat: str | None) -> FloatArray:
    """Return the places in a file, without those that are missing."""
    name = _format(path)
    readers: dict[str, TextFormat] = {
        "csv": Delimited(b",", lon=lon, lat=lat, keep_missing=True),
        "tsv": Delimited(b"\t", lon=lon, lat=lat, keep_missing=True),
        "ndjson": LineJson(lon, lat, keep_missing=True),
        "geojson": FeatureCollection(keep_missing=True),
    }
    if name in readers:
        return _of_text(path, readers[name])
    try:
        return _of_parquet(path, lon, lat) if name == "parquet" else _of_geometry(path)
    except InvalidInputError:
        raise
    except (ValueError, OSError, RuntimeError):
        # Not the reader's own words: they may quote the file.
        raise InvalidInputError(f"{path} cannot be read as a file of reports") from None


def _of_text(path: Path, reader: TextFormat) -> FloatArray:
    kind, parts = kind_of(str(path)), [np.empty((0, 2))]
    with opened(str(path)) as raw:
        try:
            for batch in reader.batches(decompressed(raw, kind.compression if kind else "")):
                for problem in batch.problems:
                    raise InvalidInputError(f"{path}, line {problem.line}: {problem.reason}")
                parts.append(batch.lonlat)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise InvalidInputError(f"{path} is not, or not completely, a compressed file") from None
    return np.concatenate(parts)


def _of_parquet(path: Path, lon: str | None, lat: str | None) -> FloatArray:
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(path)
    if b"geo" in (schema.metadata or {}):
        import geopandas

        return _of_points(geopandas.read_parquet(path).geometry)
    columns = list(coordinate_columns(schema.names, lon, lat))
    table = pyarrow.parquet.read_table(path, columns=columns).to_pandas()
    return np.asarray(table[columns].dropna(), dtype=np.float64).reshape(-1, 2)


def _of_geometry(path: Path) -> FloatArray:
    import geopandas

    return _of_points(geopandas.read_file(path).geometry)


def _of_points(geometry: Any) -> FloatArray:
    present = geometry[~(geometry.isna() | geometry.is_empty)]
    if present.crs is None:
        raise InvalidInputError("the file's places have no CRS")
    degrees = present.to_crs("EPSG:4326")
    return np.column_stack([degrees.x, degrees.y])
