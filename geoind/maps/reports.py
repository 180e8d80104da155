"""A file of reports as a map: one HTML page that loads nothing from anywhere."""

import math
from collections.abc import Callable, Iterator
from html import escape
from typing import Any, TypeAlias

import folium
import numpy as np
from folium.plugins import HeatMap

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError
from geoind.maps.basemap import Basemap
from geoind.maps.colours import REPORT, TRUTH
from geoind.maps.offline import offline_html
from geoind.mechanisms.sphere import SphericalLaplace
from geoind.tables.promise import Promise

__all__ = ["report_map"]

Places: TypeAlias = Callable[[], Iterator[FloatArray]]
"""Starts reading (n, 2) lon/lat batches from the beginning."""

MOST_POINTS = 5000
"""Up to this many reports are drawn one by one; more become a heat map."""

CELLS = 256
"""Cells of the heat map from west to east and from south to north: its size does not grow with the file."""

POINT = {"radius": 4, "stroke": False, "fill": True, "fill_opacity": 0.55}

HEAT = {0.1: "#fbd9b5", 0.4: "#f39a4a", 0.7: "#d4500c", 1: "#7d1f00"}
"""One hue from light to dark: readable for everybody, and in print."""

LEGEND = """
<div style="position:fixed;right:12px;top:12px;z-index:900;max-width:20rem;padding:10px 14px;border-radius:10px;
background:#fffffff0;color:#1c2333;font:14px/1.45 system-ui,sans-serif;box-shadow:0 1px 5px #0003">
<b>{title}</b><br>{lines}</div>
"""

UNPROTECTED = """
<div role="alert" style="position:fixed;left:0;right:0;bottom:32px;margin:auto;width:fit-content;max-width:80%;
z-index:1000;padding:10px 18px;border-radius:10px;background:#b3261e;color:white;
font:600 15px/1.4 system-ui,sans-serif;
box-shadow:0 1px 5px #0006">
These are true places: nothing protects them. Do not share this page.</div>
"""


def report_map(
    places: Places, *, title: str, promise: Promise | None = None, basemap: Basemap | None = None
) -> str:
    """Return the page: reports as points or, if they are many, as a heat map, and what was promised.

    Places that come without a promise are taken for true ones, and the page warns of them.

    Parameters
    ----------
    places : callable
        Returns the batches from the beginning: it is called twice, so that memory does not grow with the file.
    title : str
        Of the page.
    promise : Promise, optional
        What the reports promise, for the legend; None where nothing was promised.
    basemap : Basemap, optional
        The background; without it the page is plain.

    Examples
    --------
    >>> page = report_map(lambda: iter([np.array([[2.2945, 48.8584]])]), title="One place")
    >>> "https://cdn" in page, "These are true places" in page
    (False, True)
    """
    count, low, high = _extent(places)
    chart = folium.Map(tiles=None, prefer_canvas=True, max_zoom=20, control_scale=True, zoom_snap=0.25)
    if basemap is not None:
        basemap.to_folium().add_to(chart)
    if count <= MOST_POINTS:
        _points(np.concatenate(list(places())), TRUTH if promise is None else REPORT).add_to(chart)
    else:
        _heat(places, low, high).add_to(chart)
    chart.fit_bounds([low[::-1].tolist(), high[::-1].tolist()], padding=(24, 24), max_zoom=17)
    lines = [f"{count:,} true places"] if promise is None else [f"{count:,} reports", *_promised(promise)]
    if basemap is not None:
        lines.append(escape(basemap.attribution))
    root = chart.get_root()
    root.title = title
    root.html.add_child(folium.Element(LEGEND.format(title=escape(title), lines="<br>".join(lines))))
    if promise is None:
        root.html.add_child(folium.Element(UNPROTECTED))
    return offline_html(chart)


def _extent(places: Places) -> tuple[int, FloatArray, FloatArray]:
    count, low, high = 0, np.full(2, np.inf), np.full(2, -np.inf)
    for batch in places():
        if len(batch):
            count += len(batch)
            low, high = np.minimum(low, batch.min(axis=0)), np.maximum(high, batch.max(axis=0))
    if not count:
        raise InvalidInputError("the file has no places to draw")
    # One place alone has no extent: a hundred metres around it.
    return count, low - 1e-3, high + 1e-3


def _points(lonlat: FloatArray, colour: str) -> "folium.GeoJson":
    shape = {"type": "MultiPoint", "coordinates": lonlat.round(6).tolist()}
    feature = {"type": "Feature", "properties": {}, "geometry": shape}
    marker = folium.CircleMarker(**POINT, fill_color=colour)
    return folium.GeoJson({"type": "FeatureCollection", "features": [feature]}, name="reports", marker=marker)


def _heat(places: Places, low: FloatArray, high: FloatArray) -> Any:
    counts = np.zeros((CELLS, CELLS))
    scale = CELLS / (high - low)
    for batch in places():
        cell = np.minimum(((batch - low) * scale).astype(np.int64), CELLS - 1)
        counts += np.bincount(cell[:, 1] * CELLS + cell[:, 0], minlength=CELLS**2).reshape(CELLS, CELLS)
    row, column = np.nonzero(counts)
    # Square roots: a town's centre has a thousand times the reports of its outskirts, and both must be seen.
    weight = np.sqrt(counts[row, column])
    weight = np.minimum(1.0, weight / np.quantile(weight, 0.99))
    lat, lon = (low[axis] + (index + 0.5) / scale[axis] for axis, index in ((1, row), (0, column)))
    data = np.column_stack([lat.round(6), lon.round(6), weight.round(3)]).tolist()
    return HeatMap(data, name="reports", radius=8, blur=8, max_zoom=1, min_opacity=0.05, gradient=HEAT)


def _promised(promise: Promise) -> list[str]:
    if promise.epsilon == math.inf:
        return [f"No bound on the privacy loss per metre, {escape(promise.mechanism)}", f"{promise}."]
    lines = [f"ε = {promise.epsilon:.4g} per metre, {escape(promise.mechanism)}"]
    radius = promise.radius or math.log(4) / promise.epsilon
    factor = math.exp(promise.epsilon * radius)
    lines.append(f"Within {radius:.4g} m places can be told apart by a factor of {factor:.3g} at most.")
    if promise.mechanism == "SphericalLaplace":
        radius = float(SphericalLaplace(promise.epsilon).radius_quantile(0.95))
        lines.append(f"95 % of the reports lie within {radius:.0f} m of the truth.")
    return lines
