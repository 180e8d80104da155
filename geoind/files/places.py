"""Places of a file, read for analysis: reports, or public places."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.files.formats import is_known, kind_of
from geoind.files.job import source_of
from geoind.files.sources import Reading, Wanted
from geoind.mechanisms.sphere import SphericalLaplace
from geoind.space.vector_files import DRIVERS
from geoind.tables import LonLat, Points, Recipe, places_of
from geoind.tables.delivery import STANDARD
from geoind.tables.promise import read_promise, record_of

__all__ = ["Where", "files_in", "others_in", "read_places"]

SIDECAR = ".geoind.json"


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


class Where(TypedDict, total=False):
    """Where in a file its places are, in the words of every command and call."""

    lon: str | Sequence[str] | None
    lat: str | Sequence[str] | None
    geometry: str | None
    crs: str | None


def read_places(path: str | Path, reading: Reading | None = None, **where: Unpack[Where]) -> Iterator[FloatArray]:
    r"""Yield the places of a file, batch by batch, as (n, 2) lon/lat degrees; rows without a place are left out.

    Parameters
    ----------
    path : path
        Whatever `obfuscate_file` reads and writes.
    reading : Reading, optional
        Format, delimiter, quotes, header, layer, where the file does not tell.
    **where
        `lon` and `lat`, or `geometry` and `crs`; by default what the file's promise says, what it declares, or
        the usual names.

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
    kind = kind_of(path, reading.format)
    if kind is None:
        raise InvalidInputError("standard input does not tell its format: give it")
    places = places_of(where.get("lon"), where.get("lat"), where.get("geometry"), where.get("crs"))
    # Nothing is published here, so tracks are as good as waypoints.
    times = ("time",) if kind.format == "gpx" else ()
    wanted = Wanted(places=places or _promised(path, kind.format), times=times, every_column=False)
    source = source_of(path, kind, reading, wanted)
    # Nothing is published here, so everything may stand beside a place.
    lenient = Recipe(mechanism=SphericalLaplace(0.01), places=wanted.places, missing="keep", order="keep")
    try:
        for rows in source.rows():
            recipe = source.recipe(lenient, rows)
            table = Recipe(
                mechanism=recipe.mechanism,
                places=recipe.places,
                keep=_everything(rows.schema),
                missing="keep",
                order="keep",
            ).table(rows.schema)
            for problem in rows.problems:
                raise InvalidInputError(f"{source.unit} {problem.line}: {problem.reason}")
            examined = table.examine(rows.batch, beside=rows.beside)
            for bad in examined.problems:
                raise InvalidInputError(f"{source.unit} {rows.line(bad.row)}: {bad.reason}")
            for truth in examined.truths:
                yield truth[~np.isnan(truth[:, 0])]
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None


def _promised(path: str | Path, name: str) -> tuple[LonLat | Points, ...]:
    """Return where the file's own promise says that its reports are."""
    if name in ("geojson", "gpx", "ogr") or not Path(path).is_file():
        return ()
    if record_of(path) is None:
        return ()
    places = read_promise(path).places
    if name == "ndjson" and any(place[0].startswith("geometry.") for place in places):
        return ()
    return tuple(LonLat(*place) if len(place) == 2 else Points(*place) for place in places)


def _everything(schema: pa.Schema) -> tuple[str, ...]:
    return (*schema.names, *(entry.decode(errors="replace") for entry in schema.metadata or {}))
