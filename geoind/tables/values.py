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

__all__ = ["ROWS", "Sample", "sampled_rows"]

ROWS = 256
"""Rows of a batch that are looked at."""

NEAR = 0.0051
"""Degrees: a coordinate rounded to two decimals, half a kilometre, is still a copy."""
METRES = 111_320.0 * NEAR
EARTH = 6_378_137.0

UNITS = {
    "degrees": 1.0,
    "radians": math.pi / 180,
    "arc minutes": 60.0,
    "arc seconds": 3600.0,
    "thousandths of an arc second": 3.6e6,
    "semicircles": 2**31 / 180,
    **{f"1e-{power} degrees": 10.0**power for power in range(3, 8)},
}

AXES = ("longitude", "latitude")
FACTORS = np.array(list(UNITS.values()))
NAMES = [
    *(f"the {axis} in {unit}" for unit in UNITS for axis in AXES),
    *(f"the {axis} in degrees and minutes" for axis in AXES),
    "the longitude in degrees from 0 to 360",
    *(f"the {axis} in metres of Web Mercator" for axis in AXES),
    *(f"the geocentric {axis} in metres" for axis in "xyz"),
    *(f"the {axis} of the table's CRS" for axis in "xy"),
]
NEARNESS = [*np.repeat(NEAR * FACTORS, 2), NEAR * 60, NEAR * 60, NEAR, *[METRES] * 5]

SHARPNESS = (1e-3, 2e-5, 1e-6)
"""Parts of a coordinate by which a copy may differ from it: by rounding, and in single precision."""

MANY = 8
"""Distinct values from which on chance can be measured."""

CHANCE = 1e-7
"""How likely as many agreements may be among values that have nothing to do with the place."""

ENOUGH = 4.0
"""Digits of agreement, beyond the first of each distinct value, that are no accident; more values need more."""


def sampled_rows(count: int) -> IntArray:
    """Return the rows of a batch to look at: all of a few, or some spread evenly."""
    return np.arange(count) if count <= ROWS else np.linspace(0, count - 1, ROWS).astype(np.int64)


@dataclass(frozen=True)
class Sample:
    """True places of some rows, in every usual unit.

    Parameters
    ----------
    lonlat : (n, 2) array
        Degrees, NaN where a row has no place.
    own : (n, 2) array, optional
        The same in the table's CRS, where that is not degrees.
    """

    lonlat: FloatArray
    own: FloatArray | None = None

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
        few = [0 < count < 3 and len(set(row[: 2 * MANY])) < MANY for count, row in zip(most, size, strict=True)]
        return np.asarray((most >= 3) | np.array(few, bool))

    def copied_as(self, values: FloatArray, rows: IntArray | None = None) -> str | None:
        """Return the unit in which values repeat a coordinate, None where they do not.

        Parameters
        ----------
        values : (m,) array
            Numbers of a column; NaN where there is none.
        rows : (m,) array, optional
            The row of each, where there are several in a row, or none.
        """
        size = np.abs(values)
        low, high = np.fmin.reduce(size), np.fmax.reduce(size)
        units = np.flatnonzero((self._ranges[0] <= high) & (self._ranges[1] >= low))
        if not len(units):
            return None
        targets, tolerance = self._targets[units], self._tolerance[units]
        if rows is not None:
            targets, tolerance = targets[:, rows], tolerance[:, rows]
        counts = (np.abs(size - targets) <= tolerance).sum(axis=1)
        most = int(counts.max())
        if not most or (most < 3 and len(set(size[: 2 * MANY].tolist())) >= MANY):
            return None
        places = np.arange(len(self.lonlat)) if rows is None else rows
        for position in np.argsort(-counts, kind="stable")[:4].tolist():
            unit = int(units[position])
            # Among places closer to one another than the tolerance, only a sharper look tells copy from chance.
            for sharpness in SHARPNESS:
                if counts[position] and self._is_copy(unit, size, places, sharpness):
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
        evidence = [number - 1 for number in digits if number >= (5 if few else 1)]
        if _counts_rows(rows, distinct):
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
        return agree * math.log10(math.e * expected / agree) - expected / math.log(10) < math.log10(CHANCE)

    @cached_property
    def _targets(self) -> FloatArray:
        """The absolute coordinates in every unit, in the order of `_names`."""
        degrees = np.abs(self.lonlat.T)
        rows = [
            (FACTORS[:, None, None] * degrees).reshape(-1, len(self.lonlat)),
            np.floor(degrees) * 100 + (degrees % 1) * 60,
            self.lonlat[:, :1].T % 360,
            np.abs(_mercator(self.lonlat)),
            np.abs(_geocentric(self.lonlat)),
        ]
        return np.vstack(rows if self.own is None else [*rows, np.abs(self.own.T)])

    @cached_property
    def _tolerance(self) -> FloatArray:
        own = [] if self.own is None else [NEAR if np.nanmax(np.abs(self.own), initial=0) <= 400 else METRES] * 2
        # Three digits must agree: half a kilometre is nothing beside a coordinate of 600 metres.
        return np.asarray(np.minimum(np.array([*NEARNESS, *own])[:, None], SHARPNESS[0] * self._targets))

    @cached_property
    def _ranges(self) -> tuple[FloatArray, FloatArray]:
        """Between which numbers each unit's coordinates lie."""
        known = np.isfinite(self._targets).all(axis=0)
        targets, tolerance = self._targets[:, known], self._tolerance[:, known]
        return (targets - tolerance).min(axis=1, initial=np.inf), (targets + tolerance).max(
            axis=1, initial=-np.inf
        )


def _mercator(lonlat: FloatArray) -> tuple[FloatArray, FloatArray]:
    lon, lat = np.radians(lonlat.T)
    with np.errstate(divide="ignore", invalid="ignore"):
        return EARTH * lon, EARTH * np.log(np.tan(np.pi / 4 + lat / 2))


def _geocentric(lonlat: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    lon, lat = np.radians(lonlat.T)
    flattening = 1 / 298.257223563
    squared = flattening * (2 - flattening)
    radius = EARTH / np.sqrt(1 - squared * np.sin(lat) ** 2)
    return (
        radius * np.cos(lat) * np.cos(lon),
        radius * np.cos(lat) * np.sin(lon),
        radius * (1 - squared) * np.sin(lat),
    )


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
    # The rows of a sample are evenly spread, give or take one.
    return bool(np.all(np.abs(values[first] + slope * (rows - rows[first]) - values) <= 1.01 * abs(slope)))


def _agreement(value: float, true: float) -> float:
    return -math.log10(max(abs(value - true) / true, 1e-9)) if true else 0.0


def _written(value: float) -> int:
    """Return how many digits a number needs."""
    return len(f"{value:.9g}".split("e")[0].replace(".", "").strip("0"))
