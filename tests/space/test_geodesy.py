import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind.space.geodesy import destinations, geodesic_lengths


@given(st.floats(-180, 180), st.floats(-89, 89), st.floats(0, 360), st.floats(0, 1_000_000))
def test_who_goes_so_far_is_so_far_away(lon: float, lat: float, bearing: float, metres: float) -> None:
    there = destinations(np.array([[lon, lat]]), bearing, metres)
    assert geodesic_lengths([lon, lat], there) == pytest.approx([metres], abs=1e-6)


def test_bearings_go_from_north_to_east() -> None:
    north, east = destinations(np.array([[10.0, 0.0], [10.0, 0.0]]), [0.0, 90.0], 1000.0)
    assert north == pytest.approx([10.0, 0.009043], abs=1e-6)
    assert east == pytest.approx([10.008983, 0.0], abs=1e-6)


def test_a_meridian_is_as_long_as_the_earth_has_it() -> None:
    """From the equator to the pole 10 001 965.729 m."""
    poles = geodesic_lengths([0.0, 0.0], [[0.0, 90.0], [77.0, -90.0]])
    assert poles == pytest.approx([10_001_965.729] * 2, abs=1e-3)


def test_places_are_compared_each_with_its_own_or_all_with_one() -> None:
    first, second = np.array([[0.0, 0.0], [5.0, 50.0]]), np.array([[1.0, 0.0], [5.0, 50.0]])
    assert geodesic_lengths(first, second) == pytest.approx([111_319.4908, 0.0])
    assert geodesic_lengths([0.0, 0.0], second)[0] == pytest.approx(111_319.4908)
