"""Sessions of many persons under one key, stored by the ledger: any worker answers any person."""

from dataclasses import dataclass, field

from geoind.budgets.ledger import Ledger
from geoind.errors import InvalidInputError
from geoind.pipeline import Location
from geoind.randomness import KEY_BYTES
from geoind.traces.session import Time, TraceMethod, TraceSession, session_tag
from geoind.traces.zones import PrivateZone

__all__ = ["SessionStore"]


@dataclass(frozen=True)
class SessionStore:
    """One session per person, which the ledger stores between two reports.

    Each report is one transaction that locks the person: it loads the session, charges, draws and saves, and the
    answer is returned after the commit. A worker that dies before the commit has charged and published nothing.
    The same position at the same time again is answered as before, free of charge. Workers that answer one person
    at the same time take turns.

    Parameters
    ----------
    ledger : Ledger
        Pays and stores the sessions. `ledger.forget(person)` deletes a session, too.
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

    ledger: Ledger
    method: TraceMethod
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.key, bytes) or len(self.key) != KEY_BYTES:
            raise InvalidInputError(f"key must be {KEY_BYTES} bytes")

    def report(
        self, person: str | int, *, lat: float, lon: float, time: Time, zone: PrivateZone | None = None
    ) -> Location[float]:
        """Return the place to publish for a person's true position at a time.

        `zone` is the person's `PrivateZone`, the same at every report.
        """
        session = TraceSession(self.method, key=self.key, ledger=self.ledger, person_id=person, zone=zone)
        return session.report(lat=lat, lon=lon, time=time)

    def spent(self, person: str | int) -> float:
        """Return epsilon of everything that a person's session answered, per metre."""
        state = self.ledger.session(person, session_tag(self.key, person))
        return 0.0 if state is None else TraceSession.resume(state, self.method, key=self.key).spent
