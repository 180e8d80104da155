"""Lower bounds on the privacy loss of a mechanism from samples alone: it is a black box.

For two places x and x' at distance d and any set S of reports, epsilon is at least ln(P[S | x] / P[S | x']) / d.
S is chosen on draws of its own; fresh draws then bound the two probabilities (Clopper and Pearson). A bound above
the claimed epsilon refutes it. A small bound proves nothing: see `AuditResult.smallest_visible`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoind.accounting.promise import Promise
from geoind.arrays import ArrayLike, FloatArray, as_count, as_lonlat, as_points, as_positive, as_unit
from geoind.audits.trials import FAR, SHARES, Finding, as_sampler, bound, finding_of, local_plane, trials_at
from geoind.errors import InvalidInputError, plural
from geoind.mechanisms.protocol import Mechanism, RandomnessLike, is_mechanism, off_site_level, space_of
from geoind.pictures.card import card
from geoind.pictures.cells import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AuditResult", "ReportsAudit", "audit", "audit_reports"]

EVENT_MASS = 0.15
"""Approximate probability of the best event against planar Laplace noise."""


@dataclass(frozen=True, repr=False)
class AuditResult:
    """The lower bounds of an audit, and the smallest violation that it could have found.

    Attributes
    ----------
    epsilon : float
        With probability `confidence` the mechanism's epsilon is at least this, per metre.
    claimed : float
        The claimed epsilon, per metre.
    confidence : float
        Of all findings together.
    worst : Finding
        The finding with the largest epsilon.
    findings : tuple of Finding
        One for each trial.
    smallest_visible : float
        An audit of this size would just about refute the claim if the mechanism had this epsilon everywhere;
        smaller violations are not found.
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
        """Whether the claimed epsilon is refuted."""
        return self.epsilon > self.claimed

    def __repr__(self) -> str:
        verdict = "BROKEN" if self.refuted else "not refuted"
        return (
            f"AuditResult(claimed={self.claimed:.6g}, epsilon >= {self.epsilon:.6g}, {verdict}, "
            f"{plural(len(self.findings), 'finding')})"
        )

    def _repr_html_(self) -> str:
        verdict, *rest = str(self).splitlines()
        return card(
            "AuditResult", dict(zip(("verdict", "shown", "where", "blind to"), [verdict, *rest], strict=True))
        )

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the bound of each pair of places and the claimed epsilon, and return the axes.

        A bar beyond the solid line refutes the claim; a violation left of the dotted line could not have been
        found.

        Examples
        --------
        >>> from geoind import PlanarLaplace
        >>> audit(PlanarLaplace(0.01), draws=2000, rng=1).plot().get_xlabel()
        'epsilon is at least (per metre)'
        """
        axes = axes_or_new(axes)
        rows = sorted(self.findings, key=lambda finding: finding.epsilon)
        colours = ["#D55E00" if finding.epsilon > self.claimed else "#0072B2" for finding in rows]
        axes.barh(range(len(rows)), [max(0.0, finding.epsilon) for finding in rows], color=colours)
        axes.set_yticks(
            range(len(rows)), labels=[f"{finding.distance:.3g} m: {finding.event}" for finding in rows], fontsize=7
        )
        axes.axvline(self.claimed, color="black", label="claimed")
        axes.axvline(self.smallest_visible, color="black", linestyle=":", label="smallest visible violation")
        axes.set_xlabel("epsilon is at least (per metre)")
        axes.legend(loc="lower right", fontsize=8)
        return axes

    def __str__(self) -> str:
        worst = self.worst
        verdict = "BROKEN" if self.refuted else "not refuted"
        return "\n".join(
            [
                f"promise of {self.claimed:.6g} per metre: {verdict}",
                f"epsilon is at least {self.epsilon:.6g} per metre ({self.epsilon / self.claimed:.3f} of the "
                f"promise), with {self.confidence:.4g} confidence",
                f"seen between {_place(worst.truth)} and {_place(worst.other)}, {worst.distance:.6g} m apart, "
                f"by '{worst.event}': {worst.hits[0]} against {worst.hits[1]} of {plural(worst.draws, 'report')}",
                f"could not have seen: an epsilon below {self.smallest_visible:.6g} per metre, places other than "
                f"the {plural(len(self.findings), 'pair')} tried, events rarer than {3 / worst.draws:.1g}, "
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

    The trials around each place: four pairs at distance 2.5 / epsilon, in four directions; on two lines the two
    close places with the largest difference of mean reports; pairs of rows of one call; and pairs of calls with
    one point each. For a `Channel`, `tight_epsilon` measures the exact value instead.

    Parameters
    ----------
    mechanism : Mechanism or callable
        Returns (n, 2) reports of (n, 2) places.
    epsilon : float, optional
        The claim to test, per metre; default: the mechanism's own.
    places : (m, 2) array
        In metres, or lon/lat degrees. Include the borders of a region, where truncation has an effect.
    lonlat : bool, optional
        For a callable: whether places and reports are in degrees. A mechanism has the attribute `space`.
    draws : int
        Reports per place and pair from which probabilities are bounded; as many again, up to a million, choose
        the events. Time grows with them, memory does not.
    confidence : float
        Probability that all bounds hold together.
    rng : RandomnessLike
        Passed to the mechanism; None for its default.

    Examples
    --------
    >>> from geoind import PlanarLaplace
    >>> result = audit(PlanarLaplace(0.01), draws=20_000, rng=1)
    >>> 0.8 < result.epsilon / 0.01 < 1, result.refuted
    (True, False)
    """
    claimed = getattr(mechanism, "epsilon", None) if epsilon is None else epsilon
    if claimed is None or claimed == math.inf:
        raise InvalidInputError("epsilon must be given: the mechanism has none")
    claimed = as_positive(claimed, "epsilon")
    draws, confidence = as_count(draws, "draws"), as_unit(confidence, "confidence")
    if is_mechanism(mechanism):
        degrees = space_of(mechanism) == "lonlat"
        if lonlat is not None and lonlat != degrees:
            raise InvalidInputError(f"this {type(mechanism).__name__} takes {'degrees' if degrees else 'metres'}")
        lonlat = degrees
    spots = as_lonlat(places, "places") if lonlat else as_points(places, "places")
    sample = as_sampler(mechanism, rng)
    trials = [
        trial
        for spot in spots
        for trial in trials_at(local_plane(spot, lonlat=bool(lonlat)), sample, epsilon=claimed, draws=draws)
    ]
    risk = (1 - confidence) / len(trials)
    allowed = off_site_level(mechanism) if is_mechanism(mechanism) else 0.0
    findings = tuple(finding_of(trial, risk, allowed) for trial in trials)
    expected = bound(round(EVENT_MASS * draws), round(EVENT_MASS * math.exp(-FAR) * draws), draws, risk) / FAR
    return AuditResult(claimed, confidence, findings, claimed / max(expected, 1e-9))


