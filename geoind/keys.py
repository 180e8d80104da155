"""Secret keys, and the random words that they give: the same ones again for the same record.

A key is identified by where it is kept and by a fingerprint. docs/keyed-noise.md describes the words, which are a
file format: a change of what a key and a label mean needs a new name.
"""

import hashlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError

__all__ = ["KEY_BYTES", "VARIABLE", "Key", "KeyLike", "KeyedRandomness", "as_key", "key_of_place"]

KEY_BYTES = 32

VARIABLE = "GEOIND_SECRET_KEY"
"""The default environment variable. Spark redacts values of names with "secret" in its pages and event logs."""

Words: TypeAlias = npt.NDArray[np.uint64]

Blocks = TypeVar("Blocks", int, Words)
"""Blocks of 16 bytes: (n, 2) words, or one block as a whole number whose low 64 bits are the first word."""


class _BlockCipher(Protocol):
    """From blocks to as many enciphered blocks."""

    def __call__(self, blocks: Blocks, /) -> Blocks:
        """Encipher each block."""
        ...


Labels: TypeAlias = Sequence[int] | Sequence[str] | Sequence[bytes] | npt.NDArray[np.generic]

SCHEME = b"geoind words 2"
"""Name of the scheme of docs/keyed-noise.md."""
BLOCK_BYTES = 16
CACHED = 8192
"""Records enciphered at once: their blocks stay in the processor's cache."""
FURTHER = 1 << 32
"""Counter of the first pair of further words: no mechanism asks for so many words at once."""


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


