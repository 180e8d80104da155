"""Whether the order of the rows shows where they are: consecutive places nearer than in permuted rows.

A row between two others along a curve through the map lies between them, whatever noise its report has. One test
covers every such order (sorted by a coordinate, serpentine, grouped by cell, partitions by place): the mean
logarithm of the distance between consecutive rows, compared with the same rows permuted.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.randomness import Words
from geoind.tables.identities import plain
from geoind.tables.places import finite, is_text, nulls, picked
from geoind.tables.times import seconds_of

__all__ = ["RowOrder", "clock_columns"]

BLOCK = 1024
"""Consecutive rows that are also tested by themselves: a table may be sorted in a part only."""
EVERY_BLOCK = 64
"""So many blocks of a part are tested, and of the others one in sixteen, which counts for all of them."""
SAMPLE = 2048
"""Rows that stand for the whole table, or for a part of it, where it is permuted."""
MIXERS = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
SHUFFLE = "give `order='shuffle'`"
"""The remedy for rows that are sorted by place, unless an engine has its own."""
LEAST_PAIRS = 24
NEARER = 0.15
"""Difference of mean logarithms that is tolerated: consecutive places 14 % nearer. Rows sorted by one coordinate
have 0.6 to 0.7, by cells of a 10 x 10 grid 2.3."""
TURNS = np.random.default_rng(0).random((2, 16384))
"""Random rows, as shares of a table: a fixed choice, which needs no secret."""
ERRORS = 4.0
"""Standard errors beyond that: a random order passes with probability 1 - 3e-5 in each test."""
MOST_CLOCKS = 4
DIGITS = "0123456789.eE+ "
METRES = 111_195.0
"""In a degree of a great circle."""
SINCE_1970 = ((6.3e8, 2.2e9), (6.3e11, 2.2e12))
"""Seconds and milliseconds of the years 1990 to 2039. A wider range has more numbers that are no times: positions
along a Hilbert curve have 32 bits."""
LAGS = (2, 3)
"""Rows may be sorted in turns, such as origins and destinations of trips."""
BACK = 2.0
"""How often a clock may go back, in lengths of its range, in rows that follow it."""
NAMED = re.compile(r"time|date|stamp|epoch|utc|seconds|(^|[_\W])(at|ts|t)$", re.IGNORECASE)
"""Names of columns of numbers that may be seconds since 1970: identifiers look like them."""
FORWARD = 0.9
"""Share of the steps of a column of times that go the same way in rows that follow it."""


@dataclass
class RowOrder:
    """Distances between consecutive true places of a table that comes in batches, or in parts.

    Attributes
    ----------
    pairs : int
        Consecutive rows whose order no time explains.
    total, squares : float
        Sums of the logarithms of their distances, and of the squares.
    sample : (n, 2) array
        Places from all over the table: of each part the same share, those whose turn is below the limit.
    turns, below : (n,) array and int
        A pseudo-random number for each of them, and the limit.
    sorted_block : bool
        Whether consecutive places of one block are nearer than the same rows permuted.
    shuffled : bool
        Whether the rows of a part will be in random order, so that only the parts are compared.

    Examples
    --------
    >>> places = np.random.default_rng(0).normal([2.35, 48.86], 0.1, (500, 2))
    >>> random, by_latitude = RowOrder(), RowOrder()
    >>> random.add(places)
    >>> by_latitude.add(places[np.argsort(places[:, 1])])
    >>> random.is_sorted, by_latitude.is_sorted
    (False, True)
    """

    pairs: int = 0
    total: float = 0.0
    squares: float = 0.0
    sample: FloatArray = field(default_factory=lambda: np.empty((0, 2)), repr=False)
    turns: Words = field(default_factory=lambda: np.empty(0, np.uint64), repr=False)
    below: int = 2**64 - 1
    sorted_block: bool = False
    shuffled: bool = False
    ends: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False)
    _explained: FloatArray = field(default_factory=lambda: np.zeros(3), repr=False)
    _ranges: FloatArray = field(default_factory=lambda: np.empty((0, 4)), repr=False)
    _blocks: int = 0
    _waiting: list[tuple[FloatArray, list[pa.Array], IntArray]] = field(default_factory=list, repr=False)

    def add(self, places: FloatArray, clocks: Sequence[pa.Array] = (), persons: IntArray | None = None) -> None:
        """Add the next rows of a part.

        Parameters
        ----------
        places : (n, 2) array
            Degrees; rows without a place are NaN.
        clocks : sequence of pyarrow.Array
            Columns of times. The order of two rows is explained if rows follow the clock and the two times differ.
        persons : (n,) array of int, optional
            Whose rows they are: each person may have a clock of their own.
        """
        codes = np.arange(len(places)) if persons is None else persons
        for start in range(0, len(places), BLOCK):
            part = slice(start, start + BLOCK)
            self._waiting.append((places[part], [clock[part] for clock in clocks], codes[part]))
            if sum(len(rows) for rows, _, _ in self._waiting) >= BLOCK:
                self.settle()

    def settle(self) -> None:
        """Count the rows that wait for a block to be full: the part ends."""
        if not self._waiting:
            return
        places = np.concatenate([rows for rows, _, _ in self._waiting])
        codes = np.concatenate([codes for _, _, codes in self._waiting])
        present = finite(places)
        places, codes = places[present], codes[present]
        columns = [
            pa.chunked_array(parts) for parts in zip(*(clocks for _, clocks, _ in self._waiting), strict=True)
        ]
        self._waiting = []
        self._sample(places, _turns(places), self.below)
        if len(places):
            self.ends = (places[:1] if self.ends is None else self.ends[0], places[-1:])
        if len(places) < 2 or self.shuffled:
            return
        self._blocks += 1
        weight = 1 if self._blocks <= EVERY_BLOCK else 16
        if self._blocks % weight:
            return
        permuted, monotone = _permuted(places, BLOCK), _is_monotone(places)
        lags = {lag: _logs(places[:-lag], places[lag:]) for lag in (1, *LAGS) if lag < len(places)}
        times = list[FloatArray]()
        if columns and (monotone or any(permuted.mean() - logs.mean() > NEARER for logs in lags.values())):
            times = [_moments(column.combine_chunks())[present] for column in columns]
            self._follow(times, codes)
            times = [moments for moments in times if _follows(_range(moments, codes))]
        for lag, logs in lags.items():
            explained = np.zeros(len(logs), bool)
            for moments in times:
                explained |= np.nan_to_num(moments[lag:] - moments[:-lag]) != 0
            rest = _sums(logs[~explained])
            found = _nearer(rest[0], rest[1], rest[2], permuted) or (monotone and rest[0] >= LEAST_PAIRS)
            # A few places that take turns are no sorted table.
            few = found and lag > 1 and len(np.unique(places, axis=0)) < LEAST_PAIRS
            self.sorted_block |= found and not few
            if lag == 1:
                self._explained += weight * _sums(logs[explained])
                self._add(*(weight * rest))

    def merge(self, other: "RowOrder") -> None:
        """Take over what another part has."""
        for part in (self, other):
            part.settle()
            part._finish()
            if part.shuffled and len(part.sample) > 1:
                part._add(*_sums(_permuted(part.sample, len(part.sample) // 2)))
            part.shuffled = False
        if self.ends is not None and other.ends is not None:
            # The order of parts shows places as the order of rows does.
            self._add(*_sums(_logs(self.ends[1], other.ends[0])))
            self.ends = (self.ends[0], other.ends[1])
        self.ends = self.ends or other.ends
        self._add(other.pairs, other.total, other.squares)
        self._sample(other.sample, other.turns, other.below)
        self.sorted_block |= other.sorted_block

    def _add(self, pairs: float, total: float, squares: float) -> None:
        self.pairs, self.total, self.squares = self.pairs + int(pairs), self.total + total, self.squares + squares

    def _follow(self, times: Sequence[FloatArray], codes: IntArray) -> None:
        """Keep the range of each clock of the part, and how far it goes back and forth."""
        found = np.array([_range(moments, codes) for moments in times])
        if not len(self._ranges):
            self._ranges = found
        else:
            low, high = np.fmin(self._ranges[:, 0], found[:, 0]), np.fmax(self._ranges[:, 1], found[:, 1])
            self._ranges = np.column_stack([low, high, self._ranges[:, 2:] + found[:, 2:]])

    def _finish(self) -> None:
        """Count what clocks explain in each block, unless one of them explains the order of all blocks."""
        if not any(_follows(clock) for clock in self._ranges):
            self._add(*self._explained)
        self._explained, self._ranges = np.zeros(3), np.empty((0, 4))

    def _sample(self, places: FloatArray, turns: Words, below: int) -> None:
        """Take places into the sample. Parts of different sizes need the same limit, or one would hide another."""
        self.below = min(self.below, below)
        new = turns < self.below
        if below >= self.below and not new.any():
            return
        places, turns = np.concatenate([self.sample, places[new]]), np.concatenate([self.turns, turns[new]])
        if len(turns) > SAMPLE:
            self.below = min(self.below, int(np.partition(turns, SAMPLE)[SAMPLE]))
        chosen = turns < self.below
        self.sample, self.turns = places[chosen], turns[chosen]

    @property
    def is_sorted(self) -> bool:
        """Whether consecutive places are nearer to each other than permuted ones."""
        self.settle()
        self._finish()
        if self.sorted_block or len(self.sample) < 2:
            return self.sorted_block
        return _nearer(self.pairs, self.total, self.squares, _permuted(self.sample, len(TURNS[0])))

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


def _logs(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return logarithms of distances, on a scale of metres; the same place counts as one metre."""
    step = np.abs(first - second)
    east = np.minimum(step[:, 0], 360 - step[:, 0]) * np.cos(np.radians(first[:, 1]))
    return np.asarray(np.log1p(METRES * np.hypot(east, step[:, 1])))


