"""Keys that say where they are kept, and never what they are."""

import hashlib
import os
import secrets
from pathlib import Path
from typing import TypeAlias

from geoind.errors import InvalidInputError

__all__ = ["KEY_BYTES", "VARIABLE", "Key", "KeyLike", "as_key", "key_of_place"]

KEY_BYTES = 32

VARIABLE = "GEOIND_SECRET_KEY"
"""The usual environment variable. Spark hides the values of names with "secret" in its pages and event logs."""


class Key:
    """A secret of 32 bytes, by the place where it is kept.

    `Key.in_variable()` and `Key.in_file(path)` carry only the place: each worker reads the secret for itself,
    and checks by the fingerprint that it is the same one. `Key(secret)` holds the bytes in memory; where it
    goes to another process they travel inside the serialised task. No form shows them: not in its repr, nor
    in a Dask token, nor in a Spark plan.

    Parameters
    ----------
    secret : bytes
        32 bytes from `secrets.token_bytes(32)`.

    Examples
    --------
    >>> Key(bytes(32))
    Key(fingerprint='ef8d5a4d362b3b28', kept in memory)
    """

    def __init__(self, secret: bytes) -> None:
        self._secret: bytes | None = _checked(secret)
        self._variable: str | None = None
        self._file: str | None = None
        self.fingerprint = _fingerprint(secret)

    @classmethod
    def in_variable(cls, name: str = VARIABLE) -> "Key":
        """Return the key whose 64 hexadecimal digits an environment variable holds, here and on each worker."""
        key = cls(_from_variable(name))
        key._secret, key._variable = None, name
        return key

    @classmethod
    def in_file(cls, path: str | Path) -> "Key":
        """Return the key that a file holds, in 64 hexadecimal digits or 32 bytes, at one path on each worker."""
        absolute = str(Path(path).absolute())
        key = cls(_from_file(absolute))
        key._secret, key._file = None, absolute
        return key

    @classmethod
    def new_file(cls, path: str | Path) -> "Key":
        """Make a key, write it to a new file that only its owner can read, and return it."""
        try:
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as error:
            raise InvalidInputError(f"the key file {str(path)!r} exists: it is never written over") from error
        try:
            os.write(number, f"{secrets.token_hex(KEY_BYTES)}\n".encode())
        finally:
            os.close(number)
        return cls.in_file(path)

    def read(self) -> bytes:
        """Return the secret."""
        if self._secret is not None:
            return self._secret
        secret = _from_variable(self._variable) if self._variable is not None else _from_file(self._file or "")
        if _fingerprint(secret) != self.fingerprint:
            raise InvalidInputError(f"the key {self._place} on this machine is not the one the job began with")
        return secret

    def for_file(self, path: str) -> bytes:
        """Return the key of one file's rows, by the file's path within its dataset."""
        return hashlib.blake2b(
            path.encode(), key=self.read(), digest_size=KEY_BYTES, person=b"geoind file"
        ).digest()

    @property
    def file(self) -> Path | None:
        """The file that holds the secret; None where it is kept elsewhere."""
        return None if self._file is None else Path(self._file)

    @property
    def _place(self) -> str:
        if self._variable is not None:
            return f"in the variable {self._variable}"
        return "kept in memory" if self._file is None else f"in the file {self._file}"

    def __repr__(self) -> str:
        return f"Key(fingerprint={self.fingerprint!r}, {self._place})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __dask_tokenize__(self) -> tuple[str, str]:
        # With the place: Dask takes one of two plans of the same token, and only one of them may hold the bytes.
        return (self.fingerprint, self._place)


KeyLike: TypeAlias = Key | bytes


def as_key(key: KeyLike) -> Key:
    """Return the key that the argument stands for."""
    return key if isinstance(key, Key) else Key(key)


def key_of_place(secret: bytes, number: int) -> bytes:
    """Return the key of a row's second, third, ... place, so that equal places of a row have independent noise."""
    return hashlib.blake2b(
        str(number).encode(), key=secret, digest_size=KEY_BYTES, person=b"geoind place"
    ).digest()


def _checked(secret: object) -> bytes:
    if not isinstance(secret, bytes) or len(secret) != KEY_BYTES:
        raise InvalidInputError(f"key must be a Key or {KEY_BYTES} bytes")
    return secret


def _fingerprint(secret: bytes) -> str:
    # One-way, and of 256 unknown bits: it tells two keys apart and nothing else.
    return hashlib.blake2b(key=secret, digest_size=8, person=b"geoind print").hexdigest()


def _from_variable(name: str) -> bytes:
    return _from_text(os.environ.get(name, ""), f"the environment variable {name}")


def _from_file(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read()
    except OSError as error:
        raise InvalidInputError(f"the key file {path!r} cannot be read on this machine") from error
    if os.name == "posix" and mode & 0o077:
        raise InvalidInputError(
            f"the key file {path!r} must be its owner's alone: chmod 600 it, or make a new key"
        )
    return data if len(data) == KEY_BYTES else _from_text(data.decode("latin-1"), f"the key file {path!r}")


def _from_text(text: str, place: str) -> bytes:
    try:
        return _checked(bytes.fromhex(text.strip()))
    except ValueError:
        # `from None`: the message of bytes.fromhex may not, but a traceback could, show the text.
        raise InvalidInputError(f"{place} must hold {2 * KEY_BYTES} hexadecimal digits") from None
