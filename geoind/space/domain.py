"""The domain of a projection: a public region of the globe, with bounds on the projection's scale.

A mechanism with epsilon per projected metre has epsilon times the largest scale per metre on the ground, between
any two locations of its domain. The scale is therefore bounded over all geodesics between two locations of the
domain, not over the domain alone.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import shapely

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.space.geodesy import geodesic_lengths
from geoind.space.projection import Projection

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

__all__ = ["LOCAL_RADIUS", "Domain", "domain_of", "largest_scale_within"]

LOCAL_RADIUS = 100_000.0
"""Radius of the default domain of a local plane around its origin, in metres."""

POLAR_RADIUS = 6_356_752.314
"""The smaller half axis of WGS84, in metres: its curvature is at most that of a sphere of this radius."""

SIDE = 50
"""Samples per side at which the scale of a projection is measured."""

HALF_STEP = 50.0
"""Ground metres to each side over which the scale is measured."""

SLOWER = 1.0034
"""Bound on the ratio of longitudes on a geodesic's auxiliary sphere to those of WGS84: 1 / (1 - f)."""


DISCONTINUOUS = "the projection is discontinuous within its domain: pass a domain without the discontinuity"


Domain: TypeAlias = "_Disc | _Region"
"""A region of the globe on which a projection's scale has bounds."""


def domain_of(projection: Projection, region: "BaseGeometry | None" = None) -> Domain:
    """Return a lon/lat region as the domain of a projection.

    Default: within 100 km of the origin of a local plane, or the area of use of a CRS.
    """
    if region is None and projection.is_local:
        return _Disc()
    return _Region(projection, region, _box_of(projection, region))


def largest_scale_within(radius: float) -> float:
    """Return a bound on the scale of a local plane, between any two locations within a radius of its origin.

    Lengths along rays from the origin are exact. A circle of radius r has the length 2 pi r in the plane and
    2 pi m(r) on the ground, where m'' = -K m and the curvature K of WGS84 is positive and at most 1 / b^2: hence
    b sin(r / b) <= m(r) <= r, by Sturm's comparison. Discs are convex: no geodesic leaves one.
    """
    arc = radius / POLAR_RADIUS
    return arc / math.sin(arc) if arc > 0 else 1.0


@dataclass(frozen=True)
class _Disc:
    """The locations within a radius of a local plane's origin: `largest_scale_within` says why it has a bound."""

    def contains(self, lonlat: FloatArray, xy: FloatArray) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        """Return for each of the (n, 2) locations, also given in the plane, whether it is in the domain."""
        return np.asarray(np.hypot(xy[:, 0], xy[:, 1]) <= LOCAL_RADIUS)

    def has(self, lon: float, lat: float, x: float, y: float) -> bool:  # noqa: ARG002
        """Return what `contains` does, for one location."""
        return bool(np.hypot(x, y) <= LOCAL_RADIUS)

    @property
    def largest_scale(self) -> float:
        """Largest ratio of the distance in the plane to the ground distance, over all pairs of the domain."""
        return largest_scale_within(LOCAL_RADIUS)

    def smallest_scale(self, beyond: float) -> float:  # noqa: ARG002
        """Return the smallest scale, over the domain and up to `beyond` metres around it."""
        return 1.0

    def __str__(self) -> str:
        return f"within {LOCAL_RADIUS / 1000:g} km of the projection's origin"


class _Box(NamedTuple):
    """A range of latitudes, and of longitudes from `west` over `width` degrees to the east."""

    west: float
    south: float
    width: float
    north: float

    @property
    def is_cap(self) -> bool:
        """Whether it surrounds a pole, on one side of the equator."""
        return self.width >= 360 and (
            (self.north == 90 and self.south >= 0) or (self.south == -90 and self.north <= 0)
        )

    def hull(self) -> "_Box":
        """Return a box that contains all geodesics between two of its locations."""
        if self.is_cap:
            return self
        # A geodesic between two locations of one latitude is farthest from the equator half way:
        # tan = tan(latitude) / cos(half of the longitudes).
        rise = 1 / math.cos(math.radians(self.width * SLOWER / 2))
        south, north = (
            math.degrees(math.atan(math.tan(math.radians(lat)) * rise)) for lat in (self.south, self.north)
        )
        return _Box(self.west, min(self.south, south), self.width, max(self.north, north))

    def widened(self, metres: float) -> "_Box":
        """Return the box enlarged by a distance."""
        south, north = max(-90.0, self.south - metres / 110_000), min(90.0, self.north + metres / 110_000)
        if self.is_cap:
            return _Box(self.west, south, self.width, north)
        steepest = math.cos(math.radians(max(abs(south), abs(north))))
        more = metres / 110_000 / steepest if steepest > 1e-6 else 360.0
        return _Box(self.west - more, south, min(360.0, self.width + 2 * more), north)


