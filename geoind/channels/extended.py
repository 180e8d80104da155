"""A matrix whose columns are known at a few inputs, and extended to all others by a rule.

With a(y, x) = exp(-min(epsilon * |y - x|, 200)), column z is k_z(x) = max over kept y of a(y, x) v_z(y): the least
extension of the kept entries whose logarithm is epsilon-Lipschitz (McShane). One column, which takes the rest of
every row, is stored as it is. 10,000 x 10,000 entries become some hundred thousand.

The entries *are* the doubles that this formula gives: one product for each kept y, and their maximum, which does
not depend on the order. So any two expansions of a row are equal, and draws are as exact as from a dense matrix.

**Draws.** Of the partial sums of a row, those on both sides of its larger entries are stored. A number between two
of them that belong to an entry is decided; for others, one in ten thousand, the row is computed.

**Epsilon.** Let y be the input that gives k(x). Then k(x) = a(y, x) v(y) and k(x') >= a(y, x') v(y), hence
ln k(x) - ln k(x') <= epsilon |x - x'| by the triangle inequality: only the column that is stored as it is has to
be compared over all pairs of inputs. Rounding and row sums that are not exactly 1 are added to the result.
"""

import hashlib
import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_floats, as_positive, frozen
from geoind.channels.rows import choose, choose_one, partial_sums, steepest_ratio
from geoind.distances import euclidean
from geoind.errors import InvalidInputError
from geoind.keys import Words
from geoind.parallel import Threads, available_cores
from geoind.space.sites import Sites

__all__ = ["LARGEST_EXPONENT", "ExtendedMatrix"]

LARGEST_EXPONENT = 200.0
"""Smaller ratios become exp(-200) = 1e-87: the square of a probability must not underflow."""
SMALLEST = 1e-200
"""Smallest stored entry: no product of it and a ratio underflows."""
TAIL = 1e-4
"""Most probability of the entries of a row whose partial sums are not stored."""
TILE, CHUNK = 1 << 20, 1 << 16
"""Entries of the rows, and products, that are computed at a time."""
HALVINGS = 6
"""The limit of larger entries is at most so many powers of two above the one that always suffices."""
UNIT = 2.0**-53
"""Largest relative rounding error."""
COMPARED = 1e-13
"""More than the error of a comparison of two rows by `steepest_ratio`."""


_Where: TypeAlias = tuple[float, int, int, int]
"""A rate, two inputs and an output."""


