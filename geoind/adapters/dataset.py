"""A folder of Parquet files in, a folder of Parquet files out: in parallel, and resumable.

Work is cut into pieces: runs of row groups of one file. A piece is written under a temporary name and renamed
when it is complete, so a piece that exists is done, whatever killed the job. Noise is keyed by record, so a
piece that is made twice is the same piece. The folder gets its name when all pieces are complete.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from geoind.budgets.persons import PersonReports
from geoind.errors import InvalidInputError
from geoind.parallel import OnReports, in_processes
from geoind.pipeline import Budget
from geoind.tables import Examined, LonLat, Options, Recipe, Table
from geoind.tables.delivery import Delivery
from geoind.tables.identities import labels_of, plain
from geoind.tables.names import named_path
from geoind.tables.places import column_of
from geoind.tables.summary import Summary, Tally
from geoind.tables.unfinished import CHANGED, Unfinished, description, refuse_full, stamp_of

__all__ = ["Done", "Piece", "count_reports", "obfuscate_dataset", "parquet_files", "pieces_of", "read_piece"]

PIECE_ROWS = 1 << 20
"""Row groups are taken together until a piece has this many rows."""

BATCH_ROWS = 1 << 17
"""Rows in memory at a time, per worker: so many that looking for copies of the truth costs little beside them."""

SUFFIXES = (".parquet", ".geoparquet", ".pq")


@dataclass(frozen=True)
class Piece:
    """A run of row groups of one file, and the file it becomes.

    Parameters
    ----------
    path : str
        The file's path within its folder, with forward slashes.
    groups : range
        The row groups.
    first_row, rows : int
        Number of the first row in the file, and how many there are.
    target : str
        Path within the folder of reports.
    """

    path: str
    groups: range
    first_row: int
    rows: int
    target: str


@dataclass(frozen=True)
class Done:
    """What `obfuscate_dataset` did: rows and pieces in all, how many pieces were there already, and a summary.

    The summary counts the reports of the pieces that this run made.
    """

    rows: int
    pieces: int
    found: int
    summary: Summary | None = field(default=None, repr=False, compare=False)


def obfuscate_dataset(
    source: str | Path,
    target: str | Path,
    *,
    workers: int | None = None,
    ledger: Budget | None = None,
    progress: OnReports | None = None,
    **options: Unpack[Options],
) -> Done:
    """Obfuscate a folder of Parquet files into another folder, and return what was done.

    The same call after an error makes only the pieces that are missing, changes none that exists, and is not
    charged again. A file keeps its path; one of more than a million rows becomes several, `name.0000.parquet` and
    so on.

    Parameters
    ----------
    source, target : path
        The folders. The target must be new or empty. It appears when it is complete; until then the pieces are in
        a hidden folder next to it, private to its owner, which `geoind.files.cancel(target)` removes.
    workers : int, optional
        Processes; by default one per core.
    ledger : Ledger, optional
        Charges the persons that `person_column` names, in one transaction before any noise is drawn. Under one key
        the same reports are charged once.
    progress : callable, optional
        Called with the number of reports so far, and the share of the work that is done.
    **options
        `epsilon`, or `level` and `radius`, or `mechanism`; `lon` and `lat`, or `geometry` and `crs`; `drop` and
        `keep`; `missing`; `order`; `id_column`; `person_column`; `key`: see `geoind.tables.Recipe`. Without
        `id_column` a record is its file's path in the folder and its row. Without `key` one is made and deleted
        when the folder is complete.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> with tempfile.TemporaryDirectory() as name:
    ...     days, reports = Path(name) / "days", Path(name) / "reports"
    ...     days.mkdir()
    ...     pq.write_table(pa.table({"lon": [2.2945], "lat": [48.8584]}), days / "monday.parquet")
    ...     obfuscate_dataset(days, reports, epsilon=0.01, workers=1)
    Done(rows=1, pieces=1, found=0)
    """
    source, target = Path(source).absolute(), Path(target).absolute()
    if source == target or source in target.parents or target in source.parents:
        raise InvalidInputError("source and target must be two folders, none inside the other")
    paths = parquet_files(source)
    refuse_full(target)
    recipe = Recipe.of(**options).in_parts("shuffle the files first")
    recipe.refuse_ledger_without_persons(ledger)
    pieces: list[Piece] = []
    kinds: dict[str, str] = {}
    for path in paths:
        pieces += pieces_of(source, path)
        table = _checked(source, path, recipe)
        _same_kinds(table, kinds)
    tally = Tally()
    with Unfinished(target, _identity(source, recipe, paths), recipe.key) as unfinished:
        recipe = replace(recipe, key=unfinished.key)
        digests: dict[str, str] = {}
        if recipe.must_count(ledger):
            counts, digests = count_reports(source, pieces, recipe, workers=workers)
            with unfinished.charging():
                recipe.charge(ledger, counts, label=f"dataset {target.name}")
        missing = [piece for piece in pieces if not (unfinished.folder / piece.target).exists()]
        found = len(pieces) - len(missing)
        jobs = [(source, unfinished.folder, piece, recipe, digests.get(piece.target)) for piece in missing]
        for number, part in enumerate(in_processes(workers, _make, jobs), found + 1):
            tally.merge(part)
            if progress is not None:
                progress(tally.reports, number / len(pieces))
        unfinished.publish()
    summary = tally.summary(recipe.mechanism, table.promise)
    return Done(rows=sum(piece.rows for piece in pieces), pieces=len(pieces), found=found, summary=summary)


def parquet_files(folder: str | Path) -> list[str]:
    """Return the paths of the Parquet files in a folder and below, with forward slashes, in order."""
    root = Path(folder)
    names = [
        path.relative_to(root) for path in root.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file()
    ]
    found = sorted(name.as_posix() for name in names if not any(part[0] in "._" for part in name.parts))
    if not found:
        raise InvalidInputError(f"{str(folder)!r} must be a folder with Parquet files, there are none")
    return found


def pieces_of(folder: str | Path, path: str) -> list[Piece]:
    """Return the pieces of one file: they depend on its row groups alone."""
    runs: list[list[int]] = [[]]
    sizes = [0]
    with _open(Path(folder) / path) as file:
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if runs[-1] and sizes[-1] + rows > PIECE_ROWS:
                runs.append([])
                sizes.append(0)
            runs[-1].append(group)
            sizes[-1] += rows
    stem, suffix = os.path.splitext(path)  # noqa: PTH122 - a path with forward slashes on every system
    names = [path] if len(runs) == 1 else [f"{stem}.{number:04}{suffix}" for number in range(len(runs))]
    starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    return [
        Piece(path, range(run[0], run[-1] + 1) if run else range(0), start, rows, name)
        for run, start, rows, name in zip(runs, starts, sizes, names, strict=False)
    ]


def read_piece(
    folder: str | Path,
    piece: Piece,
    recipe: Recipe,
    tally: Tally | None = None,
    persons: PersonReports | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a piece with reports in place of true locations, and count them."""
    with _open(Path(folder) / piece.path) as file, _named(piece.path):
        table = recipe.table(file.schema_arrow, open_ended=True, path=piece.path)
        first = piece.first_row
        for batch in _batches(file, piece):
            examined, rows = _numbered(table, batch, first), np.arange(first, first + len(batch))
            made = table.report(examined, path=piece.path, rows=rows)
            if tally is not None:
                tally.add(table, examined, made)
            if persons is not None:
                persons.update(table.person_reports(examined, path=piece.path, rows=rows, reports=made.reports))
            yield made.batch
            first += len(batch)


