"""A session: one person's positions over time, each answered with a place that may be published."""

import hashlib
import json
import math
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from geoind.arrays import FloatArray, as_finite, as_location
from geoind.budgets.ledger import Account, Ledger
from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError
from geoind.pipeline import Location
from geoind.randomness import KEY_BYTES
from geoind.traces.guarded import GuardedPlace, Place, Run, check_question
from geoind.traces.words import SEEN, SessionSource

if TYPE_CHECKING:
    from geoind.traces.zones import PrivateZone

__all__ = ["ANCHORS", "Past", "Published", "TraceMethod", "TraceSession", "changed", "session_tag"]

ANCHORS = 64
"""How many places a session remembers."""

Time: TypeAlias = float | datetime
"""A time: seconds since 1970, or an aware datetime."""

Apart: TypeAlias = Callable[[tuple[float, float]], FloatArray]
"""From a published place to its distances from many places."""


@dataclass(frozen=True)
class Published:
    """One answer of a session: when, where, and whether it is new among the places that the method remembers."""

    time: float
    lon: float
    lat: float
    fresh: bool

    @property
    def place(self) -> tuple[float, float]:
        """Longitude and latitude."""
        return self.lon, self.lat


@dataclass(frozen=True)
class Past:
    """All that a method may look at when it decides: what everybody has seen already.

    Parameters
    ----------
    time : float
        Now, in seconds.
    reports : tuple of Published
        What was answered so far, oldest first; only as many as a method asks to remember.
    anchors : tuple of (lon, lat)
        The places that can be answered again, oldest first: fresh reports, and the centre of a zone.
    run : Run, optional
        The run of tests that is going on.
    runs : int
        How many there have been.
    spent : float
        Epsilon so far, per metre.
    began : float
        When the session began, in seconds.
    counted : float
        How much of `spent` a `Rationed` method has counted against its allowance.
    used_until : float, optional
        The moment up to which the allowance is used up, in seconds.
    """

    time: float
    reports: tuple[Published, ...] = ()
    anchors: tuple[tuple[float, float], ...] = ()
    run: Run | None = None
    runs: int = 0
    spent: float = 0.0
    began: float = math.nan
    counted: float = 0.0
    used_until: float | None = None

    @property
    def last(self) -> Published:
        """The last answer."""
        return self.reports[-1]

    def published(self, after: "Past", place: Place, remembered: int, spent: float) -> "Past":
        """Return the past after this step's answer and its costs, of which a method made the past `after`."""
        new = after.anchors != self.anchors and place not in self.anchors
        reports = (*after.reports, Published(self.time, *place, new))
        return changed(after, reports=reports[-max(1, remembered) :], spent=spent)


def changed(past: Past, **values: object) -> Past:
    """Return a past with other values: what `dataclasses.replace` does, in a fifth of its time.

    Examples
    --------
    >>> changed(Past(0.0), time=60.0, runs=1).runs
    1
    """
    new = object.__new__(Past)
    new.__dict__.update(past.__dict__, **values)
    return new


class TraceMethod(Protocol):
    """How a session answers: a frozen value that can query the true location by private questions only.

    `answer` gets the public past and a `GuardedPlace`. It cannot read the truth, only ask questions about it that
    are private and paid for, so its decisions depend on public things and on paid answers alone.
    """

    def answer(self, past: Past, place: GuardedPlace) -> tuple[Past, tuple[float, float]]:
        """Return the past as it is after this step, and the longitude and latitude to publish.

        A new `run` in the past is paid for by the session at the end of the step.
        """
        ...

    def seen(self, past: Past, report: tuple[float, float]) -> Past:
        """Return the past after an answer, as everybody sees it."""
        ...

    def likelihood(
        self, past: Past, report: tuple[float, float], apart: "Apart", hidden: FloatArray
    ) -> FloatArray:
        """Return how probable an answer is for each of many true places: what an adversary computes.

        `apart` gives their distances to a published place, in metres; `hidden` are quantiles, (m, 1), of the noise
        that a run of tests shares: a row of the result for each, or one row if none is shared.
        """
        ...

    def price(self, past: Past, report: tuple[float, float]) -> float:
        """Return what an answer cost, as everybody can tell who knows the past before it."""
        ...

    @property
    def dearest(self) -> tuple[float, ...]:
        """The charges of the dearest step, one epsilon each; every step charges a part of them."""
        ...

    @property
    def remembered(self) -> int:
        """How many of its last answers the method looks at."""
        ...

    @property
    def tests_in_runs(self) -> bool:
        """Whether tests share noise until one says yes."""
        ...


