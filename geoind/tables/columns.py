"""Arrow columns: their rows, names of persons and records, times, and copies without the values of other rows."""

import json
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoind.arrays import FloatArray, IntArray
from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError
from geoind.keys import Labels

Flags = npt.NDArray[np.bool_]


def listed(names: Iterable[str]) -> str:
    """Return names for a message, without those that may be values: where a header is missing, true places.

    Examples
    --------
    >>> listed(["trip", "lat", "h3_9"]), listed(["7", "48.8584", "2.2945"])
    ('trip, lat, h3_9', '7, ..., ...')
    """
    return ", ".join("..." if sum(map(str.isdigit, str(name))) > 2 else str(name) for name in names)


def named_path(path: str) -> str:
    """Return a path for a message, without what may be a coordinate.

    Examples
    --------
    >>> named_path("2024-05/trips.csv"), named_path("48.8584_2.2945/trips.csv")
    ('2024-05/trips.csv', '..._.../trips.csv')
    """
    return re.sub(r"\d+[.,]\d{3,}", "...", path)


def only_column(schema: pa.Schema, name: str) -> str:
    """Return the name of a column that exists once."""
    if name not in schema.names:
        raise InvalidInputError(f"there is no column {name!r}: the columns are {listed(schema.names)}")
    if schema.names.count(name) > 1:
        raise InvalidInputError(f"several columns are called {name!r}: rename them")
    return name


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the column of that name, which must exist once."""
    return batch.column(batch.schema.get_field_index(only_column(batch.schema, name)))


def rows_of(batch: pa.RecordBatch, rows: IntArray) -> pa.RecordBatch:
    """Return some rows of a batch."""
    indices = indices_of(rows)
    return pa.RecordBatch.from_arrays([picked(column, indices) for column in batch.columns], schema=batch.schema)


def indices_of(rows: IntArray) -> pa.Array:
    """Return numbers of rows for Arrow; pa.array would import pandas, which takes long."""
    return pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows, np.int64))])


def picked(column: pa.Array, indices: pa.Array) -> pa.Array:
    """Return some values of a column; Arrow cannot pick views yet, nor what contains them."""
    try:
        return column.take(indices)
    except pa.ArrowNotImplementedError:
        return without_views(column).take(indices).cast(column.type)


def without_views(column: pa.Array) -> pa.Array:
    """Return a column without views of text or bytes, also as members: Arrow can pick its rows."""
    return column.cast(plain_type(column.type, views=False))


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Return whether a type is bytes."""
    return any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view))


def finite(coordinates: FloatArray) -> Flags:
    """Return which of the (n, 2) coordinates are numbers, both of them."""
    # Not all(axis=1), which numpy does row by row.
    return np.asarray(np.isfinite(coordinates[:, 0]) & np.isfinite(coordinates[:, 1]))


def floats_of(column: pa.Array) -> FloatArray:
    """Return numbers, NaN where they are null. Where none is, without pandas, which Arrow would import."""
    numbers = column.cast(pa.float64(), safe=False)
    made = numbers.to_numpy(zero_copy_only=False) if numbers.null_count else np.from_dlpack(numbers)
    return np.asarray(made, np.float64)


def nulls(column: pa.Array) -> Flags:
    """Return which rows are null."""
    if not column.null_count:
        return np.zeros(len(column), bool)
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)


def compacted(column: pa.Array) -> pa.Array:
    """Return an equal column in a plain type, without entries, bytes under nulls or bytes of other rows.

    Arrow arrays share memory: a filtered column of text may hold the text of rows that were filtered out, a
    dictionary entries that no row has, a null the value that it replaced. A file would have all of it.

    Examples
    --------
    >>> column = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array(["private", "public"]))
    >>> compacted(column).dictionary.to_pylist()
    ['public']
    """
    kind = plain_type(column.type)
    if kind != column.type:
        return compacted(column.cast(kind))
    if pa.types.is_dictionary(kind):
        return _used(column)
    if _is_view(kind):
        return without_views(column).cast(kind)
    if pa.types.is_struct(kind) and kind.num_fields:
        # flatten() hides the members of a struct that is null.
        members = [compacted(member) for member in column.flatten()]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=column.is_null())
    if kind.num_fields:
        return _compacted_lists(column)
    shares = column.null_count or column.nbytes < column.get_total_buffer_size()
    return column.take(indices_of(np.arange(len(column)))) if shares else column


