"""Checks against mistakes: kept columns that repeat true coordinates, and rows whose order shows where they are.

The first check looks at a sample of the rows, for the digits of coordinates in numbers and text. It is not the
boundary of what leaves: that is the list of kept columns. A station's name or a distance to a landmark shows the
place, too, and passes here if its column is kept.

The second one compares the mean logarithm of the distance between consecutive rows with that of permuted rows. A
row between two others along a curve through the map lies between them, whatever noise its report has. It covers
every such order: sorted by a coordinate, serpentine, grouped by cell, partitions by place.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.randomness import Words
from geoind.tables.columns import finite, floats_of, indices_of, is_text, nulls, picked, plain, seconds_of
from geoind.tables.places import geometry_columns

__all__ = ["RowOrder", "clock_columns", "refuse_copies", "refuse_geometries", "sampled_rows"]

ROWS = 256
"""Rows that are looked at."""
SHARE = 0.3
"""Share of the rows with a copy that makes a column one of coordinates. Chance gives less than 0.01."""
LEAST_DIGITS = 4
SMALLEST = 1.0
"""Thousandths of a degree, or metres: of smaller coordinates there are too few digits to look for."""
HEX = re.compile(r"(?:\\x|0[xX])?([0-9A-Fa-f]{42,})")


def sampled_rows(count: int) -> IntArray:
    """Return numbers of rows from all over a batch of so many."""
    return np.linspace(0, count - 1, min(ROWS, count)).astype(np.int64)


def refuse_geometries(schema: pa.Schema, kept: Iterable[str]) -> None:
    """Raise if a kept column is declared to hold geometries."""
    for name in set(kept) & set(geometry_columns(schema)):
        raise InvalidInputError(f"column {name!r} holds geometries and cannot be kept next to a report")


def refuse_copies(kept: pa.RecordBatch, places: Sequence[tuple[FloatArray, int]]) -> None:
    """Raise if a kept column repeats true coordinates of its rows.

    Parameters
    ----------
    kept : pyarrow.RecordBatch
        Some rows of the kept columns.
    places : sequence of ((n, 2) array, int)
        The true coordinates of these rows, and how many of their decimals are looked for: of degrees 3, of metres
        none.

    Examples
    --------
    >>> truth = np.array([[2.29448, 48.85837]])
    >>> refuse_copies(pa.RecordBatch.from_pydict({"note": ["seen at 48.858,2.294"]}), [(truth, 3)])
    Traceback (most recent call last):
    geoind.errors.InvalidInputError: column 'note' repeats true coordinates of its rows: it cannot be kept
    """
    digits = [
        [_digits(values, decimals) for values in coordinates.T]
        for coordinates, decimals in places
        if len(coordinates)
    ]
    for name, column in zip(kept.schema.names, kept.columns, strict=True):
        if _is_wkb(column):
            raise InvalidInputError(f"column {name!r} holds geometries and cannot be kept next to a report")
        texts = _texts(column)
        if any(_repeats(texts, axis) for axes in digits for axis in axes):
            raise InvalidInputError(f"column {name!r} repeats true coordinates of its rows: it cannot be kept")


def _digits(values: FloatArray, decimals: int) -> list[tuple[str, ...]]:
    """Return the digits of each coordinate, cut off and rounded: so many decimals, or more where it is small."""
    found = []
    for value in (np.abs(values) * 10.0**decimals).tolist():
        while SMALLEST < value < 10 ** (LEAST_DIGITS - 1):
            value *= 10
        forms = {str(int(value)), str(round(value))} if value > SMALLEST else set()
        found.append(tuple(form for form in forms if len(form) >= LEAST_DIGITS))
    return found


def _texts(column: pa.Array) -> list[str]:
    """Return the values as text, without the signs between the digits of one number."""
    if pa.types.is_temporal(column.type):
        return [""] * len(column)
    texts = ("" if value is None else str(value) for value in _listed(column))
    return [re.sub(r"(?<=\d)[.,](?=\d)", "", text) for text in texts]


def _listed(column: pa.Array) -> list[Any]:
    """Return the values of a column; those that Python does not know, such as the year 10000, cannot be kept."""
    try:
        return list(column.to_pylist())
    except (pa.ArrowException, OverflowError, ValueError):
        raise InvalidInputError(
            f"a kept column of type {column.type} has values that cannot be inspected"
        ) from None


def _repeats(texts: Sequence[str], digits: Sequence[tuple[str, ...]]) -> bool:
    asked = [(text, forms) for text, forms in zip(texts, digits, strict=True) if text and forms]
    copies = sum(any(_begins(form, text) for form in forms) for text, forms in asked)
    return bool(asked) and copies >= SHARE * len(asked) and copies >= min(len(asked), 2)


def _begins(form: str, text: str) -> bool:
    """Return whether digits begin a number in a text; zeros before them are of the same number."""
    return form in text and re.search(rf"(?<!\d)0*{form}", text) is not None


def _is_wkb(column: pa.Array) -> bool:
    """Return whether values are geometries as bytes, or as the hexadecimal digits of them, also inside others."""
    if pa.types.is_temporal(column.type):
        return False
    values = [value for value in _listed(column) if value is not None]
    found = [shape for value in values for shape in _wkb_in(value)]
    if not found:
        return False
    # Slow to import, and seldom needed.
    import shapely

    shapes = shapely.from_wkb(np.asarray(found, dtype=object), on_invalid="ignore")
    return sum(shape is not None for shape in shapes) >= SHARE * len(values)


def _wkb_in(value: Any) -> list[bytes]:
    """Return the bytes in a value, also those of hexadecimal digits, of members and of items."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [shape for item in value for shape in _wkb_in(item)]
    if isinstance(value, str) and (digits := HEX.fullmatch(value)) and len(digits[1]) % 2 == 0:
        return [bytes.fromhex(digits[1])]
    return [value] if isinstance(value, bytes) else []


