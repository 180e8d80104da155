"""What a kept column shares memory with: entries, bytes under nulls, rows that were filtered out."""

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoind.errors import InvalidInputError
from geoind.tables.columns import (
    JSON_TEXT,
    check_type,
    compacted,
    indices_of,
    labels_of,
    persons_in,
    picked,
    plain_type,
    seconds_of,
    values_of,
)

SECRET = "SECRET-SECRET-SECRET"
CODES = pa.dictionary(pa.int8(), pa.string())


def written(column: pa.Array) -> bytes:
    """Return the bytes of a stream with the column."""
    sink = pa.BufferOutputStream()
    table = pa.table({"column": column})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def coded() -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0, None, 0], pa.int8()), pa.array(["public", SECRET]))


def under_nulls(kind: pa.DataType) -> pa.Array:
    column = pa.array([SECRET] * 3, kind)
    return pa.Array.from_buffers(kind, 3, [pa.py_buffer(bytes(8)), *column.buffers()[1:]])


HIDDEN: dict[str, pa.Array] = {
    "an entry": coded(),
    "an entry in a list": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), coded()),
    "an entry in a struct": pa.StructArray.from_arrays([coded()], ["code"]),
    "an entry in a list of lists": pa.ListArray.from_arrays(
        pa.array([0, 3], pa.int32()), pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), coded())
    ),
    "an entry of views": pa.DictionaryArray.from_arrays(
        pa.array([0, 0], pa.int8()), pa.array(["public", SECRET], pa.string_view())
    ),
    "text under a null": under_nulls(pa.string()),
    "bytes under a null": under_nulls(pa.large_binary()),
    "a struct under a null": pa.StructArray.from_arrays([[SECRET] * 3], ["text"], mask=pa.array([True] * 3)),
    "a list under a null": pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), pa.array([SECRET] * 3), mask=pa.array([True] * 3)
    ),
    "text of another row": pa.array(["a public text, not short", SECRET], pa.string_view()).slice(0, 1),
    "bytes of another row": pa.array([b"public bytes, not short", SECRET.encode()], pa.binary_view()).slice(0, 1),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_what_no_row_shows_is_not_written(case: str) -> None:
    column = HIDDEN[case]
    assert SECRET.encode() in written(column)
    made = compacted(column)
    made.validate(full=True)
    assert SECRET.encode() not in written(made)
    assert made.type == column.type
    assert made.to_pylist() == column.to_pylist()


VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [1, None, 3]),
    (pa.string(), ["a", "b", "c"]),
    (CODES, ["a", None, "a"]),
    (pa.map_(pa.string(), CODES), [[("a", "b")], None, []]),
    (pa.list_(pa.float64(), 2), [[1.0, None], None, [3.0, 4.0]]),
    (pa.large_list(pa.string_view()), [["a"], None, []]),
    (pa.struct({"x": pa.int64(), "y": pa.list_(CODES)}), [{"x": 1, "y": ["a"]}, None, {"x": None, "y": []}]),
    (pa.struct([]), [{}, None, {}]),
    (pa.struct({"t": pa.time64("ns"), "v": pa.string_view()}), [{"t": 1, "v": "a"}, None, {"t": None}]),
    (pa.list_(pa.struct({"t": pa.timestamp("us")})), [[{"t": 2**62}], None, []]),
    (pa.list_(pa.duration("ns"), 1), [[7], None, [None]]),
    (pa.map_(pa.time64("ns"), pa.timestamp("ns")), [[(1, 2), (1, 3)], None, []]),
    (pa.timestamp("ns", "UTC"), [1, None, 3]),
    (pa.null(), [None, None, None]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda value: str(value))
def test_values_and_types_stay_in_whole_columns_and_in_slices(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, kind)
    check_type("column", kind)
    for part in (column, column.slice(1), column.slice(0, 0)):
        made = compacted(part)
        made.validate(full=True)
        assert made.type == kind
        assert made.equals(part)
        assert picked(part, indices_of(np.arange(len(part)))).equals(part)
    assert plain_type(kind) == kind


