"""A map of reports: one HTML page that loads nothing from the network."""

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import folium
import numpy as np
from folium.map import CustomPane
from markupsafe import Markup
from scipy.ndimage import gaussian_filter

from geoind.accounting.record import ReleaseRecord
from geoind.arrays import FloatArray
from geoind.errors import InvalidInputError, plural
from geoind.maps.basemap import Basemap
from geoind.maps.colours import REPORT, TRUTH
from geoind.maps.legend import add_legend
from geoind.maps.offline import add_html, offline_html
from geoind.mechanisms.spherical import SphericalLaplace

__all__ = ["report_map"]

Batches: TypeAlias = Callable[[], Iterator[FloatArray]]
"""Starts reading (n, 2) lon/lat batches from the beginning."""

MOST_POINTS = 5000
"""Up to this many reports are drawn as points, more as a heat map."""

CELLS = 256
"""Cells of the heat map in each direction. Its size does not grow with the file."""

POINT = {"radius": 4, "stroke": False, "fill": True, "fill_opacity": 0.55}

HEAT = ("#fbd9b5", "#f39a4a", "#d4500c", "#7d1f00")
"""One hue from light to dark, which stays readable in greyscale."""

BLUR = 1.2
"""Standard deviation of the blur, in cells, which hides the cell borders."""

DEGREE = 10
"""Bins per degree of longitude, to find the widest empty range."""

MOST_FACTOR = 1e6
"""Larger factors are not printed as numbers, because they are no useful bound."""

DARK = """
@media (prefers-color-scheme: dark) {
  .leaflet-image-layer { filter: invert(1) hue-rotate(180deg); }
  .leaflet-overlay-pane canvas { filter: brightness(1.7); }
}
"""

STYLE = """
.unprotected { position: fixed; left: 0; right: 0; bottom: 60px; margin: auto; width: fit-content; max-width: 80%;
  z-index: 1000; padding: 10px 18px; border-radius: 10px; background: #b3261e; color: white;
  font: 600 15px/1.4 system-ui, sans-serif; box-shadow: 0 1px 5px #0006; }
@media (max-width: 600px) { .unprotected { max-width: 92%; font-size: 13px; padding: 8px 12px; } }
"""

UNPROTECTED = Markup(
    '<div class="unprotected" role="alert">'
    "These are true locations without any protection. Do not share this page.</div>"
)


def report_map(
    places: Batches,
    *,
    title: str,
    record: ReleaseRecord | None = None,
    releases: int = 1,
    basemap: Basemap | None = None,
) -> str:
    """Return an HTML page with reports as points, or as a heat map if there are more than 5,000, and their record.

    Locations without a release record are shown as true locations, with a warning.

    Parameters
    ----------
    places : callable
        Returns an iterator of (n, 2) lon/lat batches. It is called several times, so that memory does not grow
        with the file.
    title : str
        Title of the page.
    record : ReleaseRecord, optional
        The release record of the reports, for the legend; None for true locations.
    releases : int
        Number of releases that the reports come from. Totals per person are shown for a single release only.
    basemap : Basemap, optional
        The background.

    Examples
    --------
    >>> page = report_map(lambda: iter([np.array([[2.2945, 48.8584]])]), title="One location")
    >>> "https://cdn" in page, "These are true locations" in page
    (False, True)
    """
    count, cut = _first_longitude(places)
    unwrapped = _unwrap(places, cut)
    low, high = _extent(unwrapped)
    chart = folium.Map(tiles=None, prefer_canvas=True, max_zoom=20, control_scale=True, zoom_snap=0.25)
    if basemap is not None:
        # A pane of its own, which a dark page inverts.
        CustomPane("base", z_index=300).add_to(chart)
        basemap.to_folium(pane="base").add_to(chart)
    if count <= MOST_POINTS:
        _points(np.concatenate(list(unwrapped())), TRUTH if record is None else REPORT).add_to(chart)
    else:
        _heat(unwrapped, low, high).add_to(chart)
    chart.fit_bounds([low[::-1].tolist(), high[::-1].tolist()], padding=(24, 24), max_zoom=17)
    if record is None:
        lines = [plural(count, "true location")]
    else:
        lines = [plural(count, "report"), *_promise_lines(record), *_total_lines(record, releases)]
    if basemap is not None:
        lines.append(basemap.attribution)
    add_legend(chart, title, lines, style=DARK)
    if record is None:
        add_html(chart, UNPROTECTED, STYLE)
    return offline_html(chart)


def _first_longitude(places: Batches) -> tuple[int, float]:
    """Return the number of locations, and the longitude at which the widest empty range of longitudes ends."""
    count, taken = 0, np.zeros(360 * DEGREE, dtype=bool)
    for batch in places():
        count += len(batch)
        taken[np.floor((batch[:, 0] + 180) * DEGREE).astype(np.int64) % len(taken)] = True
    if not count:
        raise InvalidInputError("the file has no locations to draw")
    used = np.flatnonzero(taken)
    gaps = np.diff(np.append(used, used[0] + len(taken)))
    after = int(used[(int(gaps.argmax()) + 1) % len(used)])
    return count, after / DEGREE - 180


