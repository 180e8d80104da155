"""Whether a column repeats true coordinates: in any usual unit, rounded, or as digits inside text.

A sample of rows is enough: a column that copies the place does so in many rows. Numbers that agree by chance are
told apart by what they add up to: each distinct value counts by the digits in which it agrees, and values that
agree as often with the places of *other* rows count nothing. A correlation is no copy: it agrees with no unit.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geoind.arrays import FloatArray, IntArray
from geoind.tables.places import Flags, is_text

__all__ = ["Sample", "leaves", "numbers_in", "readable", "sampled_rows"]

ROWS = 256
"""Rows of a batch that are looked at."""
TEXTS = 24
"""Texts with digits among them that are read."""

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

NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
SEXAGESIMAL = re.compile(r"(\d{1,3})[^\d.,]{1,3}(\d{1,2})[^\d.,]{1,3}(\d{1,2}(?:[.,]\d+)?)")
MARKS = frozenset("°º'′’")
FOUR_DIGITS = re.compile(r"\d\D*\d\D*\d\D*\d").search


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
        # Few columns come near any unit: the others cost two comparisons.
        units = np.flatnonzero((self._ranges[0] <= high) & (self._ranges[1] >= low))
        if not len(units):
            return None
        targets, tolerance = self._targets[units], self._tolerance[units]
        if rows is not None:
            targets, tolerance = targets[:, rows], tolerance[:, rows]
        counts = (np.abs(size - targets) <= tolerance).sum(axis=1)
        most = int(counts.max())
        # One or two agree by chance, and are no evidence, unless there are few values at all.
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


def numbers_in(texts: Sequence[str | None]) -> tuple[FloatArray, IntArray]:
    """Return the numbers inside texts, degrees with minutes and seconds too, and the text of each.

    Examples
    --------
    >>> numbers_in(["at 48,8584 N", None, "2°17'40.2"])
    (array([48.8584,  2.    , 17.    , 40.2   ,  2.2945]), array([0, 2, 2, 2, 2]))
    """
    values: list[float] = []
    rows: list[int] = []
    for row, text in enumerate(texts):
        if not text:
            continue
        found = [float(number.replace(",", ".")) for number in NUMBER.findall(text[:4000])]
        for degrees, minutes, seconds in SEXAGESIMAL.findall(text[:4000]) if MARKS & set(text) else ():
            found.append(int(degrees) + int(minutes) / 60 + float(seconds.replace(",", ".")) / 3600)
        values += found
        rows += [row] * len(found)
    return np.array(values, np.float64), np.array(rows, np.int64)


def leaves(path: str, column: pa.Array, rows: IntArray) -> Iterator[tuple[str, pa.Array, IntArray]]:
    """Yield the innermost columns of a column, with their paths and the row of each value."""
    kind = column.type
    if pa.types.is_primitive(kind) or is_text(kind):
        yield path, column, rows
    elif isinstance(column, pa.ExtensionArray):
        yield from leaves(path, column.storage, rows)
    elif pa.types.is_dictionary(kind):
        yield from leaves(path, column.dictionary_decode(), rows)
    elif pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from leaves(f"{path}.{kind.field(number).name}", pc.struct_field(column, [number]), rows)
    elif pa.types.is_map(kind):
        parents = rows[np.asarray(pc.list_parent_indices(column.cast(_list_of(kind))), np.int64)]
        yield from leaves(path, column.cast(_list_of(kind)).flatten(), parents)
    elif _is_list(kind):
        if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
            column = column.cast(pa.large_list(kind.value_field))
        parents = np.asarray(pc.list_parent_indices(column), np.int64)
        yield from leaves(path, pc.list_flatten(column), rows[parents])
    else:
        yield path, column, rows


def _list_of(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([kind.key_field, kind.item_field]))


def _is_list(kind: pa.DataType) -> bool:
    tests = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
    return any(getattr(pa.types, f"is_{test}")(kind) for test in tests)


def readable(column: pa.Array, rows: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the numbers that a column without members holds, and the row of each."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        if pa.types.is_decimal(kind) or column.null_count:
            column = column.cast(pa.float64(), safe=False)
        return np.asarray(column.to_numpy(zero_copy_only=False), np.float64), rows
    if not is_text(kind):
        return np.empty(0), np.empty(0, np.int64)
    column = column.cast(pa.large_string())
    # Some texts first: most columns have digits in all of their texts, or in none.
    chosen = np.arange(0, len(column), max(1, len(column) // (2 * TEXTS)))
    texts = column.take(pa.array(chosen)).to_pylist()
    if len(chosen) < len(column) and sum(bool(text and FOUR_DIGITS(text)) for text in texts) < TEXTS:
        chosen, texts = np.arange(len(column)), column.to_pylist()
    if all(map(_is_number, filter(None, texts))):
        return np.array([float(text) if text else np.nan for text in texts]), rows[chosen]
    hits = [row for row, text in enumerate(texts) if text and FOUR_DIGITS(text)]
    hits = hits[:: max(1, len(hits) // TEXTS)]
    values, places = numbers_in([texts[row] for row in hits])
    return values, rows[chosen[np.array(hits, np.int64)[places]]] if hits else places


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