def _compacted_lists(column: pa.Array) -> pa.Array:
    """Return an equal column of lists or maps. Not by Python's values: these have no nanoseconds."""
    kind, lists, gone = column.type, column, column.is_null()
    if pa.types.is_fixed_size_list(kind):
        return _compacted_lists(column.cast(pa.list_(kind.value_field))).cast(kind)
    if pa.types.is_map(kind):
        lists = column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
    # flatten() leaves out the items of a list that is null.
    values, lengths = compacted(lists.flatten()), lists.value_lengths().fill_null(0)
    offsets = pa.concat_arrays([pa.array([0], lengths.type), pc.cumulative_sum(lengths)])
    parts = [offsets, values.field(0), values.field(1)] if pa.types.is_map(kind) else [offsets, values]
    return type(column).from_arrays(*parts, type=kind, mask=gone)


def check_type(name: str, kind: pa.DataType) -> None:
    """Raise if columns of a type cannot be separated from other values in memory: unions, runs, views of lists."""
    try:
        picked(compacted(pa.nulls(0, kind)), indices_of(np.arange(0)))
    except pa.ArrowNotImplementedError:
        raise InvalidInputError(f"column {name!r} has type {kind}, which cannot be kept: cast it") from None


def plain_type(kind: pa.DataType, *, views: bool = True) -> pa.DataType:
    """Return a type without the metadata of its members, and perhaps without views of text or bytes.

    An extension type has parameters, in which anything may be: its storage stands for it.

    Examples
    --------
    >>> noted = pa.list_(pa.field("item", pa.int64(), metadata={"author": "ana"}))
    >>> plain_type(noted).value_field.metadata is None
    True
    """
    if not views and _is_view(kind):
        return pa.large_string() if is_text(kind) else pa.large_binary()
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type, views=views)
    if not kind.num_fields:
        return kind
    fields = [kind.field(number) for number in range(kind.num_fields)]
    fields = [pa.field(field.name, plain_type(field.type, views=views), field.nullable) for field in fields]
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_map(kind):
        key, item = fields[0].type
        return pa.map_(key.type, item, keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(fields[0]) if pa.types.is_list(kind) else pa.large_list(fields[0])
    # Unions, runs and views of lists: no file and no engine has them by default.
    raise pa.ArrowNotImplementedError(f"{kind} is not taken apart")


def _used(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a dictionary of the entries that rows have, in their order."""
    used = np.zeros(len(column.dictionary), bool)
    used[column.indices.drop_null().to_numpy()] = True
    entries = compacted(without_views(column.dictionary).filter(pa.array(used))).cast(column.type.value_type)
    indices = pa.array(np.cumsum(used) - 1).take(column.indices).cast(column.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, entries, ordered=column.type.ordered)


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


JSON_TEXT = b"geoind:json"
"""In the metadata of a field: its texts are JSON values."""
WHOLE = re.compile("-?[0-9]+")


def plain(column: pa.Array) -> pa.Array:
    """Return a column without dictionary and extension type, and text in one type."""
    if pa.types.is_dictionary(column.type):
        column = pa.DictionaryArray.from_arrays(
            column.indices, without_views(column.dictionary)
        ).dictionary_decode()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column.cast(pa.large_string()) if is_text(column.type) else column


def empty(column: pa.Array) -> Flags:
    """Return which rows of a column in plain types are null, or empty text."""
    if not pa.types.is_large_string(column.type):
        return nulls(column)
    # A null has the length NaN.
    return ~np.asarray(floats_of(pc.binary_length(column)) > 0)


def values_of(batch: pa.RecordBatch, name: str, *, names: bool = False) -> pa.Array:
    """Return a column in plain types; texts that are JSON strings without their quotes.

    Of names of persons and records, JSON numbers must be whole: 7 and 7.0 would be two names.
    """
    column = plain(column_of(batch, name))
    if JSON_TEXT not in (batch.schema.field(name).metadata or {}):
        return column
    texts = column.to_pylist()
    if names and not all(text is None or text == "" or text[0] == '"' or WHOLE.fullmatch(text) for text in texts):
        raise InvalidInputError(f"column {name!r} must hold text or whole numbers")
    return pa.array([json.loads(text) if text and text[0] == '"' else text for text in texts], pa.large_string())


def labels_of(column: pa.Array, name: str) -> Labels:
    """Return one label per record: an array of whole numbers, or a list of text or bytes."""
    kind = column.type
    if pa.types.is_integer(kind):
        return np.asarray(column.to_numpy())
    if not (is_text(kind) or is_binary(kind) or pa.types.is_fixed_size_binary(kind) or _is_untyped(column)):
        raise InvalidInputError(f"column {name!r} must be whole numbers, text or bytes, got {kind}")
    values: list[str] | list[bytes] = column.to_pylist()
    return values


def persons_in(column: pa.Array, name: str) -> tuple[list[str], IntArray, dict[int, str]]:
    """Return the persons, the number of each row's person, -1 where it names none, and why it does not.

    Persons are text, in Unicode's NFC so that one name written in two ways is one person, or whole numbers.

    Parameters
    ----------
    column : pyarrow.Array
        One person per row, in plain types.
    name : str
        The column's name, for messages.

    Examples
    --------
    >>> persons_in(pa.array(["ana", "ben", None, "ana"]), "who")
    (['ana', 'ben'], array([ 0,  1, -1,  0]), {2: "person is missing in column 'who'"})
    """
    kind = column.type
    if not (is_text(kind) or pa.types.is_integer(kind) or _is_untyped(column)):
        # 7.0 after a null would be another person than 7.
        raise InvalidInputError(f"column {name!r} must name persons in text or whole numbers, got {kind}")
    coded = column.dictionary_encode()
    names: dict[str, int] = {}
    numbers, reasons = [], {-1: f"person is missing in column {name!r}"}
    for code, value in enumerate(coded.dictionary.to_pylist()):
        try:
            numbers.append(names.setdefault(as_person(value), len(names)))
        except InvalidInputError as error:
            reasons[code] = str(error)
            numbers.append(-1)
    raw = np.asarray(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
    codes = np.append(np.array(numbers, np.int64), -1)[raw]
    return list(names), codes, {row: reasons[int(raw[row])] for row in np.flatnonzero(codes < 0).tolist()}


def _is_untyped(column: pa.Array) -> bool:
    """Return whether it is an empty column of Python objects, which has no type yet."""
    return pa.types.is_null(column.type) and not len(column)


NO_TIME = "the time must be a date and time (ISO 8601), or seconds since 1970"

LATEST = 1e11
"""Seconds; a larger number counts milliseconds, or is no time."""

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
ZONED = re.compile(r".*\d[T ]\d.*([zZ]|[-+]\d\d(:?\d\d){0,2})")
"""A text of a time that names its zone; a date alone, such as 2024-05-01, does not."""

MICROSECOND = timedelta(microseconds=1)
BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


def seconds_of(column: pa.Array) -> tuple[FloatArray, Flags, Flags]:
    """Return the times of a column in seconds, which rows have none, and which have something else.

    Times without a zone are taken as UTC: what matters is their order and how far they are apart.

    Examples
    --------
    >>> seconds, missing, bad = seconds_of(pa.array(["1970-01-01T00:01:00Z", "60", None, "noon"]))
    >>> seconds[:2].tolist(), missing.tolist(), bad.tolist()
    ([60.0, 60.0], [False, False, True, False], [False, False, False, True])
    """
    column = plain(column)
    missing = empty(column)
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        seconds = _of_timestamps(column)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        seconds = floats_of(column)
    elif pa.types.is_large_string(kind):
        seconds = _of_text(column)
    else:
        seconds = np.full(len(column), np.nan)
    bad = ~missing & ~(np.abs(seconds) <= LATEST)
    return seconds, missing, bad


def floored(column: pa.Array, step: float) -> pa.Array:
    """Return a column of times, each rounded down to a multiple of so many seconds since 1970, UTC.

    A text with a zone becomes one in UTC.

    Examples
    --------
    >>> floored(pa.array(["2024-05-01T08:14:59+02:00", "2024-05-01 08:14", "901.5", None]), 900).to_pylist()
    ['2024-05-01T06:00:00Z', '2024-05-01T08:00:00', '900', None]
    """
    kind, values = column.type, plain(column)
    if pa.types.is_large_string(values.type):
        encoded = values.dictionary_encode()
        seconds, _, _ = seconds_of(encoded.dictionary)
        texts = [_floored_text(*pair, step) for pair in zip(encoded.dictionary.to_pylist(), seconds, strict=True)]
        made = pa.DictionaryArray.from_arrays(encoded.indices, pa.array(texts, pa.large_string()))
        return made.dictionary_decode().cast(pa.string()).cast(kind)
    seconds, missing, _ = seconds_of(values)
    whole = np.floor(np.where(missing, 0.0, seconds) / step) * step
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        zone = getattr(values.type, "tz", None)
        moments = pa.array((whole * 1e6).astype(np.int64), pa.timestamp("us", zone), mask=missing)
        return moments.cast(values.type).cast(kind)
    return pa.array(whole, pa.float64(), mask=missing).cast(values.type).cast(kind)


def _floored_text(text: str, seconds: float, step: float) -> str | None:
    if np.isnan(seconds):
        return None
    whole = math.floor(seconds / step) * step
    if NUMBER.fullmatch(text.strip()):
        return f"{whole:.0f}"
    moment = (BEGIN + timedelta(seconds=whole)).replace(tzinfo=None).isoformat()
    return f"{moment}Z" if ZONED.fullmatch(text.strip()) else moment


def _of_timestamps(column: pa.Array) -> FloatArray:
    zone = getattr(column.type, "tz", None)
    whole = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    # One division, as datetime.timestamp() does it: the same moment is the same number everywhere.
    return floats_of(whole) / 1e6


def _of_text(column: pa.Array) -> FloatArray:
    for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        with suppress(pa.ArrowInvalid):
            made = column.cast(kind)
            return floats_of(made) if kind == pa.float64() else _of_timestamps(made)
    return np.array([_of_one(text) for text in column.to_pylist()], np.float64)


def _of_one(text: str | None) -> float:
    with suppress(ValueError):
        return float(text or "")
    with suppress(ValueError):
        moment = datetime.fromisoformat((text or "").strip())
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (aware - BEGIN) // MICROSECOND / 1e6
    return np.nan


ROWS = 256
"""Rows that stand for a batch where its values are looked at."""


def sampled_rows(count: int) -> IntArray:
    """Return numbers of rows from all over a batch of so many."""
    return np.linspace(0, count - 1, min(ROWS, count)).astype(np.int64)


MOST_CLOCKS = 4
SINCE_1970 = ((6.3e8, 2.2e9), (6.3e11, 2.2e12))
"""Seconds and milliseconds of the years 1990 to 2039. A wider range has more numbers that are no times: positions
along a Hilbert curve have 32 bits."""
CLOCK_NAMES = re.compile(r"time|date|stamp|epoch|utc|seconds|(^|[_\W])(at|ts|t)$", re.IGNORECASE)
"""Names of columns of numbers that may be seconds since 1970: identifiers look like them."""


def clock_columns(batch: pa.RecordBatch) -> list[str]:
    """Return the columns whose values are times: dates, ISO 8601 texts, or seconds or milliseconds since 1970.

    Examples
    --------
    >>> rows = {"begun": ["2024-05-01 08:00"], "fare": ["7.50"], "time": [1.7e9], "parcel": [1_700_000_000]}
    >>> clock_columns(pa.RecordBatch.from_pydict(rows))
    ['begun', 'time']
    """
    # From all over the batch: rows that are sorted by a number begin in a narrow range of it.
    rows = indices_of(sampled_rows(len(batch)))
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return [name for name, column in columns if _is_clock(name, column, rows)][:MOST_CLOCKS]


def _is_clock(name: str, column: pa.Array, rows: pa.Array) -> bool:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return True
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return False
    values = plain(picked(column, rows)).drop_null()
    numbers = not is_text(kind) or any(text.strip("0123456789.eE+ ") == "" for text in values.to_pylist())
    if numbers and CLOCK_NAMES.search(name) is None:
        return False
    moments, _, _ = seconds_of(values)
    return bool(len(moments)) and any(bool(np.all((moments > low) & (moments < high))) for low, high in SINCE_1970)
