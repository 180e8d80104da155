"""A budget that lasts: so much an hour and never more, whatever the person does."""

from dataclasses import dataclass

import numpy as np

from geoind.arrays import FloatArray, as_positive
from geoind.errors import InvalidInputError
from geoind.traces.guarded import GuardedPlace, Place
from geoind.traces.session import Apart, Past, TraceMethod, changed

__all__ = ["Rationed"]

HOUR = 3600.0


@dataclass(frozen=True)
class Rationed:
    """A method with an allowance: in any H hours it spends at most `per_hour` * (H + `saved`).

    The allowance grows with the time. A step is answered by the method if the most that it may cost is there;
    otherwise the last answer is given again, without a question and free of charge. The rule looks at the time and
    at what was spent, so it reveals nothing more. A private zone pays on top, once each time the session enters
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
    >>> from geoind.traces import Independent
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
        for name in ("per_hour", "saved"):
            object.__setattr__(self, name, as_positive(getattr(self, name), name))
        if not self.per_hour * self.saved >= sum(self.dearest):
            raise InvalidInputError(
                f"per_hour * saved must pay for one answer, {sum(self.dearest):.6g} per metre, "
                f"got {self.per_hour * self.saved:.6g}"
            )

    @property
    def remembered(self) -> int:
        """What the method looks at."""
        return self.method.remembered

    @property
    def tests_in_runs(self) -> bool:
        """Whether tests share noise until one says yes."""
        return self.method.tests_in_runs

    @property
    def dearest(self) -> tuple[float, ...]:
        """The charges of the dearest step."""
        return self.method.dearest

    def price(self, past: Past, report: Place) -> float:
        """Return what an answer cost, as everybody can tell."""
        return self.method.price(past, report) if self._is_affordable(self._counted(past)) else 0.0

    def answer(self, past: Past, place: GuardedPlace) -> tuple[Past, Place]:
        """Return the method's answer, or the last one again."""
        past = self._counted(past)
        if not self._is_affordable(past):
            return past, past.last.place
        after, report = self.method.answer(past, place)
        return self._paid(past, after, report), report

    def seen(self, past: Past, report: Place) -> Past:
        """Return the past after an answer, as everybody sees it."""
        past = self._counted(past)
        return self._paid(past, self.method.seen(past, report), report) if self._is_affordable(past) else past

    def likelihood(self, past: Past, report: Place, apart: Apart, hidden: FloatArray) -> FloatArray:
        """Return the probability of the answer for each quantile of the shared noise and each true place."""
        past = self._counted(past)
        if self._is_affordable(past):
            return self.method.likelihood(past, report, apart, hidden)
        return np.full_like(apart(report), report == past.last.place)

    def _hours(self, past: Past) -> float:
        """Return how many hours of allowance are left."""
        return self.saved if past.used_until is None else min(self.saved, (past.time - past.used_until) / HOUR)

    def _paid(self, past: Past, after: Past, report: Place) -> Past:
        """Return the past after an answer with its price in the allowance."""
        cost = self.method.price(past, report)
        return changed(after, counted=past.spent + cost, used_until=self._used(past, cost)) if cost else after

    def _counted(self, past: Past) -> Past:
        """Return the past whose allowance also pays for what was spent outside the prices of answers.

        These are steps of a method that failed, and the tests of a private zone.
        """
        spent = past.spent - past.counted
        return changed(past, counted=past.spent, used_until=self._used(past, spent)) if spent > 0 else past

    def _used(self, past: Past, spent: float) -> float:
        return past.time - (self._hours(past) - spent / self.per_hour) * HOUR

    def _is_affordable(self, past: Past) -> bool:
        # A tolerance: an observer who adds up the prices of answers must come to the same decision.
        return self.per_hour * self._hours(past) >= sum(self.dearest) * (1 - 1e-9)
