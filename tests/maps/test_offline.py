"""Offline maps: nothing is loaded from anywhere, and what cannot be offline is refused."""

import re
from html import escape
from pathlib import Path

import folium
import numpy as np
import pytest
from folium import plugins
from playwright.sync_api import Page, expect

from geoind.errors import InvalidInputError
from geoind.maps.offline import ASSETS, asset_bytes, map_parts, offline_html, save_offline
from tests.hostile import HOSTILE

SQUARE = {
    "type": "Feature",
    "properties": {"name": "a square"},
    "geometry": {"type": "Polygon", "coordinates": [[[25, 60], [25.1, 60], [25.1, 60.1], [25, 60.1], [25, 60]]]},
}


def helsinki() -> folium.Map:
    chart = folium.Map([60.05, 25.05], zoom_start=11, tiles=None, max_zoom=18)
    folium.GeoJson(
        {"type": "FeatureCollection", "features": [SQUARE]}, popup=folium.GeoJsonPopup(["name"])
    ).add_to(chart)
    folium.CircleMarker([60.05, 25.2], radius=9, fill=True, popup="a circle").add_to(chart)
    folium.Marker([60.02, 25.02], icon=folium.DivIcon(html="<b>here</b>")).add_to(chart)
    folium.Marker([60.08, 25.08], popup="a pin").add_to(chart)
    plugins.HeatMap([[60.05, 25.05, 1.0]]).add_to(chart)
    folium.LayerControl(collapsed=False).add_to(chart)
    return chart


def loaded(page: str) -> set[str]:
    return set(re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(https?:[^"')]*)""", page))


def test_an_offline_page_loads_nothing() -> None:
    page = offline_html(helsinki())
    assert not loaded(page) - {"https://leafletjs.com"}
    assert "images/layers.png" not in page
    assert loaded(helsinki().get_root().render()), "the search must find what folium loads"


def test_a_map_that_was_rendered_before_becomes_offline_too() -> None:
    chart = helsinki()
    chart.get_root().render()
    assert not loaded(offline_html(chart)) - {"https://leafletjs.com"}


def test_other_maps_keep_their_links() -> None:
    offline_html(helsinki())
    assert any("https" in url for _, url in folium.Map.default_js)


def test_the_parts_of_a_map_name_the_assets_that_an_application_serves() -> None:
    assert sorted(map_parts(helsinki()).assets) == sorted(ASSETS)


def test_every_asset_is_a_file_and_nothing_else_is() -> None:
    for name in [*ASSETS, "images/layers.png"]:
        assert len(asset_bytes(name)) > 500
    for name in ("../__init__.py", "images/../leaflet.js", "images/.png", "other"):
        with pytest.raises(InvalidInputError, match="no asset"):
            asset_bytes(name)


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        (folium.TileLayer(), "tiles=None"),
        (folium.Marker([60, 25], icon=folium.Icon()), "CircleMarker"),
        (plugins.MarkerCluster(), "MarkerCluster loads"),
        (folium.raster_layers.ImageOverlay("https://example.org/a.png", [[0, 0], [1, 1]]), "its data"),
    ],
)
def test_a_layer_that_needs_the_network_is_refused(layer: folium.map.Layer, sentence: str) -> None:
    chart = folium.Map([60, 25], tiles=None)
    layer.add_to(chart)
    with pytest.raises(InvalidInputError, match=sentence):
        offline_html(chart)


def test_an_offline_map_works_in_a_browser(watched: Page, tmp_path: Path) -> None:
    path = tmp_path / "map.html"
    save_offline(helsinki(), path)
    watched.goto(path.as_uri())
    expect(watched.locator("path.leaflet-interactive")).to_have_count(2)
    expect(watched.locator(".empty")).to_have_text("here")
    expect(watched.locator("canvas.leaflet-heatmap-layer")).to_be_visible()
    watched.locator("path[d*=a]").click()
    expect(watched.locator(".leaflet-popup-content")).to_have_text("a circle")
    pin = watched.locator("img.leaflet-marker-icon")
    expect(pin).to_be_visible()
    expect(pin).to_have_js_property("naturalWidth", 25)


