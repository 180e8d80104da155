"""A check against mistakes: rows whose order shows where they are.

The mean logarithm of the distance between consecutive rows is compared with that of permuted rows, and so are
their distances to the east and to the north. A row between two others along a curve through the map lies between
them, whatever noise its report has. It covers every such order: sorted by a coordinate, serpentine, grouped by
cell, partitions by place.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, starmap

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.tables.columns import finite, indices_of, picked, seconds_of

BLOCK = 1024
"""Consecutive rows that are also tested by themselves: a table may be sorted in a part only."""
EVERY_BLOCK, RARE = 64, 16
"""So many blocks of a part are tested, and of the others one of so many."""
SAMPLE = 2048
"""Rows that stand for the whole table, or for a part of it, where it is permuted."""
LAGS = (1, 2, 3)
"""Rows may be sorted in turns, such as origins and destinations of trips."""
SHUFFLE = "give `order='shuffle'`"
"""The remedy for rows that are sorted by place, unless an engine has its own."""
LEAST_PAIRS = 24
NEARER = 0.15
"""Difference of mean logarithms that is tolerated: consecutive places 14 % nearer. Rows sorted by one coordinate
have 0.6 to 0.7, by cells of a 10 x 10 grid 2.3; the distances along the coordinate 3 and more."""
ERRORS = 4.0
"""Standard errors beyond that: a random order passes with probability 1 - 3e-5 in each test."""
METRES = 111_195.0
"""In a degree of a great circle."""
BACK = 2.0
"""How often a clock may go back, in lengths of its range, in rows that follow it."""


@dataclass
class RowOrder:
    """Distances between consecutive true places of a table that comes in batches, or in parts.

    Attributes
    ----------
    shuffled : bool
        Whether the rows of a part will be in random order, so that only the parts are compared.
    sums : (3, 3) array
        Consecutive rows whose order no time explains: how many, the sum of the logarithms of their distances, and
        of the squares; of the distances themselves, to the east and to the north.
    sorted_block : bool
        Whether consecutive places of one block are nearer than the same rows permuted.
    sample : (n, 3) array
        Places from all over the table: those with the smallest random numbers, which are the first column.
    ends : (2, 2) array
        The first and the last place; empty without rows.

    Examples
    --------
    >>> places = np.random.default_rng(0).normal([2.35, 48.86], 0.1, (500, 2))
    >>> random, by_latitude = RowOrder(), RowOrder()
    >>> random.add(places)
    >>> by_latitude.add(places[np.argsort(places[:, 1])])
    >>> random.is_sorted, by_latitude.is_sorted
    (False, True)
    """

    shuffled: bool = False
    sums: FloatArray = field(default_factory=lambda: np.zeros((3, 3)), repr=False)
    sorted_block: bool = False
    sample: FloatArray = field(default_factory=lambda: np.empty((0, 3)), repr=False)
    ends: FloatArray = field(default_factory=lambda: np.empty((0, 2)), repr=False)
    # Of the part: the rows of the next block, how many blocks there were, and what was found in those tested.
    _waiting: list[tuple[FloatArray, Sequence[pa.Array], IntArray]] = field(default_factory=list, repr=False)
    _blocks: int = 0
    _tested: list[tuple[FloatArray, FloatArray]] = field(default_factory=list, repr=False)

    def add(self, places: FloatArray, clocks: Sequence[pa.Array] = (), persons: IntArray | None = None) -> None:
        """Add the next rows of a part.

        Parameters
        ----------
        places : (n, 2) array
            Degrees; rows without a place are NaN.
        clocks : sequence of pyarrow.Array
            Columns of times. The order of two rows is explained if rows follow the clock, and so do the two.
        persons : (n,) array of int, optional
            Whose rows they are: each person may have a clock of their own.
        """
        codes = np.arange(len(places)) if persons is None else persons
        present = finite(places)
        if not present.all():
            rows = indices_of(np.flatnonzero(present))
            places, codes, clocks = places[present], codes[present], [picked(clock, rows) for clock in clocks]
        if not len(places):
            return
        # A fixed choice. Parts of the same size have other numbers, or few parts would stand for all of them.
        turns = np.random.default_rng(zlib.crc32(places.tobytes())).random(len(places))
        self._sample(np.column_stack([turns, places]))
        self.ends = np.concatenate([self.ends, places])[[0, -1]]
        if not self.shuffled:
            self._waiting.append((places, clocks, codes))
            if sum(len(rows) for rows, _, _ in self._waiting) >= BLOCK:
                self._settle()

    def finish(self) -> None:
        """End the part: count its pairs, without those that a clock explains which the rows follow."""
        self._settle()
        if self.shuffled and len(self.sample) > 1:
            self.sums = self.sums + _sums(_permuted(self.sample[:, 1:])[:, : len(self.sample) // 2])
        if self._tested:
            views, clocks = (np.array(found) for found in zip(*self._tested, strict=True))
            total = views.sum(axis=0)
            followed = [
                view for view, clock in zip(total[1:], clocks.swapaxes(0, 1), strict=True) if _follows(clock)
            ]
            view = min(followed, key=lambda view: float(view[0, 0]), default=total[0])
            self.sums, self.sorted_block = self.sums + view[:3], self.sorted_block or bool(view[3].any())
        self._tested, self.shuffled = [], False

    def merge(self, other: "RowOrder") -> None:
        """Take over what another part has."""
        self.finish()
        other.finish()
        self.sums, self.sorted_block = self.sums + other.sums, self.sorted_block or other.sorted_block
        if len(self.ends) and len(other.ends):
            # The order of parts shows places as the order of rows does.
            self.sums = self.sums + _sums(_logs(self.ends[1:], other.ends[:1]))
        ends = np.concatenate([self.ends, other.ends])
        self.ends = ends[[0, -1]] if len(ends) else ends
        self._sample(other.sample)

    @property
    def is_sorted(self) -> bool:
        """Whether consecutive places are nearer to each other than permuted ones."""
        self.finish()
        return self.sorted_block or (len(self.sample) > 1 and _nearer(self.sums, _permuted(self.sample[:, 1:])))

    def refuse(self, shuffle: str = SHUFFLE, *, shuffled: bool = False) -> None:
        """Raise if the order of the rows, or of shuffled rows their file, shows where they are."""
        if not self.is_sorted:
            return
        if shuffled:
            raise InvalidInputError(
                "rows of a file are nearer to each other than to those of other files, so the file shows where "
                "they are, also in random order: put all rows into one file, or give `order='keep'` if files have "
                "another reason"
            )
        raise InvalidInputError(
            "consecutive rows are nearer to each other than rows in random order, so the order of the rows "
            f"shows where they are: {shuffle}, or give `order='keep'` if the order has another reason"
        )

    def _sample(self, more: FloatArray) -> None:
        """Take places into the sample, of each part the same share."""
        both = np.concatenate([self.sample, more])
        self.sample = both[np.argpartition(both[:, 0], SAMPLE)[:SAMPLE]] if len(both) > SAMPLE else both

    def _settle(self) -> None:
        """Test the rows that wait, block by block."""
        if not self._waiting:
            return
        places, clocks, codes = zip(*self._waiting, strict=True)
        joined = [pa.chunked_array(parts).combine_chunks() for parts in zip(*clocks, strict=True)]
        rows, people = np.concatenate(places), np.concatenate(codes)
        borders = np.linspace(0, len(rows), max(len(rows) // BLOCK, 1) + 1).astype(np.int64).tolist()
        for part in starmap(slice, pairwise(borders)):
            if len(rows) > 1 and (self._blocks < EVERY_BLOCK or self._blocks % RARE == 0):
                self._tested.append(_tested(rows[part], [clock[part] for clock in joined], people[part]))
            self._blocks += 1
        self._waiting = []


def _tested(places: FloatArray, clocks: Sequence[pa.Array], codes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Compare consecutive rows of a block with the same rows permuted, also without those a clock explains.

    Returns
    -------
    views : (1 + k, 4, 3) array
        For no clock and for each of k: the sums of `RowOrder`, and in which distances the rows are nearer.
    ranges : (k, 4) array
        What `_range` returns for each clock; NaN where the places do not ask for an explanation.
    """
    permuted = _permuted(places)
    logs = {lag: _logs(places[:-lag], places[lag:]) for lag in LAGS if lag < len(places)}
    times, ranges = np.zeros((1 + len(clocks), len(places))), np.full((len(clocks), 4), np.nan)
    if clocks and any((permuted.mean(axis=1) - each.mean(axis=1) > NEARER).any() for each in logs.values()):
        # Seldom needed: it takes time to read times.
        times[1:] = [seconds_of(clock)[0] for clock in clocks]
        ranges[:] = [_range(moments, codes) for moments in times[1:]]
    views = np.zeros((len(times), 4, 3))
    for view, moments in zip(views, times, strict=True):
        forth = np.sign(np.nan_to_num(np.sign(np.diff(moments))).sum()) or 1.0
        # Two rows of one moment have one distance in both orders. The order of three may show places.
        ties = np.pad(np.diff(moments) == 0, 1)
        twins = ties[1:-1] & ~ties[:-2] & ~ties[2:]
        for lag, each in logs.items():
            explained = forth * (moments[lag:] - moments[:-lag]) > 0
            sums = _sums(each[:, ~(explained | twins if lag == 1 else explained)])
            view[:3] += sums * (lag == 1)
            view[3] += _nearer(sums, permuted)
    return views, ranges


