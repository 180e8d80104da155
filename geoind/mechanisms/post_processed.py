"""A mechanism followed by a step that sees its reports only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from geoind.arrays import ArrayLike, FloatArray, as_lonlat, as_points
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import (
    SPOKEN,
    Mechanism,
    Space,
    check_inside,
    check_truths,
    off_site_level,
    space_of,
)
from geoind.randomness import RandomnessLike

__all__ = ["PostProcessed", "Step"]

Step: TypeAlias = Callable[[FloatArray], FloatArray]
"""From (n, 2) reports to (n, 2) reports, without a look at the truth.

It may have a `space`, if it works in one only; `reach_after(reach)`, the metres within which a report lies of its
truth after the step if it was within `reach` before; and `check_inside(points)`, for truths where that holds.
"""


@runtime_checkable
class _Reaching(Protocol):
    def reach_after(self, reach: float) -> float: ...


@dataclass(frozen=True)
class PostProcessed:
    """A mechanism followed by a step that sees reports only, so that the promise stays as it is.

    Parameters
    ----------
    mechanism : Mechanism
        What makes the noise.
    step : callable
        From (n, 2) reports to (n, 2) reports: snapping, truncation to a region, remapping.

    Examples
    --------
    >>> from geoind import Grid, PlanarLaplace
    >>> grid = Grid(0, 0, cell=100, columns=9, rows=9)
    >>> coarse = PostProcessed(PlanarLaplace(0.01), grid.snap)
    >>> coarse.epsilon
    0.01
    >>> bool((coarse.sample([[400, 400]]) % 100 == 0).all())
    True
    """

    mechanism: Mechanism
    step: Step

    def __post_init__(self) -> None:
        if not callable(self.step):
            raise InvalidInputError(f"step must be callable, got {type(self.step).__name__}")
        spoken = space_of(self.mechanism)
        # A step that does not say where it works follows any mechanism.
        works_in = getattr(self.step, "space", spoken)
        if works_in != spoken:
            raise InvalidInputError(
                f"{type(self.mechanism).__name__} speaks {SPOKEN[spoken]}, and the step works in "
                f"{SPOKEN.get(works_in, works_in)}"
            )

    @property
    def epsilon(self) -> float:
        """The mechanism's own privacy loss per metre."""
        return self.mechanism.epsilon

    @property
    def space(self) -> Space:
        """The mechanism's own."""
        return self.mechanism.space

    @property
    def off_site_level(self) -> float:
        """The mechanism's own."""
        return off_site_level(self.mechanism)

    def reach(self, confidence: float) -> float:
        """Return the metres within which a processed report lies of its truth with at least this probability.

        Known for steps that tell how far they move a report: `grid.snap`, `ClosestIn` and `PosteriorRemap` in
        the plane.
        """
        # A step that does not say where it works measures in the plane.
        step: object = self.step
        if not isinstance(step, _Reaching) or getattr(step, "space", "xy") != self.space:
            raise InvalidInputError(
                f"how far the step of this PostProcessed moves a report, in metres, is not known: it needs a "
                f"reach_after for {SPOKEN[self.space]}, or the caller's own bound (report_reach)"
            )
        return step.reach_after(self.mechanism.reach(confidence))

    def check_truths(self, points: FloatArray) -> None:
        """Refuse what the mechanism refuses."""
        check_truths(self.mechanism, points)

    def check_inside(self, points: FloatArray) -> None:
        """Refuse truths outside the region that the step, or the mechanism, covers."""
        check_inside(self.step, points)
        check_inside(self.mechanism, points)

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one processed report for each of the (n, 2) points."""
        reports = self.mechanism.sample(points, rng=rng)
        as_places = as_lonlat if self.space == "lonlat" else as_points
        processed = as_places(self.step(reports), "step's result")
        if processed.shape != reports.shape:
            raise InvalidInputError(f"step must return {reports.shape}, got {processed.shape}")
        return processed
