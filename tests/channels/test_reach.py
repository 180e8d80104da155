import math

import numpy as np
import pytest

from geoind import (
    Channel,
    Grid,
    PlanarLaplace,
    Projected,
)
from geoind.channels.reach import reach_of_rows
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


def test_a_row_that_sums_to_a_little_less_than_the_confidence_reaches_its_farthest_report() -> None:
    street = Grid(0, 0, cell=100, columns=2, rows=1)
    rows = np.array([[0.5, 0.5 - 1e-12], [0.5 - 1e-12, 0.5]])
    assert reach_of_rows(rows, street, street, 1 - 1e-13) == pytest.approx(100 + street.cell_radius)
