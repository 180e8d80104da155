"""Where a projection may be used: a public region of the globe, and how much the plane stretches it there.

A mechanism that promises epsilon per projected metre promises epsilon times the largest scale per metre on the
ground, between any two places of its domain. The scale is therefore bounded over every geodesic between two places
of the domain, not over the domain alone.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import shapely

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.space.geodesy import geodesic_lengths
from geoind.space.projection import Projection

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

__all__ = ["LOCAL_RADIUS", "Domain", "domain_of"]

LOCAL_RADIUS = 100_000.0
"""A local plane is for places within this many metres of its origin, unless a domain is given."""

POLAR_RADIUS = 6_356_752.314
"""The smaller half axis of WGS84, in metres: no point of it is curved more than a sphere of this radius."""

SIDE = 50
"""Samples per side at which a projection's scale is measured."""

HALF_STEP = 50.0
"""Ground metres to each side over which it is measured."""

SLOWER = 1.0034
"""Longitudes of a geodesic's auxiliary sphere are at most this much longer than those of WGS84: 1 / (1 - f)."""


class Domain(Protocol):
    """A region of the globe on which a projection's scale has bounds."""

    def contains(self, lonlat: FloatArray, xy: FloatArray) -> npt.NDArray[np.bool_]:
        """Return for each of the (n, 2) places, also given in the plane, whether it belongs to the domain."""
        ...

    @property
    def largest_scale(self) -> float:
        """No two places of the domain are farther apart in the plane than this times their ground distance."""
        ...

    def smallest_scale(self, beyond: float) -> float:
        """Return the fewest projected metres that a ground metre becomes, up to `beyond` metres outside too."""
        ...

    def __str__(self) -> str: ...


def domain_of(projection: Projection, region: "BaseGeometry | None" = None) -> Domain:
    """Return a lon/lat region as the domain of a projection.

    By default the places within 100 km of the origin of a local plane, or where a CRS says that it may be used.
    """
    if region is None and projection.is_local:
        return _Disc()
    return _Region(projection, region, _box_of(projection, region))


@dataclass(frozen=True)
class _Disc:
    """The places within a radius of a local plane's origin.

    The plane is true along rays from the origin. Across them a circle of radius r has its length in the plane
    2 pi r, on the ground 2 pi m(r), where m'' = -K m and the curvature K of WGS84 is positive and at most
    1 / b^2: hence b sin(r / b) <= m(r) <= r, by Sturm's comparison. Discs are convex: no geodesic leaves one.
    """

    def contains(self, lonlat: FloatArray, xy: FloatArray) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        return np.asarray(np.hypot(xy[:, 0], xy[:, 1]) <= LOCAL_RADIUS)

    @property
    def largest_scale(self) -> float:
        arc = LOCAL_RADIUS / POLAR_RADIUS
        return arc / math.sin(arc)

    def smallest_scale(self, beyond: float) -> float:  # noqa: ARG002
        return 1.0

    def __str__(self) -> str:
        return f"within {LOCAL_RADIUS / 1000:g} km of the projection's origin"


class _Box(NamedTuple):
    """Longitudes from `west` over `width` degrees eastwards, across the antimeridian if need be."""

    west: float
    south: float
    width: float
    north: float

    @property
    def is_cap(self) -> bool:
        """Whether it is all around a pole, on one side of the equator."""
        return self.width >= 360 and (
            (self.north == 90 and self.south >= 0) or (self.south == -90 and self.north <= 0)
        )

    def hull(self) -> "_Box":
        """Return a box that no geodesic between two of its places leaves."""
        if self.is_cap:
            return self
        # A geodesic between two places of one latitude culminates half way: tan = tan(latitude) / cos(half of it).
        rise = 1 / math.cos(math.radians(self.width * SLOWER / 2))
        south, north = (
            math.degrees(math.atan(math.tan(math.radians(lat)) * rise)) for lat in (self.south, self.north)
        )
        return _Box(self.west, min(self.south, south), self.width, max(self.north, north))

    def widened(self, metres: float) -> "_Box":
        """Return the box with everything within a distance of it."""
        south, north = max(-90.0, self.south - metres / 110_000), min(90.0, self.north + metres / 110_000)
        if self.is_cap:
            return _Box(self.west, south, self.width, north)
        steepest = math.cos(math.radians(max(abs(south), abs(north))))
        more = metres / 110_000 / steepest if steepest > 1e-6 else 360.0
        return _Box(self.west - more, south, min(360.0, self.width + 2 * more), north)


@dataclass(frozen=True)
class _Region:
    """A lon/lat geometry, or a CRS's area of use; its scale is measured over the box around it."""

    projection: Projection
    region: "BaseGeometry | None"
    box: _Box

    def contains(self, lonlat: FloatArray, xy: FloatArray) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        if self.region is not None:
            return np.asarray(shapely.intersects_xy(self.region, lonlat), dtype=np.bool_)
        lon, lat = lonlat.T
        east = (lon - self.box.west) % 360 <= self.box.width
        return np.asarray(east & (self.box.south <= lat) & (lat <= self.box.north))

    @property
    def largest_scale(self) -> float:
        return _scales(self.projection, self.box.hull())[1]

    def smallest_scale(self, beyond: float) -> float:
        # Up to a power of two: few boxes are measured, however many distances are asked for.
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
            raise InvalidInputError(
                "this CRS does not say where it may be used: give a domain, in lon/lat degrees"
            )
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
            "the domain reaches half round the Earth, where two places can be neighbours on the ground and far "
            "apart in the plane: give a narrower domain, in lon/lat degrees"
        )
    return box


@lru_cache(maxsize=64)
def _scales(projection: Projection, box: _Box) -> tuple[float, float]:
    """Return bounds of the scale over a box, from measurements and their differences between neighbours.

    Projections are smooth: between samples the scale does not leave those of its neighbours by more than they
    differ. One that is torn is refused: its neighbours lie apart in the plane.
    """
    lon, lat = np.meshgrid(
        box.west + np.linspace(0, box.width, SIDE), np.linspace(box.south, box.north, SIDE), indexing="ij"
    )
    lonlat = np.column_stack([(lon.ravel() + 180) % 360 - 180, lat.ravel()])
    try:
        scales = projection.scales_at(lonlat, HALF_STEP).reshape(SIDE, SIDE, 2)
        xy = projection.to_xy(lonlat).reshape(SIDE, SIDE, 2)
    except InvalidInputError as error:
        raise InvalidInputError("the projection cannot show all of its domain: give a smaller one") from error
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
            raise InvalidInputError("the projection is torn within its domain: give a domain beside the tear")
    if box.width >= 360 and np.hypot(*(xy[0] - xy[-1]).T).max() > 1:
        raise InvalidInputError("the projection is torn within its domain: give a domain beside the tear")
    smallest = float(scales.min()) - slack
    if smallest <= 0:
        raise InvalidInputError("the projection's scale varies too much over its domain: give a smaller one")
    return smallest, float(scales.max()) + slack
