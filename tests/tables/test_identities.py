"""Columns that name records and persons: the same name is the same identity in every type."""

import numpy as np
import pyarrow as pa
import pytest

from geoind.errors import InvalidInputError
from geoind.tables.identities import JSON_TEXT, labels_of, persons_in, values_of


def values(column: pa.Array, *, json: bool = False) -> pa.Array:
    field = pa.field("who", column.type, metadata={JSON_TEXT: b"1"} if json else None)
    return values_of(pa.RecordBatch.from_arrays([column], schema=pa.schema([field])), "who")


def names_in(column: pa.Array) -> list[str | None]:
    persons, _ = persons_in(column, "who")
    return [None if code < 0 else persons.names[code] for code in persons.codes]


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
    assert len(persons_in(values(column), "who")[0].names) == 2


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
    persons, flaws = persons_in(column, "who")
    assert names_in(column) == ["ana", None, None, "Zo\u00eb", "Zo\u00eb", None, None]
    assert list(persons.names) == ["ana", "Zo\u00eb"]
    assert flaws == {
        1: "person must be a name without space around it",
        2: "person is missing in column 'who'",
        5: "person must be a name of printable characters that is not empty",
        6: "person must be a name of printable characters that is not empty",
    }


def test_persons_of_some_rows_keep_their_names() -> None:
    persons, _ = persons_in(pa.array(["ana", "ben", "ana"]), "who")
    assert persons.only(np.array([1, 2])).codes.tolist() == [1, 0]
