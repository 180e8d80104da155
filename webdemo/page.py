"""The page: folium draws the base map once, as files that a strict Content-Security-Policy allows."""

import math
from importlib.resources import files

import folium
import numpy as np
from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from geoind import PlanarLaplace
from geoind.maps.graticule import graticule
from geoind.maps.offline import MEDIA_TYPES, asset_bytes, map_parts
from geoind.pictures.page import content_policy, fill

from .town import Town

__all__ = ["TILES", "page_router", "security_headers", "stops_of"]

TILES = "https://tile.openstreetmap.org/{z}/{x}/{y}.png"
TILE_HOST = "https://tile.openstreetmap.org"

LONG = {"Cache-Control": "max-age=86400"}

INDEX = files(__package__).joinpath("static/index.html").read_text("utf-8")

MODULES = [
    *sorted(
        f"/static/js/{file.name}"
        for file in files(__package__).joinpath("static/js").iterdir()
        if file.name.endswith(".js") and file.name != "theme.js"
    ),
    "/device/geoind.js",
]
"""All scripts of the page, to be fetched at once and not one after another."""


def security_headers(*, online_tiles: bool) -> dict[str, str]:
    """Return the headers that keep a browser from loading or running anything but the demo's own files."""
    images = f"'self' data: {TILE_HOST}" if online_tiles else "'self' data:"
    policy = {
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": images,
        "connect-src": "'self'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": content_policy(policy),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "strict-origin" if online_tiles else "no-referrer",
        "Permissions-Policy": "geolocation=(), camera=(), microphone=()",
        "Cross-Origin-Opener-Policy": "same-origin",
    }


def stops_of(town: Town) -> tuple[float, ...]:
    """Return the radii of a street, a block, a neighbourhood and the town, in metres.

    The last one fits the map: with a factor of 4, 95 % of the reports fall within a circle as wide as the map is
    long.
    """
    reach = PlanarLaplace(math.log(4)).reach(0.95)
    fits = float(np.ptp(town.extent, axis=0).max()) / (2 * reach)
    widest = max(step for step in (100.0, 200.0, 500.0, 1000.0, 2000.0) if step <= max(100.0, fits))
    return min(25.0, widest / 8), min(50.0, widest / 4), min(100.0, widest / 2), widest


def page_router(town: Town, *, online_tiles: bool) -> APIRouter:
    """Return the page itself, the script of its base map, and the assets that folium needs."""
    router = APIRouter(include_in_schema=False)
    west, south, east, north = town.basemap.bounds
    chart = folium.Map(tiles=None, prefer_canvas=True, zoom_control=False, max_zoom=21, min_zoom=11)
    # Fixed names, so that the page's own script finds both.
    chart._name, chart._id = "demo", "map"
    base = town.basemap.to_folium()
    base._name, base._id = "demo", "base"
    base.add_to(chart)
    graticule().add_to(chart)
    chart.fit_bounds([[south, west], [north, east]])
    parts = map_parts(chart)
    script = parts.scripts[-1]
    index = fill(
        INDEX,
        map_styles=[name for name in parts.assets if name.endswith("css")],
        # jQuery is for popups, and this map has none.
        map_scripts=[name for name in parts.assets if not name.endswith("css") and name != "jquery"],
        modules=MODULES,
        map=parts.body,
        attribution=town.basemap.attribution,
        town=town.basemap.name,
        home="{},{}".format(*town.home),
        stops=" ".join(f"{stop:g}" for stop in stops_of(town)),
        tiles=TILES if online_tiles else "",
    )

    @router.get("/")
    def page() -> HTMLResponse:
        return HTMLResponse(index)

    @router.get("/map.js")
    def base_map() -> Response:
        return Response(script, media_type="text/javascript")

    @router.get("/assets/{name:path}")
    def asset(name: str) -> Response:
        kind = ".png" if name.endswith(".png") else ".css" if name.endswith("css") else ".js"
        return Response(asset_bytes(name), media_type=MEDIA_TYPES[kind], headers=LONG)

    return router
