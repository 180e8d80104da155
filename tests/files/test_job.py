"""One file: what is refused before a charge, what is never written over, and what its record has."""

import io
import json
import os
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from geoind import EACH_ROW, InvalidInputError, Ledger, obfuscate_file
from geoind.files import Reading
from geoind.keys import Key
from geoind.space import cell_centres, cell_names
from geoind.tables import EACH_FILE, ReleaseRecord, read_promise, sidecar_of

KEY = bytes(range(32))
TABLE = {"rider": ["ana", "ben"], "lon": [2.3, 2.4], "lat": [48.8, 48.9]}


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("", {}, "empty"),
        ("a,b\n1,2\n", {}, "lon"),
        ("lat,lon,lng\n1,2,3\n", {}, "several columns"),
        ("lat,lon\n1,2\n", {"lat": "y", "lon": "lon"}, "no column 'y'"),
        ("lat,lon\n1,2\n", {"lat": "lon", "lon": "lon"}, "different columns"),
        ("lat,lon\n1,2\n", {"reading": Reading(header=False)}, "lon"),
        ("lat,lon\n1,2\n", {"reading": Reading(delimiter="ab")}, "one ASCII character"),
        ("lat,lon\n1,2\n", {"reading": Reading(format="xml")}, "format"),
        ("lat,lon\n1,2\n", {"person": None}, "whose reports these are"),
        ("lat,lon\n1,2\n", {"person": "who"}, "no column 'who'"),
        ("lat,lon\n1,2\n", {"keep": ["who"]}, "no column 'who'"),
        ("lat,lon\n1,2\n", {"keep": ["lat"]}, "holds the true place"),
        ("lat,lon\n1,2\n", {"missing": "drop"}, "missing"),
        ("lat,lon\n1,2\n", {"epsilon": float("nan")}, "epsilon must be positive"),
        ("lat,lon\n1,2\n", {"id_column": "who", "key": KEY}, "no column 'who'"),
        ("id,lat,lon\n,1,2\n", {"id_column": "id", "key": KEY}, "row 1: identity is missing"),
        ("id,lat,lon\na,1,2\n", {"id_column": "id", "key": b"short"}, "32 bytes"),
    ],
)
def test_bad_requests_are_refused_and_nothing_is_written(
    tmp_path: Path, text: str, options: dict[str, Any], why: str
) -> None:
    source = tmp_path / "in.csv"
    source.write_text(text)
    with pytest.raises(InvalidInputError, match=why):
        obfuscate_file(source, tmp_path / "out.csv", **{"epsilon": 0.01, "person": EACH_ROW, **options})
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_an_output_without_a_known_suffix_names_those_that_are_written_and_not_the_format_of_the_input(
    tables: Path,
) -> None:
    for reading in (None, Reading(format="csv")):
        with pytest.raises(InvalidInputError, match=r"'out\.xyz' must end in one of \.csv, .*\.shp$"):
            obfuscate_file(tables / "a.csv", tables / "out.xyz", person=EACH_ROW, epsilon=0.01, reading=reading)


