"""The evaluation of people who move: what is known of each contender shows in its numbers."""

import json
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from geoind import PlanarLaplace
from geoind.cli import main
from geoind.files import read_traces
from geoind.traces import Independent
from geoind.traces.drives import Drive, commuters, drives_of
from geoind.traces.evaluation import CONTENDERS, TraceEvaluation, evaluate_traces


@pytest.fixture(scope="module")
def found() -> TraceEvaluation:
    return evaluate_traces(commuters(persons=2, days=1), accuracies=[500.0, 1000.0], draws=100)


def of(found: TraceEvaluation, contender: str, accuracy: float) -> "pd.Series[float]":
    table = found.table
    rows = table[(table["contender"] == contender) & (table["accuracy"] == accuracy)]
    return rows[rows["traces"] != "one drive"].iloc[0]


def test_every_contender_is_measured_on_one_drive_and_on_all(found: TraceEvaluation) -> None:
    assert len(found.table) == 2 * len(CONTENDERS) * 2
    assert found.table.groupby("traces")["positions"].max().to_dict() == {"one drive": 288, "all 2 drives": 576}


def test_independent_noise_costs_the_sum_and_an_accountant_finds_less(found: TraceEvaluation) -> None:
    epsilon = Independent.for_accuracy(500).epsilon
    total = of(found, "independent noise, sum", 500)
    assert total["level_per_hour"] == pytest.approx(288 * epsilon * 200 / (287 / 12))
    assert total["mean_error"] == pytest.approx(PlanarLaplace(epsilon).mean_radius, rel=0.1)
    counted = of(found, "independent noise, accountant", 500)
    assert counted["mean_error"] == total["mean_error"]
    assert counted["level_per_hour"] < 0.8 * total["level_per_hour"]
    gaussian = of(found, "Gaussian noise, accountant", 500)
    assert gaussian["error_90"] == pytest.approx(500, rel=0.1)
    assert gaussian["level_per_hour"] < counted["level_per_hour"]


def test_somebody_who_stays_pays_least_with_the_sparse_vector(found: TraceEvaluation) -> None:
    refuted = found.audits.set_index("contender")["refuted"]
    levels = {name: of(found, name, 500)["level_per_hour"] for name in CONTENDERS if not refuted[name]}
    assert min(levels, key=lambda name: levels[name]).startswith("sparse vector")
    assert levels["sparse vector"] < 0.2 * levels["independent noise, sum"]


def test_only_the_same_place_is_refuted_which_does_not_pay_for_telling_that_places_are_the_same(
    found: TraceEvaluation,
) -> None:
    audits = found.audits.set_index("contender")
    assert set(audits.index) == set(CONTENDERS)
    assert audits.index[audits["refuted"]].tolist() == ["same place, same report"]
    assert ((audits["loss"] > audits["allowed"]) == audits["refuted"]).all()


def test_a_page_a_figure_and_json_are_written(found: TraceEvaluation, tmp_path: Path) -> None:
    page, numbers = found.write(tmp_path / "new" / "traces.html")
    assert "data:image/png" in page.read_text()
    assert "90 % error, m" in page.read_text()
    told = json.loads(numbers.read_text())
    assert len(told["table"]) == len(found.table)
    assert "sparse vector" in found.text()


def test_the_command_reads_a_table_of_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geoind.traces.evaluation.evaluate_traces", partial(evaluate_traces, draws=20))
    drive: Drive = commuters(persons=1, days=1, every=1200)[0]
    table = pd.DataFrame(drive.lonlat, columns=["lng", "lat"])
    table["datetime"], table["uid"] = pd.to_datetime(drive.times, unit="s"), "001"
    path = tmp_path / "sample.txt.gz"
    table.to_csv(path, index=False)
    assert len(read_traces(path)) == 72
    assert main(["evaluate", "--traces", str(path), "--every", "600", "--out", str(tmp_path / "out.html")]) == 0
    out, err = capsys.readouterr()
    assert "one drive" in out
    assert "1 drive, 23.7 hours" in err
    assert (tmp_path / "out.json").exists()
    (tmp_path / "taken.json").mkdir()
    assert main(["evaluate", "--traces", str(path), "--out", str(tmp_path / "taken.html")]) == 2
    assert "--out must be a file" in capsys.readouterr().err
    table.drop(columns="uid").to_csv(path, index=False)
    assert main(["evaluate", "--traces", str(path)]) == 2
    assert "one column for the person" in capsys.readouterr().err
    assert main(["evaluate", "--traces", str(tmp_path / "nowhere")]) == 2


def test_columns_with_other_names_and_times_in_seconds_are_read_when_they_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geoind.traces.evaluation.evaluate_traces", partial(evaluate_traces, draws=20))
    path = tmp_path / "trips.csv"
    table = pd.DataFrame(
        {"driver": "ana", "when": range(1_700_000_000, 1_700_000_720, 60), "north": 48.86, "east": 2.3}
    )
    table.to_csv(path, index=False)
    named = ["--trace", "driver,when", "--lat", "north", "--lon", "east"]
    columns = {"person": "driver", "time": "when", "lat": "north", "lon": "east"}
    [drive] = drives_of(read_traces(path, columns))
    assert drive.times.tolist() == table["when"].tolist()
    assert main(["evaluate", "--traces", str(path), *named]) == 0
    assert "1 drive, 0.2 hours" in capsys.readouterr().err
    for options, said in (
        ([str(path)], "--trace PERSON,TIME"),
        ([str(path), *named, "--trace", "pilot,when"], "no column 'pilot'"),
        ([str(path), *named, "--trace", "driver"], "--trace must be the columns PERSON,TIME"),
        ([str(path), *named, "--trace", "driver,driver"], "four different columns"),
        ([str(path), *named, "--lat", "north"], "one column each"),
        (["commuters", *named], "go with --traces FILE"),
    ):
        assert main(["evaluate", "--traces", *options]) == 2
        assert said in capsys.readouterr().err
    assert main(["evaluate", "--trace", "driver,when"]) == 2
    assert "--traces FILE" in capsys.readouterr().err
