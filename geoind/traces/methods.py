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

from geoind.arrays import FloatArray, as_positive
from geoind.errors import InvalidInputError
from geoind.pipeline import epsilon_for
from geoind.traces.laws import enough_metres, epsilon_within, laplace_density
from geoind.traces.questions import AboveThreshold, GuardedPlace, Place

__all__ = [
    "ANCHORS",
    "HOUR",
    "LOCATION_GUARD",
    "Cached",
    "Distances",
    "History",
    "Independent",
    "Rationed",
    "Report",
    "TraceMethod",
    "all_positive",
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


def all_positive(method: TraceMethod, *names: str) -> None:
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
        all_positive(self, "epsilon")

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
        all_positive(self, "epsilon", "minutes")

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
        all_positive(self, "per_hour", "saved")
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
