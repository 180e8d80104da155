"""Whether a column repeats true coordinates: in any usual unit, rounded, or as digits inside text.

A sample of rows is enough: a column that copies the place does so in many rows. Numbers that agree by chance are
told apart by what they add up to: each distinct value counts by the digits in which it agrees, and values that
agree as often with the places of *other* rows count nothing. A correlation is no copy: it agrees with no unit.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.tables.places import Flags
from geoind.tables.units import METRES, NAMES, NEAR, NEARNESS, in_every_unit

__all__ = ["AROUND", "ROWS", "Sample", "is_fine", "sampled_rows"]

ROWS = 256
"""Rows of a batch that are looked at."""

FIRST = 64
"""So many of them are the first rows, which are compared with those around them, too."""

AROUND = 512
"""So many first rows of a batch are those around them."""

SHARPNESS = (1e-3, 2e-5, 1e-6)
"""Parts of a coordinate by which a copy may differ from it: by rounding, and in single precision."""

MANY = 8
"""Distinct values from which on chance can be measured."""

MOVES = np.array([-4, -3, -2, -1, 1, 2, 3, 4])
"""How many steps away numbers are compared with places, too."""

SAME = 5.1e-6
"""Degrees by which a place with five decimals differs from itself with more."""

CHANCE = 1e-7
"""How likely as many agreements may be among values that have nothing to do with the place."""

ENOUGH = 4.0
"""Digits of agreement, beyond the first of each distinct value, that are no accident; more values need more."""


def sampled_rows(count: int) -> IntArray:
    """Return the rows of a batch to look at: all of a few, or the first ones and some spread evenly."""
    if count <= ROWS:
        return np.arange(count)
    spread = np.linspace(FIRST, count - 1, ROWS - FIRST).astype(np.int64)
    return np.concatenate([np.arange(FIRST), spread])


@dataclass(frozen=True)
class Sample:
    """True places of some rows, in every usual unit.

    Parameters
    ----------
    lonlat : (n, 2) array
        Degrees, NaN where a row has no place.
    own : (n, 2) array, optional
        The same in the table's CRS, where that is not degrees.
    numbers : (n,) array, optional
        The number of each row in its batch; by default they are all rows.
    around : (m, 2) array, optional
        Degrees of all rows of the batch; by default they are all rows.
    """

    lonlat: FloatArray
    own: FloatArray | None = None
    numbers: IntArray | None = None
    around: FloatArray | None = None

    def suspects(self, columns: FloatArray) -> Flags:
        """Return which of the (m, n) columns of numbers come near a coordinate often enough for a closer look."""
        size = np.abs(columns)
        low, high = np.fmin.reduce(size, axis=1), np.fmax.reduce(size, axis=1)
        # Few columns come near any unit: the others cost two comparisons.
        column, unit = np.nonzero((self._ranges[0] <= high[:, None]) & (self._ranges[1] >= low[:, None]))
        near = (np.abs(size[column] - self._targets[unit]) <= self._tolerance[unit]).sum(axis=1)
        most = np.zeros(len(size), np.int64)
        np.maximum.at(most, column, near)
        # One or two agree by chance, and are no evidence, unless there are few values at all.
        few = [count > 0 and _are_few(row) for count, row in zip(most, size, strict=True)]
        return np.asarray((most >= 3) | np.array(few, bool) | self._meet_places(size[:, :FIRST]))

    def copied_as(self, values: FloatArray, rows: IntArray) -> str | None:
        """Return the unit in which values repeat a coordinate, None where they do not.

        Parameters
        ----------
        values : (m,) array
            Numbers of a column; NaN where there is none.
        rows : (m,) array
            The row of each.
        """
        size = np.abs(values)
        low, high = np.fmin.reduce(size), np.fmax.reduce(size)
        units = np.flatnonzero((self._ranges[0] <= high) & (self._ranges[1] >= low))
        if not len(units):
            return None
        targets, tolerance = self._targets[units][:, rows], self._tolerance[units][:, rows]
        counts = (np.abs(size - targets) <= tolerance).sum(axis=1)
        most = int(counts.max())
        if not most or (most < 3 and not _are_few(size)):
            return None
        for position in np.argsort(-counts, kind="stable")[:4].tolist():
            unit = int(units[position])
            # Among places closer to one another than the tolerance, only a sharper look tells copy from chance.
            for sharpness in SHARPNESS:
                if counts[position] and self._is_copy(unit, size, rows, sharpness):
                    return NAMES[unit]
        return None

    def _is_copy(self, unit: int, size: FloatArray, places: IntArray, sharpness: float) -> bool:
        near = self._near(unit, size, places, sharpness)
        distinct, first, often = np.unique(size[near], return_index=True, return_counts=True)
        known = np.isfinite(size)
        values, counts = np.unique(size[known], return_counts=True)
        compared = len(values)
        rows = places[near][first]
        few = compared < MANY
        if few:
            # A value that stays while the place changes agrees with some row by chance.
            steady = often >= 0.5 * counts[np.searchsorted(values, distinct)]
            distinct, rows = distinct[steady], rows[steady]
        elif not self._beyond_chance(near, unit, size, places, sharpness):
            return False
        elif _rises(rows, distinct) and len(set(places[near])) < 0.9 * len(set(places[known])):
            # Where places are sorted, a column of times, or any that rises with the rows, meets them now and then.
            return False
        truth = self._targets[unit, rows]
        digits = [min(_agreement(*pair), _written(pair[0])) for pair in zip(distinct, truth, strict=True)]
        # Where few values are compared, chance cannot be measured: a value must speak for itself.
        evidence = [number - 1 for number in digits if number >= 5 or not few]
        if _counts_rows(rows if self.numbers is None else self.numbers[rows], distinct):
            # A counter tells what the order of rows tells, which is looked at elsewhere: two values say it all.
            evidence = sorted(evidence)[-2:]
        return sum(evidence) >= ENOUGH + 2 * math.log10(compared)

    def _near(self, unit: int, size: FloatArray, places: IntArray, sharpness: float) -> Flags:
        targets = self._targets[unit, places]
        allowed = np.minimum(self._tolerance[unit, places], sharpness * targets)
        return np.asarray(np.abs(size - targets) <= allowed)

    def _beyond_chance(self, near: Flags, unit: int, size: FloatArray, places: IntArray, sharpness: float) -> bool:
        """Return whether more values agree with their own row than would with the places of other rows."""
        count, agree = len(self.lonlat), int(near.sum())
        targets = self._targets[unit]
        for shift in {count // 2, count // 3} - {0}:
            others = (places + shift) % count
            # A row that stays at the same place proves nothing about chance.
            moved = targets[others] != targets[places]
            if agree < 3 * int((self._near(unit, size, others, sharpness) & moved).sum()) + 3:
                return False
        # So many agree with a row of another place, on average over all rows; and as many as do, or more, have
        # this probability by chance.
        values = np.sort(size[np.isfinite(size)])
        allowed = np.minimum(self._tolerance[unit], sharpness * targets)
        inside = np.searchsorted(values, targets + allowed, "right") - np.searchsorted(values, targets - allowed)
        _, which, often = np.unique(targets, return_inverse=True, return_counts=True)
        strange = int(inside[np.isfinite(targets)].sum()) - int(often[which[places[near]]].sum())
        # Of few rows none may agree: then a narrower look would see one in as many more rows.
        expected = max(sharpness / SHARPNESS[0], strange) / max(1, count - int(often.max()))
        return _unlikely(agree, expected)

    def lists_places(self, values: FloatArray) -> bool:
        """Return whether numbers are coordinates of rows, whichever rows: of the row before, or of all rows.

        Only degrees with four decimals or more count, and more of them must be the very coordinates of places than
        if all were moved a little.
        """
        size = np.abs(values)
        size = np.unique(size[is_fine(size)])
        for axis in filter(len, self._sorted):
            inside = size[(size >= axis[0]) & (size <= axis[-1])]
            # Moved by whole steps of the fourth decimal, numbers of any more decimals stay what they could be.
            step = 1e-4 * max(1, round(40 * (axis[-1] - axis[0])))
            moved = inside + step * MOVES[:, None]
            for part in (1e-9, 6e-8):
                agree, strange = (int(_is_among(axis, some, part).sum()) for some in (inside, moved))
                if _unlikely(agree, max(1, strange) / len(MOVES)):
                    return True
        return False

    def _meet_places(self, size: FloatArray) -> Flags:
        """Return which of the (m, n) columns of sizes hold the very coordinates of some rows."""
        fine = is_fine(size)
        met = np.zeros(len(size), bool)
        for axis in filter(len, self._sorted):
            inside = fine & (size >= axis[0]) & (size <= axis[-1])
            chosen = np.flatnonzero(np.count_nonzero(inside, axis=1) >= MANY // 2)
            if len(chosen):
                among = _is_among(axis, size[chosen], 6e-8) & inside[chosen]
                met[chosen] |= np.count_nonzero(among, axis=1) >= MANY // 2
        return met

    def names_place(self, values: FloatArray) -> bool:
        """Return whether numbers are coordinates of rows: those of many, or both of one, with five decimals."""
        size = np.abs(values)
        size = size[is_fine(size)]
        if len(size) < 2:
            return False
        if self.lists_places(size):
            return True
        # Whichever row it is. Only numbers that lie between the coordinates of all rows are worth the comparisons.
        every = self._every_row
        inside = [np.count_nonzero((size > low - NEAR) & (size < high + NEAR)) for low, high in every._bounds]
        if max(inside) > 1 and every.lists_places(size):
            return True
        fine = np.sort(size[is_fine(size, 4)])
        if min(inside) == 0 or len(fine) < 2:
            return False
        near = every.lonlat[_apart(fine, np.abs(every.lonlat[:, 0])) <= SAME]
        return bool(np.any(_apart(fine, np.abs(near[:, 1])) <= SAME))

    @cached_property
    def _every_row(self) -> "Sample":
        return self if self.around is None else Sample(np.vstack([self.lonlat, self.around]))

    @cached_property
    def _bounds(self) -> list[tuple[float, float]]:
        """Between which sizes the longitudes and the latitudes lie."""
        size = np.abs(self.lonlat)
        low, high = np.fmin.reduce(size, initial=np.inf), np.fmax.reduce(size, initial=-np.inf)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    @cached_property
    def _sorted(self) -> list[FloatArray]:
        places = self.lonlat if self.around is None else np.vstack([self.lonlat, self.around[:AROUND]])
        return [np.unique(np.abs(axis[np.isfinite(axis)])) for axis in places.T]

    @cached_property
    def _targets(self) -> FloatArray:
        """The absolute coordinates in every unit, in the order of the names."""
        rows = in_every_unit(self.lonlat)
        return rows if self.own is None else np.vstack([rows, np.abs(self.own.T)])

    @cached_property
    def _tolerance(self) -> FloatArray:
        own = [] if self.own is None else [NEAR if np.nanmax(np.abs(self.own), initial=0) <= 400 else METRES] * 2
        # Three digits must agree: half a kilometre is nothing beside a coordinate of 600 metres.
        return np.asarray(np.minimum(np.array([*NEARNESS, *own])[:, None], SHARPNESS[0] * self._targets))

    @cached_property
    def _ranges(self) -> tuple[FloatArray, FloatArray]:
        """Between which numbers each unit's coordinates lie."""
        targets, tolerance = self._targets, self._tolerance
        return np.fmin.reduce(targets - tolerance, axis=1), np.fmax.reduce(targets + tolerance, axis=1)