def with_words(words: str) -> folium.Map:
    """A map with these words wherever folium takes data."""
    named = {**SQUARE, "properties": {"name": words, words: words}}
    chart = folium.Map([60.05, 25.05], zoom_start=11, tiles=None)
    folium.GeoJson(
        {"type": "FeatureCollection", "features": [named]},
        name=words,
        popup=folium.GeoJsonPopup(["name"], aliases=[words]),
        tooltip=folium.GeoJsonTooltip(["name"]),
        style_function=lambda _: {"weight": 2},
    ).add_to(chart)
    folium.Marker([60.05, 25.2], icon=folium.DivIcon(html=escape(words)), title=words, alt=words).add_to(chart)
    folium.raster_layers.ImageOverlay(
        np.zeros((2, 2, 4), dtype=np.uint8), [[60, 25], [60.1, 25.1]], name=words, alt=words
    ).add_to(chart)
    plugins.HeatMap([[60.05, 25.05, 1.0]], name=words).add_to(chart)
    folium.LayerControl(collapsed=False).add_to(chart)
    chart.get_root().title = words
    return chart


def test_words_in_a_map_are_never_a_template_or_a_script(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    for number, words in enumerate(HOSTILE):
        path = tmp_path / f"{number}.html"
        save_offline(with_words(words), path)
        page.goto(path.as_uri())
        expect(page.locator(".leaflet-control-layers-overlays label")).to_have_count(1)
        page.locator("path.leaflet-interactive").click()
        expect(page.locator(".leaflet-popup-content")).to_be_visible()
        assert page.evaluate("window.pwned") is None
        assert errors == [], words
    assert {path.suffix for path in tmp_path.iterdir()} == {".html"}


@pytest.mark.parametrize("text", ["a \\ b", "${window.pwned=1}", "\\\\`+alert(1)+`"])
@pytest.mark.parametrize("where", ["popup", "tooltip"])
def test_a_popup_or_a_tooltip_that_folium_would_run_is_refused(where: str, text: str) -> None:
    chart = folium.Map([60, 25], tiles=None)
    folium.CircleMarker([60, 25], **{where: text}).add_to(chart)
    with pytest.raises(InvalidInputError, match="backtick"):
        offline_html(chart)


def test_a_style_that_folium_would_run_is_refused() -> None:
    chart = folium.Map([60, 25], tiles=None)
    layer = {"type": "FeatureCollection", "features": [SQUARE]}
    folium.GeoJson(layer, style_function=lambda _: {"color": "{{window.pwned=1}}"}).add_to(chart)
    with pytest.raises(InvalidInputError, match="style"):
        offline_html(chart)


def test_a_tooltip_style_or_a_crs_that_folium_would_run_is_refused() -> None:
    chart = folium.Map([60, 25], tiles=None)
    folium.CircleMarker([60, 25], tooltip=folium.Tooltip("x", style="color: red${window.pwned=1}")).add_to(chart)
    with pytest.raises(InvalidInputError, match="backtick"):
        offline_html(chart)
    chart = folium.Map([60, 25], tiles=None)
    chart.crs = "EPSG3857, x: (window.pwned=1)"
    with pytest.raises(InvalidInputError, match="crs of a map"):
        offline_html(chart)


def test_a_property_whose_name_folium_would_run_is_refused() -> None:
    feature = {**SQUARE, "properties": {"a; window.pwned = 1": "unique"}}
    chart = folium.Map([60, 25], tiles=None)
    folium.GeoJson({"type": "FeatureCollection", "features": [feature]}, style_function=lambda _: {}).add_to(chart)
    with pytest.raises(InvalidInputError, match="letters and digits"):
        offline_html(chart)


def test_a_script_of_another_server_is_refused() -> None:
    chart = folium.Map([60, 25], tiles=None)
    chart.get_root().header.add_child(folium.JavascriptLink("https://example.org/x.js"), name="x")
    with pytest.raises(InvalidInputError, match="'x' from the network"):
        offline_html(chart)