def _numbered(table: Table, batch: pa.RecordBatch, first: int) -> Examined:
    """Return the batch, looked at; the first bad row is an error that names it by its number in the file."""
    examined = table.examine(batch)
    for problem in examined.problems:
        raise InvalidInputError(f"row {first + problem.row}: {problem.reason}")
    return examined


def _make(source: Path, target: Path, piece: Piece, recipe: Recipe, charged: str | None) -> Tally:
    """Write one piece, whole or not at all, and return what was counted."""
    tally, persons = Tally(), None if charged is None else PersonReports()
    final = target / piece.target
    final.parent.mkdir(parents=True, exist_ok=True)
    with _open(source / piece.path) as file:
        schema = recipe.table(file.schema_arrow, open_ended=True).reported_schema
        compression = _compression(file)
    with Delivery() as delivery:
        with pq.ParquetWriter(delivery.path(final), schema, compression=compression) as writer:
            for batch in read_piece(source, piece, recipe, tally, persons):
                writer.write_batch(batch, row_group_size=PIECE_ROWS)
        if persons is not None and persons.digest != charged:
            raise InvalidInputError(f"{named_path(piece.path)}: {CHANGED}")
    return tally.settled()


def _compression(file: pq.ParquetFile) -> str:
    """Return how the file is compressed."""
    if not file.num_row_groups:
        return "snappy"
    name = str(file.metadata.row_group(0).column(0).compression).lower()
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(name, name)


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"{str(path)!r} is not a Parquet file") from error


