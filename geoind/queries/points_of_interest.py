"""Places near a location: exact WGS84 distances, through a spatial index, for frames, records and arrays."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast

import geopandas
import numpy as np
import shapely
from pyarrow import parquet

from geoind.arrays import ArrayLike, FloatArray, as_location, as_lonlat, as_positive
from geoind.distances import haversine
from geoind.errors import InvalidInputError
from geoind.mechanisms.spherical import WGS84_FACTOR
from geoind.space.crs import in_degrees, parsed_crs
from geoind.space.geodesy import geodesic_lengths
from geoind.space.projection import Projection
from geoind.space.vector_files import read_vector_file

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

__all__ = [
    "EVERYTHING",
    "Frame",
    "PointsOfInterest",
    "Records",
    "closest",
    "corridor",
    "distances_from",
    "lonlat_of",
]

SMALLEST_CURVATURE = 6_335_439.0
"""The Earth's smallest radius of curvature, in metres: distance over this is an upper bound of the angle."""


EVERYTHING = 20_038_000.0
"""Half of the Earth's circumference, in metres: no place is farther away."""


class _HasIndex(Protocol):
    @property
    def sindex(self) -> object: ...


Frame = TypeVar("Frame", bound=_HasIndex)
"""A GeoDataFrame: it has a spatial index."""

Records: TypeAlias = Sequence[Mapping[str, object]]
"""Places with lat and lon among their members, or with the names that place services use."""


@dataclass(frozen=True, eq=False)
class PointsOfInterest:
    """Places with a spatial index, searched in this process.

    Parameters
    ----------
    frame : GeoDataFrame
        Points or shapes, in any CRS.

    Examples
    --------
    >>> import geopandas
    >>> cafes = geopandas.GeoDataFrame(
    ...     {"name": ["Flore", "Rotonde"]},
    ...     geometry=geopandas.points_from_xy([2.3326, 2.3288], [48.8541, 48.8422]), crs=4326)
    >>> PointsOfInterest(cafes).around(lat=48.8540, lon=2.3330, radius=500)["name"].tolist()
    ['Flore']
    """

    frame: "geopandas.GeoDataFrame"

    def __post_init__(self) -> None:
        frame = _as_degrees(self.frame)
        object.__setattr__(self, "frame", frame)
        _ = frame.sindex  # builds the index

    @classmethod
    def read(cls, path: str | Path) -> "PointsOfInterest":
        """Return the places of a GeoParquet file, or of a vector file such as GeoPackage or GeoJSON."""
        path = Path(path)
        if path.suffix not in {".parquet", ".geoparquet"}:
            return cls(read_vector_file(path))
        if not path.is_file():
            raise InvalidInputError(f"{path.name!r} must be an existing local file")
        try:
            _check_crs(path)
            frame = geopandas.read_parquet(path)
        except Exception:
            # Invalid metadata raises errors of pyarrow, geopandas, pyproj or Python's JSON parser.
            raise InvalidInputError(f"{path.name!r} cannot be read as GeoParquet") from None
        return cls(frame)

    def around(self, *, lat: float, lon: float, radius: float) -> "geopandas.GeoDataFrame":
        """Return the places within `radius` metres, the closest first, with their `distance` in metres."""
        lon, lat = as_location(lon=lon, lat=lat, name="centre")
        return _near(self.frame, lat=lat, lon=lon, radius=as_positive(radius, "radius"))


def _check_crs(path: Path) -> None:
    """Refuse a CRS that names a file, before geopandas parses it."""
    geo = json.loads((parquet.read_schema(path).metadata or {}).get(b"geo", b"{}"))
    for column in geo.get("columns", {}).values():
        crs = column.get("crs")
        if crs is not None:
            parsed_crs(crs if isinstance(crs, str) else json.dumps(crs))


def _near(
    frame: "geopandas.GeoDataFrame",
    *,
    lat: float,
    lon: float,
    radius: float,
    shape: "BaseGeometry | None" = None,
) -> "geopandas.GeoDataFrame":
    """Return the rows within `radius` metres of a place (and touching `shape`), sorted, with their `distance`."""
    degrees = _as_degrees(frame)
    candidates = np.unique(
        np.concatenate([degrees.sindex.query(shapely.box(*box)) for box in _boxes(lat, lon, radius)])
    )
    chosen = frame.iloc[candidates]
    geometries = degrees.geometry.iloc[candidates].to_numpy()
    apart = distances_from(geometries, lat=lat, lon=lon)
    keep = apart <= radius
    if shape is not None:
        keep &= shapely.intersects(geometries, shape)
    order = np.flatnonzero(keep)[np.argsort(apart[keep], kind="stable")]
    return chosen.iloc[order].assign(distance=apart[order])


