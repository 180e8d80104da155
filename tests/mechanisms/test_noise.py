import math

import mpmath
import numpy as np
import pytest

from geoind.mechanisms.noise import (
    MAX_RADIUS,
    RADIUS_RESOLUTION,
    RELIABLE_RADIUS,
    polar_scalar,
    polar_words,
    radius_of,
)


def exact_radius(p: float) -> float:
    """Lambert's W_-1 with enough digits for the branch point."""
    with mpmath.workdps(60 + int(max(0, -2 * math.log10(p)))):
        return float(-1 - mpmath.lambertw((mpmath.mpf(p) - 1) / mpmath.e, -1).real)


PROBABILITIES = np.concatenate(
    [2.0 ** -np.arange(1, 1000, 7.0), np.linspace(1e-4, 0.9999, 400), 1 - 2.0 ** -np.arange(1, 54.0), [5e-324]]
)


def test_the_quantile_is_exact_to_1e_14_over_all_doubles() -> None:
    radius = radius_of(-np.log1p(-PROBABILITIES))
    exact = np.array([exact_radius(float(p)) for p in PROBABILITIES])
    assert np.abs(radius / exact - 1).max() < 1e-14


def test_the_quantile_of_zero_is_zero() -> None:
    assert radius_of(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]


def test_scalars_and_arrays_get_the_same_noise_from_the_same_words() -> None:
    words = np.random.default_rng(1).integers(0, 1 << 64, size=(2000, 2), dtype=np.uint64)
    radii, angles = polar_words(words)
    for (first, second), radius, angle in zip(words.tolist(), radii, angles, strict=True):
        assert polar_scalar(first, second) == (pytest.approx(radius, rel=1e-13), pytest.approx(angle, rel=1e-15))


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_extreme_words_give_finite_noise(word: int) -> None:
    radius, angle = polar_scalar(word, word)
    assert 0 <= radius <= MAX_RADIUS
    assert 0 <= angle < 2 * math.pi
    radii, _ = polar_words(np.array([[word, word]], np.uint64))
    assert radii[0] == pytest.approx(radius)


def test_the_stated_radius_resolution_holds_up_to_the_reliable_radius() -> None:
    survival = (1 + RELIABLE_RADIUS) * math.exp(-RELIABLE_RADIUS)
    words = round(survival * 2.0**64)
    low = polar_scalar(words, 0)[0]
    high = polar_scalar(words, 1)[0]
    assert low == pytest.approx(RELIABLE_RADIUS, rel=1e-5)
    assert low - high <= 1.01 * max(RADIUS_RESOLUTION, math.ulp(low))