@dataclass(frozen=True)
class _Region:
    """A lon/lat geometry, or the area of use of a CRS; its scale is measured over its bounding box."""

    projection: Projection
    region: "BaseGeometry | None"
    box: _Box

    def contains(self, lonlat: FloatArray, xy: FloatArray) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        lon, lat = lonlat.T
        if self._rectangle is not None:
            west, south, east, north = self._rectangle
            return np.asarray((west <= lon) & (lon <= east) & (south <= lat) & (lat <= north))
        if self.region is not None:
            return np.asarray(shapely.intersects_xy(self.region, lonlat), dtype=np.bool_)
        within = (lon - self.box.west) % 360 <= self.box.width
        return np.asarray(within & (self.box.south <= lat) & (lat <= self.box.north))

    def has(self, lon: float, lat: float, x: float, y: float) -> bool:
        if self._rectangle is not None:
            west, south, east, north = self._rectangle
            return west <= lon <= east and south <= lat <= north
        return bool(self.contains(np.array([[lon, lat]]), np.array([[x, y]]))[0])

    @cached_property
    def _rectangle(self) -> tuple[float, float, float, float] | None:
        """West, south, east and north of a region that is a box of degrees."""
        if self.region is None or not shapely.box(*self.region.bounds).equals(self.region):
            return None
        west, south, east, north = self.region.bounds
        return west, south, east, north

    @property
    def largest_scale(self) -> float:
        return _scales(self.projection, self.box.hull())[1]

    def smallest_scale(self, beyond: float) -> float:
        # Rounded up to a power of two, so that few boxes are measured.
        wider = 2.0 ** math.ceil(math.log2(beyond)) if beyond > 0 else 0.0
        return _scales(self.projection, self.box.widened(wider))[0]

    def __str__(self) -> str:
        if self.region is not None:
            return "within the domain that was given"
        west, south, width, north = self.box
        return f"between {south:g} and {north:g} degrees north, from {west:g} over {width:g} degrees to the east"


def _box_of(projection: Projection, region: "BaseGeometry | None") -> _Box:
    if region is None:
        bounds = projection.area_of_use
        if bounds is None:
            raise InvalidInputError("this CRS has no area of use: pass domain=, in lon/lat degrees")
    else:
        if not isinstance(region, shapely.Geometry) or region.is_empty or not region.is_valid:
            raise InvalidInputError("domain must be a valid, non-empty shapely geometry in lon/lat degrees")
        bounds = region.bounds
    west, south, east, north = bounds
    if not (-180 <= west <= 180 and -180 <= east <= 180 and -90 <= south <= north <= 90):
        raise InvalidInputError("domain must be in lon/lat degrees")
    box = _Box(west, south, 360.0 if east - west >= 360 else (east - west) % 360, north)
    if not box.is_cap and box.width * SLOWER >= 179:
        raise InvalidInputError(
            "the domain extends half around the Earth, where two locations can be close on the ground and far "
            "apart in the plane: pass a narrower domain, in lon/lat degrees"
        )
    return box


@lru_cache(maxsize=64)
def _scales(projection: Projection, box: _Box) -> tuple[float, float]:
    """Return bounds of the scale over a box, from measurements and their differences between neighbours.

    Projections are smooth, so between samples the scale differs from that of the neighbours by no more than these
    differ. A discontinuous projection, where neighbours are far apart in the plane, raises an error.
    """
    lon, lat = np.meshgrid(
        box.west + np.linspace(0, box.width, SIDE), np.linspace(box.south, box.north, SIDE), indexing="ij"
    )
    lonlat = np.column_stack([(lon.ravel() + 180) % 360 - 180, lat.ravel()])
    try:
        scales = projection.scales_at(lonlat, HALF_STEP).reshape(SIDE, SIDE, 2)
        xy = projection.to_xy(lonlat).reshape(SIDE, SIDE, 2)
    except InvalidInputError as error:
        raise InvalidInputError(
            "the projection is not defined on all of its domain: pass a smaller one"
        ) from error
    places = lonlat.reshape(SIDE, SIDE, 2)
    slack = 0.0
    for one, other in (
        ((slice(1, None), slice(None)), (slice(None, -1), slice(None))),
        ((slice(None), slice(1, None)), (slice(None), slice(None, -1))),
    ):
        slack = max(slack, float(np.abs(scales[one] - scales[other]).max()))
        ground = geodesic_lengths(places[one].reshape(-1, 2), places[other].reshape(-1, 2))
        plane = np.hypot(*(xy[one] - xy[other]).reshape(-1, 2).T)
        if (plane > 1 + (scales.max() + slack) * ground).any():
            raise InvalidInputError(DISCONTINUOUS)
    if box.width >= 360 and np.hypot(*(xy[0] - xy[-1]).T).max() > 1:
        raise InvalidInputError(DISCONTINUOUS)
    smallest = float(scales.min()) - slack
    if smallest <= 0:
        raise InvalidInputError("the projection's scale varies too much over its domain: pass a smaller one")
    return smallest, float(scales.max()) + slack
