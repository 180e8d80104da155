"""`geoind optimal --bounds` makes a mechanism from public places; `geoind obfuscate --mechanism` draws from it."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import shapely

from geoind import Channel, Prior, Projected, Projection, planar_geometric
from geoind.channels import Interpolated
from geoind.cli import main
from geoind.files import load_mechanism, save_mechanism
from geoind.space.sites import Grid

BOUNDS = ["--bounds", "2.34", "48.855", "2.36", "48.865"]
OPTIMAL = ["optimal", *BOUNDS, "--cell", "300", "--factor", "4", "--radius", "200", "--gap", "0.02"]
EPSILON = np.log(4) / 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with places and the mechanism for them."""
    folder = tmp_path_factory.mktemp("city")
    rng = np.random.default_rng(1)
    lon, lat = np.concatenate([2.35, 48.86] + [0.003, 0.001] * rng.standard_normal((400, 2))).reshape(-1, 2).T
    pd.DataFrame({"lat": [*lat, 40.0], "lon": [*lon, -74.0]}).to_csv(folder / "places.csv", index=False)
    arguments = ["--prior", str(folder / "places.csv"), "--out", str(folder / "city.parquet")]
    assert main([*OPTIMAL, *arguments]) == 0
    people = {"rider": ["ana", "ben", "ana", "eve"], "fare": [4, 5, 7, 9]}
    places = {"lat": [48.8571, 48.8602, 48.8611, 40.0], "lon": [2.3512, 2.3403, 2.3561, -74.0]}
    pd.DataFrame(people | places).to_csv(folder / "all.csv", index=False)
    pd.DataFrame(people | places).head(3).to_csv(folder / "trips.csv", index=False)
    many = pd.DataFrame(people | places).head(3).sample(60, replace=True, random_state=2)
    many.assign(rider=range(60), fare=range(60)).to_csv(folder / "many.csv", index=False)
    return folder


def obfuscate(folder: Path, *arguments: str, source: str = "trips.csv") -> int:
    options = ["--person", "rider", "--order", "keep", "--mechanism", str(folder / "city.parquet"), *arguments]
    return main(["obfuscate", str(folder / source), str(folder / "out.csv"), *options])


def test_the_mechanism_keeps_the_promise_within_the_bounds_and_is_made_for_the_places(folder: Path) -> None:
    places = pd.read_csv(folder / "places.csv")[["lon", "lat"]].to_numpy()[:-1]
    city = load_mechanism(folder / "city.parquet")
    assert isinstance(city, Projected)
    assert isinstance(city.mechanism, Interpolated)
    assert city.domain == shapely.box(2.34, 48.855, 2.36, 48.865)
    assert 0.99 * EPSILON < city.epsilon <= EPSILON
    grid, sites = city.mechanism.channel.outputs, city.mechanism.channel.inputs
    assert isinstance(grid, Grid)
    assert isinstance(sites, Grid)
    assert grid.cell == 300
    # Sites between the cells, at which the interpolation may turn.
    assert EPSILON * sites.cell < 0.5
    assert (sites.xy[[0, -1]] == grid.xy[[0, -1]]).all()
    prior = Prior.from_lonlat(grid, places, projection=city.projection, outside="drop")
    load_mechanism(folder / "city.parquet", prior=prior)


def test_places_beyond_the_bounds_do_not_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--prior", str(folder / "places.csv"), "--out", str(folder / "again.parquet")]
    assert main([*OPTIMAL, *arguments]) == 0
    printed = capsys.readouterr()
    number = int(re.findall(r"(\d+) places within the bounds", printed.err)[0])
    places = pd.read_csv(folder / "places.csv")
    assert number == (places.lat.between(48.855, 48.865) & places.lon.between(2.34, 2.36)).sum() < len(places)
    assert "per metre between any two places, measured" in printed.out


def test_a_mechanism_for_a_device_keeps_the_promise_and_is_one_for_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    device = folder / "city.json"
    assert main([*OPTIMAL, "--out", str(device)]) == 0
    assert 0.5 * EPSILON < load_mechanism(device).epsilon <= EPSILON
    assert obfuscate(folder, "--mechanism", str(device)) == 0
    device.unlink()
    # Nothing is solved that could not be saved.
    assert main([*OPTIMAL, "--cell", "10", "--out", str(device)]) == 2
    assert "a matrix for a device may have" in capsys.readouterr().err
    assert not device.exists()


