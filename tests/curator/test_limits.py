import math

import numpy as np
import pytest

from geoind import InvalidInputError
from geoind.curator import Limits


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lowest": 3, "highest": 3}, "lowest must be below highest"),
        ({"lowest": math.nan}, "lowest must be finite"),
        ({"highest": math.inf}, "highest must be finite"),
        ({"step": 0}, "step must be positive"),
        ({"step": 100.0}, "step must be 1 to"),
        ({"step": 1e-9}, "step must be 1 to"),
        ({"step": 3}, "whole steps must lead from 0 to 4, got step=3"),
        ({"lowest": 2.0**50, "highest": 2.0**50 + 4, "step": 1}, "too far from zero for steps of 1"),
        ({"lowest": -(2.0**40), "highest": 4 - 2.0**40}, "too far from zero for steps of"),
        ({"lowest": -1e308, "highest": 1e308}, "step must be 1 to"),
    ],
)
def test_limits_that_bound_nothing_are_an_error(options: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Limits(**{"lowest": 0, "highest": 4, **options})


def test_a_step_may_be_the_whole_range_or_a_millionth_of_it() -> None:
    assert Limits(0, 4, step=4).step == 4
    assert Limits(0, 1 << 20, step=1).step == 1


def test_unless_told_there_are_1024_steps_between_the_limits() -> None:
    assert (10 - -6) / Limits(-6, 10).step == 1024


def test_no_value_is_farther_from_the_origin_than_its_limits_allow() -> None:
    steps = Limits(-2, 10, step=1).steps_from(4.0, np.array([-1e9, -2, 3.6, 4.4, 10, 1e9]), least=-6, most=6)
    assert steps.tolist() == [-6, -6, 0, 0, 6, 6]
    third = Limits(0, 0.3, step=0.1)
    assert third.steps == 3
    assert third.steps_from(0.0, np.array([1.0]), least=0, most=3).tolist() == [3]
