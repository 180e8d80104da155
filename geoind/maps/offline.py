"""Folium maps that need no network: scripts and styles come from installed packages.

Folium pages load Leaflet and other assets from content delivery networks, and tiles from tile servers, so these
servers learn that a page was opened and what it shows. Here the assets come from packages that pip has installed.
They are embedded in one page (`offline_html`, `save_offline`) or served by an application (`map_parts`,
`asset_bytes`).
"""

import base64
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import folium
from branca.element import CssLink, JavascriptLink, MacroElement
from markupsafe import Markup

from geoind.errors import InvalidInputError
from geoind.pictures.page import html_page, script_json

if TYPE_CHECKING:
    from folium import Map

__all__ = [
    "ASSETS",
    "MEDIA_TYPES",
    "add_html",
    "asset_bytes",
    "map_parts",
    "offline_html",
    "save_offline",
]

ASSETS: dict[str, tuple[str, str]] = {
    "leaflet": ("xstatic.pkg.leaflet", "data/leaflet.js"),
    "leaflet_css": ("xstatic.pkg.leaflet", "data/leaflet.css"),
    "jquery": ("xstatic.pkg.jquery", "data/jquery.min.js"),
    "leaflet-heat.js": ("folium", "templates/leaflet_heat.min.js"),
}
"""Folium's name of an asset, and the package and path of its file."""

ICON_ASSETS = {
    "bootstrap",
    "bootstrap_css",
    "glyphicons_css",
    "awesome_markers",
    "awesome_markers_css",
    "awesome_markers_font_css",
    "awesome_rotate_css",
}
"""Assets that every folium map loads although only `folium.Icon` uses them."""

MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".png": "image/png"}


TEMPLATE_START = re.compile(r"\{(?=[{%#])")
"""A brace that begins Jinja2 syntax."""

PLANES = ("EPSG3857", "EPSG3395", "EPSG4326", "Simple")
"""The names of Leaflet's CRS."""

CODE = re.compile(r"(?<!\\)`|\\(?!`)|\$\{")
"""Text that ends a JavaScript template literal or is evaluated in it; folium itself escapes backticks."""


class _MapParts(NamedTuple):
    """The parts of the page of a folium map.

    Attributes
    ----------
    assets : list of str
        Keys of `ASSETS`, in the order of loading.
    styles, scripts : list of str
        Written by folium for this map; the last script draws it.
    body : Markup
        The element of the map, and HTML that was added to the page.
    """

    assets: list[str]
    styles: list[str]
    scripts: list[str]
    body: Markup


def offline_html(folium_map: "Map") -> str:
    """Return the map as one HTML page that loads nothing from the network.

    Layers that need the network are refused: tiles, data at a URL, the fonts of
    `folium.Icon` (use a plain `Marker`, a `CircleMarker` or a `DivIcon`), and plugins other than `HeatMap`.

    The page's Content-Security-Policy allows the scripts that folium wrote for the map's layers and no others: a
    `<script>` or an `onclick` in a popup, a tooltip or the body of the page does not run. Text that folium would
    write into its own script as code is refused. Popups and tooltips are HTML: escape text from outside.

    Examples
    --------
    >>> import folium
    >>> paris = folium.Map([48.86, 2.35], tiles=None, zoom_start=12)
    >>> page = offline_html(paris)
    >>> "cdn" in page
    False
    """
    parts = map_parts(folium_map)
    texts = {name: _asset_text(name) for name in parts.assets}
    scripts = [text for name, text in texts.items() if _suffix(name) == ".js"]
    return html_page(
        folium_map.get_root().title or "Map",
        parts.body,
        styles=[*(text for name, text in texts.items() if _suffix(name) == ".css"), *parts.styles],
        scripts=[*scripts, *parts.scripts],
        # folium puts style attributes into its popups and tooltips.
        style_attributes=True,
    )


def save_offline(folium_map: "Map", path: str | Path) -> None:
    """Write the map as one HTML file that loads nothing from the network.

    Examples
    --------
    >>> import folium, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_offline(folium.Map([48.86, 2.35], tiles=None), f"{folder}/paris.html")
    """
    Path(path).write_text(offline_html(folium_map), encoding="utf-8")


def add_html(folium_map: "Map", html: Markup, style: str) -> None:
    """Add HTML to a map's page, and its style sheet; folium does not read either as a template."""
    root, head, body = (
        folium_map.get_root(),
        folium.Element("<style>{{ this.fixed }}</style>"),
        folium.Element("{{ this.fixed }}"),
    )
    head.fixed, body.fixed = style, html
    root.header.add_child(head)
    root.html.add_child(body)