def _unwrap(places: Batches, cut: float) -> Batches:
    """Return longitudes from `cut` to `cut + 360`, so that both sides of 180 degrees are drawn together."""
    return lambda: (
        np.column_stack([np.where(batch[:, 0] < cut, batch[:, 0] + 360, batch[:, 0]), batch[:, 1]])
        for batch in places()
    )


def _extent(places: Batches) -> tuple[FloatArray, FloatArray]:
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    for batch in places():
        if len(batch):
            low, high = np.minimum(low, batch.min(axis=0)), np.maximum(high, batch.max(axis=0))
    # A single location has no extent: show a hundred metres around it.
    return low - 1e-3, high + 1e-3


def _points(lonlat: FloatArray, colour: str) -> "folium.GeoJson":
    shape = {"type": "MultiPoint", "coordinates": lonlat.round(6).tolist()}
    feature = {"type": "Feature", "properties": {}, "geometry": shape}
    marker = folium.CircleMarker(**POINT, fill_color=colour)
    return folium.GeoJson({"type": "FeatureCollection", "features": [feature]}, name="reports", marker=marker)


def _heat(places: Batches, low: FloatArray, high: FloatArray) -> Any:
    """Return the counts as one image, which the browser scales."""
    counts = np.zeros((CELLS, CELLS))
    # A margin for the blur; rows are equally spaced in the Mercator projection.
    margin = 3 * BLUR * (_to_mercator(high) - _to_mercator(low)) / CELLS
    south_west, north_east = _to_mercator(low) - margin, _to_mercator(high) + margin
    scale = CELLS / (north_east - south_west)
    for batch in places():
        cell = np.minimum(((_to_mercator(batch) - south_west) * scale).astype(np.int64), CELLS - 1)
        counts += np.bincount(cell[:, 1] * CELLS + cell[:, 0], minlength=CELLS**2).reshape(CELLS, CELLS)
    # Square roots, because counts differ by a factor of a thousand and small ones must stay visible.
    heat = np.sqrt(gaussian_filter(counts, BLUR, mode="constant"))
    heat = np.minimum(1.0, heat / np.quantile(heat[heat > 0.05], 0.99))
    west, south = _from_mercator(south_west)
    east, north = _from_mercator(north_east)
    return folium.raster_layers.ImageOverlay(
        _coloured(heat)[::-1], bounds=[[south, west], [north, east]], name="reports", alt="density of reports"
    )


def _to_mercator(lonlat: FloatArray) -> FloatArray:
    """Return Mercator coordinates in degrees; latitudes are clipped, because the poles are at infinity."""
    lat = np.radians(np.clip(lonlat[..., 1], -85, 85))
    return np.stack([lonlat[..., 0], np.degrees(np.arcsinh(np.tan(lat)))], axis=-1)


def _from_mercator(flat: FloatArray) -> tuple[float, float]:
    """Return the longitude and latitude of a point in Mercator coordinates."""
    return float(flat[0]), math.degrees(math.atan(math.sinh(math.radians(flat[1]))))


def _coloured(heat: FloatArray) -> Any:
    stops = np.linspace(0.1, 1, len(HEAT))
    channels = [[int(colour[at : at + 2], 16) for colour in HEAT] for at in (1, 3, 5)]
    rgb = [np.interp(heat, stops, channel) for channel in channels]
    alpha = 255 * np.clip(heat * 6, 0, 0.85)
    return np.dstack([*rgb, alpha]).round().astype(np.uint8)


def _total_lines(record: ReleaseRecord, releases: int) -> list[str]:
    """Return the totals per person."""
    if releases > 1:
        return [f"{releases} releases: the reports of a person in all of them add up."]
    return [f"{line[0].upper()}{line[1:]}." for line in record.totals]


def _promise_lines(record: ReleaseRecord) -> list[str]:
    """Return the promise of one report, or of a trace."""
    if record.epsilon == math.inf:
        known = record.session is not None or record.sigma is not None or record.delta > 0
        first = f"No bound on the privacy loss per metre, {record.mechanism}"
        return [first, f"{record}."] if known else [first]
    whole = "each report" if record.session is None else "a person's whole trace"
    lines = [f"ε = {record.epsilon:.4g} per metre for {whole}, {record.mechanism}"]
    radius = record.radius or math.log(4) / record.epsilon
    level = record.epsilon * radius
    factor = "more than 10^6" if level > math.log(MOST_FACTOR) else f"{math.exp(level):.3g} at most"
    change = "a report changes" if record.session is None else "all reports of a person together change"
    lines.append(f"Within {radius:.4g} m {change} the odds between two places by a factor of {factor}.")
    if record.mechanism == "SphericalLaplace" and record.session is None:
        # With the lattice, which moves a report more than the noise does if epsilon is large.
        reach = SphericalLaplace(record.epsilon, decimals=record.decimals).reach(0.95)
        digits = ".0f" if reach >= 10 else ".2g"
        lines.append(f"95 % of the reports lie within {reach:{digits}} m of the true location.")
    return lines
