"""The Cholesky routines, against numpy."""

import numpy as np
import pytest

from geoind.optimal import lapack


@pytest.mark.parametrize("size", [1, 2, 7, 60])
def test_factors_solve_and_invert(size: int) -> None:
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size))
    matrix = root @ root.T + size * np.eye(size)
    cholesky = np.tril(matrix)
    assert lapack.factor(cholesky)
    np.testing.assert_allclose(np.tril(cholesky), np.linalg.cholesky(matrix), rtol=1e-12, atol=1e-12)
    right = rng.normal(size=size)
    before = right.copy()
    np.testing.assert_allclose(
        lapack.solve(cholesky, right), np.linalg.solve(matrix, right), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(right, before)
    np.testing.assert_allclose(np.tril(lapack.inverse(cholesky)), np.tril(np.linalg.inv(matrix)), atol=1e-12)
    rows = rng.normal(size=(3, size))
    half = lapack.half_solve(cholesky, rows)
    np.testing.assert_allclose(half @ half.T, rows @ np.linalg.inv(matrix) @ rows.T, rtol=1e-9, atol=1e-12)


def test_what_is_not_positive_definite_is_said() -> None:
    assert not lapack.factor(np.array([[1.0, 0.0], [2.0, 1.0]]))
