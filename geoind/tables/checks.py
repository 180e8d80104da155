"""Checks against mistakes: kept columns that repeat true coordinates, and rows whose order shows where they are.

The first check looks at a sample of the rows, for the digits of coordinates in numbers and text. It is not the
boundary of what leaves: that is the list of kept columns. A station's name or a distance to a landmark shows the
place, too, and passes here if its column is kept.

The second one compares the mean logarithm of the distance between consecutive rows with that of permuted rows, and
so it does with their distances to the east and to the north. A row between two others along a curve through the
map lies between them, whatever noise its report has. It covers every such order: sorted by a coordinate,
serpentine, grouped by cell, partitions by place.
"""

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.tables.columns import finite, floats_of, indices_of, is_text, nulls, picked, plain, seconds_of
from geoind.tables.places import geometry_columns

ROWS = 256
"""Rows that are looked at."""
SHARE = 0.3
"""Share of the rows with a copy that makes a column one of coordinates. Chance gives less than 0.01."""
LEAST_DIGITS = 4
SMALLEST = 1.0
"""Thousandths of a degree, or metres: of smaller coordinates there are too few digits to look for."""
LEAST_WKB = 9
"""Bytes of the shortest geometry."""
HEX = re.compile(r"(?:\\x|0[xX])?((?:[0-9A-Fa-f]{2}){9,})$")


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
    digits = [_digits(values, decimals) for coordinates, decimals in places for values in coordinates.T]
    for name, column in zip(kept.schema.names, kept.columns, strict=True):
        if pa.types.is_temporal(column.type):
            continue
        values = [value for value in _listed(column) if value is not None]
        if values and sum(map(_holds_wkb, values)) >= SHARE * len(values):
            raise InvalidInputError(f"column {name!r} holds geometries and cannot be kept next to a report")
        texts = _texts(column)
        if any(_repeats(texts, axis) for axis in digits):
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


