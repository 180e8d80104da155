"""A lower bound on what n reports tell together, from samples: no accountant may promise less."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from geoind.accounting.promise import Promise
from geoind.arrays import ArrayLike, FloatArray, as_count, as_lonlat, as_points, as_unit
from geoind.audits.events import SHARES
from geoind.audits.trials import Vicinity, as_sampler
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism, space_of
from geoind.randomness import RandomnessLike
from geoind.space.projection import Projection

__all__ = ["ReportsAudit", "audit_reports"]


@dataclass(frozen=True)
class ReportsAudit:
    """What sequences of reports show about the promise that they make together.

    Attributes
    ----------
    level : float
        With probability `confidence` the reports' level, within the promise's radius and up to its delta, is at
        least this.
    promise : Promise
    confidence : float
    hits : (int, int)
        Sequences in the event, from the truth and from the other place.
    sequences : int
        How many were looked at, from each place.
    """

    level: float
    promise: Promise
    confidence: float
    hits: tuple[int, int]
    sequences: int

    @property
    def refuted(self) -> bool:
        """Whether the promise is broken."""
        return self.level > self.promise.level


def audit_reports(
    mechanism: Mechanism,
    *,
    reports: int,
    promise: Promise,
    place: ArrayLike = (0.0, 0.0),
    sequences: int = 10_000,
    confidence: float = 0.95,
    rng: RandomnessLike = None,
) -> ReportsAudit:
    """Return a statistically valid lower bound on the level that n reports keep together, up to delta.

    Sequences of n reports about one place, and about another one at the promise's radius to the east, are ranked
    by how much closer to the first place they lie, or how far behind it, summed over the sequence. The threshold
    is chosen on half as many sequences, the bound comes from fresh ones. It cannot exceed the logarithm of the
    number of sequences.

    Parameters
    ----------
    mechanism : Mechanism
    reports : int
        How many there are in a sequence.
    promise : Promise
        What they keep together, such as the level that `level_of_reports` says.
    place : (2,) array
        Where to look: metres or lon/lat degrees, what the mechanism speaks.
    sequences : int
        Of n reports each, per place.
    confidence : float
        That the bound holds.
    rng : RandomnessLike
        Handed to the mechanism; None leaves it to its own.

    Examples
    --------
    >>> from geoind import PlanarLaplace
    >>> told = Promise(level=4.2, radius=100, delta=1e-5)    # the accountant says 4.18
    >>> seen = audit_reports(PlanarLaplace(0.005), reports=10, promise=told, sequences=4000, rng=1)
    >>> seen.level > 1.5, seen.refuted
    (True, False)
    """
    reports, sequences = as_count(reports, "reports"), as_count(sequences, "sequences")
    if not isinstance(promise, Promise):
        raise InvalidInputError(
            f"promise must be a Promise(level=, radius=, delta=), got {type(promise).__name__}"
        )
    delta, risk = promise.delta, 1 - as_unit(confidence, "confidence")
    lonlat = space_of(mechanism) == "lonlat"
    [truth] = (as_lonlat if lonlat else as_points)(np.atleast_2d(place), "place")
    vicinity, offset = Vicinity(truth, Projection(*truth) if lonlat else None), np.array([promise.radius, 0.0])
    other, sample = vicinity.at(offset), as_sampler(mechanism, rng)

    def scores(where: FloatArray, count: int) -> FloatArray:
        """Return two sums over each sequence, (2, count): how much closer to the truth, and how far behind it."""
        total = np.zeros((2, count))
        for _ in range(reports):
            xy = vicinity.to_xy(sample(np.tile(where, (count, 1))))
            total[0] += np.hypot(*(xy - offset).T) - np.hypot(*xy.T)
            total[1] -= xy[:, 0]
        return total

    half = -(-sequences // 2)
    chosen, shown = (0, -math.inf), -math.inf
    for number, (here, there) in enumerate(zip(scores(truth, half), scores(other, half), strict=True)):
        for threshold in np.unique(np.quantile(here, 1 - np.array(SHARES))):
            value = _level(int((here >= threshold).sum()), int((there >= threshold).sum()), half, delta, 0.01)
            if value > shown:
                chosen, shown = (number, float(threshold)), value
    number, threshold = chosen
    hits = [int((scores(where, sequences)[number] >= threshold).sum()) for where in (truth, other)]
    level = _level(hits[0], hits[1], sequences, delta, risk)
    return ReportsAudit(max(0.0, level), promise, confidence, (hits[0], hits[1]), sequences)


def _level(here: int, there: int, draws: int, delta: float, risk: float) -> float:
    """Return a lower bound on ln((p - delta) / q), wrong with probability `risk` at most (Clopper and Pearson)."""
    low = betaincinv(here, draws - here + 1, risk / 2) - delta if here else 0.0
    high = 1.0 if there == draws else betaincinv(there + 1, draws - there, 1 - risk / 2)
    return float(math.log(low / high)) if low > 0 else -math.inf
