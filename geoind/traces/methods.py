"""How a session answers: fresh noise at every step, or a prediction that is tested at every step.

Each is a frozen value that sees the public past and asks a `GuardedPlace`; none of them can read the truth.
"""

import math
from dataclasses import dataclass

from geoind.arrays import FloatArray, as_positive, as_unit
from geoind.errors import InvalidInputError
from geoind.traces.guarded import GuardedPlace, Place
from geoind.traces.laws import enough_metres, epsilon_within, laplace_density, laplace_exceeds
from geoind.traces.predictors import Predictor, last_report
from geoind.traces.session import ANCHORS, Apart, Past, changed

__all__ = ["Independent", "Predictive"]


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
        return cls(epsilon_within(enough_metres(metres, confidence), confidence))

    @property
    def dearest(self) -> tuple[float, ...]:
        """The charges of a step."""
        return (self.epsilon,)

    def price(self, past: Past, report: Place) -> float:  # noqa: ARG002
        """Return what an answer cost."""
        return self.epsilon

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
        return changed(past, anchors=(report,))

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
        From the public past to longitude and latitude: `last_report`, `straight_on`, or `LearnedMobility.predict`,
        learned from *public* data.

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

    def __post_init__(self) -> None:
        for name in ("test", "fresh", "limit"):
            object.__setattr__(self, name, as_positive(getattr(self, name), name))

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
    def dearest(self) -> tuple[float, ...]:
        """The charges of the dearest step: a test and a fresh report."""
        return self.test, self.fresh

    def price(self, past: Past, report: Place) -> float:
        """Return what an answer cost, as everybody can tell."""
        if not past.reports:
            return self.fresh
        return self.test if report == self.predictor(past) else self.test + self.fresh

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
        return changed(past, anchors=(*past.anchors, report)[-ANCHORS:])

    def likelihood(self, past: Past, report: Place, apart: Apart, hidden: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the probability of the prediction, or the density of a fresh report, for each true place."""
        if not past.reports:
            return laplace_density(apart(report), self.fresh)
        predicted = self.predictor(past)
        near = laplace_exceeds(apart(predicted) - self.limit, 1 / self.test)
        return near if report == predicted else (1 - near) * laplace_density(apart(report), self.fresh)


SKEW, TEST_SHARE = 0.8, 0.5
"""How the paper's authors balance the test's limit against its noise, and the test against the report."""
