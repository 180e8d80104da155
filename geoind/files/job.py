"""From files of true places to files of reports: one file, or several into a folder."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar, Unpack

import pyarrow as pa

from geoind.accounting.record import PARQUET_KEY, sidecar_of
from geoind.arrays import FloatArray, IntArray
from geoind.errors import GeoindError, InvalidInputError
from geoind.files.folders import refuse_folders, rejects_of, sources_in, targets_of
from geoind.files.formats import (
    STANDARD,
    BadRecord,
    Kind,
    Reading,
    Source,
    kinds_of,
    open_source,
    refuse_overwriting,
    refuse_urls,
)
from geoind.files.writers import AtomicWriter, Layout, check_writable, private_folder, refuse_unwritable, write
from geoind.parallel import OnReports, in_processes
from geoind.pipeline import Budget
from geoind.tables.columns import named_path
from geoind.tables.parts import Part, corners_of, decide_release, name_of
from geoind.tables.recipe import Options, Recipe, with_options
from geoind.tables.release import Release, Summary
from geoind.tables.table import Table, remedies
from geoind.tables.unfinished import WorkFolder, cancel, description, stamp_of

if TYPE_CHECKING:
    from geoind.traces.many import TraceSessions

__all__ = ["cancel", "is_several", "obfuscate_file"]

log = logging.getLogger("geoind")

T = TypeVar("T")

FEW_BYTES = 32 << 20
"""For less, other processes would not be ready before the work is done."""


@with_options
def obfuscate_file(
    source: str | Path | Sequence[str | Path],
    target: str | Path,
    *,
    reading: Reading | None = None,
    rejects: str | Path | None = None,
    ledger: Budget | None = None,
    job: str | None = None,
    progress: OnReports | None = None,
    spreadsheet_safe: bool = False,
    cells: str | None = None,
    workers: int | None = None,
    **options: Unpack[Options],
) -> Summary:
    r"""Write a file of reports, or a folder of them as one release, and return a summary.

    Only the reports and the kept columns are written. Memory stays flat however long the files are. The target
    appears whole, or after any error not at all. The release record of a file is in its Parquet metadata, or in
    `<file>.geoind.json`.

    A job with a ledger, or into a folder, that was interrupted or killed, or failed after it was paid for, leaves
    its work in a hidden folder that is private to its owner. The same call again continues it, and is not charged
    a second time. `geoind.files.cancel(target)` removes the hidden folder. A complete folder is refused, and so
    is a file that exists if there are a ledger and no key: it would be a second release.

    Parameters
    ----------
    source : path or sequence of path
        A file: CSV, TSV, NDJSON, GeoJSON, GPX, Parquet, GeoParquet or one of the vector files of
        `geoind.space.vector_files.DRIVERS`; any format may become any other. GeoLife's .plt and Google's
        Records.json and Timeline.json are read. Text may be compressed (.gz, .zst, .zip). "-" is standard input.
        A folder or a sequence of paths stands for several files, which keep their paths below a folder.
    target : path
        The file of reports ("-" is standard output); for several files a new or empty folder.
    reading : Reading, optional
        Format, delimiter, header, layer, where the file does not show it.
    rejects : path, optional
        Where bad records go, with number and reason; without it the first one is an error. It holds true places.
        For several files a folder.
    ledger : Ledger, optional
        Charges all persons for their reports, or none, before noise is drawn.
    job : str, optional
        The label of the charge; by default the target's name.
    progress : callable, optional
        Called now and then with the number of reports so far and the share of the work that is done.
    spreadsheet_safe : bool
        Whether texts of CSV and TSV that a spreadsheet would run are written with a ' first.
    cells : str, optional
        Write each report as the cell that contains it: `h3:9` or `geohash:7`. Its name is in the column `cell`
        (with several places per row `cell_1`, `cell_2`, ...), and the report is the centre of the cell.
    workers : int, optional
        Processes for several files; by default one per core where there is much to do. A person's trace may go on
        in the next file, so traces are read in order, by one process.
    **options
        The keywords of `geoind.tables.Recipe.of`: `person` and one of `epsilon`, `level` and `radius`, `mechanism`
        are needed. In JSON a column is a path, such as "properties.home". A kept column that some of several files
        do not have is missing in their reports.

    Examples
    --------
    >>> import tempfile
    >>> from geoind import EACH_ROW
    >>> with tempfile.TemporaryDirectory() as name:
    ...     days = Path(name, "days")
    ...     days.mkdir()
    ...     _ = (days / "monday.csv").write_text("name,day,lat,lon\nEiffel,Monday,48.8584,2.2945\n")
    ...     done = obfuscate_file(
    ...         days / "monday.csv", Path(name, "reports.csv"), person=EACH_ROW, keep=["day"], epsilon=0.007
    ...     )
    ...     reports = Path(name, "reports.csv").read_text()
    ...     all_days = obfuscate_file(days, Path(name, "reports"), person=EACH_ROW, epsilon=0.007)
    >>> done.reports, reports[:20], all_days.reports
    (1, 'day,lat,lon\nMonday,4', 1)
    """
    given = [source] if isinstance(source, (str, Path)) else list(source)
    refuse_urls(*given, target, *([] if rejects is None else [rejects]))
    several = not isinstance(source, (str, Path)) or is_several(given)
    work = _Job(
        recipe=Recipe.of(**options),
        reading=reading or Reading(),
        rejects=rejects,
        ledger=ledger,
        label=job or f"{'folder' if several else 'file'} {Path(target).name}",
        progress=progress,
        spreadsheet_safe=spreadsheet_safe,
        cells=cells,
        several=several,
        workers=workers,
        charged=ledger is not None,
    )
    sources: dict[str, str | Path] = {Path(given[0]).name: given[0]}
    written: list[str | Path | None] = [target, sidecar_of(str(target)), rejects]
    if several:
        sources = dict(sources_in(given))
        refuse_folders(given, sources, Path(target), rejects, work.used)
        written = [] if rejects is None else [rejects_of(rejects, path) for path in sources]
    refuse_overwriting([*sources.values(), *work.used], written)
    if not several and (ledger is None or str(target) == STANDARD):
        if ledger is not None and work.recipe.key is None:
            raise InvalidInputError(
                "standard output with a ledger needs `key=`: without it a second attempt after an error would be "
                "charged again"
            )
        return _made(sources, dict.fromkeys(sources, target), work, None)
    with WorkFolder(Path(target), work.identity(sources), work.recipe.key) as unfinished:
        if not several:
            return _made(sources, dict.fromkeys(sources, target), work, unfinished)
        targets = {path: unfinished.folder / name for path, name in targets_of(sources).items()}
        for aside in targets.values():
            aside.parent.mkdir(parents=True, exist_ok=True)
        summary = _made(sources, targets, work, unfinished)
        unfinished.publish()
        return summary


def is_several(sources: Sequence[str | Path]) -> bool:
    """Return whether sources are more than one file: a folder, or several of anything."""
    return len(sources) > 1 or Path(sources[0]).is_dir()


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What is done to files."""

    recipe: Recipe
    reading: Reading
    rejects: str | Path | None
    ledger: Budget | None
    label: str
    progress: OnReports | None
    spreadsheet_safe: bool
    cells: str | None
    several: bool
    workers: int | None
    charged: bool
    large: bool = False
    within: Path | None = None

    def __post_init__(self) -> None:
        if self.cells is not None:
            # Cells load scipy, which takes half of the start of the program.
            from geoind.space.cells import as_cell_system

            as_cell_system(self.cells)
        if str(self.rejects) == STANDARD:
            raise InvalidInputError("`rejects=` holds true places: it needs a file, not standard output")
        if self.workers is not None and (self.workers < 1 or not self.several or self.recipe.time is not None):
            raise InvalidInputError(
                "`workers=` is for a folder, must be at least 1, and cannot be used for traces: they need order"
            )

    @property
    def used(self) -> tuple[Path, ...]:
        """The files that are never written over: the key's and the ledger's."""
        key = None if self.recipe.key is None else self.recipe.key.file
        budgets: tuple[Path, ...] = getattr(self.ledger, "files", ())
        return budgets if key is None else (key, *budgets)

    def identity(self, files: Mapping[str, str | Path]) -> dict[str, str]:
        """Return what must be equal for unfinished work to be continued."""
        key = self.recipe.key
        stamps = {path: stamp_of(Path(file)) for path, file in files.items()}
        options: list[object] = [replace(self.recipe, key=None), name_of(self.recipe.mechanism), self.reading]
        options += [self.spreadsheet_safe, self.cells, str(self.rejects)]
        return {
            "options": description(options),
            "key": "" if key is None else key.fingerprint,
            "input files (size or time)": repr(stamps),
        }