def _turns(places: FloatArray) -> Words:
    """Return a number for each row that depends on its place and its position, whatever the other parts are."""
    words = np.ascontiguousarray(places).view(np.uint64) * MIXERS[:2]
    mixed = words[:, 0] + words[:, 1] + np.arange(len(places), dtype=np.uint64) * MIXERS[2]
    for mixer in MIXERS[1:]:
        mixed = (mixed ^ (mixed >> np.uint64(31))) * mixer
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _permuted(places: FloatArray, pairs: int = 2048) -> FloatArray:
    """Return the logarithms of distances between rows in random order."""
    first = (TURNS[0, :pairs] * len(places)).astype(np.int64)
    # Another row than the first one.
    second = (first + 1 + (TURNS[1, :pairs] * (len(places) - 1)).astype(np.int64)) % len(places)
    return _logs(places[first], places[second])


def _is_monotone(places: FloatArray) -> bool:
    """Return whether a coordinate rises, or falls, in nearly all steps: few rows show that, too."""
    steps = np.diff(places, axis=0).T
    moves = [axis[axis != 0] for axis in steps]
    return any(len(axis) >= LEAST_PAIRS and max(np.mean(axis > 0), np.mean(axis < 0)) >= FORWARD for axis in moves)


def _sums(logs: FloatArray) -> FloatArray:
    """Return the number of logarithms, their sum, and the sum of their squares."""
    return np.array([len(logs), logs.sum(), np.sum(logs**2)])


