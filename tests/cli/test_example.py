import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from geoind import SphericalLaplace
from geoind.cli import main
from geoind.mechanisms import snap_lonlat
from geoind.tables import read_promise


def columns(path: Path) -> np.ndarray:
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=(2, 1))


def test_the_example_writes_reports_a_promise_and_a_map_and_prints_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a" / "b"
    assert main(["example", "--out", str(folder), "--people", "300"]) == 0
    out = capsys.readouterr().out
    assert sorted(path.name for path in folder.iterdir()) == [
        "map.html",
        "reports.csv",
        "reports.csv.geoind.json",
        "truth.csv",
    ]
    for path in folder.iterdir():
        assert str(path) in out
    truth, reports = columns(folder / "truth.csv"), columns(folder / "reports.csv")
    assert truth.shape == reports.shape == (300, 2)
    assert (snap_lonlat(reports) == reports).all()
    promise = read_promise(folder / "reports.csv")
    assert promise.radius == 200
    printed = re.search(r"on average +([\d.]+) m +([\d.]+) m", out)
    assert printed
    measured, expected = map(float, printed.groups())
    assert expected == pytest.approx(SphericalLaplace(promise.epsilon).mean_radius, abs=0.05)
    # Fresh noise of 300 people: its mean is within 6 standard deviations.
    assert measured == pytest.approx(expected, rel=6 * np.sqrt(0.5 / 300))


def test_the_city_is_the_same_at_every_run_and_the_noise_is_not(tmp_path: Path) -> None:
    for _ in range(2):
        assert main(["example", "--out", str(tmp_path), "--people", "20", "--epsilon", "0.01"]) == 0
        truth, reports = columns(tmp_path / "truth.csv"), columns(tmp_path / "reports.csv")
        assert main(["example", "--out", str(tmp_path), "--people", "20", "--epsilon", "0.01"]) == 0
        assert (columns(tmp_path / "truth.csv") == truth).all()
        assert (columns(tmp_path / "reports.csv") != reports).any()


def test_the_map_opens_without_a_network(tmp_path: Path, watched: Page) -> None:
    assert main(["example", "--out", str(tmp_path), "--people", "20"]) == 0
    watched.goto((tmp_path / "map.html").as_uri())
    watched.get_by_text("from true location to report, for").wait_for()
    assert watched.locator("canvas.leaflet-zoom-animated").count() == 1
    picture = watched.locator("img.leaflet-image-layer").get_attribute("src")
    assert picture is not None
    assert picture.startswith("data:image/png")


@pytest.mark.parametrize("people", ["0", "-1", "10000000000"])
def test_a_city_needs_people_and_not_too_many(
    tmp_path: Path, people: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["example", "--out", str(tmp_path / "o"), "--people", people]) == 2
    assert "--people must be from 1 to 1,000,000" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("name", ["truth.csv", "reports.csv", "reports.csv.geoind.json", "map.html"])
def test_only_files_of_an_earlier_example_are_overwritten(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(b"precious \xff\n\n")
    assert main(["example", "--out", str(tmp_path), "--people", "20"]) == 2
    assert f"{name} exists" in capsys.readouterr().err
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"precious \xff\n\n"]


def test_a_changed_file_of_people_is_not_overwritten(tmp_path: Path) -> None:
    run = ["example", "--out", str(tmp_path), "--people"]
    assert main([*run, "20"]) == 0
    assert main([*run, "30"]) == 0
    own = "person,lat,lon\n1,48.858400,2.294500\n"
    (tmp_path / "truth.csv").write_text(own)
    assert main([*run, "20"]) == 2
    assert (tmp_path / "truth.csv").read_text() == own