class Noted(pa.ExtensionType):  # type: ignore[misc]
    """A type with a parameter."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "noted")

    def __arrow_ext_serialize__(self) -> bytes:
        return SECRET.encode()


@pytest.mark.parametrize("form", ["column", "list", "struct", "map"])
def test_of_an_extension_type_only_the_storage_leaves(form: str) -> None:
    noted = pa.ExtensionArray.from_storage(Noted(), pa.array([1, None, 3]))
    column = {
        "column": noted,
        "list": pa.ListArray.from_arrays([0, 1, 2, 3], noted),
        "struct": pa.StructArray.from_arrays([noted], ["x"]),
        "map": pa.MapArray.from_arrays([0, 1, 2, 3], pa.array(["a", "b", "c"]), noted),
    }[form]
    assert SECRET.encode() in written(column)
    check_type("column", column.type)
    made = compacted(column)
    assert SECRET.encode() not in written(made)
    assert made.type == plain_type(column.type)
    assert made.to_pylist() == column.to_pylist()


def test_a_column_without_nulls_is_not_copied() -> None:
    column = pa.array(np.arange(3))
    assert compacted(column) is column


@pytest.mark.parametrize("form", [pa.list_, pa.large_list, lambda field: pa.list_(field, 2)])
def test_members_of_a_type_lose_their_metadata(form: Any) -> None:
    noted = pa.field("item", pa.struct([pa.field("x", pa.int64(), metadata={"note": SECRET})]))
    assert SECRET in pa.schema({"column": form(noted)}).to_string()
    assert SECRET not in pa.schema({"column": plain_type(form(noted))}).to_string()
    assert plain_type(form(noted)) == form(noted)


@pytest.mark.parametrize(
    "kind",
    [
        pa.sparse_union([pa.field("a", pa.int64())]),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.struct({"a": pa.run_end_encoded(pa.int32(), pa.string())}),
        pa.list_view(pa.int64()),
        pa.list_(pa.dense_union([pa.field("a", pa.int64())])),
    ],
)
def test_a_type_that_cannot_be_taken_apart_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match=r"'speed' has type .*, which cannot be kept"):
        check_type("speed", kind)


def values(column: pa.Array, *, json: bool = False) -> pa.Array:
    field = pa.field("who", column.type, metadata={JSON_TEXT: b"1"} if json else None)
    return values_of(pa.RecordBatch.from_arrays([column], schema=pa.schema([field])), "who")


def names_in(column: pa.Array) -> list[str | None]:
    names, codes, _ = persons_in(column, "who")
    return [None if code < 0 else names[code] for code in codes]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "b", "a"]),
        pa.array(["a", "b", "a"], pa.large_string()),
        pa.array(["a", "b", "a"], pa.string_view()),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["a", "b", "a"])),
    ],
    ids=["text", "large text", "viewed text", "dictionary", "dictionary with a repeated entry"],
)
def test_text_is_the_same_identity_in_every_type(column: pa.Array) -> None:
    assert list(labels_of(values(column), "id")) == ["a", "b", "a"]
    assert names_in(values(column)) == ["a", "b", "a"]
    assert len(persons_in(values(column), "who")[0]) == 2


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.int32()])
def test_whole_numbers_are_identities_and_persons(kind: pa.DataType) -> None:
    column = pa.array([7, 8, 7], kind)
    assert np.asarray(labels_of(values(column), "id")).tolist() == [7, 8, 7]
    assert names_in(values(column.dictionary_encode())) == ["7", "8", "7"]


def test_json_texts_are_the_values_that_they_stand_for() -> None:
    column = pa.array(['"ana"', "7", None, '"Zo\\u00eb"', '"7"', '""'])
    assert values(column, json=True).to_pylist() == ["ana", "7", None, "Zo\u00eb", "7", ""]
    assert values(column).to_pylist()[0] == '"ana"'


@pytest.mark.parametrize(
    "column", [pa.array([7.0, 8.0]), pa.array([True, False]), pa.array([[1], [2]]), pa.nulls(2)]
)
def test_nothing_else_names_a_record_or_a_person(column: pa.Array) -> None:
    for given in (column, column.slice(0, 0)):
        if pa.types.is_null(column.type) and not len(given):
            continue
        with pytest.raises(InvalidInputError, match="column 'id' must be whole numbers, text or bytes"):
            labels_of(given, "id")
        with pytest.raises(InvalidInputError, match="column 'who' must name persons in text or whole numbers"):
            persons_in(given, "who")


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(16), pa.uuid()], ids=str
)
def test_bytes_name_records_and_no_persons(kind: pa.DataType) -> None:
    given = [bytes(range(at, at + 16)) for at in (0, 100)]
    assert list(labels_of(values(pa.array(given, kind)), "id")) == given
    with pytest.raises(InvalidInputError, match="must name persons"):
        persons_in(values(pa.array(given, kind)), "who")


def test_an_empty_column_without_a_type_names_nothing() -> None:
    assert list(labels_of(pa.nulls(0), "id")) == []
    assert names_in(pa.nulls(0)) == []


def test_rows_without_a_person_have_a_reason_and_one_name_written_in_two_ways_is_one_person() -> None:
    column = pa.array(["ana", " ana", None, "Zoe\u0308", "Zo\u00eb", "a\nb", ""])
    names, _, flaws = persons_in(column, "who")
    assert names_in(column) == ["ana", None, None, "Zo\u00eb", "Zo\u00eb", None, None]
    assert names == ["ana", "Zo\u00eb"]
    assert flaws == {
        1: "person must be a name without space around it",
        2: "person is missing in column 'who'",
        5: "person must be a name of printable characters that is not empty",
        6: "person must be a name of printable characters that is not empty",
    }


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
