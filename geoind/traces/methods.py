"""How a session answers: the base of all methods, and those that need no run of tests.

A method is a frozen value. It gets the public history and asks a `GuardedPlace`; it cannot read the true location.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from geoind.arrays import FloatArray, as_positive, as_unit
from geoind.errors import InvalidInputError
from geoind.pipeline import epsilon_for
from geoind.traces.laws import enough_metres, epsilon_within, laplace_density, laplace_exceeds
from geoind.traces.questions import AboveThreshold, GuardedPlace, Place

__all__ = [
    "ANCHORS",
    "HOUR",
    "LOCATION_GUARD",
    "Cached",
    "Distances",
    "History",
    "Independent",
    "Predictive",
    "Rationed",
    "Report",
    "TraceMethod",
    "last_report",
    "straight_on",
]

ANCHORS = 64
"""How many places a session remembers."""

HOUR = 3600.0

Distances: TypeAlias = Callable[[Place], FloatArray]
"""From a published place to its distances from many places, in metres."""


class Report(NamedTuple):
    """One answer of a session: when, where, and whether it is new among the places that the method remembers.

    Examples
    --------
    >>> Report(0.0, 2.2945, 48.8584, fresh=True).place
    (2.2945, 48.8584)
    """

    time: float
    lon: float
    lat: float
    fresh: bool

    @property
    def place(self) -> Place:
        """Longitude and latitude."""
        return self.lon, self.lat


class History(NamedTuple):
    """The public history of a session, which is all that a method can read when it decides.

    Parameters
    ----------
    time : float
        Now, in seconds.
    reports : tuple of Report
        The answers so far, oldest first; only as many as the method remembers.
    anchors : tuple of (lon, lat)
        The places that can be answered again, oldest first: fresh reports, and the centre of a zone.
    run : AboveThreshold, optional
        The run of tests that is going on.
    runs : int
        How many runs there have been.
    spent : float
        Epsilon so far, per metre.
    began : float
        When the session began, in seconds.
    counted : float
        How much of `spent` a `Rationed` method has counted against its allowance.
    used_until : float, optional
        The moment up to which the allowance is used up, in seconds.

    Examples
    --------
    >>> History(60.0, reports=(Report(0.0, 2.2945, 48.8584, fresh=True),)).last.time
    0.0
    """

    time: float
    reports: tuple[Report, ...] = ()
    anchors: tuple[Place, ...] = ()
    run: AboveThreshold | None = None
    runs: int = 0
    spent: float = 0.0
    began: float = math.nan
    counted: float = 0.0
    used_until: float | None = None

    @property
    def last(self) -> Report:
        """The last answer."""
        return self.reports[-1]

    def published(self, after: "History", place: Place, remembered: int, spent: float) -> "History":
        """Return the history with this step's answer and its costs; `after` is what a method made of this one."""
        new = after.anchors != self.anchors and place not in self.anchors
        reports = (*after.reports, Report(self.time, *place, new))
        return after._replace(reports=reports[-max(1, remembered) :], spent=spent)

    def with_run(self, epsilon: float, place: Place) -> "History":
        """Return the history in which a run of tests against a published place begins.

        The place becomes the last anchor: of many, those used last are remembered.
        """
        anchors = self.anchors
        if place in anchors:
            anchors = tuple(anchor for anchor in anchors if anchor != place)
        run = AboveThreshold(self.runs, epsilon, place)
        return self._replace(anchors=(*anchors, place)[-ANCHORS:], run=run, runs=self.runs + 1)


class TraceMethod(ABC):
    """The base of all methods: how a session answers.

    `answer` gets the public history and a `GuardedPlace`, so its decisions depend on public things and on private
    answers that were paid for. The other methods are what an observer computes from the answers alone.

    Examples
    --------
    >>> class Silent(Independent):
    ...     def answer(self, history, place):
    ...         return history, (0.0, 0.0)
    >>> isinstance(Silent(0.01), TraceMethod)
    True
    """

    remembered = 1
    """How many of its last answers the method reads."""

    tests_in_runs = False
    """Whether tests share noise until one says yes."""

    @property
    @abstractmethod
    def max_charges(self) -> tuple[float, ...]:
        """The charges of the most expensive step, one epsilon each; every step charges a part of them."""

    @abstractmethod
    def answer(self, history: History, place: GuardedPlace) -> tuple[History, Place]:
        """Return the history after this step, and the longitude and latitude to publish.

        A new `run` in the history is paid for by the session at the end of the step.
        """

    @abstractmethod
    def seen(self, history: History, report: Place) -> tuple[History, float]:
        """Return the history after an answer, and what the answer cost, as an observer computes them."""

    @abstractmethod
    def likelihood(self, history: History, report: Place, apart: Distances, hidden: FloatArray) -> FloatArray:
        """Return how probable an answer is for each of many true places: what an adversary computes.

        `apart` gives their distances to a published place, in metres; `hidden` are quantiles, (m, 1), of the noise
        that a run of tests shares: a row of the result for each, or one row if none is shared.
        """