def map_parts(folium_map: "Map") -> _MapParts:
    """Return the parts of a map's page; a layer that needs the network is refused.

    Examples
    --------
    >>> import folium
    >>> map_parts(folium.Map([48.86, 2.35], tiles=None)).assets
    ['leaflet', 'jquery', 'leaflet_css']
    """
    for element in _elements(folium_map):
        _refuse_network(element)
        _refuse_code(element)
        if isinstance(element, MacroElement) and not isinstance(element._template, _Verbatim):
            element._template = _Verbatim(element._template)
    root = folium_map.get_root()
    for child in root._children.values():
        child.render()
    assets, header = [], _Header()
    for name, child in root.header._children.items():
        if not isinstance(child, JavascriptLink | CssLink):
            header.feed(child.render())
        elif name in ASSETS:
            assets.append(name)
        elif name not in ICON_ASSETS:
            raise InvalidInputError(f"the map loads {name!r} from the network: no installed package has it")
    header.close()
    # Markup, as folium wrote it: what runs in it is decided by the page's policy.
    return _MapParts(
        assets, header.found["style"], [*header.found["script"], root.script.render()], Markup(root.html.render())
    )


class _Verbatim:
    """A folium template whose output stays as it is, although branca compiles it a second time.

    branca writes a layer by its template, and then makes the result a template of the page. A name or a popup with
    `{{ ... }}` would run as Python code in that second step.
    """

    def __init__(self, template: Any) -> None:
        self._template = template

    def render(self, *args: Any, **kwargs: Any) -> str:
        return _protected(self._template.render(*args, **kwargs))

    @property
    def module(self) -> SimpleNamespace:
        macros = vars(self._template.module)
        return SimpleNamespace(
            **{
                name: lambda *args, _macro=macros[name]: _protected(_macro(*args))
                for name in ("header", "html", "script")
                if name in macros
            }
        )


def _protected(text: str) -> str:
    return TEMPLATE_START.sub("{{ '{' }}", str(text))


class _Header(HTMLParser):
    """The styles and scripts in what folium's layers add to the head of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[str]] = {"style": [], "script": []}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag in self.found:
            self.found[tag].append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem in self.found:
            self.found[self.cdata_elem][-1] += data


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


def _refuse_code(element: Any) -> None:
    """Refuse text that folium writes into a script without quoting it."""
    # A layer with a style uses the first property with distinct values, by its bare name.
    if not re.fullmatch(r"feature(\.\w+)+", getattr(element, "feature_identifier", "feature.id")):
        raise InvalidInputError("the first properties of a GeoJson layer must have names of letters and digits")
    # A style with "{{ ... }}" loses its quotes.
    for style in (getattr(element, kind, None) for kind in ("style_function", "highlight_function")):
        if style is not None and any("{{" in str(style(feature)) for feature in element.data["features"]):
            raise InvalidInputError("a style of a GeoJson layer must not contain '{{'")
    if isinstance(element, folium.Map) and element.crs not in PLANES:
        raise InvalidInputError(f"crs of a map must be one of {', '.join(PLANES)}")
    words = [element.text, str(getattr(element, "style", ""))] if isinstance(element, folium.Tooltip) else []
    if isinstance(element, folium.Popup):
        words = [child.render() for child in element.html._children.values()]
    if any(CODE.search(text) for text in words):
        raise InvalidInputError("a popup or a tooltip must not contain a backtick, a backslash or '${'")


def _suffix(name: str) -> str:
    return Path(ASSETS.get(name, ("", name))[1]).suffix


def _asset_text(name: str) -> str:
    text = asset_bytes(name).decode("utf-8")
    if name == "leaflet":
        return text + _embedded_pin()
    return re.sub(r"images/[^)]+", lambda image: _data_uri(image[0]), text) if _suffix(name) == ".css" else text


def _data_uri(name: str) -> str:
    return f"data:{MEDIA_TYPES[_suffix(name)]};base64,{base64.b64encode(asset_bytes(name)).decode()}"


def _embedded_pin() -> str:
    # Leaflet looks for its pin next to the style sheet, which is embedded in the page. Even a marker
    # with a DivIcon needs it: folium sets the icon after Leaflet has drawn the pin.
    images = {
        option: _data_uri(f"images/{image}.png")
        for option, image in [
            ("iconUrl", "marker-icon"),
            ("iconRetinaUrl", "marker-icon-2x"),
            ("shadowUrl", "marker-shadow"),
        ]
    }
    return f"\ndelete L.Icon.Default.prototype._getIconUrl;L.Icon.Default.mergeOptions({script_json(images)});"
