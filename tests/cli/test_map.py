"""`geoind map`: a page of any file of reports, which says what was promised, or that nothing was."""

from pathlib import Path

import geopandas
import pytest
from axe_playwright_python.sync_playwright import Axe
from markupsafe import escape
from playwright.sync_api import Page, expect

from geoind import SphericalLaplace
from geoind.cli import main
from geoind.tables import ReleaseRecord, sidecar_of
from tests.hostile import FILE_NAMES
from tests.maps.test_report_page import write


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.csv", "lat,lon\n", "no locations to draw"),
        ("names.csv", "a,b\n1,2\n", "name the column with --lon COLUMN"),
        ("wrong.parquet", "no", "cannot be read"),
        ("wrong.gpkg", "no", "does not begin like a .gpkg file"),
        ("bad.csv", "lat,lon\n91,2\n", "latitude"),
        ("bad.ndjson", "{", "a JSON object per line"),
    ],
)
def test_a_file_that_cannot_be_drawn_gets_a_sentence_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str, sentence: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    out = tmp_path / "map.html"
    assert main(["map", str(path), "--out", str(out)]) == 2
    assert sentence in capsys.readouterr().err
    assert not out.exists()


def test_a_missing_input_and_an_overwritten_one_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["map", str(tmp_path / "none.csv")]) == 2
    assert "no such file" in capsys.readouterr().err
    path = write(tmp_path / "plain.csv")
    assert main(["map", str(path), "--out", str(path)]) == 2
    assert "overwrite" in capsys.readouterr().err


def test_a_sanitised_file_becomes_a_page_that_says_what_was_promised(
    watched: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = write(tmp_path / "truth.csv")
    reports, out = tmp_path / "reports.csv", tmp_path / "map.html"
    assert (
        main(["obfuscate", str(truth), str(reports), "--person", "id", "--level", "ln4", "--radius", "200"]) == 0
    )
    town = tmp_path / "town.geojson"
    geopandas.GeoDataFrame(
        geometry=geopandas.points_from_xy([24.94], [60.17]).buffer(0.002), crs="EPSG:4326"
    ).to_file(town)
    assert main(["map", str(reports), "--out", str(out), "--basemap", str(town)]) == 0
    assert "Warning" not in capsys.readouterr().err
    watched.goto(out.as_uri())
    expect(watched).to_have_title("Reports of reports.csv")
    expect(watched.get_by_text("3 reports")).to_contain_text("within 692 m of the true location")
    expect(watched.get_by_text("3 reports")).to_contain_text("between two places by a factor of 4 at most")
    expect(watched.get_by_text("3 reports")).to_contain_text(
        "3 persons; the busiest has 1 report, epsilon 0.006931"
    )
    expect(watched.get_by_text("3 reports")).to_contain_text("The median person has 1 report")
    expect(watched.locator("canvas.leaflet-zoom-animated").first).to_be_visible()


def test_the_page_of_a_file_without_a_promise_warns_that_its_locations_are_true(
    watched: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write(tmp_path / "plain.parquet"), tmp_path / "map.html"
    assert main(["map", str(path), "--out", str(out)]) == 0
    assert "shown as true locations" in capsys.readouterr().err
    watched.goto(out.as_uri())
    expect(watched.get_by_role("alert")).to_contain_text("These are true locations")
    expect(watched.get_by_text("3 true locations")).to_be_visible()
    expect(watched.locator("html")).to_have_attribute("lang", "en")
    # On a phone the legend leaves the map to the reports, and folds away.
    watched.set_viewport_size({"width": 390, "height": 844})
    legend = watched.locator("details.legend").bounding_box()
    assert legend is not None
    assert legend["x"] >= 50
    assert legend["x"] + legend["width"] <= 390
    assert legend["height"] < 200
    warning, scale = (
        watched.locator(which).bounding_box() for which in (".unprotected", ".leaflet-control-scale")
    )
    assert warning is not None
    assert scale is not None
    assert warning["y"] + warning["height"] <= scale["y"]
    watched.locator("details.legend summary").click()
    folded = watched.locator("details.legend").bounding_box()
    assert folded is not None
    assert folded["height"] < legend["height"] - 10
    rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa"]}}
    assert Axe().run(watched, options=rules).response["violations"] == []


def test_the_page_of_reports_does_not_warn(tmp_path: Path) -> None:
    truth, reports, out = write(tmp_path / "truth.csv"), tmp_path / "reports.csv", tmp_path / "map.html"
    assert main(["obfuscate", str(truth), str(reports), "--each-row-a-person", "--epsilon", "0.01"]) == 0
    assert main(["map", str(reports), "--out", str(out)]) == 0
    assert "true locations" not in out.read_text()
    assert "No person has two rows, as declared." in out.read_text()


@pytest.mark.parametrize("epsilon", [10.0, 1000.0, 1e12])
def test_a_release_with_a_large_epsilon_has_a_page(tmp_path: Path, epsilon: float) -> None:
    reports, out = write(tmp_path / "reports.csv"), tmp_path / "map.html"
    sidecar_of(reports).write_text(ReleaseRecord.of(SphericalLaplace(epsilon), unit="column").to_json())
    assert main(["map", str(reports), "--out", str(out)]) == 0
    assert f"ε = {epsilon:.4g} per metre for each report" in out.read_text()


def test_several_files_are_one_map_that_says_the_weakest_of_their_promises(tmp_path: Path) -> None:
    truth, out = write(tmp_path / "truth.csv"), tmp_path / "map.html"
    for name, epsilon in (("strong", "0.001"), ("weak", "0.02")):
        run = ["obfuscate", str(truth), str(tmp_path / f"{name}.csv"), "--epsilon", epsilon]
        assert main([*run, "--each-row-a-person"]) == 0
    files = [str(tmp_path / f"{name}.csv") for name in ("weak", "strong")]
    for sources in (files, files[::-1]):
        assert main(["map", *sources, "--out", str(out)]) == 0
        page = out.read_text()
        assert "<title>Reports of 2 files</title>" in page
        assert "6 reports" in page
        assert "ε = 0.02 per metre" in page
        assert "ε = 0.001 per metre" not in page
        assert "2 releases: the reports of a person in all of them add up." in page
        assert "as declared" not in page
    assert main(["map", files[0], str(truth), "--out", str(out)]) == 0
    assert "These are true locations" in out.read_text()


def test_standard_input_promises_nothing_and_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["map", "-", "--format", "csv", "--out", str(tmp_path / "map.html")]) == 2
    said = capsys.readouterr().err
    assert said == "geoind: a map needs a file with a release record: standard input has none\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", FILE_NAMES, ids=ascii)
def test_names_of_files_are_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    path, out = write(tmp_path / f"{name}.csv"), tmp_path / "map.html"
    assert main(["map", str(path), "--out", str(out)]) == 0
    page = out.read_text(encoding="utf-8")
    assert f"<title>{escape(path.name)}</title>".encode("utf-8", "replace").decode() in page
    assert {found.suffix for found in tmp_path.iterdir()} == {".csv", ".html"}
