import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

import geoind
from geoind import SphericalLaplace
from geoind.cli import main


def table(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    assert main(["explain", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    return {label.strip(): value for label, _, value in (line.rpartition("  ") for line in lines) if label.strip()}


def metres(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"m": 1, "km": 1000}[unit]


def test_mean_quantiles_query_radius_and_factors_are_those_of_the_mechanism(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = table(capsys, "--level", "1.386", "--radius", "200")
    globe = SphericalLaplace(1.386 / 200)
    assert metres(rows["mean"]) == pytest.approx(globe.mean_radius, abs=0.05)
    for p in (0.5, 0.9, 0.95, 0.99):
        assert metres(rows[f"{p:.0%} of reports within"]) == pytest.approx(globe.radius_quantile(p), abs=0.05)
    asked = geoind.private_query(lat=1.0, lon=2.0, radius=300, confidence=0.95, epsilon=globe.epsilon).radius
    assert metres(rows["radius around the report (confidence 0.95)"]) == pytest.approx(asked, abs=0.05)
    assert float(rows["area, in multiples of the area asked for"]) == pytest.approx((asked / 300) ** 2, abs=0.05)
    assert float(rows["200 m"]) == pytest.approx(math.exp(1.386), rel=1e-3)
    assert float(rows["1000 m"]) == pytest.approx(math.exp(1.386 * 5), rel=1e-3)


def test_the_same_epsilon_gives_the_same_table(capsys: pytest.CaptureFixture[str]) -> None:
    by_level = table(capsys, "--level", "1.386", "--radius", "200")
    assert by_level == table(capsys, "--epsilon", "0.00693")


def test_one_report_is_singular(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--factor", "4", "--radius", "200", "--reports", "1", "--delta", "1e-5"]) == 0
    printed = capsys.readouterr().out
    assert "1 such report together" in printed
    assert "1 reports" not in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ["--epsilon", "1e155"],
        ["--level", "700", "--radius", "1e-150"],
        ["--level", "1e-300", "--radius", "1e-298"],
        ["--epsilon", "0.01", "--interest", "1e-300"],
    ],
)
def test_extreme_numbers_have_a_table_too(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    rows = table(capsys, *arguments)
    assert {"mean", "area, in multiples of the area asked for", "1000 m"} <= set(rows)


def test_a_query_can_be_another(capsys: pytest.CaptureFixture[str]) -> None:
    rows = table(capsys, "--epsilon", "0.01", "--interest", "1000", "--confidence", "0.5")
    asked = geoind.private_query(lat=1.0, lon=2.0, radius=1000, confidence=0.5, epsilon=0.01).radius
    assert metres(rows["radius around the report (confidence 0.5)"]) == pytest.approx(asked, abs=0.05)


def test_large_distances_are_in_kilometres_and_large_factors_in_powers_of_ten(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert table(capsys, "--epsilon", "1e-5")["mean"].endswith(" km")
    assert table(capsys, "--epsilon", "1")["1000 m"] == "10^434"


def test_several_reports_are_compared_with_the_plain_sum_and_with_gaussian_noise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = table(capsys, "--level", "1.386", "--radius", "200", "--reports", "20", "--delta", "1e-5")
    globe = SphericalLaplace(1.386 / 200)
    accounted = geoind.level_of_reports(globe, reports=20, radius=200, delta=1e-5)
    assert float(rows["plain sum"]) == pytest.approx(20 * 1.386, abs=0.005)
    assert float(rows["at most, except with probability 1e-05"]) == pytest.approx(accounted, abs=0.005)
    for family in ("laplace", "gaussian"):
        noise = geoind.mechanism_for_reports(
            reports=20, level=1.386, radius=200, delta=1e-5, family=family, space="lonlat"
        )
        said = rows[f"{family.capitalize()} noise, up to delta 1e-05"]
        assert metres(said) == pytest.approx(noise.mean_radius, abs=0.05)
    assert main(["explain", "--level", "1.386", "--radius", "200", "--reports", "3", "--delta", "1e-5"]) == 0
    assert re.search(r"by the plain sum, from +6 reports\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--epsilon", "1", "--reports", "3", "--delta", "1e-5"], "--reports and --delta go together"),
        (["--level", "1", "--radius", "200", "--reports", "3"], "--reports and --delta go together"),
        (["--level", "1", "--radius", "200", "--reports", "0", "--delta", "1e-5"], "--reports must be"),
        (["--level", "1", "--radius", "200", "--reports", "3", "--delta", "0"], "--delta must lie"),
        ([], "give --epsilon, or --level (or --factor) and --radius"),
        (["--level", "1"], "give --epsilon, or --level (or --factor) and --radius"),
        (["--factor", "4"], "give --epsilon, or --level (or --factor) and --radius"),
        (["--level", "1e-320", "--radius", "1e300"], "--level / --radius must be positive and finite"),
        (["--level", "1e300", "--radius", "1e-300"], "--level / --radius must be positive and finite"),
        (
            ["--level", "1", "--radius", "1", "--reports", "9" * 400, "--delta", "0.1"],
            "--reports must be a number",
        ),
        (["--epsilon", "1", "--level", "1", "--radius", "1"], "not both"),
        (["--epsilon", "0"], "--epsilon must be positive and finite"),
        (["--epsilon", "nan"], "--epsilon must be positive and finite"),
        (["--epsilon", "1e-9"], "reach round the Earth"),
        (["--level", "1", "--radius", "inf"], "--radius must be positive and finite"),
        (["--epsilon", "1", "--interest", "0"], "--interest must be positive"),
        (["--epsilon", "1", "--confidence", "1"], "--confidence must lie strictly between"),
    ],
)
def test_bad_parameters_give_one_sentence_and_exit_code_two(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("geoind: ")
    assert err.count("\n") == 1
    assert reason in err


def test_a_closed_pipe_is_no_error() -> None:
    # Unbuffered, so that the command still writes after the pipe was closed.
    run = [sys.executable, "-u", "-m", "geoind", "explain", "--epsilon", "0.01"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        job.stdout.close()
        assert job.stderr.read() == b""
    assert job.returncode == 141


def trace_rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, dict[str, list[str]]]:
    assert main(["explain", "--level", "ln4", "--radius", "200", *arguments]) == 0
    out = capsys.readouterr().out.partition("by each method")[2]
    return out, {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.endswith("%")}


def test_what_traces_would_cost_by_each_method(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Persons who stay pay a small part of fresh noise; persons who always move pay more than half of it."""
    monkeypatch.setattr("secrets.token_bytes", bytes)
    for name, step in (("stays", 0.0), ("moves", 0.02)):
        lines = [f"ana,{1_700_000_000 + 60 * k},{48.8577 + step * k},2.3521" for k in range(100)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["person,time,lat,lon", *lines]))
    said, stays = trace_rows(capsys, "--traces", str(tmp_path / "stays.csv"))
    assert set(stays) == {"switching", "sparse", "predictive", "independent"}
    assert float(stays["independent"][-2]) == pytest.approx(100 * math.log(4), rel=1e-3)
    assert stays["independent"][-1] == "100%"
    assert float(stays["sparse"][-1][:-1]) < 10
    assert "seldom stay" not in said
    said, moves = trace_rows(capsys, "--traces", str(tmp_path / "moves.csv"))
    assert min(float(row[-1][:-1]) for row in moves.values()) > 50
    assert "every session costs more than half of fresh noise" in said
    assert "do not publish" in said
    assert "48.8577" not in said
    assert "2.3521" not in said


def test_columns_of_traces_may_have_any_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("who,when,north,east,x\nana,2024-05-01T08:00:00Z,48.86,2.35,7\n")
    _, rows = trace_rows(capsys, "--traces", str(tmp_path / "t.csv"), "--columns", "who,when,north,east")
    assert rows["independent"][-1] == "100%"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--traces", "nowhere.csv"], "does not exist"),
        (["--columns", "a,b,c,d"], "--columns must be PERSON,TIME,LAT,LON of a file of traces"),
        (["--traces", "nowhere.csv", "--columns", "a,b"], "--columns must be PERSON,TIME,LAT,LON"),
    ],
)
def test_bad_options_of_a_trace_are_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["explain", "--level", "ln4", "--radius", "200", *arguments]) == 2
    assert message in capsys.readouterr().err
