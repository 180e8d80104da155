import numpy as np
import pyarrow as pa
import pytest

from geoind.errors import InvalidInputError
from geoind.tables.identities import count_persons, labels_of, persons_in, plain


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "b", "a"]),
        pa.array(["a", "b", "a"], pa.large_string()),
        pa.array(["a", "b", "a"], pa.string_view()),
        pa.array(["a", "b", "a"]).dictionary_encode(),
    ],
)
def test_text_is_the_same_identity_in_every_type(column: pa.Array) -> None:
    assert list(labels_of(column, "id")) == ["a", "b", "a"]
    assert count_persons(column, np.array([1, 1, 5]), "person") == {"a": 6, "b": 1}
    assert plain(column).type == pa.large_string()


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.int32()])
def test_whole_numbers_are_identities_and_persons(kind: pa.DataType) -> None:
    column = pa.array([7, 8, 7], kind)
    assert np.asarray(labels_of(column, "id")).tolist() == [7, 8, 7]
    assert count_persons(column, np.array([1, 0, 2]), "person") == {"7": 3}


@pytest.mark.parametrize("values", [[7.0, 8.0], [True, False], [[1], [2]]])
def test_nothing_else_names_a_record_or_a_person(values: list[object]) -> None:
    with pytest.raises(InvalidInputError, match="column 'id' must be whole numbers, text or bytes"):
        labels_of(pa.array(values), "id")
    with pytest.raises(InvalidInputError, match="column 'who' must name persons"):
        count_persons(pa.array(values), np.array([1, 1]), "who")


def test_bytes_name_records_but_no_persons() -> None:
    assert list(labels_of(pa.array([b"\xff", b""]), "id")) == [b"\xff", b""]
    with pytest.raises(InvalidInputError, match="must name persons"):
        count_persons(pa.array([b"\xff"]), np.array([1]), "who")


def test_an_empty_column_without_a_type_names_nobody() -> None:
    assert list(labels_of(pa.nulls(0), "id")) == []
    assert count_persons(pa.nulls(0), np.array([], int), "who") == {}
    with pytest.raises(InvalidInputError):
        labels_of(pa.nulls(2), "id")


def test_rows_without_a_report_need_no_person() -> None:
    assert count_persons(pa.array(["a", None]), np.array([1, 0]), "who") == {"a": 1}
    with pytest.raises(InvalidInputError):
        count_persons(pa.array(["a", None]), np.array([1, 1]), "who")


@pytest.mark.parametrize("column", [pa.nulls(2), pa.array([], pa.float64())], ids=["nobody twice", "no floats"])
def test_a_column_that_cannot_name_persons_is_refused_even_without_values(column: pa.Array) -> None:
    with pytest.raises(InvalidInputError, match="column 'who' must name persons"):
        count_persons(column, np.ones(len(column), int), "who")


@pytest.mark.parametrize("kind", [pa.float64(), pa.bool_(), pa.list_(pa.int64())], ids=str)
def test_a_column_that_cannot_name_records_is_refused_even_without_values(kind: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match="column 'id' must be whole numbers, text or bytes"):
        labels_of(pa.array([], kind), "id")


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(16), pa.uuid()], ids=str
)
def test_bytes_are_the_same_identity_in_every_type(kind: pa.DataType) -> None:
    values = [bytes(range(at, at + 16)) for at in (0, 100)]
    assert list(labels_of(pa.array(values, kind), "id")) == values


def test_plain_columns_are_those_below_dictionaries_and_types_of_their_own() -> None:
    assert plain(pa.array([7, 7]).dictionary_encode()).equals(pa.array([7, 7]))
    assert plain(pa.array([bytes(16)], pa.uuid())).type == pa.binary(16)
    numbers = pa.array([1.5, None])
    assert plain(numbers) is numbers


def test_reports_of_one_person_add_up_in_whole_numbers() -> None:
    many = 2**40
    counted = count_persons(pa.array(["a", "b", "a", "c"]), np.array([many, 1, many, 0]), "who")
    assert counted == {"a": 2 * many, "b": 1}
    assert all(type(total) is int for total in counted.values())
    # Of names that have no report nothing is asked.
    assert count_persons(pa.array(["", "b"]), np.array([0, 1]), "who") == {"b": 1}
    with pytest.raises(InvalidInputError, match="printable characters"):
        count_persons(pa.array(["", "b"]), np.array([1, 1]), "who")


def test_rows_that_name_nobody_are_told_with_the_reason_and_the_others_with_their_person() -> None:
    column = pa.array(["ana", " ana", None, "Zoe\u0308", "Zo\u00eb", "a\nb"]).dictionary_encode()
    names, codes, flaws = persons_in(column, "who")
    assert (names, codes.tolist()) == (["ana", "Zo\u00eb"], [0, -1, -1, 1, 1, -1])
    assert flaws == {
        1: "person must be a name without space around it",
        2: "there is no person in column 'who'",
        5: "person must be a name of printable characters that is not empty",
    }
