"""Secret keys, identified by where they are kept and by a fingerprint."""

import hashlib
import os
import secrets
from pathlib import Path
from typing import TypeAlias

from geoind.errors import InvalidInputError

__all__ = ["KEY_BYTES", "VARIABLE", "Key", "KeyLike", "as_key", "key_of_place"]

KEY_BYTES = 32

VARIABLE = "GEOIND_SECRET_KEY"
"""The default environment variable. Spark redacts values of names with "secret" in its pages and event logs."""


class Key:
    """A secret of 32 bytes in memory, in a file or in an environment variable.

    `Key.in_variable()` and `Key.in_file(path)` store only the place: each worker reads the secret itself and
    compares its fingerprint. `Key(secret)` and `Key.from_hex(text)` hold the bytes in memory; they are part of the
    pickled object. No key shows its bytes in its repr, in a Dask token or in a Spark plan.

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
    def from_hex(cls, text: str) -> "Key":
        """Return the key of 64 hexadecimal digits, kept in memory.

        Examples
        --------
        >>> Key.from_hex("00" * 32) == Key(bytes(32))
        True
        """
        if not isinstance(text, str):
            raise InvalidInputError(f"text must be {2 * KEY_BYTES} hexadecimal digits")
        return cls(_from_text(text, "text"))

    @classmethod
    def in_variable(cls, name: str = VARIABLE) -> "Key":
        """Return the key in an environment variable, as 64 hexadecimal digits, here and on each worker."""
        key = cls(_from_variable(name))
        key._secret, key._variable = None, name
        return key

    @classmethod
    def in_file(cls, path: str | Path) -> "Key":
        """Return the key in a file, as 64 hexadecimal digits or 32 bytes, at the same path on each worker."""
        absolute = str(Path(path).absolute())
        key = cls(_from_file(absolute))
        key._secret, key._file = None, absolute
        return key

    @classmethod
    def new_file(cls, path: str | Path) -> "Key":
        """Create a key, write it to a new file with mode 0600, and return it."""
        try:
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as error:
            raise InvalidInputError(f"the key file {str(path)!r} exists and is not overwritten") from error
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
            raise InvalidInputError(f"the key {self._place} on this machine is not the key of this job")
        return secret

    def for_file(self, path: str) -> bytes:
        """Return the key for the rows of one file, from its path within the dataset."""
        return hashlib.blake2b(
            path.encode(), key=self.read(), digest_size=KEY_BYTES, person=b"geoind file"
        ).digest()

    @property
    def file(self) -> Path | None:
        """The file of the secret; None for other places."""
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
        # With the place: of two plans with one token Dask runs one, and only one may contain the bytes.
        return (self.fingerprint, self._place)


KeyLike: TypeAlias = Key | bytes


def as_key(key: KeyLike) -> Key:
    """Return a key; the only check of what is accepted as one."""
    return key if isinstance(key, Key) else Key(key)


def key_of_place(secret: bytes, number: int) -> bytes:
    """Return the key for the second, third, ... place of a row: equal places get independent noise."""
    return hashlib.blake2b(
        str(number).encode(), key=secret, digest_size=KEY_BYTES, person=b"geoind place"
    ).digest()


def _checked(secret: object) -> bytes:
    if not isinstance(secret, bytes) or len(secret) != KEY_BYTES:
        way = ": Key.from_hex reads hexadecimal digits, Key.in_file a file" if isinstance(secret, str) else ""
        raise InvalidInputError(f"key must be a Key or {KEY_BYTES} bytes{way}")
    return secret


def _fingerprint(secret: bytes) -> str:
    # One-way, from 256 unknown bits: it distinguishes keys and reveals nothing else.
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
            f"the key file {path!r} must be readable by its owner only: chmod 600 it, or create a new key"
        )
    return data if len(data) == KEY_BYTES else _from_text(data.decode("latin-1"), f"the key file {path!r}")


def _from_text(text: str, place: str) -> bytes:
    try:
        return _checked(bytes.fromhex(text.strip()))
    except ValueError:
        # `from None`: a traceback could show the text.
        raise InvalidInputError(f"{place} must hold {2 * KEY_BYTES} hexadecimal digits") from None
