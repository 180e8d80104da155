"""The legend of a map, in a corner of its page."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from geoind.maps.graticule import GRATICULE_STYLE, graticule
from geoind.maps.offline import add_html
from geoind.pictures.page import fill

if TYPE_CHECKING:
    from folium import Map

__all__ = ["add_legend", "colour_bar"]

STYLE = """
:root { color-scheme: light dark; }
.leaflet-container { background: #f7f5f0; }
.legend { position: fixed; right: 12px; top: 12px; z-index: 900; max-width: 20rem; padding: 10px 14px;
  border-radius: 10px; background: #fffffff0; color: #1c2333; box-shadow: 0 1px 5px #0003;
  font: 14px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; max-height: 70vh; overflow-y: auto; }
.legend summary { font-weight: 600; cursor: pointer; }
.legend .colour-bar { display: block; width: 100%; height: 12px; margin-top: 6px; border-radius: 3px;
  background: #f7f5f0; }
.legend .ends { display: flex; justify-content: space-between; }
@media (max-width: 600px) {
  .legend { left: 54px; right: 8px; top: 8px; max-width: none; padding: 6px 10px;
    font-size: 12px; line-height: 1.35; }
}
@media (prefers-color-scheme: dark) {
  .leaflet-container, .legend .colour-bar { background: #171b22; }
  .legend, .leaflet-bar a, .leaflet-control-layers, .leaflet-container .leaflet-control-attribution,
  .leaflet-control-scale-line { background: #191d24f0; color: #e9ecf2; border-color: #313844; text-shadow: none; }
  .leaflet-container .leaflet-control-attribution a { color: inherit; }
  .leaflet-bar a.leaflet-disabled { background: #222832; color: #a3acbb; }
  /* The base map is light: inverted, with its hues. */
  .leaflet-base-pane { filter: invert(0.9) hue-rotate(180deg); }
}
"""

LEGEND = """
<details class="legend" open><summary>{{ title }}</summary>
{% for line in lines %}{{ line }}{% if not loop.last %}<br>{% endif %}

{% endfor %}
</details>
"""

# A gradient in SVG attributes, so that the page's policy need not allow inline styles.
COLOUR_BAR = """
<svg class="colour-bar" viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">
<defs><linearGradient id="colours">
{% for colour in colours %}
<stop offset="{{ loop.index0 / (colours|length - 1) }}" stop-color="{{ colour }}"/>
{% endfor %}
</linearGradient></defs><rect width="1" height="1" fill="url(#colours)"/></svg>
<div class="ends">{% for end in ends %}<span>{{ end }}</span>{% endfor %}</div>
"""


def add_legend(chart: "Map", title: str, lines: Sequence[str], *, style: str = "") -> None:
    """Add a title, a legend and a graticule to the page of a map; text is escaped, `Markup` is not."""
    chart.get_root().title = escape(title)
    graticule().add_to(chart)
    add_html(chart, fill(LEGEND, title=title, lines=lines), STYLE + GRATICULE_STYLE + style)


def colour_bar(colours: Sequence[str], ends: Sequence[str]) -> Markup:
    """Return a gradient of two or more colours, with labels below it from left to right.

    Examples
    --------
    >>> 'stop-color="black"' in colour_bar(["black", "white"], ["0 %", "5 %"])
    True
    """
    return fill(COLOUR_BAR, colours=colours, ends=ends)
