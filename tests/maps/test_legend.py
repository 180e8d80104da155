"""The legend of a map; text from outside is escaped."""

import folium

from geoind.maps.legend import add_legend, colour_bar


def test_a_page_has_a_title_and_lines_and_a_bar_of_colours_with_its_ends() -> None:
    chart = folium.Map(tiles=None)
    add_legend(chart, "5 < 6", [colour_bar(["black", "white"], ["0 %", "<most>"])])
    page = chart.get_root().render()
    assert "<title>5 &lt; 6</title>" in page
    assert "<summary>5 &lt; 6</summary>" in page
    assert '<stop offset="0.0" stop-color="black"/>\n<stop offset="1.0" stop-color="white"/>' in page
    assert "<span>0 %</span><span>&lt;most&gt;</span>" in page
