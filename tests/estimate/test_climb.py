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


def test_a_climb_stops_in_time_unless_somebody_wants_the_top() -> None:
    usual = Climb()
    assert (usual.stopping, usual.max_steps, usual.tolerance, usual.start, usual.progress) == (
        "held-out",
        1000,
        1.0,
        None,
        None,
    )


def test_a_start_may_be_small_everywhere() -> None:
    assert Climb(start=Prior(Places([[0, 0], [1, 0]]), [1e-12, 1 - 1e-12])).start is not None
