"""A folder of Parquet files in, a folder of Parquet files out: in parallel, and resumable.

Work is cut into pieces: runs of row groups of one file. A piece is written under a temporary name and renamed
when it is complete, so a piece that exists is done, whatever killed the job. Noise is keyed by record, so a
piece that is made twice is the same piece.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np

from geoind.adapters.keys import Key, KeyLike, as_key
from geoind.adapters.points import column_of
from geoind.adapters.recipe import Options, Recipe, log
from geoind.errors import InvalidInputError
from geoind.parallel import available_cores
from geoind.pipeline import Budget
from geoind.randomness import KEY_BYTES

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["Done", "Piece", "obfuscate_dataset", "parquet_files", "pieces_of", "read_piece"]

Result = TypeVar("Result")

PIECE_ROWS = 1 << 20
"""Row groups are taken together until a piece has this many rows."""

BATCH_ROWS = 1 << 16
"""Rows in memory at a time, per worker: few enough for the processor's cache."""

SUFFIXES = (".parquet", ".geoparquet", ".pq")

STATE = "_geoind.json"
"""What the job was, beside its pieces. Readers of Parquet folders ignore names that begin with an underscore."""


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
    """What `obfuscate_dataset` did: rows and pieces in all, and how many pieces were there already."""

    rows: int
    pieces: int
    found: int


def obfuscate_dataset(
    source: str | Path,
    target: str | Path,
    *,
    workers: int | None = None,
    ledger: Budget | None = None,
    person_column: str | None = None,
    progress: Callable[[int, int], object] | None = None,
    **options: Unpack[Options],
) -> Done:
    """Obfuscate a folder of Parquet files into another folder, and return what was done.

    Run it again after a crash with the same arguments: it makes only the pieces that are missing, and
    changes none that exists. A file keeps its path; one of more than a million rows becomes several,
    `name.0000.parquet` and so on.

    Parameters
    ----------
    source, target : path
        The folders. The target may exist only if this job began it.
    workers : int, optional
        Processes; by default one per core.
    ledger, person_column : Ledger and str, optional
        Whose budget pays: the totals of all persons, charged in one transaction before any noise is drawn,
        and not again when the job is resumed.
    progress : callable, optional
        Called with (pieces done, pieces in all).
    **options
        `epsilon`, or `level` and `radius`, or `mechanism`; `lon` and `lat`, or `geometry` and `crs`; `missing`;
        `id_column`; `key`: see `Recipe`. Without `id_column` a record is its file's path in the folder and its
        row. Without `key` one is made and kept beside the target, in `<target>.key`.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "in").mkdir()
    >>> pq.write_table(pa.table({"lon": [2.2945], "lat": [48.8584]}), folder / "in" / "day.parquet")
    >>> obfuscate_dataset(folder / "in", folder / "out", epsilon=0.01, key=bytes(32), workers=1)
    Done(rows=1, pieces=1, found=0)
    >>> obfuscate_dataset(folder / "in", folder / "out", epsilon=0.01, key=bytes(32), workers=1)
    Done(rows=1, pieces=1, found=1)
    """
    source, target = Path(source).absolute(), Path(target).absolute()
    if (ledger is None) != (person_column is None):
        raise InvalidInputError("ledger and person_column go together: give both or neither")
    if source == target or source in target.parents or target in source.parents:
        raise InvalidInputError("source and target must be two folders, none inside the other")
    paths = parquet_files(source)
    # Everything that can be refused is refused before a key is made.
    given = options.get("key")
    options["key"] = bytes(KEY_BYTES) if given is None else given
    recipe = Recipe.of(**options)
    pieces: list[Piece] = []
    for path in paths:
        pieces += pieces_of(source, path)
        _check_file(source / path, recipe, person_column)
    recipe = replace(recipe, key=_key_of(given, target))
    state = _begin(source, target, recipe, paths, person_column)
    if ledger is not None and person_column is not None and not state.get("charged"):
        counts = _count_persons(source, pieces, recipe, person_column, workers)
        ledger.charge_counts(counts, recipe.mechanism, label=f"dataset {target.name}")
        _write_state(target, {**state, "charged": True})
    missing = [piece for piece in pieces if not (target / piece.target).exists()]
    found = len(pieces) - len(missing)
    jobs = [(source, target, piece, recipe) for piece in missing]
    for number, _ in enumerate(_in_parallel(workers, _make, jobs), found + 1):
        if progress is not None:
            progress(number, len(pieces))
    for leftover in target.rglob(".*.tmp"):
        leftover.unlink(missing_ok=True)
    return Done(rows=sum(piece.rows for piece in pieces), pieces=len(pieces), found=found)