def test_the_sidecar_has_the_promise_and_neither_key_nor_truth(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,lat,lon\na,48.8584,2.2945\n")
    options: dict[str, Any] = {"level": 2.0, "radius": 200, "key": KEY, "id_column": "id", "person": EACH_ROW}
    summary = obfuscate_file(tmp_path / "in.csv", tmp_path / "out.csv", **options)
    promise = read_promise(tmp_path / "out.csv")
    assert promise == summary.record
    assert (promise.epsilon, promise.level, promise.radius, promise.kept) == (0.01, 2.0, 200, ())
    text = (tmp_path / "out.csv.geoind.json").read_text()
    assert "48.8584" not in text
    assert KEY.hex() not in text


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Return a folder with tables of two riders, and things that are no files."""
    (tmp_path / "a.csv").write_text("rider,lat,lon\nana,48.8,2.3\nben,48.9,2.4\n")
    pq.write_table(pa.table({**TABLE, "note": [b"x", b"y"]}), tmp_path / "bytes.parquet")
    pq.write_table(pa.table({**TABLE, "note": ["x\ty", "z"]}), tmp_path / "tabs.parquet")
    pq.write_table(pa.table({**TABLE, "trip": [1.5, 2.5]}), tmp_path / "floats.parquet")
    points = geopandas.points_from_xy(TABLE["lon"], TABLE["lat"])
    geopandas.GeoDataFrame({"rider": ["ana", "ben"]}, geometry=points, crs=4326).to_file(tmp_path / "a.gpkg")
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("source", "target", "options", "why"),
    [
        ("a.csv", "missing/out.csv", {}, "cannot write"),
        ("a.csv", "folder.csv", {}, "regular file"),
        ("a.csv", "pipe.csv", {}, "regular file"),
        ("a.csv", "/proc/out.csv", {}, "cannot write"),
        ("a.csv", "out.csv", {"rejects": "missing/bad"}, "cannot write"),
        ("a.csv", "out.csv", {"rejects": "folder.csv"}, "regular file"),
        ("a.csv", "out.csv", {"rejects": "pipe.csv"}, "regular file"),
        ("a.csv", "out.parquet", {"spreadsheet_safe": True}, "CSV and TSV"),
        ("a.csv", "out.csv", {"cells": "s2:9"}, "cells must be"),
        ("a.csv", "out.gpx", {"keep": ["rider"]}, "rider"),
        ("a.gpkg", "out.svg", {}, "svg"),
        ("a.gpkg", "out.dxf", {}, "dxf"),
        ("a.gpkg", "out.plt", {}, "plt"),
        ("bytes.parquet", "out.csv", {"keep": ["note"]}, "note"),
        ("floats.parquet", "out.parquet", {"id_column": "trip", "key": KEY}, "whole numbers"),
    ],
)
def test_nothing_is_charged_for_what_cannot_be_written(
    tables: Path, source: str, target: str, options: dict[str, Any], why: str
) -> None:
    before = sorted(path.name for path in tables.iterdir())
    if "rejects" in options:
        options = {**options, "rejects": tables / options["rejects"]}
    with Ledger("sqlite://", budget=1.0) as ledger:
        with pytest.raises(InvalidInputError, match=why):
            obfuscate_file(
                tables / source, tables / target, epsilon=0.01, ledger=ledger, person="rider", **options
            )
        assert ledger.history("ana") == []
    assert sorted(path.name for path in tables.iterdir()) == before


@pytest.mark.parametrize(
    ("source", "target", "keep"),
    [
        ("a.gpkg", "out.gpkg", []),
        ("a.gpkg", "out.shp", ["rider"]),
        ("bytes.parquet", "out.ndjson", []),
        ("tabs.parquet", "out.csv", ["note"]),
    ],
)
def test_what_can_be_written_is_charged_once(tables: Path, source: str, target: str, keep: list[str]) -> None:
    with Ledger("sqlite://", budget=1.0) as ledger:
        obfuscate_file(tables / source, tables / target, epsilon=0.01, ledger=ledger, person="rider", keep=keep)
        assert ledger.spent("ana") == 0.01
    assert (tables / target).exists()


def test_rejects_never_go_to_standard_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("lat,lon\n91,2\n1,2\n")
    for target in ("-", tmp_path / "out.csv"):
        with pytest.raises(InvalidInputError, match="`rejects=` holds true places"):
            obfuscate_file(tmp_path / "a.csv", target, epsilon=0.01, person=EACH_ROW, rejects="-")
    assert capfd.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("name", ["budgets.sqlite", "budgets.sqlite-wal", "key", "linked"])
def test_neither_key_nor_ledger_is_written_over(tables: Path, name: str) -> None:
    file = tables / "budgets.sqlite"
    key = Key.new_file(tables / "key")
    with Ledger(f"sqlite:///{file}", budget=1.0) as ledger:
        os.link(file, tables / "linked")
        before = file.read_bytes(), key.read()
        options: dict[str, Any] = {"ledger": ledger, "person": "rider", "epsilon": 0.01, "key": key}
        tried: list[tuple[Path, dict[str, Any]]] = [
            (tables / "out.csv", {"rejects": tables / name}),
            (tables / name, {"reading": Reading(format="csv")}),
        ]
        for target, more in tried:
            with pytest.raises(InvalidInputError, match="would be overwritten"):
                obfuscate_file(tables / "a.csv", target, **options, **more)
        assert (file.read_bytes(), key.read()) == before
        assert ledger.history("ana") == []


def test_no_record_is_written_over_a_key(tables: Path) -> None:
    key = Key.new_file(tables / "out.csv.geoind.json")
    with pytest.raises(InvalidInputError, match="would be overwritten"):
        obfuscate_file(tables / "a.csv", tables / "out.csv", epsilon=0.01, key=key, person="rider")
    assert key.read()


def test_standard_input_is_no_persons_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"lat,lon\n1,2\n")))
    with pytest.raises(InvalidInputError, match="EACH_FILE"):
        obfuscate_file("-", tmp_path / "out.csv", epsilon=0.01, person=EACH_FILE)


@pytest.mark.parametrize("suffix", ["csv", "ndjson", "parquet"])
@pytest.mark.parametrize("keep", [[], ["name"]])
def test_reports_are_written_as_the_cells_that_contain_them(tmp_path: Path, suffix: str, keep: list[str]) -> None:
    source, target = tmp_path / "in.csv", tmp_path / f"out.{suffix}"
    source.write_text(
        "name,lat,lon\n" + "".join(f"n{row},{48 + row % 5 / 9},{2 + row % 7 / 9}\n" for row in range(30))
    )
    done = obfuscate_file(source, target, epsilon=0.01, person=EACH_ROW, keep=keep, cells="geohash:6")
    assert "centre of its cell (geohash:6)" in str(done)
    if suffix == "csv":
        table = pd.read_csv(target)
    else:
        table = pd.read_parquet(target) if suffix == "parquet" else pd.read_json(target, lines=True)
    assert set(table) == {*keep, "lat", "lon", "cell"}
    assert cell_names(table[["lon", "lat"]].to_numpy(), "geohash:6") == table["cell"].tolist()
    assert np.abs(cell_centres(table["cell"].tolist()) - table[["lon", "lat"]].to_numpy()).max() < 1e-5
    inside = suffix == "parquet"
    recorded = pq.read_metadata(target).metadata[b"geoind"] if inside else sidecar_of(target).read_bytes()
    assert ReleaseRecord.from_json(recorded).cells == "geohash:6"


def test_a_bad_row_with_a_value_that_python_does_not_know_is_rejected_with_its_reason(tmp_path: Path) -> None:
    late = pa.array([2**62, 0], pa.timestamp("us"))
    pq.write_table(pa.table({"lon": [2.3, 2.3], "lat": [99.0, 48.8], "at": late}), tmp_path / "in.parquet")
    job: dict[str, Any] = {"person": EACH_ROW, "epsilon": 0.01, "keep": ["at"]}
    with pytest.raises(InvalidInputError, match="row 1: latitude must be between"):
        obfuscate_file(tmp_path / "in.parquet", tmp_path / "out.csv", **job)
    done = obfuscate_file(tmp_path / "in.parquet", tmp_path / "out.csv", rejects=tmp_path / "bad", **job)
    assert (done.reports, done.rejected) == (1, 1)
    assert "latitude must be between" in (tmp_path / "bad").read_text()


def test_a_rejected_geometry_can_be_read_again(tmp_path: Path) -> None:
    street = shapely.LineString([(2.3, 48.8), (2.4, 48.9)])
    points = [shapely.Point(2.3, 48.8), street]
    geopandas.GeoDataFrame({"name": ["a", "b"]}, geometry=points, crs=4326).to_file(tmp_path / "in.geojson")
    out, bad = tmp_path / "out.csv", tmp_path / "bad"
    obfuscate_file(tmp_path / "in.geojson", out, person=EACH_ROW, epsilon=0.01, rejects=bad)
    record = json.loads(json.loads(bad.read_text())["record"])
    assert shapely.from_wkb(record["geometry"]) == street
