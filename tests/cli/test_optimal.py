import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoind import Grid, Prior, expected_loss, exponential
from geoind.cli import main
from geoind.files import load_mechanism, save_mechanism

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
        (["--max-loss", "50", "--out", "best.parquet", "--start", "best.parquet"], "need a promise"),
        (["--epsilon", "0.01", "--out", "best.parquet", "--gap", "2"], "--gap must lie"),
        (["--epsilon", "0.01", "--out", "best.parquet", "--gap", "nan"], "--gap must lie"),
        (["--epsilon", "nan", "--out", "best.parquet"], "--epsilon must be positive"),
        (["--epsilon", "0.01", "--out", "best.parquet", "--time-limit", "nan"], "--time-limit must be positive"),
        (["--epsilon", "0.01", "--out", "best.parquet", "--columns", "0"], "--columns must be a positive"),
        (["--epsilon", "0.01", "--out", "best.parquet", "--start", "missing.parquet"], "does not exist"),
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


CITY = ["--bounds", "2.31", "48.84", "2.35", "48.88", "--factor", "4", "--radius", "400"]


def test_cells_that_are_larger_than_the_bounds_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimal", *CITY, "--cell", "50000", "--out", str(tmp_path / "best.parquet")]) == 2
    assert capsys.readouterr().err.startswith("geoind: --cell must be smaller: there are 1 x 1 cells")
    assert not list(tmp_path.iterdir())


def test_the_memory_of_the_search_is_printed_before_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimal", "--epsilon", "0.01", *GRID, "--out", str(tmp_path / "best.parquet")]) == 0
    assert capsys.readouterr().err == "the search takes about 1 MB of memory\n"


@pytest.mark.parametrize(
    ("number", "code"), [("SIGKILL", -9), ("SIGTERM", 143), ("SIGINT", 130)], ids=lambda value: str(value)
)
@pytest.mark.skipif(sys.platform == "win32", reason="NOT RUN: this system has no SIGKILL")
def test_a_stopped_search_leaves_its_best_channel_and_continues_from_it(
    tmp_path: Path, number: str, code: int
) -> None:
    counts, out = tmp_path / "counts.csv", tmp_path / "best.parquet"
    np.savetxt(counts, np.random.default_rng(0).pareto(1.0, (12, 12)) + 0.01)
    cells = ["--columns", "12", "--rows", "12", "--cell", "100", "--counts", str(counts)]
    command = ["optimal", *cells, "--epsilon", "0.01", "--out", str(out)]
    job = subprocess.Popen([sys.executable, "-m", "geoind", *command], stderr=subprocess.PIPE, text=True)
    # The search would take some ten seconds.
    while not out.exists():
        assert job.poll() is None
        time.sleep(0.002)
    time.sleep(0.2)
    job.send_signal(getattr(signal, number))
    _, printed = job.communicate()
    assert job.returncode == code
    assert ("has the best mechanism so far: loss" in printed) == (number != "SIGKILL")
    left: Any = load_mechanism(out)
    prior = Prior.from_counts(left.inputs, np.loadtxt(counts).ravel())
    proof = left.certificate
    assert not proof.optimal
    assert proof.gap > 1e-7
    assert left.epsilon <= 0.01
    assert expected_loss(left, prior) == pytest.approx(proof.objective)
    # The same file is the start and the target.
    assert main([*command, "--start", str(out), "--time-limit", "1"]) == 0
    best: Any = load_mechanism(out, prior=prior)
    assert best.epsilon <= 0.01
    assert best.certificate.objective <= proof.objective
    assert max(proof.bound, best.certificate.bound) <= best.certificate.objective
    assert expected_loss(best, prior) == pytest.approx(best.certificate.objective)


@pytest.mark.parametrize("other", [["--cell", "800"], ["--cell", "500", "--radius", "500"], ["--cell", "500"]])
def test_a_mechanism_of_every_place_begins_at_one_of_another_cell_or_epsilon(
    tmp_path: Path, other: list[str]
) -> None:
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    assert main(["optimal", *CITY, *other, "--gap", "0.1", "--out", str(first)]) == 0
    assert (
        main(["optimal", *CITY, "--cell", "500", "--gap", "0.05", "--start", str(first), "--out", str(second)])
        == 0
    )
    assert main(["optimal", *CITY, "--cell", "500", "--gap", "0.01", "--out", str(first)]) == 0
    begun, fresh = (load_mechanism(file) for file in (second, first))
    assert begun.epsilon <= np.log(4) / 400
    # Two brackets of the same optimum.
    mine, other_proof = (found.mechanism.channel.certificate for found in (begun, fresh))  # type: ignore[union-attr]
    assert mine.gap <= 0.05
    assert mine.bound <= other_proof.objective
    assert other_proof.bound <= mine.objective


@pytest.mark.parametrize("wrong", ["table", "text", "cut off", "too large", "plane", "globe", "other bounds"])
def test_a_wrong_start_is_an_error_before_the_search(
    tmp_path: Path, wrong: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start, out = tmp_path / "start.parquet", tmp_path / "best.parquet"
    grid = Grid(0, 0, cell=100, columns=3, rows=2)
    channel = exponential(grid, grid, epsilon=0.01)
    place = [*CITY, "--cell", "800"]
    cells = [*GRID, "--epsilon", "0.01"]
    request = place if wrong in ("plane", "other bounds") else cells
    if wrong in ("globe", "other bounds"):
        bounds = ["2.3", "48.84", "2.35", "48.88"]
        made = ["optimal", *CITY, "--cell", "2000", "--gap", "0.5", "--bounds", *bounds, "--out", str(start)]
        assert main(made) == 0
    else:
        save_mechanism(start, channel)
    if wrong == "table":
        pq.write_table(pa.table({"lon": [2.3], "lat": [48.8]}), start)
    elif wrong == "text":
        start.write_text("input,output,probability\n0,0,1\n")
    elif wrong == "cut off":
        start.write_bytes(start.read_bytes()[:-100])
    elif wrong == "too large":
        # A promise that the entries break.
        table = pq.read_table(start)
        about = json.loads(table.schema.metadata[b"geoind"]) | {"epsilon": 0.005}
        pq.write_table(
            table.replace_schema_metadata({"geoind": json.dumps(about)}),
            start,
            compression="none",
            use_dictionary=False,
        )
    capsys.readouterr()
    monkeypatch.setattr("geoind.min_loss_given_epsilon", None)
    assert main(["optimal", *request, "--start", str(start), "--out", str(out)]) == 2
    messages = {
        "too large": "was measured",
        "plane": "--start must be a mechanism for every place, with --bounds",
        "globe": "--start must be a channel between sites, without --bounds",
        "other bounds": "--start must be for the same --bounds",
    }
    error = capsys.readouterr().err
    assert messages.get(wrong, "is not a mechanism saved by geoind") in error
    assert error.count("\n") == 1
    assert not out.exists()
