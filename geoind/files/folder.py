"""Several files of places in, a folder of reports out: whole or not at all."""

import glob
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from geoind.errors import InvalidInputError
from geoind.files.job import Job, Work, pay, within
from geoind.files.places import files_in
from geoind.tables.delivery import private_folder
from geoind.tables.summary import Summary, Tally

__all__ = ["is_several", "obfuscate_files", "sources_in"]


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


def obfuscate_files(sources: Sequence[str | Path], target: str | Path, job: Job) -> Summary:
    r"""Obfuscate several files into a new folder, and return a summary of all.

    Parameters
    ----------
    sources : sequence of path
        Files, folders and patterns such as `trips/*.csv`. Files of a folder keep their paths in it.
    target : path
        The folder of reports, which must not exist, or be empty. It appears whole, or after any error not at all.
    job : Job
        What is done to each file. Its `rejects` are a folder, with a file for each of the sources.

    Examples
    --------
    >>> import tempfile
    >>> from geoind.tables import Recipe
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "in").mkdir()
    >>> _ = (folder / "in" / "a.csv").write_text("lat,lon\n48.8584,2.2945\n")
    >>> obfuscate_files([folder / "in"], folder / "out", Job(recipe=Recipe.of(epsilon=0.01))).reports
    1
    """
    place = Path(target)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InvalidInputError(f"{target} must be a new or an empty folder")
    files = sources_in(sources)
    for file in files.values():
        if place.resolve() in (file.resolve(), *file.resolve().parents):
            raise InvalidInputError("the folder of reports must be another one than the source's")
    tally, works = Tally(), {}
    with _appearing(place) as aside:
        for path, file in files.items():
            with within(path):
                (aside / path).parent.mkdir(parents=True, exist_ok=True)
                works[path] = Work.begun(file, aside / path, replace(job, rejects=_rejects(job, path)))
        pay(works, job, f"folder {place.name}")
        promise = None
        for path, work in works.items():
            with within(path):
                if work.job.rejects is not None:
                    private_folder(Path(work.job.rejects).parent)
                work.write()
                tally.merge(work.tally)
                # Of traces the last file's: it counts all of them.
                promise = work.promise
    if promise is None:
        raise InvalidInputError("there are no files")
    return tally.summary(job.recipe.mechanism, promise)


def _rejects(job: Job, path: str) -> Path | None:
    return None if job.rejects is None else Path(job.rejects) / f"{path}.rejects.ndjson"


@contextmanager
def _appearing(place: Path) -> Iterator[Path]:
    """Return a folder that only its owner can enter, which becomes the place if all goes well."""
    aside = place.resolve().parent / f".{place.name}.{secrets.token_hex(4)}.partial"
    try:
        aside.mkdir(mode=0o700)
    except OSError as error:
        raise InvalidInputError(f"cannot write {place}: {error.strerror}") from None
    try:
        inside = aside / place.name
        inside.mkdir()
        yield inside
        if place.exists():
            place.rmdir()
        os.replace(inside, place)  # noqa: PTH105
    finally:
        shutil.rmtree(aside, ignore_errors=True)