@dataclass(frozen=True)
class ReportsAudit:
    """The lower bound on the level of sequences of reports.

    Attributes
    ----------
    level : float
        With probability `confidence` the level of the reports together, within the promise's radius and up to its
        delta, is at least this.
    promise : Promise
    confidence : float
    hits : (int, int)
        Sequences in the event, from the first and from the other place.
    sequences : int
        Number of sequences from each place.
    """

    level: float
    promise: Promise
    confidence: float
    hits: tuple[int, int]
    sequences: int

    @property
    def refuted(self) -> bool:
        """Whether the promise is refuted."""
        return self.level > self.promise.level


def audit_reports(
    mechanism: Mechanism,
    promise: Promise,
    *,
    place: ArrayLike = (0.0, 0.0),
    sequences: int = 10_000,
    confidence: float = 0.95,
    rng: RandomnessLike = None,
) -> ReportsAudit:
    """Return a statistically valid lower bound on the level of n reports together, up to delta.

    Sequences of n reports of one place, and of another one at the promise's radius to the east, are ranked by how
    much closer to the first place they lie, or how far behind it, summed over the sequence. The threshold is
    chosen on half as many sequences, the bound comes from fresh ones. It cannot exceed the logarithm of the number
    of sequences.

    Parameters
    ----------
    mechanism : Mechanism
    promise : Promise
        The claim for a number of reports together, such as the level that `level_of_reports` returns.
    place : (2,) array
        In metres or lon/lat degrees, the space of the mechanism.
    sequences : int
        Number of sequences per place.
    confidence : float
        Probability that the bound holds.
    rng : RandomnessLike
        Passed to the mechanism; None for its default.

    Examples
    --------
    >>> from geoind import PlanarLaplace
    >>> promise = Promise(level=4.2, radius=100, delta=1e-5, reports=10)    # the accountant returns 4.18
    >>> result = audit_reports(PlanarLaplace(0.005), promise, sequences=4000, rng=1)
    >>> result.level > 1.5, result.refuted
    (True, False)
    """
    sequences = as_count(sequences, "sequences")
    if not isinstance(promise, Promise) or promise.reports is None:
        raise InvalidInputError("promise must be a Promise(level=, radius=, delta=, reports=)")
    delta, risk = promise.delta, 1 - as_unit(confidence, "confidence")
    lonlat = space_of(mechanism) == "lonlat"
    [truth] = (as_lonlat if lonlat else as_points)(np.atleast_2d(place), "place")
    plane, offset, reports = local_plane(truth, lonlat=lonlat), np.array([promise.radius, 0.0]), promise.reports
    other, sample = plane.at(offset), as_sampler(mechanism, rng)

    def scores(where: FloatArray, count: int) -> FloatArray:
        """Return two sums over each sequence, (2, count): how much closer to the truth, and how far behind it."""
        total = np.zeros((2, count))
        for _ in range(reports):
            xy = plane.to_xy(sample(np.tile(where, (count, 1))))
            total[0] += np.hypot(*(xy - offset).T) - np.hypot(*xy.T)
            total[1] -= xy[:, 0]
        return total

    half = -(-sequences // 2)
    chosen, largest = (0, -math.inf), -math.inf
    for number, (here, there) in enumerate(zip(scores(truth, half), scores(other, half), strict=True)):
        for threshold in np.unique(np.quantile(here, 1 - np.array(SHARES))):
            counts = int((here >= threshold).sum()), int((there >= threshold).sum())
            value = bound(*counts, half, 0.01, delta=delta)
            if value > largest:
                chosen, largest = (number, float(threshold)), value
    number, threshold = chosen
    hits = [int((scores(where, sequences)[number] >= threshold).sum()) for where in (truth, other)]
    level = bound(hits[0], hits[1], sequences, risk, delta=delta)
    return ReportsAudit(max(0.0, level), promise, confidence, (hits[0], hits[1]), sequences)


def _place(place: tuple[float, float]) -> str:
    return f"({round(place[0], 9):.8g}, {round(place[1], 9):.8g})"