BLOCK = 1024
"""Consecutive rows that are also tested by themselves: a table may be sorted in a part only."""
EVERY_BLOCK = 64
"""So many blocks of a part are tested, and of the others"""
RARE = 16
"""one of so many, which counts for all of them."""
SAMPLE = 2048
"""Rows that stand for the whole table, or for a part of it, where it is permuted."""
MIXERS = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
SHUFFLE = "give `order='shuffle'`"
"""The remedy for rows that are sorted by place, unless an engine has its own."""
LEAST_PAIRS = 24
MOST_PERMUTED = 16384
NEARER = 0.15
"""Difference of mean logarithms that is tolerated: consecutive places 14 % nearer. Rows sorted by one coordinate
have 0.6 to 0.7, by cells of a 10 x 10 grid 2.3."""
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
    _rows: int = 0
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
        present = finite(places)
        if not present.all():
            places, codes, rows = places[present], codes[present], indices_of(np.flatnonzero(present))
            clocks = [picked(clock, rows) for clock in clocks]
        if not len(places):
            return
        self._sample(places, _turns(places, self._rows), self.below)
        self.ends = (places[:1] if self.ends is None else self.ends[0], places[-1:])
        start = 0
        while start < len(places):
            block, inside = divmod(self._rows, BLOCK)
            part = slice(start, start + BLOCK - inside)
            if not self.shuffled and (block < EVERY_BLOCK or block % RARE == 0):
                self._waiting.append((places[part], [clock[part] for clock in clocks], codes[part]))
            self._rows += len(places[part])
            start += BLOCK - inside
            if self._rows % BLOCK == 0:
                self.settle()

    def settle(self) -> None:
        """Count the rows that wait for a block to be full: the part ends."""
        waiting, self._waiting = self._waiting, []
        if sum(len(rows) for rows, _, _ in waiting) < 2:
            return
        rows, clocks, persons = zip(*waiting, strict=True)
        places, codes = np.concatenate(rows), np.concatenate(persons)
        columns = [pa.chunked_array(parts) for parts in zip(*clocks, strict=True)]
        weight = 1 if self._rows <= EVERY_BLOCK * BLOCK else RARE
        permuted, monotone = _permuted(places, BLOCK), _is_monotone(places)
        lags = {lag: _logs(places[:-lag], places[lag:]) for lag in (1, *LAGS) if lag < len(places)}
        times = list[FloatArray]()
        if columns and (monotone or any(permuted.mean() - logs.mean() > NEARER for logs in lags.values())):
            times = [_moments(column.combine_chunks()) for column in columns]
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


def _turns(places: FloatArray, first: int) -> Words:
    """Return a number for each row that depends on its place and its position, whatever the other parts are."""
    words = np.ascontiguousarray(places).view(np.uint64) * MIXERS[:2]
    return _mixed(words[:, 0] + words[:, 1] + np.arange(first, first + len(places), dtype=np.uint64) * MIXERS[2])


def _mixed(words: Words) -> Words:
    """Return pseudo-random words of words: a fixed choice, which needs no secret."""
    for mixer in MIXERS[1:]:
        words = (words ^ (words >> np.uint64(31))) * mixer
    return np.asarray(words ^ (words >> np.uint64(31)))


TURNS = _mixed(np.arange(1, 2 * MOST_PERMUTED + 1, dtype=np.uint64) * MIXERS[0]).reshape(2, -1) / 2.0**64
"""Random rows, as shares of a table."""


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
        return floats_of(column)
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
    rows = indices_of(sampled_rows(len(batch)))
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
