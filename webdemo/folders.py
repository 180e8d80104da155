"""Files into a new folder."""

from collections.abc import Callable
from pathlib import Path

from geoind import InvalidInputError

__all__ = ["write_folder"]


def write_folder(folder: Path, make: Callable[[], dict[str, bytes]], option: str) -> list[Path]:
    """Write files into a new or empty folder and return them; the option names the folder in an error.

    They are made after the folder was checked.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInputError(f"{option}: {str(folder)!r} must be a new or an empty folder")
    files = make()
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        folder.joinpath(name).write_bytes(content)
    return [folder / name for name in sorted(files)]