def _batches(file: pq.ParquetFile, piece: Piece) -> Iterator[pa.RecordBatch]:
    # A worker is one core: the cores are kept busy by pieces, not by columns.
    yield from file.iter_batches(BATCH_ROWS, row_groups=list(piece.groups), use_threads=False)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Say which file an error is about."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{named_path(path)}: {error}") from error


def _checked(folder: Path, path: str, recipe: Recipe) -> Table:
    """Return the table of a file; refuse one whose columns, or whose statistics, show what is wrong with it."""
    with _open(folder / path) as file, _named(path):
        schema = file.schema_arrow
        # With no rows: whatever is wrong with the columns is wrong before the first row.
        table = recipe.table(schema, path=path)
        empty = table.examine(pa.RecordBatch.from_pylist([], schema=schema))
        if recipe.person_column is not None:
            table.count_persons(empty)
        if recipe.id_column is not None:
            labels_of(column_of(empty.batch, recipe.id_column), recipe.id_column)
        for place in table.places:
            if isinstance(place, LonLat):
                for name, limit in zip(place.names, (180, 90), strict=True):
                    if schema.field(name).type in (pa.float32(), pa.float64()):
                        _check_range(file, name, limit)
    return table


def _same_kinds(table: Table, known: dict[str, str]) -> None:
    """Refuse files in which identities or persons are of different kinds: 7 and "7" would be two, or one."""
    for name in filter(None, (table.recipe.id_column, table.recipe.person_column)):
        column = plain(pa.array([], table.schema.field(name).type))
        kind = "whole numbers" if pa.types.is_integer(column.type) else str(column.type)
        if known.setdefault(name, kind) != kind:
            raise InvalidInputError(f"column {name!r} must be of one kind in all files: {known[name]} or {kind}")


def _check_range(file: pq.ParquetFile, name: str, limit: float) -> None:
    paths = [file.metadata.schema.column(number).path for number in range(file.metadata.num_columns)]
    index = paths.index(name)
    for group in range(file.num_row_groups):
        statistics = file.metadata.row_group(group).column(index).statistics
        if statistics is None or not statistics.has_min_max:
            continue
        if not (statistics.min >= -limit and statistics.max <= limit):
            raise InvalidInputError(f"column {name!r} must stay within {limit} degrees, group {group} does not")


def _identity(source: Path, recipe: Recipe, paths: Iterable[str]) -> dict[str, str]:
    """Return what must be equal for unfinished work to be continued."""
    stamps = {path: stamp_of(source / path) for path in paths}
    return {
        "options": description(replace(recipe, key=None)),
        "key": "" if recipe.key is None else recipe.key.fingerprint,
        "input files (size or time)": repr(stamps),
    }


def count_reports(
    source: str | Path, pieces: Sequence[Piece], recipe: Recipe, *, workers: int | None = 1
) -> tuple[PersonReports, dict[str, str]]:
    """Return the reports that each person will be in, in all pieces of a folder, and a digest of each piece's."""
    total, digests = PersonReports(), {}
    jobs = [(Path(source), piece, recipe) for piece in pieces]
    for target, counts in in_processes(workers, _reports_in, jobs):
        total.update(counts)
        digests[target] = counts.digest
    return total, digests


def _reports_in(source: Path, piece: Piece, recipe: Recipe) -> tuple[str, PersonReports]:
    """Return the reports that each person will be in; what would stop the job stops it before the charge."""
    total = PersonReports()
    with _open(source / piece.path) as file, _named(piece.path):
        table = recipe.table(file.schema_arrow, open_ended=True, path=piece.path)
        first = piece.first_row
        for batch in _batches(file, piece):
            rows = np.arange(first, first + len(batch))
            total.update(table.person_reports(_numbered(table, batch, first), path=piece.path, rows=rows))
            first += len(batch)
    return piece.target, total
