"""The predictive mechanism: a private test of where the person probably is, and a fresh report if it fails."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from geoind.arrays import FloatArray, as_positive, as_unit
from geoind.errors import InvalidInputError
from geoind.traces.laws import enough_metres, epsilon_within, laplace_density, laplace_exceeds
from geoind.traces.methods import ANCHORS, Distances, History, TraceMethod, all_positive
from geoind.traces.questions import GuardedPlace, Place

__all__ = ["Predictive", "last_report", "straight_on"]


def last_report(history: History) -> Place:
    """Predict that the person is where the last answer was.

    Examples
    --------
    >>> from geoind.traces import History, Report
    >>> last_report(History(60.0, reports=(Report(0.0, 2.2945, 48.8584, fresh=True),)))
    (2.2945, 48.8584)
    """
    return history.last.place


def straight_on(history: History) -> Place:
    """Predict that the person goes on as between the last two fresh reports; at most as far again.

    Examples
    --------
    >>> from geoind.traces import History, Report
    >>> reports = (Report(0.0, 2.0, 48.0, fresh=True), Report(60.0, 2.5, 48.5, fresh=True))
    >>> straight_on(History(90.0, reports=reports))
    (2.75, 48.75)
    """
    fresh = [report for report in history.reports if report.fresh][-2:]
    if len(fresh) < 2 or not fresh[1].time > fresh[0].time:
        return history.last.place
    share = min(1.0, (history.time - fresh[1].time) / (fresh[1].time - fresh[0].time))
    turn = (fresh[1].lon - fresh[0].lon + 180) % 360 - 180
    lon = (fresh[1].lon + share * turn + 180) % 360 - 180
    lat = fresh[1].lat + share * (fresh[1].lat - fresh[0].lat)
    return lon, max(-90.0, min(90.0, lat))


Predictor: TypeAlias = Callable[[History], Place]
"""From the public history to where the person probably is: longitude and latitude."""

SKEW, TEST_SHARE = 0.8, 0.5
"""How the paper's authors balance the test's limit against its noise, and the test against the report."""


@dataclass(frozen=True)
class Predictive(TraceMethod):
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
        From the public history to longitude and latitude: `last_report`, `straight_on`, or
        `LearnedMobility.predict`, learned from *public* data.

    Examples
    --------
    >>> from geoind import TraceSession
    >>> method = Predictive.for_accuracy(500)
    >>> session = TraceSession(method, key=bytes(range(32)))
    >>> first = session.report(lat=48.8584, lon=2.2945, time=0)
    >>> first == session.report(lat=48.8585, lon=2.2946, time=300), session.spent == method.fresh + method.test
    (True, True)
    """

    test: float
    fresh: float
    limit: float
    predictor: Predictor = last_report

    remembered = 100
    """Enough for the last two fresh reports in most traces."""

    def __post_init__(self) -> None:
        all_positive(self, "test", "fresh", "limit")

    @classmethod
    def for_accuracy(
        cls, metres: float, *, confidence: float = 0.9, predictor: Predictor = last_report
    ) -> "Predictive":
        """Return the method whose fresh reports are within so many metres with this probability.

        The paper's budget manager for a wanted accuracy, with its balance of test and report: a prediction that is
        kept is within *twice* as many metres with this probability. To keep it within the metres themselves a test
        would cost as much as a report; `SparseVector.within` does that, as its tests are paid for once.
        """
        return cls.for_any_accuracy(enough_metres(metres, confidence), confidence, predictor)

    @classmethod
    def for_any_accuracy(
        cls, metres: float, confidence: float, predictor: Predictor = last_report
    ) -> "Predictive":
        """Return `for_accuracy` without its check that the mean noise is at least 10 m."""
        fresh = epsilon_within(metres, confidence)
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
        unit = cls.for_any_accuracy(1.0, confidence)
        metres = (unit.test + (1 - easy_share) * unit.fresh) / epsilon
        return cls.for_accuracy(metres, confidence=confidence, predictor=predictor)

    @property
    def max_charges(self) -> tuple[float, ...]:
        """The charges of the most expensive step: a test and a fresh report."""
        return self.test, self.fresh

    def answer(self, history: History, place: GuardedPlace) -> tuple[History, Place]:
        """Return the prediction if a private test finds it near, else a fresh report."""
        if history.reports:
            predicted = self.predictor(history)
            if place.is_near(predicted, self.limit, self.test):
                return history, predicted
        report = place.report(self.fresh)
        return self.seen(history, report)[0], report

    def seen(self, history: History, report: Place) -> tuple[History, float]:
        """Return the history after an answer, and its price: a test, and a report unless it was predicted."""
        if history.reports and report == self.predictor(history):
            return history, self.test
        after = history._replace(anchors=(*history.anchors, report)[-ANCHORS:])
        return after, self.test + self.fresh if history.reports else self.fresh

    def likelihood(self, history: History, report: Place, apart: Distances, hidden: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the probability of the prediction, or the density of a fresh report, for each true place."""
        if not history.reports:
            return laplace_density(apart(report), self.fresh)
        predicted = self.predictor(history)
        near = laplace_exceeds(apart(predicted) - self.limit, 1 / self.test)
        return near if report == predicted else (1 - near) * laplace_density(apart(report), self.fresh)