def closest(
    results: object, *, lat: float, lon: float, radius: float, shape: "BaseGeometry | None" = None
) -> tuple[Sequence[object], FloatArray]:
    """Return the results within `radius` metres of a place (and touching `shape`), and their distances, in order.

    A frame comes back as a frame, records as records, both with their `distance`; an array as (m, 3) lon, lat,
    distance.
    """
    if hasattr(results, "sindex"):
        frame = _near(cast("geopandas.GeoDataFrame", results), lat=lat, lon=lon, radius=radius, shape=shape)
        return cast("Sequence[object]", frame), frame["distance"].to_numpy()
    records = isinstance(results, (list, tuple)) and all(isinstance(record, Mapping) for record in results)
    places = lonlat_of(cast("Records", results)) if records else as_lonlat(cast("ArrayLike", results), "results")
    # A geodesic takes fifty times as long as a great circle, which is at most WGS84_FACTOR times longer.
    rough = haversine(np.array([[lon, lat]]), places)[0]
    rows = np.flatnonzero(rough <= WGS84_FACTOR * radius)
    distances = distances_from(places[rows], lat=lat, lon=lon)
    keep = distances <= radius
    if shape is not None:
        keep &= shapely.intersects_xy(shape, places[rows])
    order = np.flatnonzero(keep)[np.argsort(distances[keep], kind="stable")]
    if records:
        found = cast("Records", results)
        listed = [{**found[rows[number]], "distance": float(distances[number])} for number in order]
        return listed, distances[order]
    return cast("Sequence[object]", np.column_stack([places[rows[order]], distances[order]])), distances[order]


def distances_from(places: ArrayLike, *, lat: float, lon: float) -> FloatArray:
    """Return WGS84 distances in metres from one place to (n, 2) lon/lat points or to shapely geometries.

    Examples
    --------
    >>> distances_from([[2.0, 49.0]], lat=48.0, lon=2.0).round(1)
    array([111200.])
    """
    lon, lat = as_location(lon=lon, lat=lat, name="centre")
    places = np.asarray(places)
    if places.dtype == object and len(places):
        if (shapely.get_type_id(places) == shapely.GeometryType.POINT).all():
            places = shapely.get_coordinates(places)
        else:
            # Distances from the origin of a `Projection` are exact.
            flat = Projection(lon, lat).transform(places)
            return np.asarray(shapely.distance(flat, shapely.Point(0, 0)), dtype=np.float64)
    return geodesic_lengths([lon, lat], as_lonlat(places, "places"))


def lonlat_of(items: Sequence[Mapping[str, object]]) -> FloatArray:
    """Return (n, 2) lon/lat of records that have lat and lon, or latitude and longitude.

    Either at the top level or under `location`, `center` or `geocodes.main`, as in the answers of place services.

    Examples
    --------
    >>> lonlat_of([{"lat": 1, "lon": 2}, {"location": {"latitude": 3, "longitude": 4}}])
    array([[2., 1.],
           [4., 3.]])
    """
    found = [_lonlat(item, number) for number, item in enumerate(items)]
    return as_lonlat(cast("ArrayLike", found), "results")


def _lonlat(item: Mapping[str, object], number: int) -> list[object]:
    geocodes = item.get("geocodes")
    main = geocodes.get("main") if isinstance(geocodes, Mapping) else None
    for holder in (item, item.get("location"), item.get("center"), main):
        for names in (("lon", "lat"), ("longitude", "latitude")):
            if isinstance(holder, Mapping) and all(name in holder for name in names):
                return [holder[name] for name in names]
    raise InvalidInputError(f"results: record {number} has no lat and lon")


def corridor(line: "BaseGeometry", *, width: float) -> "BaseGeometry":
    """Return the lon/lat polygon of everything within `width` metres of a lon/lat line.

    Examples
    --------
    >>> import shapely
    >>> walk = shapely.LineString([(2.3326, 48.8541), (2.3288, 48.8422)])
    >>> bool(corridor(walk, width=50).contains(shapely.Point(2.3307, 48.8482)))
    True
    """
    width = as_positive(width, "width")
    if not isinstance(line, shapely.Geometry) or line.is_empty:
        raise InvalidInputError("line must be a shapely geometry that is not empty")
    lon, lat = as_lonlat(shapely.get_coordinates(line), "line").mean(axis=0).tolist()
    plane = Projection(lon, lat)
    wide: BaseGeometry = plane.transform(line).buffer(width)
    return plane.inverse_transform(wide)


def _as_degrees(frame: "geopandas.GeoDataFrame") -> "geopandas.GeoDataFrame":
    degrees = in_degrees(frame, "the frame")
    if not (frame.geometry.notna() & ~frame.geometry.is_empty).all():
        raise InvalidInputError("every row of the frame must have a geometry")
    return degrees


def _boxes(lat: float, lon: float, radius: float) -> list[tuple[float, float, float, float]]:
    """Return one or two (west, south, east, north) boxes in degrees that hold a circle."""
    angle = 1.01 * radius / SMALLEST_CURVATURE
    south, north = lat - math.degrees(angle), lat + math.degrees(angle)
    if south <= -90 or north >= 90:
        return [(-180.0, max(south, -90.0), 180.0, min(north, 90.0))]
    half = math.degrees(math.asin(min(1.0, math.sin(angle) / math.cos(math.radians(lat)))))
    west, east = lon - half, lon + half
    boxes = [(west, south, east, north)]
    if west < -180:
        boxes.append((west + 360, south, 180.0, north))
    if east > 180:
        boxes.append((-180.0, south, east - 360, north))
    return boxes
