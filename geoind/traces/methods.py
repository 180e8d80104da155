"""How a session answers: fresh noise at every step, a tested prediction, or silence until the person has moved.

Each is a frozen value that sees the public past and asks a `GuardedPlace`; none of them can read the truth.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from geoind.arrays import FloatArray, as_count, as_positive, as_unit
from geoind.errors import InvalidInputError
from geoind.mechanisms.laplace import PlanarLaplace
from geoind.traces.laws import laplace_density, laplace_exceeds, laplace_quantile, noisy_minimum, shares
from geoind.traces.session import Apart, GuardedPlace, Past

__all__ = ["Independent", "Place", "Predictive", "Predictor", "SparseVector", "last_report", "straight_on"]

Place: TypeAlias = tuple[float, float]

Predictor: TypeAlias = Callable[[Past], Place]
"""From what everybody has seen to where the person probably is: longitude and latitude."""


def last_report(past: Past) -> Place:
    """Return where the last answer was."""
    return past.last.place


def straight_on(past: Past) -> Place:
    """Return where somebody would be who goes on as between the last two fresh reports; at most as far again."""
    fresh = [report for report in past.reports if report.fresh][-2:]
    if len(fresh) < 2 or not fresh[1].time > fresh[0].time:
        return past.last.place
    share = min(1.0, (past.time - fresh[1].time) / (fresh[1].time - fresh[0].time))
    turn = (fresh[1].lon - fresh[0].lon + 180) % 360 - 180
    lon = (fresh[1].lon + share * turn + 180) % 360 - 180
    lat = fresh[1].lat + share * (fresh[1].lat - fresh[0].lat)
    return lon, max(-90.0, min(90.0, lat))


@dataclass(frozen=True)
class Independent:
    """Fresh noise at every step: n steps cost n * epsilon.

    Parameters
    ----------
    epsilon : float
        Of each report, per metre.

    Examples
    --------
    >>> from geoind import TraceSession
    >>> session = TraceSession(Independent(0.01), key=bytes(32))
    >>> for minute in range(3):
    ...     _ = session.report(lat=48.8584, lon=2.2945, time=60 * minute)
    >>> round(session.spent, 12)
    0.03
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_positive(self.epsilon, "epsilon"))

    @classmethod
    def for_accuracy(cls, metres: float, *, confidence: float = 0.9) -> "Independent":
        """Return the least noise with which each report is within so many metres, with this probability."""
        return cls(_epsilon_within(metres, confidence))

    @property
    def remembered(self) -> int:
        """None of its answers matter later."""
        return 1

    @property
    def tests_in_runs(self) -> bool:
        """Whether tests share noise until one says yes."""
        return False

    def answer(self, past: Past, place: GuardedPlace) -> tuple[Past, Place]:
        """Return a fresh report."""
        report = place.report(self.epsilon)
        return self.seen(past, report), report

    def seen(self, past: Past, report: Place) -> Past:
        """Return the past after an answer, as everybody sees it."""
        return replace(past, anchors=(report,))

    def likelihood(self, past: Past, report: Place, apart: Apart, hidden: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the probability density of the answer, for each true place."""
        return laplace_density(apart(report), self.epsilon)


@dataclass(frozen=True)
class Predictive:
    """The predictive mechanism (Chatzikokolakis, Palamidessi and Stronati, PETS 2014).

    Each step tests privately whether a prediction, made from past reports alone, is still near. If it is, the
    prediction is the answer and the step costs `test`; if not, a fresh report is, and the step costs
    `test + fresh`.

    Parameters
    ----------
    test, fresh : float
        Epsilon of the test and of a fresh report, per metre.
    limit : float
        How far the prediction may be off, in metres, before noise.
    predictor : callable
        From the public past to longitude and latitude: `last_report`, `straight_on`, or a model of mobility that
        was learned from *public* data.
    """

    test: float
    fresh: float
    limit: float
    predictor: Predictor = last_report

    def __post_init__(self) -> None:
        for name in ("test", "fresh", "limit"):
            object.__setattr__(self, name, as_positive(getattr(self, name), name))

    @classmethod
    def for_accuracy(
        cls, metres: float, *, confidence: float = 0.9, predictor: Predictor = last_report
    ) -> "Predictive":
        """Return the method whose answers are within so many metres, at every step with this probability.

        The budget manager for a wanted accuracy, with the paper's balance of test and report.
        """
        fresh = _epsilon_within(metres, confidence)
        linear = -math.log(2 * (1 - as_unit(confidence, "confidence"))) if confidence > 0.5 else math.log(2)
        test = TEST_SHARE * (linear / metres) * (1 + 1 / SKEW)
        return cls(test, fresh, linear / (SKEW * test), predictor)

    @classmethod
    def for_rate(
        cls, epsilon: float, *, easy_share: float, confidence: float = 0.9, predictor: Predictor = last_report
    ) -> "Predictive":
        """Return the most accurate method that costs epsilon per step on average.

        The budget manager for a wanted rate: `easy_share` is the share of steps at which predictions
        are expected to hold, guessed from *public* data. Nothing guarantees it, so a budget must stop the session.
        """
        if not 0 <= easy_share < 1:
            raise InvalidInputError(f"easy_share must be at least 0 and less than 1, got {easy_share!r}")
        as_positive(epsilon, "epsilon")
        unit = cls.for_accuracy(1.0, confidence=confidence)
        metres = (unit.test + (1 - easy_share) * unit.fresh) / epsilon
        return cls.for_accuracy(metres, confidence=confidence, predictor=predictor)

    @property
    def remembered(self) -> int:
        """Enough to see the last two fresh reports in most traces."""
        return 100

    @property
    def tests_in_runs(self) -> bool:
        """Whether tests share noise until one says yes."""
        return False

    def answer(self, past: Past, place: GuardedPlace) -> tuple[Past, Place]:
        """Return the prediction if a private test finds it near, else a fresh report."""
        if past.reports:
            predicted = self.predictor(past)
            if place.is_near(predicted, self.limit, self.test):
                return past, predicted
        report = place.report(self.fresh)
        return self.seen(past, report), report

    def seen(self, past: Past, report: Place) -> Past:
        """Return the past after an answer, as everybody sees it."""
        if past.reports and report == self.predictor(past):
            return past
        return replace(past, anchors=(*past.anchors, report)[-ANCHORS:])

    def likelihood(self, past: Past, report: Place, apart: Apart, hidden: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the probability of the prediction, or the density of a fresh report, for each true place."""
        if not past.reports:
            return laplace_density(apart(report), self.fresh)
        predicted = self.predictor(past)
        near = laplace_exceeds(apart(predicted) - self.limit, 1 / self.test)
        return near if report == predicted else (1 - near) * laplace_density(apart(report), self.fresh)


SKEW, TEST_SHARE = 0.8, 0.5
"""How the paper's authors balance the test's limit against its noise, and the test against the report."""

ANCHORS = 64
"""How many places a session remembers."""


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
        costs half as much.
        """
        fresh = _epsilon_within(metres, confidence)
        return cls(fresh, fresh, 3 * metres, fresh / 2)

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
        if past.run is not None and not place.has_left(past.last.place, self.limit, self.test, past.run):
            return past, past.last.place
        found = self._earlier(self._known(past), place) if past.reports else None
        report = place.report(self.fresh) if found is None else found
        place.begin_run(past.runs, self.test)
        return self._moved(past, report), report

    def seen(self, past: Past, report: Place) -> Past:
        """Return the past after an answer, as everybody sees it."""
        return past if past.reports and report == past.last.place else self._moved(past, report)

    def likelihood(self, past: Past, report: Place, apart: Apart, hidden: FloatArray) -> FloatArray:
        """Return the probability of the answer for each quantile of the limit's noise and each true place."""
        if not past.reports:
            return laplace_density(apart(report), self.fresh)
        for_limit, for_tests = shares(self.test)
        bar = self.limit + laplace_quantile(hidden, 1 / for_limit)
        left = laplace_exceeds(bar - apart(past.last.place), 2 / for_tests)
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
        return tuple(place for place in past.anchors if place != past.last.place)[-self.places :]

    def _moved(self, past: Past, report: Place) -> Past:
        # The place that was used last is remembered longest.
        anchors = (*(anchor for anchor in past.anchors if anchor != report), report)[-ANCHORS:]
        return replace(past, anchors=anchors, run=past.runs, runs=past.runs + 1)

    def _earlier(self, known: tuple[Place, ...], place: GuardedPlace) -> Place | None:
        if not self.choice or not known:
            return None
        number = place.nearest(known, FAR * self.limit, self.choice)
        return None if number is None else known[number]


FAR = 4 / 3
"""A place reported earlier is chosen where it is nearer than about this many limits."""


def _epsilon_within(metres: float, confidence: float) -> float:
    """Return the epsilon with which a report is within so many metres with this probability."""
    metres = as_positive(metres, "metres")
    return float(PlanarLaplace(1.0).radius_quantile(as_unit(confidence, "confidence"))) / metres
