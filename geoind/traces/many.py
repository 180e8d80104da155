"""Sessions of many persons at once: batches of rows in, answers out, each person in the order of time."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError, plural
from geoind.pipeline import Costs
from geoind.traces.memory import Batch
from geoind.traces.session import TraceMethod, TraceSession
from geoind.traces.vectors import VectorSessions

__all__ = ["Positions", "TraceSessions", "first_not_later"]


@dataclass(frozen=True)
class Positions:
    """Positions of persons at times, in the order of rows.

    Parameters
    ----------
    names : sequence of str
        Persons, as `as_person` returns them, each once.
    codes : (n,) array of int
        Whose position each row is: a number of a name.
    times : (n,) array
        When, in seconds.
    lonlat : (n, 2) array
        Where, in degrees.
    """

    names: Sequence[str]
    codes: IntArray
    times: FloatArray
    lonlat: FloatArray = field(repr=False)

    @cached_property
    def order(self) -> IntArray:
        """The rows, sorted by person."""
        return np.argsort(self.codes, kind="stable")

    def only(self, rows: IntArray) -> "Positions":
        """Return some of the rows, which are given in their order."""
        if len(rows) == len(self.codes):
            return self
        return replace(self, codes=self.codes[rows], times=self.times[rows], lonlat=self.lonlat[rows])


class TraceSessions:
    """One session per person, for rows that come in batches; its memory is that of the persons, not of the rows.

    Parameters
    ----------
    method : TraceMethod
        How the sessions answer.
    key : bytes
        32 secret bytes: the same rows get the same answers again, however they are cut into batches.

    Examples
    --------
    >>> from geoind.traces import Independent
    >>> sessions = TraceSessions(Independent(0.01), bytes(32))
    >>> places = np.array([[2.29, 48.86], [2.35, 48.86]])
    >>> steps = Positions(["ana"], np.array([0, 0]), np.array([0.0, 60.0]), places)
    >>> sessions.flaws(steps), sessions.report(steps).shape, sessions.spent
    ({}, (2, 2), {'ana': 0.02})
    """

    def __init__(self, method: TraceMethod, key: bytes) -> None:
        self._answers: _Answers = (
            VectorSessions(method, key)  # type: ignore[arg-type]
            if VectorSessions.fit(method)
            else _EachSession(method, key)
        )
        self._numbers: dict[str, int] = {}
        # When and where everybody was last, and what was answered.
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

    def flaws(self, steps: Positions) -> dict[int, str]:
        """Return the rows that no session could answer, and why; nothing is drawn."""
        known = [self._numbers.get(name, -1) for name in steps.names]
        order = steps.order
        times, _ = self._before(steps, order, known)
        if (steps.times[order] > times).all():
            return {}
        found: dict[int, str] = {}
        last: dict[int, tuple[float, list[float]]] = {
            code: (float(self._times[number]), self._places[number].tolist())
            for code, number in enumerate(known)
            if number >= 0
        }
        rows = zip(steps.codes.tolist(), steps.times.tolist(), steps.lonlat.tolist(), strict=True)
        for row, (code, time, place) in enumerate(rows):
            moment, where = last.get(code, (-math.inf, place))
            if time < moment:
                found[row] = f"timestamps must increase for person {steps.names[code]!r}: sort the rows by time"
            elif time == moment and place != where:
                found[row] = (
                    f"timestamps must increase for person {steps.names[code]!r}: merge rows of the same time into "
                    "one, such as the first"
                )
            else:
                last[code] = time, place
        return found

    def report(self, steps: Positions) -> FloatArray:
        """Return an answer to each row; a row with a flaw is an error."""
        flaws = self.flaws(steps)
        for row, reason in flaws.items():
            raise InvalidInputError(f"row {row}: {reason} ({plural(len(flaws), 'such row')})")
        numbers = self._known(steps)
        order = steps.order
        codes = steps.codes[order]
        times, answers = self._before(steps, order, numbers)
        again = steps.times[order] == times
        new = order[~again]
        begins = np.flatnonzero(np.diff(steps.codes[new], prepend=-1))
        persons = np.asarray(numbers, np.int64)[steps.codes[new][begins]]
        batch = Batch(persons, np.append(begins, len(new)), steps.times[new], steps.lonlat[new])
        made = np.empty((len(order), 2))
        made[~again] = self._answers.report(batch)
        for row in np.flatnonzero(again).tolist():
            # The same row again: the same answer.
            made[row] = made[row - 1] if row and codes[row - 1] == codes[row] else answers[row]
        ends = np.flatnonzero(np.diff(codes, append=-1))
        who = np.asarray(numbers, np.int64)[codes[ends]]
        self._times[who], self._places[who] = steps.times[order[ends]], steps.lonlat[order[ends]]
        self._reports[who] = made[ends]
        reports = np.empty_like(made)
        reports[order] = made
        return reports

    def _before(self, steps: Positions, order: IntArray, numbers: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return for each row, sorted by person, the time before it of its person, and what the first repeats."""
        codes = steps.codes[order]
        times, answers = np.full(len(order), -np.inf), np.full((len(order), 2), np.nan)
        times[1:] = steps.times[order[:-1]]
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        known = np.asarray(numbers, np.int64)[codes[first]]
        times[first] = np.where(known >= 0, np.append(self._times, -np.inf)[known], -np.inf)
        answers[first] = np.append(self._reports, [[np.nan, np.nan]], axis=0)[known]
        return times, answers

    def _known(self, steps: Positions) -> list[int]:
        """Return the numbers of the persons; those with rows who are new get one."""
        present = np.unique(steps.codes).tolist()
        new = [steps.names[code] for code in present if steps.names[code] not in self._numbers]
        self._numbers.update({name: len(self._numbers) + number for number, name in enumerate(new)})
        self._answers.add(new)
        if len(self._numbers) > len(self._times):
            more = max(len(self._numbers), 2 * len(self._times)) - len(self._times)
            self._times = np.append(self._times, np.full(more, -np.inf))
            self._places = np.append(self._places, np.full((more, 2), np.nan), axis=0)
            self._reports = np.append(self._reports, np.full((more, 2), np.nan), axis=0)
        return [self._numbers.get(name, -1) for name in steps.names]


