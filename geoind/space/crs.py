"""Coordinates of a CRS to and from WGS84 degrees, longitude first."""

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_lonlat
from geoind.errors import InvalidInputError

if TYPE_CHECKING:
    from types import ModuleType

    from geopandas import GeoDataFrame, GeoSeries
    from pyproj import CRS, Transformer

__all__ = [
    "LONLAT",
    "as_crs",
    "from_lonlat",
    "in_degrees",
    "parsed_crs",
    "points_lonlat",
    "same_crs",
    "to_lonlat",
    "wrap_lon",
]

Frame = TypeVar("Frame", bound="GeoDataFrame | GeoSeries")

CODE = re.compile(r"[A-Za-z]+:\w+")
NOTES = ("remarks", "usages", "scope", "area", "bbox")
"""Members of PROJJSON that are not part of the definition."""

LONLAT = "OGC:CRS84"
"""WGS84 degrees, longitude first."""

FILES = re.compile(
    r"""(grids|\b(file|model|catalog|init))(\s*=|["']\s*:)\s*(?!["']?@null(["'\s]|$))"""
    r"""|PARAMETERFILE(?!\["[^"]*","@null")|PROJ4_GRIDS(?!","@null")""",
    re.IGNORECASE,
)
"""Pattern of file names in the text of a CRS, which PROJ would open; `+nadgrids=@null` is not a file."""


@lru_cache(maxsize=1)
def proj() -> "ModuleType":
    """Return pyproj, loaded on first use and without network access.

    With the network PROJ would request grids from a server, which reveals the region of the locations.
    """
    import pyproj
    import pyproj.network

    pyproj.network.set_network_enabled(active=False)  # type: ignore[attr-defined]
    return pyproj


def as_crs(crs: Any, what: str) -> str:
    """Return a CRS as text; None raises an error.

    Examples
    --------
    >>> as_crs("EPSG:2154", "the file")
    'EPSG:2154'
    """
    if crs is None:
        raise InvalidInputError(
            f"{what} must have a CRS, which defines its unit: set it, or pass `crs={LONLAT!r}` for lon/lat"
        )
    text = crs if isinstance(crs, str) else str(crs.to_wkt())
    transformer(text, inverse=False)
    return text


@lru_cache(maxsize=64)
def same_crs(first: str, second: str) -> bool:
    """Return whether two CRS are equal apart from the order of their axes."""
    return first == second or bool(parsed_crs(first).equals(parsed_crs(second), ignore_axis_order=True))


def to_lonlat(coordinates: FloatArray, crs: str) -> FloatArray:
    """Return WGS84 degrees for (n, 2) coordinates; infinite outside the range of the CRS.

    Examples
    --------
    >>> to_lonlat(np.array([[0.0, 0.0]]), "EPSG:3857").tolist()
    [[0.0, 0.0]]
    """
    return _carried(coordinates, transformer(crs, inverse=False))


def from_lonlat(lonlat: FloatArray, crs: str) -> FloatArray:
    """Return coordinates in a CRS for (n, 2) WGS84 degrees; infinite outside the range of the CRS."""
    return _carried(lonlat, transformer(crs, inverse=True))


def in_degrees(frame: Frame, what: str) -> Frame:
    """Return a GeoDataFrame or GeoSeries, which must have a CRS, in lon/lat degrees.

    Examples
    --------
    >>> import geopandas
    >>> in_degrees(geopandas.GeoSeries.from_xy([0.0], [0.0], crs="EPSG:3857"), "places").crs.to_epsg()
    4326
    """
    as_crs(frame.crs, what)
    return frame if frame.crs == "EPSG:4326" else cast("Frame", frame.to_crs("EPSG:4326"))


def points_lonlat(points: Any, what: str) -> FloatArray:
    """Return WGS84 degrees, (n, 2), of a GeoDataFrame's or GeoSeries' points, or of an array of degrees.

    Examples
    --------
    >>> import geopandas
    >>> points_lonlat(geopandas.GeoSeries.from_xy([0.0], [0.0], crs="EPSG:3857"), "places").tolist()
    [[0.0, 0.0]]
    """
    if not hasattr(points, "crs"):
        return as_lonlat(points, what)
    degrees = in_degrees(points.geometry, what)
    if not (degrees.geom_type == "Point").all():
        raise InvalidInputError(f"{what} must be points, without missing values")
    return np.column_stack([degrees.x, degrees.y])


def wrap_lon(lon: ArrayLike) -> FloatArray:
    """Return longitudes of up to 360 degrees as equivalent ones of at most 180.

    Examples
    --------
    >>> wrap_lon([2.35, 180.0, 181.0])
    array([   2.35,  180.  , -179.  ])
    """
    degrees = np.asarray(lon, np.float64)
    return np.where(degrees > 180, degrees - 360, degrees)


def _carried(points: FloatArray, way: "Transformer | None") -> FloatArray:
    if way is None:
        return points
    return np.column_stack(way.transform(*points.T))


def parsed_crs(crs: str) -> "CRS":
    """Return the CRS defined by a text; a text with a file name raises an error before the file is opened."""
    text = crs.strip()
    if text.startswith("{"):
        # Without escapes, so that the pattern of file names matches.
        try:
            text = json.dumps(json.loads(text, strict=False), ensure_ascii=False)
        except (ValueError, RecursionError):
            raise InvalidInputError("crs is not known: it is not valid JSON") from None
    _refuse_files(text)
    try:
        parsed: CRS = proj().CRS.from_user_input(text)
        # WKT as well, because PROJJSON has file names as parameters.
        _refuse_files(parsed.to_wkt())
    except (proj().exceptions.CRSError, UnicodeError):
        raise InvalidInputError(f"crs is not known: {crs[:200]!r}") from None
    return parsed if CODE.fullmatch(text) else _without_notes(parsed)


@lru_cache(maxsize=64)
def _without_notes(parsed: Any) -> Any:
    """Return a CRS as its authority defines it, or without notes: the CRS is published with reports."""
    known = parsed.to_authority(min_confidence=100)
    if known is not None and parsed.equals(public := parsed.from_authority(*known)):
        return public
    return parsed.from_json_dict(_defining(parsed.to_json_dict()))


def _defining(value: Any, *, inside: bool = False) -> Any:
    """Return PROJJSON without notes, and its outermost name."""
    if isinstance(value, list):
        return [_defining(item, inside=True) for item in value]
    if not isinstance(value, dict):
        return value
    members = {name: _defining(item, inside=True) for name, item in value.items() if name not in NOTES}
    return members if inside or "name" not in members else members | {"name": "unknown"}


def _refuse_files(text: str) -> None:
    if FILES.search(text):
        raise InvalidInputError("the CRS refers to a file (grids, init), which is not read: use an EPSG code")


@lru_cache(maxsize=64)
def transformer(crs: str, *, inverse: bool) -> "Transformer | None":
    """Return the transformer from a CRS to degrees, or back; None where they are the same."""
    if crs in (LONLAT, "EPSG:4326"):
        return None
    parsed = parsed_crs(crs)
    if parsed.is_geocentric:
        raise InvalidInputError("the CRS must be geographic or projected, got a geocentric one")
    if parsed.equals(proj().CRS.from_user_input(LONLAT), ignore_axis_order=True):
        return None
    source, target = (LONLAT, parsed) if inverse else (parsed, LONLAT)
    try:
        way: Transformer = proj().Transformer.from_crs(source, target, always_xy=True)
    except proj().exceptions.ProjError:
        raise InvalidInputError(f"the CRS {parsed.name!r} cannot be transformed to WGS84 degrees") from None
    return way
