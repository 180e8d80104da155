"""Sessions that are stored in the ledger's database: any worker answers any person, also after a restart."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from geoind.budgets.ledger import Account, Ledger
from geoind.errors import InvalidInputError
from geoind.pipeline import Location
from geoind.randomness import KEY_BYTES
from geoind.traces.session import Payer, Time, TraceMethod, TraceSession
from geoind.traces.zones import PrivateZone

__all__ = ["SessionStore"]


@dataclass(frozen=True)
class SessionStore:
    """One session per person, stored in the ledger's database between two reports.

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
        with self.ledger.locked(person) as account:
            session = self._session(account.session(), person, _Held(account), zone)
            before = session.state()
            failure: BaseException | None = None
            try:
                answer = session.report(lat=lat, lon=lon, time=time)
            except BaseException as error:
                if session.state() == before:
                    raise
                # A method failed after a question was answered: its charges and the end of its run are committed.
                failure = error
            if (after := session.state()) != before:
                account.save_session(after)
        if failure is not None:
            raise failure
        return answer

    def spent(self, person: str | int) -> float:
        """Return epsilon of everything that a person's session answered, per metre."""
        return self._session(self.ledger.session(person), person).spent

    def _session(
        self, state: str | None, person: str | int, ledger: Payer | None = None, zone: PrivateZone | None = None
    ) -> TraceSession:
        if state is None:
            return TraceSession(self.method, key=self.key, ledger=ledger, person=person, zone=zone)
        return TraceSession.resume(state, self.method, key=self.key, ledger=ledger, person=person, zone=zone)


@dataclass(frozen=True)
class _Held:
    """A ledger whose lock on the person is held already."""

    account: Account

    def locked(self, person: str | int) -> AbstractContextManager[Account]:  # noqa: ARG002
        """Return the account of the open transaction."""
        return nullcontext(self.account)
