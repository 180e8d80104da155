"""Where the record of a release is kept: read from a file or a folder of reports, or written next to it."""

from pathlib import Path
from typing import cast

from geoind.accounting.record import (
    ATTRS_KEY,
    MOST_BYTES,
    PARQUET_KEY,
    SIDECAR,
    ReleaseRecord,
    as_object,
    sidecar_of,
)
from geoind.errors import InvalidInputError


def write_sidecar(path: str | Path, record: ReleaseRecord) -> Path:
    """Write the record of a file or folder of reports next to it, for `read_promise`, and return its path.

    Write it after the reports: it states nothing about rows that are written to the folder later.

    Examples
    --------
    >>> import tempfile
    >>> from geoind import SphericalLaplace
    >>> with tempfile.TemporaryDirectory() as name:
    ...     Path(name, "reports").mkdir()
    ...     _ = write_sidecar(Path(name, "reports"), ReleaseRecord.of(SphericalLaplace(0.01), unit="each row"))
    ...     read_promise(Path(name, "reports")).epsilon
    0.01
    """
    sidecar = sidecar_of(path)
    sidecar.write_text(f"{record.to_json()}\n", encoding="utf-8")
    return sidecar


def read_promise(path: str | Path) -> ReleaseRecord:
    r"""Return the record of a file of reports, or of a folder whose files are one release.

    The files of a folder that has a sidecar need no records of their own.

    Raises
    ------
    InvalidInputError
        If there is no record, one with an invalid member, or files of a folder have different ones.

    Examples
    --------
    >>> import tempfile
    >>> from geoind import EACH_ROW, obfuscate_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     places, reports = Path(folder, "places.csv"), Path(folder, "reports.csv")
    ...     _ = places.write_text("lon,lat\n2.2945,48.8584\n")
    ...     _ = obfuscate_file(places, reports, person=EACH_ROW, epsilon=0.01)
    ...     read_promise(reports).epsilon
    0.01
    """
    path = Path(path)
    own, files = record_of(path), visible_in(path) if path.is_dir() else []
    if own is None and not files:
        raise InvalidInputError(
            f"{path} has no release record: no {sidecar_of(path).name}, no entry in Parquet metadata"
        )
    recorded = {file for file in files if record_of(file) is not None}
    if own is None:
        # A shapefile is several files of one name.
        shapes = {file.with_suffix("") for file in recorded if file.suffix.lower() == ".shp"}
        recorded |= {file for file in files if file.with_suffix("") not in shapes}
    found = set() if own is None else {ReleaseRecord.from_json(own, path.name)}
    found |= {read_promise(file) for file in recorded}
    if len(found) != 1:
        raise InvalidInputError(
            f"{path} must hold the files of one release, with one record: there are {len(found)} records"
        )
    return found.pop()


def visible_in(folder: Path) -> list[Path]:
    """Return the files of a folder and below, without sidecars, hidden files and those that begin with `_`."""
    inside = [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.endswith(SIDECAR)]
    return [file for file in inside if not any(part[0] in "._" for part in file.relative_to(folder).parts)]


def record_of(path: str | Path) -> str | bytes | None:
    """Return the release record of a file as it is, not checked; None where there is none."""
    path = Path(path)
    if not path.exists():
        raise InvalidInputError(f"no such file: {path}")
    record = _parquet_metadata(path)
    sidecar = sidecar_of(path)
    if record is None and sidecar.is_file():
        try:
            with sidecar.open("rb") as file:
                # One byte more than a record may have: `from_json` refuses it.
                record = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise InvalidInputError(f"release record of {path.name!r}: {error.strerror}") from None
    return record


def _parquet_metadata(path: Path) -> str | bytes | None:
    if not path.is_file():
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                return None
        metadata = pq.read_metadata(path).metadata or {}
    except (pa.ArrowException, OSError):
        raise InvalidInputError(f"{path.name!r} cannot be read as a Parquet file") from None
    if PARQUET_KEY in metadata:
        return bytes(metadata[PARQUET_KEY])
    # What pandas makes of a frame's `attrs`.
    try:
        return cast("str | None", as_object(metadata.get(b"PANDAS_ATTRS", b"{}")).get(ATTRS_KEY))
    except InvalidInputError as error:
        raise InvalidInputError(f"release record of {path.name!r}: {error}") from None
