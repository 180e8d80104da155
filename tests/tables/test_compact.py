"""What a kept column shares memory with: entries, bytes under nulls, rows that were filtered out."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoind.errors import InvalidInputError
from geoind.tables.compact import check_type, compacted, plain_type

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
    (pa.uuid(), [bytes(16), None, bytes(16)]),
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
    assert plain_type(kind) == kind


def test_a_column_without_nulls_is_not_copied() -> None:
    column = pa.array(np.arange(3))
    assert compacted(column) is column


@pytest.mark.parametrize("form", [pa.list_, pa.large_list, pa.list_view, lambda field: pa.list_(field, 2)])
def test_members_of_a_type_lose_their_metadata(form: Any) -> None:
    noted = pa.field("item", pa.struct([pa.field("x", pa.int64(), metadata={"note": SECRET})]))
    assert SECRET in pa.schema({"column": form(noted)}).to_string()
    assert SECRET not in pa.schema({"column": plain_type(form(noted))}).to_string()
    assert plain_type(form(noted)) == form(noted)


def test_a_type_that_cannot_be_taken_apart_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'speed' has type run_end_encoded"):
        check_type("speed", pa.run_end_encoded(pa.int32(), pa.string()))
