import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from geoind import SphericalLaplace
from geoind.cli import main
from geoind.evaluation import synthetic_city
from geoind.tables import ReleaseRecord, sidecar_of

CITY = synthetic_city(16)
MECHANISM = SphericalLaplace(math.log(4) / 200)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reports") / "reports.csv"
    lonlat = MECHANISM.sample(CITY.sample_lonlat(20_000, rng=1), rng=2)
    path.write_text("lon,lat\n" + "".join(f"{lon:.5f},{lat:.5f}\n" for lon, lat in lonlat))
    sidecar_of(path).write_text(ReleaseRecord.of(MECHANISM, unit="column").to_json())
    return path


def masses(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("options", [[], ["--closed"]])
def test_the_recovered_population_is_where_the_people_are(
    reports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    out = tmp_path / "people.csv"
    west, south = CITY.projection.to_lonlat([[-3200, -3200]])[0]
    east, north = CITY.projection.to_lonlat([[3200, 3200]])[0]
    bounds = ["--bounds", *map(str, (west, south, east, north))]
    assert main(["estimate", str(reports), "--grid", "400", *bounds, "--out", str(out), *options]) == 0
    rows = masses(out)
    lonlat = np.array([[float(row["lon"]), float(row["lat"])] for row in rows])
    cells = CITY.grid.nearest(CITY.projection.to_xy(lonlat))
    found = np.bincount(cells, weights=[float(row["mass"]) for row in rows], minlength=256)
    assert 0.5 * np.abs(found - CITY.prior.mass).sum() < 0.2
    printed = capsys.readouterr()
    assert "20,000 reports, 17 x 16 cells of 400 m" in printed.err
    assert printed.out == ""


@pytest.mark.parametrize("bounds", [[], ["--bounds", "179.9", "-17.1", "180.1", "-16.9"]])
def test_people_on_both_sides_of_180_degrees_are_in_one_grid(tmp_path: Path, bounds: list[str]) -> None:
    path, outs = tmp_path / "reports.csv", [tmp_path / "people.csv", tmp_path / "people.geojson"]
    truth = np.where(np.arange(20_000)[:, None] % 4 == 0, (-179.95, -17.0), (179.95, -17.0))
    lines = [f"{lon},{lat}\n" for lon, lat in MECHANISM.sample(truth, rng=1)]
    path.write_text("lon,lat\n" + "".join(lines))
    options = ["--epsilon", str(MECHANISM.epsilon), "--grid", "500", *bounds]
    assert main(["estimate", str(path), *options, *(part for out in outs for part in ("--out", str(out)))]) == 0
    rows = masses(outs[0])
    assert len(rows) < 2500
    assert all(-180 <= float(row["lon"]) <= 180 for row in rows)
    west = sum(float(row["mass"]) for row in rows if -180 <= float(row["lon"]) < -179.9)
    assert west == pytest.approx(0.25, abs=0.02)
    rings = [cell["geometry"]["coordinates"][0] for cell in json.loads(outs[1].read_text())["features"]]
    assert all(max(lon for lon, _ in ring) - min(lon for lon, _ in ring) < 0.01 for ring in rings)


@pytest.mark.slow
def test_several_outputs_with_intervals_over_the_reports_own_bounds(
    reports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["people.geojson", "people.png", "people.html"]
    outs = [part for name in names for part in ("--out", str(tmp_path / name))]
    assert main(["estimate", str(reports), "--grid", "500", "--intervals", "20", "--quiet", *outs]) == 0
    assert capsys.readouterr().err == ""
    cells = json.loads((tmp_path / "people.geojson").read_text())
    assert all(one["properties"]["low"] <= one["properties"]["high"] for one in cells["features"])
    assert (tmp_path / "people.png").stat().st_size > 10_000
    assert "data:image/png" in (tmp_path / "people.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--grid", "100", "--out", "people.tiff"], "must end in one of"),
        (["--grid", "0", "--out", "people.csv"], "--grid must be positive"),
        (["--grid", "0.5", "--out", "people.csv"], "larger cells"),
        (["--grid", "100", "--out", "people.csv", "--bounds", "3", "48", "2", "49"], "WEST < EAST"),
        (
            ["--grid", "100", "--out", "people.csv", "--bounds", "5", "48", "5.1", "48.1"],
            "20,000 of 20,000 reports are too far away",
        ),
        (["--grid", "400", "--out", "people.csv", "--intervals", "3"], "--intervals must be at least 11, got 3"),
        (["--grid", "400", "--out", "people.csv", "--intervals", "0"], "--intervals must be a positive whole"),
        (["--grid", "400", "--out", "nowhere/people.csv"], "in a folder that exists"),
        (["--grid", "400", "--out", "people.csv", "--epsilon", "0.5"], "as its record says, not 0.5"),
    ],
)
def test_an_error_is_one_sentence(
    reports: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["estimate", str(reports), *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_promise_of_reports_that_an_estimate_replaces_goes_with_them(reports: Path, tmp_path: Path) -> None:
    out = tmp_path / "cells.csv"
    sidecar_of(out).write_text(sidecar_of(reports).read_text())
    run = ["estimate", str(reports), "--grid", "1000", "--quiet", "--out", str(out)]
    assert main(run) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["cells.csv"]
    assert sidecar_of(reports).exists()


def test_a_file_without_a_promise_needs_an_epsilon(
    reports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare.csv"
    bare.write_text(reports.read_text())
    out = ["--grid", "800", "--out", str(tmp_path / "people.csv")]
    assert main(["estimate", str(bare), *out]) == 2
    assert "give --epsilon" in capsys.readouterr().err
    assert main(["estimate", str(bare), *out, "--epsilon", "0.0069"]) == 0
