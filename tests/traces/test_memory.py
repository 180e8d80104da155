"""What sessions of many persons remember, against lists that remember the same."""

import math

import numpy as np
import pytest

from geoind.traces.guarded import GuardedPlace
from geoind.traces.memory import Memory
from geoind.traces.words import SessionSource, StepWords

KEY = bytes(range(32))


def memory(persons: int, places: int = 3, changes: int = 2) -> Memory:
    made = Memory(KEY, places, changes)
    made.add([f"p{number}" for number in range(persons)])
    return made


@pytest.mark.parametrize("places", [1, 2, 5])
def test_the_places_used_last_are_at_the_end_and_the_oldest_makes_room(places: int) -> None:
    rng = np.random.default_rng(places)
    kept, lists = memory(3, places=places), [[(math.nan, math.nan)] * places for _ in range(3)]
    for _ in range(200):
        persons = np.flatnonzero(rng.random(3) < 0.6)
        used = rng.integers(0, 6, (len(persons), 2)) / 4
        kept.note_place(persons, used)
        for person, (lon, lat) in zip(persons.tolist(), used.tolist(), strict=True):
            known = lists[person]
            known.remove((lon, lat) if (lon, lat) in known else known[0])
            known.append((lon, lat))
        np.testing.assert_array_equal(kept.anchors[:3], np.array(lists))


def test_the_changes_remembered_are_the_last_ones() -> None:
    kept = memory(2, changes=3)
    for step in range(1, 6):
        kept.note_change(np.array([1]), np.array([step]), np.array([10.0 * step]))
    assert kept.changed[1].tolist() == [3, 4, 5]
    assert kept.changed_after[1].tolist() == [30, 40, 50]
    assert (kept.changed[0] < -1e9).all()
    assert (kept.changed_after[0] == -math.inf).all()


def test_more_persons_change_nothing_for_those_who_are_there() -> None:
    kept = memory(2)
    kept.pay(1, [0.25])
    kept.note_place(np.array([1]), np.array([[2.0, 48.0]]))
    kept.add([f"q{number}" for number in range(9)])
    assert kept.paid[:11].tolist() == [0, 0.25] + [0] * 9
    assert kept.anchors[1, -1].tolist() == [2.0, 48.0]
    assert np.isnan(kept.anchors[2:11]).all()
    words = StepWords(KEY)
    names = ["p0", "p1", *(f"q{number}" for number in range(9))]
    assert [row.tobytes() for row in kept.persons[:11]] == [words.person(name) for name in names]
    assert (kept.run[:11] == -1).all()
    assert (kept.last_time[:11] == -math.inf).all()


def test_fresh_reports_are_added_one_after_the_other_as_a_session_adds_them() -> None:
    kept, price = memory(3), 0.1
    kept.pay_fresh(np.array([0, 2]), np.array([10, 3]), price)
    kept.pay_fresh(np.array([2]), np.array([4]), price)
    ten = seven = 0.0
    for _ in range(10):
        ten += price
    for _ in range(7):
        seven += price
    assert kept.paid[:3].tolist() == [ten, 0, seven]
    assert ten != 10 * price
    assert kept.counts[:3].tolist() == [[10, 0, 0], [0, 0, 0], [7, 0, 0]]


def test_what_one_step_costs_is_added_without_rounding_in_between() -> None:
    kept = memory(1)
    kept.pay(0, [0.1] * 10)
    assert kept.paid[0] == 1.0


def test_a_step_that_asks_exactly_is_that_of_the_persons_own_session_and_costs_nothing() -> None:
    kept = memory(2)
    source = SessionSource(KEY, "p1")
    own = GuardedPlace(2.3, 48.8, source, source.step(60.0, 2.3, 48.8), lambda _epsilon, _label: None)
    told = own.report(0.01)
    assert kept.exactly(1, 60.0, np.array([2.3, 48.8])).report(0.01) == told
    assert kept.exactly(0, 60.0, np.array([2.3, 48.8])).report(0.01) != told
    assert kept.paid[:2].tolist() == [0, 0]
