"""What a map's page says about itself, in a corner that can be folded."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import folium

if TYPE_CHECKING:
    from folium import Map

__all__ = ["add_legend", "shades"]

STYLE = """
<style>
.leaflet-container { background: #f7f5f0; }
.told { position: fixed; right: 12px; top: 12px; z-index: 900; max-width: 20rem; padding: 10px 14px;
  border-radius: 10px; background: #fffffff0; color: #1c2333; box-shadow: 0 1px 5px #0003;
  font: 14px/1.45 system-ui, sans-serif; }
.told summary { font-weight: 600; cursor: pointer; }
.told .shades { height: 12px; margin-top: 6px; border-radius: 3px; }
.told .ends { display: flex; justify-content: space-between; }
@media (max-width: 600px) {
  .told { left: 54px; right: 8px; top: 8px; max-width: none; padding: 6px 10px;
    font-size: 12px; line-height: 1.35; }
}
</style>
"""

LEGEND = '<details class="told" open><summary>{title}</summary>{lines}</details>'

SHADES = '<div class="shades" style="background: linear-gradient(to right, {colours})"></div>'
ENDS = '<div class="ends">{ends}</div>'


def add_legend(chart: "Map", title: str, lines: Sequence[str]) -> None:
    """Give a map's page a title and a corner that says what it shows; the lines are HTML."""
    root = chart.get_root()
    root.title = escape(title)
    root.header.add_child(folium.Element(STYLE), name="style_of_legend")
    root.html.add_child(folium.Element(LEGEND.format(title=escape(title), lines="<br>".join(lines))))


def shades(colours: Sequence[str], ends: Sequence[str]) -> str:
    """Return a bar of colours with words below it, from its left end to its right end, as HTML.

    Examples
    --------
    >>> "black, white" in shades(["black", "white"], ["0 %", "5 %"])
    True
    """
    words = "".join(f"<span>{escape(end)}</span>" for end in ends)
    return SHADES.format(colours=", ".join(colours)) + ENDS.format(ends=words)
