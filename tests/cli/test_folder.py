import json
import secrets
from pathlib import Path

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoind.cli import main
from geoind.errors import InvalidInputError
from geoind.files import read_reports
from geoind.tables import read_promise

NOISE = ["--level", "2", "--radius", "200", "--each-row-a-person"]


def refusal(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["obfuscate", *map(str, arguments)]) == 2
    return capfd.readouterr().err


def several_days(folder: Path) -> Path:
    """Write a folder of a CSV and a Parquet file with 40 trips each."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for day in ("mon", "tue"):
        lon, lat = rng.normal([[2.3], [48.8]], 0.05, (2, 40)).round(5)
        table = pa.table({"rider": ["ana", "ben"] * 20, "fare": np.arange(40), "lon": lon, "lat": lat})
        if day == "mon":
            table.to_pandas().to_csv(folder / "mon.csv", index=False)
        else:
            pq.write_table(table, folder / "tue.parquet")
    return folder


@pytest.mark.slow
def test_a_folder_becomes_a_folder_and_only_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = several_days(tmp_path / "in")
    (tmp_path / "key").write_text(secrets.token_hex(32))
    (tmp_path / "key").chmod(0o600)
    keyed = [*NOISE, "--key-file", str(tmp_path / "key"), "--keep", "fare"]
    for name, workers in (("out", "1"), ("same", "2")):
        assert main(["obfuscate", str(source), str(tmp_path / name), *keyed, "--workers", workers]) == 0
        assert capfd.readouterr().err.splitlines()[0].startswith("80 reports, epsilon 0.01 per metre")
    for name in ("mon.csv", "tue.parquet"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "same" / name).read_bytes()
    assert (tmp_path / "out" / "mon.csv").read_text().splitlines()[0] == "fare,lon,lat"
    assert pq.read_table(tmp_path / "out" / "tue.parquet").column_names == ["fare", "lon", "lat"]
    assert "must be a new or an empty folder" in refusal(capfd, source, tmp_path / "out", *keyed)


def test_the_totals_of_a_person_are_those_of_all_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, out = several_days(tmp_path / "in"), tmp_path / "out"
    noise = ["--level", "2", "--radius", "200"]
    assert "add up to epsilon 0.4 per metre" in refusal(capfd, source, out, *noise, "--person", "rider")
    assert "add up to epsilon 0.4 per metre" in refusal(capfd, source, out, *noise, "--person-per-file")
    few = ["--reports-per-person", "5"]
    for number, (unit, files) in enumerate([(["--person", "rider"], 10), (["--person-per-file"], 10)]):
        out = tmp_path / f"out{number}"
        assert main(["obfuscate", str(source), str(out), *noise, *unit, *few]) == 0
        assert "2 persons; the busiest has 5 reports" in capfd.readouterr().err
        record = read_promise(out)
        assert record == read_promise(out / "mon.csv") == read_promise(out / "tue.parquet")
        assert record.busiest is not None
        assert (record.persons, record.busiest.reports) == (2, 5)
        assert record.busiest.epsilon == pytest.approx(0.05)
        assert len(read_reports(out).lonlat) == files


@pytest.mark.slow
def test_a_folder_has_the_promise_of_its_files(tmp_path: Path) -> None:
    source, out = several_days(tmp_path / "in"), tmp_path / "out"
    points = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([2.3, 2.4], [48.8, 48.9]), crs=4326)
    points.to_file(source / "homes.shp")
    assert main(["obfuscate", str(source), str(out), *NOISE]) == 0
    assert read_promise(out).persons == 82
    (out / "truth.csv").write_text("lat,lon\n48.8584,2.2945\n")
    with pytest.raises(InvalidInputError, match="has no release record"):
        read_promise(out)
    (out / "truth.csv").unlink()
    other = ["--each-row-a-person", "--epsilon", "0.02"]
    assert main(["obfuscate", str(source), str(tmp_path / "other"), *other]) == 0
    (tmp_path / "other" / "mon.csv").rename(out / "other.csv")
    (tmp_path / "other" / "mon.csv.geoind.json").rename(out / "other.csv.geoind.json")
    with pytest.raises(InvalidInputError, match="there are 2 records"):
        read_promise(out)
    with pytest.raises(InvalidInputError, match="no such file"):
        read_promise(tmp_path / "nowhere")


def test_person_and_time_of_a_trace_go_on_in_the_next_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for day in (1, 2):
        rows = "".join(f"ana,2024-05-0{day}T08:{minute:02}:00,48.85,2.35\n" for minute in range(30))
        (source / f"{day}.csv").write_text("who,at,lat,lon\n" + rows)
    assert main(["obfuscate", str(source), str(out), "--trace", "who,at", "--epsilon", "0.01"]) == 0
    assert "1 person; the busiest has 60 reports" in capfd.readouterr().err
    each = tmp_path / "each"
    run = ["obfuscate", str(source), str(each), "--person-per-file", "--trace", "at", "--epsilon", "0.01"]
    assert main(run) == 0
    assert "2 persons; the busiest has 30 reports" in capfd.readouterr().err
    assert (each / "1.csv").read_text().splitlines()[0] == "at,lat,lon"
    assert "cannot be used for traces" in refusal(capfd, *run[1:2], tmp_path / "o", *run[3:], "--workers", "2")


def test_files_of_any_format_become_a_folder_that_estimate_and_map_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    lonlat = rng.normal([2.3, 48.8], 0.01, (300, 2))
    for day in ("mon", "tue"):
        (tmp_path / "in" / day).mkdir(parents=True)
        rows = [f"{lat:.6f};{lon:.6f}" for lon, lat in lonlat]
        (tmp_path / "in" / day / "trips.csv").write_text("\n".join(["lat;lon", *rows]))
    lines = [json.dumps({"lat": lat, "lon": lon}) for lon, lat in lonlat.round(6).tolist()]
    (tmp_path / "in" / "wed.ndjson").write_text("\n".join(lines))
    assert main(["obfuscate", str(tmp_path / "in"), str(tmp_path / "out"), *NOISE]) == 0
    assert capfd.readouterr().err.startswith("900 reports")
    names = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*"))
    assert names == [
        "mon/trips.csv",
        "mon/trips.csv.geoind.json",
        "tue/trips.csv",
        "tue/trips.csv.geoind.json",
        "wed.ndjson",
        "wed.ndjson.geoind.json",
    ]
    assert len(read_reports(tmp_path / "out").lonlat) == 900
    out = str(tmp_path / "cells.csv")
    assert main(["estimate", str(tmp_path / "out"), "--grid", "500", "--out", out]) == 0
    assert main(["map", str(tmp_path / "out"), "--out", str(tmp_path / "map.html")]) == 0
    both = [tmp_path / "in" / day / "trips.csv" for day in ("mon", "tue")]
    assert "two files are called trips.csv" in refusal(capfd, *both, tmp_path / "again", *NOISE)


def test_an_error_in_a_folder_names_its_file_and_leaves_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("lat,lon\n1,2\n")
    (tmp_path / "in" / "b.csv").write_text("lat,lon\n1,2\n91,2\n")
    said = refusal(capfd, tmp_path / "in", tmp_path / "out", *NOISE)
    assert said.startswith("geoind: b.csv: row 2: latitude must be between -90 and 90")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    rejects = ["--rejects", str(tmp_path / "bad")]
    assert main(["obfuscate", str(tmp_path / "in"), str(tmp_path / "out"), *NOISE, *rejects]) == 0
    bad = tmp_path / "bad" / "b.csv.rejects.ndjson"
    assert json.loads(bad.read_text())["row"] == 2
    assert (bad.stat().st_mode & 0o777, bad.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_is_not_for_folders_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = several_days(tmp_path / "in")
    assert "--delimiter CHARACTER is not for parquet" in refusal(
        capfd, source, tmp_path / "out", *NOISE, "--delimiter", ","
    )
    assert "not standard output" in refusal(capfd, source, "-", *NOISE)
    assert "at least 1" in refusal(capfd, source, tmp_path / "out", *NOISE, "--workers", "0")
    assert "give --epsilon" in refusal(capfd, source, tmp_path / "out", "--each-row-a-person")
    csv = tmp_path / "places.csv"
    csv.write_text("lat,lon\n1,2\n")
    assert "--workers is for a folder" in refusal(capfd, csv, tmp_path / "out.csv", *NOISE, "--workers", "1")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_files_of_a_folder_that_are_not_read_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    (source / "a.csv").write_text("lat,lon\n48.8,2.3\n48.9,2.4\n")
    run = ["obfuscate", str(source), str(tmp_path / "out"), *NOISE, "--quiet"]
    shapes = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([2.3], [48.8]), crs=4326)
    shapes.to_file(source / "homes.shp")
    (source / "_SUCCESS").touch()
    (source / ".hidden.dat").touch()
    assert main([*run[:2], str(tmp_path / "before"), *run[3:]]) == 0
    assert capfd.readouterr().err == "", "nothing is left out but what is hidden, or part of a shapefile"
    for name in ("c.dat", "deep/d.csv.bz2"):
        (source / name).touch()
    said = f"{source}: 2 files not read, because the suffix is not known: c.dat, deep/d.csv.bz2\n"
    assert main(run) == 0
    assert capfd.readouterr().err == said
    for number in range(10):
        (tmp_path / "out" / f"{number}.dat").touch()
    (tmp_path / "out" / "9.dat2").touch()
    page = ["map", str(tmp_path / "out"), "--out", str(tmp_path / "map.html")]
    assert main(page) == 0
    assert "11 files not read" in (err := capfd.readouterr().err)
    assert err.endswith("9.dat, ...\n")