class ExtendedMatrix:
    """A read-only matrix of probabilities, stored as entries, a rule and one column.

    `matrix[x]` computes a row, `matrix[start:stop]` some, and `matrix[:]` all.

    Parameters
    ----------
    inputs : Sites
        One for each row.
    outputs : int
        Number of columns.
    epsilon : float
        Privacy loss per metre of the rule.
    kept : tuple of three arrays
        Input, output and probability of the kept entries, ordered by output and input: at least one for each
        output except `report`, which has none.
    report : int
        The output whose column is stored as it is.
    column : (len(inputs),) array
        This column.

    Examples
    --------
    >>> from geoind import Channel, Grid
    >>> street = Grid(0, 0, cell=100, columns=3, rows=1)
    >>> matrix = ExtendedMatrix(street, 2, 0.01, ([1], [1], [0.5]), 0, [0.8, 0.5, 0.8])
    >>> matrix[0:2].round(3)
    array([[0.8  , 0.184],
           [0.5  , 0.5  ]])
    """

    def __init__(
        self,
        inputs: Sites,
        outputs: int,
        epsilon: float,
        kept: tuple[ArrayLike, ArrayLike, ArrayLike],
        report: int,
        column: ArrayLike,
    ) -> None:
        self.inputs, self.shape, self.report = inputs, (len(inputs), outputs), report
        self.epsilon = as_positive(epsilon, "epsilon")
        self.column = _as_entries(column, "column")
        self.input, self.output = (np.array(numbers, np.int64) for numbers in kept[:2])
        self.value = _as_entries(kept[2], "kept")
        self.input.flags.writeable = self.output.flags.writeable = False
        if not 0 <= report < outputs or self.column.shape != (len(inputs),):
            raise InvalidInputError("column must have one entry for each input, and report its number")
        if not self.input.shape == self.output.shape == self.value.shape or self.value.ndim != 1:
            raise InvalidInputError("kept must be three lists of equal length")
        inside = (self.input >= 0) & (self.input < len(inputs)) & (self.output >= 0) & (self.output < outputs)
        if not inside.all() or not (np.diff(self.output * len(inputs) + self.input) > 0).all():
            raise InvalidInputError("kept must be entries of the matrix, ordered by output and input, each once")
        self._others = np.delete(np.arange(outputs), report)
        self._start = np.flatnonzero(np.diff(self.output, prepend=-1))
        if not len(self._others) or not np.array_equal(self.output[self._start], self._others):
            raise InvalidInputError("kept must have an entry for each of the other outputs, and none of column")
        self._prepare()

    def __getitem__(self, rows: int | slice) -> FloatArray:
        """Return a row, or some rows, as an array."""
        numbers = np.arange(len(self.inputs))[rows]
        found = np.empty((numbers.size, self.shape[1]))

        def work(part: slice) -> None:
            some = numbers.reshape(-1)[part]
            found[part] = self._rows(some, self._ratios(some))

        tiles = list(self._tiles(len(found)))
        with Threads(min(available_cores(), len(tiles))) as threads:
            list(threads.each(work, tiles))
        found.flags.writeable = False
        return found if isinstance(rows, slice) else np.asarray(found[0])

    def choose(self, row: int, words: Words) -> tuple[IntArray, IntArray]:
        """Return what `rows.choose` does for the partial sums of a row."""
        first, stop = self._first[row], self._first[row + 1]
        pieces, undecided = choose(self._sums[first:stop], words, self.shape[1])
        outputs = self._numbers[first:stop][pieces].astype(np.int64)
        outputs[undecided] = -1
        if (left := np.flatnonzero(outputs < 0)).size:
            outputs[left], undecided = choose(partial_sums(self[row]), words[left])
            return outputs, left[undecided]
        return outputs, left

    def choose_one(self, row: int, word: int) -> int | None:
        """Return what `rows.choose_one` does for the partial sums of a row."""
        first, stop = self._first[row], self._first[row + 1]
        piece = choose_one(self._sums[first:stop], word, self.shape[1])
        output = -1 if piece is None else int(self._numbers[first + piece])
        return choose_one(partial_sums(self[row]), word) if output < 0 else output

    def digest(self) -> bytes:
        """Return a digest of what is stored."""
        digest = hashlib.blake2b(repr((self.shape, self.epsilon, self.report)).encode(), digest_size=16)
        for array in (self.input, self.output, self.value, self.column):
            digest.update(np.ascontiguousarray(array).data)
        return digest.digest()

    @property
    def nbytes(self) -> int:
        """Bytes of what is stored and of the partial sums."""
        arrays = self.input, self.output, self.value, self.column, self._sums, self._numbers
        return sum(array.nbytes for array in arrays)

    def steepest(self) -> _Where:
        """Return the largest log-ratio of two rows per metre, at most `margin` too large, and where it is."""
        if self._steepest[0] >= self.epsilon:
            rate, truth, other, report = self._steepest
        else:
            found = next(filter(None, map(self._attained, range(len(self.inputs)))), None)
            if found is None:
                # No entry is given by another input: the rule's epsilon is only a bound.
                whole = self[:]
                apart = euclidean(self.inputs.xy, self.inputs.xy)
                return steepest_ratio(whole / whole.sum(axis=1, keepdims=True), apart)
            rate, (truth, other, report) = self.epsilon, found
        return rate * (1 + 100 * UNIT) + self.margin, truth, other, report

    def _attained(self, other: int) -> tuple[int, int, int] | None:
        """Return an input, this one, and an output whose entry here is given by the other input, if any."""
        ratio = self._ratios(np.array([other]))[0][self.input]
        asked = ratio * self.value
        given = asked == self[other][self.output]
        # The smallest ratio may be that of a larger distance.
        given &= (ratio < 1) & (ratio > 2 * math.exp(-LARGEST_EXPONENT))
        if not given.any():
            return None
        entry = int(np.argmax(given))
        return int(self.input[entry]), other, int(self.output[entry])

    def _tiles(self, count: int) -> Iterator[slice]:
        height = max(1, TILE // max(self.shape))
        return (slice(start, start + height) for start in range(0, count, height))

    def _ratios(self, rows: IntArray, apart: FloatArray | None = None) -> FloatArray:
        """Return the ratios of some inputs and all."""
        if apart is None:
            apart = euclidean(self.inputs.xy[rows], self.inputs.xy)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-np.minimum(self.epsilon * apart, LARGEST_EXPONENT)))

    def _rows(self, rows: IntArray, ratios: FloatArray) -> FloatArray:
        """Return some rows, from the ratios of these inputs and all."""
        found = np.empty((len(rows), self.shape[1]))
        found[:, self.report] = self.column[rows]
        # Whole columns, so many at a time that their products fit the processor's cache.
        ends = np.append(self._start, len(self.value))
        most = max(1, CHUNK // len(rows))
        first = 0
        while first < len(self._start):
            stop = max(first + 1, int(np.searchsorted(ends, ends[first] + most, side="right")) - 1)
            entries = slice(ends[first], ends[stop])
            asked = ratios.take(self.input[entries], axis=1)
            asked *= self.value[entries]
            found[:, self._others[first:stop]] = np.maximum.reduceat(
                asked, self._start[first:stop] - ends[first], axis=1
            )
            first = stop
        return found

    def _prepare(self) -> None:
        """Compute the row sums, the partial sums that are stored, and what `steepest` needs, tile by tile."""
        logs, self.sums = np.log(self.column), np.empty(len(self.inputs))

        def work(
            part: slice,
        ) -> tuple[tuple[float, int, int, int], float, float, tuple[IntArray, FloatArray, IntArray]]:
            numbers = np.arange(len(self.inputs))[part]
            apart = euclidean(self.inputs.xy[part], self.inputs.xy)
            with np.errstate(all="ignore"):
                # Equal entries at no distance are 0 / 0.
                rates = np.nan_to_num((logs[part, None] - logs) / apart, copy=False, nan=0.0, posinf=math.inf)
            row, other = divmod(int(np.argmax(rates)), len(logs))
            steepest = float(rates[row, other]), int(numbers[row]), other, self.report
            rows = self._rows(numbers, self._ratios(numbers, apart))
            self.sums[part] = rows.sum(axis=1)
            return steepest, float(apart[apart > 0].min(initial=math.inf)), float(apart.max()), _larger(rows)

        with Threads(available_cores()) as threads:
            steepest, least, most, stored = zip(*threads.each(work, self._tiles(len(logs))), strict=True)
        counts, self._sums, self._numbers = (np.concatenate(some) for some in zip(*stored, strict=True))
        self._first = np.concatenate([[0], np.cumsum(counts)])
        self._steepest = max(steepest)
        # Roundings of logarithms. Of an entry: its exponent, with some for each coordinate of the distance, the
        # exponential function and the product. Of the column: the logarithm. Of a row sum: pairwise summation.
        exponent = min(self.epsilon * max(most), LARGEST_EXPONENT)
        rounded = exponent * (2 * self.inputs.xy.shape[1] + 4) + 2 * float(np.abs(logs).max()) + 80
        spread = math.log(float(self.sums.max()) / float(self.sums.min()))
        self.margin = (2 * UNIT * rounded + spread + COMPARED) / min(least)


def _as_entries(values: ArrayLike, name: str) -> FloatArray:
    array = as_floats(values, name)
    if not ((array >= SMALLEST) & (array <= 1)).all():
        raise InvalidInputError(f"{name} must hold probabilities from {SMALLEST:g} to 1")
    return frozen(array)


def _larger(rows: FloatArray) -> tuple[IntArray, FloatArray, IntArray]:
    """Return the partial sums on both sides of the larger entries of rows.

    Returns
    -------
    counts : (rows,) array
        The number of sums of each row.
    sums : array
        The sums, row after row.
    numbers : array
        For each sum the number of the entry that ends there, or -1 if there are smaller entries before it.
    """
    outputs = rows.shape[1]
    limit = TAIL / outputs * 2.0**HALVINGS
    larger = rows >= limit
    # With TAIL / outputs as the limit the condition holds.
    while limit > TAIL / outputs and np.where(larger, 0.0, rows).sum(axis=1).max() > TAIL:
        limit /= 2
        larger = rows >= limit
    ends = larger.copy()
    ends[:, :-1] |= larger[:, 1:]
    ends[:, -1] = True
    kind = np.min_scalar_type(-outputs)
    numbers = np.where(larger, np.arange(outputs, dtype=kind), kind.type(-1))[ends]
    return ends.sum(axis=1), partial_sums(rows)[ends], numbers