def test_without_places_the_prior_is_uniform(folder: Path) -> None:
    assert main([*OPTIMAL, "--out", str(folder / "uniform.parquet")]) == 0
    city = load_mechanism(folder / "uniform.parquet")
    assert isinstance(city, Projected)
    assert isinstance(city.mechanism, Interpolated)
    load_mechanism(folder / "uniform.parquet", prior=Prior.uniform(city.mechanism.channel.outputs))


def test_reports_are_outputs_of_the_mechanism_and_the_record_names_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert obfuscate(folder, "--keep", "fare") == 0
    reports = pd.read_csv(folder / "out.csv")
    assert reports.fare.tolist() == [4, 5, 7]
    city = load_mechanism(folder / "city.parquet")
    assert isinstance(city, Projected)
    assert isinstance(city.mechanism, Interpolated)
    sites = city.projection.to_lonlat(city.mechanism.channel.outputs.xy)
    apart = np.abs(reports[["lon", "lat"]].to_numpy()[:, None] - sites).max(axis=2).min(axis=1)
    assert apart.max() < 1e-5
    record = json.loads((folder / "out.csv.geoind.json").read_text())
    assert record["mechanism"] == "Projected(Interpolated)"
    assert record["epsilon"] == city.epsilon
    said = capsys.readouterr().err
    assert f"3 reports, epsilon {city.epsilon:.6g} per metre" in said
    assert f"busiest has 2 reports, epsilon {2 * city.epsilon:.4g}" in said


