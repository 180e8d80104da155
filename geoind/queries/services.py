"""Request parameters of common services from a reported centre and a radius; no request is made."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import shapely

from geoind.errors import InvalidInputError
from geoind.space.geodesy import destinations, geodesic_lengths

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

__all__ = ["SERVICES", "service_params"]

CIRCLE_CORNERS = 180


def service_params(service: str, *, lat: float, lon: float, radius: float, kind: str | None) -> dict[str, object]:
    """Return the parameters that request everything within `radius` metres of a place.

    Examples
    --------
    >>> service_params("foursquare", lat=48.8584, lon=2.2945, radius=984.4, kind="bakery")
    {'ll': '48.8584,2.2945', 'radius': 985, 'limit': 50, 'query': 'bakery'}
    """
    if service not in SERVICES:
        raise InvalidInputError(f"service must be one of {', '.join(sorted(SERVICES))}, got {service!r}")
    write, largest = SERVICES[service]
    if radius > largest:
        raise InvalidInputError(
            f"{service} takes a radius of at most {largest:g} m, this query needs {radius:.0f} m: "
            "use a larger epsilon, a lower confidence or a smaller area"
        )
    return write(lat, lon, radius, kind)


def _google_places(lat: float, lon: float, radius: float, kind: str | None) -> dict[str, object]:
    """Body of Nearby Search of the Places API (New)."""
    circle = {"center": {"latitude": lat, "longitude": lon}, "radius": math.ceil(10 * radius) / 10}
    body: dict[str, object] = {"locationRestriction": {"circle": circle}, "maxResultCount": 20}
    return body if kind is None else {**body, "includedTypes": [kind]}


def _foursquare(lat: float, lon: float, radius: float, kind: str | None) -> dict[str, object]:
    """Query string of Place Search."""
    query: dict[str, object] = {"ll": f"{lat},{lon}", "radius": math.ceil(radius), "limit": 50}
    return query if kind is None else {**query, "query": kind}


def _overpass(lat: float, lon: float, radius: float, kind: str | None) -> dict[str, object]:
    """Form of an Overpass interpreter; kind is a tag, such as amenity=restaurant or amenity."""
    key, _, value = (kind or "amenity").partition("=")
    if any(sign in key + value for sign in '"\\[]'):
        raise InvalidInputError(f"kind must be a tag such as amenity=restaurant, got {kind!r}")
    tag = f'["{key}"="{value}"]' if value else f'["{key}"]'
    around = f"(around:{math.ceil(10 * radius) / 10},{lat},{lon})"
    return {"data": f"[out:json][timeout:60];nwr{tag}{around};out center;"}


def _postgis(lat: float, lon: float, radius: float, kind: str | None) -> dict[str, object]:
    """Values for ST_DWithin(place::geography, ST_MakePoint(:lon, :lat)::geography, :radius)."""
    values: dict[str, object] = {"lat": lat, "lon": lon, "radius": radius}
    return values if kind is None else {**values, "kind": kind}


def _geojson(lat: float, lon: float, radius: float, kind: str | None) -> dict[str, object]:
    """Feature whose polygon holds the circle, cut at the antimeridian as RFC 7946 asks."""
    properties: dict[str, object] = {"lat": lat, "lon": lon, "radius": radius}
    if kind is not None:
        properties["kind"] = kind
    geometry = shapely.geometry.mapping(_circle(lat, lon, radius))
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def _circle(lat: float, lon: float, radius: float) -> "BaseGeometry":
    # Corners outside the circle, so that the sides do not cut it. A side in degrees is curved on the ground: four
    # times the margin of a plane is enough away from the poles, and a circle near a pole becomes a cap.
    corner = radius * (4 / math.cos(math.pi / CIRCLE_CORNERS) - 3)
    bearings = np.linspace(0, 360, CIRCLE_CORNERS, endpoint=False)
    lons, lats = destinations(np.full((CIRCLE_CORNERS, 2), [lon, lat]), bearings, corner).T
    to_pole = geodesic_lengths([lon, lat], [[lon, 90.0], [lon, -90.0]])
    north, south = (distance <= 2 * corner for distance in to_pole)
    if north or south:
        return shapely.box(-180, -90 if south else lats.min(), 180, 90 if north else lats.max())
    unwrapped = lon + (lons - lon + 180) % 360 - 180
    parts = []
    for turn in (-360, 0, 360):
        whole = shapely.Polygon(np.column_stack([unwrapped - turn, lats])[::-1])
        part = shapely.intersection(whole, shapely.box(-180, -90, 180, 90))
        parts += [] if part.is_empty else [part]
    return parts[0] if len(parts) == 1 else shapely.union_all(parts)


SERVICES: dict[str, tuple[Callable[[float, float, float, str | None], dict[str, object]], float]] = {
    "google_places": (_google_places, 50_000.0),
    "foursquare": (_foursquare, 100_000.0),
    "overpass": (_overpass, math.inf),
    "postgis": (_postgis, math.inf),
    "geojson": (_geojson, 1_000_000.0),
}
"""The function of each service, and its largest radius."""
