"""The story as a folder for any web server, a memory stick or a file share, without Python."""

from pathlib import Path

from geoind import InvalidInputError
from geoind.maps.basemap import read_basemap

from .story import story_files
from .town import Town

__all__ = ["write_static"]


def write_static(folder: Path, basemap: Path | None = None) -> list[Path]:
    """Write the story into a new or empty folder and return its files; without a base map, of Helsinki."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInputError(f"--static: {str(folder)!r} must be a new or an empty folder")
    pages = story_files(Town(read_basemap(basemap)), with_server=False)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in pages.items():
        folder.joinpath(name).write_bytes(content)
    return [folder / name for name in sorted(pages)]
