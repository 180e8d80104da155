"""Sessions that live in the ledger's database: any worker answers any person, restarts included."""

from dataclasses import dataclass, field
from typing import Protocol

from geoind.errors import InvalidInputError, SessionConflictError
from geoind.pipeline import Location
from geoind.randomness import KEY_BYTES
from geoind.traces.session import Payer, Time, TraceMethod, TraceSession, Zone

__all__ = ["SessionLedger", "SessionStore"]


class SessionLedger(Payer, Protocol):
    """What a `Ledger` is to a store of sessions."""

    def session(self, person: str | int) -> tuple[int, str] | None:
        """Return how often a person's session was saved, and its state."""
        ...

    def save_session(self, person: str | int, number: int, state: str) -> bool:
        """Save it for the time with this number, unless somebody else did."""
        ...


@dataclass(frozen=True)
class SessionStore:
    """One session per person, kept in the ledger's database between two reports.

    Each report loads the session, charges, draws, and saves before it answers. A worker that dies in between has
    published nothing; the same position at the same time again is answered with what was paid for. If two workers
    answer one person at the same time, one of them gets a `SessionConflictError` and publishes nothing: report
    again.

    Parameters
    ----------
    ledger : Ledger
        Pays and keeps the sessions. `ledger.forget(person)` deletes a session, too.
    method : TraceMethod
        How the sessions answer.
    key : bytes
        32 secret bytes, the same for all workers; each person's is derived from it.

    Examples
    --------
    >>> from geoind import Ledger
    >>> from geoind.traces import Independent
    >>> ledger = Ledger("sqlite://", budget=0.05)
    >>> store = SessionStore(ledger, Independent(0.01), bytes(32))
    >>> first = store.report("ana", lat=48.8584, lon=2.2945, time=0)
    >>> first == store.report("ana", lat=48.8584, lon=2.2945, time=0), ledger.remaining("ana")
    (True, 0.04)
    """

    ledger: SessionLedger
    method: TraceMethod
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.key, bytes) or len(self.key) != KEY_BYTES:
            raise InvalidInputError(f"key must be {KEY_BYTES} bytes")

    def report(
        self, person: str | int, *, lat: float, lon: float, time: Time, zone: Zone | None = None
    ) -> Location[float]:
        """Return the place to publish for a person's true position at a time.

        `zone` is the person's `PrivateZone`, the same at every report.
        """
        number, session = self._load(person, zone)
        before = session.state()
        try:
            answer = session.report(lat=lat, lon=lon, time=time)
        except Exception:
            # A test whose yes was given is over, also where the report after it could not be paid.
            self._save(person, number, before, session.state())
            raise
        self._save(person, number, before, session.state())
        return answer

    def spent(self, person: str | int) -> float:
        """Return epsilon of everything that a person's session answered, per metre."""
        return self._load(person)[1].spent

    def _load(self, person: str | int, zone: Zone | None = None) -> tuple[int, TraceSession]:
        kept = self.ledger.session(person)
        if kept is None:
            return 0, TraceSession(self.method, key=self.key, ledger=self.ledger, person=person, zone=zone)
        number, state = kept
        session = TraceSession.resume(
            state, self.method, key=self.key, ledger=self.ledger, person=person, zone=zone
        )
        return number, session

    def _save(self, person: str | int, number: int, before: str, after: str) -> None:
        if after != before and not self.ledger.save_session(person, number + 1, after):
            raise SessionConflictError("another worker answered this person at the same time: report again")
