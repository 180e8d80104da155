"""The story: pages that run in the browser only, the same files from the server and in a folder."""

import gzip
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np
import shapely
from fastapi import APIRouter, Request
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

PLAIN = ("static/app.css", "static/icon.svg", "static/js/theme.js", "static/story/story.css")
"""Files that are given as they are."""

AREAS = ("green", "water", "buildings")

INDEX = files(__package__).joinpath("static/story/index.html").read_text("utf-8")

POLICY = content_policy(
    {
        "script-src": "'self'",
        "worker-src": "blob:",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'none'",
    }
)
"""In the page, so that it applies to a file on a disk, too; no request is allowed.

A page from a disk may not load a worker's file, so its workers run a text of the page: they have this policy, too.
"""


def story_files(town: Town, *, with_server: bool) -> dict[str, bytes]:
    """Return the story as files: names that are relative to each other, scripts that run from a disk."""
    pages = {name.rpartition("/")[2]: PACKAGE.joinpath(name).read_bytes() for name in PLAIN}
    pages["core.js"] = _core().encode()
    ready = {"device/geoind.js": "core.geoind", "static/story/core.js": "core"}
    parts, _ = bundle("static/story/story.js", ready=ready)
    pages["story.js"] = "\n".join(parts).encode()
    # The tabs need the server: a folder has no link to them.
    pages["index.html"] = fill(INDEX, policy=POLICY, with_server=with_server, first=_first_card()).encode()
    # A script, not JSON: a page that was opened from a disk may not fetch anything.
    pages["town.js"] = f"const TOWN = {script_json(town_data(town))};\n".encode()
    return pages


def _first_card() -> dict[str, str]:
    """Return title and sentence of the first card: they are in the page before any script has arrived."""
    texts = PACKAGE.joinpath("static/story/texts.js").read_text("utf-8")
    found = re.search(r'title:\s*"([^"]+)",\s*sentence:\s*"([^"]+)"', texts)
    if found is None:
        raise ValueError("texts.js has no first card")
    return {"title": found[1], "sentence": found[2]}


def _core() -> str:
    """Return the script that computes, without elements of a page: a function, because a worker runs its text."""
    parts, names = bundle("static/story/core.js", ready={"device/geoind.js": "geoind"})
    device = PACKAGE.joinpath("device/geoind.classic.js").read_text("utf-8")
    body = "\n".join([device, *parts])
    names_too = f"{{ geoind, {', '.join(names)} }}"
    made = f'const makeCore = (TOWN) => {{\n"use strict";\n{body}\nreturn {names_too};\n}};\n'
    return f"{made}const core = makeCore(TOWN);\n"


def story_router(town: Town) -> APIRouter:
    """Return the story as the server's first page."""
    router = APIRouter(prefix="/story", include_in_schema=False)
    pages = story_files(town, with_server=True)
    packed = {name: gzip.compress(content, mtime=0) for name, content in pages.items()}

    @router.get("/{name}")
    def page(name: str, request: Request) -> Response:
        if name not in pages:
            raise InvalidInputError(f"the story has no page {name!r}")
        headers = {"Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'", "Vary": "Accept-Encoding"}
        content = pages[name]
        if "gzip" in request.headers.get("accept-encoding", ""):
            content, headers["Content-Encoding"] = packed[name], "gzip"
        return Response(content, media_type=MEDIA_TYPES[name.rpartition(".")[2]], headers=headers)

    @router.get("/")
    def first(request: Request) -> Response:
        return page("index.html", request)

    return router


def town_data(town: Town) -> dict[str, Any]:
    """Return a town around its centre: shapes, weighted homes, and places to eat.

    Lines and lists of points are whole decimetres: the first point, and then the steps from one point to the next.
    """
    drawn: dict[str, Any] = {"buildings": town.shapes}
    for kind, group in town.basemap.features.groupby("kind"):
        if kind != "buildings":
            drawn[str(kind)] = shapely.transform(group.geometry.to_numpy(), town.projection.to_xy)
    places = town.basemap.places
    food = places.geometry[places["kind"] == "food"].to_numpy()
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
            kind: {"area": kind in AREAS, "rings": [[_steps(line) for line in _lines(shape)] for shape in shapes]}
            for kind, shapes in drawn.items()
        },
        "homes": {
            "xy": _steps(town.prior.sites.xy),
            "building": town.shape_of.tolist(),
            "mass": [float(f"{mass:.6g}") for mass in town.prior.mass],
        },
        "food": _steps(town.projection.to_xy(shapely.get_coordinates(food))),
    }


def _lines(geometry: Any) -> Iterator[FloatArray]:
    """Yield the rings of an area with its holes, or the parts of a line."""
    for part in shapely.get_parts(geometry):
        lines = shapely.get_rings(part) if shapely.get_dimensions(part) == 2 else [part]
        yield from (shapely.get_coordinates(line) for line in lines)


def _flat(xy: FloatArray) -> list[int]:
    numbers: list[int] = np.rint(10 * np.asarray(xy)).astype(np.int64).ravel().tolist()
    return numbers


def _steps(xy: FloatArray) -> list[int]:
    whole = np.rint(10 * np.asarray(xy)).astype(np.int64)
    steps: list[int] = np.diff(whole, axis=0, prepend=np.zeros((1, 2), dtype=np.int64)).ravel().tolist()
    return steps
