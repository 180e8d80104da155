"""One call from a file of true places to a file of reports."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, Literal, TypeAlias, cast

from geoind.errors import InvalidInputError
from geoind.files.delimited import Delimited
from geoind.files.delivery import Delivery
from geoind.files.formats import FORMATS, STANDARD, Kind, compressed, decompressed, kind_of, opened
from geoind.files.geojson import FeatureCollection
from geoind.files.ndjson import LineJson
from geoind.files.rejects import Rejects
from geoind.files.text import TextFormat, obfuscate_text
from geoind.mechanisms.protocol import Mechanism
from geoind.pipeline import choose_mechanism
from geoind.tables.promise import Promise, sidecar_of

__all__ = ["Progress", "Summary", "obfuscate_file"]

Progress: TypeAlias = Callable[[int, float | None], None]


@dataclass(frozen=True)
class Summary:
    """What `obfuscate_file` did.

    Attributes
    ----------
    reports : int
        Records that got a report.
    rejected : int
        Bad records that went to the file for them.
    promise : Promise
        What the reports promise.
    left : tuple of str
        Columns that stay although their names sound as if they told a place.
    """

    reports: int
    rejected: int
    promise: Promise
    left: tuple[str, ...]


def obfuscate_file(
    source: str | Path,
    target: str | Path,
    *,
    epsilon: float | None = None,
    level: float | None = None,
    radius: float | None = None,
    mechanism: Mechanism | None = None,
    lon: str | None = None,
    lat: str | None = None,
    geometry: str | None = None,
    crs: str | None = None,
    layer: str | None = None,
    format: str | None = None,  # noqa: A002
    delimiter: str | None = None,
    header: bool = True,
    missing: Literal["raise", "keep"] = "raise",
    rejects: str | Path | None = None,
    key: bytes | None = None,
    identity: str | None = None,
    progress: Progress | None = None,
) -> Summary:
    r"""Write a file of reports and return a summary.

    Memory stays flat however long the file is. The target appears whole, or after any error not at all, and
    tells what was promised: in its Parquet metadata, or in `<target>.geoind.json` beside it.

    Parameters
    ----------
    source, target : path
        CSV, TSV, NDJSON, GeoJSON, each also as .gz or .zst, Parquet, GeoParquet, and what pyogrio reads and
        writes; the target has the source's format. "-" is standard input or output.
    epsilon, level, radius, mechanism
        As in `geoind.obfuscate`.
    lon, lat : str, optional
        The columns (members of JSON objects) with the coordinates in degrees. By default those called lon, lng,
        long or longitude, and lat or latitude.
    geometry, crs : str, optional
        The column of points in a Parquet file, and its CRS, where the file does not declare them.
    layer : str, optional
        The layer of a file that pyogrio reads, where it has several; the target gets this one alone.
    format : str, optional
        "csv", "tsv", "ndjson", "geojson", "parquet" or "ogr" (pyogrio), where the names do not tell.
    delimiter : str, optional
        Between the fields of a CSV file.
    header : bool
        Whether the first line of a CSV or TSV file names the columns; if not, lon and lat are numbers, from 1.
    missing : {"raise", "keep"}
        What to do with a record without coordinates: treat it as a bad one, or leave it as it is.
    rejects : path, optional
        Where bad records go, with line and reason; without it the first one stops the work. It holds true places.
    key, identity : bytes and str, optional
        32 secret bytes and the column with each record's identity: the same record gets the same report again.
    progress : callable, optional
        Called now and then with the number of reports so far and the share of the input, None where unknown.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trips = Path(folder, "trips.csv")
    ...     _ = trips.write_text("name,lat,lon\nEiffel,48.8584,2.2945\n")
    ...     summary = obfuscate_file(trips, Path(folder, "reports.csv"), level=1.386, radius=200)
    ...     reports = Path(folder, "reports.csv").read_text()
    >>> summary.reports, reports[:20]
    (1, 'name,lat,lon\nEiffel,')
    """
    chosen = choose_mechanism(epsilon=epsilon, level=level, radius=radius, mechanism=mechanism)
    if missing not in ("raise", "keep"):
        raise InvalidInputError(f"missing must be 'raise' or 'keep', got {missing!r}")
    if (key is None) != (identity is None):
        raise InvalidInputError("a key and the column of each record's identity go together: give both or neither")
    names = str(source), str(target)
    kinds = _kinds(*names, format)
    promise = Promise.of(chosen, level=level, radius=radius)
    sidecar = None if kinds[1].format == "parquet" or names[1] == STANDARD else str(sidecar_of(target))
    _refuse_overwriting(names[0], [names[1], sidecar, None if rejects is None else str(rejects)])
    report = progress or (lambda reports, share: None)  # noqa: ARG005
    # GDAL opens its files itself; some are folders.
    source_stream = nullcontext(None) if kinds[0].format == "ogr" else opened(names[0])
    with source_stream as stream, Delivery() as delivery:
        # The target is opened first: it is put in place last.
        by_path = delivery.path(names[1]) if kinds[1].format == "ogr" else None
        out = delivery.open(names[1]) if by_path is None else None
        if sidecar is not None:
            delivery.open(sidecar).write(promise.to_json().encode() + b"\n")
        aside = None if rejects is None else delivery.open(str(rejects))
        if out is not None and stream is not None and kinds[0].format != "parquet":
            reader = _text_format(
                kinds[0].format,
                lon=lon,
                lat=lat,
                delimiter=delimiter,
                header=header,
                identity=identity,
                keep_missing=missing == "keep",
            )
            refused = Rejects(aside)
            count = _text(stream, out, kinds, reader, chosen, promise.decimals, key, refused, report)
            return Summary(count, refused.count, promise, tuple(reader.left))
        from geoind.files.table import TableJob

        refused = Rejects(aside, unit="row")
        job = TableJob(chosen, lon, lat, geometry, crs, missing, key, identity, refused, report)
        if by_path is not None:
            from geoind.files.ogr import obfuscate_ogr

            obfuscate_ogr(names[0], by_path, job, layer)
        elif out is not None and stream is not None:
            from geoind.files.parquet import obfuscate_parquet

            with _seekable(stream) as file:
                obfuscate_parquet(file, out, job, promise)
        return Summary(job.reports, refused.count, promise, tuple(job.left))


def _text(
    stream: BinaryIO,
    out: IO[bytes],
    kinds: tuple[Kind, Kind],
    reader: TextFormat,
    mechanism: Mechanism,
    decimals: int,
    key: bytes | None,
    rejects: Rejects,
    progress: Progress,
) -> int:
    """Obfuscate text between the two compressions."""
    size = _size(stream)
    packed = compressed(out, kinds[1].compression)
    count = obfuscate_text(
        decompressed(stream, kinds[0].compression),
        packed,
        reader,
        mechanism,
        decimals=decimals,
        key=key,
        rejects=rejects,
        progress=lambda reports: progress(reports, stream.tell() / size if size else None),
    )
    if packed is not out:
        packed.close()
    return count


def _size(stream: BinaryIO) -> int:
    """Return how many bytes there are, 0 where nobody knows."""
    if not stream.seekable():
        return 0
    start = stream.tell()
    size = stream.seek(0, os.SEEK_END)
    stream.seek(start)
    return size


@contextmanager
def _seekable(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Return a stream in which one can go back, as readers of Parquet do."""
    if stream.seekable():
        yield stream
        return
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(stream, file)
        file.seek(0)
        yield cast(BinaryIO, file)


