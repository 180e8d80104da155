"""The same mathematics for numbers and for arrays."""

import math

import numpy as np
import pytest

from geoind.mechanisms.functions import ARRAYS, SCALARS


@pytest.mark.parametrize("least", [0.5, 1e-300, 0.0, -0.5])
def test_the_angle_is_that_of_the_quadrant_whichever_formula_a_block_takes(least: float) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.uniform(least, 2.0, 1000), rng.uniform(-1, 1, 1000)
    x[0] = least
    np.testing.assert_allclose(ARRAYS.angle(y, x), np.arctan2(y, x), rtol=1e-15)
    assert SCALARS.angle(float(y[0]), float(x[0])) == math.atan2(y[0], x[0])


def test_a_block_without_rows_has_no_angles() -> None:
    assert ARRAYS.angle(np.empty(0), np.empty(0)).shape == (0,)


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "sqrt", "log"])
def test_each_function_of_arrays_is_the_one_of_numbers(name: str) -> None:
    x = np.linspace(0.1, 1.5, 50)
    scalar = getattr(SCALARS, name)
    np.testing.assert_allclose(getattr(ARRAYS, name)(x), [scalar(value) for value in x.tolist()], rtol=1e-15)
    assert scalar(0.5) == getattr(math, name)(0.5)
