"""Lines of latitude and longitude below everything else on a map: an orientation where there is no base map."""

from branca.element import MacroElement
from jinja2 import Template

__all__ = ["GRATICULE_STYLE", "graticule"]

GRATICULE_STYLE = """
.graticule { stroke: #7a86a0; stroke-opacity: 0.35; }
.graticule-label { color: #6b7488; font: 11px/1 system-ui, sans-serif; white-space: nowrap; }
@media (prefers-color-scheme: dark) { .graticule-label { color: #9aa5b8; } }
"""


TEMPLATE = Template("""
{% macro script(this, kwargs) %}
(() => {
  const map = {{ this._parent.get_name() }}, pane = map.createPane("graticule");
  Object.assign(pane.style, { zIndex: 250, pointerEvents: "none" });
  pane.setAttribute("aria-hidden", "true");
  const renderer = L.svg({ pane: "graticule" }), lines = L.layerGroup().addTo(map);
  const stepOf = (span) => {
    const power = 10 ** Math.floor(Math.log10(span / 5));
    return power * [1, 2, 5, 10].find((digit) => digit * power >= span / 5);
  };
  const named = (value, step, [plus, minus]) => {
    const text = Math.abs(value).toFixed(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
    return `${text}°${Number(text) ? (value < 0 ? minus : plus) : ""}`;
  };
  const add = (from, to, text, anchor) => {
    const look = { renderer, pane: "graticule", weight: 1, interactive: false, className: "graticule" };
    L.polyline([from, to], look).addTo(lines);
    const icon = L.divIcon({ className: "graticule-label", html: text, iconSize: [0, 0], iconAnchor: anchor });
    L.marker(from, { pane: "graticule", interactive: false, keyboard: false, icon }).addTo(lines);
  };
  const draw = () => {
    lines.clearLayers();
    const view = map.getBounds(), west = view.getWest(), east = view.getEast();
    const south = Math.max(-85, view.getSouth()), north = Math.min(85, view.getNorth());
    if (!(east > west && north > south)) return;
    const high = stepOf(north - south), wide = stepOf(east - west);
    for (let i = Math.ceil(south / high); i * high <= north; i += 1)
      add([i * high, west], [i * high, east], named(i * high, high, "NS"), [-4, 12]);
    for (let i = Math.ceil(west / wide); i * wide <= east; i += 1) {
      const lon = ((((i * wide + 180) % 360) + 360) % 360) - 180;
      add([south, i * wide], [north, i * wide], named(lon, wide, "EW"), [-4, 14]);
    }
  };
  map.on("moveend resize", draw);
  draw();
})();
{% endmacro %}
""")


def graticule() -> MacroElement:
    """Return lines of a folium map at round degrees, drawn anew for each view.

    Examples
    --------
    >>> import folium
    >>> paris = folium.Map([48.86, 2.35], tiles=None)
    >>> _ = graticule().add_to(paris)
    """
    lines = MacroElement()
    lines._name, lines._template = "Graticule", TEMPLATE
    return lines