def _all_positive(method: TraceMethod, *names: str) -> None:
    """Check the numbers of a frozen value, and store them as floats."""
    for name in names:
        object.__setattr__(method, name, as_positive(getattr(method, name), name))


@dataclass(frozen=True)
class Independent(TraceMethod):
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
        _all_positive(self, "epsilon")

    @classmethod
    def for_accuracy(cls, metres: float, *, confidence: float = 0.9) -> "Independent":
        """Return the least noise with which each report is within so many metres, with this probability."""
        return cls(epsilon_within(enough_metres(metres, confidence), confidence))

    @property
    def max_charges(self) -> tuple[float, ...]:
        """The charge of a step."""
        return (self.epsilon,)

    def answer(self, history: History, place: GuardedPlace) -> tuple[History, Place]:
        """Return a fresh report."""
        report = place.report(self.epsilon)
        return self.seen(history, report)[0], report

    def seen(self, history: History, report: Place) -> tuple[History, float]:
        """Return the history after a report, and its epsilon."""
        return history._replace(anchors=(report,)), self.epsilon

    def likelihood(self, history: History, report: Place, apart: Distances, hidden: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the probability density of the answer, for each true place."""
        return laplace_density(apart(report), self.epsilon)


@dataclass(frozen=True)
class Cached(TraceMethod):
    """A fresh report that is repeated for some minutes; then another fresh one.

    When a report is repeated depends on the clock alone, so it costs nothing. But a person who is at home all
    night pays again and again, and the mean of the reports approaches the home. `SparseVector` pays for moves
    instead.

    Parameters
    ----------
    epsilon : float
        Of each fresh report, per metre.
    minutes : float
        How long it is repeated.

    Examples
    --------
    >>> from geoind import TraceSession
    >>> session = TraceSession(Cached(0.01, minutes=10), key=bytes(32))
    >>> answers = {session.report(lat=48.8584, lon=2.2945, time=60 * minute) for minute in range(30)}
    >>> len(answers), round(session.spent, 12)
    (3, 0.03)
    """

    epsilon: float
    minutes: float

    remembered = 2
    """The fresh report, whose time counts, and the last answer."""

    def __post_init__(self) -> None:
        _all_positive(self, "epsilon", "minutes")

    @property
    def max_charges(self) -> tuple[float, ...]:
        """The charge of a fresh report."""
        return (self.epsilon,)

    def answer(self, history: History, place: GuardedPlace) -> tuple[History, Place]:
        """Return the report that is repeated, or a fresh one."""
        cached = self._cached(history)
        report = place.report(self.epsilon) if cached is None else cached.place
        return self.seen(history, report)[0], report

    def seen(self, history: History, report: Place) -> tuple[History, float]:
        """Return the history after an answer, and its price: 0 if it is a repetition."""
        cached = self._cached(history)
        if cached is None:
            return history._replace(reports=(), anchors=(report,)), self.epsilon
        return history._replace(reports=(cached,)), 0.0

    def likelihood(self, history: History, report: Place, apart: Distances, hidden: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the density of a fresh report for each true place; a repetition is certain."""
        cached = self._cached(history)
        if cached is None:
            return laplace_density(apart(report), self.epsilon)
        return np.full_like(apart(report), report == cached.place)

    def _cached(self, history: History) -> Report | None:
        """Return the fresh report, if it is still repeated."""
        if not history.reports:
            return None
        cached = history.reports[0]
        # The answers of a private zone are not fresh, and its centre is an anchor, too.
        if not cached.fresh or history.anchors != (cached.place,):
            return None
        return cached if history.time - cached.time < 60 * self.minutes else None


LOCATION_GUARD: Mapping[str, Cached] = MappingProxyType(
    {
        "low": Cached(epsilon_for(level=2, radius=200), minutes=10),
        "medium": Cached(epsilon_for(level=2, radius=500), minutes=30),
        "high": Cached(epsilon_for(level=2, radius=2000), minutes=60),
    }
)
"""The levels of the browser extension Location Guard: level 2 within a radius, a report cached for some minutes.

Its numbers, with geoind's exact noise and a ledger: `TraceSession(LOCATION_GUARD["medium"])`. Where the same place
should always have the same report: `SamePlace(key).obfuscate(epsilon=LOCATION_GUARD["medium"].epsilon, ...)`.
"""


def last_report(history: History) -> Place:
    """Predict that the person is where the last answer was.

    Examples
    --------
    >>> last_report(History(60.0, reports=(Report(0.0, 2.2945, 48.8584, fresh=True),)))
    (2.2945, 48.8584)
    """
    return history.last.place


def straight_on(history: History) -> Place:
    """Predict that the person goes on as between the last two fresh reports; at most as far again.

    Examples
    --------
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
        _all_positive(self, "test", "fresh", "limit")

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


@dataclass(frozen=True)
class Rationed(TraceMethod):
    """A method with an allowance: in any H hours it spends at most `per_hour` * (H + `saved`).

    The allowance grows with the time. A step is answered by the method if the most that it may cost is there;
    otherwise the last answer is given again, without a question and free of charge. The rule reads the time and
    what was spent, so it reveals nothing more. A private zone pays on top, once each time the session enters
    it, and the allowance is reduced by as much.

    Parameters
    ----------
    method : TraceMethod
        How to answer.
    per_hour : float
        Epsilon per hour, per metre: level / radius, as `epsilon_for(level, radius)` returns it.
    saved : float
        How many hours of allowance can be saved up for a busy time.

    Examples
    --------
    >>> from geoind import TraceSession, epsilon_for
    >>> method = Rationed(Independent(0.01), epsilon_for(level=4, radius=200), saved=1)  # 0.02 an hour
    >>> session = TraceSession(method)
    >>> for minute in range(180):
    ...     _ = session.report(lat=48.8584, lon=2.2945, time=60 * minute)
    >>> round(session.spent, 12) <= 0.02 * (3 + 1)
    True
    """

    method: TraceMethod
    per_hour: float
    saved: float = 24.0

    def __post_init__(self) -> None:
        _all_positive(self, "per_hour", "saved")
        if not self.per_hour * self.saved >= sum(self.max_charges):
            raise InvalidInputError(
                f"per_hour * saved must pay for one answer, {sum(self.max_charges):.6g} per metre, "
                f"got {self.per_hour * self.saved:.6g}"
            )

    @property
    def remembered(self) -> int:  # type: ignore[override]
        """What the method reads."""
        return self.method.remembered

    @property
    def tests_in_runs(self) -> bool:  # type: ignore[override]
        """Whether tests of the method share noise until one says yes."""
        return self.method.tests_in_runs

    @property
    def max_charges(self) -> tuple[float, ...]:
        """The charges of the most expensive step."""
        return self.method.max_charges

    def answer(self, history: History, place: GuardedPlace) -> tuple[History, Place]:
        """Return the method's answer, or the last one again."""
        history = self._counted(history)
        if not self._is_affordable(history):
            return history, history.last.place
        after, report = self.method.answer(history, place)
        return self._paid(history, after, self.method.seen(history, report)[1]), report

    def seen(self, history: History, report: Place) -> tuple[History, float]:
        """Return the history after an answer, and its price: 0 if there was no allowance."""
        history = self._counted(history)
        if not self._is_affordable(history):
            return history, 0.0
        after, price = self.method.seen(history, report)
        return self._paid(history, after, price), price

    def likelihood(self, history: History, report: Place, apart: Distances, hidden: FloatArray) -> FloatArray:
        """Return the probability of the answer for each quantile of the shared noise and each true place."""
        history = self._counted(history)
        if self._is_affordable(history):
            return self.method.likelihood(history, report, apart, hidden)
        return np.full_like(apart(report), report == history.last.place)

    def _hours(self, history: History) -> float:
        """Return how many hours of allowance are left."""
        if history.used_until is None:
            return self.saved
        return min(self.saved, (history.time - history.used_until) / HOUR)

    def _paid(self, history: History, after: History, price: float) -> History:
        """Return the history after an answer with its price in the allowance."""
        if not price:
            return after
        return after._replace(counted=history.spent + price, used_until=self._used(history, price))

    def _counted(self, history: History) -> History:
        """Return the history whose allowance also pays for what was spent outside the prices of answers.

        These are steps of a method that failed, and the tests of a private zone.
        """
        spent = history.spent - history.counted
        if not spent > 0:
            return history
        return history._replace(counted=history.spent, used_until=self._used(history, spent))

    def _used(self, history: History, spent: float) -> float:
        return history.time - (self._hours(history) - spent / self.per_hour) * HOUR

    def _is_affordable(self, history: History) -> bool:
        # A tolerance: an observer who adds up the prices of answers must come to the same decision.
        return self.per_hour * self._hours(history) >= sum(self.max_charges) * (1 - 1e-9)
