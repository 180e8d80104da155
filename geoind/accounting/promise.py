"""What all reports of a person, or all releases of a curator, may reveal together."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from geoind.arrays import as_count, as_finite, as_positive
from geoind.errors import InvalidInputError

__all__ = ["PersonLevel", "Promise", "group", "sequential"]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """Reports distinguish places within a radius by a factor e^level at most, except with probability delta.

    For every set S of outcomes and places x, x' up to `radius` apart: P(S | x) <= e^level * P(S | x') + delta.

    Parameters
    ----------
    level : float
        Of all reports together.
    radius : float
        In metres.
    delta : float
        From 0 to 1; far less than one over the number of persons.
    reports : int, optional
        Number of reports that the promise covers; None for any number.

    Examples
    --------
    >>> Promise(level=2.0, radius=200, delta=1e-6, reports=20)
    Promise(level=2.0, radius=200.0, delta=1e-06, reports=20)
    """

    level: float
    radius: float
    delta: float = 0.0
    reports: int | None = None

    def __post_init__(self) -> None:
        level, delta = as_finite(self.level, "level"), as_finite(self.delta, "delta")
        if level < 0:
            raise InvalidInputError(f"level must not be negative, got {self.level!r}")
        if not 0 <= delta <= 1:
            raise InvalidInputError(f"delta must be between 0 and 1, got {self.delta!r}")
        object.__setattr__(self, "level", level)
        object.__setattr__(self, "radius", as_positive(self.radius, "radius"))
        object.__setattr__(self, "delta", delta)
        if self.reports is not None:
            object.__setattr__(self, "reports", as_count(self.reports, "reports"))


def sequential(promises: Iterable[Promise]) -> Promise:
    """Return the promise of reports that have promises of their own: levels and deltas add up.

    It holds for any mechanisms, also if each is chosen from the earlier reports. The accountant
    (`level_of_reports`) is tighter.

    Parameters
    ----------
    promises : iterable of Promise
        All for the same radius.

    Examples
    --------
    >>> morning = Promise(level=1.0, radius=200, delta=1e-6)
    >>> sequential([morning, Promise(level=0.5, radius=200, delta=2e-6)])
    Promise(level=1.5, radius=200.0, delta=3e-06, reports=None)
    """
    parts = [_checked(promise) for promise in promises]
    if len({part.radius for part in parts}) != 1:
        raise InvalidInputError("promises must be for one and the same radius, and at least one")
    counts = [part.reports for part in parts if part.reports is not None]
    return Promise(
        level=math.fsum(part.level for part in parts),
        radius=parts[0].radius,
        delta=min(1.0, math.fsum(part.delta for part in parts)),
        reports=sum(counts) if len(counts) == len(parts) else None,
    )


def group(promise: Promise, size: int) -> Promise:
    """Return the promise for places `size` times as far apart, or for as many persons who move together.

    The level grows `size` times; delta becomes delta * (1 + e^level + ... + e^((size - 1) level)), which is at
    most the textbook's size * e^(size * level) * delta.

    Examples
    --------
    >>> far = group(Promise(level=math.log(2), radius=100, delta=1e-6), 3)
    >>> round(math.exp(far.level), 9), far.radius, round(far.delta, 9)
    (8.0, 300.0, 7e-06)
    """
    level, delta, size = _checked(promise).level, promise.delta, as_count(size, "size")
    if delta == 0 or (size - 1) * level > 700:
        grown = delta and 1.0
    else:
        grown = delta * (size if level == 0 else math.expm1(size * level) / math.expm1(level))
    return Promise(
        level=size * level, radius=size * promise.radius, delta=min(1.0, grown), reports=promise.reports
    )


def _checked(promise: object) -> Promise:
    if not isinstance(promise, Promise):
        raise InvalidInputError(f"promise must be a Promise(level=, radius=, delta=), got {promise!r}")
    return promise


@dataclass(frozen=True)
class PersonLevel:
    """The level of a release by a trusted curator: differential privacy **per person, not per metre**.

    The release is at most e^level times as likely with all of a person's records as without them, wherever the
    person was. Moving a person is removing and adding them: e^(2 level) between any two places, near or far.

    Parameters
    ----------
    level : float
        The epsilon of differential privacy; it has no unit.

    Examples
    --------
    >>> PersonLevel(1)
    PersonLevel(level=1.0)
    """

    level: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", as_positive(self.level, "level"))
