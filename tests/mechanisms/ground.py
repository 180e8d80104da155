"""How far reports are from the truth, in metres on the ground."""

import math

import numpy as np
import pyproj

from geoind import (
    Mechanism,
    Projection,
)
from geoind.arrays import FloatArray

EPSILON = math.log(4) / 200


PARIS = Projection(2.35, 48.86)


GEOD = pyproj.Geod(ellps="WGS84")


CONFIDENCE = 0.9


DRAWS = 40_000


def share_within(mechanism: Mechanism, lon: float, lat: float, reach: float) -> float:
    """The share of reports within a WGS84 distance of the truth."""
    truth = np.tile([lon, lat], (DRAWS, 1))
    reports = mechanism.sample(truth, rng=1)
    return float(np.mean(apart(truth, reports) <= reach))


def apart(truth: FloatArray, reports: FloatArray) -> FloatArray:
    return np.asarray(GEOD.inv(truth[:, 0], truth[:, 1], reports[:, 0], reports[:, 1])[2])
