"""Options and output that several commands share."""

import argparse
import math
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from geoind import InvalidInputError, SphericalLaplace
from geoind.cli import program
from geoind.cli.program import (
    add_privacy,
    add_reading,
    check_target,
    command_parsers,
    epsilon_of,
    main,
    privacy_of,
    progress_line,
    reading_of,
)
from geoind.files import Reading

FACTORS = ["1", "0.5", "0", "inf", "nan", "four", "1.00000000000000001"]
NO_LEVELS = [
    "",
    "four",
    "ln",
    "ln()",
    "log4",
    "log10(4)",
    "log(4",
    "ln4)",
    "ln(ln(4))",
    "2*ln4",
    "\x1b[2J",
    "9" * 10**5 + "x",
]


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_reading(parser, "where the locations are")
    add_privacy(parser, reports=True, several=True)
    return parser.parse_args(arguments)


def test_epsilon_is_given_or_level_over_radius() -> None:
    assert epsilon_of(options("--epsilon", "0.01")) == 0.01
    assert epsilon_of(options("--level", "2", "--radius", "400")) == 0.005


@pytest.mark.parametrize(
    "given",
    [
        ["--level", "ln4"],
        ["--level", "ln 4"],
        ["--level", " LN ( 4.0 ) "],
        ["--level", "ln(4)"],
        ["--level", "log(4)"],
        ["--level", "log(4e0)"],
        ["--level", repr(math.log(4))],
        ["--factor", "4"],
        ["--level=ln4"],
        ["--factor=4.0"],
    ],
    ids=str,
)
def test_a_level_may_be_a_logarithm_or_a_factor(given: list[str]) -> None:
    assert epsilon_of(options(*given, "--radius", "200")) == math.log(4) / 200
    assert privacy_of(options(*given, "--radius", "200"))["level"] == math.log(4)
    together = privacy_of(options(*given, "--radius", "200", "--delta", "1e-5", "--reports", "2"))
    assert together["level"] == math.log(4)


@pytest.mark.parametrize("command", ["obfuscate", "explain", "audit", "optimal", "example"])
def test_every_command_with_a_level_takes_a_factor_instead(command: str) -> None:
    files = {"obfuscate": ["in.csv", "out.csv"], "optimal": ["--columns=2", "--rows=2", "--cell=9", "--out=o.npz"]}
    parser = command_parsers()[command]
    given = parser.parse_args([*files.get(command, []), "--factor", "4", "--radius", "200"])
    assert given.level == math.log(4)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--level", "ln4", "--factor", "4"], "not allowed with argument"),
        (["--factor", "4", "--level", "1"], "not allowed with argument"),
        *((["--factor", factor], "the factor must be greater than 1") for factor in FACTORS),
        *((["--level", f"ln({factor})"], "the factor must be greater than 1") for factor in FACTORS),
        *((["--level", text], "must be a number, ln4 or log(4)") for text in NO_LEVELS),
    ],
    ids=lambda value: str(value)[:40],
)
def test_no_other_text_is_a_level(capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str) -> None:
    with pytest.raises(SystemExit) as exit_code:
        options(*arguments, "--radius", "200")
    assert exit_code.value.code == 2
    said = capsys.readouterr().err
    assert reason in said
    assert "\x1b" not in said
    assert len(said) < 3000


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--level", "2"],
        ["--radius", "2"],
        ["--epsilon", "0.01", "--level", "2", "--radius", "400"],
        ["--epsilon", "0.01", "--factor", "4"],
        ["--factor", "4"],
        ["--level", "inf", "--radius", "400"],
        ["--level", "1e-320", "--radius", "1e300"],
        ["--epsilon", "0"],
        ["--epsilon", "nan"],
        ["--level", "-1", "--radius", "400"],
        ["--reports", "3", "--level", "2", "--radius", "400"],
        ["--mechanism", "laplace", "--epsilon", "0.01"],
        ["--delta", "1e-5", "--epsilon", "0.01"],
        ["--delta", "1e-5", "--level", "2"],
        ["--delta", "2", "--level", "2", "--radius", "400"],
    ],
)
def test_half_a_promise_and_two_of_them_are_refused(arguments: list[str]) -> None:
    with pytest.raises(InvalidInputError):
        privacy_of(options(*arguments))


def test_little_noise_needs_its_option() -> None:
    with pytest.raises(InvalidInputError, match="For so little noise, pass"):
        privacy_of(options("--epsilon", "1"))
    assert privacy_of(options("--epsilon", "1", "--little-noise")) == {"mechanism": SphericalLaplace(1.0)}
    together = ["--delta", "1e-5", "--level", "50", "--radius", "1", "--reports", "1"]
    with pytest.raises(InvalidInputError, match="For so little noise, pass"):
        privacy_of(options(*together))
    assert "mechanism" in privacy_of(options(*together, "--little-noise"))


def test_the_noise_of_several_reports_is_of_the_family_asked_for() -> None:
    together = ["--delta", "1e-5", "--level", "2", "--radius", "200", "--reports", "30"]
    names = {
        family: type(privacy_of(options(*together, "--mechanism", family))["mechanism"]).__name__
        for family in ("laplace", "gaussian", "best")
    }
    assert names == {"laplace": "SphericalLaplace", "gaussian": "SphericalGaussian", "best": "SphericalGaussian"}


