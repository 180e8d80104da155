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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from geoind.arrays import FloatArray, IntArray
from geoind.keys import KEY_BYTES
from geoind.randomness import BLOCK_BYTES, Randomness, Words, block_cipher, cbc_mac

__all__ = ["CHOICE", "FRESH", "LIMIT", "NEAR", "NO_CHOICE", "SEEN", "TEST", "SessionWords"]

FRESH, NEAR, LIMIT, TEST, CHOICE, NO_CHOICE, SEEN = range(1, 8)
"""What words are for."""

RUN = 1
"""Second word of the second block of a run; that of a moment is 0."""


class SessionWords:
    """The words of all sessions under one key, in arrays of n rows; a single session has one row.

    Parameters
    ----------
    key : bytes
        32 secret bytes.

    Examples
    --------
    >>> words = SessionWords(bytes(32))
    >>> seeds = words.steps(words.persons(["ana"]), np.array([60.0]), np.array([[2.2945, 48.8584]]))
    >>> words.pairs(seeds, 0.01, FRESH).shape
    (1, 2)
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        subkey = hashlib.blake2b(key=key, digest_size=KEY_BYTES, person=b"geoind steps").digest()
        self._cipher = block_cipher(subkey)

    def persons(self, names: Sequence[str]) -> Words:
        """Return (n, 2) words that stand for persons; the name "" is a session without a person."""
        digests = [
            hashlib.blake2b(
                name.encode(), key=self._key, digest_size=BLOCK_BYTES, person=b"geoind traveller"
            ).digest()
            for name in names
        ]
        return self._cipher(np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2))

    def steps(self, persons: Words, times: npt.ArrayLike, lonlat: npt.ArrayLike) -> Words:
        """Return (n, 2) seeds of steps: persons at times, in seconds, at their true places."""
        return self._seeds(persons, times, lonlat)

    def runs(self, persons: Words, numbers: npt.ArrayLike, lonlat: npt.ArrayLike) -> Words:
        """Return (n, 2) seeds of runs of tests against reported places."""
        return self._seeds(persons, 0.0, lonlat, numbers)

    def pairs(
        self, seeds: Words, epsilon: float, purpose: int, numbers: IntArray | int = 0, *, counter: int = 0
    ) -> Words:
        """Return two words of each seed for a purpose: the first ones, or those with that counter."""
        blocks = seeds ^ _last_block(epsilon, purpose, counter)
        if not isinstance(numbers, int) or numbers:
            blocks[:, 1] ^= np.asarray(numbers, np.uint64) << np.uint64(32)
        return self._cipher(blocks)

    def choices(self, seed: Words, epsilon: float, count: int) -> Words:
        """Return (count + 1,) words of one seed for a choice among places, the last for none of them."""
        return self._cipher(seed ^ _choice_blocks(epsilon, count))[:, 0]

    def stream(self, seed: Words, epsilon: float, purpose: int, number: int = 0) -> Iterator[int]:
        """Yield the words of one seed, (1, 2), for a purpose, without end."""
        for counter in itertools.count():
            yield from self.pairs(seed, epsilon, purpose, number, counter=counter)[0].tolist()

    def fresh(self, seeds: Words, epsilon: float) -> Randomness:
        """Return the source of the words of fresh reports, one per seed."""
        return _FreshWords(self, seeds, epsilon)

    def _seeds(
        self, persons: Words, times: npt.ArrayLike, lonlat: npt.ArrayLike, runs: npt.ArrayLike | None = None
    ) -> Words:
        # The second and third block of all rows in one array: for a single row, each call of numpy counts.
        numbers = np.zeros((2, len(persons), 2))
        numbers[0, :, 0], numbers[1] = times, lonlat
        numbers += 0.0  # 0.0 and -0.0 are one number
        blocks = numbers.view(np.uint64)
        if runs is not None:
            blocks[0, :, 0], blocks[0, :, 1] = runs, RUN
        return cbc_mac(self._cipher, persons ^ blocks[0], blocks[1])


@lru_cache(maxsize=1024)
def _last_block(epsilon: float, purpose: int, counter: int) -> Words:
    """Return the fourth block of a question, without its number: 16 bits above the counter's 32."""
    block = np.array((0, purpose << 48 | counter), np.uint64)
    block[0] = np.float64(epsilon).view(np.uint64)
    return block


@lru_cache(maxsize=1024)
def _choice_blocks(epsilon: float, count: int) -> Words:
    """Return the fourth blocks of a choice among so many places, and that of none of them."""
    blocks = np.tile(_last_block(epsilon, CHOICE, 0), (count + 1, 1))
    blocks[:, 1] |= np.arange(count + 1, dtype=np.uint64) << np.uint64(32)
    blocks[-1] = _last_block(epsilon, NO_CHOICE, 0)
    return blocks


@dataclass(frozen=True)
class _FreshWords:
    session_words: SessionWords
    seeds: Words
    epsilon: float

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:  # noqa: ARG002
        return self.session_words.pairs(self.seeds, self.epsilon, FRESH)

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:  # noqa: ARG002
        seed = self.seeds[row : row + 1]
        first, second = self.session_words.pairs(seed, self.epsilon, FRESH, counter=1 + number)[0].tolist()
        return first, second
