"""The files of folders: which are read, and where their reports and rejects go."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from geoind.errors import InvalidInputError
from geoind.files.formats import READ_ONLY, STANDARD, is_known, kind_of, refuse_urls
from geoind.files.writers import refuse_unwritable
from geoind.space.vector_files import DRIVERS
from geoind.tables.columns import named_path
from geoind.tables.sidecars import visible_in

REJECTS = ".rejects.ndjson"
"""What is added to a file's path for its rejects."""


def files_in(paths: Sequence[str | Path]) -> list[Path]:
    """Return files, and for each folder the files of places in it and below.

    Hidden files, those that begin with an underscore, and sidecars are left out.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            if not path.exists() and str(path) != STANDARD:
                raise InvalidInputError(f"no such file: {path}")
            found.append(path)
            continue
        inside = [file for file in visible_in(path) if is_known(file)]
        if not inside:
            raise InvalidInputError(f"the folder {path} holds no files of places")
        found += inside
    return found


def others_in(folder: Path) -> list[Path]:
    """Return the files of a folder and below that are neither read nor part of one that is."""
    visible = visible_in(folder)
    # A shapefile is several files of one name.
    whole = {file.with_suffix("") for file in visible if file.suffix.lower() in DRIVERS}
    return [file for file in visible if not is_known(file) and file.with_suffix("") not in whole]


def sources_in(sources: Sequence[str | Path]) -> dict[str, Path]:
    """Return the files that sources stand for, by the paths that their reports get in a folder."""
    refuse_urls(*sources)
    found: dict[str, Path] = {}
    for source in map(Path, sources):
        root = source if source.is_dir() else source.parent
        for file in files_in([source]):
            path = file.relative_to(root).as_posix()
            if found.setdefault(path, file).resolve() != file.resolve():
                raise InvalidInputError(f"two files are called {path}: obfuscate them one after the other")
    if not found:
        raise InvalidInputError("there must be at least one file")
    return found


def targets_of(files: Mapping[str, str | Path]) -> dict[str, Path]:
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


def rejects_of(rejects: str | Path, path: str) -> Path:
    """Return where the bad records of a file of a folder go."""
    return Path(rejects) / f"{path}{REJECTS}"


def refuse_folders(
    sources: Sequence[str | Path],
    files: Mapping[str, str | Path],
    target: Path,
    rejects: str | Path | None,
    used: Sequence[Path],
) -> None:
    """Raise if the folders of sources, reports and rejects overlap, or cannot be written."""
    if _is_in(Path.cwd(), target):
        raise InvalidInputError(f"{str(target)!r} must be another folder than the current one and those above it")
    if any(_is_in(file, target) for file in (*files.values(), *used)):
        raise InvalidInputError("the folder of reports must be another one than the source's")
    # The next run would read all files of these folders.
    for folder in filter(Path.is_dir, map(Path, sources)):
        if _is_in(target, folder):
            raise InvalidInputError(f"{target} is inside a source: the next run would take its reports for places")
        if rejects is not None and _is_in(rejects, folder):
            raise InvalidInputError(f"{rejects} is inside a source: the next run would read its rejects")
    if rejects is None:
        return
    if _is_in(rejects, target):
        raise InvalidInputError(
            "the folder of rejects, which hold true places, must not be in that of the reports"
        )
    for place in (rejects_of(rejects, path) for path in files):
        # The folders above it that are missing can be made.
        there = next(folder for folder in place.parents if folder.exists())
        refuse_unwritable([place if there == place.parent else there / place.name])


def _is_in(path: str | Path, folder: str | Path) -> bool:
    """Return whether a path is a folder, or leads into it."""
    return Path(path).resolve().is_relative_to(Path(folder).resolve())
