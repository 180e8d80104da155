"""What a service answered, of any kind: which results lie near a place, and how far."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import shapely

from geoind.arrays import ArrayLike, FloatArray, as_lonlat
from geoind.distances import haversine
from geoind.mechanisms.spherical import WGS84_FACTOR
from geoind.queries.points_of_interest import distances_from, lonlat_of, near

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from shapely.geometry.base import BaseGeometry

__all__ = ["EVERYTHING", "Frame", "Records", "closest"]

EVERYTHING = 20_038_000.0
"""Half of the Earth's girth, in metres: no place is farther away."""


class _HasIndex(Protocol):
    @property
    def sindex(self) -> object: ...


Frame = TypeVar("Frame", bound=_HasIndex)
"""A GeoDataFrame: it has a spatial index."""

Records: TypeAlias = Sequence[Mapping[str, object]]
"""Places with lat and lon among their members, or as the place services name them."""


def closest(
    results: object, *, lat: float, lon: float, radius: float, shape: "BaseGeometry | None" = None
) -> tuple[Sequence[object], FloatArray]:
    """Return the results within `radius` metres of a place (and touching `shape`), and their distances, in order.

    A frame comes back as a frame, records as records, both with their `distance`; an array as (m, 3) lon, lat,
    distance.
    """
    if hasattr(results, "sindex"):
        frame = near(cast("GeoDataFrame", results), lat=lat, lon=lon, radius=radius, shape=shape)
        return cast("Sequence[object]", frame), frame["distance"].to_numpy()
    records = isinstance(results, (list, tuple)) and all(isinstance(record, Mapping) for record in results)
    places = lonlat_of(cast("Records", results)) if records else as_lonlat(cast("ArrayLike", results), "results")
    # A geodesic takes fifty times as long as a great circle, which is hardly ever longer.
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
