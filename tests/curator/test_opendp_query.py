from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest

import geoind.extras
from geoind import Grid, InvalidInputError, Ledger
from geoind.accounting import PersonLevel
from geoind.curator import release_query
from geoind.errors import MissingExtraError

dp.enable_features("contrib")
RECORDS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
COUNT = RECORDS >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)


def test_opendp_sees_only_the_records_that_count() -> None:
    everything = RECORDS >> dp.t.then_clamp((0, 100)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=5.0)
    answers = [
        release_query([1, 100, 1], everything, epsilon=20.0, person=["ana", "ana", "ben"]) for _ in range(200)
    ]
    assert np.mean(np.asarray(answers, dtype=np.float64)) == pytest.approx(2, abs=3)


def test_opendp_counts_the_cells_of_a_grid() -> None:
    grid = Grid(0, 0, cell=100, columns=2, rows=1)
    cells = grid.nearest([[0, 0]] * 300 + [[100, 0]] * 100)
    histogram = (
        RECORDS >> dp.t.then_count_by_categories([0, 1], null_category=False) >> dp.m.then_laplace(scale=1.0)
    )
    answer = release_query(cells, histogram, epsilon=1.0, person=range(400))
    assert np.abs(np.asarray(answer) - [300, 100]).max() < 40


def test_a_query_that_costs_a_person_more_than_epsilon_is_refused_before_it_is_charged() -> None:
    ledger = Ledger("sqlite://", budget=PersonLevel(9.0))
    ana: dict[str, Any] = {"person": ["ana"], "ledger": ledger}
    with pytest.raises(InvalidInputError, match="for a person of 3 records is 3, more than epsilon 2"):
        release_query([1], COUNT, epsilon=2.0, **ana, reports_per_person=3)
    assert ledger.remaining("ana") == 9.0
    release_query([1], COUNT, epsilon=3.0, **ana, reports_per_person=3)
    assert ledger.remaining("ana") == 6.0


UP_TO_TEN = dp.vector_domain(dp.atom_domain(bounds=(0, 10))), dp.symmetric_distance()


@pytest.mark.parametrize(
    ("record", "query"),
    [
        ("home", COUNT),
        (0.5, COUNT),
        (2**40, COUNT),
        # OpenDP would add all of it, since its privacy map counts on the bounds.
        (1000, UP_TO_TEN >> dp.t.then_sum() >> dp.m.then_laplace(scale=10.0)),
    ],
)
def test_a_record_that_the_query_does_not_know_is_an_error_that_hides_it_and_is_not_charged(
    record: object, query: dp.Measurement
) -> None:
    ledger = Ledger("sqlite://", budget=PersonLevel(9.0))
    with pytest.raises(InvalidInputError, match="not in the query's domain, VectorDomain") as refused:
        release_query(np.array([record]), query, epsilon=1.0, person=["ana"], ledger=ledger)
    assert str(record) not in str(refused.value)
    assert ledger.remaining("ana") == 9.0


def test_a_query_with_another_promise_is_refused() -> None:
    gaussian = RECORDS >> dp.t.then_count() >> dp.m.then_gaussian(scale=5.0)
    with pytest.raises(InvalidInputError, match="no level per person"):
        release_query([1], gaussian, epsilon=2.0, person=["ana"])
    with pytest.raises(InvalidInputError, match="Measurement of OpenDP, got int"):
        release_query([1], 3, epsilon=2.0, person=["ana"])
    with pytest.raises(InvalidInputError, match="list of records"):
        release_query([[1]], COUNT, epsilon=2.0, person=["ana"])


def test_without_opendp_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geoind.extras, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"OpenDP: pip install \"\.\[opendp\]\""):
        release_query([1], COUNT, epsilon=2.0, person=["ana"])
