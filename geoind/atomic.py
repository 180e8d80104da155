"""Files that appear whole or not at all, and that only their owner can read until then."""

import os
import secrets
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from geoind.errors import InvalidInputError

__all__ = ["STANDARD", "AtomicWriter", "private_folder"]

STANDARD = "-"
"""The name of standard input and output."""

SPOOL = 16 << 20
"""So many bytes for standard output stay in memory; more wait in a file that has no name."""


class AtomicWriter:
    """A context in which files are written aside, to be put in place together when it ends without an error.

    Each is written to a hidden directory next to its place, which only its owner can enter, and renamed from
    there; after an error, or an interrupt, nothing is left. Standard output waits until the end, too. The
    file opened first is put in place last: where it is, the others are, and they are of the same work.

    Parameters
    ----------
    within : path, optional
        The folder of a `WorkFolder`, for the hidden directories of files next to that job's target; by
        default each is next to its file.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with AtomicWriter() as delivery:
    ...         _ = delivery.open(f"{folder}/reports.csv").write(b"lon,lat")
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
        """Return a file to write what shall appear under the name ("-" for standard output).

        Parameters
        ----------
        name : path
            Where the file shall be.
        private : bool
            Whether it holds true places: then it stays its owner's alone, for ever.
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
        """Return where to write a file, and others next to it, that shall appear under the name."""
        place = Path(name).resolve()
        if place.exists() and (not place.is_file() or _is_stream(place)):
            raise InvalidInputError(
                f"{name} must be a regular file, and no standard stream (- is standard output)"
            )
        folder = place.parent
        if self._within is not None and self._within.parent.parent == folder:
            folder = self._within
        aside = folder / f".{place.name}.{secrets.token_hex(4)}.partial"
        # Recorded first, so that it is removed also if a signal ends the process right after it was made.
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
                # What matters was said before: a full disk must not keep what is left from being removed.
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
            # The main file last: a shapefile's companions are of no use without it.
            for part in sorted(aside.iterdir(), key=lambda part: part.name == place.name):
                with part.open("rb") as written:
                    os.fsync(written.fileno())
                parts.append((part, place.parent / part.name))
        if len(parts) > 1:
            # Removed first: a job that is killed now must not leave it with the record of another release.
            parts[-1][1].unlink(missing_ok=True)
        for part, end in parts:
            part.replace(end)
        if self._spool is not None:
            self._spool.seek(0)
            shutil.copyfileobj(self._spool, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def private_folder(path: str | Path) -> Path:
    """Return a folder; it and those above it that are not there yet are made, for their owner alone."""
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
