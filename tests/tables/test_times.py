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


def test_all_kinds_of_numbers_are_seconds() -> None:
    for kind in (pa.int32(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(12, 2)):
        column = pa.array([60, None, -1 if kind != pa.uint64() else 1], pa.int32()).cast(kind)
        seconds, missing, bad = seconds_of(column)
        assert seconds[[0, 2]].tolist() == [60.0, -1.0 if kind != pa.uint64() else 1.0]
        assert missing.tolist() == [False, True, False]
        assert not bad.any()


def test_texts_of_one_way_and_of_several_are_the_same_moments() -> None:
    ways = ["2024-05-01T08:00:00.123456Z", " 2024-05-01 10:00:00.123456+02:00 ", "2024-05-01T08:00:00.123456"]
    for texts in ([ways[0]] * 2, [ways[2]] * 2, ways, [repr(SECONDS), *ways], [*ways, None, ""]):
        seconds, missing, bad = seconds_of(pa.array(texts))
        given = [bool(text) for text in texts]
        assert seconds[given].tolist() == [SECONDS] * sum(given)
        assert missing.tolist() == [not text for text in texts]
        assert not bad.any()


def test_a_moment_before_1970_is_negative_in_every_way_of_writing() -> None:
    moment = datetime(1969, 12, 31, 23, 59, 58, 500_000)
    for column in (pa.array([moment]), pa.array([str(moment)]), pa.array([f"{moment}", "-1.5"])):
        assert seconds_of(column)[0][0] == -1.5
