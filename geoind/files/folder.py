"""Several files of places in, a folder of reports out: whole or not at all, and taken up again after a crash."""

import glob
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from geoind.budgets.persons import PersonReports
from geoind.errors import InvalidInputError
from geoind.files.job import Job, Work, identity_of, pay, within
from geoind.files.places import files_in
from geoind.parallel import in_processes
from geoind.tables import TablePromise
from geoind.tables.delivery import Delivery, private_folder
from geoind.tables.summary import Summary, Tally
from geoind.tables.unfinished import Unfinished, refuse_full

__all__ = ["is_several", "obfuscate_files", "sources_in"]

log = logging.getLogger("geoind")

FEW_BYTES = 32 << 20
"""For less, other processes would not be ready before the work is done."""

REJECTS = ".rejects.ndjson"
"""What is added to a file's path for its rejects."""


def is_several(sources: Sequence[str | Path]) -> bool:
    """Return whether sources are more than one file: a folder, a pattern, or several of anything."""
    first = str(sources[0])
    return len(sources) > 1 or Path(first).is_dir() or (glob.has_magic(first) and not Path(first).exists())


def sources_in(sources: Sequence[str | Path]) -> dict[str, Path]:
    """Return the files that sources stand for, by the paths that their reports get in a folder."""
    found: dict[str, Path] = {}
    for source in map(str, sources):
        if glob.has_magic(source) and not Path(source).exists():
            names = sorted(glob.glob(source, recursive=True))  # noqa: PTH207
            if not names:
                raise InvalidInputError(f"no file matches {source}")
        else:
            names = [source]
        for name in names:
            root = Path(name) if Path(name).is_dir() else Path(name).parent
            for file in files_in([name]):
                path = file.relative_to(root).as_posix()
                if found.setdefault(path, file).resolve() != file.resolve():
                    raise InvalidInputError(f"two files are called {path}: obfuscate them one after the other")
    return found


def obfuscate_files(
    sources: Sequence[str | Path], target: str | Path, job: Job, *, workers: int | None = None
) -> Summary:
    r"""Obfuscate several files into a new folder, and return a summary of all.

    A job that was interrupted or killed, and one that failed after it was paid for, leaves the files that are
    complete in a hidden folder that is private to its owner. The same call again makes the files that are missing,
    counts those in its summary, and is not charged a second time. `geoind.files.cancel(target)` removes the hidden
    folder.

    Parameters
    ----------
    sources : sequence of path
        Files, folders and patterns such as `trips/*.csv`. Files of a folder keep their paths in it.
    target : path
        The folder of reports, which must not exist, or be empty. It appears whole, or after any error not at all.
    job : Job
        What is done to each file. Its `rejects` are a folder, with a file for each of the sources.
    workers : int, optional
        Processes; by default one per core where there is much to do. A person's trace may go from one file to the
        next, so traces are read in order, by one process.

    Examples
    --------
    >>> import tempfile
    >>> from geoind.tables import Recipe
    >>> with tempfile.TemporaryDirectory() as name:
    ...     days, reports = Path(name) / "days", Path(name) / "reports"
    ...     days.mkdir()
    ...     _ = (days / "monday.csv").write_text("lat,lon\n48.8584,2.2945\n")
    ...     obfuscate_files([days], reports, Job(recipe=Recipe.of(epsilon=0.01))).reports
    1
    """
    place = Path(target)
    refuse_full(place)
    job.refuse_half_an_identity()
    if workers is not None and job.recipe.trace is not None:
        raise InvalidInputError("workers (--workers) cannot be used for traces: their files are read in order")
    files = sources_in(sources)
    _refuse_folders(sources, files, place, job)
    with Unfinished(place, identity_of(job, files), job.recipe.key) as unfinished:
        job = job.under(unfinished.key)
        works = {}
        for path, file in files.items():
            with within(path):
                aside = unfinished.folder / path
                aside.parent.mkdir(parents=True, exist_ok=True)
                works[path] = Work.begun(file, aside, replace(job, rejects=_rejects(job, path)), path)
        pay(works, job, f"folder {place.name}", unfinished)
        # A trace may continue in the next file: its sessions answer all files again, and repeat their answers.
        again = job.recipe.trace is not None
        missing = {path: work for path, work in works.items() if again or not Path(work.target).exists()}
        if len(missing) < len(works):
            done = len(works) - len(missing)
            log.warning("%d of %d files were complete; the summary counts the others", done, len(works))
        summary = _made(missing, files, job, workers)
        unfinished.publish()
        return summary


def _made(missing: Mapping[str, Work], files: Mapping[str, Path], job: Job, workers: int | None) -> Summary:
    """Make the files that are missing, in this process or in several, and return a summary of them."""
    tally, promise = Tally(), None
    if workers is None and sum(files[path].stat().st_size for path in missing) < FEW_BYTES:
        workers = 1
    if job.recipe.trace is not None or workers == 1 or len(missing) == 1:
        for path, work in missing.items():
            with within(path):
                _write(work)
            tally.merge(work.tally)
            # Of traces the last file's: it counts all of them.
            promise = work.promise
    else:
        alone = replace(job, ledger=None, progress=None)
        jobs = [
            (path, files[path], work.target, replace(alone, rejects=work.job.rejects), work.charged)
            for path, work in missing.items()
        ]
        for number, (part, told) in enumerate(in_processes(workers, _make, jobs), 1):
            tally.merge(part)
            promise = told
            if job.progress is not None:
                job.progress(tally.reports, number / len(jobs))
    # Where an earlier run made all files, it told what they promise.
    return tally.summary(job.recipe.mechanism, promise or TablePromise.of(job.recipe.mechanism))


def _refuse_folders(sources: Sequence[str | Path], files: Mapping[str, Path], place: Path, job: Job) -> None:
    """Refuse folders of reports and rejects that get into each other's way, or that cannot be written."""
    for file in files.values():
        if _is_in(file, place):
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
        _refuse_unwritable(Path(job.rejects) / f"{path}{REJECTS}")


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
    with Delivery() as delivery:
        # Nothing is written to it, so nothing appears.
        delivery.path(rejects if there == rejects.parent else there / rejects.name)


def _write(work: Work) -> None:
    if work.job.rejects is not None:
        private_folder(Path(work.job.rejects).parent)
    with Delivery() as delivery:
        work.write(work.opened(delivery))


def _make(
    path: str, file: Path, target: str, job: Job, charged: PersonReports | None
) -> tuple[Tally, TablePromise]:
    """Write the reports of one file, whole or not at all, and return what was counted and promised."""
    with within(path):
        work = Work.begun(file, target, job, path)
        work.charged = charged
        _write(work)
    return work.tally.settled(), work.promise


def _rejects(job: Job, path: str) -> Path | None:
    return None if job.rejects is None else Path(job.rejects) / f"{path}{REJECTS}"