Step: TypeAlias = tuple[Past, str, list[float], BaseException | None]
"""A session after a step: its past, the position that was answered, what was paid, and the error of its method."""


class _Bill:
    """The charges of one step: all that it may pay is reserved before its first question is answered."""

    __slots__ = ("_account", "_dearest", "_reserved", "paid", "refusal")

    def __init__(self, dearest: tuple[float, ...], account: Account | None) -> None:
        self._dearest, self._account = dearest, account
        self._reserved = False
        self.paid: list[float] = []
        self.refusal: BaseException | None = None

    def charge(self, epsilon: float, label: str) -> None:
        """Charge an epsilon; one of 0 is a question that was paid for before."""
        if epsilon and self.paid.count(epsilon) >= self._dearest.count(epsilon):
            raise InvalidInputError("a step must not charge more than its method's `dearest`")
        if self._account is not None:
            self._pay(self._account, epsilon, label)
        if epsilon:
            self.paid.append(epsilon)

    def _pay(self, account: Account, epsilon: float, label: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        try:
            if not self._reserved:
                account.reserve(self._dearest)
                self._reserved = True
            if epsilon:
                account.charge(epsilon, label=label)
        except BaseException as error:
            # A method may catch this error, but the step is refused: the transaction may be broken.
            self.refusal = error
            raise


class TraceSession:
    """One person's positions over time, each answered with a place that may be published.

    For two traces that are never more than D metres apart, everything that the session ever answered, together
    with `spent`, has probabilities within a factor e^(spent D).

    Parameters
    ----------
    method : TraceMethod
        `SparseVector.for_accuracy(500)` for people who stay, `Predictive...` or `Independent(epsilon)`.
    key : bytes, optional
        32 secret bytes: the same positions get the same answers again. Without it one is made. One key serves
        many persons if each session names its own.
    ledger : Ledger, optional
        Pays, and stores the newest state for each person and key. Every step goes on from that state, so all
        objects of one person, key and ledger are one session. A step that asks anything is refused, before
        anything is drawn, unless the budget pays for the method's dearest step; then it is charged for what it
        asked, and answered after charge and state are committed.
    person_id : str or int, optional
        Whose positions these are, and whose budget pays.
    zone : PrivateZone, optional
        Near the home, the answer is its centre. Entering and leaving are private and paid for.

    Attributes
    ----------
    costs : Counter
        How many charges of each epsilon this object has made.

    Examples
    --------
    >>> from geoind import TraceSession
    >>> from geoind.traces import SparseVector
    >>> session = TraceSession(SparseVector(fresh=0.01, test=0.02, limit=3000), key=bytes(32))
    >>> first = session.report(lat=48.8584, lon=2.2945, time=0)
    >>> first == session.report(lat=48.8585, lon=2.2946, time=300)  # staying is free
    True
    >>> TraceSession(SparseVector(fresh=0.01, test=0.02, limit=3000))
    TraceSession(SparseVector(fresh=0.01, test=0.02, limit=3000.0, choice=0.0, places=8), spent=0)
    """

    def __init__(
        self,
        method: TraceMethod,
        *,
        key: bytes | None = None,
        ledger: Ledger | None = None,
        person_id: str | int | None = None,
        zone: "PrivateZone | None" = None,
    ) -> None:
        if ledger is not None and person_id is None:
            raise InvalidInputError("ledger needs person_id: whose budget pays")
        if key is not None and (not isinstance(key, bytes) or len(key) != KEY_BYTES):
            raise InvalidInputError(f"key must be {KEY_BYTES} bytes")
        self.method = method
        secret = secrets.token_bytes(KEY_BYTES) if key is None else key
        # Two persons under one key must not share the noise of a run's limit.
        self._source = SessionSource(secret, "" if person_id is None else as_person(person_id))
        self._ledger, self._person, self._zone = ledger, person_id, zone
        self._tag = "" if ledger is None or person_id is None else session_tag(secret, person_id)
        self._past: Past | None = None
        self._seen = ""
        self._stored: str | None = None
        self.costs: Counter[float] = Counter()
        # Two threads would both go on from the same past, with one run paid for both.
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"TraceSession({self.method!r}, spent={self.spent:.6g})"

    @property
    def spent(self) -> float:
        """Epsilon of everything that the session answered up to this object's last step, per metre."""
        return 0.0 if self._past is None else self._past.spent

    @property
    def epsilon_per_hour(self) -> float:
        """What an hour cost on average, per metre; NaN before any time has passed."""
        past = self._past
        if past is None or not past.time > past.began:
            return math.nan
        return past.spent / ((past.time - past.began) / 3600)

    def report(self, *, lat: float, lon: float, time: Time) -> Location[float]:
        """Return the place to publish for a true position at a time.

        The last position at the same time again gets the same answer, free of charge. A time before the last one,
        or another position at the same time, is an error, and nothing is charged.
        """
        if not (type(lon) is type(lat) is float and -180 <= lon <= 180 and -90 <= lat <= 90):
            lon, lat = as_location(lon=lon, lat=lat)
        now = as_seconds(time)
        with self._lock:
            seed = self._source.step(now, lon, lat)
            first, second = self._source.pair(seed, 0.0, SEEN)
            seen = f"{first:016x}{second:016x}"
            if self._ledger is None or self._person is None:
                step = self._step(lon, lat, now, seed, seen, None)
            else:
                with self._ledger.locked(self._person) as account:
                    # Two objects that went on separately would ask different questions with the same noise, and
                    # no payment makes that private. So the ledger's state is the only one.
                    stored = account.session(self._tag)
                    if stored is not None and stored != self._stored:
                        self._past, self._seen = _parsed(stored)
                        self._stored = stored
                    step = self._step(lon, lat, now, seed, seen, account)
                    if step[0] is not self._past:
                        stored = _state(step[0], step[1])
                        account.save_session(self._tag, stored)
                self._stored = stored
            # Charges and state are committed, so the session advances.
            self._past, self._seen, paid, failure = step
            for cost in paid:
                self.costs[cost] += 1
            if failure is not None:
                raise failure
            last = self._past.last
            return Location(last.lat, last.lon)

    def _step(self, lon: float, lat: float, now: float, seed: int, seen: str, account: Account | None) -> Step:
        """Return the session's next step, which is not yet taken; an error of the ledger is raised."""
        method, zone, past = self.method, self._zone, self._past
        if past is not None and now <= past.time:
            if now == past.time and seen == self._seen:
                return past, seen, [], None
            what = "a time before the last one"
            if now == past.time:
                what = "another position at the same time" if self._seen else "the time of a step that failed"
            rule = "the positions of a session come in order"
            if account is not None:
                rule += ", and a ledger has one session per person and key"
            raise InvalidInputError(f"{what}: {rule}")
        before = Past(now, began=now) if past is None else changed(past, time=now)
        bill = _Bill(method.dearest if zone is None else zone.dearest(method), account)
        place = GuardedPlace(lon, lat, self._source, seed, bill.charge, before.run)
        try:
            after, report = method.answer(before, place) if zone is None else zone.answer(method, before, place)
            if after.run is not place.run and after.run is not None and after.run != place.run:
                check_question(after.run.epsilon, (after.run.place,))
                bill.charge(after.run.epsilon, f"tests until a move, run {after.run.number}")
        except BaseException as error:
            if bill.refusal is not None:
                raise bill.refusal from None
            if not place.questions:
                raise
            # Whether a method fails may depend on an answer: what was paid stays paid, a run that said yes is
            # over, and the step cannot be asked again, because other questions would have the same noise.
            failed = changed(past or before, time=now, run=place.run, spent=math.fsum([before.spent, *bill.paid]))
            return failed, "", bill.paid, error
        if bill.refusal is not None:
            raise bill.refusal
        spent = math.fsum([before.spent, *bill.paid]) if bill.paid else before.spent
        return before.published(after, report, method.remembered, spent), seen, bill.paid, None

    def state(self) -> str:
        """Return what `resume` needs in addition to the method and the key, as JSON.

        It contains what was published and what was spent, and no true position.

        Examples
        --------
        >>> from geoind.traces import SparseVector
        >>> method = SparseVector(fresh=0.01, test=0.02, limit=3000)
        >>> session = TraceSession(method, key=bytes(32))
        >>> before = session.report(lat=48.8584, lon=2.2945, time=0)
        >>> again = TraceSession.resume(session.state(), method, key=bytes(32))
        >>> again.report(lat=48.8584, lon=2.2945, time=60) == before, again.spent == session.spent
        (True, True)
        """
        with self._lock:
            return _state(self._past, self._seen)

    @classmethod
    def resume(
        cls,
        state: str,
        method: TraceMethod,
        *,
        key: bytes,
        ledger: Ledger | None = None,
        person_id: str | int | None = None,
        zone: "PrivateZone | None" = None,
    ) -> "TraceSession":
        """Return the session that `state` describes; it goes on as if it had never stopped.

        A ledger that stores a state for this person and key goes on from its own.
        """
        session = cls(method, key=key, ledger=ledger, person_id=person_id, zone=zone)
        session._past, session._seen = _parsed(state)
        return session


def as_seconds(time: Time) -> float:
    """Return seconds since 1970; a datetime must know its time zone."""
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise InvalidInputError("time must have a time zone, or be seconds")
        return time.timestamp()
    return as_finite(time, "time")


def session_tag(key: bytes, person: str | int) -> str:
    """Return the name under which a ledger stores the session of a person and a key.

    Examples
    --------
    >>> len(session_tag(bytes(32), "ana")), session_tag(bytes(32), "ana") == session_tag(bytes(32), "ben")
    (32, False)
    """
    name = as_person(person).encode()
    return hashlib.blake2b(name, key=key, digest_size=16, person=b"geoind session").hexdigest()


def _state(past: Past | None, seen: str) -> str:
    """Return the state of a session as JSON."""
    return json.dumps({"past": None if past is None else asdict(past), "seen": seen})


def _parsed(state: str) -> tuple[Past | None, str]:
    """Return the past of a state, and the tag of its last position."""
    try:
        stored = json.loads(state)
        seen, past = str(stored["seen"]), stored["past"]
        if past is None:
            return None, seen
        past["reports"] = tuple(Published(**report) for report in past["reports"])
        past["anchors"] = tuple((float(lon), float(lat)) for lon, lat in past["anchors"])
        past["run"] = None if past["run"] is None else _run_of(past["run"])
        return Past(**past), seen
    except (ValueError, KeyError, TypeError):
        raise InvalidInputError("state must be what TraceSession.state returned") from None


def _run_of(stored: Mapping[str, Any]) -> Run:
    """Return the run of a session's state."""
    lon, lat = stored["place"]
    return Run(int(stored["number"]), float(stored["epsilon"]), (float(lon), float(lat)))
