"""Work that is not finished: what a job needs to continue after an error, a full disk or a kill."""

import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from geoind.errors import BudgetExceededError, GeoindError, InvalidInputError
from geoind.keys import KEY_BYTES, Key

if sys.platform != "win32":
    import fcntl

log = logging.getLogger("geoind")

STATE = "job.json"

CHANGED = (
    "the input changed after the persons were charged: restore it and run again, or cancel the job "
    "(--cancel; charges stay)"
)

MOST_STATE = 1 << 16
"""Bytes of a state; it has some hundred."""


class WorkFolder:
    """A hidden folder next to a job's target, private to its owner and locked by the process that works in it.

    It holds the job's identity, the key of its noise and the files that are complete. After an error it stays if
    the job was paid for, after an interrupt or a kill it stays in any case, and the same call continues from
    there. It records where the work stands. Payments are recorded in the ledger only.

    Parameters
    ----------
    target : path
        The file or folder that the job makes.
    identity : mapping
        What must be equal for a later call to continue the work, as text by name.
    key : Key, optional
        The key of the noise. Without it one is made and kept until the work is finished or cancelled, so that a
        second attempt repeats the reports of the first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     reports = Path(name, "reports")
    ...     with WorkFolder(reports, {"source": "trips"}) as work:
    ...         _ = (work.folder / "monday.csv").write_text("lon,lat")
    ...         work.publish()
    ...     sorted(path.name for path in Path(name).rglob("*"))
    ['monday.csv', 'reports']
    """

    key: Key

    def __init__(self, target: Path, identity: Mapping[str, str], key: Key | None = None) -> None:
        self._target, self._given = target.resolve(), key
        self._identity = {name: _digest(text) for name, text in identity.items()}
        self._place = _place_of(target)
        self._lock, self._kept = -1, False
        self.folder = self._place / self._target.name

    def __enter__(self) -> Self:
        self._lock = _locked(self._place, make=True)
        try:
            state = _read(self._place, self._lock)
            complete = any(self._target.iterdir()) if self._target.is_dir() else self._target.is_file()
            # Of finished work, a kill may leave the state without the folder.
            self._kept = state is not None and (self.folder.exists() or not complete)
            if complete:
                self._refuse_second()
            self._continue(state) if state is not None and self._kept else self._begin()
        except BaseException:
            if not self._kept:
                shutil.rmtree(self._place, ignore_errors=True)
            os.close(self._lock)
            raise
        return self

    @contextmanager
    def charging(self) -> Iterator[None]:
        """Keep the work after any error from now on, unless the charge inside this block is refused."""
        before, self._kept = self._kept, True
        try:
            yield
        except (BudgetExceededError, InvalidInputError):
            self._kept = before
            raise

    def publish(self) -> None:
        """Put the folder of complete files in its place."""
        for left in self.folder.rglob(".*.partial"):
            shutil.rmtree(left, ignore_errors=True)
        try:
            if self._target.exists():
                self._target.rmdir()
            self.folder.replace(self._target)
        except OSError as error:
            raise GeoindError(f"cannot put {str(self._target)!r} in its place: {error.strerror}") from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What was interrupted may be continued, paid for or not.
        if kind is not None and (self._kept or not issubclass(kind, Exception)):
            log.warning(
                "%r is not finished. Run the same command again to continue it: no report is charged twice. "
                "--cancel (geoind.files.cancel) removes the unfinished work",
                str(self._target),
            )
        else:
            shutil.rmtree(self._place, ignore_errors=True)
        os.close(self._lock)

    def _refuse_second(self) -> None:
        """Raise if the complete target would be released again: a folder, or a file under a new key."""
        if self._target.is_dir():
            raise InvalidInputError(
                f"{str(self._target)!r} must be a new or an empty folder: choose another one, or remove it"
            )
        if self._given is None and not self._kept:
            raise InvalidInputError(
                f"{str(self._target)!r} exists, and without `key=` a second release would be charged again: "
                "remove it, or choose another target"
            )

    def _begin(self) -> None:
        self.key = self._given or Key(secrets.token_bytes(KEY_BYTES))
        secret = "" if self._given else self.key.read().hex()
        state = self._identity | {"secret": secret, "folder": _number_of(self._lock)}
        try:
            # What is there without a state is not of a job that continues.
            for left in self._place.iterdir():
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
            self.folder.mkdir()
            # Renamed when it is complete: a folder with a state is one to continue.
            (self._place / f"{STATE}.new").write_text(json.dumps(state))
            (self._place / f"{STATE}.new").rename(self._place / STATE)
        except OSError as error:
            raise InvalidInputError(f"cannot write {self._target.name!r}: {error.strerror}") from None

    def _continue(self, text: str) -> None:
        # A folder that came from elsewhere, such as an archive, is another one: its key is not used.
        wanted = self._identity | {"folder": _number_of(self._lock)}
        try:
            state = json.loads(text)
            secret = bytes.fromhex(state.pop("secret"))
            differs = ", ".join(sorted(name for name in wanted if state.get(name) != wanted[name]))
            same = state == wanted and bool(secret) == (self._given is None)
        except (ValueError, AttributeError, KeyError, TypeError):
            differs, same = "", False
        if not same:
            raise InvalidInputError(
                f"the unfinished work for {str(self._target)!r} was begun by another job (different: "
                f"{differs or 'its state'}): restore that and run again, remove the work with --cancel "
                "(geoind.files.cancel; charges stay), or choose another target"
            )
        self.folder.mkdir(exist_ok=True)
        self.key = self._given or Key(secret)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _number_of(lock: int) -> str:
    """Return what distinguishes a folder from every other one, and from its copies."""
    about = os.fstat(lock)
    return f"{about.st_dev} {about.st_ino}"