@dataclass
class _File:
    """One file of a job: its rows, counted and drawn, and the files that are written.

    Parameters
    ----------
    job : _Job
        What is done, with a key.
    path : str
        The path of the file in its release, which names its records.
    name, target : str
        The file of true places and the file of reports; "-" is standard input or output.
    """

    job: _Job
    path: str
    name: str
    target: str
    rejected: int = 0
    part: Part | None = None
    numbers: IntArray | None = None
    sink: IO[bytes] | None = None

    @cached_property
    def kinds(self) -> tuple[Kind, Kind]:
        """The formats of both files."""
        return kinds_of(self.name, self.target, self.job.reading.format)

    @cached_property
    def source(self) -> Source:
        return open_source(self.name, replace(self.job.reading, format=self.kinds[0].format))

    @cached_property
    def table(self) -> Table:
        return Table(self.job.recipe, self.source.schema, self.path, self.job.several)

    @cached_property
    def needed(self) -> list[str]:
        """The columns to read: for the reports, to leave with them, and times that may explain the row order."""
        first = next(self.source.rows(), None)
        return self.table.needed + ([] if first is None else self.table.clocks(first.batch))

    @cached_property
    def layout(self) -> Layout:
        """How the reports are written. Raise if they cannot be."""
        table, source, job = self.table, self.source, self.job
        how = (table.decimals, source.delimiter, source.decimal_comma, job.spreadsheet_safe, job.cells)
        layout = Layout(self.kinds[1], table.reported_schema, table.places, *how)
        check_writable(self.target, layout)
        return layout

    @property
    def rejects(self) -> str | Path | None:
        """Where bad records go; without it the first one is an error."""
        if self.job.rejects is None or not self.job.several:
            return self.job.rejects
        return rejects_of(self.job.rejects, self.path)

    def each(self, sessions: "TraceSessions | None", work: Callable[..., T]) -> tuple[str, T, int]:
        """Return the path, what a function returns for the rows, and how many of them are rejected."""
        with self._named():
            part = self.part or self._new_part(sessions)
            found = work(part, self._writable())
        # The rows of a small folder stay in memory until they are drawn, those of a large one would not fit.
        self.part = None if self.job.large else part
        return self.path, found, self.rejected

    def _writable(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches; raise for values that cannot be written, before persons are charged."""
        layout = self.layout
        for batch in self.batches():
            if self.job.charged and self.job.recipe.published:
                check_writable(self.target, layout, batch)
            yield batch

    def _new_part(self, sessions: "TraceSessions | None") -> Part:
        return Part(self.table, sessions, check=self._check, on_problems=self._on_problems)

    def _check(self, reports: Sequence[FloatArray]) -> None:
        """Raise for reports that cannot be written; text has degrees in place of points."""
        if self.kinds[1].format in ("parquet", "vector"):
            _, moved = self.layout.in_cells(pa.RecordBatch.from_arrays([], names=[]), reports)
            self.table.refuse_outside_crs(moved)

    @property
    def outputs(self) -> list[str | Path | None]:
        """The files of reports, of bad records and of the release record; "-" and None are none."""
        has_sidecar = self.kinds[1].format != "parquet" and self.target != STANDARD
        return [self.target, self.rejects, sidecar_of(self.target) if has_sidecar else None]

    def write(self, sessions: "TraceSessions | None", release: Release) -> tuple[int, FloatArray]:
        """Write the reports, and return how many there are, and the corners of their places."""
        with self._named(), AtomicWriter(self.job.within) as writer:
            if self.rejects is not None and self.job.several:
                private_folder(Path(self.rejects).parent)
            # The target is opened first: it is put in place last.
            target = writer.path(self.target) if self.kinds[1].format == "vector" else writer.open(self.target)
            self.sink, sidecar = (
                None if name is None else writer.open(name, private=name == self.rejects)
                for name in self.outputs[1:]
            )
            part = self.part
            if part is None or sessions is not None or self.rejected:
                part = self._new_part(sessions)
            record, corners = release.record.to_json().encode(), [corners_of([])]
            schema = self.layout.schema.with_metadata({PARQUET_KEY: record})
            write(target, self._drawn(part, release, corners), replace(self.layout, schema=schema))
            if sidecar is not None:
                sidecar.write(record + b"\n")
            return part.drawn, corners_of(corners)

    def _drawn(
        self, part: Part, release: Release, corners: list[FloatArray]
    ) -> Iterator[tuple[pa.RecordBatch, Sequence[FloatArray]]]:
        """Yield the kept columns and the reports; add their corners to a list."""
        for batch, _, reports in part.draw(self.batches(), release, places=False):
            written, moved = self.layout.in_cells(batch, reports)
            corners[:] = [corners_of([*corners, *moved])]
            yield written, moved
            if self.job.progress is not None and not self.job.several:
                self.job.progress(part.drawn, part.drawn / max(release.reports, 1))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the needed columns of the rows that could be read."""
        self.rejected, self.numbers = 0, None
        for rows in self.source.rows(self.needed):
            self.numbers = rows.numbers
            self._reject(rows.bad)
            if len(rows.batch):
                yield rows.batch

    def _on_problems(self, batch: pa.RecordBatch, problems: Mapping[int, str]) -> None:
        for row, reason in problems.items():
            bad = batch.slice(row, 1)
            try:
                record = json.dumps(bad.to_pylist()[0], default=_as_text, ensure_ascii=False)
            except (OverflowError, ValueError):
                # A value that Python does not know, such as the year 10000.
                record = str(bad)
            number = row + 1 if self.numbers is None else int(self.numbers[row])
            self._reject([BadRecord(number, reason, record)])

    def _reject(self, bad: Sequence[BadRecord]) -> None:
        """Write bad records to their file, if there is one; otherwise the first is an error."""
        unit = self.source.unit
        for row, reason, record in bad:
            if self.rejects is None:
                ways = " or ".join([*remedies(reason), "`rejects=FILE`"])
                raise InvalidInputError(f"{unit} {row}: {reason} (use {ways})")
            self.rejected += 1
            if self.sink is not None:
                text = json.dumps({unit: row, "reason": reason, "record": record}, ensure_ascii=False)
                self.sink.write(text.encode("utf-8", "backslashreplace") + b"\n")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file of a folder in errors."""
        try:
            yield
        except (InvalidInputError, OSError) as error:
            if not self.job.several:
                raise
            if isinstance(error, InvalidInputError):
                raise InvalidInputError(f"{named_path(self.path)}: {error}") from None
            reason = error.strerror or "input or output failed"
            raise GeoindError(f"{named_path(self.path)}: {reason}; nothing was written") from None

    def settled(self) -> "_File":
        """Return the file without what it holds in memory, to travel to another process."""
        return replace(self, part=None, sink=None, job=replace(self.job, ledger=None, progress=None))


def _made(
    sources: Mapping[str, str | Path], targets: Mapping[str, str | Path], job: _Job, unfinished: WorkFolder | None
) -> Summary:
    """Count all files, decide, charge, and write those that are not complete."""
    recipe = job.recipe.with_key() if unfinished is None else replace(job.recipe, key=unfinished.key)
    within = None if unfinished is None or job.several else unfinished.folder
    # Standard input has no size.
    measured = [Path(name) for name in sources.values() if job.several and str(name) != STANDARD]
    large = sum(path.stat().st_size for path in measured) >= FEW_BYTES
    job = replace(job, recipe=recipe, within=within, large=large)
    files = {path: _File(job, path, str(name), str(targets[path])) for path, name in sources.items()}

    def on_parts(work: Callable[..., T]) -> Iterator[T]:
        # Processes finish in any order.
        for path, found, rejected in _each(files.values(), job, _File.each, work):
            files[path].rejected = rejected
            yield found

    with (first := next(iter(files.values())))._named():
        table = first.table
    release = decide_release(
        table, on_parts, job.ledger, job.label, charging=_charging(job, files.values(), unfinished)
    )
    release = replace(release, record=replace(release.record, cells=job.cells))
    again = recipe.time is not None or not job.several
    missing = [file for file in files.values() if again or not Path(file.target).exists()]
    reports, corners = 0, [corners_of([])]
    for number, (drawn, part) in enumerate(_each(missing, job, _File.write, release), 1):
        reports, corners = reports + drawn, [*corners, part]
        if job.progress is not None and job.several:
            job.progress(reports, number / len(missing))
    if len(missing) < len(files):
        log.warning("%d of %d files were complete", len(files) - len(missing), len(files))
        # What earlier runs made is not counted again, so the extent of all reports is not known.
        corners = []
    left_out = list(dict.fromkeys(name for file in files.values() for name in file.table.left_out))
    rejected = sum(file.rejected for file in files.values())
    return release.summary(corners_of(corners), left_out, rejected=rejected, charged=job.charged)


def _as_text(value: object) -> str:
    """Return the text of a value that JSON does not have: of bytes, such as a geometry in WKB, their digits."""
    return value.hex() if isinstance(value, bytes) else str(value)


@contextmanager
def _charging(job: _Job, files: Iterable[_File], unfinished: WorkFolder | None) -> Iterator[None]:
    """Before a charge, raise if the files cannot be written; after it, what is unfinished is kept."""
    if not job.several:
        refuse_unwritable((name for file in files for name in file.outputs if name is not None), job.within)
    with nullcontext() if unfinished is None else unfinished.charging():
        yield


def _each(files: Iterable[_File], job: _Job, work: Callable[..., T], *arguments: object) -> Iterator[T]:
    """Yield what a function returns for each file; in any order if several processes do the work."""
    sessions, files = job.recipe.sessions, list(files)
    if len(files) > 1 and sessions is None and (job.large if job.workers is None else job.workers > 1):
        return in_processes(job.workers, work, [(file.settled(), None, *arguments) for file in files])
    return (work(file, sessions, *arguments) for file in files)
