"""A band contains the sum of the matrices near its diagonal, stays positive definite, and is solved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind.errors import SolverError
from geoind.optimal.bands import Band


def random_sum(seed: int, count: int, width: int) -> tuple[Band, np.ndarray]:
    """A band of random semidefinite matrices, and the dense matrix of what it should contain."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(count)
    band, dense = Band(order, width), np.eye(count)
    band.cells[:, 0] = 1.0
    for _ in range(2 * count):
        centre = int(rng.integers(count))
        number = rng.permutation(count)[: int(rng.integers(1, count + 1))]
        half = rng.normal(size=(len(number), 2))
        square = half @ half.T
        band.add(number, centre, square)
        far = 2 * np.abs(order[number] - order[centre]) > width
        if width < count - 1:
            square[far] *= np.eye(len(number))[far]
            square[:, far] *= np.eye(len(number))[:, far]
        dense[np.ix_(number, number)] += square
    return band, dense


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 12))
def test_a_band_is_the_sum_near_its_diagonal(seed: int, count: int, width: int) -> None:
    band, dense = random_sum(seed, count, width)
    right = np.random.default_rng(seed).normal(size=count)
    solution = band.factor()(right)
    assert dense @ solution == pytest.approx(right, abs=1e-8)


def test_a_matrix_that_is_not_positive_definite_is_an_error() -> None:
    band = Band(np.arange(2), 1)
    band.add(np.arange(2), 0, np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(SolverError, match="could not be factored"):
        band.factor()
