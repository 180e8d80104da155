"""The story: pages that run in the browser only, the same files from the server and in a folder."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np
import shapely
from fastapi import APIRouter
from fastapi.responses import Response

from geoind import InvalidInputError
from geoind.arrays import FloatArray
from geoind.mechanisms.spherical import WGS84_FACTOR
from geoind.pictures.page import content_policy, fill, script_json

from .page import stops_of
from .scripts import bundle
from .town import Town

__all__ = ["story_files", "story_router", "town_data"]

PACKAGE = files(__package__)

MEDIA_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}

PLAIN = (
    *("static/app.css", "static/icon.svg", "static/js/theme.js", "static/story/story.css"),
    "device/geoind.classic.js",
)
"""Files that are given as they are."""

AREAS = ("green", "water", "buildings")

INDEX = files(__package__).joinpath("static/story/index.html").read_text("utf-8")

POLICY = content_policy(
    {"script-src": "'self'", "style-src": "'self'", "img-src": "'self'", "connect-src": "'none'"}
)
"""In the page, so that it applies to a file on a disk, too; no request is allowed."""


def story_files(town: Town, *, with_server: bool) -> dict[str, bytes]:
    """Return the story as files: names that are relative to each other, scripts that run from a disk."""
    pages = {name.rpartition("/")[2]: PACKAGE.joinpath(name).read_bytes() for name in PLAIN}
    parts, _ = bundle("static/story/story.js", ready="device/geoind.js", as_name="geoind")
    pages["story.js"] = "\n".join(parts).encode()
    # The tabs need the server: a folder has no link to them.
    pages["index.html"] = fill(INDEX, policy=POLICY, with_server=with_server).encode()
    # A script, not JSON: a page that was opened from a disk may not fetch anything.
    pages["town.js"] = f"const TOWN = {script_json(town_data(town))};\n".encode()
    return pages


def story_router(town: Town) -> APIRouter:
    """Return the story as the server's first page."""
    router = APIRouter(prefix="/story", include_in_schema=False)
    pages = story_files(town, with_server=True)

    @router.get("/{name}")
    def page(name: str) -> Response:
        if name not in pages:
            raise InvalidInputError(f"the story has no page {name!r}")
        return Response(pages[name], media_type=MEDIA_TYPES[name.rpartition(".")[2]])

    @router.get("/")
    def first() -> Response:
        return page("index.html")

    return router


def town_data(town: Town) -> dict[str, Any]:
    """Return a town in whole decimetres around its centre: shapes, weighted homes, and points of interest."""
    drawn: dict[str, Any] = {"buildings": town.shapes}
    for kind, group in town.basemap.features.groupby("kind"):
        if kind != "buildings":
            drawn[str(kind)] = shapely.transform(group.geometry.to_numpy(), town.projection.to_xy)
    places = town.basemap.places
    lat, lon = town.home
    return {
        "name": town.basemap.name,
        "attribution": town.basemap.attribution,
        "bounds": _flat(town.extent),
        "stops": stops_of(town),
        "margin": WGS84_FACTOR,
        "centre": town.projection.to_lonlat([[0.0, 0.0]])[0].tolist(),
        "home": _flat(town.projection.to_xy([[lon, lat]])),
        "shapes": {
            kind: {"area": kind in AREAS, "rings": [[_flat(line) for line in _lines(shape)] for shape in shapes]}
            for kind, shapes in drawn.items()
        },
        "homes": {
            "xy": _flat(town.prior.sites.xy),
            "building": town.shape_of.tolist(),
            "mass": [float(f"{mass:.6g}") for mass in town.prior.mass],
        },
        "places": {
            "xy": _flat(town.projection.to_xy(shapely.get_coordinates(places.geometry.to_numpy()))),
            "kind": places["kind"].tolist(),
            "name": places["name"].tolist(),
        },
    }


def _lines(geometry: Any) -> Iterator[FloatArray]:
    """Yield the rings of an area with its holes, or the parts of a line."""
    for part in shapely.get_parts(geometry):
        lines = shapely.get_rings(part) if shapely.get_dimensions(part) == 2 else [part]
        yield from (shapely.get_coordinates(line) for line in lines)


def _flat(xy: FloatArray) -> list[int]:
    numbers: list[int] = np.rint(10 * np.asarray(xy)).astype(np.int64).ravel().tolist()
    return numbers