def _holds_wkb(value: object) -> bool:
    """Return whether a value, a member or an item begins like WKB or EWKB, as bytes or as hexadecimal digits."""
    if isinstance(value, dict):
        return any(map(_holds_wkb, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_holds_wkb, value))
    if isinstance(value, str) and (digits := HEX.match(value)):
        value = bytes.fromhex(digits[1])
    if not isinstance(value, bytes) or len(value) < LEAST_WKB or value[0] > 1:
        return False
    code = int.from_bytes(value[1:5], "little" if value[0] else "big") & 0x0FFFFFFF
    return 1 <= code % 1000 <= 17 and code < 4000


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
    sample, turns : (n, 2) and (n,) array
        Places from all over the table: those with the smallest random numbers.
    ends : pair of (1, 2) arrays
        The first and the last place.

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
    sample: FloatArray = field(default_factory=lambda: np.empty((0, 2)), repr=False)
    turns: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    ends: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False)
    # Of the part: what no clock explains, and what each clock leaves; and how far each clock goes.
    _views: FloatArray = field(default_factory=lambda: np.zeros((1, 4, 3)), repr=False)
    _clocks: FloatArray = field(default_factory=lambda: np.empty((0, 4)), repr=False)
    _blocks: int = 0
    _waiting: list[tuple[FloatArray, Sequence[pa.Array], IntArray]] = field(default_factory=list, repr=False)

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
            places, codes, rows = places[present], codes[present], indices_of(np.flatnonzero(present))
            clocks = [picked(clock, rows) for clock in clocks]
        if not len(places):
            return
        # A fixed choice. Parts of the same size have other numbers, or few parts would stand for all of them.
        seed = zlib.crc32(places.tobytes())
        self._sample(places, np.random.default_rng(seed).random(len(places)))
        self.ends = (places[:1] if self.ends is None else self.ends[0], places[-1:])
        if not self.shuffled:
            self._waiting.append((places, clocks, codes))
            if sum(len(rows) for rows, _, _ in self._waiting) >= BLOCK:
                self._settle()

    def finish(self) -> None:
        """End the part: count its pairs, without those that a clock explains which the rows follow."""
        self._settle()
        if self.shuffled and len(self.sample) > 1:
            self.sums = self.sums + _sums(_permuted(self.sample)[:, : len(self.sample) // 2])
        followed = [view for view, clock in zip(self._views[1:], self._clocks, strict=False) if _follows(clock)]
        view = min(followed, key=lambda view: float(view[0, 0]), default=self._views[0])
        self.sums, self.sorted_block = self.sums + view[:3], self.sorted_block or bool(view[3].any())
        self._views, self._clocks, self.shuffled = np.zeros((1, 4, 3)), np.empty((0, 4)), False

    def merge(self, other: "RowOrder") -> None:
        """Take over what another part has."""
        self.finish()
        other.finish()
        if self.ends is not None and other.ends is not None:
            # The order of parts shows places as the order of rows does.
            self.sums = self.sums + _sums(_logs(self.ends[1], other.ends[0]))
            self.ends = (self.ends[0], other.ends[1])
        self.ends = self.ends or other.ends
        self.sums = self.sums + other.sums
        self.sorted_block |= other.sorted_block
        self._sample(other.sample, other.turns)

    @property
    def is_sorted(self) -> bool:
        """Whether consecutive places are nearer to each other than permuted ones."""
        self.finish()
        return self.sorted_block or (len(self.sample) > 1 and _nearer(self.sums, _permuted(self.sample)))

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

    def _sample(self, places: FloatArray, turns: FloatArray) -> None:
        """Take places into the sample, of each part the same share."""
        places, turns = np.concatenate([self.sample, places]), np.concatenate([self.turns, turns])
        chosen = np.argpartition(turns, SAMPLE)[:SAMPLE] if len(turns) > SAMPLE else slice(None)
        self.sample, self.turns = places[chosen], turns[chosen]

    def _settle(self) -> None:
        """Test the rows that wait, block by block."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        places, codes = (np.concatenate([part[at] for part in waiting]) for at in (0, 2))
        clocks = [
            pa.chunked_array(parts).combine_chunks() for parts in zip(*(part[1] for part in waiting), strict=True)
        ]
        self._views = self._views if len(self._views) > len(clocks) else np.zeros((1 + len(clocks), 4, 3))
        for rows in np.array_split(np.arange(len(places)), max(len(places) // BLOCK, 1)):
            if len(rows) > 1 and (self._blocks < EVERY_BLOCK or self._blocks % RARE == 0):
                part = slice(rows[0], rows[-1] + 1)
                self._test(places[part], [clock[part] for clock in clocks], codes[part])
            self._blocks += 1

    def _test(self, places: FloatArray, clocks: Sequence[pa.Array], codes: IntArray) -> None:
        """Compare consecutive rows of a block with the same rows permuted, also without those a clock explains."""
        permuted = _permuted(places)
        logs = {lag: _logs(places[:-lag], places[lag:]) for lag in LAGS if lag < len(places)}
        times: list[FloatArray] = [np.zeros(len(places))] * len(self._views)
        if clocks and any((permuted.mean(axis=1) - each.mean(axis=1) > NEARER).any() for each in logs.values()):
            # Seldom needed: it takes time to read times.
            times[1:] = [_moments(clock) for clock in clocks]
            ranges = np.array([_range(moments, codes) for moments in times[1:]])
            known = self._clocks if len(self._clocks) else ranges * (1, 1, 0, 0)
            low, high = np.minimum(known[:, 0], ranges[:, 0]), np.maximum(known[:, 1], ranges[:, 1])
            self._clocks = np.column_stack([low, high, known[:, 2:] + ranges[:, 2:]])
        for view, moments in zip(self._views, times, strict=True):
            forth = np.sign(np.nan_to_num(np.sign(np.diff(moments))).sum()) or 1.0
            # Two rows of one moment have one distance in both orders. The order of three may show places.
            ties = np.pad(np.diff(moments) == 0, 1)
            twins = ties[1:-1] & ~ties[:-2] & ~ties[2:]
            for lag, each in logs.items():
                explained = forth * (moments[lag:] - moments[:-lag]) > 0
                sums = _sums(each[:, ~(explained | twins if lag == 1 else explained)])
                view[:3] += sums * (lag == 1)
                view[3] += _nearer(sums, permuted)


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


def _follows(clock: FloatArray) -> bool:
    """Return whether rows follow a clock: it goes back, or forth, a few times its range at most.

    A table that is sorted by station and then by time goes back by the range at each station.
    """
    low, high, back, forth = clock.tolist()
    return bool(high > low and min(back, forth) <= BACK * (high - low))


MOST_CLOCKS = 4
SINCE_1970 = ((6.3e8, 2.2e9), (6.3e11, 2.2e12))
"""Seconds and milliseconds of the years 1990 to 2039. A wider range has more numbers that are no times: positions
along a Hilbert curve have 32 bits."""
NAMED = re.compile(r"time|date|stamp|epoch|utc|seconds|(^|[_\W])(at|ts|t)$", re.IGNORECASE)
"""Names of columns of numbers that may be seconds since 1970: identifiers look like them."""


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
    dates = is_text(column.type) and not any(
        text.strip("0123456789.eE+ ") == "" for text in column.drop_null().to_pylist()
    )
    if not dates and NAMED.search(name) is None:
        return False
    return bool(len(moments)) and any(bool(np.all((moments > low) & (moments < high))) for low, high in SINCE_1970)
