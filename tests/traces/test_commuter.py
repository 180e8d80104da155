"""The made-up commuter is where commuters are."""

import numpy as np
import pytest

from geoind.traces import (
    commuter,
)
from geoind.traces.commuter import HOME
from geoind.traces.comparison import arc_length

LON, LAT = HOME


def test_the_commuter_is_at_home_at_night_and_7616_m_away_at_noon() -> None:
    times, lonlat = commuter(days=2)
    apart = np.array([arc_length(LON, LAT, *place) for place in lonlat.tolist()])
    hours = times / 3600 % 24
    assert apart[(hours < 8) | (hours >= 18.5)].max() < 60
    assert apart[(hours >= 8.5) & (hours < 18)] == pytest.approx(7616, abs=60)
    assert ((apart > 1000) & (apart < 6500)).any()
