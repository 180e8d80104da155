"""Reports that devices claim to have drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind import InvalidInputError, KeyedRandomness, SphericalLaplace
from geoind.audits import valid_reports

DEGREES = st.tuples(st.floats(-180, 180), st.one_of(st.floats(-90, 90), st.floats(84, 90), st.floats(-90, -84)))


@given(st.lists(DEGREES, min_size=1, max_size=20), st.integers(0, 5), st.integers(0, 2**32))
def test_every_report_of_the_mechanism_is_valid(
    points: list[tuple[float, float]], decimals: int, seed: int
) -> None:
    reports = SphericalLaplace(0.001, decimals).sample(points, rng=seed)
    assert valid_reports(reports, decimals=decimals).all()


@pytest.mark.parametrize(
    "report",
    [
        [2.29450001, 48.8584],
        [2.2945, 48.858401],
        [-180.0, 10.0],
        [-0.0, 10.0],
        [10.0, -0.0],
        [1.0, 90.0],
        [12.345, 89.99],
        [float("nan"), 48.0],
        [2.0, float("inf")],
        [181.0, 0.0],
        [0.0, 91.0],
    ],
)
def test_what_no_device_reports_is_not_valid(report: list[float]) -> None:
    assert valid_reports([[2.2945, 48.8584], report]).tolist() == [True, False]


def test_a_coarser_lattice_has_fewer_points() -> None:
    assert valid_reports([[2.29, 48.86], [2.2945, 48.86]], decimals=2).tolist() == [True, False]


def test_keyed_reports_repeat_and_fresh_ones_do_not() -> None:
    globe, labels, home = SphericalLaplace(0.01), ["a", "b"] * 20, [[2.2945, 48.8584]] * 40
    assert valid_reports(globe.sample(home, rng=KeyedRandomness(bytes(32), labels)), labels=labels).all()
    assert valid_reports(globe.sample(home, rng=5), labels=labels).tolist() == [True] * 2 + [False] * 38


def test_bad_input_is_refused() -> None:
    for bad in ([2.0, 48.0], [["2", "48"]], np.zeros((3, 3))):
        with pytest.raises(InvalidInputError, match="lonlat must"):
            valid_reports(bad)
    with pytest.raises(InvalidInputError, match="labels must be one per report: 1 for 2"):
        valid_reports([[2.0, 48.0], [2.0, 48.0]], labels=["a"])
    with pytest.raises(InvalidInputError, match="decimals"):
        valid_reports([[2.0, 48.0]], decimals=9)
