"""A mechanism followed by a post-processing step, and the step that moves reports into a region."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import shapely

from geoind.arrays import ArrayLike, FloatArray, as_lonlat, as_points
from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import (
    UNITS,
    Mechanism,
    RandomnessLike,
    Space,
    accepted,
    check_inside,
    check_truths,
    off_site_level,
    space_of,
)

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

__all__ = ["ClosestIn", "PostProcessed", "Step"]

Step: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function from (n, 2) reports to (n, 2) reports; it has no access to the truth.

It may have the attribute `space`, if it accepts one space only; the method `reach_after(reach)`, a bound on the
distance between truth and processed report in metres if the distance was at most `reach` before; and the method
`check_inside(points)`, which raises an error for truths where that bound does not hold.
"""


@runtime_checkable
class _Reaching(Protocol):
    def reach_after(self, reach: float) -> float: ...


@dataclass(frozen=True)
class PostProcessed:
    """A mechanism followed by a step that reads reports only, so that its guarantee is unchanged.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism that adds the noise.
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
        space = space_of(self.mechanism)
        # A step without a space may follow any mechanism.
        accepted = getattr(self.step, "space", space)
        if accepted != space:
            raise InvalidInputError(
                f"{type(self.mechanism).__name__} reports {UNITS[space]}, but the step needs "
                f"{UNITS.get(accepted, accepted)}"
            )

    @property
    def epsilon(self) -> float:
        """Privacy loss per metre of the mechanism."""
        return self.mechanism.epsilon

    @property
    def space(self) -> Space:
        """The space of the mechanism."""
        return self.mechanism.space

    @property
    def off_site_level(self) -> float:
        """The off-site level of the mechanism."""
        return off_site_level(self.mechanism)

    def reach(self, confidence: float) -> float:
        """Return the metres within which a processed report lies of its truth with at least this probability.

        Defined for steps with a method `reach_after`: `grid.snap`, `ClosestIn` and `PosteriorRemap` in the plane.
        """
        # The reach_after of a step without a space is in metres of the plane.
        step: object = self.step
        if not isinstance(step, _Reaching) or getattr(step, "space", "xy") != self.space:
            raise InvalidInputError(
                f"the distance by which this step moves a report is not known: give the step a method reach_after "
                f"for {UNITS[self.space]}, or pass a bound of your own (report_reach)"
            )
        return step.reach_after(self.mechanism.reach(confidence))

    def accepts(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which truths the mechanism accepts."""
        return accepted(self.mechanism, points)

    def check_truths(self, points: FloatArray) -> None:
        """Raise an error for truths that the mechanism does not accept."""
        check_truths(self.mechanism, points)

    def check_inside(self, points: FloatArray) -> None:
        """Raise an error for truths outside the region of the step or of the mechanism."""
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


@dataclass(frozen=True)
class ClosestIn:
    """A step for `PostProcessed` that moves each report to the closest point of a region.

    It reads the report only, so the guarantee is unchanged. Drawing again until a report falls inside would not
    be private: the probability of falling inside depends on the truth, and the measured epsilon grows by half on
    a 9 x 9 grid. For the cells of a grid use `grid.snap`.

    Parameters
    ----------
    region : shapely geometry
        In metres of the plane, or in degrees.
    space : {"xy", "lonlat"}
        The space of the mechanism. With "lonlat", distances to the region are in degrees.

    Examples
    --------
    >>> import shapely
    >>> ClosestIn(shapely.box(0, 0, 10, 10))([[5, 5], [12, 3]])
    array([[ 5.,  5.],
           [10.,  3.]])
    """

    region: "BaseGeometry"
    space: Space = field(default="xy", kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.region, shapely.Geometry) or self.region.is_empty or not self.region.is_valid:
            raise InvalidInputError("region must be a valid, non-empty shapely geometry")
        if self.space not in UNITS:
            raise InvalidInputError(f"space must be 'xy' or 'lonlat', got {self.space!r}")
        if self.space == "lonlat":
            as_lonlat(shapely.get_coordinates(self.region), "region")
        shapely.prepare(self.region)

    def __call__(self, reports: ArrayLike) -> FloatArray:
        """Return the closest points of the region."""
        closest = np.array(as_points(reports, "reports"))
        outside = ~shapely.intersects_xy(self.region, closest)
        if outside.any():
            lines = shapely.shortest_line(self.region, shapely.points(closest[outside]))
            closest[outside] = shapely.get_coordinates(shapely.get_point(lines, 0))
        return closest

    def reach_after(self, reach: float) -> float:
        """Return a bound on the distance from a truth in the region to a report after the step.

        `reach` is the bound before the step. The closest point of a convex region is no farther from the truth.
        That of another region is at most as far from the report as the truth is. Defined in the plane only,
        because the length of a degree varies.
        """
        if self.space == "lonlat":
            raise InvalidInputError(
                "the distance by which ClosestIn moves a report is not known in degrees: use a region in metres, "
                "or pass a bound of your own (report_reach)"
            )
        return reach if self.region.equals(self.region.convex_hull) else 2 * reach

    def check_inside(self, points: FloatArray) -> None:
        """Raise an error for truths outside the region."""
        inside = np.asarray(shapely.intersects_xy(self.region, points))
        if not inside.all():
            raise InvalidInputError(f"row {np.argmin(inside)} lies outside the region that reports are moved to")
