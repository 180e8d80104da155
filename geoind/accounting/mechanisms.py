"""Which privacy loss a mechanism's report has, between the worst two places within a radius.

For noise with a log-concave density that is moved to the truth, and so for planar Laplace and Gaussian noise, the
worst pair is the one at the full radius, at every level (docs/accounting.md has the proof); for a finite channel
all pairs are tried.
"""

import math
from functools import lru_cache, singledispatch

from geoind.accounting.finite import ChannelLoss
from geoind.accounting.losses import BoundedLoss, GaussianLoss, GlobeLoss, LaplaceLoss, Loss
from geoind.channels.channel import Channel
from geoind.distances import EARTH_RADIUS
from geoind.errors import InvalidInputError
from geoind.mechanisms.planar import PlanarGaussian, PlanarLaplace
from geoind.mechanisms.post_processed import PostProcessed
from geoind.mechanisms.projected import Projected
from geoind.mechanisms.protocol import is_mechanism, off_site_level
from geoind.mechanisms.spherical import WGS84_FACTOR, SphericalGaussian, SphericalLaplace

__all__ = ["loss_of"]

ATTAINED = 1.0056 / WGS84_FACTOR
"""Some pair of places is 1.0056 times farther apart on the sphere than in WGS84 metres (largest: 1.00561)."""

FARTHEST = 12.0
"""Standard deviations of Gaussian noise that reports on the globe are followed to; e^-72 are farther."""

LARGEST_ARC = 0.5
"""Radii of the Earth up to which the globe is compared with the plane."""


@singledispatch
def loss_of(mechanism: object, radius: float) -> Loss:
    """Return the privacy loss of a report between the worst two places up to `radius` metres apart.

    Of a mechanism that is not known here only its epsilon counts. Register another one with
    `loss_of.register`.
    """
    if not is_mechanism(mechanism):
        raise InvalidInputError(f"mechanism must be one that geoind knows, got {type(mechanism).__name__}")
    if not mechanism.epsilon < math.inf:
        raise InvalidInputError(
            f"what reports of {type(mechanism).__name__} tell is not known: its epsilon is not finite"
        )
    return BoundedLoss(mechanism.epsilon * radius + off_site_level(mechanism))


@loss_of.register
def _(mechanism: PlanarLaplace, radius: float) -> Loss:
    return LaplaceLoss(mechanism.epsilon * radius)


@loss_of.register
def _(mechanism: SphericalLaplace, radius: float) -> Loss:
    return GlobeLoss(mechanism.epsilon / WGS84_FACTOR * EARTH_RADIUS, _arc(radius), ATTAINED)


@loss_of.register
def _(mechanism: PlanarGaussian, radius: float) -> Loss:
    return GaussianLoss(radius / mechanism.sigma)


@loss_of.register
def _(mechanism: SphericalGaussian, radius: float) -> Loss:
    arc, noise, reach = _arc(radius), mechanism.noise_arc, FARTHEST * mechanism.noise_arc
    # No arc to a report is longer than the plane's third side. Seen from two places, areas on the globe differ by
    # (1 / x - cot x) per radius at most, x the farther arc; and how much shorter that third side can be, for the
    # lower bound (docs/accounting.md).
    bend = 1 / (reach + arc) - 1 / math.tan(reach + arc)
    shorter = (1 - ATTAINED) * arc / noise * (arc / noise + 2 * FARTHEST) + (reach + arc) ** 2 * (arc / noise) ** 2
    return GaussianLoss(arc / noise, arc * bend, arc * bend + shorter, math.exp(-(FARTHEST**2) / 2))


def _arc(radius: float) -> float:
    """Return the longest great circle between places within a radius, in radii of the Earth."""
    arc = WGS84_FACTOR * radius / EARTH_RADIUS
    if arc > LARGEST_ARC:
        most = LARGEST_ARC * EARTH_RADIUS / WGS84_FACTOR
        raise InvalidInputError(f"radius must be at most {most / 1000:.0f} km on the globe, got {radius:g} m")
    return arc


@loss_of.register
def _(mechanism: PostProcessed, radius: float) -> Loss:
    # What is done to reports afterwards tells nothing more.
    return loss_of(mechanism.mechanism, radius)


@loss_of.register
def _(mechanism: Projected, radius: float) -> Loss:
    # Places within the radius on the ground are at most this far apart in the plane.
    return loss_of(mechanism.mechanism, radius * mechanism.largest_scale)


@loss_of.register
def _(mechanism: Channel, radius: float) -> Loss:
    return _channel_loss(mechanism, radius)


@lru_cache(maxsize=64)
def _channel_loss(channel: Channel, radius: float) -> ChannelLoss:
    """Return one and the same loss for a channel, so that what was computed for it is found again."""
    return ChannelLoss(channel, radius)
