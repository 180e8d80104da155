"""Files of places, whatever their format: which files a folder holds, and the places in them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from geoind.arrays import FloatArray
from geoind.atomic import STANDARD
from geoind.errors import InvalidInputError
from geoind.files.formats import is_known, kind_of
from geoind.files.open import open_source
from geoind.files.source import Reading
from geoind.space.vector_files import DRIVERS
from geoind.tables.places import LonLat, Points, degrees_of, places_in, places_of
from geoind.tables.record import SIDECAR, read_promise, record_of

__all__ = ["files_in", "others_in", "read_places"]


def files_in(paths: Sequence[str | Path]) -> list[Path]:
    """Return files, and for each folder the files of places in it and below.

    Hidden files, those that begin with an underscore, and sidecars are left out.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            if not path.exists() and str(path) != STANDARD:
                raise InvalidInputError(f"no such file: {path}")
            found.append(path)
            continue
        inside = [file for file in _seen_in(path) if is_known(file)]
        if not inside:
            raise InvalidInputError(f"the folder {path} holds no files of places")
        found += inside
    return found


def others_in(folder: Path) -> list[Path]:
    """Return the files of a folder and below that are neither taken nor part of one that is."""
    seen = _seen_in(folder)
    # A shapefile is several files of one name.
    whole = {file.with_suffix("") for file in seen if file.suffix.lower() in DRIVERS}
    return [file for file in seen if not is_known(file) and file.with_suffix("") not in whole]


def _seen_in(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.rglob("*")
        if file.is_file()
        and not file.name.endswith(SIDECAR)
        and not any(part[0] in "._" for part in file.relative_to(folder).parts)
    )


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
        Whatever `obfuscate_file` reads.
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
    if kind is None or kind.format in ("geojson", "gpx", "vector") or not Path(path).is_file():
        return ()
    if record_of(path) is None:
        return ()
    places = read_promise(path).places
    if not {name for place in places for name in place} <= set(names):
        return ()
    return tuple(LonLat(*place) if len(place) == 2 else Points(*place) for place in places)
