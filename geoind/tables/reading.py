"""The numbers that a column holds: as numbers, inside text, inside structs and lists."""

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from geoind.arrays import FloatArray, IntArray
from geoind.tables.places import is_text

__all__ = ["TEXTS", "is_number", "leaves", "numbers_in", "plain_numbers", "readable"]

LONGEST = 20_000
"""Characters of a text that are read."""
TEXTS = 24
"""Texts with digits among them that are read."""
NUMBER = re.compile(r"\d+(?:\.\d+)?")
MARK = r"\s{0,3}[°ºd:′'’m\s-]\s{0,3}"
SEXAGESIMAL = re.compile(
    rf"(?<![\d.])(\d{{1,3}}){MARK}(?:(\d{{1,2}}\.\d+)|(\d{{1,2}}){MARK}(\d{{1,2}}(?:\.\d+)?))(?!\d)"
)
"""Degrees with minutes, or with minutes and seconds, whatever stands between them."""
RATIONALS = re.compile(r"(\d+)/(\d+)[^\d/]{1,4}(\d+)/(\d+)[^\d/]{1,4}(\d+)/(\d+)")
"""Degrees, minutes and seconds as a photograph tells them: each a whole number over another."""
POINTS = str.maketrans(dict.fromkeys("．，٫·", "."))
"""How other scripts write a decimal point."""
NO_ROWS = np.empty(0, np.int64)
FOUR_DIGITS = re.compile(r"\d\D*\d\D*\d\D*\d").search


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
        plain = _plain(text[:LONGEST])
        found = [float(number) for number in NUMBER.findall(plain)]
        for degrees, decimal, minutes, seconds in SEXAGESIMAL.findall(plain):
            found.append(float(degrees) + float(decimal or minutes) / 60 + float(seconds or 0) / 3600)
        for parts in RATIONALS.findall(plain) if "/" in plain else ():
            above, below = [*map(float, parts[::2])], [*map(float, parts[1::2])]
            if all(below):
                found.append(sum(a / b / unit for a, b, unit in zip(above, below, (1, 60, 3600), strict=True)))
        values += found
        rows += [row] * len(found)
    return np.array(values, np.float64), np.array(rows, np.int64)


def _plain(text: str) -> str:
    """Return a text with decimal points: not those of other scripts, no commas, and not the signs of a link."""
    if not text.isascii():
        text = text.translate(POINTS)
    return (unquote(text) if "%" in text else text).replace(",", ".")


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
            # Not by a cast: Arrow dies of it when it has picked some rows before.
            column = pa.array(column.to_pylist(), pa.large_list(kind.value_field))
        parents = np.asarray(pc.list_parent_indices(column), np.int64)
        yield from leaves(path, pc.list_flatten(column), rows[parents])
    else:
        yield path, column, rows


def _list_of(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([kind.key_field, kind.item_field]))


def _is_list(kind: pa.DataType) -> bool:
    tests = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
    return any(getattr(pa.types, f"is_{test}")(kind) for test in tests)


def plain_numbers(columns: Mapping[str, pa.Array]) -> dict[str, FloatArray]:
    """Return the numbers of the columns that hold nothing else, as numbers or as text; NaN where there is none.

    Examples
    --------
    >>> plain_numbers({"fare": pa.array(["7.5", "", None, "1e3"]), "name": pa.array(["1", "a", "b", "c"])})
    {'fare': array([   7.5,    nan,    nan, 1000. ])}
    """
    found = {name: readable(column, NO_ROWS)[0] for name, column in columns.items() if is_number(column.type)}
    texts = {
        name: column for name, column in columns.items() if is_text(column.type) and _begins_as_number(column)
    }
    # All at once: a call to Arrow for each column would take longer than its numbers.
    together = _as_numbers([*texts.values()]) if texts else None
    for position, (name, column) in enumerate(texts.items()):
        if together is not None:
            found[name] = together[position]
        elif (numbers := _as_numbers([column])) is not None:
            found[name] = numbers[0]
    return found


def _begins_as_number(column: pa.Array) -> bool:
    return _is_number(next(filter(None, column.slice(0, 8).to_pylist()), "0"))


def _as_numbers(columns: Sequence[pa.Array]) -> FloatArray | None:
    """Return the numbers that columns of text hold, a row for each; None where a text is no number."""
    try:
        texts = pa.concat_arrays(columns)
        numbers = pc.if_else(pc.not_equal(texts, ""), texts, None).cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64).reshape(len(columns), -1)


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type is of numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def readable(column: pa.Array, rows: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the numbers that a column without members holds, and the row of each."""
    kind = column.type
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return _of_times(column, rows)
    if is_number(kind):
        numbers = column.cast(pa.float64(), safe=False)
        return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64), rows
    if not is_text(kind):
        return np.empty(0), np.empty(0, np.int64)
    texts = column.to_pylist()
    # Some texts first: most columns have digits in all of their texts, or in none.
    chosen = range(0, len(texts), max(1, len(texts) // (2 * TEXTS)))
    hits = [row for row in chosen if texts[row] and FOUR_DIGITS(texts[row])]
    if len(hits) < TEXTS and len(chosen) < len(texts):
        chosen = range(len(texts))
        hits = [row for row in chosen if texts[row] and FOUR_DIGITS(texts[row])]
    some = [texts[row] for row in chosen]
    if all(map(_is_number, filter(None, some))):
        return np.array([float(text) if text else np.nan for text in some]), rows[chosen]
    hits = hits[:: max(1, len(hits) // TEXTS)]
    values, places = numbers_in([texts[row] for row in hits])
    return values, rows[np.array(hits, np.int64)[places]] if hits else places


def _of_times(column: pa.Array, rows: IntArray) -> tuple[FloatArray, IntArray]:
    """Return times as the numbers that they are, and spans of time in hours: 48:51:30 are degrees, too."""
    kind = column.type
    whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.float64(), safe=False)
    numbers = np.asarray(whole.to_numpy(zero_copy_only=False), np.float64)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return numbers, rows
    hour = 3600 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    return np.concatenate([numbers, numbers / hour]), np.concatenate([rows, rows])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
