"""Rows on their way: some more may turn out bad, each row counts its places, and nothing prints a true one."""

import numpy as np
import pyarrow as pa
import pytest

from geoind import InvalidInputError
from geoind.tables import Recipe
from geoind.tables.rows import Examined, Problem
from geoind.traces.many import Positions

LONLAT = np.array([[2.111111, 48.111111], [2.222222, 48.222222], [np.nan, np.nan], [2.444444, 48.444444]])
OTHER = np.array([[3.1, 49.1], [np.nan, np.nan], [np.nan, np.nan], [3.4, 49.4]])
ROWS = np.array([1, 4, 5, 9])
STEPS = Positions(["ana", "ben"], np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0]), LONLAT)
BATCH = pa.RecordBatch.from_pydict({"id": [11, 14, 15, 19], "lon": LONLAT[:, 0], "lat": LONLAT[:, 1]})
EXAMINED = Examined(BATCH, ROWS, (Problem(3, "bad"),), (LONLAT, OTHER), STEPS)


def test_rows_that_turn_out_bad_leave_every_part_and_become_problems_by_their_first_numbers() -> None:
    left = EXAMINED.without({3: "late", 1: "early"})
    assert left.problems == (Problem(3, "bad"), Problem(4, "early"), Problem(9, "late"))
    assert left.rows.tolist() == [1, 5]
    assert left.batch["id"].to_pylist() == [11, 15]
    np.testing.assert_array_equal(left.truths, (LONLAT[[0, 2]], OTHER[[0, 2]]))
    assert left.steps is not None
    assert (left.steps.codes.tolist(), left.steps.times.tolist()) == ([0, 0], [1.0, 3.0])
    np.testing.assert_array_equal(left.steps.lonlat, LONLAT[[0, 2]])


def test_without_more_bad_rows_nothing_changes_and_without_traces_there_are_no_steps() -> None:
    assert EXAMINED.without({}) is EXAMINED
    assert Examined(BATCH, ROWS, (), (LONLAT,)).without({0: "bad"}).steps is None


def test_a_row_makes_a_report_for_each_place_that_it_has() -> None:
    assert EXAMINED.reports_per_row.tolist() == [2, 1, 0, 2]


def test_the_first_problem_is_raised_with_how_many_there_are() -> None:
    with pytest.raises(InvalidInputError, match=r"^row 3: bad \(2 such rows\)$"):
        EXAMINED.without({1: "early"}).raise_problems()
    whole = Examined(BATCH, ROWS, (), (LONLAT,))
    assert whole.raise_problems() is whole


def test_what_is_printed_of_examined_rows_tells_no_true_place_and_of_reports_no_coordinates() -> None:
    for value in LONLAT[~np.isnan(LONLAT)]:
        assert str(value) not in repr(EXAMINED)
    assert "problems=" in repr(EXAMINED)
    table = Recipe.of(epsilon=0.01).table(BATCH.schema)
    made = table.report(table.examine(BATCH))
    assert made.rows.tolist() == [0, 1, 3]
    assert "reports" not in repr(made)
