import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind.distances import haversine
from geoind.mechanisms.noise import (
    METRES_PER_DEGREE,
    half_diagonal,
    longitude_decimals,
    nearest_places,
    snap_lonlat,
)

ANYWHERE = (st.floats(-180, 180), st.floats(-90, 90))
DECIMALS = st.integers(2, 5)


@given(*ANYWHERE, DECIMALS)
def test_snapping_moves_a_report_by_half_a_diagonal_at_most(lon: float, lat: float, decimals: int) -> None:
    there = snap_lonlat([[lon, lat]], decimals)
    assert haversine(np.array([[lon, lat]]), there)[0, 0] <= half_diagonal(decimals) * (1 + 1e-6) + 1e-6


@given(*ANYWHERE, DECIMALS)
def test_snapping_twice_is_snapping_once(lon: float, lat: float, decimals: int) -> None:
    once = snap_lonlat([[lon, lat]], decimals)
    np.testing.assert_array_equal(snap_lonlat(once, decimals), once)
    np.testing.assert_array_equal(snap_lonlat(once, 5), once)


@given(st.floats(-360, 360), st.floats(-90, 90), st.integers(0, 5))
def test_a_turn_more_or_less_is_the_same_place(lon: float, lat: float, decimals: int) -> None:
    [there], [row], _, _ = nearest_places(np.array([lon]), np.array([lat]), decimals)
    finest = longitude_decimals(round(row * 10**decimals), decimals)
    step = 10.0**-finest
    assert -180 < there <= 180
    assert there == round(there, max(finest, 0))
    turns = (lon - there) / 360
    if abs(row) == 90:
        assert there == 0
    else:
        assert abs(turns - round(turns)) * 360 <= step / 2 + 1e-9


@given(st.floats(-180, 180), st.floats(-90, 90), st.integers(0, 5))
def test_the_distance_to_a_place_is_in_steps_of_its_row(lon: float, lat: float, decimals: int) -> None:
    (column,), (row,), (off_column,), (off_row,) = nearest_places(np.array([lon]), np.array([lat]), decimals)
    finest = longitude_decimals(round(row * 10**decimals), decimals)
    assert off_row == pytest.approx((lat - row) * 10**decimals, abs=1e-7)
    if abs(row) < 90:
        turned = (lon - column + 180) % 360 - 180
        assert abs(abs(off_column) - abs(turned) * 10.0**finest) < 1e-7
    else:
        assert off_column == 0


@pytest.mark.parametrize("decimals", range(6))
def test_rows_become_coarser_exactly_where_meridians_are_a_power_of_ten_closer(decimals: int) -> None:
    """Against 50 digits: the row on either side of each limit."""
    with mpmath.workdps(50):
        for power in range(1, decimals + 2):
            limit = mpmath.degrees(mpmath.asin(mpmath.mpf(10) ** -power)) * 10**decimals
            assert abs(limit - mpmath.nint(limit)) > 1e-4
            inner = 90 * 10**decimals - int(limit)
            if inner < 90 * 10**decimals:
                assert longitude_decimals(inner, decimals) == decimals - power
            assert longitude_decimals(-(inner - 1), decimals) == decimals - power + 1


@given(*ANYWHERE)
def test_a_place_has_five_decimals_and_one_name(lon: float, lat: float) -> None:
    [[lon, lat]] = snap_lonlat([[lon, lat]]).tolist()
    assert lon == round(lon, 5)
    assert lat == round(lat, 5)
    assert -180 < lon <= 180
    assert math.copysign(1, lon) == 1 or lon != 0
    assert math.copysign(1, lat) == 1 or lat != 0
    if abs(lat) == 90:
        assert lon == 0


@pytest.mark.parametrize("lat", [0.0, 48.85, 80.0, 84.2, 84.27, 89.0, 89.9, 89.99, 89.9999, 89.99999])
def test_neighbours_never_come_closer_than_a_tenth_of_a_row(lat: float) -> None:
    lons = snap_lonlat(
        np.column_stack(
            [np.linspace(10, 10 + 40 / 10**5 / math.cos(math.radians(lat)), 4000) % 180, np.full(4000, lat)]
        )
    )[:, 0]
    steps = np.diff(np.unique(lons))
    if steps.size:
        metres = steps.min() * METRES_PER_DEGREE * math.cos(math.radians(lat))
        assert metres >= 0.099 * METRES_PER_DEGREE * 1e-5
