import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind import InvalidInputError
from geoind.curator.contributions import as_level, as_names, bounded

TABLES = st.lists(st.sampled_from(["ana", "ben", "cem"]), max_size=12)


@given(TABLES, st.integers(1, 4))
def test_of_each_person_the_first_records_count_up_to_the_bound(names: list[str], most: int) -> None:
    counts = bounded(names, most)
    for name in set(names):
        rows = [row for row, owner in enumerate(names) if owner == name]
        assert counts[rows].tolist() == [True] * min(most, len(rows)) + [False] * (len(rows) - most)


@given(TABLES, st.integers(1, 4))
def test_what_counts_of_others_does_not_change_when_a_person_leaves(names: list[str], most: int) -> None:
    counts, stay = bounded(names, most), [row for row, name in enumerate(names) if name != "ana"]
    assert bounded([names[row] for row in stay], most).tolist() == counts[stay].tolist()


def test_one_person_has_one_name_however_it_is_typed() -> None:
    assert bounded(as_names(["Zoe\u0301", "Zo\u00e9"], 2), 1).tolist() == [True, False]


@pytest.mark.parametrize("person", ["ana", None, 7, ["ana"], ["ana", None], [1.0, 2.0], ["ana", ""]])
def test_the_person_of_each_record_must_be_known(person: object) -> None:
    with pytest.raises(InvalidInputError, match="person must be"):
        as_names(person, 2)  # type: ignore[arg-type]


def test_an_empty_table_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="at least one record"):
        as_names([], 0)


def test_the_names_of_an_array_are_those_of_its_numbers() -> None:
    assert as_names(np.array([3, 4]).tolist(), 2) == as_names(np.array([3, 4]), 2) == ("3", "4")


@pytest.mark.parametrize("epsilon", [0, -1, np.nan, np.inf, "1", True])
def test_a_level_must_be_positive_and_finite(epsilon: float) -> None:
    with pytest.raises(InvalidInputError, match="epsilon"):
        as_level(epsilon)


def test_a_level_without_a_useful_bound_is_an_error_that_names_the_unit() -> None:
    assert as_level(20) == 20.0
    with pytest.raises(InvalidInputError, match="per person here, not per metre"):
        as_level(20.1)


def test_there_is_one_name_per_record() -> None:
    assert as_names(iter(["ana", "ben"]), 2) == ("ana", "ben")
    with pytest.raises(InvalidInputError, match="one name per record: 2 for 3"):
        as_names(["ana", "ben"], 3)
