"""A town of the demo: the base map in metres, and a prior of its people."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import shapely

from geoind import InvalidInputError, Places, Prior, Projection
from geoind.arrays import FloatArray, IntArray
from geoind.distances import EARTH_RADIUS
from geoind.maps.basemap import Basemap

from .requests import Point

__all__ = ["Town", "to_latlon"]

HOMES = 4000
"""Approximate number of places that represent the interior of buildings."""

FINEST = 12.0
"""Smallest distance between these places, in metres."""

AROUND = 9.0
"""Metres around a building that belong to its area."""

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
    def _households(self) -> tuple[Any, IntArray, FloatArray, FloatArray]:
        """Shapes in metres; and of each place in them: its shape's number, where it is, and its weight."""
        buildings = shapely.transform(self.basemap.buildings.geometry.to_numpy(), self.projection.to_xy)
        floors = self.basemap.buildings["floors"].to_numpy(dtype=float)
        # Where an extract cuts a building, a line may be left of it.
        real = shapely.area(buildings) > 0.1
        buildings, floors = buildings[real], floors[real]
        if not len(buildings):
            step = math.sqrt(np.prod(np.ptp(self.extent, axis=0)) / HOMES)
            cells = self._lattice(step)
            half = step / 2
            boxes = shapely.box(*(cells - half).T, *(cells + half).T)
            return boxes, np.arange(len(cells)), cells, np.ones(len(cells))
        step = max(FINEST, math.sqrt(shapely.area(buildings).sum() / HOMES))
        points = self._lattice(step)
        inside, number = shapely.STRtree(buildings).query(shapely.points(points), predicate="within")
        empty = np.setdiff1d(np.arange(len(buildings)), number)
        small = shapely.get_coordinates(shapely.point_on_surface(buildings[empty]))
        places = np.vstack([points[inside], small])
        # A building without a point of the lattice counts with its own area.
        share = np.concatenate([floors[number], floors[empty] * shapely.area(buildings[empty]) / step**2])
        return buildings, np.concatenate([number, empty]), places, share

    @cached_property
    def prior(self) -> Prior:
        """The prior of an observer who knows the town: people are in buildings, by floor area."""
        _, _, places, share = self._households
        return Prior.from_counts(Places(places), share)

    @cached_property
    def has_buildings(self) -> bool:
        """Whether the map has buildings."""
        return len(self.basemap.buildings) > 0

    @property
    def shapes(self) -> Any:
        """The buildings in metres or, where the map has none, the cells of a lattice."""
        return self._households[0]

    @property
    def shape_of(self) -> IntArray:
        """The number of the shape that each of the prior's places lies in."""
        return self._households[1]

    @cached_property
    def surroundings(self) -> Any:
        """Each shape with its surroundings; shapes close together are one area."""
        return shapely.buffer(shapely.simplify(self.shapes, 1), AROUND, quad_segs=1)

    @cached_property
    def home(self) -> tuple[float, float]:
        """Latitude and longitude of a place in a building, near the centre of the prior."""
        sites = self.prior.sites.xy
        middle = np.linalg.norm(sites - self.prior.mass @ sites, axis=1).argmin()
        lat, lon = self.prior_latlon[middle].tolist()
        return lat, lon

    def degrees(self, shapes: Any) -> list[list[list[tuple[float, float]]]]:
        """Return the rings of each polygon as latitudes and longitudes."""
        rings = shapely.transform(shapes, lambda xy: to_latlon(self.projection.to_lonlat(xy)))
        return [
            [[(lat, lon) for lat, lon in ring.coords] for ring in (part.exterior, *part.interiors)]
            for part in shapely.get_parts(rings)
        ]

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
