"""A report that is repeated for a while, and the levels of Location Guard, which are made of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from geoind.arrays import FloatArray, as_positive
from geoind.pipeline import epsilon_for
from geoind.traces.guarded import GuardedPlace, Place
from geoind.traces.laws import laplace_density
from geoind.traces.session import Apart, Past, Published, changed

__all__ = ["LOCATION_GUARD", "Cached"]


@dataclass(frozen=True)
class Cached:
    """A fresh report, which is the answer again for so many minutes; then another fresh one.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "minutes", as_positive(self.minutes, "minutes"))

    @property
    def dearest(self) -> tuple[float, ...]:
        """The charges of the dearest step: a fresh report."""
        return (self.epsilon,)

    def price(self, past: Past, report: Place) -> float:  # noqa: ARG002
        """Return what an answer cost, as everybody can tell."""
        return self.epsilon if self._held(past) is None else 0.0

    @property
    def remembered(self) -> int:
        """The fresh report, whose time counts, and the last answer."""
        return 2

    @property
    def tests_in_runs(self) -> bool:
        """Whether tests share noise until one says yes."""
        return False

    def answer(self, past: Past, place: GuardedPlace) -> tuple[Past, Place]:
        """Return the report that is held, or a fresh one."""
        held = self._held(past)
        report = place.report(self.epsilon) if held is None else held.place
        return self.seen(past, report), report

    def seen(self, past: Past, report: Place) -> Past:
        """Return the past after an answer, as everybody sees it."""
        held = self._held(past)
        if held is None:
            return changed(past, reports=(), anchors=(report,))
        return changed(past, reports=(held,))

    def likelihood(self, past: Past, report: Place, apart: Apart, hidden: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the density of a fresh report for each true place; a report that is held is certain."""
        held = self._held(past)
        if held is None:
            return laplace_density(apart(report), self.epsilon)
        return np.full_like(apart(report), report == held.place)

    def _held(self, past: Past) -> Published | None:
        """Return the fresh report, if it is still repeated."""
        if not past.reports:
            return None
        held = past.reports[0]
        # The answers of a private zone are not fresh, and its centre is an anchor, too.
        if not held.fresh or past.anchors != (held.place,):
            return None
        return held if past.time - held.time < 60 * self.minutes else None


LOCATION_GUARD: Mapping[str, Cached] = MappingProxyType(
    {
        "low": Cached(epsilon_for(level=2, radius=200), minutes=10),
        "medium": Cached(epsilon_for(level=2, radius=500), minutes=30),
        "high": Cached(epsilon_for(level=2, radius=2000), minutes=60),
    }
)
"""The levels of the browser extension Location Guard: level 2 within a radius, a report cached for some minutes.

Its numbers, with geoind's exact noise and a ledger: `TraceSession(LOCATION_GUARD["medium"])`. Where the same place
should be the same report for ever: `SamePlace(key).obfuscate(epsilon=LOCATION_GUARD["medium"].epsilon, ...)`.
"""