def test_a_place_outside_is_an_error_or_a_reject(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert obfuscate(folder, source="all.csv") == 2
    error = capsys.readouterr().err
    assert "outside the domain of the mechanism" in error
    assert "40" not in error
    assert obfuscate(folder, "--rejects", str(folder / "bad.csv"), source="all.csv") == 0
    assert len(pd.read_csv(folder / "out.csv")) == 3
    assert "eve" in (folder / "bad.csv").read_text()


def test_a_key_repeats_the_reports_of_a_record_and_another_key_does_not(folder: Path) -> None:
    texts = []
    # Three reports under another key may be the same by chance.
    for number in (1, 1, 2, 3, 4):
        (folder / "key").write_bytes(bytes([number] * 32))
        (folder / "key").chmod(0o600)
        keyed = ["--key-file", str(folder / "key"), "--id", "fare", "--keep", "fare"]
        assert obfuscate(folder, *keyed, source="many.csv") == 0
        texts.append((folder / "out.csv").read_text())
    assert texts[0] == texts[1]
    assert len({*texts}) > 2


def test_a_ledger_is_charged_with_the_measured_epsilon(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paid = ["--ledger", f"sqlite:///{folder / 'budgets.db'}", "--budget", str(2 * EPSILON)]
    (folder / "out.csv").unlink(missing_ok=True)
    assert obfuscate(folder, *paid) == 0
    (folder / "out.csv").unlink()
    # Ana has spent two reports, and Ben one.
    assert obfuscate(folder, *paid, "--job", "again") == 2
    assert "ana" in capsys.readouterr().err


@pytest.mark.slow
def test_a_folder_of_files_is_drawn_by_several_processes(folder: Path) -> None:
    day = folder / "days"
    day.mkdir()
    for name in ("monday", "tuesday"):
        (day / f"{name}.csv").write_text((folder / "trips.csv").read_text())
    arguments = ["--person", "rider", "--order", "keep", "--mechanism", str(folder / "city.parquet")]
    assert main(["obfuscate", str(day), str(folder / "reports"), *arguments, "--workers", "2"]) == 0
    assert len(pd.read_csv(folder / "reports" / "monday.csv")) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "0.01"], "not several of them"),
        (["--same-place"], "--same-place needs --epsilon"),
        (
            ["--little-noise", "--mechanism", "nowhere.parquet"],
            "--mechanism must be best, laplace, gaussian or a file",
        ),
        (["--mechanism", "trips.csv"], "--mechanism must be best, laplace, gaussian or a file"),
        (["--mechanism", "laplace"], "--mechanism needs --delta"),
    ],
)
def test_what_does_not_go_with_a_file_is_one_sentence(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert obfuscate(folder, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_level_with_delta_is_checked_against_the_mechanism_and_recorded(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    city = load_mechanism(folder / "city.parquet")
    enough, less = (f"{share * 200 * city.epsilon:.6f}" for share in (2.01, 1.5))
    promise = ["--radius", "200", "--delta", "1e-6", "--reports", "2", "--level"]
    assert obfuscate(folder, *promise, enough) == 0
    record = json.loads((folder / "out.csv.geoind.json").read_text())
    stated = {name: record[name] for name in ("level", "radius", "delta", "reports")}
    assert stated == {"level": float(enough), "radius": 200, "delta": 1e-6, "reports": 2}
    capsys.readouterr()
    assert obfuscate(folder, *promise, less) == 2
    assert "the delta of 2 reports of this mechanism at this level within 200 m is" in capsys.readouterr().err


def test_a_level_of_a_channel_between_sites_is_that_of_all_places(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two places a metre apart may be moved to sites that are a cell apart."""
    channel = planar_geometric(Grid(-600, -600, cell=300, columns=5, rows=5), epsilon=0.002)
    save_mechanism(folder / "sites.parquet", Projected(channel, Projection(2.35, 48.86)))
    options = ["--mechanism", str(folder / "sites.parquet"), "--radius", "50", "--delta", "1e-6"]
    assert obfuscate(folder, *options, "--level", "0.11") == 2
    assert "more than 1e-06" in capsys.readouterr().err
    assert obfuscate(folder, *options, "--level", "2", "--reports-per-person", "1") == 0
    record = json.loads((folder / "out.csv.geoind.json").read_text())
    assert record["busiest"]["level"] == pytest.approx(record["epsilon"] * 50 + record["off_site_level"])


GRID = Grid(-600, -600, cell=50, columns=25, rows=25)


@pytest.mark.parametrize(
    "channel", [planar_geometric(GRID, epsilon=0.05), Channel.deterministic(GRID, GRID, np.arange(625))]
)
def test_a_file_with_hardly_any_noise_or_none_needs_consent(
    folder: Path, channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    save_mechanism(folder / "none.parquet", Projected(Interpolated(channel), Projection(2.35, 48.86)))
    arguments = ["--mechanism", str(folder / "none.parquet"), "--reports-per-person", "1"]
    assert obfuscate(folder, *arguments) == 2
    assert "--little-noise allows it" in capsys.readouterr().err
    assert obfuscate(folder, *arguments, "--little-noise") == 0


def test_a_session_needs_noise_on_the_globe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(folder / "city.parquet")
    arguments = ["obfuscate", str(folder / "trips.csv"), str(folder / "no.csv"), "--trace", "rider,fare"]
    assert main([*arguments, "--mechanism", file]) == 2
    assert "a session needs noise on the globe" in capsys.readouterr().err


def test_a_channel_between_sites_of_a_plane_takes_no_degrees(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plane = ["--columns", "2", "--rows", "2", "--cell", "100", "--epsilon", "0.01"]
    assert main(["optimal", *plane, "--out", str(folder / "plane.parquet")]) == 0
    assert obfuscate(folder, "--mechanism", str(folder / "plane.parquet")) == 2
    assert "is a channel between places in metres" in capsys.readouterr().err


def test_a_saved_mechanism_is_audited_against_its_own_promise_or_another(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    city = ["audit", str(folder / "city.parquet"), "--draws", "4000"]
    assert main(city) == 0
    assert "promise of 0.0069" in capsys.readouterr().out
    assert main([*city, "--epsilon", "0.0065"]) == 0
    assert "promise of 0.0065 per metre" in capsys.readouterr().out
    assert main([*city, "--place", "0", "0"]) == 2
    assert main(["audit", str(folder / "trips.csv")]) == 2
    assert "is not a mechanism saved by geoind" in capsys.readouterr().err


def test_a_file_does_not_replace_a_mechanism_of_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plane").write_text("")
    assert main(["audit", "plane", "--epsilon", "0.01", "--draws", "2000"]) == 0
    assert "promise of 0.01 per metre" in capsys.readouterr().out
