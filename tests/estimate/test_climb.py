from typing import Any

import pytest

from geoind import InvalidInputError, Places, Prior
from geoind.estimate import Climb


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"stopping": "soon"}, "stopping must be 'held-out' or 'converged', got 'soon'"),
        ({"max_steps": 0}, "max_steps must"),
        ({"max_steps": 2.5}, "max_steps must"),
        ({"tolerance": 0.0}, "tolerance must"),
        ({"tolerance": float("nan")}, "tolerance must"),
        ({"start": [0.5, 0.5]}, "start must be a Prior, got list"),
        ({"start": Prior(Places([[0, 0], [1, 0], [2, 0]]), [0.5, 0.5, 0])}, "1 of 3"),
        ({"progress": "bar"}, "progress must be callable"),
    ],
)
def test_a_climb_that_means_nothing_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Climb(**wrong)
