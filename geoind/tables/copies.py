"""Kept columns that are geometries or repeat the true coordinates of their rows: a check against mistakes.

It looks at a sample of the rows, for the digits of coordinates in numbers and text. It is not the boundary of what
leaves: that is the list of kept columns. A station's name or a distance to a landmark shows the place, too, and
passes here if its column is kept.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import shapely

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.tables.geoparquet import geometry_columns

__all__ = ["refuse_copies", "refuse_geometries", "sampled_rows"]

ROWS = 256
"""Rows that are looked at."""
SHARE = 0.5
"""Share of the rows with a copy that makes a column one of coordinates. Chance gives less than 0.01."""
LEAST_DIGITS = 4
SMALLEST = 1.0
"""Thousandths of a degree, or metres: of smaller coordinates there are too few digits to look for."""
HEX = re.compile("[0-9A-Fa-f]{42,}")


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
    texts = ("" if value is None else str(value) for value in column.to_pylist())
    return [re.sub(r"(?<=\d)[.,](?=\d)", "", text) for text in texts]


def _repeats(texts: Sequence[str], digits: Sequence[tuple[str, ...]]) -> bool:
    asked = [(text, forms) for text, forms in zip(texts, digits, strict=True) if text and forms]
    copies = sum(any(form in text for form in forms) for text, forms in asked)
    return bool(asked) and copies >= SHARE * len(asked) and copies >= min(len(asked), 2)


def _is_wkb(column: pa.Array) -> bool:
    """Return whether values are geometries as bytes, or as the hexadecimal digits of them."""
    values = column.drop_null().to_pylist()
    found = [
        value for value in values if isinstance(value, bytes) or (isinstance(value, str) and HEX.fullmatch(value))
    ]
    if not found:
        return False
    shapes = shapely.from_wkb(np.asarray(found, dtype=object), on_invalid="ignore")
    return sum(shape is not None for shape in shapes) >= SHARE * len(values)
