import numpy as np
import pytest

from geoind import InvalidInputError, Ledger
from geoind.budgets.persons import as_person


def test_names_are_stored_as_given_whatever_they_look_like(url: str) -> None:
    with Ledger(url, budget=1) as ledger:
        for name in ["Robert'); DROP TABLE geoind_charge;--", "שלום", ":person {clock}", "ana", "Ana", "Ana  B."]:
            assert ledger.charge(name, 0.25) == 0.75


def test_one_person_has_one_name_however_it_was_typed(url: str) -> None:
    with Ledger(url, budget=1) as ledger:
        ledger.charge("Zoe\u0301", 0.25)
        assert ledger.remaining("Zo\u00e9") == 0.75
        both: dict[str | int, int] = {7: 1, "7": 2}
        ledger.charge_counts(both, 0.125)
        assert ledger.remaining(np.int64(7)) == 0.625  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="got float"):
            ledger.charge_counts({"ana": 1, 7.0: 1}, 0.25)  # type: ignore[arg-type]
        assert ledger.remaining("ana") == 1.0
        assert ledger.forget("Zoe\u0301") == 1


@pytest.mark.parametrize("name", ["", " ", "\u2003", "a\nb", "a\0b", "\ud800"], ids=ascii)
def test_a_name_is_printable_and_not_empty(name: str) -> None:
    with pytest.raises(InvalidInputError, match="printable"):
        as_person(name)


@pytest.mark.parametrize("name", [" ana", "ana ", "  ana  "])
def test_a_name_has_no_space_around_it_which_would_have_a_budget_of_its_own(url: str, name: str) -> None:
    with Ledger(url, budget=1) as ledger, pytest.raises(InvalidInputError, match="without space around it"):
        ledger.charge(name, 0.25)
