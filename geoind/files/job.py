"""One call from a file of true places to a file of reports."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Unpack, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from geoind.arrays import IntArray
from geoind.budgets.persons import PersonReports
from geoind.errors import GeoindError, InvalidInputError
from geoind.files.formats import Kind, compressed, inner_name, kinds_of
from geoind.files.ogr import OgrSource, try_ogr, write_ogr
from geoind.files.parquet import ParquetSource
from geoind.files.rejects import BadRecord, Rejects
from geoind.files.rows import Rows
from geoind.files.sources import Bytes, Reading, Source, TextSource, Wanted
from geoind.files.tabular import write_table
from geoind.parallel import OnReports
from geoind.pipeline import Budget
from geoind.tables import Examined, Obfuscated, Options, Recipe, Table, TablePromise, sidecar_of
from geoind.tables.delivery import STANDARD, Delivery
from geoind.tables.keys import Key
from geoind.tables.names import named_path
from geoind.tables.promise import PARQUET_KEY
from geoind.tables.summary import Summary, Tally
from geoind.tables.tracing import answered
from geoind.tables.unfinished import CHANGED, Unfinished, cancel, description, stamp_of
from geoind.traces.many import TraceSessions

__all__ = [
    "Job",
    "Summary",
    "Work",
    "cancel",
    "identity_of",
    "obfuscate_file",
    "pay",
    "source_of",
    "within",
]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is done to a file.

    Parameters
    ----------
    recipe : Recipe
        What is done to its rows.
    reading : Reading
        How it is read.
    rejects : path, optional
        Where bad records go, with line and reason; without it the first one stops the work. It holds true places.
    ledger : Ledger, optional
        Whose persons' budgets pay, before any noise is drawn.
    progress : callable, optional
        Called now and then with the number of reports so far and the share of the input, None where unknown.
    """

    recipe: Recipe
    reading: Reading = field(default_factory=Reading)
    rejects: str | Path | None = None
    ledger: Budget | None = None
    progress: OnReports | None = None

    def __post_init__(self) -> None:
        self.recipe.refuse_ledger_without_persons(self.ledger)
        if str(self.rejects) == STANDARD:
            raise InvalidInputError("rejects hold true places: they need a file, not standard output")

    def refuse_half_an_identity(self) -> None:
        """Refuse a key without a column of identities, and such a column without a key."""
        if self.recipe.trace is None and (self.recipe.key is None) != (self.recipe.id_column is None):
            raise InvalidInputError("key and id_column (--key-file and --id) go together: give both or neither")

    def under(self, key: Key) -> "Job":
        """Return this job under a key."""
        return replace(self, recipe=replace(self.recipe, key=key))

    @property
    def kept(self) -> tuple[Path, ...]:
        """The files that a job must not write over, whatever it is told: the key's and the ledger's."""
        key = None if self.recipe.key is None else self.recipe.key.file
        # Asked for by name: not every budget is a Ledger, and none is worth loading one for.
        budgets: tuple[Path, ...] = getattr(self.ledger, "files", ())
        return budgets if key is None else (key, *budgets)


