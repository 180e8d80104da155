"""Rows in the order of a place tell it, and rows in the order of a clock do not: measured against a second way."""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoind import InvalidInputError
from geoind.tables.order import follows_a_clock, is_sorted_by_place, refuse_sorted


def by_counting(truth: Any) -> bool:
    """Return whether rows are sorted by place, row by row and cell by cell."""
    places = [tuple(place) for place in truth[:512].tolist() if np.isfinite(place).all()]
    count = len(places)
    if count < 32:
        return False
    for axis in range(2):
        steps = [after[axis] - before[axis] for before, after in pairwise(places)]
        moves = [step for step in steps if step]
        up = sum(step > 0 for step in moves)
        if len(moves) >= 31 and (up <= 0.05 * len(moves) or up >= 0.95 * len(moves)):
            return True
    side = max(3, int((count / 8) ** 0.5))
    edges = [
        [sorted(place[axis] for place in places)[count * part // side] for part in range(1, side)]
        for axis in range(2)
    ]
    cells = [tuple(sum(edge <= place[axis] for edge in edges[axis]) for axis in range(2)) for place in places]
    often = Counter(cells)
    chance = sum(1 - often[cell] / count for cell in cells) * (count - 1) / count - len(often)
    changes = sum(one != other for one, other in pairwise(cells)) - len(often)
    return len(often) >= side * side // 2 and chance > len(often) and changes < 0.45 * chance


def partly_sorted(rng: np.random.Generator) -> Any:
    """Return places that go through the cells of a lattice one by one, most of them, in any number and order."""
    count = int(rng.choice([31, 32, 33, 71, 72, 100, 127, 128, 150, 200, 300, 600]))
    places = rng.normal([2.35, 48.86], [0.05, 0.03], (count, 2))
    side = int(rng.integers(3, 8))
    ranks = places.argsort(axis=0).argsort(axis=0) * side // count
    # There and back, as an ox ploughs: no coordinate is sorted.
    along = np.where(ranks[:, 1] % 2, side - ranks[:, 0], ranks[:, 0])
    order = np.lexsort([rng.random(count), along, ranks[:, 1]])
    places = places[order]
    stirred = np.flatnonzero(rng.random(count) < rng.uniform(0, 0.35))
    places[stirred] = places[rng.permutation(stirred)]
    if rng.random() < 0.3:
        places[rng.random(count) < 0.1] = [np.nan, 48.0] if rng.random() < 0.5 else [2.0, np.inf]
    if rng.random() < 0.2:
        places = places[np.argsort(places[:, int(rng.integers(2))] + rng.normal(0, 0.01, count))]
    return np.round(places, int(rng.integers(2, 6)))


def test_partly_sorted_tables_are_judged_as_counting_does() -> None:
    rng = np.random.default_rng(1)
    told = Counter[bool]()
    for _ in range(300):
        places = partly_sorted(rng)
        wanted = by_counting(places)
        assert is_sorted_by_place(places) == wanted
        told[wanted] += 1
    assert min(told.values()) > 60


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_nineteen_of_twenty_steps_in_one_direction_are_sorted(axis: int, sign: int) -> None:
    for moved in (31, 40, 100):
        for wrong in range(moved // 20 + 3):
            steps = np.ones(moved)
            steps[:wrong] = -0.001
            places = np.zeros((moved + 1, 2))
            places[1:, axis] = sign * np.cumsum(steps)
            assert is_sorted_by_place(places) == (wrong <= moved / 20), (moved, wrong)
    # Rows that stay where they are say nothing, and a few that move may do so by chance.
    few = np.zeros((400, 2))
    few[1:, axis] = np.cumsum(np.arange(399) < 30)
    assert not is_sorted_by_place(few)


@pytest.mark.parametrize(
    ("right", "follows"), [(10, True), (9, True), (8, False), (2, False), (1, True), (0, True)]
)
@pytest.mark.parametrize(
    "form",
    [
        lambda hours: pa.array(hours),
        lambda hours: pa.array(hours.astype(float)),
        lambda hours: pa.array([f"2024-05-01T{hour:02}:00" for hour in hours]),
        lambda hours: pa.array(hours * 3600, pa.timestamp("s")),
        lambda hours: pa.array(hours.astype(np.int32)).cast(pa.date32()),
        lambda hours: pa.array(hours * 86_400_000).cast(pa.date64()),
    ],
)
def test_rows_follow_a_clock_when_nine_of_ten_times_rise_or_nine_fall(
    right: int, follows: bool, form: Any
) -> None:
    steps = np.ones(10, np.int64)
    steps[right:] = -1
    hours = 11 + np.cumsum([0, *steps])
    assert follows_a_clock(pa.RecordBatch.from_pydict({"note": ["x"] * 11, "when": form(hours)})) == follows


def test_a_clock_is_a_column_of_times_by_its_type_or_its_name() -> None:
    rising = np.arange(11)
    texts = [f"2024-05-{day + 1:02}" for day in rising]
    assert not follows_a_clock(pa.RecordBatch.from_pydict({"id": rising, "day_off": [True] * 11, "note": texts}))
    assert not follows_a_clock(pa.RecordBatch.from_pydict({"when": np.full(11, 7)}))
    assert not follows_a_clock(pa.RecordBatch.from_pydict({"when": pa.array([None] * 11, pa.int64())}))
    assert follows_a_clock(pa.RecordBatch.from_pydict({"note": pa.array(rising, pa.timestamp("s"))}))
    # A time that is missing is not a step back.
    assert follows_a_clock(pa.RecordBatch.from_pydict({"when": [None if row % 2 else row for row in range(22)]}))
    assert follows_a_clock(pa.RecordBatch.from_pydict({"when": [None, *texts, None]}))
    assert follows_a_clock(pa.RecordBatch.from_pydict({"when": pa.array(texts).dictionary_encode()}))
    # One clock is enough.
    stirred = np.random.default_rng(2).permutation(11)
    assert follows_a_clock(pa.RecordBatch.from_pydict({"made_at": stirred, "seen_at": rising}))


def test_rows_sorted_by_place_are_refused_unless_the_first_ones_follow_a_clock() -> None:
    truth = np.column_stack([np.linspace(2, 3, 600), np.full(600, 48.0)])
    asked: list[list[int]] = []

    def beside(rows: Any) -> pa.RecordBatch:
        asked.append(rows.tolist())
        return pa.RecordBatch.from_pydict({"when": rows})

    refuse_sorted(truth, beside)
    refuse_sorted(truth[:40], beside)
    assert asked == [list(range(512)), list(range(40))]
    with pytest.raises(InvalidInputError, match="sorted by place"):
        refuse_sorted(truth, lambda rows: pa.RecordBatch.from_pydict({"id": rows}))


def test_rows_of_one_time_are_no_step_back_and_none_forward() -> None:
    together = np.repeat(np.arange(5), 20)
    for times in (together, together[::-1]):
        assert follows_a_clock(pa.RecordBatch.from_pydict({"when": times}))


def test_places_that_are_left_once_and_never_again_are_sorted_if_they_are_not_too_few() -> None:
    corners = np.array([[2.0, 48.0], [2.0, 49.0], [3.0, 49.0], [3.0, 48.0]])
    assert is_sorted_by_place(np.repeat(corners, 25, axis=0))
    assert not is_sorted_by_place(np.tile(corners, (25, 1)))
    assert not is_sorted_by_place(np.repeat(corners[:3], 25, axis=0))
