"""From what a caller passes as reports and mechanisms to groups of points in the plane, one per mechanism."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from geoind.arrays import ArrayLike, FloatArray, as_floats
from geoind.channels.channel import Channel
from geoind.distances import haversine
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarLaplace
from geoind.mechanisms.projected import Projected
from geoind.mechanisms.protocol import Mechanism, is_mechanism, space_of
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.space.projection import Projection, points_xy
from geoind.space.sites import Grid

if TYPE_CHECKING:
    from geopandas import GeoDataFrame, GeoSeries

__all__ = ["Mechanisms", "Reports", "epsilon_in_plane", "grouped"]

Reports: TypeAlias = "ArrayLike | GeoDataFrame | GeoSeries"
"""(n, 2) metres; (n, 2) degrees where a projection is given; or a frame of points with a CRS."""


Mechanisms: TypeAlias = Mechanism | ArrayLike | Sequence[Mechanism]
"""One mechanism or epsilon for all reports, or one for each."""

MOST_GROUPS = 128
"""More different mechanisms than this are refused: each costs two transforms per step."""

Group: TypeAlias = tuple[Mechanism, FloatArray]


def grouped(
    reports: Reports, mechanism: Mechanisms, projection: Projection | None
) -> tuple[list[Group], Projection | None]:
    """Return (mechanism, (n, 2) metres) for each different mechanism, and the projection into the plane."""
    projection = _common_projection(mechanism, projection)
    columns = mechanism.outputs.xy.shape[1] if isinstance(mechanism, Channel) else 2
    xy = points_xy(reports, projection, "reports", columns=columns)
    if not len(xy):
        raise InvalidInputError("reports must not be empty")
    split = _split(mechanism, len(xy), on_globe=projection is not None)
    return [(_planar(one), xy[rows]) for one, rows in split], projection


def _planar(mechanism: Mechanism) -> Mechanism:
    """Return what made reports that are in the plane now: the mechanism inside a projected one."""
    return mechanism.mechanism if isinstance(mechanism, Projected) else mechanism


def epsilon_in_plane(mechanism: Mechanism, grid: Grid, projection: Projection | None) -> float:
    """Return the epsilon that a noise was really drawn with, per metre of the plane.

    That is `noise_epsilon`; on the globe a metre of the plane is up to 0.6 % more
    or less than a metre of the sphere that the noise is drawn on, which is measured in the middle of the grid.
    """
    epsilon: float | None = getattr(mechanism, "noise_epsilon", None)
    if epsilon is None:
        raise InvalidInputError(
            "mechanism must be a Channel, or noise whose density is known (PlanarLaplace, SphericalLaplace), "
            f"got {type(mechanism).__name__}; for post-processed noise build the channel of its outputs"
        )
    if space_of(mechanism) == "xy":
        return epsilon
    if projection is None:
        raise InvalidInputError("the reports are degrees: give the projection into the grid's plane")
    west, south, east, north = grid.bounds
    middle = np.array([west + east, south + north]) / 2
    cross = projection.to_lonlat(middle + np.array([[-500, 0], [500, 0], [0, -500], [0, 500]]))
    across, along = haversine(cross[:1], cross[1:2])[0, 0], haversine(cross[2:3], cross[3:])[0, 0]
    return epsilon * math.sqrt(across * along) / 1000


def _common_projection(mechanism: Mechanisms, projection: Projection | None) -> Projection | None:
    several = mechanism if isinstance(mechanism, (list, tuple)) else [mechanism]
    for one in several:
        if isinstance(one, Projected):
            if projection is not None and projection != one.projection:
                raise InvalidInputError("the mechanism's projection differs from the one given")
            projection = one.projection
    return projection


def _split(mechanism: Mechanisms, count: int, *, on_globe: bool) -> list[tuple[Mechanism, Any]]:
    """Return each different mechanism and the rows of its reports."""
    if mechanism is None or isinstance(mechanism, (str, bytes)):
        raise InvalidInputError(f"the mechanism or the epsilon of the reports must be known, got {mechanism!r}")
    if _is_mechanism(mechanism):
        return [(cast("Mechanism", mechanism), slice(None))]
    if isinstance(mechanism, (list, tuple)) and mechanism and _is_mechanism(mechanism[0]):
        kinds: dict[Mechanism, int] = {}
        which = np.array([kinds.setdefault(one, len(kinds)) for one in mechanism])
        different = list(kinds)
    else:
        noise = SphericalLaplace if on_globe else PlanarLaplace
        epsilons = as_floats(cast("ArrayLike", mechanism), "epsilon")
        if not epsilons.shape:
            return [(noise(float(epsilons)), slice(None))]
        values, which = np.unique(epsilons, return_inverse=True)
        _check_groups(len(values))
        different = [noise(value) for value in values.tolist()]
    if which.shape != (count,):
        raise InvalidInputError(f"epsilon must be one for all or one per report: {which.size} for {count}")
    _check_groups(len(different))
    return [(one, which == group) for group, one in enumerate(different)]


def _check_groups(count: int) -> None:
    if count > MOST_GROUPS:
        raise InvalidInputError(
            f"reports have {count} different epsilons or mechanisms, more than {MOST_GROUPS}: round the epsilons"
        )


def _is_mechanism(value: object) -> bool:
    return is_mechanism(value)
