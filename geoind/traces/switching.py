"""Silence for somebody who stays, fresh noise for somebody on the move: chosen by what everybody has seen."""

from dataclasses import dataclass

from geoind.arrays import FloatArray, as_count
from geoind.traces.guarded import GuardedPlace, Place
from geoind.traces.laws import laplace_density
from geoind.traces.session import Apart, Past, changed
from geoind.traces.sparse import SparseVector

__all__ = ["Switching"]

HOUR = 3600.0


@dataclass(frozen=True)
class Switching:
    """A sparse vector session that gives up testing for the rest of an hour with too many moves.

    Somebody who never stays pays for a test, a choice and a report at each step: 2.5 times the price of the report
    alone. After `moves` changes of the answer within one hour of the clock, the rest of that hour is answered with
    fresh reports, without tests. The rule looks at times and answers only.

    Parameters
    ----------
    stays : SparseVector
        How to answer somebody who stays.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "moves", as_count(self.moves, "moves"))

    @property
    def dearest(self) -> tuple[float, ...]:
        """The charges of the dearest step."""
        return self.stays.dearest

    def price(self, past: Past, report: Place) -> float:
        """Return what an answer cost, as everybody can tell."""
        return self.stays.fresh if self._is_moving(past) else self.stays.price(past, report)

    @property
    def remembered(self) -> int:
        """An hour of answers, if there is one every half a minute."""
        return 120

    @property
    def tests_in_runs(self) -> bool:
        """Whether tests share noise until one says yes."""
        return True

    def answer(self, past: Past, place: GuardedPlace) -> tuple[Past, Place]:
        """Return the answer of the sparse vector session, or a fresh report."""
        if not self._is_moving(past):
            return self.stays.answer(past, place)
        report = place.report(self.stays.fresh)
        return self.seen(past, report), report

    def seen(self, past: Past, report: Place) -> Past:
        """Return the past after an answer, as everybody sees it."""
        return changed(past, run=None) if self._is_moving(past) else self.stays.seen(past, report)

    def likelihood(self, past: Past, report: Place, apart: Apart, hidden: FloatArray) -> FloatArray:
        """Return the probability of the answer for each quantile of the limit's noise and each true place."""
        if self._is_moving(past):
            return laplace_density(apart(report), self.stays.fresh)
        return self.stays.likelihood(past, report, apart, hidden)

    def _is_moving(self, past: Past) -> bool:
        begin, left, later = past.time // HOUR * HOUR, self.moves, None
        # From the last answer back: a loop that ends early is quicker than all pairs.
        for report in reversed(past.reports):
            if report.time < begin:
                return False
            if later is not None and (report.lon != later.lon or report.lat != later.lat):
                left -= 1
                if not left:
                    return True
            later = report
        return False
