"""Sessions of many persons at once: batches of rows in, answers out, each person in the order of time."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.errors import InvalidInputError
from geoind.traces.session import TraceMethod, TraceSession

__all__ = ["Costs", "Steps", "TraceBudget", "TraceSessions", "first_not_later"]

Costs = Mapping[str, Mapping[float, int]]
"""From a person to how many answers of each epsilon, per metre, were paid for."""


@runtime_checkable
class TraceBudget(Protocol):
    """What a `Ledger` is to whoever answers many persons at once."""

    def charge_all(self, costs: Costs, *, label: str = "") -> None:
        """Charge each person for all answers, all persons or none."""
        ...


@dataclass(frozen=True)
class Steps:
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

    def only(self, rows: IntArray) -> "Steps":
        """Return some of the rows."""
        return replace(self, codes=self.codes[rows], times=self.times[rows], lonlat=self.lonlat[rows])


@dataclass
class _Clock:
    """When and where a person was last."""

    time: float
    lon: float
    lat: float


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
    >>> steps = Steps(["ana"], np.array([0, 0]), np.array([0.0, 60.0]), np.array([[2.29, 48.86], [2.35, 48.86]]))
    >>> sessions.flaws(steps), sessions.report(steps).shape, sessions.spent
    ({}, (2, 2), {'ana': 0.02})
    """

    def __init__(self, method: TraceMethod, key: bytes) -> None:
        self._method, self._key = method, key
        self._sessions: dict[str, TraceSession] = {}
        self._clocks: dict[str, _Clock] = {}
        self._costs: dict[str, Counter[float]] = {}

    @property
    def costs(self) -> Costs:
        """What was paid for so far."""
        return self._costs

    @property
    def spent(self) -> dict[str, float]:
        """Epsilon of each person's whole trace so far, per metre."""
        return {name: session.spent for name, session in self._sessions.items()}

    def flaws(self, steps: Steps) -> dict[int, str]:
        """Return the rows that no session could answer, and why; nothing is drawn."""
        if not self._maybe_flawed(steps):
            return {}
        found: dict[int, str] = {}
        clocks: dict[int, _Clock] = {
            code: self._clocks[name] for code, name in enumerate(steps.names) if name in self._clocks
        }
        rows = zip(steps.codes.tolist(), steps.times.tolist(), steps.lonlat.tolist(), strict=True)
        for row, (code, time, (lon, lat)) in enumerate(rows):
            last = clocks.get(code)
            if last is not None and time < last.time:
                found[row] = f"the time goes back for person {steps.names[code]!r}"
            elif last is not None and time == last.time and (lon, lat) != (last.lon, last.lat):
                found[row] = f"person {steps.names[code]!r} is at two places at the same time"
            else:
                clocks[code] = _Clock(time, lon, lat)
        return found

    def report(self, steps: Steps) -> FloatArray:
        """Return an answer to each row; a row with a flaw is an error."""
        flaws = self.flaws(steps)
        for row, reason in flaws.items():
            raise InvalidInputError(f"row {row}: {reason} ({len(flaws)} such rows)")
        reports = np.empty_like(steps.lonlat)
        rows = zip(steps.codes.tolist(), steps.times.tolist(), steps.lonlat.tolist(), strict=True)
        for row, (code, time, (lon, lat)) in enumerate(rows):
            answer = self._session(steps.names[code]).report(lat=lat, lon=lon, time=time)
            reports[row] = answer.lon, answer.lat
        self._remember(steps)
        return reports

    def _session(self, name: str) -> TraceSession:
        if name not in self._sessions:
            counts = self._costs.setdefault(name, Counter())
            self._sessions[name] = TraceSession(self._method, key=self._key, ledger=_Account(counts), person=name)
        return self._sessions[name]

    def _maybe_flawed(self, steps: Steps) -> bool:
        """Return whether some person's times do not all rise."""
        if first_not_later(steps) is not None:
            return True
        order = np.argsort(steps.codes, kind="stable")
        codes, times = steps.codes[order], steps.times[order]
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        begin = zip(codes[first].tolist(), times[first].tolist(), strict=True)
        known = ((self._clocks.get(steps.names[code]), time) for code, time in begin)
        return any(clock is not None and time <= clock.time for clock, time in known)

    def _remember(self, steps: Steps) -> None:
        order = np.argsort(steps.codes, kind="stable")
        last = order[np.flatnonzero(np.diff(steps.codes[order], append=-1))]
        for code, time, (lon, lat) in zip(
            steps.codes[last].tolist(), steps.times[last].tolist(), steps.lonlat[last].tolist(), strict=True
        ):
            self._clocks[steps.names[code]] = _Clock(time, lon, lat)


def first_not_later(steps: Steps) -> int | None:
    """Return the first row that is not later than the one before it of the same person."""
    order = np.argsort(steps.codes, kind="stable")
    late = (np.diff(steps.times[order]) <= 0) & (np.diff(steps.codes[order]) == 0)
    return int(order[1:][late].min()) if late.any() else None


@dataclass(frozen=True)
class _Account:
    """Counts what a session pays; the ledger pays for all persons at once, before anything is published."""

    counts: Counter[float]

    def charge(self, person: str | int, cost: float, *, label: str = "", once: str | None = None) -> float:  # noqa: ARG002
        self.counts[cost] += 1
        return math.inf