def _read(place: Path, lock: int) -> str | None:
    """Return the state of the work in a locked folder; None if there is none."""
    try:
        if sys.platform == "win32":
            return (place / STATE).read_text()
        # By the folder that was checked, whatever its name leads to now.
        with os.fdopen(os.open(STATE, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=lock), "rb") as file:
            return file.read(MOST_STATE).decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError:
        return ""


def description(options: object) -> str:
    """Return the `repr` of options, the same in every process: without the addresses of functions.

    Examples
    --------
    >>> description([print, len])
    '[<built-in function print>, <built-in function len>]'
    """
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(options))


def stamp_of(file: Path) -> str:
    """Return what changes when a file is changed or is another one: its place, number, size and time."""
    if not file.exists():
        return ""
    about = file.stat()
    return f"{file.resolve()} {about.st_dev} {about.st_ino} {about.st_size} {about.st_mtime_ns}"


def cancel(target: str | Path) -> bool:
    """Remove the unfinished work of a target and return whether there was any; what was charged stays charged.

    Examples
    --------
    >>> cancel("reports.csv")
    False
    """
    place = _place_of(Path(target))
    lock = _locked(place)
    if lock < 0:
        return False
    shutil.rmtree(place)
    os.close(lock)
    return True


def _place_of(target: Path) -> Path:
    resolved = target.resolve()
    return resolved.parent / f".{resolved.name}.partial"


def _locked(place: Path, *, make: bool = False) -> int:
    """Return a descriptor that locks a folder of unfinished work, -1 if there is none and none is to be made.

    A folder that others could have written is refused.
    """
    if not make and not os.path.lexists(place):
        return -1
    try:
        with suppress(FileExistsError):
            if make:
                place.mkdir(mode=0o700)
    except OSError as error:
        raise InvalidInputError(f"cannot write {str(place.parent)!r}: {error.strerror}") from None
    try:
        lock = _lock_folder(place)
    except BlockingIOError:
        raise GeoindError(f"another process is working in {str(place)!r}: wait until it ends") from None
    except FileNotFoundError:
        return _locked(place, make=make)
    except OSError:
        raise InvalidInputError(
            f"{str(place)!r} exists and is not a folder of unfinished work: remove or rename it"
        ) from None
    if sys.platform == "win32":
        return lock
    about = os.fstat(lock)
    if about.st_uid != os.geteuid() or about.st_mode & 0o777 != 0o700:
        os.close(lock)
        raise InvalidInputError(
            f"{str(place)!r} must belong to this user and have mode 0700; it is not used: remove it"
        )
    if not place.exists() or not os.path.samestat(about, place.stat()):
        # The process that held the lock has finished and removed the folder.
        os.close(lock)
        return _locked(place, make=make)
    return lock


def _lock_folder(folder: Path) -> int:
    """Return a descriptor that locks a folder; Windows cannot lock one, so there it locks nothing."""
    if sys.platform == "win32":
        return os.open(os.devnull, os.O_RDONLY)
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise
    return number
