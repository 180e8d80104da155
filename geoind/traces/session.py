"""A session: one person's positions over time, each answered with a place that may be published."""

import hashlib
import json
import math
import secrets
import threading
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from geoind.arrays import as_finite, as_location
from geoind.budgets.ledger import Account, Ledger
from geoind.budgets.persons import as_person
from geoind.errors import InvalidInputError
from geoind.keys import KEY_BYTES, KeyLike, as_key
from geoind.pipeline import Location
from geoind.traces.methods import History, Report, TraceMethod
from geoind.traces.questions import AboveThreshold, GuardedPlace, check_question
from geoind.traces.words import SEEN, Block, SessionWords, as_words

if TYPE_CHECKING:
    from geoind.traces.zones import PrivateZone

__all__ = ["TraceSession", "session_tag"]

Time: TypeAlias = float | datetime
"""A time: seconds since 1970, or an aware datetime."""

Step: TypeAlias = tuple[History, str, list[float], BaseException | None]
"""A session after a step: its history, the tag of the answered position, what was paid, its method's error."""


class _Bill:
    """The charges of one step: all that it may pay is reserved before its first question is answered."""

    __slots__ = ("_account", "_max_charges", "_reserved", "paid", "refusal")

    def __init__(self, max_charges: tuple[float, ...], account: Account | None) -> None:
        self._max_charges, self._account = max_charges, account
        self._reserved = False
        self.paid: list[float] = []
        self.refusal: BaseException | None = None

    def charge(self, epsilon: float, label: str) -> None:
        """Charge an epsilon; one of 0 is a question that was paid for before."""
        if epsilon and self.paid.count(epsilon) >= self._max_charges.count(epsilon):
            raise InvalidInputError("a step must not charge more than its method's `max_charges`")
        if self._account is not None:
            self._pay(self._account, epsilon, label)
        if epsilon:
            self.paid.append(epsilon)

    def _pay(self, account: Account, epsilon: float, label: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        try:
            if not self._reserved:
                account.reserve(self._max_charges)
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
        How to answer, such as `SparseVector.for_accuracy(500)`.
    key : Key or bytes, optional
        32 secret bytes: the same positions get the same answers again. Without it one is made. One key serves
        many persons if each session names its own.
    ledger : Ledger, optional
        Pays, and stores the newest state for each person and key. Every step continues from that state, so all
        objects of one person, key and ledger are one session: any worker can make one for each report. A step that
        asks anything is refused, before anything is drawn, unless the budget pays for the method's most expensive
        step; then it is charged for what it asked, and answered after charge and state are committed.
    person_id : str or int, optional
        Whose positions these are, and whose budget pays.
    zone : PrivateZone, optional
        Near the home, the answer is its centre. Entering and leaving are private and paid for.

    Attributes
    ----------
    costs : Counter
        How many charges of each epsilon this object has made.

    See Also
    --------
    geoind.traces.SparseVector : For people who stay: pays for moves only.
    geoind.traces.Switching : The same for people who sometimes move all the time.
    geoind.traces.Independent : Fresh noise at every step.
    geoind.traces.Predictive : Fresh noise unless a prediction holds.
    geoind.traces.Cached : A report that is repeated for some minutes.
    geoind.traces.Rationed : Any of these with an allowance per hour.
    geoind.traces.PrivateZone : One answer around a home.
    geoind.traces.TraceMethod : The base of a method of your own.

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
        key: KeyLike | None = None,
        ledger: Ledger | None = None,
        person_id: str | int | None = None,
        zone: "PrivateZone | None" = None,
    ) -> None:
        if ledger is not None and person_id is None:
            raise InvalidInputError("ledger needs person_id: whose budget pays")
        self.method = method
        secret = secrets.token_bytes(KEY_BYTES) if key is None else as_key(key).read()
        self._words = SessionWords(secret)
        # Two persons under one key must not share the noise of a run's limit.
        self._person_words = self._words.person("" if person_id is None else as_person(person_id))
        self._ledger, self._person, self._zone = ledger, person_id, zone
        self._tag = "" if ledger is None or person_id is None else session_tag(secret, person_id)
        self._history: History | None = None
        self._seen = ""
        self._stored: str | None = None
        self.costs: Counter[float] = Counter()
        # Two threads would both continue from the same history, with one run paid for both.
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        spent = 0.0 if self._history is None else self._history.spent
        return f"TraceSession({self.method!r}, spent={spent:.6g})"

    @property
    def spent(self) -> float:
        """Epsilon of everything that the session answered, per metre; with a ledger, by any of its objects."""
        history = self._newest()
        return 0.0 if history is None else history.spent

    @property
    def epsilon_per_hour(self) -> float:
        """What an hour cost on average, per metre; NaN before any time has passed."""
        history = self._newest()
        if history is None or not history.time > history.began:
            return math.nan
        return history.spent / ((history.time - history.began) / 3600)

    def _newest(self) -> History | None:
        if self._ledger is None or self._person is None:
            return self._history
        stored = self._ledger.session(self._person, self._tag)
        return self._history if stored is None else _parsed(stored)[0]

    def report(self, *, lat: float, lon: float, time: Time) -> Location[float]:
        """Return the place to publish for a true position at a time.

        The last position at the same time again gets the same answer, free of charge. A time before the last one,
        or another position at the same time, is an error, and nothing is charged.
        """
        if not (type(lon) is type(lat) is float and -180 <= lon <= 180 and -90 <= lat <= 90):
            lon, lat = as_location(lon=lon, lat=lat)
        now = as_seconds(time)
        with self._lock:
            seed = self._words.steps(self._person_words, now, (lon, lat))
            first, second = as_words(self._words.pairs(seed, 0.0, SEEN))
            seen = f"{first:016x}{second:016x}"
            if self._ledger is None or self._person is None:
                step = self._step(lon, lat, now, seed, seen, None)
            else:
                with self._ledger.locked(self._person) as account:
                    # Two objects that continued separately would ask different questions with the same noise, and
                    # no payment makes that private. So the ledger's state is the only one.
                    stored = account.session(self._tag)
                    if stored is not None and stored != self._stored:
                        self._history, self._seen = _parsed(stored)
                        self._stored = stored
                    step = self._step(lon, lat, now, seed, seen, account)
                    if step[0] is not self._history:
                        stored = _state(step[0], step[1])
                        account.save_session(self._tag, stored)
                self._stored = stored
            # Charges and state are committed, so the session advances.
            self._history, self._seen, paid, failure = step
            for cost in paid:
                self.costs[cost] += 1
            if failure is not None:
                raise failure
            last = self._history.last
            return Location(last.lat, last.lon)

    def _step(self, lon: float, lat: float, now: float, seed: Block, seen: str, account: Account | None) -> Step:
        """Return the session's next step, which is not yet taken; an error of the ledger is raised."""
        method, zone, last = self.method, self._zone, self._history
        if last is not None and now <= last.time:
            if now == last.time and seen == self._seen:
                return last, seen, [], None
            what = "a time before the last one"
            if now == last.time:
                what = "another position at the same time" if self._seen else "the time of a step that failed"
            rule = "the positions of a session come in order"
            if account is not None:
                rule += ", and a ledger has one session per person and key"
            raise InvalidInputError(f"{what}: {rule}")
        before = History(now, began=now) if last is None else last._replace(time=now)
        bill = _Bill(method.max_charges if zone is None else zone.max_charges(method), account)
        place = GuardedPlace(lon, lat, self._words, self._person_words, seed, bill.charge, before.run)
        try:
            after, report = method.answer(before, place) if zone is None else zone.answer(method, before, place)
            if after.run is not None and after.run != place.run:
                check_question(after.run.epsilon, (after.run.place,))
                bill.charge(after.run.epsilon, f"tests until a move, run {after.run.number}")
        except BaseException as error:
            if bill.refusal is not None:
                raise bill.refusal from None
            if not place.questions:
                raise
            # Whether a method fails may depend on an answer: what was paid stays paid, a run that said yes is
            # over, and the step cannot be asked again, because other questions would have the same noise.
            spent = math.fsum([before.spent, *bill.paid])
            failed = (last or before)._replace(time=now, run=place.run, spent=spent)
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
            return _state(self._history, self._seen)

    @classmethod
    def resume(
        cls,
        state: str,
        method: TraceMethod,
        *,
        key: KeyLike,
        ledger: Ledger | None = None,
        person_id: str | int | None = None,
        zone: "PrivateZone | None" = None,
    ) -> "TraceSession":
        """Return the session that `state` describes; it continues as if it had never stopped.

        If the ledger stores a state for this person and key, that state is used instead.
        """
        session = cls(method, key=key, ledger=ledger, person_id=person_id, zone=zone)
        session._history, session._seen = _parsed(state)
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


def _state(history: History | None, seen: str) -> str:
    """Return the state of a session as JSON."""
    return json.dumps({"history": None if history is None else history._asdict(), "seen": seen})


def _parsed(state: str) -> tuple[History | None, str]:
    """Return the history of a state, and the tag of its last position."""
    try:
        stored = json.loads(state)
        seen, values = str(stored["seen"]), stored["history"]
        if values is None:
            return None, seen
        # JavaScript writes 60 for 60.0.
        for name in ("time", "spent", "began", "counted"):
            values[name] = float(values[name])
        values["reports"] = tuple(
            Report(float(time), float(lon), float(lat), bool(fresh)) for time, lon, lat, fresh in values["reports"]
        )
        values["anchors"] = tuple((float(lon), float(lat)) for lon, lat in values["anchors"])
        if values["run"] is not None:
            number, epsilon, (lon, lat) = values["run"]
            values["run"] = AboveThreshold(int(number), float(epsilon), (float(lon), float(lat)))
        return History(**values), seen
    except (ValueError, KeyError, TypeError):
        raise InvalidInputError("state must be what TraceSession.state returned") from None