def test_every_option_reaches_the_reading() -> None:
    given = ("--format", "csv", "--no-header", "--layer", "homes", "--delimiter", "tab")
    assert reading_of(options(*given))["reading"] == Reading(
        format="csv", header=False, layer="homes", delimiter="tab"
    )
    assert reading_of(options())["reading"] == Reading()


def test_several_locations_have_several_columns() -> None:
    where = reading_of(options("--lat", "a", "--lon", "b", "--lat", "c", "--lon", "d"))
    assert (where["lat"], where["lon"], "geometry" in where) == (["a", "c"], ["b", "d"], False)
    assert reading_of(options("--geometry", "spot", "--crs", "EPSG:2154"))["crs"] == "EPSG:2154"


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(program, "PAUSE", -1.0)


def test_a_terminal_shows_the_progress_and_an_empty_line_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch)
    with progress_line() as show:
        show("begun", 0.0)
        show("half", 0.5)
        show("1,200 reports")
    shown = capsys.readouterr().err.split("\r")[1:]
    assert shown[0] == f"[{'-' * 30}]   0%  begun\x1b[K"
    assert shown[1] == f"[{'#' * 15}{'-' * 15}]  50%  half\x1b[K"
    assert shown[2:] == ["1,200 reports\x1b[K", "\x1b[K"]


def test_the_progress_line_is_removed_after_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch)

    def fail() -> None:
        with progress_line() as show:
            show("begun")
            raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        fail()
    assert capsys.readouterr().err == "\rbegun\x1b[K\r\x1b[K"


def test_updates_that_follow_too_fast_are_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    clock = SimpleNamespace(monotonic=iter([0.0, 0.05, 0.11]).__next__)
    monkeypatch.setattr(program, "time", clock)
    with progress_line() as show:
        for text in ("first", "too soon", "later"):
            show(text)
    shown = capsys.readouterr().err
    assert "first" in shown
    assert "later" in shown
    assert "too soon" not in shown


def test_nothing_is_shown_if_standard_error_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line() as show:
        show("begun", 0.5)
    assert capsys.readouterr().err == ""


PLACES = "lat,lon\n" + "48.8584,2.2945\n48.8421,2.3219\n" * 20


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of locations in the working directory; computing fails the test."""

    def computes(*_: Any, **__: Any) -> None:
        pytest.fail("it computed first")

    for name in (
        "geoind.cli.estimate.read_reports",
        "geoind.cli.evaluate.evaluate",
        "geoind.cli.map.report_map",
    ):
        monkeypatch.setattr(name, computes)
    monkeypatch.chdir(tmp_path)
    Path("places.csv").write_text(PLACES)
    return Path("places.csv")


ESTIMATE = ["estimate", "places.csv", "--grid", "500", "--epsilon", "0.01", "--out"]
OVERWRITING = {
    "estimate": [*ESTIMATE, "places.csv"],
    "estimate, at second": [*ESTIMATE, "cells.csv", "--out", "./places.csv"],
    "map": ["map", "places.csv", "--out", "places.csv"],
    # The numbers of an evaluation are next to its page.
    "evaluate": ["evaluate", "--prior", "places.csv", "--out", "places.html"],
    "evaluate a folder": ["evaluate", "--prior", ".", "--out", "places.html"],
}


@pytest.mark.parametrize("name", OVERWRITING)
def test_no_command_overwrites_what_it_reads(places: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(OVERWRITING[name]) == 2
    assert "would overwrite the input" in capsys.readouterr().err
    assert places.read_text() == PLACES
    assert [file.name for file in Path().iterdir()] == ["places.csv"]


@pytest.mark.parametrize(
    "arguments",
    [
        [*ESTIMATE, "nowhere/cells.geojson"],
        ["map", "places.csv", "--out", "nowhere/map.html"],
        ["evaluate", "--prior", "city", "--out", "nowhere/page.html"],
        [
            "optimal",
            "--epsilon",
            "0.01",
            "--columns",
            "2",
            "--rows",
            "2",
            "--cell",
            "9",
            "--out",
            "nowhere/b.parquet",
        ],
    ],
)
@pytest.mark.usefixtures("places")
def test_a_file_that_could_not_be_written_is_refused_before_anything_is_computed(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 2
    assert "--out must be a file in a folder that exists" in capsys.readouterr().err


def test_a_folder_and_a_file_without_write_permission_are_no_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_target(tmp_path / "new.csv")
    with pytest.raises(InvalidInputError, match="must be a file"):
        check_target(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidInputError, match="cannot be written"):
        check_target(tmp_path / "new.csv")


def test_an_error_of_the_operating_system_is_one_sentence(
    places: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["example", "--people", "5", "--out", str(places)]) == 2
    assert capsys.readouterr().err == "geoind: places.csv: File exists\n"

    def full(*_: Any, **__: Any) -> None:
        raise OSError

    monkeypatch.setattr("geoind.files.folders.sources_in", full)
    assert main(["map", str(places)]) == 2
    assert capsys.readouterr().err == "geoind: input or output failed\n"