def parquet_files(folder: str | Path) -> list[str]:
    """Return the paths of the Parquet files in a folder and below, with forward slashes, in order."""
    root = Path(folder)
    names = [path.relative_to(root) for path in root.rglob("*") if path.suffix in SUFFIXES]
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


def read_piece(folder: str | Path, piece: Piece, recipe: Recipe) -> "Iterator[pa.RecordBatch]":
    """Yield the batches of a piece with reports in place of true locations."""
    with _open(Path(folder) / piece.path) as file:
        first = piece.first_row
        for batch in _batches(file, piece):
            rows = np.arange(first, first + len(batch))
            yield recipe.obfuscate_rows(batch, path=piece.path, rows=rows)
            first += len(batch)


def _make(source: Path, target: Path, piece: Piece, recipe: Recipe) -> None:
    """Write one piece, whole or not at all."""
    import pyarrow.parquet as pq

    final = target / piece.target
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    with _open(source / piece.path) as file:
        schema = recipe.schema(file.schema_arrow)
        compression = _compression(file)
    try:
        with pq.ParquetWriter(temporary, schema, compression=compression) as writer:
            for batch in read_piece(source, piece, recipe):
                writer.write_batch(batch, row_group_size=PIECE_ROWS)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(final)
    finally:
        temporary.unlink(missing_ok=True)


def _compression(file: "pq.ParquetFile") -> str:
    """Return how the file is compressed."""
    if not file.num_row_groups:
        return "snappy"
    name = str(file.metadata.row_group(0).column(0).compression).lower()
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(name, name)


def _open(path: Path) -> "pq.ParquetFile":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"{str(path)!r} is not a Parquet file") from error


def _batches(file: "pq.ParquetFile", piece: Piece, columns: list[str] | None = None) -> "Iterator[pa.RecordBatch]":
    # A worker is one core: the cores are kept busy by pieces, not by columns.
    yield from file.iter_batches(BATCH_ROWS, row_groups=list(piece.groups), columns=columns, use_threads=False)


def _check_file(path: Path, recipe: Recipe, person_column: str | None) -> None:
    """Refuse a file whose columns, or whose own statistics, show that it cannot be obfuscated."""
    import pyarrow as pa

    with _open(path) as file:
        schema = file.schema_arrow
        # An empty batch meets every check of names, types and CRS.
        empty = pa.RecordBatch.from_pylist([], schema=schema)
        try:
            recipe.obfuscate_rows(empty, path="", rows=np.arange(0))
            if person_column is not None:
                column_of(empty, person_column)
            # Two columns of degrees; none when places are points, whose bytes have no range.
            for name, limit in zip(recipe.place_columns(schema), (180, 90), strict=False):
                if schema.field(name).type in (pa.float32(), pa.float64()):
                    _check_range(file, name, limit)
        except InvalidInputError as error:
            raise InvalidInputError(f"{path.name}: {error}") from error