class _Answers(Protocol):
    """Sessions of persons by their numbers."""

    def add(self, names: Sequence[str]) -> None: ...

    def report(self, batch: Batch) -> FloatArray: ...

    def costs(self, number: int) -> Counter[float]: ...

    def spent(self, number: int) -> float: ...


class _EachSession:
    """Sessions of methods that are no arrays, each on its own."""

    def __init__(self, method: TraceMethod, key: bytes) -> None:
        self._method, self._key = method, key
        self._sessions: list[TraceSession] = []

    def add(self, names: Sequence[str]) -> None:
        """Begin sessions of some more persons."""
        self._sessions += [TraceSession(self._method, key=self._key, person_id=name) for name in names]

    def report(self, batch: Batch) -> FloatArray:
        """Return the answers to a batch, row by row."""
        reports = np.empty_like(batch.lonlat)
        for number, begin, end in zip(batch.persons, batch.starts[:-1], batch.starts[1:], strict=True):
            session = self._sessions[number]
            rows = zip(batch.times[begin:end].tolist(), batch.lonlat[begin:end].tolist(), strict=True)
            answers = [session.report(lat=lat, lon=lon, time=time) for time, (lon, lat) in rows]
            reports[begin:end] = [(answer.lon, answer.lat) for answer in answers]
        return reports

    def costs(self, number: int) -> Counter[float]:
        """Return what a person paid for."""
        return self._sessions[number].costs

    def spent(self, number: int) -> float:
        """Return what a person's answers cost, per metre."""
        return self._sessions[number].spent


def first_not_later(steps: Positions) -> int | None:
    """Return the first row that is not later than the one before it of the same person."""
    order = steps.order
    late = (np.diff(steps.times[order]) <= 0) & (np.diff(steps.codes[order]) == 0)
    return int(order[1:][late].min()) if late.any() else None
