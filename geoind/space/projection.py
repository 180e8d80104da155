"""Degrees to metres and back: a local plane around a public origin, or any projected CRS."""

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
import pyproj
import shapely
from pyproj.enums import TransformDirection
from pyproj.transformer import Transformer, TransformerGroup

from geoind.arrays import ArrayLike, FloatArray, as_location, as_lonlat, as_points
from geoind.errors import InvalidInputError
from geoind.space.crs import parsed_crs, points_lonlat, proj
from geoind.space.geodesy import destinations

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries
    from shapely.geometry.base import BaseGeometry

__all__ = ["Projection", "points_xy"]

proj()  # Disables the network of PROJ, whichever module is loaded first.

Shapes: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.object_]]"
"""An array of shapely geometries."""

SAMPLES = 50
"""Points per side at which the scale over a region is measured."""

STEP = 50.0
"""Ground metres to each side over which the scale is measured."""


@dataclass(frozen=True, init=False)
class Projection:
    """From lon/lat degrees (WGS84) to metres in a plane and back.

    `Projection(lon, lat)` is the azimuthal equidistant plane around an origin that must be public: a city's
    centre, never a centroid of the private data. It stretches 100 m by 1 mm at 50 km from the origin.
    `Projection.from_crs("EPSG:2154")` takes any projected CRS in metres; `Projected` bounds its scale between any
    two locations of a domain.

    Parameters
    ----------
    lon, lat : float
        The public origin, in degrees.

    Examples
    --------
    >>> paris = Projection(2.35, 48.86)
    >>> paris.to_xy([[2.35, 48.87]]).round(1) + 0.0
    array([[   0. , 1112.1]])
    """

    crs: str

    def __init__(self, lon: float, lat: float) -> None:
        lon, lat = as_location(lon=lon, lat=lat, name="origin")
        crs = f"+proj=aeqd +lon_0={lon!r} +lat_0={lat!r} +datum=WGS84 +units=m +no_defs"
        object.__setattr__(self, "crs", crs)

    @classmethod
    def from_crs(cls, crs: object) -> "Projection":
        """Return the projection of a projected CRS: an EPSG code, a WKT string or a pyproj CRS.

        Examples
        --------
        >>> Projection.from_crs("EPSG:2154").to_xy([[3.0, 46.5]]).round() + 0.0
        array([[ 700000., 6600000.]])
        """
        if not isinstance(crs, (str, int, pyproj.CRS)) or isinstance(crs, bool):
            raise InvalidInputError(f"crs must be text, an EPSG code or a pyproj CRS, got {type(crs).__name__}")
        parsed = parsed_crs(crs.to_wkt() if isinstance(crs, pyproj.CRS) else str(crs))
        metres = all(axis.unit_name == "metre" for axis in parsed.axis_info)
        if not parsed.is_projected or not metres:
            raise InvalidInputError(f"crs must be projected, in metres, got {parsed.name!r}")
        projection = cls.__new__(cls)
        object.__setattr__(projection, "crs", parsed.to_wkt())
        return projection

    @property
    def is_local(self) -> bool:
        """Whether it is the plane around an origin, not a CRS."""
        return self.crs.startswith("+proj=aeqd")

    @property
    def area_of_use(self) -> tuple[float, float, float, float] | None:
        """Area of use of the CRS: west, south, east, north in degrees; west may exceed east."""
        area = pyproj.CRS(self.crs).area_of_use
        return None if area is None else area.bounds

    def to_xy(self, lonlat: "ArrayLike | GeoDataFrame | GeoSeries") -> FloatArray:
        """Return metres in the plane for (n, 2) degrees, longitude first, or for points with a CRS."""
        return self._carry(points_lonlat(lonlat, "lonlat"), inverse=False)

    def to_xy_one(self, lon: float, lat: float) -> tuple[float, float]:
        """Return metres in the plane for one valid location, without arrays: those of `to_xy`.

        Examples
        --------
        >>> Projection(2.35, 48.86).to_xy_one(2.35, 48.86)
        (0.0, 0.0)
        """
        x, y = _transformer(self.crs).transform(lon, lat)
        if not (math.isfinite(x) and math.isfinite(y)):
            raise InvalidInputError("the location lies outside the range of the projection")
        return x, y

    def to_lonlat(self, xy: ArrayLike) -> FloatArray:
        """Return degrees, longitude first, for (n, 2) metres in the plane."""
        return self._carry(as_points(xy, "xy"), inverse=True)

    @overload
    def transform(self, geometry: "BaseGeometry") -> "BaseGeometry": ...
    @overload
    def transform(self, geometry: Shapes) -> Shapes: ...
    def transform(self, geometry: "BaseGeometry | Shapes") -> "BaseGeometry | Shapes":
        """Return a lon/lat shapely geometry, or an array of them, in the plane's metres."""
        moved: BaseGeometry | Shapes = shapely.transform(geometry, self.to_xy)
        return moved

    def inverse_transform(self, geometry: "BaseGeometry") -> "BaseGeometry":
        """Return a planar shapely geometry in lon/lat degrees."""
        return shapely.transform(geometry, self.to_lonlat)

    def scale_range(self, region: "BaseGeometry") -> tuple[float, float]:
        """Return the smallest and largest projected metres per ground metre over a lon/lat region.

        Measured against WGS84 geodesics of some metres at 50 x 50 points of its bounding box and along its border.
        The geodesic between two distant locations may leave the region: for the epsilon between any two use
        `Projected(mechanism, self, domain)`.

        Examples
        --------
        >>> import shapely
        >>> oslo = shapely.box(10, 59.8, 11, 60.2)
        >>> [round(scale, 3) for scale in Projection.from_crs("EPSG:3857").scale_range(oslo)]
        [1.983, 2.01]
        """
        if region.is_empty:
            raise InvalidInputError("region must not be empty")
        west, south, east, north = region.bounds
        lon, lat = np.meshgrid(np.linspace(west, east, SAMPLES), np.linspace(south, north, SAMPLES))
        border = shapely.get_coordinates(region)
        scales = self.scales_at(np.vstack([np.column_stack([lon.ravel(), lat.ravel()]), border]), STEP)
        return float(scales.min()), float(scales.max())

    def scales_at(self, lonlat: ArrayLike, step: float) -> FloatArray:
        """Return projected metres per ground metre at (n, 2) locations, (n, 2): the largest and the smallest.

        Measured against WGS84 geodesics of `step` metres to each side.
        """
        places = as_lonlat(lonlat, "region")

        def go(bearing: float) -> FloatArray:
            return self.to_xy(destinations(places, bearing, step))

        # The singular values of the local map from ground to plane are the extreme scales over all directions.
        local = np.stack([go(90) - go(270), go(0) - go(180)], axis=2) / (2 * step)
        return np.asarray(np.linalg.svd(local, compute_uv=False), dtype=np.float64)

    def largest_scale(self, region: "BaseGeometry") -> float:
        """Return the factor by which epsilon grows on the ground between close places of a lon/lat region."""
        return self.scale_range(region)[1]

    def largest_scale_error(self, region: "BaseGeometry") -> float:
        """Return the largest relative error of a short length over a lon/lat region.

        Examples
        --------
        >>> import shapely
        >>> Projection(2.35, 48.86).largest_scale_error(shapely.box(2.2, 48.8, 2.5, 48.9)) < 1e-5
        True
        """
        smallest, largest = self.scale_range(region)
        return max(1 - smallest, largest - 1)

    def _carry(self, points: FloatArray, *, inverse: bool) -> FloatArray:
        if not len(points):
            return points
        direction = TransformDirection.INVERSE if inverse else TransformDirection.FORWARD
        result = np.column_stack(_transformer(self.crs).transform(points[:, 0], points[:, 1], direction=direction))
        if not np.isfinite(result).all():
            row = np.argmin(np.isfinite(result).all(axis=1))
            raise InvalidInputError(f"row {row} lies outside the range of the projection")
        return result


def points_xy(points: Any, projection: Projection | None, what: str, *, columns: int = 2) -> FloatArray:
    """Return points in metres: projected from degrees or from a frame with a CRS, or as they are.

    Examples
    --------
    >>> points_xy([[2.35, 48.86]], Projection(2.35, 48.86), "places").round() + 0.0
    array([[0., 0.]])
    """
    if projection is not None:
        return projection._carry(points_lonlat(points, what), inverse=False)
    if hasattr(points, "crs"):
        raise InvalidInputError(f"{what} with a CRS need the projection to the grid's metres (projection.to_xy)")
    return as_points(points, what, columns=columns)


@lru_cache(maxsize=64)
def _transformer(crs: str) -> "Transformer":
    """Return one smooth transformation from WGS84 for all locations.

    Where several transformations between two datums are known, PROJ would choose one for each location: on the
    British grid they differ by 150 m, and such jumps distinguish locations.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Best transformation is not available")  # a file of corrections
        best = TransformerGroup("EPSG:4326", crs, always_xy=True).transformers[0]
    # Created again from its definition, because the transformer of the group must not be shared between threads.
    return Transformer.from_pipeline(best.definition)
