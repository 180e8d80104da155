"""A file of reports as a map: one HTML page that loads nothing from anywhere."""

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import folium
import numpy as np
from markupsafe import Markup
from scipy.ndimage import gaussian_filter

from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError, plural
from geoind.maps.basemap import Basemap
from geoind.maps.colours import REPORT, TRUTH
from geoind.maps.legend import add_legend
from geoind.maps.offline import add_html, offline_html
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.tables.record import ReleaseRecord

__all__ = ["report_map"]

Batches: TypeAlias = Callable[[], Iterator[FloatArray]]
"""Starts reading (n, 2) lon/lat batches from the beginning."""

MOST_POINTS = 5000
"""Up to this many reports are drawn one by one; more become a heat map."""

CELLS = 256
"""Cells of the heat map from west to east and from south to north: its size does not grow with the file."""

POINT = {"radius": 4, "stroke": False, "fill": True, "fill_opacity": 0.55}

HEAT = ("#fbd9b5", "#f39a4a", "#d4500c", "#7d1f00")
"""One hue from light to dark, which is readable without colours and in print."""

BLUR = 1.2
"""Cells over which a count is spread: the eye then sees no cells."""

DEGREE = 10
"""Bins of a degree of longitude, to find where the reports are not."""

MOST_FACTOR = 1e6
"""Factors above this one are not written as numbers: such a factor is no useful bound."""

STYLE = """
.unprotected { position: fixed; left: 0; right: 0; bottom: 60px; margin: auto; width: fit-content; max-width: 80%;
  z-index: 1000; padding: 10px 18px; border-radius: 10px; background: #b3261e; color: white;
  font: 600 15px/1.4 system-ui, sans-serif; box-shadow: 0 1px 5px #0006; }
@media (max-width: 600px) { .unprotected { max-width: 92%; font-size: 13px; padding: 8px 12px; } }
"""

UNPROTECTED = Markup(
    '<div class="unprotected" role="alert">'
    "These are true places: nothing protects them. Do not share this page.</div>"
)


def report_map(
    places: Batches,
    *,
    title: str,
    promise: ReleaseRecord | None = None,
    releases: int = 1,
    basemap: Basemap | None = None,
) -> str:
    """Return the page: reports as points or, if they are many, as a heat map, and what was promised.

    Places that come without a promise are taken for true ones, and the page warns of them.

    Parameters
    ----------
    places : callable
        Returns the batches from the beginning: it is called twice, so that memory does not grow with the file.
    title : str
        Of the page.
    promise : ReleaseRecord, optional
        What the reports promise, for the legend; None where nothing was promised.
    releases : int
        How many releases the reports are from: the totals of a person are stated for a single one.
    basemap : Basemap, optional
        The background; without it the page is plain.

    Examples
    --------
    >>> page = report_map(lambda: iter([np.array([[2.2945, 48.8584]])]), title="One place")
    >>> "https://cdn" in page, "These are true places" in page
    (False, True)
    """
    count, cut = _first_longitude(places)
    unwrapped = _unwrap(places, cut)
    low, high = _extent(unwrapped)
    chart = folium.Map(tiles=None, prefer_canvas=True, max_zoom=20, control_scale=True, zoom_snap=0.25)
    if basemap is not None:
        basemap.to_folium().add_to(chart)
    if count <= MOST_POINTS:
        _points(np.concatenate(list(unwrapped())), TRUTH if promise is None else REPORT).add_to(chart)
    else:
        _heat(unwrapped, low, high).add_to(chart)
    chart.fit_bounds([low[::-1].tolist(), high[::-1].tolist()], padding=(24, 24), max_zoom=17)
    if promise is None:
        lines = [plural(count, "true place")]
    else:
        lines = [plural(count, "report"), *_promised(promise), *_totals(promise, releases)]
    if basemap is not None:
        lines.append(basemap.attribution)
    add_legend(chart, title, lines)
    if promise is None:
        add_html(chart, UNPROTECTED, STYLE)
    return offline_html(chart)


def _first_longitude(places: Batches) -> tuple[int, float]:
    """Return how many places there are, and the longitude after the widest stretch of Earth without any."""
    count, taken = 0, np.zeros(360 * DEGREE, dtype=bool)
    for batch in places():
        count += len(batch)
        taken[np.floor((batch[:, 0] + 180) * DEGREE).astype(np.int64) % len(taken)] = True
    if not count:
        raise InvalidInputError("the file has no places to draw")
    used = np.flatnonzero(taken)
    gaps = np.diff(np.append(used, used[0] + len(taken)))
    after = int(used[(int(gaps.argmax()) + 1) % len(used)])
    return count, after / DEGREE - 180


