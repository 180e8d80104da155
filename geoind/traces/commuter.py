"""A synthetic commuter, to measure sessions on: home, a way to work, work, and back."""

import numpy as np

from geoind.arrays import FloatArray, as_count, as_positive
from geoind.space.projection import Projection

__all__ = ["commuter"]

HOME = (2.2945, 48.8584)
WORK = (0.8 * 7616.0, -0.6 * 7616.0)
"""In metres east and north of home."""

LEAVES, ARRIVES, BACK = 8.0, 8.5, 18.5
"""Hours of the day: the way takes half an hour, and the way back ends at the last one."""

GPS_NOISE = 8.0
"""Metres, standard deviation along each axis."""


def commuter(
    *, days: int = 7, every: float = 300.0, rng: np.random.Generator | int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return times in seconds and (n, 2) positions of somebody who goes to work, 7 616 m away, every day.

    Parameters
    ----------
    days : int
        How long.
    every : float
        Seconds between two positions.
    rng : Generator or int
        Of the receiver's noise.

    Examples
    --------
    >>> times, lonlat = commuter(days=1)
    >>> len(times), lonlat.shape
    (288, (288, 2))
    """
    generator = np.random.default_rng(rng)
    times = np.arange(0.0, as_count(days, "days") * 86_400, as_positive(every, "every"))
    hours = times / 3600 % 24
    way = ARRIVES - LEAVES
    share = np.clip((hours - LEAVES) / way, 0, 1) - np.clip((hours - (BACK - way)) / way, 0, 1)
    plane = Projection(*HOME)
    xy = share[:, None] * np.array(WORK) + generator.normal(0, GPS_NOISE, (len(times), 2))
    return times, plane.to_lonlat(xy)
