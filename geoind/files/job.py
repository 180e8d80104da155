"""From files of true places to files of reports: one file, or several into a folder."""

import glob
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from geoind.atomic import STANDARD, AtomicWriter, private_folder
from geoind.errors import GeoindError, InvalidInputError
from geoind.files.formats import READ_ONLY, kind_of
from geoind.files.one import OneFile
from geoind.files.places import files_in
from geoind.files.source import Reading
from geoind.parallel import OnReports, in_processes
from geoind.pipeline import Budget
from geoind.tables.columns import named_path
from geoind.tables.recipe import Options, Recipe, with_options
from geoind.tables.record import Summary, sidecar_of
from geoind.tables.release import Count, Release
from geoind.tables.stream import Tally
from geoind.tables.unfinished import Unfinished, cancel, description, refuse_full, stamp_of

if TYPE_CHECKING:
    from geoind.traces.many import TraceSessions

__all__ = ["cancel", "is_several", "obfuscate_file", "obfuscate_files", "sources_in"]

log = logging.getLogger("geoind")

FEW_BYTES = 32 << 20
"""For less, other processes would not be ready before the work is done."""
REJECTS = ".rejects.ndjson"
"""What is added to a file's path for its rejects."""


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What is done to files, besides the recipe."""

    recipe: Recipe
    label: str
    reading: Reading
    rejects: str | Path | None = None
    ledger: Budget | None = None
    progress: OnReports | None = None
    spreadsheet_safe: bool = False
    workers: int | None = 1

    def __post_init__(self) -> None:
        if self.ledger is not None:
            self.recipe.require_person_column("a ledger")
        if str(self.rejects) == STANDARD:
            raise InvalidInputError("`rejects=` holds true places: it needs a file, not standard output")

    @property
    def used(self) -> tuple[Path, ...]:
        """The files that are never written over: the key's and the ledger's."""
        key = None if self.recipe.key is None else self.recipe.key.file
        budgets: tuple[Path, ...] = getattr(self.ledger, "files", ())
        return budgets if key is None else (key, *budgets)

    def identity(self, files: Mapping[str, str | Path]) -> dict[str, str]:
        """Return what must be equal for unfinished work to be continued."""
        key = self.recipe.key
        stamps = {
            path: stamp_of(Path(file))
            for path, file in files.items()
            if str(file) != STANDARD and Path(file).exists()
        }
        options = (replace(self.recipe, key=None), self.reading, self.spreadsheet_safe, str(self.rejects))
        return {
            "options": description(options),
            "key": "" if key is None else key.fingerprint,
            "input files (size or time)": repr(stamps),
        }


@with_options
def obfuscate_file(
    source: str | Path,
    target: str | Path,
    *,
    reading: Reading | None = None,
    rejects: str | Path | None = None,
    ledger: Budget | None = None,
    job: str | None = None,
    progress: OnReports | None = None,
    spreadsheet_safe: bool = False,
    **options: Unpack[Options],
) -> Summary:
    r"""Write a file of reports and return a summary.

    Only the reports and the kept columns are written. Memory stays flat however long the file is. The target
    appears whole, or after any error not at all. Its release record is in its Parquet metadata, or in
    `<target>.geoind.json`. After an error the same call is not charged again; `geoind.files.cancel(target)`
    removes the unfinished work.

    Parameters
    ----------
    source, target : path
        CSV, TSV, NDJSON, GeoJSON, GPX, Parquet, GeoParquet and the vector files of
        `geoind.space.vector_files.DRIVERS`; any format may become any other. GeoLife's .plt and Google's
        Records.json and Timeline.json are read. Text may be compressed (.gz, .zst, .zip). "-" is standard input or
        output.
    reading : Reading, optional
        Format, delimiter, header, layer, where the file does not show it.
    rejects : path, optional
        Where bad records go, with number and reason; without it the first one is an error. It holds true places.
    ledger : Ledger, optional
        Charges all persons for their reports, or none, before noise is drawn.
    job : str, optional
        The label of the charge; by default the target's name.
    progress : callable, optional
        Called now and then with the number of reports so far and the share of the work that is done.
    spreadsheet_safe : bool
        Whether texts of CSV and TSV that a spreadsheet would run are written with a ' first.
    **options
        The keywords of `geoind.tables.Recipe.of`: `person` and one of `epsilon`, `level` and `radius`, `mechanism`
        are needed. In JSON a column is a path, such as "properties.home".

    Examples
    --------
    >>> import tempfile
    >>> from geoind import EACH_ROW
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trips = Path(folder, "trips.csv")
    ...     _ = trips.write_text("name,day,lat,lon\nEiffel,Monday,48.8584,2.2945\n")
    ...     done = obfuscate_file(
    ...         trips, Path(folder, "reports.csv"), person=EACH_ROW, keep=["day"], level=1.386, radius=200
    ...     )
    ...     reports = Path(folder, "reports.csv").read_text()
    >>> done.reports, reports[:20]
    (1, 'day,lat,lon\nMonday,4')
    """
    name, place = str(source), str(target)
    the_job = _Job(
        recipe=Recipe.of(**options),
        label=job or f"file {Path(target).name}",
        reading=reading or Reading(),
        rejects=rejects,
        ledger=ledger,
        progress=progress,
        spreadsheet_safe=spreadsheet_safe,
    )
    _refuse_overwriting([name, *the_job.used], [place, sidecar_of(place), rejects])
    path = Path(name).name
    if ledger is None or place == STANDARD:
        if ledger is not None and the_job.recipe.key is None:
            raise InvalidInputError(
                "standard output with a ledger needs `key=`: without it a second attempt after an error would be "
                "charged again"
            )
        return _made({path: name}, {path: place}, the_job, None)
    with Unfinished(Path(target), the_job.identity({path: name}), the_job.recipe.key) as unfinished:
        keyed = replace(the_job, recipe=replace(the_job.recipe, key=unfinished.key))
        return _made({path: name}, {path: place}, keyed, unfinished)


@with_options
def obfuscate_files(
    sources: Sequence[str | Path],
    target: str | Path,
    *,
    workers: int | None = None,
    reading: Reading | None = None,
    rejects: str | Path | None = None,
    ledger: Budget | None = None,
    job: str | None = None,
    progress: OnReports | None = None,
    spreadsheet_safe: bool = False,
    **options: Unpack[Options],
) -> Summary:
    r"""Obfuscate several files of any formats into a new folder, as one release, and return a summary of all.

    A job that was interrupted or killed, and one that failed after it was paid for, leaves the files that are
    complete in a hidden folder that is private to its owner. The same call again makes the files that are missing,
    and is not charged a second time. `geoind.files.cancel(target)` removes the hidden folder.

    Parameters
    ----------
    sources : sequence of path
        Files, folders and patterns such as `trips/*.csv`. Files of a folder keep their paths in it.
    target : path
        The folder of reports, which must not exist, or be empty. It appears whole, or after any error not at all.
    workers : int, optional
        Processes; by default one per core where there is much to do. A person's trace may go from one file to the
        next, so traces are read in order, by one process.
    rejects : path, optional
        A folder for bad records, with a file for each of the sources.
    reading, ledger, job, progress, spreadsheet_safe, **options
        As for `obfuscate_file`. A kept column that some files do not have is missing in their reports.

    Examples
    --------
    >>> import tempfile
    >>> from geoind import EACH_ROW
    >>> with tempfile.TemporaryDirectory() as name:
    ...     days, reports = Path(name) / "days", Path(name) / "reports"
    ...     days.mkdir()
    ...     _ = (days / "monday.csv").write_text("lat,lon\n48.8584,2.2945\n")
    ...     obfuscate_files([days], reports, person=EACH_ROW, epsilon=0.01).reports
    1
    """
    place = Path(target)
    refuse_full(place)
    the_job = _Job(
        recipe=Recipe.of(**options),
        label=job or f"folder {place.name}",
        reading=reading or Reading(),
        rejects=rejects,
        ledger=ledger,
        progress=progress,
        spreadsheet_safe=spreadsheet_safe,
        workers=workers,
    )
    if workers is not None and (workers < 1 or the_job.recipe.time is not None):
        raise InvalidInputError(
            "`workers=` must be at least 1, and cannot be used for traces: they are read in order"
        )
    files = sources_in(sources)
    _refuse_folders(sources, files, place, the_job)
    with Unfinished(place, the_job.identity(files), the_job.recipe.key) as unfinished:
        keyed = replace(the_job, recipe=replace(the_job.recipe, key=unfinished.key))
        targets = {path: str(unfinished.folder / target) for path, target in _targets(files).items()}
        for aside in targets.values():
            Path(aside).parent.mkdir(parents=True, exist_ok=True)
        summary = _made({path: str(file) for path, file in files.items()}, targets, keyed, unfinished)
        unfinished.publish()
        return summary


def _made(
    files: Mapping[str, str], targets: Mapping[str, str], job: _Job, unfinished: Unfinished | None
) -> Summary:
    """Count all files, decide, charge, and write those that are not complete."""
    job = replace(job, recipe=job.recipe.with_key())
    several = unfinished is not None and unfinished.folder in Path(next(iter(targets.values()))).parents
    works = {
        path: OneFile(
            name,
            targets[path],
            job.recipe,
            path,
            job.reading,
            None if job.rejects is None else (_rejects_of(job.rejects, path) if several else job.rejects),
            len(files) > 1,
            job.spreadsheet_safe,
        )
        for path, name in files.items()
    }
    counted = _counted(works, job)
    rejected = sum(work.rejected for work in works.values())
    first = next(iter(works.values()))
    release = Release.of(job.recipe, counted, first.table)
    left_out = list(dict.fromkeys(name for work in works.values() for name in work.table.left_out))
    again = job.recipe.time is not None
    missing = {
        path: work for path, work in works.items() if again or not several or not Path(work.target).exists()
    }
    if several:
        _charge(works, release, job, unfinished)
        tally = _written(missing, release, job)
    else:
        with AtomicWriter(None if unfinished is None else unfinished.folder) as delivery:
            # Nothing is charged for what cannot be written.
            outputs = first.opened(delivery)
            _charge(works, release, job, unfinished)
            sessions = _sessions(job.recipe)
            with within(""):
                tally = first.write(outputs, release, sessions=sessions, progress=job.progress)
    if len(missing) < len(works):
        log.warning("%d of %d files were complete", len(works) - len(missing), len(works))
        # What earlier runs made is not counted again, so the extent of all reports is not known.
        tally = Tally()
    tally = replace(tally, reports=release.reports)
    return tally.summary(release, left_out, rejected=rejected, charged=job.ledger is not None)


def _counted(works: Mapping[str, OneFile], job: _Job) -> Count:
    """Return the counts of all files."""
    total, sessions = Count(), _sessions(job.recipe)
    # The rows of a small folder stay in memory until they are drawn, those of a large one would not fit.
    small = len(works) == 1 or _bytes_in(works) < FEW_BYTES
    jobs = [(work if small else work.settled(), sessions, job.ledger is not None) for work in works.values()]
    parallel = sessions is None and _in_parallel(works, job)
    counts = in_processes(job.workers, _count, jobs) if parallel else starmap(_count, jobs)
    for path, part, rejected in counts:
        total.merge(part, job.recipe.most_rows)
        works[path].rejected = rejected
    return total


def _count(work: OneFile, sessions: "TraceSessions | None", charged: bool) -> tuple[str, Count, int]:
    with within(work.path if work.one_of_several else ""):
        return work.path, work.count(sessions, charged=charged), work.rejected


def _charge(works: Mapping[str, OneFile], release: Release, job: _Job, unfinished: Unfinished | None) -> None:
    """Charge all persons or none; after that, what is unfinished is kept."""
    if job.ledger is None:
        return
    with nullcontext() if unfinished is None else unfinished.charging():
        release.charge(job.ledger, lambda release: [work.tags(release) for work in works.values()], job.label)


def _written(works: Mapping[str, OneFile], release: Release, job: _Job) -> Tally:
    """Write the reports of several files, each whole or not at all."""
    tally, sessions = Tally(), _sessions(job.recipe)
    parts: Iterator[Tally]
    if sessions is not None or not _in_parallel(works, job):
        parts = (_write(path, work, release, sessions) for path, work in works.items())
    else:
        jobs = [(path, work.settled(), release) for path, work in works.items()]
        parts = in_processes(job.workers, _write, jobs)
    for number, part in enumerate(parts, 1):
        tally.merge(part)
        if job.progress is not None:
            job.progress(tally.reports, number / len(works))
    return tally


def _write(path: str, work: OneFile, release: Release, sessions: "TraceSessions | None" = None) -> Tally:
    with within(path):
        if work.rejects is not None:
            private_folder(Path(work.rejects).parent)
        with AtomicWriter() as delivery:
            return work.write(work.opened(delivery), release, sessions=sessions)


def _sessions(recipe: Recipe) -> "TraceSessions | None":
    return recipe.sessions


def _in_parallel(works: Mapping[str, OneFile], job: _Job) -> bool:
    if job.workers is not None or len(works) < 2:
        return job.workers is not None and job.workers > 1 and len(works) > 1
    return _bytes_in(works) >= FEW_BYTES


def _bytes_in(works: Mapping[str, OneFile]) -> int:
    return sum(Path(work.name).stat().st_size for work in works.values())


def is_several(sources: Sequence[str | Path]) -> bool:
    """Return whether sources are more than one file: a folder, a pattern, or several of anything."""
    first = str(sources[0])
    return len(sources) > 1 or Path(first).is_dir() or (glob.has_magic(first) and not Path(first).exists())


def sources_in(sources: Sequence[str | Path]) -> dict[str, Path]:
    """Return the files that sources stand for, by the paths that their reports get in a folder."""
    found: dict[str, Path] = {}
    for source in map(str, sources):
        names = [source]
        if glob.has_magic(source) and not Path(source).exists():
            names = sorted(glob.glob(source, recursive=True))  # noqa: PTH207
            if not names:
                raise InvalidInputError(f"no file matches {source}")
        for name in names:
            root = Path(name) if Path(name).is_dir() else Path(name).parent
            for file in files_in([name]):
                path = file.relative_to(root).as_posix()
                if found.setdefault(path, file).resolve() != file.resolve():
                    raise InvalidInputError(f"two files are called {path}: obfuscate them one after the other")
    return found


def _targets(files: Mapping[str, Path]) -> dict[str, Path]:
    """Return the path of the reports of each source: one of a format that is only read becomes CSV."""
    taken: dict[Path, str] = {}
    for path, file in files.items():
        read_only = kind_of(file).format in READ_ONLY
        target = Path(path).with_suffix(".csv") if read_only else Path(path)
        if taken.setdefault(target, path) != path:
            both = " and ".join(map(named_path, (taken[target], path)))
            raise InvalidInputError(
                f"the reports of {both} would have the same name: obfuscate them one after the other"
            )
    return {path: target for target, path in taken.items()}


def _rejects_of(rejects: str | Path, path: str) -> Path:
    return Path(rejects) / f"{path}{REJECTS}"


@contextmanager
def within(path: str) -> Iterator[None]:
    """Name the file of a folder in which something went wrong."""
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


def _refuse_overwriting(used: Iterable[str | Path], targets: Iterable[str | Path | None]) -> None:
    """Refuse to write over a file that is used, and to write two into one."""
    taken = [Path(name).resolve() for name in used if str(name) != STANDARD]
    for path in (Path(name).resolve() for name in targets if name is not None and str(name) != STANDARD):
        if any(path == other or (path.exists() and other.exists() and path.samefile(other)) for other in taken):
            raise InvalidInputError(
                f"{path.name} would be overwritten: input, output, rejects, key and ledger must be different files"
            )
        taken.append(path)


def _refuse_folders(sources: Sequence[str | Path], files: Mapping[str, Path], place: Path, job: _Job) -> None:
    """Refuse folders of reports and rejects that get into each other's way, or that cannot be written."""
    if any(_is_in(file, place) for file in (*files.values(), *job.used)):
        raise InvalidInputError("the folder of reports must be another one than the source's")
    for folder in _folders_of(sources):
        if _is_in(place, folder):
            raise InvalidInputError(f"{place} is inside a source: the next run would take its reports for places")
        if job.rejects is not None and _is_in(job.rejects, folder):
            raise InvalidInputError(f"{job.rejects} is inside a source: the next run would read its rejects")
    if job.rejects is None:
        return
    if _is_in(job.rejects, place):
        raise InvalidInputError(
            "the folder of rejects, which hold true places, must not be in that of the reports"
        )
    for path in files:
        rejects = _rejects_of(job.rejects, path)
        _refuse_overwriting(job.used, [rejects])
        _refuse_unwritable(rejects)


def _is_in(path: str | Path, folder: str | Path) -> bool:
    """Return whether a path is a folder, or leads into it."""
    return Path(path).resolve().is_relative_to(Path(folder).resolve())


def _folders_of(sources: Sequence[str | Path]) -> Iterator[Path]:
    """Yield the folders whose new files would be taken the next time."""
    for source in map(str, sources):
        if Path(source).is_dir():
            yield Path(source)
        elif "**" in source:
            yield Path(source.partition("**")[0] or ".")
        else:
            yield from filter(Path.is_dir, map(Path, glob.glob(source)))  # noqa: PTH207


def _refuse_unwritable(rejects: Path) -> None:
    """Refuse a place for rejects where no file can be put; the folders above it that are missing can be made."""
    there = next(folder for folder in rejects.parents if folder.exists())
    with AtomicWriter() as delivery:
        # Nothing is written to it, so nothing appears.
        delivery.path(rejects if there == rejects.parent else there / rejects.name)
