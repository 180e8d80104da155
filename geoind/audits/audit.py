"""A lower bound on epsilon from samples alone: the mechanism is a black box.

For two places x and x' at distance d and any set S of reports, epsilon is at least ln(P[S | x] / P[S | x']) / d.
S is chosen on draws of its own; fresh draws then bound the two probabilities (Clopper and Pearson). A large bound
proves that a promise is broken. A small one proves nothing: see `AuditResult.smallest_visible`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from geoind.arrays import ArrayLike, FloatArray, as_count, as_lonlat, as_points, as_positive, as_unit
from geoind.audits.events import Seen, bound, choose_event
from geoind.audits.trials import FAR, Trial, Vicinity, as_sampler, trials_at
from geoind.errors import InvalidInputError, plural
from geoind.mechanisms.protocol import Mechanism, is_mechanism, off_site_level, space_of
from geoind.pictures.card import card
from geoind.pictures.cells import axes_or_new
from geoind.randomness import RandomnessLike
from geoind.space.projection import Projection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AuditResult", "Finding", "audit"]

CHOOSING = 500_000
"""Reports, at most, from which an event is learned, and as many again by which it is chosen."""

BLOCK = 1_000_000
"""Reports that are looked at together: memory stays flat however many there are."""

EVENT_MASS = 0.15
"""How likely the best event against planar Laplace noise is, about."""


class Finding(NamedTuple):
    """What one pair of places shows: a bound on epsilon per metre, and the event that shows it."""

    epsilon: float
    truth: tuple[float, float]
    other: tuple[float, float]
    distance: float
    event: str
    hits: tuple[int, int]
    draws: int


@dataclass(frozen=True, repr=False)
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
        One for each trial.
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
        """Draw what each pair of places shows beside the promise, and return the axes.

        A bar beyond the solid line breaks the promise; an epsilon left of the dotted one could not have been seen.

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
        axes.axvline(self.claimed, color="black", label="the promise")
        axes.axvline(self.smallest_visible, color="black", linestyle=":", label="smallest violation seen")
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

    Around each place these are tried: four pairs at distance 2.5 / epsilon, in four directions; on two lines the
    two close places between which reports jump most; pairs of rows of one call; and pairs of calls with one point
    each. For a `Channel`, `tight_epsilon` measures the exact value instead.

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
        Reports per place and pair from which probabilities are bounded; as many again, up to a million, choose
        the events. Time grows with them, memory does not.
    confidence : float
        That the bound holds, for all pairs together.
    rng : RandomnessLike
        Handed to a mechanism; None leaves it to its own.

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
        spoken = space_of(mechanism) == "lonlat"
        if lonlat is not None and lonlat != spoken:
            raise InvalidInputError(f"this {type(mechanism).__name__} speaks {'degrees' if spoken else 'metres'}")
        lonlat = spoken
    spots = as_lonlat(places, "places") if lonlat else as_points(places, "places")
    sample = as_sampler(mechanism, rng)
    trials = [
        trial
        for spot in spots
        for trial in trials_at(
            Vicinity(spot, Projection(*spot) if lonlat else None), sample, epsilon=claimed, draws=draws
        )
    ]
    risk = (1 - confidence) / len(trials)
    allowed = off_site_level(mechanism) if is_mechanism(mechanism) else 0.0
    findings = tuple(_try(trial, risk, allowed) for trial in trials)
    expected = bound(round(EVENT_MASS * draws), round(EVENT_MASS * math.exp(-FAR) * draws), draws, risk) / FAR
    return AuditResult(claimed, confidence, findings, claimed / max(expected, 1e-9))


def _try(trial: Trial, risk: float, allowed: float) -> Finding:
    """Return the bound of one trial: the event from draws of its own, the probabilities from fresh ones.

    `allowed` is what the mechanism may tell beyond epsilon times distance.
    """
    half = min(-(-trial.draws // 2), CHOOSING)

    def reports(count: int) -> tuple[Seen, Seen]:
        return trial.seen(trial.truth, count), trial.seen(trial.other, count)

    event = choose_event(reports(half), reports(half), trial.offset)
    here = there = 0
    for start in range(0, trial.draws, BLOCK):
        seen_here, seen_there = reports(min(BLOCK, trial.draws - start))
        here += int(event.contains(seen_here).sum())
        there += int(event.contains(seen_there).sum())
    told = max(0.0, bound(here, there, trial.draws, risk) - allowed)
    truth, other = ((float(place[0]), float(place[1])) for place in (trial.truth, trial.other))
    name = event.name + trial.how
    return Finding(told / trial.distance, truth, other, trial.distance, name, (here, there), trial.draws)


def _place(place: tuple[float, float]) -> str:
    return f"({place[0]:.8g}, {place[1]:.8g})"
