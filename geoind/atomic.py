"""Files that appear complete or not at all."""

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from geoind.errors import InvalidInputError

__all__ = ["STANDARD", "AtomicWriter", "private_folder", "refuse_unwritable"]

STANDARD = "-"
"""The name of standard input and output."""

SPOOL = 16 << 20
"""Bytes for standard output that stay in memory; more go to an unnamed temporary file."""


class AtomicWriter:
    """A context whose files appear together when it ends without an error.

    Each file is written to a hidden directory with mode 0700 next to its place and renamed from there; after an
    error or an interrupt nothing is left. Standard output is written at the end too. The file that was opened
    first is renamed last: if it exists, the others exist and belong to the same job.

    Parameters
    ----------
    within : path, optional
        The folder of a `WorkFolder`, for the hidden directories of files next to that job's target; by
        default each is next to its file.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with AtomicWriter() as writer:
    ...         _ = writer.open(f"{folder}/reports.csv").write(b"lon,lat")
    ...         before = os.path.exists(f"{folder}/reports.csv")
    ...     before, os.path.exists(f"{folder}/reports.csv")
    (False, True)
    """

    def __init__(self, within: Path | None = None) -> None:
        self._within = within
        self._places: list[tuple[Path, Path]] = []
        self._files: list[IO[bytes]] = []
        self._spool: IO[bytes] | None = None

    def open(self, name: str | Path, *, private: bool = False) -> IO[bytes]:
        """Return a file to write the content of a name ("-" for standard output).

        Parameters
        ----------
        name : path
            Where the file will appear.
        private : bool
            Whether it holds true locations: then its mode is 0600.
        """
        if str(name) == STANDARD:
            if sys.stdout is None:
                raise InvalidInputError("standard output is closed: nothing can be written there")
            self._spool = cast(IO[bytes], tempfile.SpooledTemporaryFile(SPOOL))  # noqa: SIM115
            return self._spool
        path = self.path(name)
        file: IO[bytes] = os.fdopen(
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666), "w+b"
        )
        self._files.append(file)
        return file

    def path(self, name: str | Path) -> Path:
        """Return where to write a file, and its companions next to it, that will appear under the name."""
        place = Path(name).resolve()
        if place.exists() and (not place.is_file() or _is_stream(place)):
            raise InvalidInputError(
                f"{name} must be a regular file, and no standard stream (- is standard output)"
            )
        folder = place.parent
        if self._within is not None and self._within.parent.parent == folder:
            folder = self._within
        aside = folder / f".{place.name}.{secrets.token_hex(4)}.partial"
        # Stored before it is created: a signal right afterwards must find it to remove it.
        self._places.append((aside, place))
        try:
            aside.mkdir(mode=0o700)
        except OSError as error:
            self._places.pop()
            raise InvalidInputError(f"cannot write {name}: {error.strerror}") from None
        return aside / place.name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._deliver()
        finally:
            for file in (*self._files, self._spool):
                # A full disk must not prevent the removal of the rest; the first error is raised anyway.
                with suppress(OSError):
                    if file is not None:
                        file.close()
            for aside, _ in self._places:
                shutil.rmtree(aside, ignore_errors=True)

    def _deliver(self) -> None:
        for file in self._files:
            file.close()
        parts = []
        for aside, place in reversed(self._places):
            # The main file last: the companions of a shapefile are useless without it.
            for part in sorted(aside.iterdir(), key=lambda part: part.name == place.name):
                with part.open("rb") as written:
                    os.fsync(written.fileno())
                parts.append((part, place.parent / part.name))
        if len(parts) > 1:
            # The old file goes first: a job that is killed now must not leave it next to a new release record.
            parts[-1][1].unlink(missing_ok=True)
        for part, end in parts:
            part.replace(end)
        if self._spool is not None:
            self._spool.seek(0)
            shutil.copyfileobj(self._spool, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def refuse_unwritable(names: Iterable[str | Path], within: Path | None = None) -> None:
    """Raise if there is a file that cannot be written. Nothing is written here, so nothing appears."""
    with AtomicWriter(within) as trial:
        for name in names:
            trial.open(name) if str(name) == STANDARD else trial.path(name)


def private_folder(path: str | Path) -> Path:
    """Return a folder; it and its missing parents are created with mode 0700."""
    folder = Path(path)
    if not folder.is_dir():
        private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _is_stream(place: Path) -> bool:
    """Return whether a file is this process's standard input, output or error."""
    for number in range(3):
        with suppress(OSError):
            if os.path.samestat(os.fstat(number), place.stat()):
                return True
    return False
