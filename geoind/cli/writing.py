"""What every command that writes a file finds out before it computes."""

import os
from collections.abc import Iterable
from pathlib import Path

from geoind.errors import InvalidInputError

__all__ = ["check_target"]


def check_target(target: Path, inputs: Iterable[Path] = ()) -> None:
    """Refuse a file that could not be written, or that is one of the inputs."""
    if not target.parent.is_dir() or target.is_dir():
        raise InvalidInputError(f"--out must be a file in a folder that exists, got {str(target)!r}")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InvalidInputError(f"--out cannot be written: {str(target)!r}")
    if target.exists() and any(target.samefile(file) for file in inputs if file.exists()):
        raise InvalidInputError(f"--out would overwrite the input {str(target)!r}")