def obfuscate_file(
    source: str | Path,
    target: str | Path,
    *,
    reading: Reading | None = None,
    rejects: str | Path | None = None,
    ledger: Budget | None = None,
    progress: OnReports | None = None,
    **options: Unpack[Options],
) -> Summary:
    r"""Write a file of reports and return a summary.

    Memory stays flat however long the file is. The target appears whole, or after any error not at all, and
    states what was promised: in its Parquet metadata, or in `<target>.geoind.json` next to it. After an error the
    same call is not charged again; `geoind.files.cancel(target)` removes the unfinished work.

    Parameters
    ----------
    source, target : path
        CSV, TSV, NDJSON, GeoJSON, GPX, each also as .gz, .zst or .zip, Parquet, GeoParquet, and the vector files
        of `geoind.space.vector_files.DRIVERS`. The target has the source's format; CSV, TSV, NDJSON and Parquet
        may become each other. "-" is standard input or output.
    reading : Reading, optional
        Format, delimiter, quotes, header, layer, where the file does not tell.
    rejects : path, optional
        Where bad records go, with line and reason; without it the first one stops the work. It holds true places.
    ledger : Ledger, optional
        Charges the persons that `person_column` names, all or none, before noise is drawn.
    progress : callable, optional
        Called now and then with the number of reports so far and the share of the input, None where unknown.
    **options
        `epsilon`, or `level` and `radius`, or `mechanism`; `lon` and `lat`, or `geometry` and `crs`; `drop` and
        `keep`; `missing`; `order`; `key` and `id_column`; `person_column`: see `geoind.tables.Recipe`. In JSON a
        name is a path, such as "properties.home". For people who move: `trace`, the columns of person and time,
        and `method`, "switching" (the default), "sparse", "predictive", "independent" or a `TraceMethod`.

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
    recipe = Recipe.of(**options)
    return _run(
        source,
        target,
        Job(recipe=recipe, reading=reading or Reading(), rejects=rejects, ledger=ledger, progress=progress),
    )


def _run(source: str | Path, target: str | Path, job: Job) -> Summary:
    """Do a job with one file, and return a summary.

    A job that charges a ledger is done under a key, its own or one that is kept until the file is complete: a
    second attempt after an error makes the same reports, which the ledger has recorded as paid.
    """
    job.refuse_half_an_identity()
    if job.ledger is not None and str(target) == STANDARD and job.recipe.key is None:
        raise InvalidInputError(
            "standard output with a ledger needs key and id_column (--key-file and --id): without them a second "
            "attempt after an error would be charged again"
        )
    if job.ledger is None or str(target) == STANDARD:
        return _done(source, target, job, None)
    with Unfinished(Path(target), identity_of(job, {"": source}), job.recipe.key) as unfinished:
        return _done(source, target, job.under(unfinished.key), unfinished)


def _done(source: str | Path, target: str | Path, job: Job, unfinished: Unfinished | None) -> Summary:
    work = Work.begun(source, target, job)
    with Delivery(None if unfinished is None else unfinished.folder) as delivery:
        # Nothing is charged for what cannot be written.
        outputs = work.opened(delivery)
        pay({"": work}, job, f"file {Path(target).name}", unfinished)
        work.write(outputs)
    return work.tally.summary(job.recipe.mechanism, work.promise)


def pay(works: Mapping[str, "Work"], job: Job, label: str, unfinished: Unfinished | None) -> None:
    """Charge all persons of some files, by their paths, or none, before any report; give them their sessions.

    After that, what is unfinished is kept.
    """
    recipe = job.recipe
    if job.ledger is not None:
        # Under one key the second reading answers as the first: what is charged is what is published.
        spending = None if recipe.trace is None else recipe.sessions()
        total = PersonReports()
        for path, work in works.items():
            with within(path):
                total.update(work.count_reports(spending))
        costs = None if spending is None else spending.costs
        with nullcontext() if unfinished is None else unfinished.charging():
            recipe.charge(job.ledger, total, label=label, costs=costs)
    if recipe.trace is not None:
        sessions = recipe.sessions()
        for work in works.values():
            work.sessions = sessions


def identity_of(job: Job, files: Mapping[str, str | Path]) -> dict[str, str]:
    """Return what must be equal for unfinished work to be continued, of a job with files by their paths."""
    key = job.recipe.key
    stamps = {
        path: stamp_of(Path(file)) for path, file in files.items() if str(file) != STANDARD and Path(file).exists()
    }
    rejects = None if job.rejects is None else str(job.rejects)
    return {
        "options": description((replace(job.recipe, key=None), job.reading, rejects)),
        "key": "" if key is None else key.fingerprint,
        "input files (size or time)": repr(stamps),
    }


@contextmanager
def within(path: str) -> Iterator[None]:
    """Say in which file of a folder something went wrong."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{named_path(path)}: {error}" if path else str(error)) from None
    except OSError as error:
        if not path:
            raise
        raise GeoindError(
            f"{named_path(path)}: {error.strerror or 'input or output failed'}; nothing was written"
        ) from None


def source_of(name: str | Path, kind: Kind, reading: Reading, wanted: Wanted, *, again: bool = False) -> Source:
    """Return what reads a file; `again` if it is read more than once."""
    if kind.format == "ogr":
        # GDAL opens its files itself; some are folders.
        return OgrSource(str(name), reading, wanted)
    if kind.format == "parquet":
        return ParquetSource(Bytes(str(name), again=True), reading, wanted)
    return TextSource(Bytes(str(name), again=again), kind, reading, wanted)


