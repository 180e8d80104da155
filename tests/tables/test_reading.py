"""The numbers of a column are read whatever its type is, each with its row."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoind.tables.reading import LONGEST, TEXTS, leaves, numbers_in, plain_numbers, readable

ROWS = np.arange(10, 13)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pa.array([1, None, 3]), [1.0, np.nan, 3.0]),
        (pa.array([2**62 + 1, 2, 3]), [2.0**62, 2.0, 3.0]),
        (pa.array([2**63 + 5, None, 3], pa.uint64()), [2.0**63, np.nan, 3.0]),
        (pa.array([1.5, 2.5, None], pa.float32()), [1.5, 2.5, np.nan]),
        (pa.array([Decimal("1.25"), None, Decimal("-3.00")]), [1.25, np.nan, -3.0]),
        (pa.array([Decimal("1.25"), Decimal("2.25"), Decimal("-3.00")]), [1.25, 2.25, -3.0]),
        (pa.array(["1.5", "", None]), [1.5, np.nan, np.nan]),
        (pa.array([5, None, 7], pa.timestamp("s")), [5.0, np.nan, 7.0]),
        (pa.array([2**60 + 1, None, 7], pa.timestamp("ns")), [2.0**60, np.nan, 7.0]),
        (pa.array([5, None, 7], pa.int32()).cast(pa.date32()), [5.0, np.nan, 7.0]),
    ],
    ids=str,
)
def test_numbers_are_one_per_row(column: pa.Array, values: list[float]) -> None:
    found, rows = readable(column, ROWS)
    np.testing.assert_array_equal(found, values)
    assert found.dtype == np.float64
    assert rows.tolist() == [10, 11, 12]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_spans_and_times_of_day_are_also_hours(unit: str) -> None:
    size = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    spans = pa.array([timedelta(hours=48, minutes=51, seconds=36), None], pa.duration(unit))
    found, rows = readable(spans, ROWS[:2])
    np.testing.assert_allclose(found, [48.86 * 3600 * size, np.nan, 48.86, np.nan], rtol=1e-12)
    assert rows.tolist() == [10, 11, 10, 11]
    kind = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    found, _ = readable(
        pa.array([9 * 3600 * size], pa.int32() if kind.bit_width == 32 else None).cast(kind), ROWS[:1]
    )
    assert found.tolist() == [9 * 3600 * size, 9.0]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True] * 3),
        pa.array([b"48.85"] * 3),
        pa.array([None] * 3),
        pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval()),
    ],
    ids=str,
)
def test_what_holds_no_numbers_has_none(column: pa.Array) -> None:
    found, rows = readable(column, ROWS)
    assert (found.tolist(), rows.tolist()) == ([], [])


@pytest.mark.parametrize("count", [3, TEXTS, 3 * TEXTS, 10 * TEXTS])
@pytest.mark.parametrize("share", [1, 2, 40])
def test_numbers_inside_texts_are_those_of_their_rows_and_enough_texts_are_read(count: int, share: int) -> None:
    texts = [f"at {row}.123456" if row % share == 0 else "nowhere" for row in range(count)]
    texts[-1] = None  # type: ignore[call-overload]
    found, rows = readable(pa.array(texts), 100 + np.arange(count))
    assert ((rows - 100 + 0.123456) == found).all()
    held = sum(text is not None and text.startswith("at") for text in texts)
    assert len(found) >= min(held, TEXTS)
    assert len(set(rows.tolist())) == len(rows) <= 4 * TEXTS
    # Not only the first ones.
    assert not held or max(rows) - 100 >= 0.6 * share * (held - 1)


def test_texts_without_numbers_have_none() -> None:
    found, rows = readable(pa.array(["a", "b 12", None]), ROWS)
    assert (found.tolist(), rows.tolist()) == ([], [])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("48.5 and 2,25", [48.5, 2.25]),
        ("48°30'36\"", [48.0, 30.0, 36.0, 48.51]),
        ("N 48° 30.6'", [48.0, 30.6, 48.51]),
        ("48:30:36.0", [48.0, 30.0, 36.0, 48.51]),
        ("q=48%2E5%2C2", [48.5, 2.0]),
        ("٤٨٫٥", [48.5]),
        ("100%", [100.0]),
        ("", []),
        ("x" * LONGEST + "48.5", []),
        ("x" * (LONGEST - 4) + "48.5", [48.5]),
    ],
    ids=lambda case: str(case)[:12],
)
def test_numbers_are_found_in_texts_of_all_kinds(text: str, values: list[float]) -> None:
    found, rows = numbers_in([None, text])
    np.testing.assert_allclose(found, values, rtol=1e-12)
    assert rows.tolist() == [1] * len(values)


NESTED: list[tuple[pa.Array, list[tuple[str, list[Any], list[int]]]]] = [
    (pa.array([1, None, 3]), [("c", [1, None, 3], [10, 11, 12])]),
    (pa.array(["a", "b", "a"]).dictionary_encode(), [("c", ["a", "b", "a"], [10, 11, 12])]),
    (
        pa.array([{"a": 1, "b": {"d": 2}}, None, {"a": 3, "b": {"d": 4}}]),
        [("c.a", [1, None, 3], [10, 11, 12]), ("c.b.d", [2, None, 4], [10, 11, 12])],
    ),
    *(
        (pa.array([[1, 2], None, [3]], kind), [("c", [1, 2, 3], [10, 10, 12])])
        for kind in (
            pa.list_(pa.int64()),
            pa.large_list(pa.int64()),
            pa.list_view(pa.int64()),
            pa.large_list_view(pa.int64()),
        )
    ),
    (
        pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int64(), 2)),
        [("c", [1, 2, 3, 4, 5, 6], [10, 10, 11, 11, 12, 12])],
    ),
    (
        pa.array([[("k", 1), ("l", 2)], [], [("m", 3)]], pa.map_(pa.string(), pa.int64())),
        [("c.key", ["k", "l", "m"], [10, 10, 12]), ("c.value", [1, 2, 3], [10, 10, 12])],
    ),
    (pa.array([b"0123456789abcdef"] * 3, pa.uuid()), [("c", [b"0123456789abcdef"] * 3, [10, 11, 12])]),
]


@pytest.mark.parametrize(("column", "parts"), NESTED, ids=[str(column.type) for column, _ in NESTED])
def test_the_innermost_values_keep_the_rows_that_they_are_in(column: pa.Array, parts: Any) -> None:
    found = [(path, leaf.to_pylist(), rows.tolist()) for path, leaf, rows in leaves("c", column, ROWS)]
    assert found == parts


def test_plain_numbers_are_read_together_and_one_bad_text_leaves_the_others() -> None:
    columns = {
        "whole": pa.array([1, 2, None]),
        "text": pa.array(["1.5", "", None]),
        "more": pa.array(["2", "3e2", "-4"]),
        "late": pa.array(["1", "2", "x"]),
        "name": pa.array(["x", "1", "2"]),
        "none": pa.array([None, None, ""]),
        "lists": pa.array([[1], [2], [3]]),
        "flags": pa.array([True, False, True]),
        "days": pa.array([1, 2, 3], pa.int32()).cast(pa.date32()),
    }
    for chosen in (columns, {name: column for name, column in columns.items() if name != "late"}):
        found = plain_numbers(chosen)
        assert found.keys() == {"whole", "text", "more", "none"}
        np.testing.assert_array_equal(found["whole"], [1.0, 2.0, np.nan])
        np.testing.assert_array_equal(found["text"], [1.5, np.nan, np.nan])
        np.testing.assert_array_equal(found["more"], [2.0, 300.0, -4.0])
        assert np.isnan(found["none"]).all()


@pytest.mark.parametrize("text", ["48/1 51/1 30240/1000", "[48/1, 51/1, 30240/1000]", "96/2;510/10;30240/1000 N"])
def test_degrees_minutes_and_seconds_may_be_fractions(text: str) -> None:
    assert numbers_in([text])[0][-1] == pytest.approx(48.8584, abs=1e-9)
    # A photograph that knows no place says so.
    assert 0 < len(numbers_in(["48/1 51/1 0/0"])[0]) == 6


def test_numbers_far_apart_are_no_degrees_and_minutes() -> None:
    values, _ = numbers_in(["17" + " " * (LONGEST - 10) + "40.5"])
    assert values.tolist() == [17.0, 40.5]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
def test_rows_that_were_picked_before_keep_their_values(kind: Any) -> None:
    column = pa.array([[1, 2], None, [3], [4, 5]], kind(pa.int64())).take(pa.array([3, 1, 0]))
    [(_, values, rows)] = leaves("c", column, ROWS)
    assert (values.to_pylist(), rows.tolist()) == ([4, 5, 1, 2], [10, 10, 12, 12])


@pytest.mark.parametrize("count", [1, 2, TEXTS, TEXTS + 1, 2 * TEXTS - 1])
def test_of_few_texts_every_one_is_read(count: int) -> None:
    rows = 100 + np.arange(count)
    found, places = readable(pa.array([f"at {row}.123456" for row in range(count)]), rows)
    assert places.tolist() == rows.tolist()
    np.testing.assert_allclose(found, np.arange(count) + 0.123456)
    found, places = readable(pa.array([f"{row}.5" for row in range(count)]), rows)
    assert places.tolist() == rows.tolist()
    assert found.tolist() == (np.arange(count) + 0.5).tolist()


def test_of_many_texts_with_digits_some_from_everywhere_are_read() -> None:
    count = 100 * TEXTS
    for form in ("at {}.123456", "{}.5"):
        _, places = readable(pa.array([form.format(row) for row in range(count)]), np.arange(count))
        assert TEXTS <= len(places) <= 3 * TEXTS
        assert places[0] == 0
        assert np.diff(places).max() <= count / TEXTS
        assert places[-1] >= count - count / TEXTS
    # A few among many are found wherever they are, and a text without four digits holds no coordinate.
    texts = ["room 12"] * count
    texts[count - 1] = "at 48.8584"
    texts[7] = "at 2.2945"
    found, places = readable(pa.array(texts), np.arange(count))
    assert (found.tolist(), places.tolist()) == ([2.2945, 48.8584], [7, count - 1])


def test_texts_of_numbers_without_four_digits_are_numbers_still() -> None:
    found, places = readable(pa.array(["48", None, "2.5", ""]), 10 + np.arange(4))
    np.testing.assert_array_equal(found, [48.0, np.nan, 2.5, np.nan])
    assert places.tolist() == [10, 11, 12, 13]
    for texts, values in ((["12.3 x"], []), (["1234 x"], [1234.0]), (["1-2-3 4"], [1.0, 2.0, 3.0, 4.0])):
        assert set(readable(pa.array(texts), ROWS[:1])[0].tolist()) >= set(values)
        assert bool(values) == bool(len(readable(pa.array(texts), ROWS[:1])[0]))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("-48.5", [48.5]),
        ("1.2.3", [1.2, 3.0]),
        ("48 30 36", [48.0, 30.0, 36.0, 48.51]),
        ("48d30m36.0s", [48.0, 30.0, 36.0, 48.51]),
        ("1234 30 36", [1234.0, 30.0, 36.0]),
        ("4.8 30 36", [4.8, 30.0, 36.0]),
        ("48°30'36\" and 2°15.0'", [48.0, 30.0, 36.0, 2.0, 15.0, 48.51, 2.25]),
        ("48．5 and 48·5", [48.5, 48.5]),
    ],
)
def test_numbers_and_degrees_with_minutes_are_told_apart(text: str, values: list[float]) -> None:
    np.testing.assert_allclose(numbers_in([text])[0], values, rtol=1e-12)


@pytest.mark.parametrize(
    "first",
    [pa.array(["", None, *["1.5"] * 10]), pa.array([*[""] * 9, "x", "1", "2"]), pa.array([*["1"] * 11, "x"])],
)
def test_columns_of_text_are_numbers_wherever_their_first_number_is(first: pa.Array) -> None:
    found = plain_numbers({"a": first, "b": pa.array([str(row) for row in range(12)])})
    assert ("a" in found) == ("x" not in first.to_pylist())
    assert found["b"].tolist() == list(range(12))
