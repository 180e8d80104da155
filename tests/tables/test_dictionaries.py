"""Dictionaries of columns: an entry that no row uses is nowhere in the reports."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoind import InvalidInputError
from geoind.tables import Recipe
from geoind.tables.dictionaries import has_dictionary, is_separable, used_only
from tests.tables import cases

WORDS = pa.dictionary(pa.int8(), pa.string())


def coded(codes: list[int | None], entries: list[Any], kind: pa.DataType = WORDS) -> pa.DictionaryArray:
    indices, values = pa.array(codes, kind.index_type), pa.array(entries, kind.value_type)
    return pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)


@pytest.mark.parametrize(
    "kind",
    [
        WORDS,
        pa.dictionary(pa.uint32(), pa.large_string(), ordered=True),
        pa.dictionary(pa.int64(), pa.string_view()),
    ],
    ids=str,
)
def test_only_entries_that_rows_use_stay_in_their_order_and_the_type_does_too(kind: pa.DataType) -> None:
    column = coded([3, None, 1, 3], ["a", "b", "c", "d"], kind)
    made = used_only(column)
    assert made.type == kind
    assert made.dictionary.to_pylist() == ["b", "d"]
    assert made.to_pylist() == ["d", None, "b", "d"]
    assert used_only(column.slice(2, 1)).dictionary.to_pylist() == ["b"]
    assert used_only(column.slice(1, 1)).dictionary.to_pylist() == []


def test_a_column_that_uses_all_entries_or_has_none_stays_what_it_is() -> None:
    for column in (coded([1, 0, None], ["a", "b"]), coded([None], []), pa.array(["a"]), pa.array([[1.5]])):
        assert used_only(column) is column


T = pa.string()
NESTED: dict[str, tuple[pa.DataType, pa.DataType, list[Any]]] = {
    "list": (pa.list_(WORDS), pa.list_(T), [["a", "b"], ["spare"], None]),
    "large list": (pa.large_list(WORDS), pa.large_list(T), [["a", "b"], ["spare"], None]),
    "list of two": (pa.list_(WORDS, 2), pa.list_(T, 2), [["a", "b"], ["spare", "spare"], None]),
    "struct": (pa.struct({"w": WORDS}), pa.struct({"w": T}), [{"w": "b"}, {"w": "spare"}, None]),
    "map": (pa.map_(T, WORDS), pa.map_(T, T), [[("k", "a")], [("k", "spare")], None]),
    "list of structs": (
        pa.list_(pa.struct({"n": pa.int8(), "w": WORDS})),
        pa.list_(pa.struct({"n": pa.int8(), "w": T})),
        [[{"n": 1, "w": "a"}, {"n": 2, "w": "b"}], [{"n": 3, "w": "spare"}], None],
    ),
}
"""The type, the same without a dictionary, and values."""


@pytest.mark.parametrize("case", NESTED)
def test_entries_inside_lists_and_structs_that_no_row_uses_are_gone(case: str) -> None:
    kind, plain, values = NESTED[case]
    column = pa.array(values, plain).cast(kind)
    assert used_only(column).equals(column)
    some = column.slice(0, 1)
    assert b"spare" in _bytes(some)
    assert b"spare" not in _bytes(used_only(some))
    assert (used_only(some).type, used_only(some).to_pylist()) == (kind, values[:1])


def _bytes(column: pa.Array) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema({"c": column.type})) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([column], names=["c"]))
    return bytes(sink.getvalue().to_pybytes())


def test_a_type_from_which_arrow_cannot_part_entries_is_known_and_refused() -> None:
    views = pa.list_view(WORDS)
    assert has_dictionary(views)
    assert not is_separable(views)
    assert is_separable(pa.list_view(pa.string()))
    schema = pa.schema({"lon": pa.float64(), "lat": pa.float64(), "note": views})
    with pytest.raises(InvalidInputError, match="'note' is of a type into which nobody looks"):
        Recipe.of(epsilon=0.01).table(schema)


@pytest.mark.parametrize("count", [3, 60])
@pytest.mark.parametrize("spare", [0, 2000])
def test_no_entry_that_no_row_uses_reaches_the_reports_however_few_or_late_it_is(count: int, spare: int) -> None:
    truth = cases.lonlat(count)
    places = [f"POINT({lon} {lat})" for lon, lat in truth]
    entries = ["a", *(f"word {number}" for number in range(spare)), *places]
    column = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(entries))
    batch = cases.table_with(truth, column).to_batches()[0]
    reports = Recipe.of(epsilon=0.01).obfuscate(batch)
    assert reports.schema.field("note") == batch.schema.field("note")
    assert reports["note"].to_pylist() == ["a"] * count
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([reports]), sink, compression="none")
    assert b"POINT" not in sink.getvalue().to_pybytes()


def test_entries_of_rows_without_a_report_are_gone_with_them() -> None:
    truth = cases.lonlat(20)
    lon = np.where(np.arange(20) == 7, 200.0, truth[:, 0])
    note = pa.array(["bad" if row == 7 else "good" for row in range(20)]).dictionary_encode()
    batch = pa.RecordBatch.from_pydict({"lon": lon, "lat": truth[:, 1], "note": note})
    table = Recipe.of(epsilon=0.01).table(batch.schema)
    assert table.report(table.examine(batch)).batch["note"].dictionary.to_pylist() == ["good"]
