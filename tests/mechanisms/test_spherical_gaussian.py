import math
from typing import Any

import numpy as np
import pytest

from geoind import InvalidInputError, KeyedRandomness, SphericalGaussian
from geoind.distances import EARTH_RADIUS, haversine
from geoind.mechanisms.globe import WGS84_FACTOR
from geoind.mechanisms.spherical_gaussian import LARGEST_SIGMA
from tests.goodness import fits, is_uniform

TRUTH = np.array([[24.93, 60.17]])


@pytest.mark.parametrize("sigma", [800.0, 300_000.0])
@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (1.05, False), (0.95, False)])
def test_the_arc_is_rayleigh_with_the_promised_scale(sigma: float, factor: float, right: bool) -> None:
    noise = SphericalGaussian(sigma)
    reports = noise.sample(np.repeat(TRUTH, 20_000, axis=0), rng=4)
    away = haversine(TRUTH, reports)[0]
    scale = factor * sigma * WGS84_FACTOR
    assert fits(away, lambda metres: 1 - np.exp(-((np.asarray(metres) / scale) ** 2) / 2)) is right
    assert away.mean() == pytest.approx(noise.mean_radius, rel=0.02)


def test_every_bearing_is_as_likely_as_any_other() -> None:
    reports = SphericalGaussian(800.0).sample(np.repeat(TRUTH, 20_000, axis=0), rng=5)
    east, north = ((reports - TRUTH) * [math.cos(math.radians(TRUTH[0, 1])), 1.0]).T
    assert is_uniform(np.arctan2(north, east))


def test_the_scale_is_that_of_wgs84_metres_and_not_less() -> None:
    noise = SphericalGaussian(1000.0)
    assert noise.noise_arc * EARTH_RADIUS == pytest.approx(1000.0 * 1.0057)
    assert noise.epsilon == math.inf


def test_its_reach_is_the_rayleigh_quantile_and_the_lattice() -> None:
    noise = SphericalGaussian(1000.0)
    quantile = 1005.7 * math.sqrt(-2 * math.log(0.05))
    assert 0 < noise.reach(0.95) - quantile < 0.01 * quantile
    coarse = SphericalGaussian(1000.0, decimals=2)
    assert coarse.reach(0.95) - noise.reach(0.95) == pytest.approx(790, abs=10)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, 500_001.0, True])
def test_a_sigma_that_is_no_noise_or_goes_round_the_earth_is_refused(sigma: float) -> None:
    with pytest.raises(InvalidInputError, match="sigma must be"):
        SphericalGaussian(sigma)


def test_a_whole_number_of_metres_is_the_same_noise() -> None:
    key = KeyedRandomness(bytes(32), [7])
    assert SphericalGaussian(800).sample(TRUTH, rng=key).tolist() == (
        SphericalGaussian(800.0).sample(TRUTH, rng=key).tolist()
    )


@pytest.mark.parametrize("decimals", [-1, 6, 2.5, "5"])
def test_decimals_are_those_of_the_lattice(decimals: Any) -> None:
    with pytest.raises(InvalidInputError, match="decimals"):
        SphericalGaussian(100.0, decimals=decimals)


def test_noise_may_reach_as_far_as_the_earth_allows_and_no_farther() -> None:
    assert SphericalGaussian(LARGEST_SIGMA).sigma == LARGEST_SIGMA
    with pytest.raises(InvalidInputError, match="round the Earth"):
        SphericalGaussian(math.nextafter(LARGEST_SIGMA, math.inf))
