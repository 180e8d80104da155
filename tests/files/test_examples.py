"""Two kinds of files that people publish, with made-up rows in their real schemas.

A bike-share table has the station next to the place. A taxi's table has thousands of places of one person.
"""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geoind import EACH_ROW, InvalidInputError, obfuscate_file
from geoind.tables import EACH_FILE, read_promise, sidecar_of

STATIONS = {
    "Grove St PATH": ("JC115", 40.719410, -74.043090),
    "Hoboken Terminal - River St & Hudson Pl": ("HB102", 40.736068, -74.029127),
    "Newport PATH": ("JC066", 40.727220, -74.033760),
    "Liberty Light Rail": ("JC052", 40.711240, -74.055700),
}
BIKES = [
    "ride_id",
    "rideable_type",
    "started_at",
    "ended_at",
    "start_station_name",
    "start_station_id",
    "end_station_name",
    "end_station_id",
    "start_lat",
    "start_lng",
    "end_lat",
    "end_lng",
    "member_casual",
]
FROM_TO: dict[str, Any] = {"lon": ["start_lng", "end_lng"], "lat": ["start_lat", "end_lat"]}


@pytest.fixture
def rides(tmp_path: Path) -> Path:
    """Return a bike-share file."""
    rng = np.random.default_rng(0)
    with (tmp_path / "JC-202405-citibike-tripdata.csv").open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(BIKES)
        for number in range(300):
            start, end = rng.choice(list(STATIONS), 2)
            (one, lat, lon), (other, to_lat, to_lon) = STATIONS[start], STATIONS[end]
            day = f"2024-05-{rng.integers(1, 29):02d} 08:{rng.integers(60):02d}:00.123"
            kind = rng.choice(["electric_bike", "classic_bike"])
            member = rng.choice(["member", "casual"])
            ride = f"{number:016X}"
            writer.writerow([ride, kind, day, day, start, one, end, other, lat, lon, to_lat, to_lon, member])
    return Path(file.name)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_station_does_not_leave_with_the_reports_unless_it_is_kept(rides: Path, tmp_path: Path) -> None:
    target = tmp_path / "reports.csv"
    summary = obfuscate_file(
        rides, target, person=EACH_ROW, keep=["rideable_type", "member_casual"], epsilon=0.005, **FROM_TO
    )
    made, given = rows_of(target), rows_of(rides)
    assert list(made[0]) == ["rideable_type", "start_lat", "start_lng", "end_lat", "end_lng", "member_casual"]
    assert [row["member_casual"] for row in made] == [row["member_casual"] for row in given]
    text = target.read_bytes() + sidecar_of(target).read_bytes()
    for name, (number, *_) in STATIONS.items():
        assert name.encode() not in text
        assert number.encode() not in text
    assert summary.left_out == tuple(BIKES[:1] + BIKES[2:8])
    assert "ride_id,started_at,ended_at,start_station_name" in str(summary)
    record = read_promise(target)
    assert record.kept == ("rideable_type", "member_casual")
    assert record.busiest is not None
    assert (record.unit, record.persons, record.busiest.reports) == ("each row", 300, 2)

    kept = tmp_path / "kept.csv"
    obfuscate_file(rides, kept, person=EACH_ROW, keep=["start_station_name"], epsilon=0.005, **FROM_TO)
    assert {row["start_station_name"] for row in rows_of(kept)} == set(STATIONS)
    assert read_promise(kept).kept == ("start_station_name",)


def test_the_times_of_rides_do_not_make_them_a_sorted_table(rides: Path, tmp_path: Path) -> None:
    lines = rides.read_text().splitlines()
    rides.write_text("\n".join([lines[0], *sorted(lines[1:], key=lambda line: line.split(",")[2])]) + "\n")
    assert obfuscate_file(rides, tmp_path / "a.csv", person=EACH_ROW, epsilon=0.005, **FROM_TO).reports == 600
    by_station = sorted(lines[1:], key=lambda line: line.split(",")[4])
    rides.write_text("\n".join([lines[0], *by_station]) + "\n")
    with pytest.raises(InvalidInputError, match="the order of the rows shows where they are"):
        obfuscate_file(rides, tmp_path / "b.csv", person=EACH_ROW, epsilon=0.005, **FROM_TO)


STOPS = np.array([[116.41, 39.91], [116.32, 39.98], [116.46, 39.87]])
STEPS = 600


