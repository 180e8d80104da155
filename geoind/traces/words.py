"""The random words of sessions: a function of a secret key, a person, a moment, a place and a purpose.

A step that is asked again gets the same words, in a session of one person as in a table of a million rows. The
function is CBC-MAC with AES-256 over four blocks of 16 bytes, always four, which makes it pseudo-random:

1. the person: BLAKE2b of the name under the key;
2. the moment, in seconds, or the number of a run of tests;
3. longitude and latitude, in degrees: the true place of the moment, or the reported place that a run tests;
4. the epsilon of the question, its purpose, a number, and a counter for more words.

Each last block gives two words. The first three blocks of a step or a run are enciphered once: its seed.
"""

import hashlib
import itertools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.keys import BLOCK_BYTES, KEY_BYTES, Blocks, Words, block_cipher, cbc_mac
from geoind.mechanisms.protocol import Randomness

__all__ = [
    "CHOICE",
    "FRESH",
    "LIMIT",
    "NEAR",
    "NO_CHOICE",
    "SEEN",
    "TEST",
    "Block",
    "SessionWords",
    "as_block",
    "as_words",
]

Block: TypeAlias = int
"""One block of 16 bytes, as a whole number: its low 64 bits are the first word."""

FRESH, NEAR, LIMIT, TEST, CHOICE, NO_CHOICE, SEEN = range(1, 8)
"""What words are for."""

RUN = 1
"""Second word of the second block of a run; that of a moment is 0."""

WORD = 64
_TWO_FLOATS = struct.Struct("<dd")


def as_words(block: Block) -> tuple[int, int]:
    """Return the two words of a block.

    Examples
    --------
    >>> as_words(2 << 64 | 1)
    (1, 2)
    """
    return block & (1 << WORD) - 1, block >> WORD


def as_block(words: Words) -> Block:
    """Return the block of two words.

    Examples
    --------
    >>> as_words(as_block(np.array([1, 2], np.uint64)))
    (1, 2)
    """
    return int(words[0]) | int(words[1]) << WORD


class SessionWords:
    """The words of all sessions under one key: for one step as a `Block`, for n steps as (n, 2) arrays.

    Parameters
    ----------
    key : bytes
        32 secret bytes.

    Examples
    --------
    >>> words = SessionWords(bytes(32))
    >>> step = words.steps(words.person("ana"), 60.0, (2.2945, 48.8584))
    >>> steps = words.steps(words.persons(["ana"]), np.array([60.0]), np.array([[2.2945, 48.8584]]))
    >>> as_words(words.pairs(step, 0.01, FRESH)) == (*words.pairs(steps, 0.01, FRESH)[0].tolist(),)
    True
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        subkey = hashlib.blake2b(key=key, digest_size=KEY_BYTES, person=b"geoind steps").digest()
        self._cipher = block_cipher(subkey)

    def person(self, name: str) -> Block:
        """Return the block that stands for a person; the name "" is a session without a person."""
        return self._cipher(int.from_bytes(self._digest(name), "little"))

    def persons(self, names: Sequence[str]) -> Words:
        """Return (n, 2) words that stand for persons."""
        digests = b"".join(map(self._digest, names))
        return self._cipher(np.frombuffer(digests, np.uint64).reshape(-1, 2))

    def steps(self, persons: Blocks, times: Any, lonlat: Any) -> Blocks:
        """Return the seeds of steps: persons at times, in seconds, at their true places."""
        return self._seeds(persons, _floats(persons, times, 0.0), lonlat)

    def runs(self, persons: Blocks, numbers: Any, lonlat: Any) -> Blocks:
        """Return the seeds of runs of tests against reported places."""
        if isinstance(persons, int):
            return self._seeds(persons, RUN << WORD | int(numbers), lonlat)
        blocks = np.full_like(persons, RUN)
        blocks[:, 0] = numbers
        return self._seeds(persons, blocks, lonlat)

    def pairs(
        self, seeds: Blocks, epsilon: float, purpose: int, numbers: IntArray | int = 0, *, counter: int = 0
    ) -> Blocks:
        """Return two words of each seed for a purpose: the first ones, or those with that counter."""
        last = _last_block(epsilon, purpose, counter)
        if isinstance(seeds, int):
            return self._cipher(seeds ^ last ^ int(numbers) << WORD + 32)
        blocks = seeds ^ np.array(as_words(last), np.uint64)
        blocks[:, 1] ^= np.asarray(numbers, np.uint64) << np.uint64(32)
        return self._cipher(blocks)

    def stream(self, seed: Block, epsilon: float, purpose: int, number: int = 0) -> Iterator[int]:
        """Yield the words of one seed for a purpose, without end."""
        for counter in itertools.count():
            yield from as_words(self.pairs(seed, epsilon, purpose, number, counter=counter))

    def fresh(self, seeds: Words, epsilon: float) -> Randomness:
        """Return the source of the words of fresh reports, one per seed."""
        return _FreshWords(self, seeds, epsilon)

    def _digest(self, name: str) -> bytes:
        hashed = hashlib.blake2b(name.encode(), key=self._key, digest_size=BLOCK_BYTES, person=b"geoind traveller")
        return hashed.digest()

    def _seeds(self, persons: Blocks, second: Blocks, lonlat: Any) -> Blocks:
        lon, lat = lonlat if isinstance(persons, int) else np.transpose(lonlat)
        return cbc_mac(self._cipher, persons ^ second, _floats(persons, lon, lat))


def _floats(like: Blocks, first: Any, second: Any) -> Blocks:
    """Return a block of two numbers for each row of `like`; 0.0 and -0.0 are one number."""
    if isinstance(like, int):
        return int.from_bytes(_TWO_FLOATS.pack(first + 0.0, second + 0.0), "little")
    numbers = np.empty(like.shape)
    numbers[:, 0], numbers[:, 1] = first, second
    numbers += 0.0
    return numbers.view(np.uint64)


@lru_cache(maxsize=1024)
def _last_block(epsilon: float, purpose: int, counter: int) -> Block:
    """Return the fourth block of a question, without its number: 16 bits above the counter's 32."""
    word = int.from_bytes(struct.pack("<d", epsilon), "little")
    return word | (purpose << 48 | counter) << WORD


@dataclass(frozen=True)
class _FreshWords:
    session_words: SessionWords
    seeds: Words
    epsilon: float

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:  # noqa: ARG002
        return self.session_words.pairs(self.seeds, self.epsilon, FRESH)

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:  # noqa: ARG002
        seed = as_block(self.seeds[row])
        return as_words(self.session_words.pairs(seed, self.epsilon, FRESH, counter=1 + number))
