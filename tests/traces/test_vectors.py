"""Sessions in arrays: for which methods there are some, and what their answers cost."""

import numpy as np
import pytest

from geoind import TraceSession
from geoind.traces import Independent, Predictive, Rationed, SparseVector, Switching, TraceMethod
from geoind.traces.memory import Batch
from geoind.traces.vectors import VectorSessions

KEY = bytes(range(32))
SPARSE = SparseVector.for_accuracy(500)
METHODS: dict[str, Independent | SparseVector | Switching] = {
    "independent": Independent(0.008),
    "sparse": SPARSE,
    "without memory": SparseVector(SPARSE.fresh, SPARSE.test, SPARSE.limit),
    "switching": Switching(SPARSE, 2),
}


def batch(first: int, last: int) -> Batch:
    """Rows of two persons: one who stays, and one who goes a kilometre at every step."""
    steps = np.arange(first, last)
    home = np.column_stack([np.full(len(steps), 2.3), 48.8 + 1e-5 * (steps % 3)])
    walk = np.column_stack([np.full(len(steps), 2.3), 48.8 + 0.009 * steps])
    times = np.tile(300.0 * steps, 2)
    return Batch(np.array([0, 1]), np.array([0, len(steps), 2 * len(steps)]), times, np.concatenate([home, walk]))


@pytest.mark.parametrize("name", METHODS)
def test_they_answer_and_cost_what_each_persons_own_session_does(name: str) -> None:
    many = VectorSessions(METHODS[name], KEY)
    many.add(["ana", "ben"])
    parts = [batch(0, 7), batch(7, 30)]
    reports = [many.report(part) for part in parts]
    for number, person in enumerate(("ana", "ben")):
        alone = TraceSession(METHODS[name], key=KEY, person_id=person)
        for part, found in zip(parts, reports, strict=True):
            for row in range(part.starts[number], part.starts[number + 1]):
                lon, lat = part.lonlat[row].tolist()
                report = alone.report(lat=lat, lon=lon, time=part.times[row])
                assert [report.lon, report.lat] == found[row].tolist()
        assert many.spent(number) == alone.spent
        costs = many.costs(number)
        assert all(costs.values())
        assert sum(cost * count for cost, count in costs.items()) == pytest.approx(alone.spent)


def test_each_kind_of_answer_is_counted_at_its_own_cost() -> None:
    many = VectorSessions(Independent(0.008), KEY)
    many.add(["ana", "ben"])
    many.report(batch(0, 10))
    assert many.costs(0) == {0.008: 10}
    sparse = VectorSessions(SPARSE, KEY)
    sparse.add(["ana", "ben"])
    sparse.report(batch(0, 10))
    assert set(sparse.costs(1)) <= {SPARSE.fresh, SPARSE.test, SPARSE.choice}
    assert sparse.costs(0)[SPARSE.fresh] < sparse.costs(1)[SPARSE.fresh]


def test_persons_of_whom_nothing_was_asked_have_paid_nothing() -> None:
    many = VectorSessions(SPARSE, KEY)
    many.add(["ana", "ben", "cyd"])
    many.report(batch(0, 5))
    assert (many.costs(2), many.spent(2)) == ({}, 0)


class Own(SparseVector):
    """A method of somebody's own, which may answer otherwise."""


@pytest.mark.parametrize(
    ("method", "fits"),
    [
        (Independent(0.01), True),
        (SPARSE, True),
        (Switching(SPARSE), True),
        (Predictive.for_accuracy(500), False),
        (Rationed(SPARSE, 0.02), False),
        (Own(SPARSE.fresh, SPARSE.test, SPARSE.limit), False),
        (Switching(Own(SPARSE.fresh, SPARSE.test, SPARSE.limit)), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_only_methods_that_are_known_to_the_last_bit_have_arrays(method: TraceMethod, fits: bool) -> None:
    assert VectorSessions.fit(method) == fits
