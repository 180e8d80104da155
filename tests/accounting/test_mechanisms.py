from dataclasses import dataclass

import numpy as np
import pytest
import shapely

from geoind import (
    Grid,
    PlanarGaussian,
    PostProcessed,
    Projected,
    Projection,
    SphericalGaussian,
    SphericalLaplace,
    randomised_response,
)
from geoind.accounting.reports import level_bounds, level_of_reports
from geoind.arrays import ArrayLike, FloatArray
from geoind.mechanisms.protocol import Space
from geoind.randomness import RandomnessLike
from tests.accounting.test_reports import LN4, NOISE


def test_what_is_done_to_reports_costs_nothing_and_the_globe_costs_what_the_plane_does() -> None:
    plane = level_of_reports(NOISE, reports=50, radius=200, delta=1e-5)
    snapped = PostProcessed(NOISE, Grid(0, 0, cell=100, columns=9, rows=9).snap)
    assert level_of_reports(snapped, reports=50, radius=200, delta=1e-5) == plane
    paris = Projected(NOISE, Projection(2.35, 48.86))
    ground = level_of_reports(paris, reports=50, radius=200, delta=1e-5)
    assert plane < ground == pytest.approx(plane, rel=1e-4)
    web = Projected(PlanarGaussian(800), Projection.from_crs("EPSG:3857"), domain=shapely.box(10, 59.8, 11, 60.2))
    stretched = level_of_reports(PlanarGaussian(400), reports=50, radius=200, delta=1e-5)
    assert level_of_reports(web, reports=50, radius=200, delta=1e-5) == pytest.approx(stretched, rel=0.02)
    globe = level_bounds(SphericalLaplace(NOISE.epsilon), reports=50, radius=200, delta=1e-5)
    assert globe.upper == pytest.approx(plane, rel=1e-6)
    assert globe.upper >= plane
    assert 0.999 * plane < globe.lower < plane
    flat = level_of_reports(PlanarGaussian(700.0), reports=50, radius=200, delta=1e-5)
    globe = level_bounds(SphericalGaussian(700.0), reports=50, radius=200, delta=1e-5)
    assert flat < globe.upper == pytest.approx(flat, rel=1e-5)
    assert 0.98 * flat < globe.lower < flat


def test_of_an_unknown_mechanism_only_its_epsilon_counts() -> None:
    @dataclass(frozen=True)
    class Own:
        epsilon: float = NOISE.epsilon
        space: Space = "xy"

        def reach(self, confidence: float) -> float:
            return confidence

        def sample(self, points: ArrayLike, *, rng: RandomnessLike = None) -> FloatArray:  # noqa: ARG002
            return np.asarray(points)

    lower, upper = level_bounds(Own(), reports=100, radius=200, delta=1e-5)
    assert lower == 0
    assert level_of_reports(NOISE, reports=100, radius=200, delta=1e-5) < upper < 100 * LN4
    # Randomised response is the worst that there is.
    coin = randomised_response(2, epsilon=LN4)
    assert upper == pytest.approx(level_of_reports(coin, reports=100, radius=1, delta=1e-5), rel=1e-4)
