"""Synthetic commuters, and drives that are read from tables of person, time and place."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from geoind import InvalidInputError
from geoind.files import read_traces
from geoind.traces import (
    commuter,
    evaluate_traces,
)
from geoind.traces.drives import HOME, drives_of
from geoind.traces.questions import arc_length


def test_drives_end_at_gaps_and_have_one_position_in_each_step() -> None:
    start = pd.Timestamp("2024-05-01", tz="UTC")
    seconds = [*range(0, 1200, 5), *range(9_960, 12_360, 5), 50_000]
    table = pd.DataFrame(
        {"person": "ana", "lat": 48.86, "lon": 2.29, "time": [start + pd.Timedelta(seconds=s) for s in seconds]}
    )
    drives = drives_of(table, every=60.0)
    assert [len(times) for times, _ in drives] == [40, 20]
    assert all((np.diff(times) >= 30).all() for times, _ in drives)
    with pytest.raises(InvalidInputError, match="no drive"):
        drives_of(table[:3])
    with pytest.raises(InvalidInputError, match="at least one drive"):
        evaluate_traces([])


def test_drives_of_ten_positions_count_and_the_longest_come_first_then_persons_in_order() -> None:
    at = {
        "short": [60 * k for k in range(10)],
        "nine": [60 * k for k in range(9)],
        "cleo": [60 * k for k in range(12)],
        "ben": [60 * k for k in range(12)],
        # Longer as a whole, shorter from its second position on.
        "ana": [0, *range(1150, 1651, 50)],
    }
    rows = [(name, pd.Timestamp(1.7e9 + s, unit="s", tz="UTC")) for name, times in at.items() for s in times]
    table = pd.DataFrame(rows, columns=["person", "time"]).assign(lat=48.86, lon=2.29)
    table["lon"] += table["person"].map({"short": 0.0, "nine": 0.1, "cleo": 0.2, "ben": 0.3, "ana": 0.4})
    drives = drives_of(table, every=1.0)
    assert [round(float(lonlat[0, 0]) - 2.29, 6) for _, lonlat in drives] == [0.4, 0.3, 0.2, 0.0]
    assert len(drives_of(table, every=1.0, most=2)) == 2


def test_a_gap_is_twenty_minutes_or_two_steps() -> None:
    seconds = [*range(0, 12_000, 1000), *range(13_100, 25_000, 1000)]
    table = pd.DataFrame({"person": "ana", "lat": 48.86, "lon": 2.29, "time": pd.to_datetime(seconds, unit="s")})
    assert [len(times) for times, _ in drives_of(table, every=1000.0)] == [12, 12]
    assert len(drives_of(table, every=1051.0)) == 1


def test_numbers_with_and_without_zeros_before_them_are_two_persons(tmp_path: Path) -> None:
    path = tmp_path / "trips.csv"
    path.write_text("person,time,lat,lon\n001,0,48.86,2.3\n1,0,48.86,2.3\n")
    assert read_traces(path)["person"].tolist() == ["001", "1"]


@pytest.mark.parametrize(
    ("column", "value"), [("person", None), ("time", "noon"), ("time", None), ("lat", 91.5), ("lon", None)]
)
def test_a_row_without_a_person_a_time_or_a_place_is_named_and_its_place_is_not(
    tmp_path: Path, column: str, value: object
) -> None:
    path = tmp_path / "trips.csv"
    row: dict[str, object] = {"person": "ana", "time": 0, "lat": 48.8584, "lon": 2.2945}
    pd.DataFrame([row, row | {column: value}, row]).to_csv(path, index=False)
    with pytest.raises(InvalidInputError, match=r"trips\.csv: row 2: ") as refused:
        read_traces(path)
    assert "48.8584" not in str(refused.value)
    assert "91.5" not in str(refused.value)


LON, LAT = HOME


def test_the_commuter_is_at_home_at_night_and_7616_m_away_at_noon() -> None:
    times, lonlat = commuter(days=2)
    apart = np.array([arc_length(LON, LAT, *place) for place in lonlat.tolist()])
    hours = times / 3600 % 24
    assert apart[(hours < 8) | (hours >= 18.5)].max() < 60
    assert apart[(hours >= 8.5) & (hours < 18)] == pytest.approx(7616, abs=60)
    assert ((apart > 1000) & (apart < 6500)).any()
