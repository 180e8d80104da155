"""An audit of sequences refutes sessions that break their promise, and no others."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from geoind import TraceSession
from geoind.traces import Independent, Past, Predictive, SparseVector, TraceMethod, audit_traces
from geoind.traces.comparison import Noise, Quantity, at_least
from geoind.traces.guarded import GuardedPlace
from geoind.traces.laws import shares
from geoind.traces.words import LIMIT
from tests.traces.walks import LAT, LON, METRE

Place = tuple[float, float]
METHODS: list[TraceMethod] = [
    Independent(0.004),
    Predictive(0.003, 0.004, 500.0),
    SparseVector(0.004, 0.005, 500.0),
    SparseVector(0.004, 0.005, 500.0, 0.003),
]


def walk(metres: list[float]) -> list[tuple[float, float, float]]:
    return [(60.0 * step, LON, LAT + METRE * north) for step, north in enumerate(metres)]


SILENT_THEN_YES = (walk([0, 0, 300, 300, 300, 900]), walk([0, 0, 100, 100, 100, 1100]))


def sessions(method: TraceMethod) -> Callable[[], TraceSession]:
    keys = (number.to_bytes(32) for number in itertools.count())
    return lambda: TraceSession(method, key=next(keys))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_an_audit_of_sequences_does_not_refute_a_session(method: TraceMethod) -> None:
    found = audit_traces(sessions(method), *SILENT_THEN_YES, draws=400)
    assert not found.refuted
    assert found.loss >= 0


@dataclass(frozen=True)
class Leaking(SparseVector):
    """Draws the limit's noise once and none for the tests."""

    def answer(self, past: Past, place: GuardedPlace) -> tuple[Past, Place]:
        original = GuardedPlace.has_left
        GuardedPlace.has_left = _without_noise  # type: ignore[method-assign]
        try:
            return super().answer(past, place)
        finally:
            GuardedPlace.has_left = original  # type: ignore[method-assign]


def _without_noise(self: GuardedPlace, limit: float) -> bool:
    run = self.run
    assert run is not None
    words = self._source.stream(self._source.run(run.number, *run.place), run.epsilon, LIMIT)
    bar = Noise(words, 1 / shares(run.epsilon)[0], signed=True)
    return at_least(Quantity.distance(self._lon, self._lat, run.place, None), Quantity(bar, limit))


def test_an_audit_of_sequences_refutes_tests_without_noise() -> None:
    # Silent where the second trace is farther than where its test says yes: impossible there, if only T is noisy.
    traces = (walk([0, 295, 305]), walk([0, 305, 295]))
    wrong, right = Leaking(0.03, 0.03, 300.0), SparseVector(0.03, 0.03, 300.0)
    assert audit_traces(sessions(wrong), *traces, draws=8000).refuted
    assert not audit_traces(sessions(right), *traces, draws=2000).refuted
