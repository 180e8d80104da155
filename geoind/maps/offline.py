"""Maps that need nothing from the network: folium with scripts and styles from installed packages.

folium's pages load Leaflet and more from content delivery networks, and tiles from tile servers: whoever opens
such a page tells strangers that, and where, they look. Here the same assets come from packages that pip has
installed, either embedded in the page (`offline_html`, `save_offline`) or served under a path of one's own
(`link_assets`).
"""

import base64
import json
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import folium

from geoind.errors import InvalidInputError

if TYPE_CHECKING:
    from folium import Map

__all__ = ["ASSETS", "asset_bytes", "link_assets", "offline_html", "save_offline"]

ASSETS: dict[str, tuple[str, str]] = {
    "leaflet": ("xstatic.pkg.leaflet", "data/leaflet.js"),
    "leaflet_css": ("xstatic.pkg.leaflet", "data/leaflet.css"),
    "jquery": ("xstatic.pkg.jquery", "data/jquery.min.js"),
    "leaflet-heat.js": ("folium", "templates/leaflet_heat.min.js"),
}
"""folium's name of an asset, and the package and path of the file that is it."""

ICON_ASSETS = {
    "bootstrap",
    "bootstrap_css",
    "glyphicons_css",
    "awesome_markers",
    "awesome_markers_css",
    "awesome_markers_font_css",
    "awesome_rotate_css",
}
"""What every folium map loads although only `folium.Icon` uses it."""

LANGUAGE = "en"
"""Of the words on our own pages."""

MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".png": "image/png"}


def offline_html(folium_map: "Map") -> str:
    """Return the map as one HTML page that loads nothing from anywhere.

    Layers that cannot do without the network are refused: tiles, data at an address, the fonts of
    `folium.Icon` (use a plain `Marker`, a `CircleMarker` or a `DivIcon`), and plugins other than `HeatMap`.

    Examples
    --------
    >>> import folium
    >>> paris = folium.Map([48.86, 2.35], tiles=None, zoom_start=12)
    >>> page = offline_html(paris)
    >>> "cdn" in page
    False
    """
    link_assets(folium_map, _data_uri)
    root = folium_map.get_root()
    root.title = root.title or "Map"
    # A screen reader must know the language, and who needs larger words may make them so.
    page = str(root.render()).replace("<html>", f'<html lang="{LANGUAGE}">', 1)
    return re.sub(
        r"initial-scale=1\.0,\s*maximum-scale=1\.0,\s*user-scalable=no", "initial-scale=1", page, count=1
    )


def save_offline(folium_map: "Map", path: str | Path) -> None:
    """Write the map as one HTML file that loads nothing from anywhere."""
    Path(path).write_text(offline_html(folium_map), encoding="utf-8")


def link_assets(folium_map: "Map", link: Callable[[str], str]) -> None:
    """Make a map and its layers load each of the `ASSETS` from `link(name)`, and nothing else.

    Examples
    --------
    >>> import folium
    >>> paris = folium.Map([48.86, 2.35], tiles=None)
    >>> link_assets(paris, lambda name: f"/assets/{name}")
    >>> paris.default_js
    [('leaflet', '/assets/leaflet'), ('jquery', '/assets/jquery')]
    """
    elements = list(_elements(folium_map))
    for element in elements:
        _refuse_network(element)
    header = folium_map.get_root().header
    for element in elements:
        for kind in ("default_js", "default_css"):
            wanted = [name for name, _ in getattr(element, kind, [])]
            # A map that was rendered before has its links in the header already.
            for name in wanted:
                header._children.pop(name, None)
            # On the object, not through add_js_link: that would change folium's own class for everybody.
            if wanted:
                setattr(element, kind, [(name, link(name)) for name in wanted if name in ASSETS])


def asset_bytes(name: str) -> bytes:
    """Return the file behind an asset's name; an image of Leaflet's style sheet as `images/layers.png`."""
    package, path = ASSETS.get(name, ("xstatic.pkg.leaflet", f"data/{name}"))
    if name not in ASSETS and not re.fullmatch(r"images/[a-z0-9-]+\.png", name):
        raise InvalidInputError(f"there is no asset {name!r}")
    return files(package).joinpath(path).read_bytes()


def _elements(element: Any) -> Iterator[Any]:
    yield element
    for child in element._children.values():
        yield from _elements(child)


def _refuse_network(element: Any) -> None:
    kind = type(element).__name__
    if isinstance(element, folium.TileLayer):
        raise InvalidInputError("an offline map cannot have tiles: make it with tiles=None")
    if isinstance(element, folium.Icon):
        raise InvalidInputError(
            "folium.Icon needs fonts that no package has: use a plain Marker, CircleMarker or DivIcon"
        )
    address = getattr(element, "embed_link", None) or getattr(element, "url", None)
    if isinstance(address, str) and re.match(r"https?:|//", address):
        raise InvalidInputError(f"folium's {kind} loads its data from the network: give it the data itself")
    for name, _ in [*getattr(element, "default_js", []), *getattr(element, "default_css", [])]:
        if name not in ASSETS and name not in ICON_ASSETS:
            raise InvalidInputError(
                f"folium's {kind} loads {name!r} from the network: no installed package has it"
            )


def _data_uri(name: str) -> str:
    suffix = Path(ASSETS.get(name, ("", name))[1]).suffix
    content = asset_bytes(name)
    if suffix == ".css":
        content = re.sub(rb"images/[^)]+", lambda image: _data_uri(image[0].decode()).encode(), content)
    if name == "leaflet":
        content += _embedded_pin().encode()
    return f"data:{MEDIA_TYPES[suffix]};base64,{base64.b64encode(content).decode()}"


def _embedded_pin() -> str:
    # Leaflet looks for its pin beside the style sheet, which has no place of its own in the page. Even a marker
    # with a DivIcon needs it: folium sets the icon after Leaflet has drawn the pin.
    images = {
        option: _data_uri(f"images/{image}.png")
        for option, image in [
            ("iconUrl", "marker-icon"),
            ("iconRetinaUrl", "marker-icon-2x"),
            ("shadowUrl", "marker-shadow"),
        ]
    }
    return f"\ndelete L.Icon.Default.prototype._getIconUrl;L.Icon.Default.mergeOptions({json.dumps(images)});"
