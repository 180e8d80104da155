import os
from pathlib import Path
from typing import Any

import pytest

from geoind import InvalidInputError
from geoind.cli import main
from geoind.cli.shared import check_target

PLACES = "lat,lon\n" + "48.8584,2.2945\n48.8421,2.3219\n" * 20


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of places in the working directory, and nobody who computes."""

    def computes(*_: Any, **__: Any) -> None:
        pytest.fail("it computed first")

    for name in (
        "geoind.files.read_reports",
        "geoind.evaluation.evaluate.evaluate",
        "geoind.maps.report_page.report_map",
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
    # The numbers of an evaluation stand beside its page.
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
        ["optimal", "--epsilon", "0.01", "--columns", "2", "--rows", "2", "--cell", "9", "--out", "nowhere/b.npz"],
    ],
)
@pytest.mark.usefixtures("places")
def test_a_file_that_could_not_be_written_is_refused_before_anything_is_computed(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 2
    assert "--out must be a file in a folder that exists" in capsys.readouterr().err


def test_a_folder_and_what_somebody_else_owns_are_no_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_target(tmp_path / "new.csv")
    with pytest.raises(InvalidInputError, match="must be a file"):
        check_target(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidInputError, match="cannot be written"):
        check_target(tmp_path / "new.csv")


def test_what_the_operating_system_refuses_is_one_sentence(
    places: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["example", "--people", "5", "--out", str(places)]) == 2
    assert capsys.readouterr().err == "geoind: places.csv: File exists\n"

    def full(*_: Any, **__: Any) -> None:
        raise OSError

    monkeypatch.setattr("geoind.files.job.sources_in", full)
    assert main(["map", str(places)]) == 2
    assert capsys.readouterr().err == "geoind: input or output failed\n"
