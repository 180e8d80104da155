"""Sessions of many persons at once: rows in, answers out, each person in the order of time."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, IntArray, as_floats, as_lonlat
from geoind.budgets.persons import PersonReports, as_person
from geoind.errors import InvalidInputError, plural
from geoind.keys import KeyLike, Words, as_key
from geoind.pipeline import Budget, Costs
from geoind.traces.methods import TraceMethod
from geoind.traces.session import TraceSession
from geoind.traces.vectors import array_sessions
from geoind.traces.words import SEEN, SessionWords

if TYPE_CHECKING:
    from geoind.traces.zones import PrivateZone

__all__ = ["TraceSessions", "obfuscate_traces", "tags_of_answers"]


class TraceSessions:
    """One session per person, for rows that come in batches; its memory is that of the persons, not of the rows.

    Rows are persons (each name once, as `as_person` returns it), the number of its person for each row, times in
    seconds, and (n, 2) longitudes and latitudes.

    Parameters
    ----------
    method : TraceMethod
        How the sessions answer.
    key : Key or bytes
        32 secret bytes: the same rows get the same answers again, however they are cut into batches.
    zones : sequence of PrivateZone, optional
        Private zones of some of the persons, each with its `person_id`. Their own cost is not part of `costs`.

    Examples
    --------
    >>> from geoind.traces import Independent
    >>> sessions = TraceSessions(Independent(0.01), bytes(32))
    >>> places = np.array([[2.29, 48.86], [2.35, 48.86]])
    >>> rows = ["ana"], np.array([0, 0]), np.array([0.0, 60.0]), places
    >>> sessions.flaws(*rows), sessions.report(*rows).shape, sessions.spent
    ({}, (2, 2), {'ana': 0.02})
    """

    def __init__(self, method: TraceMethod, key: KeyLike, zones: "Sequence[PrivateZone]" = ()) -> None:
        secret = as_key(key).read()
        arrays = None if zones else array_sessions(method, secret)
        self._answers = arrays or _EachSession(method, secret, {zone.person_id: zone for zone in zones})
        self._numbers: dict[str, int] = {}
        # When and where each person was last, and what was answered.
        self._times = np.empty(0)
        self._places, self._reports = np.empty((0, 2)), np.empty((0, 2))

    @property
    def costs(self) -> Costs:
        """What was paid for so far."""
        return {name: self._answers.costs(number) for name, number in self._numbers.items()}

    @property
    def spent(self) -> dict[str, float]:
        """Epsilon of each person's whole trace so far, per metre."""
        return {name: self._answers.spent(number) for name, number in self._numbers.items()}

    def flaws(
        self, names: Sequence[str], codes: IntArray, times: FloatArray, lonlat: FloatArray
    ) -> dict[int, str]:
        """Return the rows that no session could answer, and why; nothing is drawn."""
        known = [self._numbers.get(name, -1) for name in names]
        order = _by_person(codes)
        before, _ = self._before(codes[order], times[order], known)
        if (times[order] > before).all():
            return {}
        found: dict[int, str] = {}
        last: dict[int, tuple[float, list[float]]] = {
            code: (float(self._times[number]), self._places[number].tolist())
            for code, number in enumerate(known)
            if number >= 0
        }
        rows = zip(codes.tolist(), times.tolist(), lonlat.tolist(), strict=True)
        for row, (code, time, place) in enumerate(rows):
            moment, where = last.get(code, (-math.inf, place))
            if time < moment:
                found[row] = f"timestamps must increase for person {names[code]!r}: sort the rows by time"
            elif time == moment and place != where:
                found[row] = (
                    f"timestamps must increase for person {names[code]!r}: merge rows of the same time into "
                    "one, such as the first"
                )
            else:
                last[code] = time, place
        return found

    def report(self, names: Sequence[str], codes: IntArray, times: FloatArray, lonlat: FloatArray) -> FloatArray:
        """Return an answer to each row; a row with a flaw is an error."""
        flaws = self.flaws(names, codes, times, lonlat)
        for row, reason in flaws.items():
            raise InvalidInputError(f"row {row}: {reason} ({plural(len(flaws), 'such row')})")
        numbers = self._known(names, codes)
        order = _by_person(codes)
        codes, times, lonlat = codes[order], times[order], lonlat[order]
        before, answers = self._before(codes, times, numbers)
        again = times == before
        new = np.flatnonzero(~again)
        begins = np.flatnonzero(np.diff(codes[new], prepend=-1))
        persons = np.asarray(numbers, np.int64)[codes[new][begins]]
        starts = np.append(begins, len(new))
        made = np.empty((len(order), 2))
        made[new] = self._answers.report(persons, starts, times[new], lonlat[new])
        for row in np.flatnonzero(again).tolist():
            # The same row again: the same answer.
            made[row] = made[row - 1] if row and codes[row - 1] == codes[row] else answers[row]
        ends = np.flatnonzero(np.diff(codes, append=-1))
        who = np.asarray(numbers, np.int64)[codes[ends]]
        self._times[who], self._places[who], self._reports[who] = times[ends], lonlat[ends], made[ends]
        reports = np.empty_like(made)
        reports[order] = made
        return reports

    def _before(self, codes: IntArray, times: FloatArray, numbers: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return for each row, sorted by person, the time before it of its person, and what the first repeats."""
        before, answers = np.empty(len(codes)), np.full((len(codes), 2), np.nan)
        before[1:] = times[:-1]
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        known = np.asarray(numbers, np.int64)[codes[first]]
        before[first] = np.append(self._times, -np.inf)[known]
        answers[first] = np.append(self._reports, [[np.nan, np.nan]], axis=0)[known]
        return before, answers

    def _known(self, names: Sequence[str], codes: IntArray) -> list[int]:
        """Return the numbers of the persons; those with rows who are new get one."""
        new = [names[code] for code in np.unique(codes).tolist() if names[code] not in self._numbers]
        self._numbers.update({name: len(self._numbers) + number for number, name in enumerate(new)})
        self._answers.add(new)
        if len(self._numbers) > len(self._times):
            more = max(len(self._numbers), 2 * len(self._times)) - len(self._times)
            self._times = np.append(self._times, np.full(more, -np.inf))
            self._places = np.append(self._places, np.full((more, 2), np.nan), axis=0)
            self._reports = np.append(self._reports, np.full((more, 2), np.nan), axis=0)
        return [self._numbers.get(name, -1) for name in names]


class _EachSession:
    """The interface of sessions in arrays, for methods that have none: each session on its own."""

    def __init__(self, method: TraceMethod, key: bytes, zones: "Mapping[str, PrivateZone]") -> None:
        self._method, self._key, self._zones = method, key, zones
        self._sessions: list[TraceSession] = []

    def add(self, names: Sequence[str]) -> None:
        self._sessions += [
            TraceSession(self._method, key=self._key, person_id=name, zone=self._zones.get(name)) for name in names
        ]

    def report(self, persons: IntArray, starts: IntArray, times: FloatArray, lonlat: FloatArray) -> FloatArray:
        reports = np.empty_like(lonlat)
        sessions = np.repeat(persons, np.diff(starts)).tolist()
        for row, (number, time, (lon, lat)) in enumerate(
            zip(sessions, times.tolist(), lonlat.tolist(), strict=True)
        ):
            answer = self._sessions[number].report(lat=lat, lon=lon, time=time)
            reports[row] = answer.lon, answer.lat
        return reports

    def costs(self, number: int) -> Counter[float]:
        return self._sessions[number].costs

    def spent(self, number: int) -> float:
        return self._sessions[number].spent


def obfuscate_traces(
    lonlat: ArrayLike,
    *,
    persons: Sequence[str] | Sequence[int],
    times: ArrayLike,
    method: TraceMethod,
    key: KeyLike,
    ledger: Budget | None = None,
) -> tuple[FloatArray, dict[str, float]]:
    """Return what a session of each person answers, (n, 2) lon/lat, and epsilon per metre of each person's trace.

    Rows of one person must be in the order of time; persons may be mixed. All rows are checked before anything is
    drawn or charged. Whole persons may be given to several processes: under one key each person's answers are the
    same wherever they are made.

    Parameters
    ----------
    lonlat : (n, 2) array
        True longitudes and latitudes.
    persons : sequence of str or int
        Whose position each row is.
    times : (n,) array
        When, in seconds.
    method : TraceMethod
        How the sessions answer.
    key : Key or bytes
        32 secret bytes.
    ledger : Ledger, optional
        Charges all persons for their whole traces, or none: then it is an error, and nothing is returned. The same
        answers under the same key are charged once.

    Examples
    --------
    >>> from geoind.traces import Independent
    >>> reports, spent = obfuscate_traces(
    ...     [[2.2945, 48.8584], [2.35, 48.86], [2.2946, 48.8584]],
    ...     persons=["ana", "bea", "ana"], times=[0, 0, 60], method=Independent(0.01), key=bytes(32),
    ... )
    >>> reports.shape, spent
    ((3, 2), {'ana': 0.02, 'bea': 0.01})
    """
    secret = as_key(key).read()
    places, seconds = as_lonlat(lonlat, "lonlat"), as_floats(times, "times")
    names = [as_person(person) for person in persons]
    if seconds.shape != (len(places),) or len(names) != len(places):
        raise InvalidInputError(
            f"persons and times must be one per row: {len(names)} and {seconds.shape} for {len(places)}"
        )
    if not np.isfinite(seconds).all():
        raise InvalidInputError("times must be finite")
    known = list(dict.fromkeys(names))
    numbers = {name: number for number, name in enumerate(known)}
    codes = np.fromiter((numbers[name] for name in names), np.int64, len(names))
    sessions, order = TraceSessions(method, secret), _by_person(codes)
    late = (np.diff(seconds[order]) <= 0) & (np.diff(codes[order]) == 0)
    if late.any():
        row = int(order[1:][late].min())
        raise InvalidInputError(f"the times of a person must increase, row {row} goes back or repeats one")
    reports = sessions.report(known, codes, seconds, places)
    if ledger is not None:
        tags = tags_of_answers(known, codes, seconds, places, reports, secret)
        charged = PersonReports.of(known, codes, np.ones_like(codes), tags)
        ledger.charge_all(sessions.costs, label="traces", once=charged.tokens)
    return reports, sessions.spent


def tags_of_answers(
    names: Sequence[str], codes: IntArray, times: FloatArray, lonlat: FloatArray, answers: FloatArray, key: bytes
) -> Words:
    """Return (n, 2) words per row that stand for a person, a time, a position and its answer under a key."""
    words = SessionWords(key)
    persons = words.persons(names)[codes]
    tags = np.zeros((len(codes), 2), np.uint64)
    for number, places in enumerate((lonlat, answers)):
        tags += words.pairs(words.steps(persons, times, places), 0.0, SEEN, number)
    return tags


def _by_person(codes: IntArray) -> IntArray:
    """Return the rows, sorted by person."""
    return np.argsort(codes, kind="stable")
