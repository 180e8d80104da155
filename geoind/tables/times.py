"""A column of times, in whatever way it writes them, to seconds since 1970."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray
from geoind.tables.identities import empty, plain
from geoind.tables.places import Flags, nulls

__all__ = ["NO_TIME", "seconds_of"]

NO_TIME = "the time must be a date and time (ISO 8601), or seconds since 1970"

LATEST = 1e11
"""Seconds; a larger number counts milliseconds, or is no time."""

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
        seconds = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
    elif pa.types.is_large_string(kind):
        seconds = _of_text(column)
    else:
        seconds = np.full(len(column), np.nan)
    bad = ~missing & ~(np.abs(seconds) <= LATEST)
    return seconds, missing, bad


def _of_timestamps(column: pa.Array) -> FloatArray:
    zone = getattr(column.type, "tz", None)
    whole = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    # One division, as datetime.timestamp() does it: the same moment is the same number everywhere.
    values = np.asarray(whole.fill_null(0).to_numpy(zero_copy_only=False), np.float64) / 1e6
    return np.where(nulls(column), np.nan, values)


def _of_text(column: pa.Array) -> FloatArray:
    for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            made = column.cast(kind)
        except pa.ArrowInvalid:
            continue
        if kind == pa.float64():
            return np.asarray(made.to_numpy(zero_copy_only=False), np.float64)
        return _of_timestamps(made)
    return np.array([_of_one(text) for text in column.to_pylist()], np.float64)


def _of_one(text: str | None) -> float:
    if text is None:
        return np.nan
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return np.nan
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - BEGIN) // MICROSECOND / 1e6