def is_fine(size: FloatArray, decimals: int = 3) -> Flags:
    """Return which sizes may be degrees, and have more decimals than so many."""
    with np.errstate(invalid="ignore"):
        digits = np.where(size <= 180, size, 0) * 10.0**decimals
        return np.asarray(np.abs(digits - np.rint(digits)) > 1e-6)


def _are_few(size: FloatArray) -> bool:
    """Return whether the first sizes are few different ones, however many are missing."""
    some = size[: 2 * MANY]
    return len(set(some[~np.isnan(some)].tolist())) < MANY


def _is_among(known: FloatArray, values: FloatArray, part: float) -> Flags:
    """Return which values are among known ones, which are sorted, but for a small part."""
    return np.asarray(_apart(known, values) <= part * values)


def _apart(known: FloatArray, values: FloatArray) -> FloatArray:
    """Return how far values are from the nearest of known ones, which are sorted."""
    at = np.searchsorted(known, values)
    below, above = known[np.maximum(at - 1, 0)], known[np.minimum(at, len(known) - 1)]
    return np.minimum(np.abs(below - values), np.abs(above - values))


def _unlikely(agree: int, expected: float) -> bool:
    """Return whether so many agree by chance less often than is allowed."""
    most = max(agree, expected)
    return most * math.log10(math.e * expected / most) - expected / math.log(10) < math.log10(CHANCE)


def _rises(rows: IntArray, values: FloatArray) -> bool:
    """Return whether more values than by chance rise, or fall, with the rows."""
    steps = np.diff(values[np.argsort(rows, kind="stable")])
    return len(steps) >= 4 and bool(np.all(steps > 0) or np.all(steps < 0))


def _counts_rows(rows: IntArray, values: FloatArray) -> bool:
    """Return whether values are the numbers of their rows, but for the first one and a factor."""
    if len(rows) < 3 or rows.min() == rows.max():
        return False
    first, last = int(np.argmin(rows)), int(np.argmax(rows))
    slope = (values[last] - values[first]) / (rows[last] - rows[first])
    return bool(np.all(np.abs(values[first] + slope * (rows - rows[first]) - values) <= 1.01 * abs(slope)))


def _agreement(value: float, true: float) -> float:
    return -math.log10(max(abs(value - true) / true, 1e-9)) if true else 0.0


def _written(value: float) -> int:
    """Return how many digits a number needs."""
    return len(f"{value:.9g}".split("e")[0].replace(".", "").strip("0"))