def _nearer(pairs: float, total: float, squares: float, permuted: FloatArray) -> bool:
    if pairs < LEAST_PAIRS:
        return False
    mean = total / pairs
    error = np.sqrt(max(squares / pairs - mean**2, 0) / pairs)
    return bool(permuted.mean() - mean > NEARER + ERRORS * error)


def _range(times: FloatArray, codes: IntArray) -> FloatArray:
    """Return the earliest and the latest time, and how far the rows go back in time and forth in it.

    In rows that are grouped by person, the step to the next person is not counted.
    """
    steps, same = np.nan_to_num(np.diff(times)), np.diff(codes) == 0
    steps = steps[same] if same.mean() > 0.5 else steps
    known = times[np.isfinite(times)] if np.isfinite(times).any() else np.zeros(1)
    return np.array([known.min(), known.max(), -steps[steps < 0].sum(), steps[steps > 0].sum()])


def _follows(clock: FloatArray) -> bool:
    """Return whether rows follow a clock: it goes back, or forth, a few times its range at most.

    A table that is sorted by station and then by time goes back by the range at each station.
    """
    low, high, back, forth = clock
    return bool(high > low and min(back, forth) <= BACK * (high - low))


def _moments(column: pa.Array) -> FloatArray:
    """Return times that can be compared; whole numbers may count milliseconds."""
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
    return seconds_of(column)[0]


def clock_columns(batch: pa.RecordBatch) -> list[str]:
    """Return the columns whose values are times: dates, ISO 8601 texts, or seconds or milliseconds since 1970.

    Examples
    --------
    >>> rows = {"begun": ["2024-05-01 08:00"], "fare": ["7.50"], "time": [1.7e9], "parcel": [1_700_000_000]}
    >>> clock_columns(pa.RecordBatch.from_pydict(rows))
    ['begun', 'time']
    """
    # From all over the batch: rows that are sorted by a number begin in a narrow range of it.
    rows = pa.array(np.unique(np.linspace(0, len(batch) - 1, min(len(batch), 64)).astype(np.int64)))
    columns = zip(batch.schema.names, batch.columns, strict=True)
    found = [name for name, column in columns if _may_be_clock(column.type) and _is_clock(name, column, rows)]
    return found[:MOST_CLOCKS]


def _may_be_clock(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = ("timestamp", "date", "integer", "floating")
    return is_text(kind) or any(getattr(pa.types, f"is_{test}")(kind) for test in tests)


def _is_clock(name: str, column: pa.Array, rows: pa.Array) -> bool:
    column = plain(picked(column, rows))
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return True
    moments = _moments(column)[~nulls(column)]
    dates = is_text(column.type) and not any(text.strip(DIGITS) == "" for text in column.drop_null().to_pylist())
    if not dates and NAMED.search(name) is None:
        return False
    return bool(len(moments)) and any(bool(np.all((moments > low) & (moments < high))) for low, high in SINCE_1970)
