import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geoind import Grid, Prior, expected_loss
from geoind.cli import main
from geoind.files import load_mechanism

GRID = ["--columns", "3", "--rows", "2", "--cell", "100"]


def test_the_saved_channel_is_the_one_that_is_certified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "best.parquet"
    assert main(["optimal", "--epsilon", "0.01", *GRID, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    channel: Any = load_mechanism(out)
    grid = Grid(0, 0, cell=100, columns=3, rows=2)
    assert channel.inputs == grid
    assert channel.epsilon <= 0.01
    assert printed.startswith("optimal: ")
    assert f"{expected_loss(channel, Prior.uniform(grid)):.8g}" in printed


def test_counts_are_read_from_south_to_north(tmp_path: Path) -> None:
    counts = tmp_path / "counts.csv"
    counts.write_text("1,0,0\n0,0,3\n")
    out = tmp_path / "best.parquet"
    arguments = ["optimal", "--max-loss", "0", *GRID, "--counts", str(counts), "--out", str(out)]
    assert main(arguments) == 0
    channel: Any = load_mechanism(out)
    np.testing.assert_allclose(np.diag(channel.matrix)[[0, 5]], 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "best.parquet"], "either a promise"),
        (["--epsilon", "0.01", "--max-loss", "10", "--out", "best.parquet"], "either a promise"),
        (["--epsilon", "0", "--out", "best.parquet"], "--epsilon must be positive"),
        (["--epsilon", "0.01", "--out", "best.csv"], "must end in .parquet"),
        (["--epsilon", "0.01", "--out", "best.json"], "goes with --bounds"),
        (["--epsilon", "0.01", "--out", "nowhere/best.parquet"], "in a folder that exists"),
        (["--epsilon", "0.01", "--out", "best.parquet", "--counts", "missing.csv"], "--counts"),
        (["--max-loss", "-1", "--out", "best.parquet"], "--max-loss must not be negative"),
        (["--max-loss", "50", "--out", "best.parquet", "--time-limit", "9"], "need a promise"),
        (["--max-loss", "50", "--out", "best.parquet", "--gap", "0.1"], "need a promise"),
        (["--epsilon", "0.01", "--out", "best.parquet", "--gap", "2"], "--gap must lie"),
        (["--epsilon", "0.01", "--out", "best.parquet", "--choose", "entropy"], "needs --max-loss"),
        (["--epsilon", "0.01", "--out", "best.parquet", "--prior", "places.csv"], "--prior goes with --bounds"),
        (["--epsilon", "0.01", "--out", "best.parquet", "--bounds", "0", "0", "1", "1"], "either --bounds"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_no_file(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["optimal", *GRID, *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_tolerance_ends_the_search_at_its_gap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    iterations = []
    for tolerance in ("0.1", "1e-7"):
        arguments = ["--epsilon", "0.01", "--gap", tolerance, "--out", str(tmp_path / "best.parquet")]
        assert main(["optimal", *GRID, *arguments]) == 0
        iterations.append(int(re.findall(r"(\d+) iteration", capsys.readouterr().out)[0]))
    assert iterations[0] < iterations[1]


def test_counts_of_the_wrong_shape_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = tmp_path / "counts.csv"
    counts.write_text("1 2\n3 4\n")
    out = tmp_path / "best.parquet"
    assert main(["optimal", "--epsilon", "1", *GRID, "--counts", str(counts), "--out", str(out)]) == 2
    assert "2 lines of 3 numbers" in capsys.readouterr().err


def test_progress_is_shown_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["optimal", "--epsilon", "0.01", *GRID, "--out", str(tmp_path / "best.parquet")]) == 0
    assert "iteration 0: loss between" in capsys.readouterr().err


def test_help_loads_nothing_that_is_slow() -> None:
    asked = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from geoind.cli import main; main()"
    command = [sys.executable, "-c", asked, "--help"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not {"scipy", "pyproj", "shapely", "pyarrow", "pandas", "folium"} & set(loaded.stdout.split())


def test_the_file_of_counts_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = tmp_path / "counts.parquet"
    counts.write_text("1 2\n3 4\n")
    cells = ["--columns", "2", "--rows", "2", "--cell", "100", "--epsilon", "0.01"]
    assert main(["optimal", *cells, "--counts", str(counts), "--out", str(counts)]) == 2
    assert "would overwrite the input" in capsys.readouterr().err
    assert counts.read_text() == "1 2\n3 4\n"
