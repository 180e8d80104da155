"""How a session answers somebody who stays: with silence, until a private test finds that the person has moved."""

import math
from dataclasses import dataclass

import numpy as np

from geoind.arrays import FloatArray, as_count, as_positive
from geoind.errors import InvalidInputError
from geoind.traces.guarded import GuardedPlace, Place, Run
from geoind.traces.laws import (
    enough_metres,
    epsilon_within,
    has_left,
    laplace_density,
    laplace_quantile,
    noisy_minimum,
    run_quantile,
    shares,
)
from geoind.traces.session import ANCHORS, Apart, Past, changed

__all__ = ["SparseVector"]


@dataclass(frozen=True)
class SparseVector:
    """Somebody who stays pays nothing: the last report holds until a private test finds that the person has moved.

    Each fresh report starts a run of tests, paid for once: "no" is free however often it is answered, the first
    "yes" ends the run. Then either a place reported earlier is chosen privately, for somebody who has come back to
    it, or a fresh report is made. A person who never stays pays more than with `Independent`.

    Parameters
    ----------
    fresh : float
        Epsilon of a fresh report, per metre.
    test : float
        Epsilon of all tests until the person has moved, per metre.
    limit : float
        How far from the last report the person may go, in metres, before noise.
    choice : float
        Epsilon of the choice among places reported earlier, per metre; 0 to make a fresh report each time.
    places : int
        How many earlier places to choose among.

    Examples
    --------
    >>> from geoind import TraceSession
    >>> method = SparseVector(fresh=0.01, test=0.02, limit=3000)
    >>> session = TraceSession(method)
    >>> for quarter in range(12):
    ...     _ = session.report(lat=48.8584, lon=2.2945, time=900 * quarter)
    >>> session.spent == method.fresh + method.test  # of one report and its tests, however long one stays
    True
    """

    fresh: float
    test: float
    limit: float
    choice: float = 0.0
    places: int = 8

    def __post_init__(self) -> None:
        for name in ("fresh", "test", "limit"):
            object.__setattr__(self, name, as_positive(getattr(self, name), name))
        if not 0 <= self.choice < math.inf:
            raise InvalidInputError(f"choice must be 0 or positive and finite, got {self.choice!r}")
        if as_count(self.places, "places") > ANCHORS:
            raise InvalidInputError(f"places must be at most {ANCHORS}, got {self.places}")

    @classmethod
    def for_accuracy(cls, metres: float, *, confidence: float = 0.9) -> "SparseVector":
        """Return the method whose fresh reports are within so many metres with this probability.

        Tests cost as much as a report and begin at three times the distance, where false alarms are rare; a choice
        costs half as much. A silent answer may be farther off: somebody may settle short of the limit. `within` is
        for those who need to rely on each answer, and costs more.
        """
        return cls._for(enough_metres(metres, confidence), confidence)

    @classmethod
    def _for(cls, metres: float, confidence: float) -> "SparseVector":
        fresh = epsilon_within(metres, confidence)
        return cls(fresh, fresh, 3 * metres, fresh / 2)

    @classmethod
    def within(cls, metres: float, *, confidence: float = 0.9) -> "SparseVector":
        """Return the method whose answers are within so many metres at every step, with this probability.

        The budget manager for a wanted accuracy. A fresh report is farther off with a probability of
        1 - `confidence` at most; and, from the moment a report is made, at any one later step the probability that
        it is still the answer and the person farther than `metres` from it is 1 - `confidence` at most, wherever
        the person goes.

        Examples
        --------
        >>> method = SparseVector.within(500)
        >>> method.limit
        375.0
        """
        fresh = epsilon_within(enough_metres(metres, confidence), confidence)
        # Three quarters of the way to the limit, the rest for the noise of tests; reports twice as good as asked
        # for, or tests would end runs that have hardly begun. Near the least budget for a commuter.
        return cls(2 * fresh, 4 * run_quantile(confidence) / metres, 0.75 * metres)

    @classmethod
    def for_rate(cls, epsilon: float, *, moves: float, confidence: float = 0.9) -> "SparseVector":
        """Return the most accurate method that costs epsilon per hour if so many moves an hour are answered.

        The budget manager for a wanted rate; `moves` is guessed from *public* data: a commuter makes about one
        in two hours. Nothing guarantees it: `Rationed` does.

        Examples
        --------
        >>> method = SparseVector.for_rate(0.01, moves=0.5)
        >>> round(sum(method.dearest) * 0.5, 12)
        0.01
        """
        unit = cls._for(1.0, confidence)
        metres = sum(unit.dearest) * as_positive(moves, "moves") / as_positive(epsilon, "epsilon")
        return cls.for_accuracy(metres, confidence=confidence)

    @property
    def dearest(self) -> tuple[float, ...]:
        """The charges of the dearest step: a choice, a fresh report and the next run of tests."""
        return (self.choice, self.fresh, self.test) if self.choice else (self.fresh, self.test)

    def price(self, past: Past, report: Place) -> float:
        """Return what an answer cost, as everybody can tell."""
        if past.reports and report == past.last.place:
            return 0.0
        known = self._known(past) if past.reports and self.choice else ()
        return self.test + (self.choice if known else 0.0) + (0.0 if report in known else self.fresh)

    @property
    def remembered(self) -> int:
        """Only the last answer matters; places are remembered apart."""
        return 1

    @property
    def tests_in_runs(self) -> bool:
        """Whether tests share noise until one says yes."""
        return True

    def answer(self, past: Past, place: GuardedPlace) -> tuple[Past, Place]:
        """Return the last report again, one of the earlier ones, or a fresh one."""
        if past.run is not None and not place.has_left(self.limit):
            return past, past.last.place
        found = self._earlier(self._known(past), place) if past.reports else None
        report = place.report(self.fresh) if found is None else found
        return self._moved(past, Run(past.runs, self.test, report)), report

    def seen(self, past: Past, report: Place) -> Past:
        """Return the past after an answer, as everybody sees it."""
        if past.reports and report == past.last.place:
            return past
        return self._moved(past, Run(past.runs, self.test, report))

    def likelihood(self, past: Past, report: Place, apart: Apart, hidden: FloatArray) -> FloatArray:
        """Return the probability of the answer for each quantile of the limit's noise and each true place."""
        if not past.reports:
            return laplace_density(apart(report), self.fresh)
        for_limit, for_tests = shares(self.test)
        bar = self.limit + laplace_quantile(hidden, 1 / for_limit)
        left = has_left(bar, apart(past.last.place), 2 / for_tests)
        if past.run is None:
            left = np.ones_like(left)  # no test is going on: a place is looked for at once
        elif report == past.last.place:
            return 1 - left
        known = self._known(past)
        if not self.choice or not known:
            return left * laplace_density(apart(report), self.fresh)
        scores = [apart(place) for place in known]
        scores.append(np.full_like(scores[0], FAR * self.limit))
        chosen = known.index(report) if report in known else len(known)
        found = left * noisy_minimum(scores, chosen, self.choice)
        return found if report in known else found * laplace_density(apart(report), self.fresh)

    def _known(self, past: Past) -> tuple[Place, ...]:
        """Return the earlier places to choose among: those used last, without the present one."""
        here = past.last.place
        return tuple([place for place in past.anchors[-self.places - 1 :] if place != here][-self.places :])

    def _moved(self, past: Past, run: Run) -> Past:
        # The place that was used last is remembered longest.
        anchors = past.anchors
        if run.place in anchors:
            anchors = tuple([anchor for anchor in anchors if anchor != run.place])
        anchors = (*anchors, run.place)[-ANCHORS:]
        return changed(past, anchors=anchors, run=run, runs=past.runs + 1)

    def _earlier(self, known: tuple[Place, ...], place: GuardedPlace) -> Place | None:
        if not self.choice or not known:
            return None
        number = place.nearest(known, FAR * self.limit, self.choice)
        return None if number is None else known[number]


FAR = 1 / 3
"""A place reported earlier is chosen where it is nearer than about this many limits: as good as a report.

Farther saves up to a sixth of the budget, and lets people settle at places that they only passed by.
"""
