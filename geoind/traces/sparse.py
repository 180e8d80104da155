"""Methods for people who stay: the last report is repeated until a private test finds a move."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from geoind.arrays import FloatArray, as_count, as_positive
from geoind.errors import InvalidInputError
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
from geoind.traces.methods import ANCHORS, HOUR, Distances, History, TraceMethod, all_positive
from geoind.traces.questions import GuardedPlace, Place

__all__ = ["FAR", "SparseVector", "Switching", "still_counts"]

FAR = 1 / 3
"""A place reported earlier is chosen where it is nearer than about this many limits: as good as a report.

Farther saves up to a sixth of the budget, and lets people settle at places that they only passed by.
"""


@dataclass(frozen=True)
class SparseVector(TraceMethod):
    """Staying is free: the last report is repeated until a private test finds that the person has moved.

    Each fresh report starts a run of tests, paid for once: "no" is free however often it is answered, the first
    "yes" ends the run. Then either a place reported earlier is chosen privately, if the person has come back to
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
    >>> session.spent == method.fresh + method.test  # one report and its tests, for a stay of any length
    True
    """

    fresh: float
    test: float
    limit: float
    choice: float = 0.0
    places: int = 8

    tests_in_runs = True

    def __post_init__(self) -> None:
        all_positive(self, "fresh", "test", "limit")
        if not 0 <= self.choice < math.inf:
            raise InvalidInputError(f"choice must be 0 or positive and finite, got {self.choice!r}")
        if as_count(self.places, "places") > ANCHORS:
            raise InvalidInputError(f"places must be at most {ANCHORS}, got {self.places}")

    @classmethod
    def for_accuracy(cls, metres: float, *, confidence: float = 0.9) -> "SparseVector":
        """Return the method whose fresh reports are within so many metres with this probability.

        Tests cost as much as a report and begin at three times the distance, where false alarms are rare; a choice
        costs half as much. A repeated answer may be farther off: the person may settle short of the limit. With
        `within` every answer is accurate, at a higher cost.
        """
        return cls.balanced(epsilon_within(enough_metres(metres, confidence), confidence), metres)

    @classmethod
    def balanced(cls, fresh: float, metres: float) -> "SparseVector":
        """Return the method of `for_accuracy` from the epsilon of a fresh report and its accuracy in metres.

        Examples
        --------
        >>> SparseVector.balanced(0.01, 400.0)
        SparseVector(fresh=0.01, test=0.01, limit=1200.0, choice=0.005, places=8)
        """
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
        >>> round(sum(method.max_charges) * 0.5, 12)
        0.01
        """
        unit = cls.balanced(epsilon_within(1.0, confidence), 1.0)
        metres = sum(unit.max_charges) * as_positive(moves, "moves") / as_positive(epsilon, "epsilon")
        return cls.for_accuracy(metres, confidence=confidence)

    @property
    def max_charges(self) -> tuple[float, ...]:
        """The charges of the most expensive step: a choice, a fresh report and the next run of tests."""
        return self.charges(choice=True, fresh=True)

    def charges(self, *, choice: bool, fresh: bool) -> tuple[float, ...]:
        """Return the charges of a step that begins a run, by whether it had a choice and made a fresh report."""
        return (self.choice,) * (choice and self.choice > 0) + (self.fresh,) * fresh + (self.test,)

    def answer(self, history: History, place: GuardedPlace) -> tuple[History, Place]:
        """Return the last report again, one of the earlier ones, or a fresh one."""
        if history.run is not None and not place.has_left(self.limit):
            return history, history.last.place
        known = self._known(history)
        number = place.nearest(known, FAR * self.limit, self.choice) if known else None
        report = place.report(self.fresh) if number is None else known[number]
        return history.with_run(self.test, report), report

    def seen(self, history: History, report: Place) -> tuple[History, float]:
        """Return the history after an answer, and its price: 0 if it is the last one again."""
        if history.reports and report == history.last.place:
            return history, 0.0
        known = self._known(history)
        return history.with_run(self.test, report), sum(
            self.charges(choice=bool(known), fresh=report not in known)
        )

    def likelihood(self, history: History, report: Place, apart: Distances, hidden: FloatArray) -> FloatArray:
        """Return the probability of the answer for each quantile of the limit's noise and each true place."""
        if not history.reports:
            return laplace_density(apart(report), self.fresh)
        for_limit, for_tests = shares(self.test)
        bar = self.limit + laplace_quantile(hidden, 1 / for_limit)
        left = has_left(bar, apart(history.last.place), 2 / for_tests)
        if history.run is None:
            left = np.ones_like(left)  # without a run of tests, a new answer is made at once
        elif report == history.last.place:
            return 1 - left
        known = self._known(history)
        if not known:
            return left * laplace_density(apart(report), self.fresh)
        scores = [apart(place) for place in known]
        scores.append(np.full_like(scores[0], FAR * self.limit))
        chosen = known.index(report) if report in known else len(known)
        found = left * noisy_minimum(scores, chosen, self.choice)
        return found if report in known else found * laplace_density(apart(report), self.fresh)

    def _known(self, history: History) -> tuple[Place, ...]:
        """Return the earlier places to choose among: those used last, without the present one."""
        if not history.reports or not self.choice:
            return ()
        here = history.last.place
        return tuple([place for place in history.anchors[-self.places - 1 :] if place != here][-self.places :])


