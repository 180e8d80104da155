"""The random words of sessions: a function of a secret key, a person, a moment, a place and a purpose.

A step asked again gets the same words, in a session of one person as among a million rows. The function is CBC-MAC
with AES-256 over four blocks of 16 bytes, always four, which makes it pseudo-random:

1. the person: BLAKE2b of the name under the key;
2. the moment, in seconds, or the number of a run of tests;
3. longitude and latitude, in degrees: the true place of the moment, or the reported place that a run tests;
4. the epsilon of the question, its purpose, a number, and a counter for more words.

Each last block gives two words.
"""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from struct import Struct

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from geoind.arrays import FloatArray, IntArray
from geoind.randomness import KEY_BYTES, Words

__all__ = ["CHOICE", "FRESH", "LIMIT", "NEAR", "NO_CHOICE", "SEEN", "TEST", "SessionSource", "StepWords"]

FRESH, NEAR, LIMIT, TEST, CHOICE, NO_CHOICE, SEEN = range(1, 8)
"""What words are for."""

DOUBLE = Struct("<d")
DOUBLES = Struct("<dd")
DOUBLE_AND_WORD = Struct("<dQ")
TWO_WORDS = Struct("<QQ")
BLOCK = 16
MOMENT, RUN = 0, 1
COUNTERS = 1 << 32
"""Purpose and number stand above the counter."""


class StepWords:
    """The words of everybody's steps under one key.

    Parameters
    ----------
    key : bytes
        32 secret bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        subkey = hashlib.blake2b(key=key, digest_size=KEY_BYTES, person=b"geoind steps").digest()
        # One block at a time is what a pseudo-random function of 128 bits is made of; no stream is enciphered.
        self.encipher = Cipher(algorithms.AES256(subkey), modes.ECB()).encryptor().update

    def person(self, name: str) -> bytes:
        """Return what stands for a person, "" for nobody in particular."""
        digest = hashlib.blake2b(
            name.encode(), key=self._key, digest_size=BLOCK, person=b"geoind traveller"
        ).digest()
        return self.encipher(digest)

    def steps(self, persons: Words, times: FloatArray, lonlat: FloatArray) -> Words:
        """Return (n, 2) seeds of steps, for (n, 2) words that stand for persons."""
        moments = np.zeros((len(times), 2), np.uint64)
        moments[:, 0] = (times + 0.0).view(np.uint64)
        return self._chained(persons, moments, lonlat)

    def runs(self, persons: Words, numbers: IntArray, lonlat: FloatArray) -> Words:
        """Return (n, 2) seeds of runs of tests against reported places."""
        moments = np.full((len(numbers), 2), RUN, np.uint64)
        moments[:, 0] = numbers
        return self._chained(persons, moments, lonlat)

    def pairs(
        self, seeds: Words, epsilon: float, purpose: int, numbers: IntArray | int = 0, *, counter: int = 0
    ) -> Words:
        """Return two words of each seed for a purpose: the first ones, or those with that counter."""
        blocks = seeds.copy()
        blocks[:, 0] ^= np.float64(epsilon).view(np.uint64)
        blocks[:, 1] ^= np.asarray((purpose << 16 | np.asarray(numbers, np.int64)) * COUNTERS + counter, np.uint64)
        return self._enciphered(blocks)

    def _chained(self, persons: Words, moments: Words, lonlat: FloatArray) -> Words:
        moments ^= persons
        places = np.ascontiguousarray(lonlat + 0.0).view(np.uint64).reshape(-1, 2)
        return self._enciphered(self._enciphered(moments) ^ places)

    def _enciphered(self, blocks: Words) -> Words:
        # A view without rows cannot be cast.
        plain = blocks.data.cast("B") if blocks.size else b""
        return np.frombuffer(self.encipher(plain), np.uint64).reshape(-1, 2)


class SessionSource:
    """The words of one person's steps, without arrays.

    Parameters
    ----------
    secret : bytes
        32 secret bytes, which many persons may share.
    name : str
        The person; "" for the only one.
    """

    def __init__(self, secret: bytes, name: str = "") -> None:
        words = StepWords(secret)
        self._made_of = secret, name
        self._encipher = words.encipher
        self._person = int.from_bytes(words.person(name), "little")

    def __reduce__(self) -> tuple[type["SessionSource"], tuple[bytes, str]]:
        return SessionSource, self._made_of

    def step(self, time: float, lon: float, lat: float) -> int:
        """Return the seed of a step."""
        return self._chained(DOUBLE_AND_WORD.pack(time + 0.0, MOMENT), lon, lat)

    def run(self, number: int, lon: float, lat: float) -> int:
        """Return the seed of a run of tests against a reported place."""
        return self._chained(TWO_WORDS.pack(number, RUN), lon, lat)

    def stream(self, seed: int, epsilon: float, purpose: int, number: int = 0) -> Iterator[int]:
        """Yield the words of a purpose, as many as are asked for."""
        for counter in itertools.count():
            yield from self.pair(seed, epsilon, purpose, number, counter)

    def pair(self, seed: int, epsilon: float, purpose: int, number: int = 0, counter: int = 0) -> tuple[int, int]:
        """Return two words of a purpose: the first ones, or those with that counter."""
        block = _last_block(seed, epsilon) ^ _tail(purpose, number) + counter << 64
        first, second = TWO_WORDS.unpack(self._encipher(block.to_bytes(BLOCK, "little")))
        return first, second

    def first_words(self, seed: int, epsilon: float, purposes: Sequence[tuple[int, int]]) -> list[int]:
        """Return the first word of each of several purposes and numbers, made at once."""
        block = _last_block(seed, epsilon)
        blocks = [(block ^ _tail(*purpose) << 64).to_bytes(BLOCK, "little") for purpose in purposes]
        return [first for first, _ in TWO_WORDS.iter_unpack(self._encipher(b"".join(blocks)))]

    def _chained(self, moment: bytes, lon: float, lat: float) -> int:
        first = int.from_bytes(moment, "little") ^ self._person
        second = int.from_bytes(self._encipher(first.to_bytes(BLOCK, "little")), "little")
        second ^= int.from_bytes(DOUBLES.pack(lon + 0.0, lat + 0.0), "little")
        return int.from_bytes(self._encipher(second.to_bytes(BLOCK, "little")), "little")


def _last_block(seed: int, epsilon: float) -> int:
    """Return the fourth block without its tail."""
    return seed ^ int.from_bytes(DOUBLE.pack(epsilon), "little")


def _tail(purpose: int, number: int) -> int:
    """Return the second half of the fourth block, for a counter of zero."""
    return (purpose << 16 | number) * COUNTERS
