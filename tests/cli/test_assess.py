"""`geoind assess`: from two files to a statement, with exit codes, errors before anything is written, a page."""

import json
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from geoind.cli import main
from geoind.tables import sidecar_of
from tests.audits.test_assessment import town
from tests.hostile import FILE_NAMES

NOISE = ("--factor", "4", "--radius", "200", "--order", "keep")


def write_truth(path: Path, persons: int = 30) -> Path:
    truth, person, time = town(persons, rows=6)
    rows = zip(truth.tolist(), person.tolist(), time.tolist(), strict=True)
    lines = [f"t{n},rider {who},{when:.0f},{lon},{lat}" for n, ((lon, lat), who, when) in enumerate(rows)]
    path.write_text("\n".join(["trip,rider,started,lon,lat", *lines, ""]))
    return path


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    truth, reports = write_truth(tmp_path / "truth.csv"), tmp_path / "reports.csv"
    assert run("obfuscate", truth, reports, "--person", "rider", "--keep", "trip,started", "--quiet", *NOISE) == 0
    return truth, reports


def test_a_release_becomes_a_statement_in_three_formats(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outs = [tmp_path / f"statement{suffix}" for suffix in (".html", ".md", ".json")]
    more = [part for out in outs for part in ("--out", out)]
    rules = ("--fail-if", "nearest > 0.99", "--fail-if", "few >= 2")
    assert run("assess", *files, "--person", "rider", "--time", "started", "--sample", 20, *rules, *more) == 0
    assert "passed: fail if nearest > 0.99" in capsys.readouterr().err
    content = json.loads(outs[2].read_text())
    assert (content["rows"], content["reports"], content["persons"]) == (180, 180, 30)
    assert [promised["reports"] for promised in content["promised"]] == [1, 6, 6]
    assert "trace adversary" in outs[1].read_text()
    for out in outs:
        text = out.read_text()
        assert "rider 7" not in text
        # Longitudes and latitudes of the truth have six decimals.
        assert not any(str(value) in text for value in town(30, rows=6)[0].ravel().tolist())


def test_the_statement_says_whether_a_key_was_given(tmp_path: Path) -> None:
    truth, key = write_truth(tmp_path / "truth.csv"), tmp_path / "noise.key"
    key.write_text("0f" * 32)
    key.chmod(0o600)
    outs = [tmp_path / "statement.md", tmp_path / "statement.json"]
    for more, said, sentence in (
        (["--key-file", key], "given", "given by the owner of the data; it can undo the noise"),
        ([], "discarded", "none: made for this release, and discarded"),
    ):
        reports = tmp_path / f"{said}.csv"
        assert run("obfuscate", truth, reports, "--person", "rider", "--quiet", *more, *NOISE) == 0
        assert run("assess", reports, "--out", outs[0], "--out", outs[1]) == 0
        assert sentence in outs[0].read_text()
        assert json.loads(outs[1].read_text())["key"] == said
        assert "0f0f" not in outs[0].read_text() + sidecar_of(reports).read_text()
    record = json.loads(sidecar_of(reports).read_text())
    del record["key"]
    sidecar_of(reports).write_text(json.dumps(record))
    assert run("assess", reports, "--out", outs[0]) == 0
    assert "not in the record" in outs[0].read_text()


def test_a_rule_that_holds_is_exit_code_1(files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "statement.md"
    command = (
        "assess",
        *files,
        "--person",
        "rider",
        "--out",
        out,
        "--sample",
        10,
        "--fail-if",
        "unique1_before > 0.01",
    )
    assert run(*command) == 1
    assert "FAILED" in out.read_text()


def test_a_bounded_release_needs_the_id_and_is_matched_by_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth, reports, out = write_truth(tmp_path / "truth.csv"), tmp_path / "reports.csv", tmp_path / "s.json"
    limits = ("--reports-per-person", 2, "--keep", "trip", "--quiet")
    assert run("obfuscate", truth, reports, "--person", "rider", *limits, *NOISE) == 0
    command = ("assess", truth, reports, "--person", "rider", "--out", out, "--sample", 10)
    assert run(*command) == 2
    assert "name it here with --id COLUMN" in capsys.readouterr().err
    assert not out.exists()
    assert run(*command, "--id", "trip") == 0
    content = json.loads(out.read_text())
    assert (content["rows"], content["reports"]) == (180, 60)
    assert content["distances"][0]["measured"] < 400
    assert run(*command, "--id", "rider") == 2
    assert "column 'rider'" in capsys.readouterr().err


def test_shuffled_rows_are_an_error_without_the_id(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *lines = files[1].read_text().splitlines()
    np.random.default_rng(1).shuffle(lines)
    files[1].write_text("\n".join([head, *lines, ""]))
    command = ("assess", *files, "--person", "rider", "--out", tmp_path / "s.md", "--sample", 10)
    assert run(*command) == 2
    said = capsys.readouterr().err
    assert "do not match" in said
    assert "give --id COLUMN" in said
    assert run(*command, "--id", "trip") == 0


def test_other_formats_and_a_population_are_read(tmp_path: Path) -> None:
    truth, reports = write_truth(tmp_path / "truth.csv"), tmp_path / "reports.parquet"
    assert run("obfuscate", truth, reports, "--each-row-a-person", "--quiet", *NOISE) == 0
    people, out = tmp_path / "people.geojson", tmp_path / "s.json"
    feature = {
        "type": "Feature",
        "properties": {"people": 900},
        "geometry": {"type": "Point", "coordinates": [2.33, 48.86]},
    }
    people.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    command = (
        "assess",
        truth,
        reports,
        "--out",
        out,
        "--sample",
        10,
        "--population",
        people,
        "--weight",
        "people",
    )
    assert run(*command) == 0
    assert json.loads(out.read_text())["sharing"]["whose"] == "people of the population file"


def test_the_reports_alone_state_the_record(files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "s.md"
    assert run("assess", files[1], "--out", out) == 0
    assert "they need the true locations" in out.read_text()
    assert run("assess", files[1], "--out", out, "--fail-if", "busiest_reports > 5") == 1


def test_a_trace_is_attacked_by_the_adversary_of_its_session(tmp_path: Path) -> None:
    truth, reports, out = write_truth(tmp_path / "truth.csv"), tmp_path / "reports.csv", tmp_path / "s.md"
    assert run("obfuscate", truth, reports, "--trace", "rider,started", "--epsilon", 0.01, "--quiet") == 0
    command = ("assess", truth, reports, "--person", "rider", "--time", "started", "--out", out, "--sample", 12)
    assert run(*command) == 0
    text = out.read_text()
    assert "home found by the trace adversary at night" in text
    assert "Not run: the Bayesian attack on one report" in text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["--fail-if", "privacy > 1"], "no measure 'privacy'"),
        (["--fail-if", "unique4"], "a rule must be"),
        (["--out", "statement.pdf"], "must end in .html, .htm, .md, .json"),
        (["--distance", "here"], "NAME=METRES"),
        (["--distance", "here=-4"], "positive"),
        (["--time", "clock"], "no column 'clock'"),
        (["--person", "unknown"], "no column 'unknown'"),
        (["--id", "fare"], "no column 'fare'"),
        (["--weight", "people"], "--weight needs --population"),
        (["--population", "people.asc"], "no such file: 'people.asc'"),
        (["--k", "31"], "fewer than k = 31"),
        (["--time", "rider"], "the time must be"),
    ],
)
def test_bad_options_are_a_sentence_and_nothing_is_written(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[str], sentence: str
) -> None:
    out = tmp_path / "statement.html"
    usual = ["--person", "rider", "--out", out, "--sample", 10]
    assert run("assess", *files, *usual, *change) == 2
    assert sentence in capsys.readouterr().err
    assert not out.exists()


def test_bad_files_are_a_sentence_and_nothing_is_written(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth, reports = files
    out = tmp_path / "statement.html"
    empty, plain, raster = tmp_path / "empty.csv", tmp_path / "plain.csv", tmp_path / "people.tif"
    empty.write_text("trip,rider,started,lon,lat\n")
    plain.write_text(truth.read_text())
    raster.write_bytes(b"II*\0")
    one = tmp_path / "one.csv"
    one.write_text("\n".join(truth.read_text().splitlines()[:2]))
    cases = {
        (truth, plain): "has no release record",
        (empty, reports): "there are no rows",
        (one, reports): "1 rows and the reports have 180",
        (truth, tmp_path / "none.csv"): "no such file",
        (truth, reports, reports): "not 3 files",
        (truth, reports, "--population", raster): "GDAL cannot read 'people.tif' as GTiff",
    }
    for case, sentence in cases.items():
        assert run("assess", *case, "--person", "rider", "--out", out) == 2
        assert sentence in capsys.readouterr().err
        assert not out.exists()
    assert run("assess", truth, reports, "--out", out) == 2
    assert "name it with --person COLUMN" in capsys.readouterr().err
    assert (
        run("assess", truth, reports, "--person", "rider", "--out", reports.with_suffix(".md"), "--out", truth)
        == 2
    )
    sidecar_of(reports).write_text("{}")
    assert run("assess", truth, reports, "--person", "rider", "--out", out) == 2


def test_hostile_names_are_shown_and_do_nothing(tmp_path: Path) -> None:
    column = "<img src=x onerror=alert(1)>|`{{7*7}}`"
    name = next(name for name in FILE_NAMES if "<" in name)
    truth = write_truth(tmp_path / "truth.csv")
    truth.write_text(truth.read_text().replace("trip,", f'"{column}",', 1))
    reports = tmp_path / f"{name}.csv"
    assert run("obfuscate", truth, reports, "--person", "rider", "--keep", f'"{column}"', "--quiet", *NOISE) == 0
    outs = [tmp_path / "s.html", tmp_path / "s.md", tmp_path / "s.json"]
    more = [part for out in outs for part in ("--out", out)]
    assert (
        run("assess", truth, reports, "--person", "rider", "--sample", 10, *more, "--distance", f"{column}=5") == 0
    )
    page, markdown = outs[0].read_text(), outs[1].read_text()
    assert "<img" not in page
    assert "49" not in markdown.split("Columns kept")[1].split("\n")[0]
    assert "\\<img" in markdown
    assert column in json.loads(outs[2].read_text())["kept"]


def test_the_page_is_readable_in_the_browser_in_light_and_dark_and_on_a_phone(
    watched: Page, files: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "statement.html"
    command = ("assess", *files, "--person", "rider", "--time", "started", "--out", out, "--sample", 20)
    assert run(*command) == 0
    for scheme, width in (("light", 1000), ("dark", 390)):
        watched.set_viewport_size({"width": width, "height": 900})
        watched.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        watched.goto(out.as_uri())
        expect(watched.get_by_role("heading", name="Attacks, run on this release")).to_be_visible()
        assert watched.evaluate("document.documentElement.scrollWidth") <= width
        found = Axe().run(watched)
        assert found.violations_count == 0, found.generate_report()
    assert watched.locator("svg").count() == 4