def still_counts(now: Any, time: Any, ago: Any, remembered: int) -> Any:
    """Return whether the answer given at `time`, `ago` answers ago, is of this hour and still remembered.

    Numbers or arrays. `Switching` has seen too many moves if the answer before the last of them counts.
    """
    return (time >= now // HOUR * HOUR) & (ago <= remembered)


@dataclass(frozen=True)
class Switching(TraceMethod):
    """A sparse vector session that stops testing for the rest of an hour with too many moves.

    A person who never stays pays for a test, a choice and a report at each step: 2.5 times the price of the report
    alone. After `moves` changes of the answer within one hour of the clock, the rest of that hour is answered with
    fresh reports, without tests. The rule reads times and answers only.

    Parameters
    ----------
    stays : SparseVector
        How to answer a person who stays.
    moves : int
        How many moves an hour are too many.

    Examples
    --------
    >>> from geoind import TraceSession
    >>> session = TraceSession(Switching(SparseVector.for_accuracy(500)))
    >>> _ = session.report(lat=48.8584, lon=2.2945, time=0)
    """

    stays: SparseVector
    moves: int = 6

    tests_in_runs = True
    remembered = 120
    """An hour of answers, if there is one every half a minute."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "moves", as_count(self.moves, "moves"))

    @property
    def max_charges(self) -> tuple[float, ...]:
        """The charges of the most expensive step."""
        return self.stays.max_charges

    def answer(self, history: History, place: GuardedPlace) -> tuple[History, Place]:
        """Return the answer of the sparse vector session, or a fresh report."""
        if not self._is_moving(history):
            return self.stays.answer(history, place)
        report = place.report(self.stays.fresh)
        return self.seen(history, report)[0], report

    def seen(self, history: History, report: Place) -> tuple[History, float]:
        """Return the history after an answer, and its price."""
        if self._is_moving(history):
            return history._replace(run=None), self.stays.fresh
        return self.stays.seen(history, report)

    def likelihood(self, history: History, report: Place, apart: Distances, hidden: FloatArray) -> FloatArray:
        """Return the probability of the answer for each quantile of the limit's noise and each true place."""
        if self._is_moving(history):
            return laplace_density(apart(report), self.stays.fresh)
        return self.stays.likelihood(history, report, apart, hidden)

    def _is_moving(self, history: History) -> bool:
        left, later = self.moves, None
        for ago, report in enumerate(reversed(history.reports), 1):
            if not still_counts(history.time, report.time, ago, self.remembered):
                return False
            if later is not None and (report.lon != later.lon or report.lat != later.lat):
                left -= 1
                if not left:
                    return True
            later = report
        return False
