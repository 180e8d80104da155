"""Several files of places in, a folder of reports out: whole or not at all, and taken up again after a crash."""

import glob
import json
import logging
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from geoind.errors import InvalidInputError
from geoind.files.job import Job, Work, pay, within
from geoind.files.places import files_in
from geoind.parallel import in_processes
from geoind.tables import TablePromise
from geoind.tables.delivery import Delivery, private_folder
from geoind.tables.summary import Summary, Tally

__all__ = ["is_several", "obfuscate_files", "sources_in"]

log = logging.getLogger("geoind")

FEW_BYTES = 32 << 20
"""For less, other processes would not be ready before the work is done."""

STATE = "job.json"

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

    A job that was killed or interrupted leaves what it finished in a hidden folder that only its owner can enter.
    Run it again with the same arguments: it makes the files that are missing, and counts those in its summary.

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
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InvalidInputError(f"{target} must be a new or an empty folder")
    if workers is not None and job.recipe.trace is not None:
        raise InvalidInputError("workers are not for traces, whose files are read in order")
    files = sources_in(sources)
    _refuse_folders(sources, files, place, job)
    with Unfinished(place, _state(job, files)) as unfinished:
        works = {}
        for path, file in files.items():
            with within(path):
                aside = unfinished.folder / path
                aside.parent.mkdir(parents=True, exist_ok=True)
                works[path] = Work.begun(file, aside, replace(job, rejects=_rejects(job, path)), path)
        if not unfinished.paid:
            pay(works, job, f"folder {place.name}")
            unfinished.note_paid()
        missing = {path: work for path, work in works.items() if not Path(work.target).exists()}
        if len(missing) < len(works):
            log.warning("%d of %d files were there already", len(works) - len(missing), len(works))
        return _made(missing, files, job, workers)


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
    path: str, file: Path, target: str, job: Job, charged: Counter[str] | None
) -> tuple[Tally, TablePromise]:
    """Write the reports of one file, whole or not at all, and return what was counted and promised."""
    with within(path):
        work = Work.begun(file, target, job, path)
        work.charged = charged
        _write(work)
    return work.tally.settled(), work.promise


def _rejects(job: Job, path: str) -> Path | None:
    return None if job.rejects is None else Path(job.rejects) / f"{path}{REJECTS}"


def _state(job: Job, files: Mapping[str, Path]) -> dict[str, str]:
    """Return what must be the same for an unfinished job to be taken up again; traces cannot be."""
    recipe = job.recipe
    stamps = [(path, (stat := file.stat()).st_size, stat.st_mtime_ns) for path, file in files.items()]
    told = replace(recipe, key=None)
    return {
        "options": repr((told, job.reading, None if job.rejects is None else str(job.rejects))),
        "key fingerprint": "" if recipe.key is None else recipe.key.fingerprint,
        "source files": repr(stamps),
        "traces": "" if recipe.trace is None else secrets.token_hex(8),
    }


class Unfinished:
    """A hidden folder, its owner's alone, in which a folder of reports grows until it is whole.

    After an error it is removed. After an interrupt, or when the job is killed, it stays, and the same job goes on
    from there.

    Parameters
    ----------
    place : path
        Where the folder of reports will be.
    state : dict
        What the job is.
    """

    def __init__(self, place: Path, state: Mapping[str, str]) -> None:
        self._place = place
        self._aside = place.resolve().parent / f".{place.name}.partial"
        self._state = dict(state)
        self.folder = self._aside / place.name
        self.paid = False

    def __enter__(self) -> Self:
        if self._aside.exists():
            found = self._found()
            if any(found.get(name) != value for name, value in self._state.items()):
                raise InvalidInputError(
                    f"{self._aside} is what another job left unfinished, or is at work on: remove it, or use "
                    "another folder"
                )
            self.paid = bool(found.get("paid"))
            return self
        try:
            self._aside.mkdir(mode=0o700)
            self.folder.mkdir()
        except OSError as error:
            raise InvalidInputError(f"cannot write {self._place}: {error.strerror}") from None
        self._note(self._state)
        return self

    def note_paid(self) -> None:
        """Remember that the persons' budgets were charged."""
        self.paid = True
        self._note({**self._state, "paid": "yes"})

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not issubclass(kind, Exception):
            return
        try:
            if kind is None:
                for left in self.folder.rglob(".*.partial"):
                    shutil.rmtree(left, ignore_errors=True)
                if self._place.exists():
                    self._place.rmdir()
                self.folder.replace(self._place)
        finally:
            shutil.rmtree(self._aside, ignore_errors=True)

    def _found(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self._aside / STATE).read_text())
        except (OSError, ValueError):
            return {}
        return found

    def _note(self, state: Mapping[str, str]) -> None:
        with Delivery() as delivery:
            delivery.open(self._aside / STATE, private=True).write(json.dumps(state).encode())
