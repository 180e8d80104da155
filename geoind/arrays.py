"""Array types, and the checks that turn arguments into valid arrays and numbers."""

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NewType, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from geoind.errors import InvalidInputError

__all__ = [
    "ArrayLike",
    "Coordinates",
    "FloatArray",
    "IntArray",
    "as_count",
    "as_finite",
    "as_floats",
    "as_location",
    "as_lonlat",
    "as_number",
    "as_points",
    "as_positive",
    "as_probabilities",
    "as_unit",
    "frozen",
]

if TYPE_CHECKING:

    class _SupportsArray(Protocol):
        def __array__(self) -> npt.NDArray[np.generic]: ...

    ArrayLike: TypeAlias = npt.ArrayLike
    Coordinates: TypeAlias = Sequence[float] | Sequence[Sequence[float]] | _SupportsArray
    """A sequence of numbers: a list, an array, a column of a frame."""
    FloatArray: TypeAlias = npt.NDArray[np.float64]
    IntArray: TypeAlias = npt.NDArray[np.int64]
else:
    # help() shows these names; numpy's ArrayLike is a union of 350 characters.
    ArrayLike, Coordinates = NewType("ArrayLike", object), NewType("Coordinates", object)
    FloatArray, IntArray = NewType("FloatArray", np.ndarray), NewType("IntArray", np.ndarray)

CACHED = 8192
"""Rows that are checked together."""


def as_floats(values: ArrayLike, name: str) -> FloatArray:
    """Return `values` as float64; strings, objects, complex numbers, booleans and masked values are errors."""
    if _any_masked(values):
        raise InvalidInputError(f"{name} must not have masked values: remove them")
    if _any_boolean(values):
        raise InvalidInputError(f"{name} must be numbers, some are booleans")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidInputError(f"{name} must be a regular array of numbers") from error
    if array.size == 0 and array.dtype.kind in "fiuO":
        return array.astype(np.float64)
    if array.dtype.kind not in "fiu":
        raise InvalidInputError(f"{name} must be numbers, got dtype {array.dtype}")
    return array.astype(np.float64, copy=False)


def _any_masked(values: ArrayLike) -> bool:
    """Return whether a masked array, or one in a list, has masked values: `np.asarray` would unmask them."""
    if isinstance(values, (list, tuple)):
        return np.ma.MaskedArray in set(map(type, values)) and any(map(np.ma.is_masked, values))
    return bool(np.ma.is_masked(values))


def _any_boolean(values: ArrayLike) -> bool:
    """Return whether a list, or a list in it, has booleans: next to numbers `np.asarray` makes them 0 or 1."""
    for _ in range(3):
        if not isinstance(values, (list, tuple)):
            return False
        kinds = set(map(type, values))
        others = kinds - {int, float, list, tuple}
        if others & {bool, np.bool_} or (
            others and any(getattr(one, "dtype", None) == np.bool_ for one in values)
        ):
            return True
        if not kinds <= {list, tuple}:
            return False
        values = list(chain.from_iterable(values))
    return False


def as_points(points: ArrayLike, name: str = "points", *, columns: int | None = 2) -> FloatArray:
    """Return (n, columns) finite float64 coordinates; with columns=None any number of them.

    Messages contain the row, never the coordinate, because logs are kept.
    """
    array = _as_table(points, name, columns)
    if not np.isfinite(array).all():
        row = np.argmin(np.isfinite(array).all(axis=1))
        raise InvalidInputError(f"{name} must be finite, row {row} is not")
    return array


def _as_table(points: ArrayLike, name: str, columns: int | None) -> FloatArray:
    array = as_floats(points, name)
    if columns and array.size == 0 and array.ndim <= 2 and array.shape[-1] in (0, columns):
        return np.empty((0, columns))
    if array.ndim != 2 or array.shape[1] != (columns or max(array.shape[1], 1)):
        raise InvalidInputError(f"{name} must have shape (n, {columns or 'columns'}), got {array.shape}")
    return array


