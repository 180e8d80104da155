import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind import InvalidInputError, Ledger
from geoind.accounting import PersonLevel
from geoind.curator import Contributors
from geoind.curator.contributions import as_contributors, as_person_level, bounded

TABLES = st.lists(st.sampled_from(["ana", "ben", "cem"]), max_size=12)


@given(TABLES, st.integers(1, 4))
def test_nobody_counts_more_often_than_allowed_and_nobody_counts_less_than_they_can(
    names: list[str], most: int
) -> None:
    counts = bounded(names, most)
    for name in set(names):
        rows = [row for row, owner in enumerate(names) if owner == name]
        assert counts[rows].tolist() == [True] * min(most, len(rows)) + [False] * (len(rows) - most)


@given(TABLES, st.integers(1, 4))
def test_what_counts_of_others_does_not_change_when_a_person_leaves(names: list[str], most: int) -> None:
    counts, stay = bounded(names, most), [row for row, name in enumerate(names) if name != "ana"]
    assert bounded([names[row] for row in stay], most).tolist() == counts[stay].tolist()


def test_one_person_has_one_name_however_it_is_typed() -> None:
    people = Contributors(["Zoe\u0301", "Zo\u00e9"])
    assert bounded(people.names, 1).tolist() == [True, False]


@pytest.mark.parametrize("person", ["ana", None, 7, ["ana"], ["ana", None], [1.0, 2.0], ["ana", ""]])
def test_whose_a_record_is_must_be_known(person: object) -> None:
    with pytest.raises(InvalidInputError, match="person must be"):
        as_contributors(person, 2)  # type: ignore[arg-type]


def test_an_empty_table_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="at least one record"):
        as_contributors([], 0)


def test_the_names_of_an_array_are_those_of_its_numbers() -> None:
    assert Contributors(np.array([3, 4]).tolist()).names == Contributors(np.array([3, 4])).names == ("3", "4")


@pytest.mark.parametrize("epsilon", [0, -1, np.nan, np.inf, "1", True])
def test_a_level_must_be_positive_and_finite(epsilon: float) -> None:
    with pytest.raises(InvalidInputError, match="epsilon"):
        as_person_level(epsilon)


def test_a_level_that_hides_nobody_is_an_error_that_names_the_unit() -> None:
    assert as_person_level(20) == PersonLevel(20.0)
    with pytest.raises(InvalidInputError, match="per person here, not per metre"):
        as_person_level(20.1)


def test_contributors_are_as_many_as_the_records_of_every_release() -> None:
    people = Contributors(iter(["ana", "ben"]))
    assert as_contributors(people, 2) is as_contributors(people, 2) is people
    with pytest.raises(InvalidInputError, match="one name per record: 2 for 3"):
        as_contributors(people, 3)


def test_whoever_prints_contributors_sees_no_names() -> None:
    assert "ana" not in repr(Contributors(["ana", "ben"]))


@pytest.mark.parametrize(("label", "told"), [("", "release_sum"), ("trips of May", "trips of May")])
def test_everybody_is_charged_once_per_release_under_its_label(label: str, told: str) -> None:
    ledger = Ledger("sqlite://", budget=PersonLevel(1.0))
    people = Contributors(["ana", "ben", "ana"], ledger=ledger, label=label)
    people.charge(PersonLevel(0.25), "release_sum")
    assert (ledger.remaining("ana"), ledger.remaining("ben")) == (0.75, 0.75)
    assert [one.label for one in ledger.history("ana")] == [told]
