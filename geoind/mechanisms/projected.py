"""A planar mechanism that accepts lon/lat, with epsilon per metre on the ground."""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from geoind.arrays import ArrayLike, FloatArray, as_lonlat
from geoind.distances import GEODESIC_STRETCH
from geoind.errors import InvalidInputError
from geoind.mechanisms.noise import DECIMALS, half_diagonal, snap_lonlat
from geoind.mechanisms.protocol import (
    Mechanism,
    RandomnessLike,
    Space,
    accepted,
    as_randomness,
    at_places,
    check_inside,
    check_truths,
    fresh_pair,
    off_site_level,
    require_space,
)
from geoind.space.domain import Domain, domain_of
from geoind.space.projection import Projection

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

__all__ = ["Projected"]


@dataclass(frozen=True)
class Projected:
    """A planar mechanism that accepts and reports lon/lat, through a projection.

    A projection distorts lengths, so `epsilon` is the mechanism's times the projection's largest scale over the
    domain: privacy loss per metre *on the ground* (WGS84), between any two locations of the domain. Locations
    outside the domain raise an error.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism in metres (`space` "xy").
    projection : Projection
        From lon/lat to the mechanism's metres.
    domain : shapely geometry, optional
        The public region of true locations, in lon/lat degrees. Default: within 100 km of the origin of a local
        plane; for a CRS, its area of use.

    Examples
    --------
    >>> from geoind import PlanarLaplace, Projection
    >>> paris = Projected(PlanarLaplace(0.01), Projection(2.35, 48.86))
    >>> paris.sample([[2.2945, 48.8584]]).shape
    (1, 2)
    >>> round(paris.epsilon, 7)
    0.0100004
    >>> import shapely
    >>> web = Projection.from_crs("EPSG:3857")
    >>> round(Projected(PlanarLaplace(0.01), web, domain=shapely.box(10, 59.8, 11, 60.2)).epsilon, 4)
    0.0201
    """

    mechanism: Mechanism
    projection: Projection
    _: KW_ONLY
    domain: "BaseGeometry | None" = None

    space: ClassVar[Space] = "lonlat"
    decimals: ClassVar[int] = DECIMALS

    def __post_init__(self) -> None:
        require_space("xy", self.mechanism)
        if not isinstance(self.projection, Projection):
            raise InvalidInputError(f"projection must be a Projection, got {type(self.projection).__name__}")
        _ = self._where.largest_scale  # raises here for a domain without a bound

    @cached_property
    def epsilon(self) -> float:
        """Privacy loss per metre on the ground, between any two locations of the domain."""
        return self.mechanism.epsilon * self.largest_scale

    @property
    def largest_scale(self) -> float:
        """Largest ratio of the distance in the plane to the distance on the ground, over all pairs of the domain.

        Examples
        --------
        >>> from geoind import PlanarGaussian, Projection
        >>> round(Projected(PlanarGaussian(500), Projection(2.35, 48.86)).largest_scale, 6)
        1.000041
        """
        return self._where.largest_scale

    @property
    def off_site_level(self) -> float:
        """Privacy loss beyond epsilon times distance, where the mechanism first moves the truth to a site."""
        return off_site_level(self.mechanism)

    @property
    def guarantee(self) -> str:
        """The guarantee, in a sentence.

        Examples
        --------
        >>> from geoind import Grid, PlanarLaplace, Projection, discretise
        >>> channel = discretise(PlanarLaplace(0.01), Grid(0, 0, cell=100, columns=3, rows=3))
        >>> print(Projected(channel, Projection(2.35, 48.86)).guarantee)
        A privacy loss of at most 0.00982614 per metre on the ground, within 100 km of the projection's origin, and
        1.39 more where a truth is not one of the mechanism's sites.
        """
        if self.epsilon == math.inf:
            return f"No bound on the privacy loss per metre: {type(self.mechanism).__name__} has no epsilon."
        text = f"A privacy loss of at most {self.epsilon:.6g} per metre on the ground, {self._where}"
        if self.off_site_level:
            text += f", and {self.off_site_level:.3g} more where a truth is not one of the mechanism's sites"
        return text + "."

    def reach(self, confidence: float) -> float:
        """Return the WGS84 metres within which a report lies of its truth with at least this probability."""
        planar = self.mechanism.reach(confidence)
        # A report may leave the domain, so the scale is also bounded around it.
        beyond = 2 * planar / self._where.smallest_scale(0.0)
        ground = planar / self._where.smallest_scale(beyond)
        if ground > beyond:
            raise InvalidInputError("the projection's scale varies too much where reports may fall")
        return ground + GEODESIC_STRETCH * half_diagonal(self.decimals)

    @property
    def mean_radius(self) -> float:
        """The mean error of a mechanism that has one, in metres on the ground, with the smallest scale."""
        mean: Any = getattr(self.mechanism, "mean_radius")  # noqa: B009 - not every mechanism has it
        return float(mean) / self._where.smallest_scale(0.0)

    def check_truths(self, points: FloatArray) -> None:
        """Raise an error for truths outside the domain, and for those that the mechanism does not accept."""
        check_truths(self.mechanism, self._xy_within(as_lonlat(points)))

    def accepts(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Return for each truth whether it is in the domain, and the mechanism accepts it.

        Examples
        --------
        >>> from geoind import PlanarLaplace, Projection
        >>> Projected(PlanarLaplace(0.01), Projection(2.35, 48.86)).accepts([[2.29, 48.86], [10.75, 59.91]])
        array([ True, False])
        """
        lonlat = as_lonlat(points)
        xy = self.projection.to_xy(lonlat)
        inside = self._where.contains(lonlat, xy)
        inside[inside] = accepted(self.mechanism, xy[inside])
        return inside

    def check_inside(self, points: FloatArray) -> None:
        """Raise an error for truths outside the domain, or outside the mechanism's region."""
        check_inside(self.mechanism, self._xy_within(as_lonlat(points)))

    def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:
        """Return one report for each (n, 2) lon/lat point of the domain, in degrees, on the public lattice."""
        lonlat = as_lonlat(points)
        if rng is None and len(lonlat) == 1 and self.sample_one is not None:
            return np.array([self.sample_one(lonlat.item(0), lonlat.item(1), *fresh_pair())])
        truth, draw = self._xy_within(lonlat), getattr(self.mechanism, "sample_outputs", None)
        # Keyed words depend on the degrees: the last bits of metres differ between versions of PROJ.
        source = at_places(as_randomness(rng, len(lonlat)), lonlat)
        if draw is not None:
            return np.asarray(self.reports[draw(truth, rng=source)])
        return self._reported(self.mechanism.sample(truth, rng=source))

    @property
    def sample_one(self) -> Callable[[float, float, int, int], tuple[float, float]] | None:
        """A function from valid degrees and two random 64-bit words to a report, without arrays.

        None unless the mechanism has such a function, too: `sample_output`.

        Examples
        --------
        >>> from geoind import Grid, Projection, planar_geometric
        >>> from geoind.channels import Interpolated
        >>> channel = planar_geometric(Grid(0, 0, cell=100, columns=5, rows=5), epsilon=0.01)
        >>> Projected(Interpolated(channel), Projection(2.35, 48.86)).sample_one(2.351, 48.861, 2**63, 2**63)
        (2.35136, 48.8609)
        """
        return self._sample_one if hasattr(self.mechanism, "sample_output") else None

    def _sample_one(self, lon: float, lat: float, first: int, second: int) -> tuple[float, float]:
        x, y = self.projection.to_xy_one(lon, lat)
        if not self._where.has(lon, lat, x, y):
            self._xy_within(np.array([[lon, lat]]))  # raises
        draw: Any = getattr(self.mechanism, "sample_output")  # noqa: B009 - not every mechanism has it
        report_lon, report_lat = self.reports[draw(x, y, first, second)].tolist()
        return report_lon, report_lat

    def _reported(self, xy: FloatArray) -> FloatArray:
        return snap_lonlat(self.projection.to_lonlat(xy), self.decimals)

    @cached_property
    def reports(self) -> FloatArray:
        """All reports of a mechanism that has finitely many, (n, 2) degrees in the order of its outputs."""
        sites: Any = getattr(self.mechanism, "outputs")  # noqa: B009 - not every mechanism has it
        return self._reported(sites.xy)

    def _xy_within(self, lonlat: FloatArray) -> FloatArray:
        """Return locations of the domain in the plane; others raise an error."""
        xy = self.projection.to_xy(lonlat)
        inside = self._where.contains(lonlat, xy)
        if not inside.all():
            raise InvalidInputError(
                f"row {np.argmin(inside)} lies outside the domain of the projection, which is {self._where}: "
                "pass domain= for another one"
            )
        return xy

    @cached_property
    def _where(self) -> Domain:
        return domain_of(self.projection, self.domain)
