"""A lower bound on what sequences of answers give away, from runs of sessions alone."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from geoind.arrays import as_count, as_unit
from geoind.audits.trials import bound
from geoind.errors import InvalidInputError
from geoind.pipeline import Location
from geoind.traces.comparison import arc_length

__all__ = ["Answering", "TraceAudit", "audit_traces"]

Position: TypeAlias = tuple[float, float, float]
"""Time in seconds, longitude, latitude."""

Kind: TypeAlias = tuple[str, ...]
"""What kind of answer each position got."""


class Answering(Protocol):
    """Whatever answers one person's positions and says what it spent: a `TraceSession`, or a rival."""

    @property
    def spent(self) -> float:
        """Epsilon of everything answered so far, per metre."""
        ...

    def report(self, *, lat: float, lon: float, time: float) -> Location[float]:
        """Return the place to publish."""
        ...


@dataclass(frozen=True)
class TraceAudit:
    """What the sequences of two traces showed.

    Parameters
    ----------
    event : tuple
        The kind of sequence that tells the traces apart best: per step, which earlier answer came again, or that a
        new one came, or which trace a new one was nearer to.
    loss : float
        Lower bound on the logarithm of the ratio of its probabilities, at least 0; wrong with the probability
        `risk` at most.
    allowed : float
        What the session says that this costs: spent epsilon times the distance of the traces.
    """

    event: Kind
    loss: float
    allowed: float

    @property
    def refuted(self) -> bool:
        """Whether the session breaks its promise."""
        return self.loss > self.allowed


def audit_traces(
    session: Callable[[], Answering],
    first: Sequence[Position],
    second: Sequence[Position],
    *,
    draws: int = 2000,
    risk: float = 0.01,
) -> TraceAudit:
    """Return what can be said for sure about how well sequences of answers tell two traces apart.

    Half of the runs choose the kind of sequence, the other half count it.

    Parameters
    ----------
    session : callable
        Returns a new session, under a new key, each time.
    first, second : sequence of (time, lon, lat)
        Two traces at the same times.
    draws : int
        Runs of each trace.
    risk : float
        Probability with which an honest session is refuted, at most.

    Examples
    --------
    >>> from geoind import TraceSession
    >>> from geoind.traces import Independent
    >>> here, there = ([(60.0 * k, 2.2945, lat) for k in range(3)] for lat in (48.8584, 48.8593))
    >>> audit_traces(lambda: TraceSession(Independent(0.01)), here, there, draws=200).refuted
    False
    """
    if [time for time, *_ in first] != [time for time, *_ in second] or not len(first):
        raise InvalidInputError("the two traces must have the same times, at least one")
    runs = as_count(draws, "draws") // 2
    as_unit(risk, "risk")
    apart = max(arc_length(*a[1:], *b[1:]) for a, b in zip(first, second, strict=True))
    costs: defaultdict[Kind, float] = defaultdict(float)

    def counted(steps: Sequence[Position]) -> Counter[Kind]:
        seen: Counter[Kind] = Counter()
        for _ in range(runs):
            one = session()
            places = [tuple(one.report(lat=lat, lon=lon, time=time)) for time, lon, lat in steps]
            for kind in _kinds(places, first, second):
                costs[kind] = max(costs[kind], one.spent)
                seen[kind] += 1
        return seen

    chosen_here, chosen_there = counted(first), counted(second)

    def promising(event: Kind) -> float:
        return bound(chosen_here[event], chosen_there[event], runs, risk) - costs[event] * apart

    event = max(chosen_here, key=promising)
    loss = max(0.0, bound(counted(first)[event], counted(second)[event], runs, risk))
    return TraceAudit(event, loss, costs[event] * apart)


def _kinds(places: list[tuple[float, ...]], first: Sequence[Position], second: Sequence[Position]) -> list[Kind]:
    """Return what a sequence is an example of: which answers came again, with and without where new ones were."""
    known: dict[tuple[float, ...], int] = {}
    coarse: list[str] = []
    fine: list[str] = []
    for (lat, lon), here, there in zip(places, first, second, strict=True):
        if (lat, lon) in known:
            told = again = f"again {known[lat, lon]}"
        else:
            known[lat, lon] = len(known)
            nearer = arc_length(lon, lat, *here[1:]) < arc_length(lon, lat, *there[1:])
            told, again = "nearer the first" if nearer else "nearer the second", "new"
        fine.append(told)
        coarse.append(again)
    return [tuple(coarse), tuple(fine)]
