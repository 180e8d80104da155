import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind.distances import haversine
from geoind.space.lattice import (
    METRES_PER_DEGREE,
    half_diagonal,
    smallest_step,
    snap_arrays,
    snap_lonlat,
    snap_scalar,
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


@given(st.floats(-540, 540), st.floats(-90, 90), DECIMALS)
def test_scalars_and_arrays_agree(lon: float, lat: float, decimals: int) -> None:
    lons, lats = snap_arrays(np.array([lon]), np.array([lat]), decimals)
    assert snap_scalar(lon, lat, decimals) == (lons[0], lats[0])


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
def test_neighbours_never_come_closer_than_the_smallest_step(lat: float) -> None:
    lons = snap_lonlat(
        np.column_stack(
            [np.linspace(10, 10 + 40 / 10**5 / math.cos(math.radians(lat)), 4000) % 180, np.full(4000, lat)]
        )
    )[:, 0]
    steps = np.diff(np.unique(lons))
    if steps.size:
        metres = steps.min() * METRES_PER_DEGREE * math.cos(math.radians(lat))
        assert metres >= 0.99 * smallest_step(5)