def as_lonlat(lonlat: ArrayLike, name: str = "lonlat") -> FloatArray:
    """Return (n, 2) degrees, longitude first, with |lon| <= 180 and |lat| <= 90."""
    array = _as_table(lonlat, name, 2)
    if _is_lonlat(array):
        return array
    as_points(array, name)
    row = int(np.argmax((np.abs(array) > (180.0, 90.0)).any(axis=1)))
    rule, question = _broken_rule(*array[row].tolist())
    raise InvalidInputError(f"{name}: {rule}, row {row} is not{question}")


def as_location(*, lon: float, lat: float, name: str = "") -> tuple[float, float]:
    """Return longitude and latitude of one location in degrees, with |lon| <= 180 and |lat| <= 90.

    Messages start with the name, if there is one, and never contain a coordinate.

    Examples
    --------
    >>> as_location(lon=2, lat=48.75)
    (2.0, 48.75)
    """
    prefix = f"{name}: " if name else ""
    lon, lat = as_number(lon, f"{prefix}lon"), as_number(lat, f"{prefix}lat")
    if -180 <= lon <= 180 and -90 <= lat <= 90:
        return lon, lat
    for what, value in (("longitude", lon), ("latitude", lat)):
        if not math.isfinite(value):
            raise InvalidInputError(f"{prefix}{what} must be a finite number")
    raise InvalidInputError(prefix + "".join(_broken_rule(lon, lat)))


def _broken_rule(lon: float, lat: float) -> tuple[str, str]:
    """Return the rule that invalid degrees break, and a question if they seem to be swapped."""
    if abs(lon) > 180:
        return "longitude must be between -180 and 180", ""
    question = ": are lat and lon swapped?" if abs(lat) <= 180 and abs(lon) <= 90 else ""
    return "latitude must be between -90 and 90", question


def _is_lonlat(array: FloatArray) -> bool:
    """Return whether all are valid degrees; NaN fails each comparison."""
    if len(array) == 1:  # a third of the time
        lon, lat = array.item(0), array.item(1)
        return -180 <= lon <= 180 and -90 <= lat <= 90
    for start in range(0, len(array), CACHED):
        for column, limit in ((0, 180.0), (1, 90.0)):
            # A contiguous copy in the cache is searched faster than every second number of the array.
            values = array[start : start + CACHED, column].copy()
            if not -limit <= values.min() <= values.max() <= limit:
                return False
    return True


def as_positive(value: float, name: str) -> float:
    """Return `value` as a float that is positive and finite."""
    number = as_number(value, name)
    if not 0 < number < np.inf:
        raise InvalidInputError(f"{name} must be positive and finite, got {value!r}")
    return number


def as_unit(value: float, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    number = as_number(value, name)
    if not 0 < number < 1:
        raise InvalidInputError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return number


def as_number(value: float, name: str) -> float:
    """Return a real scalar as a float; strings, booleans and arrays are errors."""
    # Messages do not contain the value: a coordinate given as text would be written to a log.
    if isinstance(value, (str, bytes, bool, np.bool_)):
        raise InvalidInputError(f"{name} must be a number, got {type(value).__name__}")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be a number, got {type(value).__name__}") from error
    except OverflowError:
        raise InvalidInputError(f"{name} must be a number within the range of a float") from None


def as_finite(value: float, name: str) -> float:
    """Return `value` as a finite float."""
    number = as_number(value, name)
    if not -np.inf < number < np.inf:
        raise InvalidInputError(f"{name} must be finite, got {value!r}")
    return number


def as_count(value: int, name: str) -> int:
    """Return `value` as a whole number of at least one."""
    number = as_number(value, name)
    if not (1 <= number < np.inf and number == int(number)):
        raise InvalidInputError(f"{name} must be a positive whole number, got {value!r}")
    return int(number)


def as_probabilities(values: ArrayLike, name: str = "p") -> FloatArray:
    """Return values in [0, 1]."""
    array = as_floats(values, name)
    if not ((array >= 0) & (array <= 1)).all():
        raise InvalidInputError(f"{name} must lie between 0 and 1")
    return array


def frozen(array: FloatArray) -> FloatArray:
    """Return a read-only, C-ordered copy."""
    copy = np.array(array, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy
