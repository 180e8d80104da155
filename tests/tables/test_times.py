"""A moment is the same number however a column writes it."""

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest

from geoind.tables.times import seconds_of

MOMENT = datetime(2024, 5, 1, 8, 0, 0, 123456, tzinfo=UTC)
SECONDS = MOMENT.timestamp()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([MOMENT]),
        pa.array([MOMENT.replace(tzinfo=None)]),
        pa.array([MOMENT]).cast(pa.timestamp("ns", "UTC")),
        pa.array([MOMENT], pa.timestamp("us", "Europe/Paris")),
        pa.array(["2024-05-01T08:00:00.123456Z"]),
        pa.array(["2024-05-01T10:00:00.123456+02:00"]),
        pa.array(["2024-05-01 08:00:00.123456"]),
        pa.array(["2024-05-01T08:00:00.123456Z"]).dictionary_encode(),
        pa.array([repr(SECONDS)]),
        pa.array([SECONDS]),
    ],
    ids=str,
)
def test_one_moment_is_one_number(column: pa.Array) -> None:
    seconds, missing, bad = seconds_of(column)
    assert seconds.tolist() == [SECONDS]
    assert not missing.any()
    assert not bad.any()


def test_mixed_ways_of_writing_agree_with_each_alone() -> None:
    texts = ["2024-05-01T08:00:00Z", "2024-05-01 09:00:00", "1714550400.5", None, "soon"]
    seconds, missing, bad = seconds_of(pa.array(texts))
    alone = [seconds_of(pa.array([text], pa.string()))[0][0] for text in texts]
    assert np.array_equal(seconds, alone, equal_nan=True)
    assert missing.tolist() == [False, False, False, True, False]
    assert bad.tolist() == [False, False, False, False, True]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1714550400000]),
        pa.array([float("nan")]),
        pa.array([float("inf")]),
        pa.array([True]),
        pa.array([b"2024-05-01"]),
        pa.array([{"hour": 8}]),
    ],
    ids=str,
)
def test_milliseconds_and_what_is_no_time_are_bad(column: pa.Array) -> None:
    assert seconds_of(column)[2].tolist() == [True]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()], ids=str)
def test_a_day_begins_at_midnight_utc(kind: pa.DataType) -> None:
    seconds, missing, bad = seconds_of(pa.array([date(2024, 5, 1), None], kind))
    assert seconds[0] == datetime(2024, 5, 1, tzinfo=UTC).timestamp()
    assert (missing.tolist(), bad.tolist()) == ([False, True], [False, False])


def test_the_latest_second_is_a_time_and_the_next_one_is_not() -> None:
    assert seconds_of(pa.array([10**11, -(10**11), 10**11 + 1, -(10**11) - 1]))[2].tolist() == [
        False,
        False,
        True,
        True,
    ]


def test_of_a_time_in_nanoseconds_the_microseconds_count_whether_times_are_missing_or_not() -> None:
    whole = 1_714_550_400_123_456_789
    seconds, missing, _ = seconds_of(pa.array([whole, None], pa.timestamp("ns")))
    assert seconds[0] == whole // 1000 / 1e6
    assert np.isnan(seconds[1])
    assert missing.tolist() == [False, True]
    assert seconds_of(pa.array([whole], pa.timestamp("ns", "UTC")))[0].tolist() == [whole // 1000 / 1e6]
