import hashlib
import json
from pathlib import Path

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from geoind.adapters.dataset import obfuscate_dataset

from geoind.cli import main
from geoind.files import read_reports
from geoind.tables import read_promise
from tests.adapters.test_dataset import SIZES, read, write

KEY = hashlib.sha256(b"a key for tests").digest()
NOISE = ["--level", "2", "--radius", "200", "--missing", "keep", "--workers", "1"]


def refusal(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["obfuscate", *map(str, arguments)]) == 2
    return capfd.readouterr().err


def test_a_folder_becomes_a_folder_and_only_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "in", SIZES)
    (tmp_path / "key").write_text(KEY.hex())
    (tmp_path / "key").chmod(0o600)
    command = ["obfuscate", str(source), str(tmp_path / "out"), *NOISE, "--key-file", str(tmp_path / "key")]
    assert main(command) == 0
    assert capfd.readouterr().err.splitlines()[0].startswith("499 reports, epsilon 0.01 per metre")
    assert main(command) == 2
    assert "must be a new or an empty folder" in capfd.readouterr().err
    obfuscate_dataset(source, tmp_path / "same", epsilon=0.01, key=KEY, workers=1, missing="keep")
    assert read(tmp_path / "out") == read(tmp_path / "same")


def test_columns_are_found_by_their_usual_names_and_telling_ones_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    table = pa.table({"Longitude": [2.3], "Latitude": [48.8], "home_address": ["7 rue X"]})
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    said = refusal(capfd, tmp_path / "in", tmp_path / "out", *NOISE)
    assert "a.parquet" in said
    assert "'home_address'" in said
    assert main(["obfuscate", str(tmp_path / "in"), str(tmp_path / "out"), *NOISE, "--drop", "home_address"]) == 0
    result = pq.read_table(tmp_path / "out" / "a.parquet")
    assert result.column_names == ["Longitude", "Latitude"]
    assert result["Latitude"] != table["Latitude"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_the_geometry_that_is_named_is_the_one_that_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    spots = shapely.to_wkb(shapely.points([[2.3, 48.8], [2.4, 48.9]]))
    pq.write_table(pa.table({"spot": spots}), tmp_path / "in" / "a.parquet")
    named = ["--geometry", "spot", "--crs", "OGC:CRS84"]
    assert main(["obfuscate", str(tmp_path / "in"), str(tmp_path / "out"), *NOISE, *named]) == 0
    found = pq.read_table(tmp_path / "out" / "a.parquet")["spot"].to_pylist()
    assert not set(found) & set(spots)
    assert read_promise(tmp_path / "out" / "a.parquet").epsilon == 0.01


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
    assert main(["obfuscate", str(tmp_path / "in"), str(tmp_path / "out"), *NOISE[:4]]) == 0
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
    pattern = str(tmp_path / "in" / "*" / "trips.csv")
    assert "two files are called trips.csv" in refusal(capfd, pattern, tmp_path / "again", *NOISE[:4])
    assert main(["obfuscate", str(tmp_path / "in" / "**" / "*.ndjson"), str(tmp_path / "one"), *NOISE[:4]]) == 0
    assert [path.name for path in (tmp_path / "one").glob("*.ndjson")] == ["wed.ndjson"]


def test_an_error_in_a_folder_names_its_file_and_leaves_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("lat,lon\n1,2\n")
    (tmp_path / "in" / "b.csv").write_text("lat,lon\n1,2\n91,2\n")
    said = refusal(capfd, tmp_path / "in", tmp_path / "out", *NOISE[:4])
    assert said == "geoind: b.csv: line 3: |latitude| must be at most 90\n"
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    rejects = ["--rejects", str(tmp_path / "bad")]
    assert main(["obfuscate", str(tmp_path / "in"), str(tmp_path / "out"), *NOISE[:4], *rejects]) == 0
    bad = tmp_path / "bad" / "b.csv.rejects.ndjson"
    assert json.loads(bad.read_text())["line"] == 3
    assert (bad.stat().st_mode & 0o777, bad.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_persons_of_all_files_pay_together(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / f"{name}.csv").write_text("who,lat,lon\nana,1,2\n")
    paid = ["--person", "who", "--ledger", f"sqlite:///{tmp_path}/budgets.db", "--budget", "0.015"]
    assert "'ana'" in refusal(capfd, tmp_path / "in", tmp_path / "out", *NOISE[:4], *paid)
    assert not (tmp_path / "out").exists()


def test_what_is_not_for_folders_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "in", SIZES)
    assert "delimiter is not for parquet" in refusal(capfd, source, tmp_path / "out", *NOISE, "--delimiter", ";")
    assert "not standard output" in refusal(capfd, source, "-", *NOISE)
    assert "at least 1" in refusal(capfd, source, tmp_path / "out", *NOISE[:-1], "0")
    assert "give --epsilon" in refusal(capfd, source, tmp_path / "out")
    csv = tmp_path / "places.csv"
    csv.write_text("lat,lon\n1,2\n")
    assert "--workers is for a folder" in refusal(capfd, csv, tmp_path / "out.csv", *NOISE)
    assert not (tmp_path / "out").exists()


def test_files_of_a_folder_that_are_not_read_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    (source / "a.csv").write_text("lat,lon\n48.8,2.3\n48.9,2.4\n")
    run = ["obfuscate", str(source), str(tmp_path / "out"), *NOISE[:4], "--quiet"]
    shapes = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([2.3], [48.8]), crs=4326)
    shapes.to_file(source / "homes.shp")
    (source / "_SUCCESS").touch()
    (source / ".hidden.dat").touch()
    assert main([*run[:2], str(tmp_path / "before"), *run[3:]]) == 0
    assert capfd.readouterr().err == "", "nothing is left out but what is hidden, or part of a shapefile"
    for name in ("c.dat", "deep/d.csv.bz2"):
        (source / name).touch()
    said = f"{source}: 2 files are not read, because their suffix is not known: c.dat, deep/d.csv.bz2\n"
    assert main(run) == 0
    assert capfd.readouterr().err == said
    for number in range(10):
        (tmp_path / "out" / f"{number}.dat").touch()
    (tmp_path / "out" / "9.dat2").touch()
    page = ["map", str(tmp_path / "out"), "--out", str(tmp_path / "map.html")]
    assert main(page) == 0
    assert "11 files are not read" in (err := capfd.readouterr().err)
    assert err.endswith("9.dat, ...\n")
