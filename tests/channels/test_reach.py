import math

import pytest

from geoind import (
    Channel,
    Grid,
    PlanarLaplace,
    Projected,
)
from tests.mechanisms.ground import EPSILON, PARIS


def test_a_channel_has_its_exact_quantile() -> None:
    street = Grid(0, 0, cell=100, columns=3, rows=1)
    channel = Channel(street, street, [[0.9, 0.1, 0.0], [0.05, 0.9, 0.05], [0.0, 0.2, 0.8]])
    half = 100 / math.sqrt(2)
    snap = Projected(PlanarLaplace(EPSILON), PARIS).reach(0.5) - report_planar(0.5)
    assert Projected(channel, PARIS).reach(0.8) == pytest.approx(0 + half + snap)
    assert Projected(channel, PARIS).reach(0.9) == pytest.approx(100 + half + snap)
    assert Projected(channel, PARIS).reach(0.999) == pytest.approx(100 + half + snap)


def report_planar(confidence: float) -> float:
    noise = PlanarLaplace(EPSILON)
    quantile = float(noise.radius_quantile(confidence)) * noise.epsilon / noise.noise_epsilon
    return quantile + noise.lattice_step / math.sqrt(2)