def _kinds(source: str, target: str, chosen: str | None) -> tuple[Kind, Kind]:
    """Return what the two files are; a nameless one is what the other is."""
    if chosen is not None and chosen not in FORMATS:
        raise InvalidInputError(f"format must be one of {', '.join(FORMATS)}, got {chosen!r}")
    known = [kind_of(source, chosen), kind_of(target, chosen)]
    named = [kind for kind in known if kind is not None]
    if not named:
        raise InvalidInputError("standard input and output do not tell their format: give --format")
    first, second = (kind or Kind(named[0].format, "") for kind in known)
    if first.format != second.format:
        raise InvalidInputError(
            f"the input is {first.format} and the output {second.format}: the format must stay"
        )
    if first.format == "ogr" and len(named) < 2:
        raise InvalidInputError("GDAL's formats need files with names, not standard input or output")
    return first, second


def _refuse_overwriting(source: str, targets: list[str | None]) -> None:
    places = [Path(name).resolve() for name in [source, *targets] if name is not None and name != STANDARD]
    taken: list[Path] = []
    for path in places:
        if any(path == other or (path.exists() and other.exists() and path.samefile(other)) for other in taken):
            raise InvalidInputError(
                f"{path.name} would be overwritten: input, output and rejects must be different files"
            )
        taken.append(path)


def _text_format(
    name: str,
    *,
    lon: str | None,
    lat: str | None,
    delimiter: str | None,
    header: bool,
    identity: str | None,
    keep_missing: bool,
) -> TextFormat:
    if name in ("csv", "tsv"):
        between = delimiter if delimiter is not None else {"csv": ",", "tsv": "\t"}[name]
        return Delimited(
            between.encode(), header=header, lon=lon, lat=lat, identity=identity, keep_missing=keep_missing
        )
    if name == "ndjson":
        return LineJson(lon, lat, identity, keep_missing)
    return FeatureCollection(identity, keep_missing)
