"""Kept columns that are geometries or repeat the true coordinates of their rows: a check against mistakes.

It looks at a sample of the rows, for the digits of coordinates in numbers and text. It is not the boundary of what
leaves: that is the list of kept columns. A station's name or a distance to a landmark shows the place, too, and
passes here if its column is kept.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.tables.geoparquet import geometry_columns

__all__ = ["refuse_copies", "refuse_geometries", "sampled_rows"]

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
    return np.unique(np.linspace(0, count - 1, min(ROWS, count)).astype(np.int64))


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