def _unwrap(places: Batches, cut: float) -> Batches:
    """Return the places with longitudes from `cut` on: both sides of 180 degrees are drawn together."""
    return lambda: (
        np.column_stack([np.where(batch[:, 0] < cut, batch[:, 0] + 360, batch[:, 0]), batch[:, 1]])
        for batch in places()
    )


def _extent(places: Batches) -> tuple[FloatArray, FloatArray]:
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    for batch in places():
        if len(batch):
            low, high = np.minimum(low, batch.min(axis=0)), np.maximum(high, batch.max(axis=0))
    # One place alone has no extent: a hundred metres around it.
    return low - 1e-3, high + 1e-3


def _points(lonlat: FloatArray, colour: str) -> "folium.GeoJson":
    shape = {"type": "MultiPoint", "coordinates": lonlat.round(6).tolist()}
    feature = {"type": "Feature", "properties": {}, "geometry": shape}
    marker = folium.CircleMarker(**POINT, fill_color=colour)
    return folium.GeoJson({"type": "FeatureCollection", "features": [feature]}, name="reports", marker=marker)


def _heat(places: Batches, low: FloatArray, high: FloatArray) -> Any:
    """Return the counts as one picture, which the browser makes larger smoothly."""
    counts = np.zeros((CELLS, CELLS))
    # Room for the blur at the border; rows are even on the map, which is Mercator's.
    margin = 3 * BLUR * (_flat(high) - _flat(low)) / CELLS
    south_west, north_east = _flat(low) - margin, _flat(high) + margin
    scale = CELLS / (north_east - south_west)
    for batch in places():
        cell = np.minimum(((_flat(batch) - south_west) * scale).astype(np.int64), CELLS - 1)
        counts += np.bincount(cell[:, 1] * CELLS + cell[:, 0], minlength=CELLS**2).reshape(CELLS, CELLS)
    # Square roots: a town's centre has a thousand times the reports of its outskirts, and both must be seen.
    heat = np.sqrt(gaussian_filter(counts, BLUR, mode="constant"))
    heat = np.minimum(1.0, heat / np.quantile(heat[heat > 0.05], 0.99))
    west, south = _round(south_west)
    east, north = _round(north_east)
    return folium.raster_layers.ImageOverlay(
        _coloured(heat)[::-1], bounds=[[south, west], [north, east]], name="reports", alt="where reports are many"
    )


def _flat(lonlat: FloatArray) -> FloatArray:
    """Return degrees on Mercator's map; the poles themselves are not on it."""
    lat = np.radians(np.clip(lonlat[..., 1], -85, 85))
    return np.stack([lonlat[..., 0], np.degrees(np.arcsinh(np.tan(lat)))], axis=-1)


def _round(flat: FloatArray) -> tuple[float, float]:
    """Return longitude and latitude of a point on Mercator's map."""
    return float(flat[0]), math.degrees(math.atan(math.sinh(math.radians(flat[1]))))


def _coloured(heat: FloatArray) -> Any:
    stops = np.linspace(0.1, 1, len(HEAT))
    channels = [[int(colour[at : at + 2], 16) for colour in HEAT] for at in (1, 3, 5)]
    rgb = [np.interp(heat, stops, channel) for channel in channels]
    alpha = 255 * np.clip(heat * 6, 0, 0.85)
    return np.dstack([*rgb, alpha]).round().astype(np.uint8)


def _totals(promise: ReleaseRecord, releases: int) -> list[str]:
    """Return what the reports of a person add up to."""
    if releases > 1:
        return [f"{releases} releases: the reports of a person in all of them add up."]
    return [f"{line[0].upper()}{line[1:]}." for line in promise.totals]


def _promised(promise: ReleaseRecord) -> list[str]:
    if promise.epsilon == math.inf:
        known = promise.session is not None or promise.sigma is not None or promise.delta > 0
        first = f"No bound on the privacy loss per metre, {promise.mechanism}"
        return [first, f"{promise}."] if known else [first]
    whole = "each report" if promise.session is None else "a person's whole trace"
    lines = [f"ε = {promise.epsilon:.4g} per metre for {whole}, {promise.mechanism}"]
    radius = promise.radius or math.log(4) / promise.epsilon
    level = promise.epsilon * radius
    factor = "more than 10^6" if level > math.log(MOST_FACTOR) else f"{math.exp(level):.3g} at most"
    lines.append(f"Within {radius:.4g} m places can be told apart by a factor of {factor}.")
    if promise.mechanism == "SphericalLaplace" and promise.session is None:
        # With the lattice: where there is little noise, it moves a report most.
        reach = SphericalLaplace(promise.epsilon, decimals=promise.decimals).reach(0.95)
        lines.append(f"95 % of the reports lie within {reach:{'.0f' if reach >= 10 else '.2g'}} m of the truth.")
    return lines
