"""Sources of random bits.

Every mechanism asks for 64-bit words, a fixed number per point. There are three sources:

- the default, `rng=None`: a cipher keystream under a fresh key from the operating system for each block of
  points. No state outlives the block, so nothing can be read from memory later or be copied by a forked worker;
- `KeyedRandomness`: a secret key and a label per record give the same words again for the same record;
- numpy `Generator`s and integer seeds, **for simulation and tests only**: the seed, or enough of the stream,
  is enough to remove the noise.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from struct import Struct
from typing import Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.keys import KEY_BYTES, KeyLike, as_key

__all__ = [
    "BLOCK_BYTES",
    "Blocks",
    "KeyedRandomness",
    "Randomness",
    "RandomnessLike",
    "Words",
    "as_randomness",
    "at_places",
    "block_cipher",
    "cbc_mac",
    "fresh_pair",
    "words_by_block",
]

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
"""Name of the scheme of docs/keyed-noise.md. A change of what a key and a label mean needs a new name."""
BLOCK_BYTES = 16
CHUNK = bytes(1 << 18)
CACHED = 8192
"""Records enciphered at once: their blocks stay in the processor's cache."""
_pair = Struct("<QQ").unpack
FURTHER = 1 << 32
"""Counter of the first pair of further words: no mechanism asks for so many words at once."""


@runtime_checkable
class Randomness(Protocol):
    """A source of 64-bit words."""

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:
        """Return (n, count) words for the (n, 2) points.

        `purpose` names the mechanism and its parameters. A keyed source gives independent words for
        another purpose or another point, so that two reports of one record never share their noise.
        """
        ...

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:
        """Return two more words of the record in this row: the pair with this number, 0, 1, 2, ...

        Asked for by the few draws that their first words do not decide. A keyed source repeats them, too.
        """
        ...


RandomnessLike: TypeAlias = Randomness | np.random.Generator | int | None


def as_randomness(rng: RandomnessLike, count: int) -> Randomness:
    """Return the source that `rng` stands for, ready for `count` points."""
    if isinstance(rng, KeyedRandomness):
        if len(rng.labels) != count:
            raise InvalidInputError(f"labels must be one per point: {len(rng.labels)} for {count}")
        return rng
    if rng is None:
        return _SystemRandomness()
    if isinstance(rng, np.random.Generator):
        return _SimulatedRandomness(rng)
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        if rng < 0:
            raise InvalidInputError("rng must not be negative, got a negative seed")
        return _SimulatedRandomness(np.random.default_rng(int(rng)))
    if isinstance(rng, Randomness):
        return rng
    raise InvalidInputError(
        f"rng must be None, a KeyedRandomness, a numpy Generator or a seed, got {type(rng).__name__}"
    )


def at_places(source: Randomness, places: FloatArray) -> Randomness:
    """Return the source; if it is keyed, its words depend on these places instead of a mechanism's points."""
    return source.at(places) if isinstance(source, KeyedRandomness) else source


def fresh_pair(number: int = 0) -> tuple[int, int]:  # noqa: ARG001
    """Return two words of the operating system, whatever the number of the pair is."""
    first, second = _pair(os.urandom(16))
    return first, second


def words_by_block(source: Randomness, points: FloatArray, count: int, purpose: str) -> Callable[[slice], Words]:
    """Return a function from a block of the points to its words, `count` for each.

    The words are drawn with their block, in its thread, where the order does not matter: the words of all points
    are never in memory at once. A generator draws all of them first.
    """
    if isinstance(source, _SystemRandomness | KeyedRandomness):
        return lambda part: source.only(part).words(points[part], count, purpose)
    words = source.words(points, count, purpose)
    return lambda part: words[part]


@dataclass(frozen=True)
class _SystemRandomness:
    """AES-256 in counter mode under a fresh key from the operating system for each call."""

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:  # noqa: ARG002
        """Return fresh words."""
        size = 8 * count * len(points)
        if size <= 256:
            return np.frombuffer(os.urandom(size), np.uint64).reshape(len(points), count)
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        stream = Cipher(algorithms.AES256(os.urandom(KEY_BYTES)), modes.CTR(bytes(16))).encryptor()
        result = np.empty((len(points), count), np.uint64)
        target = result.data.cast("B")
        for start in range(0, size, len(CHUNK)):
            part = target[start : start + len(CHUNK)]
            stream.update_into(memoryview(CHUNK)[: len(part)], part)
        return result

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:  # noqa: ARG002
        """Return fresh words."""
        return fresh_pair()

    def only(self, rows: slice) -> "_SystemRandomness":  # noqa: ARG002
        """Return the source of these records: no two calls have anything in common."""
        return self


@dataclass(frozen=True)
class _SimulatedRandomness:
    """A numpy generator: fast, repeatable, and no protection at all."""

    generator: np.random.Generator

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:  # noqa: ARG002
        """Return the generator's next words."""
        return self.generator.integers(0, 1 << 64, size=(len(points), count), dtype=np.uint64)

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:  # noqa: ARG002
        """Return the generator's next words."""
        first, second = self.generator.integers(0, 1 << 64, size=2, dtype=np.uint64).tolist()
        return first, second


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
