"""A lower bound on epsilon from samples alone: the mechanism is a black box.

For two places x and x' at distance d and any set S of reports, epsilon is at least ln(P[S | x] / P[S | x']) / d.
S is chosen on draws of its own; fresh draws then bound the two probabilities (Clopper and Pearson). A large bound
proves that a promise is broken. A small one proves nothing: see `AuditResult.smallest_visible`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_count, as_lonlat, as_points, as_positive, as_unit
from geoind.audits.events import Event, bound, choose_event
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism, is_mechanism
from geoind.randomness import RandomnessLike, SimulatedRandomness, as_randomness
from geoind.space.projection import Projection

__all__ = ["AuditResult", "Finding", "audit"]

FAR, NEAR = 2.5, 0.5
"""Distances of a pair, in units of 1 / epsilon: the one where most can be seen, and one for single calls."""

SINGLE_CALLS = 300
"""Calls with one point each, per place: they show noise that starts afresh in every call."""

BEARINGS = (0.0, 45.0, 90.0, 135.0)
"""Directions of the pairs, in degrees from east to north."""

EVENT_MASS = 0.15
"""How likely the best event against planar Laplace noise is, about."""


class Finding(NamedTuple):
    """What one pair of places shows."""

    epsilon: float
    truth: tuple[float, float]
    other: tuple[float, float]
    distance: float
    event: str
    hits: tuple[int, int]
    draws: int


@dataclass(frozen=True)
class AuditResult:
    """What an audit shows, and what it could not have seen.

    Attributes
    ----------
    epsilon : float
        With probability `confidence` the mechanism's real epsilon is at least this, per metre.
    claimed : float
        The promise, per metre.
    confidence : float
        Of all findings together.
    worst : Finding
        The pair of places that shows most.
    findings : tuple of Finding
        One for each pair.
    smallest_visible : float
        Had the mechanism this epsilon everywhere, an audit of this size would just about refute the claim; smaller
        violations go unseen.
    """

    claimed: float
    confidence: float
    findings: tuple[Finding, ...]
    smallest_visible: float

    @property
    def worst(self) -> Finding:
        """The finding with the largest epsilon."""
        return max(self.findings, key=lambda finding: finding.epsilon)

    @property
    def epsilon(self) -> float:
        """The lower bound, per metre."""
        return self.worst.epsilon

    @property
    def refuted(self) -> bool:
        """Whether the promise is broken."""
        return self.epsilon > self.claimed

    def __str__(self) -> str:
        worst = self.worst
        verdict = "BROKEN" if self.refuted else "not refuted"
        return "\n".join(
            [
                f"promise of {self.claimed:.6g} per metre: {verdict}",
                f"epsilon is at least {self.epsilon:.6g} per metre ({self.epsilon / self.claimed:.3f} of the "
                f"promise), with {self.confidence:.4g} confidence",
                f"seen between {_place(worst.truth)} and {_place(worst.other)}, {worst.distance:.6g} m apart, "
                f"by '{worst.event}': {worst.hits[0]} against {worst.hits[1]} of {worst.draws} reports",
                f"could not have seen: an epsilon below {self.smallest_visible:.6g} per metre, places other than "
                f"the {len(self.findings)} pairs tried, events rarer than {3 / worst.draws:.1g}, "
                "and what leaks outside of the reports' coordinates",
            ]
        )


def audit(
    mechanism: Mechanism | Callable[[FloatArray], ArrayLike],
    *,
    epsilon: float | None = None,
    places: ArrayLike = ((0.0, 0.0),),
    lonlat: bool | None = None,
    draws: int = 100_000,
    confidence: float = 0.95,
    rng: RandomnessLike = None,
) -> AuditResult:
    """Return a statistically valid lower bound on the epsilon of any sampler.

    Around each place four pairs at distance 2.5 / epsilon are tried, in four directions, and one pair at
    0.5 / epsilon with a call per report. For a `Channel`, `tight_epsilon` measures the exact value instead.

    Parameters
    ----------
    mechanism : Mechanism or callable
        From (n, 2) places to (n, 2) reports.
    epsilon : float, optional
        The promise to test, per metre; default: the mechanism's own.
    places : (m, 2) array
        Where to look: in metres, or lon/lat degrees. Borders of a region are where truncation shows.
    lonlat : bool, optional
        For a callable: whether places and reports are in degrees. A mechanism says so itself.
    draws : int
        Reports per place and pair from which probabilities are bounded; as many again choose the events.
    confidence : float
        That the bound holds, for all pairs together.
    rng : RandomnessLike
        Handed to the mechanism; None leaves it to its own.

    Examples
    --------
    >>> from geoind import PlanarLaplace
    >>> result = audit(PlanarLaplace(0.01), draws=20_000, rng=1)
    >>> 0.8 < result.epsilon / 0.01 < 1, result.refuted
    (True, False)
    """
    claimed = getattr(mechanism, "epsilon", None) if epsilon is None else epsilon
    if claimed is None or claimed == math.inf:
        raise InvalidInputError("epsilon must be given: the mechanism promises none")
    claimed = as_positive(claimed, "epsilon")
    draws, confidence = as_count(draws, "draws"), as_unit(confidence, "confidence")
    if is_mechanism(mechanism):
        spoken = getattr(mechanism, "space", None) == "lonlat"
        if lonlat is not None and lonlat != spoken:
            raise InvalidInputError(f"this {type(mechanism).__name__} speaks {'degrees' if spoken else 'metres'}")
        lonlat = spoken
    spots = as_lonlat(places, "places") if lonlat else as_points(places, "places")
    sample = _sampler(mechanism, rng)
    pairs = [pair for spot in spots for pair in _pairs(spot, claimed, bool(lonlat))]
    risk = (1 - confidence) / len(pairs)
    findings = tuple(_try(sample, pair, draws, risk) for pair in pairs)
    expected = bound(round(EVENT_MASS * draws), round(EVENT_MASS * math.exp(-FAR) * draws), draws, risk) / FAR
    return AuditResult(claimed, confidence, findings, claimed / max(expected, 1e-9))


class _Pair(NamedTuple):
    """Two places, their distance, how to see reports as metres around the first one, and whether call by call."""

    truth: FloatArray
    other: FloatArray
    offset: FloatArray
    to_xy: Callable[[FloatArray], FloatArray]
    one_by_one: bool


def _pairs(spot: FloatArray, epsilon: float, lonlat: bool) -> Iterator[_Pair]:
    plane = Projection(*spot) if lonlat else None

    def to_xy(reports: FloatArray) -> FloatArray:
        return reports - spot if plane is None else plane.to_xy(reports)

    for bearing, scale in [*((bearing, FAR) for bearing in BEARINGS), (0.0, NEAR)]:
        angle = math.radians(bearing)
        offset = scale / epsilon * np.array([math.cos(angle), math.sin(angle)])
        # In a plane around the spot, distances from it are the Earth's own.
        other = spot + offset if plane is None else plane.to_lonlat(offset[None])[0]
        yield _Pair(spot, other, offset, to_xy, scale == NEAR)


Sampler = Callable[[FloatArray, int, bool], FloatArray]


def _sampler(mechanism: Mechanism | Callable[[FloatArray], ArrayLike], rng: RandomnessLike) -> Sampler:
    call: Callable[[FloatArray], ArrayLike]
    if hasattr(mechanism, "sample"):
        call = mechanism.sample
        if rng is not None:
            source = as_randomness(rng, 0)
            # A generator goes on from call to call; a seed would start again.
            call = partial(call, rng=source.generator if isinstance(source, SimulatedRandomness) else source)
    elif callable(mechanism):
        call = mechanism
    else:
        raise InvalidInputError("mechanism must have a sample method or be callable")

    def draw(place: FloatArray, count: int, one_by_one: bool) -> FloatArray:
        batches = [np.tile(place, (1, 1))] * count if one_by_one else [np.tile(place, (count, 1))]
        reports = np.concatenate([as_points(call(batch.copy()), "reports") for batch in batches])
        if len(reports) != count:
            raise InvalidInputError(f"mechanism must return one report per point, got {len(reports)} for {count}")
        return reports

    return draw


def _try(sample: Sampler, pair: _Pair, draws: int, risk: float) -> Finding:
    """Return the bound of one pair: the event from draws of its own, the probabilities from fresh ones."""
    count = min(draws, SINGLE_CALLS) if pair.one_by_one else draws
    half = -(-count // 2)

    def reports(size: int) -> tuple[FloatArray, FloatArray]:
        here, there = (pair.to_xy(sample(place, size, pair.one_by_one)) for place in (pair.truth, pair.other))
        return here, there

    event: Event = choose_event(reports(half), reports(half), pair.offset)
    here, there = (int(event.contains(xy).sum()) for xy in reports(count))
    distance = float(np.hypot(*pair.offset))
    truth, other = ((float(place[0]), float(place[1])) for place in (pair.truth, pair.other))
    epsilon = max(0.0, bound(here, there, count, risk)) / distance
    return Finding(epsilon, truth, other, distance, event.name, (here, there), count)


def _place(place: tuple[float, float]) -> str:
    return f"({place[0]:.8g}, {place[1]:.8g})"
