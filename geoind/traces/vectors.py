"""Sessions of many persons in arrays: what `TraceSession` answers, for thousands of steps at once.

Words are those of each person's own session, and every comparison is exact, so every answer is the same.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geoind.arrays import FloatArray
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.randomness import Words
from geoind.traces.memory import Batch, Memory
from geoind.traces.methods import Independent
from geoind.traces.rounds import Rounds
from geoind.traces.sparse import SparseVector
from geoind.traces.switching import Switching
from geoind.traces.words import FRESH, StepWords

__all__ = ["VectorSessions"]


class VectorSessions:
    """The sessions of many persons, by their numbers: 0, 1, 2, ...

    Parameters
    ----------
    method : Independent, SparseVector or Switching
        How they answer.
    key : bytes
        32 secret bytes.
    """

    def __init__(self, method: Independent | SparseVector | Switching, key: bytes) -> None:
        self._switching = method if isinstance(method, Switching) else None
        self._sparse = method if isinstance(method, SparseVector) else None
        if isinstance(method, Switching):
            self._sparse = method.stays
        own = method.epsilon if isinstance(method, Independent) else 1.0
        self._globe = SphericalLaplace(own if self._sparse is None else self._sparse.fresh)
        places = 1 if self._sparse is None else self._sparse.places + 1
        self._memory = Memory(key, places, 1 if self._switching is None else self._switching.moves)

    @classmethod
    def fit(cls, method: object) -> bool:
        """Return whether a method has answers in arrays."""
        inside = method.stays if type(method) is Switching else method
        return type(inside) in (Independent, SparseVector)

    def add(self, names: Sequence[str]) -> None:
        """Give the next numbers to some more persons."""
        self._memory.add(names)

    def costs(self, number: int) -> Counter[float]:
        """Return how many answers of each epsilon a person paid for."""
        sparse = self._sparse
        prices = [self._globe.epsilon, *(() if sparse is None else (sparse.test, sparse.choice))]
        result: Counter[float] = Counter()
        for price, count in zip(prices, self._memory.counts[number].tolist(), strict=False):
            result[price] += count
        return +result

    def spent(self, number: int) -> float:
        """Return what a person's answers cost, per metre."""
        return float(self._memory.paid[number])

    def report(self, batch: Batch) -> FloatArray:
        """Return the answers to a batch."""
        memory, sizes, epsilon = self._memory, np.diff(batch.starts), self._globe.epsilon
        seeds = memory.words.steps(memory.persons[np.repeat(batch.persons, sizes)], batch.times, batch.lonlat)
        fresh = self._globe.sample(batch.lonlat, rng=_Fresh(memory.words, seeds, epsilon))
        if self._sparse is None:
            memory.pay_fresh(batch.persons, sizes, epsilon)
            return fresh
        rounds = Rounds(memory, self._sparse, self._switching, batch, seeds, fresh)
        rounds.run()
        return rounds.reports


@dataclass(frozen=True)
class _Fresh:
    """The words of fresh reports."""

    step_words: StepWords
    seeds: Words
    epsilon: float

    def words(self, points: FloatArray, count: int, purpose: str) -> Words:  # noqa: ARG002
        """Return the first two words of each step."""
        return self.step_words.pairs(self.seeds, self.epsilon, FRESH)

    def further(self, row: int, point: FloatArray, purpose: str, number: int) -> tuple[int, int]:  # noqa: ARG002
        """Return the next two words of the step in this row."""
        seed = self.seeds[row : row + 1]
        first, second = self.step_words.pairs(seed, self.epsilon, FRESH, counter=1 + number)[0].tolist()
        return first, second