@dataclass(frozen=True)
class KeyedRandomness:
    """The same words again for the same record, independent words for every other.

    For work that may run twice (a lost Dask partition, a retried job) and for "same place, same report".
    The words depend on the key, the label, the point itself and the mechanism with its parameters: a record
    that moved, or that is reported with another epsilon, gets independent noise instead of the same noise
    again, which would cancel out.

    Parameters
    ----------
    key : Key or bytes
        32 secret bytes, from `secrets.token_bytes(32)`. With the key, the noise can be removed.
    labels : sequence of int, str or bytes
        The identity of each record, one per point.

    Examples
    --------
    >>> import geoind
    >>> once = geoind.KeyedRandomness(bytes(32), ["trip-1", "trip-2"])
    >>> noise = geoind.PlanarLaplace(0.01)
    >>> first = noise.sample([[0, 0], [5, 5]], rng=once)
    >>> bool((first == noise.sample([[0, 0], [5, 5]], rng=once)).all())
    True
    """

    key: KeyLike = field(repr=False)
    labels: Labels = field(repr=False)
    _blocks: tuple[str, Words] = field(init=False, repr=False)
    _places: FloatArray | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        secret = as_key(self.key).read()
        object.__setattr__(self, "key", secret)
        # Only the first label is checked: converting a list of text to an array is slow.
        if np.ndim(self.labels[:1] if hasattr(self.labels, "__getitem__") else self.labels) != 1:
            raise InvalidInputError("labels must be a list: one int, str or bytes per point")
        object.__setattr__(self, "_blocks", _label_blocks(self.labels, secret))

    def only(self, rows: npt.NDArray[np.bool_] | slice) -> "KeyedRandomness":
        """Return the source of the records of a slice, or where `rows` is true."""
        known = self.labels
        if not isinstance(rows, slice) and len(rows) != len(known):
            raise InvalidInputError(f"labels must be one per point: {len(known)} for {len(rows)}")
        if isinstance(known, np.ndarray):
            labels: object = known[rows]
        else:
            labels = known[rows] if isinstance(rows, slice) else list(compress(known, rows.tolist()))
        kind, blocks = self._blocks
        return self._with(labels, (kind, blocks[rows]), None if self._places is None else self._places[rows])

    def at(self, places: FloatArray) -> "KeyedRandomness":
        """Return the source whose words depend on these (n, 2) places instead of the points of a mechanism."""
        return self._with(self.labels, self._blocks, places)

    def _with(self, labels: object, blocks: tuple[str, Words], places: FloatArray | None) -> "KeyedRandomness":
        changed = object.__new__(KeyedRandomness)
        for name, value in (("key", self.key), ("labels", labels), ("_blocks", blocks), ("_places", places)):
            object.__setattr__(changed, name, value)
        return changed

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:
        """Return each record's own words."""
        kind, blocks = self._blocks
        points = points if self._places is None else self._places
        cipher = _label_cipher(cast("bytes", self.key), f"{kind} labels: {purpose}")
        result = np.empty((len(points), count + count % 2), np.uint64)
        for start in range(0, len(points), CACHED):
            part = slice(start, start + CACHED)
            places = _place_blocks(points[part])
            for pair in range(result.shape[1] // 2):
                result[part, 2 * pair : 2 * pair + 2] = cbc_mac(cipher, _counted(blocks[part], pair), places)
        return result[:, :count]

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:
        """Return two more words of the record in this row."""
        kind, blocks = self._blocks
        point = point if self._places is None else self._places[row]
        cipher = _label_cipher(cast("bytes", self.key), f"{kind} labels: {purpose}")
        words = cbc_mac(cipher, _counted(blocks[[row]], FURTHER + number), _place_blocks(point[None]))
        first, second = words[0].tolist()
        return first, second


def block_cipher(key: bytes) -> _BlockCipher:
    """Return AES-256 under a key, one block at a time: a pseudo-random function of 128 bits."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # ECB repeats itself on equal blocks; no stream is enciphered here, and the inputs never repeat by design.
    update = Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update

    def encipher(blocks: Blocks) -> Blocks:
        if isinstance(blocks, int):  # a fifth of the time of an array with one row
            return int.from_bytes(update(blocks.to_bytes(BLOCK_BYTES, "little")), "little")
        # A view without rows cannot be cast.
        plain = blocks.data.cast("B") if blocks.size else b""
        return np.frombuffer(update(plain), np.uint64).reshape(-1, 2)

    return encipher


def cbc_mac(cipher: _BlockCipher, *blocks: Blocks) -> Blocks:
    """Return CBC-MAC over the blocks of each row.

    Pseudo-random if all messages under one key have the same number of blocks, or none begins another.
    """
    result = cipher(blocks[0])
    for block in blocks[1:]:
        result = cipher(result ^ block)
    return result


def _counted(blocks: Words, counter: int) -> Words:
    return blocks ^ np.array([0, counter], np.uint64)


def _label_blocks(labels: Labels, key: bytes) -> tuple[str, Words]:
    """Return the kind of the labels and 128 bits for each."""
    if set(map(type, labels[:1])) == {str} == set(map(type, labels)):
        # The common case, without a check of each label.
        return "text", _digests([label.encode() for label in cast("Sequence[str]", labels)], key)
    array = np.asarray(labels)
    if array.dtype.kind not in "iu":
        return "text", _digests([_label_bytes(label, number) for number, label in enumerate(labels)], key)
    blocks = np.zeros((len(array), 2), np.uint64)
    blocks[:, 0] = array.astype(np.int64 if array.dtype.kind == "i" else np.uint64).view(np.uint64)
    return "integer", blocks


def _label_bytes(label: object, number: int) -> bytes:
    """Return the bytes of a label; a text and its bytes are two labels: no text has a byte of 255."""
    if isinstance(label, str):
        return label.encode()
    if isinstance(label, bytes):
        return b"\xff" + label
    raise InvalidInputError(f"label {number} must be int, str or bytes, got {type(label).__name__}")


def _digests(texts: list[bytes], key: bytes) -> Words:
    """Return 128 bits for each text: CBC-MAC over its length and its blocks, all texts at once."""
    cipher = _label_cipher(key, "text labels")
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    # The length comes first: no text's blocks are the beginning of another's.
    digests = np.zeros((len(texts), 2), np.uint64)
    digests[:, 0] = lengths
    digests = cipher(digests).copy()
    windows = sliding_window_view(np.frombuffer(b"".join(texts) + bytes(BLOCK_BYTES), np.uint8), BLOCK_BYTES)
    starts = np.cumsum(lengths) - lengths
    for done in range(0, lengths.max(initial=0), BLOCK_BYTES):
        rows = np.flatnonzero(lengths > done)
        blocks = windows[starts[rows] + done]
        blocks[np.arange(BLOCK_BYTES) >= (lengths[rows] - done)[:, None]] = 0
        digests[rows] = cipher(digests[rows] ^ blocks.view(np.uint64))
    return digests


def _place_blocks(points: FloatArray) -> Words:
    # Rounded, so that the last bits of a reprojection on another machine do not make a second report.
    rounded = np.rint(points * 2.0**30) + 0.0
    return np.ascontiguousarray(rounded).view(np.uint64).reshape(-1, 2)


def _label_cipher(key: bytes, purpose: str) -> _BlockCipher:
    return block_cipher(hashlib.blake2b(purpose.encode(), key=key, digest_size=KEY_BYTES, person=SCHEME).digest())