@pytest.fixture
def taxi(tmp_path: Path) -> Path:
    """Return a taxi's file: it stays at a stop for a while, drives, and stays again."""
    rng = np.random.default_rng(1)
    with (tmp_path / "366.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["taxi_id", "date_time", "longitude", "latitude"])
        for step in range(STEPS):
            stop, way = divmod(step, STEPS // 3)
            share = max(0.0, (way - 150) / 50) if stop < 2 else 0.0
            lon, lat = STOPS[stop] * (1 - share) + STOPS[(stop + 1) % 3] * share + rng.normal(0, 1e-5, 2)
            time = f"2008-02-0{2 + stop} {way // 60:02d}:{way % 60:02d}:00"
            writer.writerow([366, time, f"{lon:.5f}", f"{lat:.5f}"])
    return Path(file.name)


LEVEL = math.log(4)
NOISE: dict[str, Any] = {"level": LEVEL, "radius": 200.0}


def test_a_taxis_file_needs_the_person(taxi: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="whose reports these are") as caught:
        obfuscate_file(taxi, tmp_path / "out.csv", **NOISE)
    assert "The reports of one person add up" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == [taxi.name]


@pytest.mark.parametrize("person", ["taxi_id", EACH_FILE])
def test_a_taxis_reports_together_are_refused_with_the_remedies(taxi: Path, tmp_path: Path, person: Any) -> None:
    with pytest.raises(InvalidInputError, match="the busiest person has 600 reports that add up to") as caught:
        obfuscate_file(taxi, tmp_path / "out.csv", person=person, **NOISE)
    total = STEPS * LEVEL / 200
    assert f"epsilon {total:.6g} per metre" in str(caught.value)
    for remedy in (
        "`time=`",
        "`same_place=100`",
        "`reports_per_person=N`",
        "a smaller epsilon",
        "`allow_total=4.1589`",
    ):
        assert remedy in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == [taxi.name]


def test_a_taxis_trace_is_refused_when_its_total_is_too_large(taxi: Path, tmp_path: Path) -> None:
    trace: dict[str, Any] = {"person": "taxi_id", "time": "date_time"}
    with pytest.raises(InvalidInputError, match=r"the busiest person has 600 reports that add up to epsilon \d"):
        obfuscate_file(taxi, tmp_path / "out.csv", **trace, **NOISE)
    summary = obfuscate_file(taxi, tmp_path / "out.csv", **trace, level=0.02, radius=200.0)
    assert summary.reports == STEPS
    record = read_promise(tmp_path / "out.csv")
    assert record.busiest is not None
    assert record.epsilon == record.busiest.epsilon <= 0.2
    assert list(rows_of(tmp_path / "out.csv")[0]) == ["taxi_id", "date_time", "longitude", "latitude"]


@pytest.mark.parametrize(
    ("options", "reports"), [({"reports_per_person": 20}, 20), ({"same_place": 2000.0}, STEPS)]
)
def test_the_remedies_make_a_taxis_file_pass_and_every_record_has_its_totals(
    taxi: Path, tmp_path: Path, options: dict[str, Any], reports: int
) -> None:
    target = tmp_path / "out.csv"
    summary = obfuscate_file(taxi, target, person="taxi_id", **NOISE, **options)
    made = [(row["longitude"], row["latitude"]) for row in rows_of(target)]
    different = len(made) if "reports_per_person" in options else len(set(made))
    assert summary.reports == len(made) == reports
    assert different <= 20
    total = {"reports": different, "epsilon": pytest.approx(different * LEVEL / 200)}
    sidecar = json.loads(sidecar_of(target).read_text())
    assert sidecar["unit"] == "column"
    assert sidecar["persons"] == 1
    for name in ("busiest", "median"):
        assert {key: sidecar[name][key] for key in total} == total
    record = read_promise(target)
    assert record == summary.record
    assert record.busiest is not None
    assert (record.busiest.reports, record.persons) == (different, 1)
    assert f"1 person; the busiest has {different} report" in str(summary)


def test_a_total_that_is_written_out_is_accepted(taxi: Path, tmp_path: Path) -> None:
    summary = obfuscate_file(taxi, tmp_path / "out.csv", person="taxi_id", allow_total=4.1589, **NOISE)
    assert summary.record.busiest is not None
    assert summary.record.busiest.epsilon == pytest.approx(4.15888, rel=1e-5)
    with pytest.raises(InvalidInputError, match="do not hide the person"):
        obfuscate_file(taxi, tmp_path / "no.csv", person="taxi_id", allow_total=4.1, **NOISE)
