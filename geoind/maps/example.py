"""The map of `geoind example`: true locations, reports, and lines that connect them."""

from typing import TYPE_CHECKING, Any

import folium
import numpy as np

from geoind.arrays import FloatArray
from geoind.evaluation.synthetic import City
from geoind.maps.colours import REPORT, TRUTH
from geoind.maps.legend import add_legend
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.pictures.page import fill

if TYPE_CHECKING:
    from folium import Map

__all__ = ["city_map"]

LINE = "#8d99ae"
DARK = "@media (prefers-color-scheme: dark) { .leaflet-image-layer { filter: invert(0.9); } }"
CONNECTED = 60
"""How many true locations are connected to their reports."""

LINES = """
<svg width="10" height="10"><circle cx="5" cy="5" r="4" fill="{{ truth }}"/></svg> true locations<br>
<svg width="10" height="10"><circle cx="5" cy="5" r="4" fill="{{ report }}"/></svg> reports<br>
<svg width="10" height="10"><path d="M0 5h10" stroke="{{ line }}" stroke-width="1.5"/></svg>
from true location to report, for {{ connected }} people<br>
<svg width="10" height="10"><circle cx="5" cy="5" r="4" fill="none" stroke="{{ truth }}"/></svg>
95 % of one person's reports are in this circle<br>
epsilon {{ epsilon }} per metre: the mean distance is {{ mean }} m
"""


def city_map(city: City, truth: FloatArray, reports: FloatArray, noise: SphericalLaplace) -> "Map":
    """Return a map without tiles: true locations and reports over the population density of the city."""
    centre = np.asarray(city.projection.to_lonlat([[0.0, 0.0]]))[0]
    page = folium.Map(
        [centre[1], centre[0]], tiles=None, zoom_start=14, prefer_canvas=True, control_scale=True, max_zoom=18
    )
    _density(city).add_to(page)
    connected = min(CONNECTED, len(truth))
    lines = [[a, b] for a, b in zip(truth[:connected].tolist(), reports[:connected].tolist(), strict=True)]
    folium.GeoJson(
        _feature("MultiLineString", lines),
        name="from true location to report",
        style_function=lambda _: {"color": LINE, "weight": 1.5, "opacity": 0.9},
    ).add_to(page)
    for name, points, colour in (("true locations", truth, TRUTH), ("reports", reports, REPORT)):
        folium.GeoJson(
            _feature("MultiPoint", points.tolist()),
            name=name,
            marker=folium.CircleMarker(radius=4, color="white", weight=1, fill_color=colour, fill_opacity=0.9),
        ).add_to(page)
    folium.Circle(
        [truth[0, 1], truth[0, 0]], radius=float(noise.radius_quantile(0.95)), color=TRUTH, weight=2, fill=False
    ).add_to(page)
    # The legend is at the top.
    folium.LayerControl(position="bottomright", collapsed=False).add_to(page)
    about = fill(
        LINES,
        truth=TRUTH,
        report=REPORT,
        line=LINE,
        connected=connected,
        epsilon=f"{noise.epsilon:.4g}",
        mean=f"{noise.mean_radius:.0f}",
    )
    add_legend(page, "A synthetic city, obfuscated", [about], style=DARK)
    return page


def _density(city: City) -> Any:
    """Return the background layer: cells with more people are darker."""
    grid = city.grid
    mass = np.sqrt(city.prior.mass.reshape(grid.rows, grid.columns))
    shade = (255 * (1 - 0.35 * mass / mass.max())).astype(np.uint8)
    image = np.dstack([shade, shade, shade, np.full_like(shade, 255)])[::-1]
    half = grid.cell / 2
    corners = city.projection.to_lonlat([grid.xy[0] - half, grid.xy[-1] + half])
    return folium.raster_layers.ImageOverlay(
        image,
        bounds=[[corners[0, 1], corners[0, 0]], [corners[1, 1], corners[1, 0]]],
        name="population density",
        mercator_project=True,
    )


def _feature(kind: str, coordinates: list[Any]) -> dict[str, Any]:
    return {"type": "Feature", "properties": {}, "geometry": {"type": kind, "coordinates": coordinates}}
