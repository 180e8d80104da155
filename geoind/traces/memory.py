"""What sessions of many persons remember, in arrays, and the rows that they answer next."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.randomness import Words
from geoind.traces.guarded import GuardedPlace, Run
from geoind.traces.words import SessionSource, StepWords

__all__ = ["Batch", "Memory"]


@dataclass(frozen=True)
class Batch:
    """Rows of persons, sorted by person, each person's in the order of time, without repetitions.

    Parameters
    ----------
    persons : (m,) array of int
        The numbers of the persons, each once.
    starts : (m + 1,) array of int
        Where each person's rows begin, and where the last one's end.
    times : (n,) array
        In seconds.
    lonlat : (n, 2) array
        In degrees.
    """

    persons: IntArray
    starts: IntArray
    times: FloatArray
    lonlat: FloatArray


class Memory:
    """What everybody's session remembers, by the number of the person: 0, 1, 2, ...

    Parameters
    ----------
    key : bytes
        32 secret bytes.
    places : int
        How many places a session remembers.
    changes : int
        Of how many changes of the answer.
    """

    persons: Words
    """What stands for a person among words, (n, 2)."""
    paid: FloatArray
    """Epsilon so far."""
    counts: IntArray
    """How many fresh reports, runs of tests and choices, (n, 3)."""
    last: FloatArray
    last_time: FloatArray
    """The last answer, (n, 2), and when it was given."""
    steps: IntArray
    """How many answers there were."""
    run: IntArray
    runs: IntArray
    bar: FloatArray
    """The run of tests that is going on, -1 for none, how many there were, and its limit with its noise."""
    anchors: FloatArray
    """The places that were used last, (n, places, 2), NaN for none."""
    changed: IntArray
    changed_after: FloatArray
    """The steps at which the answer changed last, and when the answers before them were given, (n, changes)."""

    def __init__(self, key: bytes, places: int, changes: int) -> None:
        self.words = StepWords(key)
        self._key = key
        self._names: list[str] = []
        self._empty: dict[str, tuple[tuple[int, ...], Any, Any]] = {
            "persons": ((2,), np.uint64, 0),
            "paid": ((), np.float64, 0.0),
            "counts": ((3,), np.int64, 0),
            "last": ((2,), np.float64, np.nan),
            "last_time": ((), np.float64, -np.inf),
            "steps": ((), np.int64, 0),
            "run": ((), np.int64, -1),
            "runs": ((), np.int64, 0),
            "bar": ((), np.float64, np.nan),
            "anchors": ((places, 2), np.float64, np.nan),
            "changed": ((changes,), np.int64, -(1 << 62)),
            "changed_after": ((changes,), np.float64, -np.inf),
        }
        for name, (shape, kind, value) in self._empty.items():
            setattr(self, name, np.full((0, *shape), value, kind))

    def add(self, names: Sequence[str]) -> None:
        """Give the next numbers to some more persons."""
        first = len(self._names)
        self._names += names
        self._grow(len(self._names))
        for number, name in enumerate(names, first):
            self.persons[number] = np.frombuffer(self.words.person(name), np.uint64)

    def pay_fresh(self, persons: IntArray, counts: IntArray, price: float) -> None:
        """Add the price of so many fresh reports, one after the other, as a session does."""
        self.counts[persons, 0] += counts
        for person, count in zip(persons.tolist(), counts.tolist(), strict=True):
            sums = np.full(count + 1, price)
            sums[0] = self.paid[person]
            self.paid[person] = np.add.accumulate(sums)[-1]

    def pay(self, person: int, prices: Sequence[float]) -> None:
        """Add what one step cost."""
        self.paid[person] = math.fsum([self.paid[person], *prices])

    def exactly(self, person: int, time: float, place: FloatArray, run: Run | None = None) -> GuardedPlace:
        """Return one step as a person's own session sees it, for a comparison that doubles cannot decide."""
        lon, lat = place.tolist()
        source = SessionSource(self._key, self._names[person])
        return GuardedPlace(lon, lat, source, source.step(time, lon, lat), _paid_elsewhere, run)

    def note_change(self, persons: IntArray, steps: IntArray, times: FloatArray) -> None:
        """Remember the steps at which answers changed, and when the answers before were given."""
        self.changed[persons, :-1] = self.changed[persons, 1:]
        self.changed[persons, -1] = steps
        self.changed_after[persons, :-1] = self.changed_after[persons, 1:]
        self.changed_after[persons, -1] = times

    def note_place(self, persons: IntArray, places: FloatArray) -> None:
        """Put places at the end, where those used last are."""
        anchors = self.anchors[persons]
        size = anchors.shape[1]
        same = (anchors == places[:, None]).all(axis=2)
        # The place itself, or else the oldest, makes room.
        gone = np.where(same.any(axis=1), same.argmax(axis=1), 0)
        order = np.arange(size - 1) + (np.arange(size - 1) >= gone[:, None])
        self.anchors[persons, :-1] = np.take_along_axis(anchors, order[:, :, None], axis=1)
        self.anchors[persons, -1] = places

    def _grow(self, count: int) -> None:
        known = len(self.paid)
        if count <= known:
            return
        for name, (shape, kind, value) in self._empty.items():
            room = np.full((max(count, 2 * known) - known, *shape), value, kind)
            setattr(self, name, np.concatenate([getattr(self, name), room]))


def _paid_elsewhere(epsilon: float, label: str) -> None:
    """Charge nothing: the step that asks again has been counted."""
