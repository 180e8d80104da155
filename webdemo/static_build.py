"""The story as a folder for any web server, a memory stick or a file share, without Python."""

from pathlib import Path

from geoind.maps.basemap import read_basemap

from .folders import write_folder
from .story import story_files
from .town import Town

__all__ = ["write_static"]


def write_static(folder: Path, basemap: Path | None = None) -> list[Path]:
    """Write the story into a new or empty folder and return its files; without a base map, of Helsinki."""
    return write_folder(folder, lambda: story_files(Town(read_basemap(basemap)), with_server=False), "--static")
