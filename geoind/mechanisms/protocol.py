"""What every mechanism is, and how mechanisms are put together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from geoind.arrays import ArrayLike, FloatArray, as_points
from geoind.errors import InvalidInputError
from geoind.randomness import RandomnessLike
from geoind.space.lattice import snap_lonlat

if TYPE_CHECKING:
    from geoind.space.projection import Projection

__all__ = ["Mechanism", "PostProcessed", "Projected", "Step"]

Step: TypeAlias = Callable[[FloatArray], FloatArray]
"""From (n, 2) reports to (n, 2) reports, without a look at the truth."""


@runtime_checkable
class Mechanism(Protocol):
    """Whatever has an epsilon (privacy loss per metre) and a batched `sample`."""

    @property
    def epsilon(self) -> float:
        """Privacy loss per metre."""
        ...

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each of the (n, 2) points."""
        ...


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

    @property
    def epsilon(self) -> float:
        """The mechanism's own privacy loss per metre."""
        return self.mechanism.epsilon

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one processed report for each of the (n, 2) points."""
        reports = self.mechanism.sample(points, rng=rng)
        processed = as_points(self.step(reports), "step's result")
        if processed.shape != reports.shape:
            raise InvalidInputError(f"step must return {reports.shape}, got {processed.shape}")
        return processed


@dataclass(frozen=True)
class Projected:
    """A planar mechanism made to speak lon/lat, through a projection.

    The promise is the mechanism's, in *projected* metres. On the ground it is
    `epsilon * projection.largest_scale(region)` over a region; within 50 km of the origin of a local plane
    the difference is below one part in 50 000.

    Examples
    --------
    >>> from geoind import PlanarLaplace, Projection
    >>> paris = Projected(PlanarLaplace(0.01), Projection(2.35, 48.86))
    >>> paris.sample([[2.2945, 48.8584]]).shape
    (1, 2)
    """

    mechanism: Mechanism
    projection: "Projection"

    @property
    def epsilon(self) -> float:
        """Privacy loss per projected metre."""
        return self.mechanism.epsilon

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each (n, 2) lon/lat point, in degrees, on the public lattice."""
        xy = self.mechanism.sample(self.projection.to_xy(points), rng=rng)
        return snap_lonlat(self.projection.to_lonlat(xy))