def _logs(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return logarithms of distances, and of those to the east and to the north, (3, n); 0 for the same place."""
    step = np.abs(first - second)
    east = np.minimum(step[:, 0], 360 - step[:, 0]) * np.cos(np.radians(first[:, 1]))
    return np.asarray(np.log1p(METRES * np.stack([np.hypot(east, step[:, 1]), east, step[:, 1]])))


def _permuted(places: FloatArray) -> FloatArray:
    """Return the logarithms of distances between rows in random order."""
    mixed = np.random.default_rng(len(places)).permutation(places)
    # Of few rows nearly all pairs, of many rows two for each.
    lags = range(1, min(len(mixed), 1 + max(2048 // len(mixed), 2)))
    return np.concatenate([_logs(mixed, np.roll(mixed, lag, axis=0)) for lag in lags], axis=1)


def _sums(logs: FloatArray) -> FloatArray:
    """Return the number of (3, n) logarithms, their sums, and the sums of their squares."""
    return np.stack([np.full(len(logs), logs.shape[1]), logs.sum(axis=1), np.sum(logs**2, axis=1)])


def _nearer(sums: FloatArray, permuted: FloatArray) -> bool:
    pairs, total, squares = sums
    if pairs[0] < LEAST_PAIRS:
        return False
    mean = total / pairs
    error = np.sqrt(np.maximum(squares / pairs - mean**2, 0) / pairs)
    return bool((permuted.mean(axis=1) - mean > NEARER + ERRORS * error).any())


def _range(times: FloatArray, codes: IntArray) -> FloatArray:
    """Return the earliest and the latest time, and how far the rows go back in time and forth in it.

    In rows that are grouped by person, the step to the next person is not counted.
    """
    steps, same = np.nan_to_num(np.diff(times)), np.diff(codes) == 0
    steps = steps[same] if same.mean() > 0.5 else steps
    known = times[np.isfinite(times)] if np.isfinite(times).any() else np.zeros(1)
    return np.array([known.min(), known.max(), -steps[steps < 0].sum(), steps[steps > 0].sum()])


def _follows(ranges: FloatArray) -> bool:
    """Return whether rows follow a clock: it goes back, or forth, a few times its range at most.

    A table that is sorted by station and then by time goes back by the range at each station.
    """
    low, high = np.fmin.reduce(ranges[:, 0]), np.fmax.reduce(ranges[:, 1])
    back_and_forth = np.nansum(ranges[:, 2:], axis=0)
    return bool(high > low and back_and_forth.min() <= BACK * (high - low))
