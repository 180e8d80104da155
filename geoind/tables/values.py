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
TEXTS = 48
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

ENOUGH = 4.0
"""Digits of agreement, beyond the first of each distinct value, that are no accident; more values need more."""

NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
SEXAGESIMAL = re.compile(r"(\d{1,3})[^\d.,]{1,3}(\d{1,2})[^\d.,]{1,3}(\d{1,2}(?:[.,]\d+)?)")
FOUR_DIGITS = r"[0-9].*[0-9].*[0-9].*[0-9]"


def sampled_rows(truths: Sequence[FloatArray]) -> IntArray:
    """Return the rows of a batch to look at: spread evenly, and those at the edge of the true places."""
    count = len(truths[0]) if truths else 0
    if count <= ROWS:
        return np.arange(count)
    rows = np.linspace(0, count - 1, ROWS).astype(np.int64)
    edges: list[int] = []
    for truth in truths:
        if np.isfinite(truth).any():
            edges += [int(pick(axis)) for axis in truth.T for pick in (np.nanargmin, np.nanargmax)]
    return np.unique(np.concatenate([rows, np.array(edges, np.int64)]))


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
        places = np.arange(len(self.lonlat)) if rows is None else rows
        size = np.abs(values)
        near = np.abs(size - self._targets[:, places]) <= self._tolerance[:, places]
        counts = near.sum(axis=1)
        for unit in np.argsort(-counts, kind="stable")[:4].tolist():
            if counts[unit] and self._is_copy(unit, size, places, near[unit]):
                return str(self._names[unit])
        return None

    def _is_copy(self, unit: int, size: FloatArray, places: IntArray, near: Flags) -> bool:
        distinct, first = np.unique(size[near], return_index=True)
        compared = len(np.unique(size[np.isfinite(size)]))
        truth = self._targets[unit, places[near][first]]
        few = compared < 8
        if not few and near.sum() < 3 * self._by_chance(unit, size, places) + 3:
            return False
        needed = ENOUGH + 2 * math.log10(compared)
        for value, true in zip(distinct.tolist(), truth.tolist(), strict=True):
            digits = min(_agreement(value, true), _written(value))
            # Where few values are compared, chance cannot be measured: a value must speak for itself.
            needed -= digits - 1 if digits >= (5 if few else 1) else 0
            if needed <= 0:
                return True
        return False

    def _by_chance(self, unit: int, size: FloatArray, places: IntArray) -> int:
        """Return how many values agree with the place of another row."""
        count = len(self.lonlat)
        result = 0
        for shift in {count // 2, count // 3} - {0}:
            others = (places + shift) % count
            near = np.abs(size - self._targets[unit, others]) <= self._tolerance[unit, others]
            # A row that stays at the same place proves nothing about chance.
            moved = self._targets[unit, others] != self._targets[unit, places]
            result = max(result, int((near & moved).sum()))
        return result

    @cached_property
    def _known(self) -> tuple[list[str], FloatArray, FloatArray]:
        lon, lat = np.abs(self.lonlat.T)
        names, targets, nearness = [], [], []
        for axis, values in (("longitude", lon), ("latitude", lat)):
            for unit, factor in UNITS.items():
                names.append(f"the {axis} in {unit}")
                targets.append(values * factor)
                nearness.append(NEAR * factor)
            names.append(f"the {axis} in degrees and minutes")
            targets.append(np.floor(values) * 100 + (values % 1) * 60)
            nearness.append(NEAR * 60)
        for axis, values in zip(("longitude", "latitude"), _mercator(self.lonlat), strict=True):
            names.append(f"the {axis} in metres of Web Mercator")
            targets.append(np.abs(values))
            nearness.append(METRES)
        names.append("the longitude in degrees from 0 to 360")
        targets.append(self.lonlat[:, 0] % 360)
        nearness.append(NEAR)
        for axis, values in zip("xyz", _geocentric(self.lonlat), strict=True):
            names.append(f"the geocentric {axis} in metres")
            targets.append(np.abs(values))
            nearness.append(METRES)
        if self.own is not None:
            for axis, values in zip("xy", np.abs(self.own.T), strict=True):
                names.append(f"the {axis} of the table's CRS")
                targets.append(values)
                nearness.append(NEAR if np.nanmax(np.abs(self.own), initial=0) <= 400 else METRES)
        return names, np.array(targets), np.array(nearness)

    @property
    def _names(self) -> list[str]:
        return self._known[0]

    @property
    def _targets(self) -> FloatArray:
        return self._known[1]

    @cached_property
    def _tolerance(self) -> FloatArray:
        # Three digits must agree: half a kilometre is nothing beside a coordinate of 600 metres.
        return np.minimum(self._known[2][:, None], 1e-3 * self._targets)


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
        for degrees, minutes, seconds in SEXAGESIMAL.findall(text[:4000]):
            found.append(int(degrees) + int(minutes) / 60 + float(seconds.replace(",", ".")) / 3600)
        values += found
        rows += [row] * len(found)
    return np.array(values, np.float64), np.array(rows, np.int64)


def leaves(path: str, column: pa.Array, rows: IntArray) -> Iterator[tuple[str, pa.Array, IntArray]]:
    """Yield the innermost columns of a column, with their paths and the row of each value."""
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
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
    none = np.empty(0), np.empty(0, np.int64)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return np.asarray(values, np.float64), rows
    if not is_text(kind):
        return none
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False)), rows
    except pa.ArrowInvalid:
        column = column.cast(pa.large_string())
        hits = np.flatnonzero(pc.match_substring_regex(column, FOUR_DIGITS).fill_null(False).to_numpy(False))
        if len(hits) > TEXTS:
            hits = hits[np.linspace(0, len(hits) - 1, TEXTS).astype(np.int64)]
        values, places = numbers_in(column.take(pa.array(hits)).to_pylist())
        return values, rows[hits[places]] if len(hits) else places
