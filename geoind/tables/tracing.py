"""Tables of traces: who was where when, answered by a session per person."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism
from geoind.mechanisms.sphere import SphericalLaplace
from geoind.space.lattice import DECIMALS
from geoind.tables.identities import persons_in
from geoind.tables.places import column_of
from geoind.tables.rows import Examined
from geoind.tables.times import NO_TIME, seconds_of
from geoind.traces.many import Positions, TraceSessions
from geoind.traces.methods import Independent, Predictive
from geoind.traces.session import TraceMethod
from geoind.traces.sparse import SparseVector
from geoind.traces.switching import Switching

__all__ = ["METHODS", "MethodName", "Tracing", "answered", "in_order", "steps_of", "tracing_of"]

MethodName = Literal["switching", "sparse", "predictive", "independent"]
METHODS: tuple[MethodName, ...] = ("switching", "sparse", "predictive", "independent")

CONFIDENCE = 0.9
"""A fresh report lies with this probability within the metres for which methods are made."""


@dataclass(frozen=True)
class Tracing:
    """That rows are steps of traces.

    Parameters
    ----------
    person, time : str
        The columns that say who and when. Times are public: they pass, and sessions look at them.
    method : TraceMethod
        How each person's session answers.
    """

    person: str
    time: str
    method: TraceMethod

    @property
    def told(self) -> str:
        """The method and its numbers, for the promise."""
        return _told(self.method)


def _told(value: object) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        inside = (f"{field.name}={_told(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({', '.join(inside)})"
    if isinstance(value, (int, float)):
        return repr(value)
    # A function's own text would have its address in it.
    name = str(getattr(value, "__name__", ""))
    return name if name.isidentifier() else type(value).__name__


def tracing_of(
    columns: "str | tuple[str, str] | list[str]", method: MethodName | TraceMethod | None, mechanism: Mechanism
) -> Tracing:
    """Return how a table of traces is answered whose fresh reports a mechanism draws.

    Examples
    --------
    >>> tracing_of("who,when", "independent", SphericalLaplace(0.01))
    Tracing(person='who', time='when', method=Independent(epsilon=0.01))
    """
    names = columns.split(",") if isinstance(columns, str) else list(columns)
    if len(names) != 2 or not all(isinstance(name, str) and name for name in names) or names[0] == names[1]:
        raise InvalidInputError(f"trace must name two columns, of the person and of the time, got {columns!r}")
    if not isinstance(mechanism, SphericalLaplace):
        raise InvalidInputError(
            "a session needs noise on the globe with an epsilon: give epsilon, or level and radius"
        )
    if mechanism.decimals != DECIMALS:
        raise InvalidInputError(f"a session reports with {DECIMALS} decimals, not {mechanism.decimals}")
    if method is None or isinstance(method, str):
        method = _named(method or "switching", mechanism)
    return Tracing(names[0], names[1], method)


def _named(name: str, mechanism: SphericalLaplace) -> TraceMethod:
    if name == "independent":
        return Independent(mechanism.epsilon)
    metres = float(mechanism.radius_quantile(CONFIDENCE))
    if name == "predictive":
        made = Predictive.for_any_accuracy(metres, CONFIDENCE)
        return Predictive(made.test, mechanism.epsilon, made.limit)
    epsilon = mechanism.epsilon
    sparse = SparseVector(epsilon, epsilon, 3 * metres, epsilon / 2)
    if name == "sparse":
        return sparse
    if name == "switching":
        return Switching(sparse)
    raise InvalidInputError(f"method must be one of {', '.join(METHODS)}, or a TraceMethod, got {name!r}")


def steps_of(batch: pa.RecordBatch, tracing: Tracing, lonlat: FloatArray) -> tuple[Positions, dict[int, str]]:
    """Return the steps of a batch's rows, and which rows name no person or no time, and why."""
    names, codes, flaws = persons_in(column_of(batch, tracing.person), tracing.person)
    times, missing, bad = seconds_of(column_of(batch, tracing.time))
    for row in np.flatnonzero(missing | bad).tolist():
        flaws.setdefault(row, f"there is no time in column {tracing.time!r}" if missing[row] else NO_TIME)
    return Positions(names, codes, times, lonlat), flaws


def in_order(examined: Examined, sessions: TraceSessions) -> Examined:
    """Return the rows of traces without those that no session could answer after the rows before."""
    if examined.steps is None:
        return examined
    present = np.flatnonzero(examined.reports_per_row)
    flaws = sessions.flaws(examined.steps.only(present))
    return examined.without({int(present[row]): reason for row, reason in flaws.items()})


def answered(examined: Examined, sessions: TraceSessions) -> FloatArray:
    """Return what the sessions answer to rows, NaN where a row has no place: no session hears of it."""
    if examined.steps is None:
        raise InvalidInputError("these rows are no steps of traces")
    reports = np.full_like(examined.steps.lonlat, np.nan)
    present = np.flatnonzero(examined.reports_per_row)
    reports[present] = sessions.report(examined.steps.only(present))
    return reports
