"""Many persons' positions at once: arrays in, arrays out, each person in the order of time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats, as_lonlat
from geoind.budgets.persons import PersonReports, as_person
from geoind.errors import InvalidInputError
from geoind.pipeline import Budget
from geoind.randomness import KEY_BYTES, Words
from geoind.traces.many import Positions, TraceSessions, first_not_later
from geoind.traces.session import TraceMethod
from geoind.traces.words import SEEN, StepWords

__all__ = ["ObfuscatedTraces", "obfuscate_traces", "tags_of_answers"]


@dataclass(frozen=True)
class ObfuscatedTraces:
    """Reports of many persons' positions, in the order of the rows, and what each person's cost.

    Parameters
    ----------
    lonlat : (n, 2) array
        Longitudes and latitudes.
    spent : dict
        From a person to epsilon, per metre.
    """

    lonlat: FloatArray
    spent: dict[str, float]


def obfuscate_traces(
    lonlat: ArrayLike,
    *,
    persons: Sequence[str] | Sequence[int],
    times: ArrayLike,
    method: TraceMethod,
    key: bytes,
    ledger: Budget | None = None,
) -> ObfuscatedTraces:
    """Return what a session of each person answers.

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
    key : bytes
        32 secret bytes.
    ledger : Ledger, optional
        Charges all persons for their whole traces, or none: then it is an error, and nothing is returned. The same
        answers under the same key are charged once.

    Examples
    --------
    >>> from geoind.traces import Independent
    >>> made = obfuscate_traces(
    ...     [[2.2945, 48.8584], [2.35, 48.86], [2.2946, 48.8584]],
    ...     persons=["ana", "bea", "ana"], times=[0, 0, 60], method=Independent(0.01), key=bytes(32),
    ... )
    >>> made.lonlat.shape, made.spent
    ((3, 2), {'ana': 0.02, 'bea': 0.01})
    """
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise InvalidInputError(f"key must be {KEY_BYTES} bytes")
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
    steps, sessions = Positions(known, codes, seconds, places), TraceSessions(method, key)
    if (row := first_not_later(steps)) is not None:
        raise InvalidInputError(f"the times of a person must increase, row {row} goes back or repeats one")
    reports = sessions.report(steps)
    if ledger is not None:
        tags = tags_of_answers(steps, reports, key)
        charged = PersonReports.of(known, codes, np.ones_like(codes), tags)
        ledger.charge_all(sessions.costs, label="traces", once=charged.tokens)
    return ObfuscatedTraces(reports, sessions.spent)


def tags_of_answers(steps: Positions, answers: FloatArray, key: bytes) -> Words:
    """Return (n, 2) words per row that stand for a person, a time, a position and its answer under a key."""
    words = StepWords(key)
    persons = np.frombuffer(b"".join(map(words.person, steps.names)), np.uint64).reshape(-1, 2)[steps.codes]
    tags = np.zeros((len(steps.codes), 2), np.uint64)
    for number, places in enumerate((steps.lonlat, answers)):
        tags += words.pairs(words.steps(persons, steps.times, places), 0.0, SEEN, number)
    return tags
