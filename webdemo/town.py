"""A town as the demo needs it: the base map in metres, and where its people may be."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import shapely

from geoind import InvalidInputError, Places, Prior, Projection
from geoind.arrays import FloatArray
from geoind.distances import EARTH_RADIUS
from geoind.maps.basemap import Basemap

from .requests import Point

__all__ = ["Town", "to_latlon"]

HOMES = 4000
"""About how many places stand for the insides of the town's buildings."""

FINEST = 12.0
"""Metres between those places at least."""

MARGIN = 3000.0
"""How far outside the map a location may lie, in metres."""


@dataclass(frozen=True, eq=False)
class Town:
    """A base map with a plane of metres around its centre."""

    basemap: Basemap

    @cached_property
    def projection(self) -> Projection:
        """The plane around the public centre of the map."""
        west, south, east, north = self.basemap.bounds
        return Projection((west + east) / 2, (south + north) / 2)

    @cached_property
    def extent(self) -> FloatArray:
        """South-west and north-east corner in metres."""
        west, south, east, north = self.basemap.bounds
        return self.projection.to_xy([[west, south], [east, north]])

    @cached_property
    def prior(self) -> Prior:
        """What somebody who knows the town believes: people are in buildings, more of them where floors are."""
        buildings = shapely.transform(self.basemap.buildings.geometry.to_numpy(), self.projection.to_xy)
        floors = self.basemap.buildings["floors"].to_numpy(dtype=float)
        if not len(buildings):
            return Prior.uniform(Places(self._lattice(math.sqrt(np.prod(np.ptp(self.extent, axis=0)) / HOMES))))
        step = max(FINEST, math.sqrt(shapely.area(buildings).sum() / HOMES))
        points = self._lattice(step)
        inside, number = shapely.STRtree(buildings).query(shapely.points(points), predicate="within")
        empty = np.setdiff1d(np.arange(len(buildings)), number)
        small = shapely.get_coordinates(shapely.point_on_surface(buildings[empty]))
        places = np.vstack([points[inside], small])
        # A building that no point of the lattice fell into counts with its own area.
        share = np.concatenate([floors[number], floors[empty] * shapely.area(buildings[empty]) / step**2])
        return Prior.from_counts(Places(places), share)

    @cached_property
    def prior_latlon(self) -> FloatArray:
        """The prior's places as (n, 2) latitudes and longitudes, to six decimals."""
        return to_latlon(self.projection.to_lonlat(self.prior.sites.xy))

    def _lattice(self, step: float) -> FloatArray:
        (west, south), (east, north) = self.extent
        x, y = np.meshgrid(np.arange(west, east, step), np.arange(south, north, step))
        return np.column_stack([x.ravel(), y.ravel()])

    def here(self, *points: Point) -> FloatArray:
        """Return (n, 2) lon/lat degrees of locations that lie in or near the town."""
        lonlat = np.array([[point.lon, point.lat] for point in points])
        west, south, east, north = self.basemap.bounds
        high = math.degrees(MARGIN / EARTH_RADIUS)
        wide = high / max(0.01, math.cos(math.radians((south + north) / 2)))
        near = (lonlat >= [west - wide, south - high]) & (lonlat <= [east + wide, north + high])
        if not near.all():
            raise InvalidInputError(f"a location must lie within {MARGIN / 1000:g} km of the map of this town")
        return lonlat

    def distance(self, lonlat: FloatArray, other: FloatArray) -> FloatArray:
        """Return metres between matching rows of degrees."""
        return np.asarray(np.linalg.norm(self.projection.to_xy(lonlat) - self.projection.to_xy(other), axis=1))


def to_latlon(lonlat: FloatArray) -> FloatArray:
    """Return latitudes and longitudes, in Leaflet's order, to six decimals."""
    return lonlat[:, ::-1].round(6)
