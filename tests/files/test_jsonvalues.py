"""JSON values as columns: a place in any member, however deep, is a column that is looked at."""

from typing import Any

import pyarrow as pa
import pytest

from geoind.files.jsontext import BadRecordError, object_in
from geoind.files.jsonvalues import as_columns, chosen, flattened, is_number


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": null, "b": true, "c": "x"}', {"a": None, "b": True, "c": "x"}),
        ('{"a": {"b": {"c": 1}}, "d": {}}', {"a.b.c": 1}),
        ('{"at": [2.5]}', {"at[]": 2.5}),
        ('{"at": [2.5, 48]}', {"at": [2.5, 48]}),
        ('{"at": [2.5, 48, 30, 7]}', {"at": [2.5, 48, 30, 7]}),
        ('{"at": [1, 2, 3, 4, 5]}', {"at[]": "1 2 3 4 5"}),
        ('{"at": [2.5, true]}', {"at[]": "2.5 True"}),
        ('{"at": [[2, 48], [3, 49]]}', {"at[]": "2 48 3 49"}),
        ('{"at": [{"lat": 1}, {"lat": 2, "x": 3}]}', {"at[].lat": "1 2", "at[].x": 3}),
        ('{"a.b": 1, "a": {"b": 2}}', {"a.b": "1 2"}),
        ('{"at": []}', {}),
    ],
)
def test_every_scalar_has_a_path_and_a_pair_of_numbers_stays_together(text: str, found: dict[str, Any]) -> None:
    assert flattened(object_in(text)) == found
    below = {f"outer.{path}": value for path, value in found.items()}
    assert flattened(object_in(text), "outer.") == below


def test_a_member_that_occurs_twice_is_refused_however_deep() -> None:
    with pytest.raises(BadRecordError, match="occurs twice"):
        flattened(object_in('{"a": [{"b": {"c": 1, "c": 2}}]}'))


@pytest.mark.parametrize(
    ("values", "kind", "column"),
    [
        ([None, None], pa.bool_(), [None, None]),
        ([True, None], pa.bool_(), [True, None]),
        (["x", None], pa.string(), ["x", None]),
        ([7, None], pa.int64(), [7, None]),
        ([7, 0.5], pa.float64(), [7.0, 0.5]),
        ([0.5, None], pa.float64(), [0.5, None]),
        ([[2, 48.5], None], pa.list_(pa.float64()), [[2.0, 48.5], None]),
        ([True, 7], pa.string(), ["True", "7"]),
        (["x", [2, 48]], pa.string(), ["x", "[2, 48]"]),
        ([2**63, 1], pa.string(), ["9223372036854775808", "1"]),
        ([10**400, 0.5], pa.string(), [str(10**400), "0.5"]),
        # What a float cannot hold keeps its digits.
        ([2**53 + 1, 0.5], pa.string(), ["9007199254740993", "0.5"]),
        ([2**54, 0.5], pa.float64(), [2.0**54, 0.5]),
        ([[2**53 + 1, 2], [3, 4.5]], pa.string(), ["[9007199254740993, 2]", "[3, 4.5]"]),
    ],
    ids=str,
)
def test_a_column_has_the_kind_that_all_its_values_have_or_is_text(
    values: list[Any], kind: pa.DataType, column: list[Any]
) -> None:
    made = as_columns([{"a": value} for value in values], {})["a"]
    assert (made.type, made.to_pylist()) == (kind, column)


def test_a_record_without_a_member_has_nothing_there() -> None:
    columns = as_columns([{"a": 1}, {"b": "x"}], {"file": 7})
    assert {name: column.to_pylist() for name, column in columns.items()} == {
        "file": [7, 7],
        "a": [1, None],
        "b": [None, "x"],
    }


def test_what_is_told_of_all_records_has_its_kind_even_when_there_are_none() -> None:
    (column,) = as_columns([], {"file": "x"}).values()
    assert (column.type, len(column)) == (pa.string(), 0)


def test_numbers_are_numbers_and_true_is_not() -> None:
    assert [is_number(value) for value in (0, 1.5, True, "1", None, [1])] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_a_path_chooses_itself_and_what_lies_below() -> None:
    names = ["at", "at.lat", "at[]", "at[].x", "attic", "b.at"]
    assert chosen(names, ["at"]) == ["at", "at.lat", "at[]", "at[].x"]
    assert chosen(names, ["at.lat", "b"]) == ["at.lat", "b.at"]
    assert chosen(names, []) == []