def _check_range(file: "pq.ParquetFile", name: str, limit: float) -> None:
    paths = [file.metadata.schema.column(number).path for number in range(file.metadata.num_columns)]
    index = paths.index(name)
    for group in range(file.num_row_groups):
        statistics = file.metadata.row_group(group).column(index).statistics
        if statistics is None or not statistics.has_min_max:
            continue
        if not (statistics.min >= -limit and statistics.max <= limit):
            raise InvalidInputError(f"column {name!r} must stay within {limit} degrees, group {group} does not")


def _key_of(key: KeyLike | None, target: Path) -> Key:
    """Return the key, by default the one kept beside the target."""
    if key is not None:
        return as_key(key)
    path = target.with_name(target.name + ".key")
    if path.exists():
        return Key.in_file(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    made = Key.new_file(path)
    log.warning("no key was given: made one in %s. Keep it to resume; without it nobody can undo the noise", path)
    return made


def _begin(
    source: Path, target: Path, recipe: Recipe, paths: Iterable[str], person_column: str | None
) -> dict[str, Any]:
    """Return the job's state, new or found; refuse a folder that another job began."""
    stamps = [(path, (stat := (source / path).stat()).st_size, stat.st_mtime_ns) for path in paths]
    job = {
        "mechanism": repr(recipe.mechanism),
        "columns": [recipe.lon, recipe.lat, recipe.geometry, recipe.crs, recipe.id_column, person_column],
        "missing": recipe.missing,
        "key fingerprint": recipe.key.fingerprint,
        "source files": _digest(stamps),
    }
    if (target / STATE).exists():
        found: dict[str, Any] = json.loads((target / STATE).read_text())
        different = sorted(name for name in job if found.get(name) != job[name])
        if different:
            raise InvalidInputError(
                f"{str(target)!r} was begun by another job: its {' and '.join(different)} differ; use a new folder"
            )
        return found
    if target.exists() and any(target.iterdir()):
        raise InvalidInputError(f"{str(target)!r} must be a new or empty folder")
    target.mkdir(parents=True, exist_ok=True)
    _write_state(target, job)
    return job


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _write_state(target: Path, state: Mapping[str, Any]) -> None:
    temporary = target / f".{STATE}.{os.getpid()}.tmp"
    temporary.write_text(json.dumps(state, indent=1) + "\n")
    temporary.replace(target / STATE)


def _count_persons(
    source: Path, pieces: Sequence[Piece], recipe: Recipe, column: str, workers: int | None
) -> Counter[str]:
    total: Counter[str] = Counter()
    for counts in _in_parallel(workers, _persons_in, [(source, piece, recipe, column) for piece in pieces]):
        total.update(counts)
    return total


def _persons_in(source: Path, piece: Piece, recipe: Recipe, column: str) -> Counter[str]:
    """Return how many reports each person will be in."""
    total: Counter[str] = Counter()
    with _open(source / piece.path) as file:
        columns = [column, *recipe.place_columns(file.schema_arrow)]
        for batch in _batches(file, piece, columns):
            total.update(recipe.count_persons(batch, column))
    return total


def _in_parallel(
    workers: int | None, function: Callable[..., Result], items: Sequence[tuple[Any, ...]]
) -> Iterator[Result]:
    """Yield what the function returns for each item, in any order, from this process and workers beside it."""
    others = min(workers or available_cores(), len(items)) - 1
    if others <= 0:
        yield from (function(*item) for item in items)
        return
    # Spawned, not forked: a fork in the middle of another thread's work can hang.
    with ProcessPoolExecutor(others, mp_context=get_context("spawn"), initializer=_die_with_parent) as pool:
        try:
            jobs = {pool.submit(function, *item): item for item in items}
            # The others need a second to start. This process works from the other end of the queue meanwhile.
            for job in reversed(list(jobs)):
                if job.cancel():
                    yield function(*jobs.pop(job))
            for job in as_completed(jobs):
                yield job.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _die_with_parent() -> None:
    """End this worker when the job is killed; it would wait for work for ever."""
    parent = parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()
