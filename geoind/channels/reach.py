"""How far a report may lie from the truth, in WGS84 metres, with a given probability.

What a query's radius is enlarged by. It depends on the mechanism and on the confidence alone: a radius that
depended on the draw would tell how far the truth is from the report.
"""

import math
from functools import lru_cache

import numpy as np

from geoind.arrays import as_unit
from geoind.channels.channel import Channel
from geoind.distances import euclidean
from geoind.errors import InvalidInputError
from geoind.mechanisms.laplace import PlanarLaplace
from geoind.mechanisms.protocol import Mechanism, PostProcessed, Projected
from geoind.mechanisms.region import ClosestIn
from geoind.mechanisms.sphere import SphericalLaplace
from geoind.space.lattice import half_diagonal
from geoind.space.projection import Projection
from geoind.space.sites import Grid

__all__ = ["GEODESIC_STRETCH", "check_inside", "report_reach"]

GEODESIC_STRETCH = 1.0045
"""No WGS84 distance exceeds the great-circle distance by more than this factor.

The largest radius of curvature, a^2 / b = 6 399 594 m at the poles, over the mean radius: 1.004487.
"""


def report_reach(mechanism: Mechanism, confidence: float) -> float:
    """Return the distance that truth and lon/lat report keep to with at least this probability, in metres.

    The quantile of the noise, the half diagonal of the lattice that reports end on, and what a truncation or a
    grid adds after the noise. For a truth inside the region where the mechanism works (`check_inside`).

    Examples
    --------
    >>> round(report_reach(SphericalLaplace(math.log(4) / 200), 0.95), 1)
    692.2
    """
    confidence = as_unit(confidence, "confidence")
    if isinstance(mechanism, SphericalLaplace):
        return _globe_reach(mechanism, confidence)
    if isinstance(mechanism, Projected):
        ground = _planar_reach(mechanism.mechanism, confidence) / _smallest_scale(mechanism.projection)
        return ground + GEODESIC_STRETCH * half_diagonal()
    raise _unknown(mechanism)


def check_inside(mechanism: Mechanism, lon: float, lat: float) -> None:
    """Refuse a truth outside the region that a truncation or a grid of the mechanism covers."""
    if isinstance(mechanism, Projected):
        inner, xy = mechanism.mechanism, mechanism.projection.to_xy([[lon, lat]])
        while isinstance(inner, PostProcessed):
            _refuse_outside(_grid_of(inner.step) or inner.step, *xy[0].tolist())
            inner = inner.mechanism
        if isinstance(inner, Channel):
            _refuse_outside(inner.inputs, *xy[0].tolist())


@lru_cache(maxsize=256)
def _globe_reach(globe: SphericalLaplace, confidence: float) -> float:
    return GEODESIC_STRETCH * (float(globe.radius_quantile(confidence)) + half_diagonal(globe.decimals))


def _planar_reach(mechanism: Mechanism, confidence: float) -> float:
    if isinstance(mechanism, PlanarLaplace):
        # The sampler runs with a slightly smaller epsilon than the promised one.
        quantile = float(mechanism.radius_quantile(confidence)) * mechanism.epsilon / mechanism.noise_epsilon
        return quantile + mechanism.lattice_step / math.sqrt(2)
    if isinstance(mechanism, PostProcessed):
        reach = _planar_reach(mechanism.mechanism, confidence)
        grid = _grid_of(mechanism.step)
        if grid is not None:
            # Moving to the border of a convex region brings a report no farther from a truth inside.
            return reach + grid.cell / math.sqrt(2)
        if isinstance(mechanism.step, ClosestIn):
            region = mechanism.step.region
            convex = region.equals(region.convex_hull)
            return reach if convex else 2 * reach
    if isinstance(mechanism, Channel) and isinstance(mechanism.inputs, Grid):
        return _channel_reach(mechanism, confidence) + mechanism.inputs.cell / math.sqrt(2)
    raise _unknown(mechanism)


def _channel_reach(channel: Channel, confidence: float) -> float:
    """Return the largest quantile over the true sites, exactly."""
    apart = euclidean(channel.inputs.xy, channel.outputs.xy)
    order = np.argsort(apart, axis=1)
    within = np.cumsum(np.take_along_axis(channel.matrix, order, axis=1), axis=1)
    # A row's sum may round to just below the confidence: then its farthest report is the bound.
    enough = np.minimum((within < confidence).sum(axis=1), apart.shape[1] - 1)
    return float(np.take_along_axis(apart, order, axis=1)[np.arange(len(apart)), enough].max())


def _smallest_scale(projection: Projection) -> float:
    """Return the fewest projected metres that a ground metre becomes anywhere."""
    if projection.crs.startswith("+proj=aeqd"):
        return 1.0  # true along rays from the origin, stretched across them
    import pyproj
    import shapely

    area = pyproj.CRS(projection.crs).area_of_use
    if area is None:
        raise InvalidInputError("this CRS does not say where it may be used, so its scale has no bound")
    return projection.scale_range(shapely.box(*area.bounds))[0]


def _grid_of(step: object) -> Grid | None:
    owner = getattr(step, "__self__", None)
    return owner if isinstance(owner, Grid) and step == owner.snap else None


def _refuse_outside(region: object, x: float, y: float) -> None:
    if isinstance(region, Grid):
        west, south, east, north = region.bounds
        inside = west <= x <= east and south <= y <= north
    elif isinstance(region, ClosestIn):
        import shapely

        inside = bool(shapely.intersects_xy(region.region, x, y))
    else:
        return
    if not inside:
        raise InvalidInputError("the location lies outside the region that the mechanism covers")


def _unknown(mechanism: Mechanism) -> InvalidInputError:
    return InvalidInputError(
        f"how far a report of this {type(mechanism).__name__} may lie from the truth is not known: "
        "give report_reach, in metres"
    )