@dataclass(frozen=True)
class Outputs:
    """Where a job writes until its files are put in place.

    Parameters
    ----------
    reports : file
        The reports; None where GDAL writes them.
    place : path, optional
        Where GDAL writes them.
    rejects : file, optional
        The bad records.
    sidecar : file, optional
        What the reports promise, where they do not say so themselves.
    """

    reports: IO[bytes] | None
    place: Path | None
    rejects: IO[bytes] | None
    sidecar: IO[bytes] | None


@dataclass
class Work:
    """A job with one file, under way.

    Parameters
    ----------
    source : Source
        What reads the file.
    target : str
        The file of reports.
    kinds : pair of Kind
        What they are.
    job : Job
        What is done.
    path : str
        Where the file is in a folder, if it is in one.
    """

    source: Source
    target: str
    kinds: tuple[Kind, Kind]
    job: Job
    path: str = ""
    rejects: Rejects = field(default_factory=Rejects)
    tally: Tally = field(default_factory=Tally)
    charged: PersonReports | None = None
    sessions: TraceSessions | None = None
    _table: Table | None = None

    @classmethod
    def begun(cls, source: str | Path, target: str | Path, job: Job, path: str = "") -> "Work":
        """Return the work to be done, unless it is known beforehand that it cannot be."""
        kinds = kinds_of(str(source), str(target), job.reading.format)
        job.reading.fit_target(kinds[1])
        _refuse_overwriting([source, *job.kept], [target, sidecar_of(target), job.rejects])
        recipe = job.recipe
        wanted = Wanted(
            places=recipe.places,
            named=tuple(name for name in (recipe.id_column, recipe.person_column) if name is not None),
            times=() if recipe.trace is None else (recipe.trace.time,),
            drop=recipe.drop,
            every_column=kinds[0].format != kinds[1].format,
            at_once=recipe.order == "shuffle",
        )
        reader = source_of(source, kinds[0], job.reading, wanted, again=job.ledger is not None)
        return cls(reader, str(target), kinds, job, path)

    @property
    def promise(self) -> TablePromise:
        """What the reports promise."""
        if self._table is None:
            raise InvalidInputError("the file has no rows")
        spent = () if self.sessions is None else self.sessions.spent.values()
        return replace(self._table.promise, kept=self.job.recipe.keep).for_traces(spent)

    def count_reports(self, sessions: TraceSessions | None) -> PersonReports:
        """Return the reports that each person will be in, unless something could not be written afterwards.

        Parameters
        ----------
        sessions : TraceSessions, optional
            Of traces: what answers the file, to learn what that costs; the answers are not kept.
        """
        self.sessions = sessions
        first, second = (kind.format for kind in self.kinds)
        refused = Rejects(unit=self.source.unit) if self.job.rejects is None else None
        persons = PersonReports()

        def seen() -> Iterator[tuple[Table, Examined]]:
            for _, table, examined, numbers in self._examined(refused):
                answers = None if self.sessions is None else [answered(examined, self.sessions)]
                persons.update(table.person_reports(examined, path=self.path, rows=numbers, reports=answers))
                yield table, examined

        if first != second:
            # To nowhere: a value that the other format cannot hold is found now.
            blank = ((table, _blank(table, examined)) for table, examined in seen())
            write_table(blank, cast(IO[bytes], pa.MockOutputStream()), second, lambda: self.promise)
        else:
            for _ in seen():
                pass
        if isinstance(self.source, OgrSource) and self._table is not None:
            try_ogr(self.source, self._table.reported_schema, self.target)
        self.charged = persons
        return persons

    def opened(self, delivery: Delivery) -> Outputs:
        """Return where the job writes; a place where nothing can be put is refused."""
        has_sidecar = self.kinds[1].format != "parquet" and self.target != STANDARD
        is_ogr = self.kinds[1].format == "ogr"
        # The target is opened first: it is put in place last.
        return Outputs(
            place=delivery.path(self.target) if is_ogr else None,
            reports=None if is_ogr else delivery.open(self.target),
            rejects=None if self.job.rejects is None else delivery.open(self.job.rejects, private=True),
            sidecar=delivery.open(sidecar_of(self.target)) if has_sidecar else None,
        )

    def write(self, outputs: Outputs) -> None:
        """Write the reports."""
        self.rejects = Rejects(outputs.rejects, unit=self.source.unit)
        if outputs.place is not None and isinstance(self.source, OgrSource):
            write_ogr(self.source, (made.batch for _, _, made in self._reported()), outputs.place)
        elif outputs.reports is not None:
            second = self.kinds[1]
            packed = compressed(outputs.reports, second.compression, inner_name(self.target, second))
            try:
                self._write(packed)
            finally:
                # Also after an error: what is left open would try to write to a file that is gone.
                if packed is not outputs.reports:
                    packed.close()
        if outputs.sidecar is not None:
            outputs.sidecar.write(self.promise.to_json().encode() + b"\n")

    def _write(self, out: IO[bytes]) -> None:
        first, second = (kind.format for kind in self.kinds)
        if first != second:
            told = lambda: self.promise  # noqa: E731
            safe = self.job.reading.spreadsheet_safe
            write_table(((table, made) for _, table, made in self._reported()), out, second, told, safe=safe)
        elif first == "parquet":
            self._write_parquet((made.batch for _, _, made in self._reported()), out)
        else:
            for rows, _, made in self._reported():
                out.write(rows.written(made.batch, made.rows))

    def _write_parquet(self, batches: Iterator[pa.RecordBatch], out: IO[bytes]) -> None:
        first = next(batches)
        codec = self.source.codec if isinstance(self.source, ParquetSource) else "snappy"
        try:
            with pq.ParquetWriter(out, first.schema, compression=codec) as writer:
                for batch in batches:
                    writer.write_batch(batch)
                if self.sessions is not None:
                    writer.add_key_value_metadata({PARQUET_KEY: self.promise.to_json().encode()})
        except pa.ArrowException as error:
            # Not its message: that may quote what the file holds.
            raise InvalidInputError(f"the Parquet file cannot be written ({type(error).__name__})") from None

    def _reported(self) -> Iterator[tuple[Rows, Table, Obfuscated]]:
        """Yield the rows, and what becomes of them."""
        persons = PersonReports()
        for rows, table, examined, numbers in self._examined(self.rejects):
            made = table.report(examined, path=self.path, rows=numbers, sessions=self.sessions)
            if self.charged is not None:
                # Rows that were shuffled are not in the order of the examined ones: they are computed again.
                reports = None if table.recipe.order == "shuffle" else made.reports
                persons.update(table.person_reports(examined, path=self.path, rows=numbers, reports=reports))
            self.tally.add(table, examined, made)
            self.tally.rejected = self.rejects.count
            yield rows, table, made
            if self.job.progress is not None:
                self.job.progress(self.tally.reports, self.source.share())
        if self.charged is not None and persons.digest != self.charged.digest:
            raise InvalidInputError(CHANGED)

    def _examined(self, rejects: Rejects | None) -> Iterator[tuple[Rows, Table, Examined, IntArray]]:
        """Yield rows, the table that they are of, what is known of them and their numbers in the file."""
        first = 0
        for rows in self.source.rows():
            recipe = self.source.recipe(self.job.recipe, rows)
            if self._table is None or self._table.schema != rows.schema or self._table.recipe != recipe:
                self._table = recipe.table(rows.schema, path=self.path)
            examined = self._table.examine(rows.batch, beside=rows.beside, sessions=self.sessions)
            if rejects is not None:
                bad = [BadRecord(rows.line(row), why, rows.record(row)) for row, why in examined.problems]
                rejects.add(sorted([*rows.problems, *bad]))
            numbers = np.arange(first, first + len(rows.batch))
            first += len(rows.batch)
            yield rows, self._table, examined, numbers
        self.source.finish(self.job.recipe)


def _blank(table: Table, examined: Examined) -> Obfuscated:
    """Return rows as they will be published, but for their reports, which are all in one place."""
    batch = examined.batch.select(table.reported_schema.names)
    return Obfuscated(batch, examined.rows, examined.problems, tuple(truth * 0 for truth in examined.truths))


def _refuse_overwriting(used: Iterable[str | Path], targets: Iterable[str | Path | None]) -> None:
    """Refuse to write over a file that is used, and to write two into one."""
    taken = [Path(name).resolve() for name in used if str(name) != STANDARD]
    for path in (Path(name).resolve() for name in targets if name is not None and str(name) != STANDARD):
        if any(path == other or (path.exists() and other.exists() and path.samefile(other)) for other in taken):
            raise InvalidInputError(
                f"{path.name} would be overwritten: input, output, rejects, key and ledger must be different files"
            )
        taken.append(path)
