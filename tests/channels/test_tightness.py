import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf

from geoind import Channel, Grid
from geoind.arrays import FloatArray
from geoind.channels.tightness import steepest_ratio, steepest_slope
from geoind.distances import euclidean


def exact_rate(matrix: FloatArray, apart: FloatArray) -> float:
    """Every triple, in 50 digits."""
    mp.dps = 50
    worst = mpf(0)
    for x, y in itertools.permutations(range(len(matrix)), 2):
        for z in range(matrix.shape[1]):
            ratio = mp.log(mpf(float(matrix[x, z])) / mpf(float(matrix[y, z]))) / mpf(float(apart[x, y]))
            worst = max(worst, ratio)
    return float(worst)


@pytest.mark.parametrize("smallest", [1, 1e-40, 1e-300, 1e-320])
def test_the_rate_is_that_of_every_triple_in_fifty_digits(smallest: float) -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(9, 2))
    matrix = rng.uniform(0.5, 1, (9, 7)) * smallest ** rng.random((9, 7))
    apart = euclidean(points, points)
    assert steepest_ratio(matrix, apart).rate == pytest.approx(exact_rate(matrix, apart), rel=1e-14)


def test_nearly_equal_rows_keep_their_digits() -> None:
    matrix = np.array([[0.5, 0.5], [0.5 + 2.0**-40, 0.5 - 2.0**-40]])
    apart = np.array([[0, 2.0], [2.0, 0]])
    assert steepest_ratio(matrix, apart).rate == pytest.approx(exact_rate(matrix, apart), rel=1e-15)


def test_the_triple_attains_the_rate() -> None:
    rng = np.random.default_rng(2)
    points, matrix = rng.normal(size=(30, 2)), rng.random((30, 50))
    apart = euclidean(points, points)
    rate, x, y, z = steepest_ratio(matrix, apart)
    assert math.log(matrix[x, z] / matrix[y, z]) / apart[x, y] == pytest.approx(rate, rel=1e-14)


@pytest.mark.parametrize("tile", [1, 37, 1000])
def test_the_size_of_a_tile_does_not_matter(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    points, matrix = rng.normal(size=(23, 2)), rng.random((23, 11))
    apart = euclidean(points, points)
    expected = steepest_ratio(matrix, apart)
    monkeypatch.setattr("geoind.channels.tightness.TILE", tile)
    assert steepest_ratio(matrix, apart) == expected


def test_the_direction_of_an_asymmetric_distance_counts() -> None:
    matrix = np.array([[0.9, 0.1], [0.5, 0.5]])
    forth = steepest_ratio(matrix, np.array([[0, 1.0], [1e9, 0]]))
    back = steepest_ratio(matrix, np.array([[0, 1e9], [1.0, 0]]))
    assert forth.rate == pytest.approx(math.log(1.8))
    assert back.rate == pytest.approx(math.log(5))


def test_a_zero_beside_a_positive_entry_is_infinite_and_two_zeros_are_not() -> None:
    apart = np.array([[0, 1.0], [1.0, 0]])
    assert steepest_ratio(np.array([[1.0, 0.0], [1 - 1e-320, 1e-320]]), apart) == (math.inf, 1, 0, 1)
    assert steepest_ratio(np.array([[0.4, 0.0, 0.6], [0.5, 0.0, 0.5]]), apart).rate == pytest.approx(
        math.log(1.25)
    )


def test_equal_rows_cost_nothing_even_at_no_distance() -> None:
    assert steepest_ratio(np.full((3, 3), 1 / 3), np.zeros((3, 3))).rate == 0
    assert steepest_ratio(np.full((3, 7), 1 / 7), np.full((3, 3), 1e-9)).rate == 0


def test_different_rows_at_no_distance_are_infinite() -> None:
    assert steepest_ratio(np.array([[0.4, 0.6], [0.6, 0.4]]), np.zeros((2, 2))).rate == math.inf
    assert steepest_slope(np.array([[0.4], [0.6]]), np.zeros((2, 2))).rate == math.inf


def test_a_slope_is_the_largest_difference_per_distance() -> None:
    table = np.array([[0.0, 5.0], [3.0, 4.0], [-2.0, 4.5]])
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 10.0]])
    assert steepest_slope(table, euclidean(points, points)) == (3.0, 1, 0, 0)


def test_the_smallest_double_is_a_probability_too() -> None:
    """A ratio that no double can hold has a logarithm that one can."""
    street = Grid(0, 0, cell=100, columns=2, rows=1)
    channel = Channel(street, street, [[1.0, 5e-324], [0.5, 0.5]])
    assert channel.epsilon == pytest.approx((math.log(0.5) - math.log(5e-324)) / 100)
