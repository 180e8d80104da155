import math
from typing import Any

import numpy as np
import pytest

from geoind import InvalidInputError
from geoind.optimal import Effort, Iterate


def test_a_gap_is_relative_to_the_objective_or_to_the_yardstick() -> None:
    assert Iterate(0, 10.0, 9.0, 0.0, 1.0).gap == pytest.approx(0.1)
    assert Iterate(0, 10.0, 9.0, 0.0, 50.0).gap == pytest.approx(0.02)
    assert Iterate(0, -10.0, -11.0, 0.0, 1.0).gap == pytest.approx(0.1)
    assert Iterate(0, 5.0, 5.0, 0.0, 1.0).gap == 0
    assert Iterate(0, 1.0, 1.0 - 2.0**-60, 0.0, 1.0).gap == 0
    # What rounding leaves proves nothing better than rounding, a bound above the objective included.
    assert Iterate(0, 1.0, 1.0 + 2.0**-40, 0.0, 1.0).gap == np.finfo(float).eps


def test_the_time_that_is_over_is_taken_from_the_limit_and_nothing_else_changes() -> None:
    effort = Effort(tolerance=1e-3, time_limit=60, progress=print)
    assert effort.after(20) == Effort(tolerance=1e-3, time_limit=40, progress=print)
    assert 0 < effort.after(61).time_limit < 1e-6, "over, and still a limit"
    assert Effort().after(1e9).time_limit == math.inf


@pytest.mark.parametrize(
    "wrong",
    [
        {"tolerance": 0},
        {"tolerance": 1},
        {"tolerance": math.nan},
        {"time_limit": 0},
        {"time_limit": math.nan},
        {"time_limit": "60"},
        {"progress": 5},
    ],
)
def test_an_effort_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=f"{next(iter(wrong))} must"):
        Effort(**wrong)
