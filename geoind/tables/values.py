"""Whether a column repeats true coordinates: in any usual unit, rounded, or as digits inside text.

A sample of rows is enough: a column that copies the place does so in many rows. Numbers that agree by chance are
told apart by what they add up to: each distinct value counts by the digits in which it agrees, and values that
agree as often with the places of *other* rows count nothing. A correlation is no copy: it agrees with no unit.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray, IntArray
from geoind.tables.places import Flags
from geoind.tables.reading import TEXTS

__all__ = ["ROWS", "Sample", "geohash", "sampled_rows"]

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

ENOUGH = 4.0
"""Digits of agreement, beyond the first of each distinct value, that are no accident; more values need more."""

LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"
GEOHASH = frozenset(LETTERS)


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

    def has_geohashes(self, column: pa.Array, rows: IntArray) -> bool:
        """Return whether texts are the geohashes of their rows' places, of a kilometre or less."""
        texts = column.cast(pa.large_string()).slice(0, TEXTS).to_pylist()
        asked = [(text.lower(), int(row)) for text, row in zip(texts, rows, strict=False) if text]
        asked = [(text, row) for text, row in asked if 6 <= len(text) <= 12 and GEOHASH.issuperset(text)]
        right = {text for text, row in asked if geohash(*self.lonlat[row].tolist()) == text[:6]}
        return len(asked) > 0 and len(right) * 2 > len({text for text, _ in asked})

    def _is_copy(self, unit: int, size: FloatArray, places: IntArray, sharpness: float) -> bool:
        near = self._near(unit, size, places, sharpness)
        distinct, first, often = np.unique(size[near], return_index=True, return_counts=True)
        values, counts = np.unique(size[np.isfinite(size)], return_counts=True)
        compared = len(values)
        truth = self._targets[unit, places[near][first]]
        few = compared < MANY
        if few:
            # A value that stays while the place changes agrees with some row by chance.
            steady = often >= 0.5 * counts[np.searchsorted(values, distinct)]
            distinct, truth = distinct[steady], truth[steady]
        elif near.sum() < 3 * self._by_chance(unit, size, places, sharpness) + 3:
            return False
        needed = ENOUGH + 2 * math.log10(compared)
        for value, true in zip(distinct.tolist(), truth.tolist(), strict=True):
            digits = min(_agreement(value, true), _written(value))
            # Where few values are compared, chance cannot be measured: a value must speak for itself.
            needed -= digits - 1 if digits >= (5 if few else 1) else 0
            if needed <= 0:
                return True
        return False

    def _near(self, unit: int, size: FloatArray, places: IntArray, sharpness: float) -> Flags:
        targets = self._targets[unit, places]
        allowed = np.minimum(self._tolerance[unit, places], sharpness * targets)
        return np.asarray(np.abs(size - targets) <= allowed)

    def _by_chance(self, unit: int, size: FloatArray, places: IntArray, sharpness: float) -> int:
        """Return how many values agree with the place of another row."""
        count = len(self.lonlat)
        result = 0
        for shift in {count // 2, count // 3} - {0}:
            others = (places + shift) % count
            # A row that stays at the same place proves nothing about chance.
            moved = self._targets[unit, others] != self._targets[unit, places]
            result = max(result, int((self._near(unit, size, others, sharpness) & moved).sum()))
        return result

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


def geohash(lon: float, lat: float) -> str:
    """Return the first six letters of a place's geohash.

    Examples
    --------
    >>> geohash(2.2945, 48.8584)
    'u09tun'
    """
    if not (math.isfinite(lon) and math.isfinite(lat)):
        return ""
    east, north = int((lon + 180) / 360 * 2**15), int((lat + 90) / 180 * 2**15)
    bits = "".join(f"{x}{y}" for x, y in zip(f"{min(east, 32767):015b}", f"{min(north, 32767):015b}", strict=True))
    return "".join(LETTERS[int(bits[at : at + 5], 2)] for at in range(0, 30, 5))


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


def _agreement(value: float, true: float) -> float:
    return -math.log10(max(abs(value - true) / true, 1e-9)) if true else 0.0


def _written(value: float) -> int:
    """Return how many digits a number needs."""
    return len(f"{value:.9g}".split("e")[0].replace(".", "").strip("0"))
