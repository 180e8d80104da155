"""The evaluation of people who move, and the audits of sequences of answers."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from geoind import PlanarLaplace, TraceSession, level_of_reports
from geoind.cli import main
from geoind.files import read_traces
from geoind.traces import (
    History,
    Independent,
    Predictive,
    SparseVector,
    TraceEvaluation,
    TraceMethod,
    audit_traces,
    commuters,
    drives_of,
    evaluate_traces,
)
from geoind.traces.evaluation import APPROACHES
from geoind.traces.laws import shares
from geoind.traces.questions import GuardedPlace, arc_length, laplace_noise
from geoind.traces.words import LIMIT, as_words
from tests.traces.walks import LAT, LON, METRE


@pytest.fixture(scope="module")
def found() -> TraceEvaluation:
    return evaluate_traces(commuters(persons=2, days=1), accuracies=[500.0, 1000.0], draws=100)


def of(found: TraceEvaluation, approach: str, accuracy: float) -> "pd.Series[float]":
    table = found.table
    rows = table[(table["approach"] == approach) & (table["accuracy"] == accuracy)]
    return rows[rows["traces"] != "one drive"].iloc[0]


@pytest.mark.slow
def test_every_approach_is_measured_on_one_drive_and_on_all(found: TraceEvaluation) -> None:
    assert len(found.table) == 2 * len(APPROACHES) * 2
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


def test_an_audit_allows_what_six_steps_cost_at_the_distance_of_the_traces(found: TraceEvaluation) -> None:
    allowed, apart = found.audits.set_index("approach")["allowed"], 0.4 * 1000
    noise = PlanarLaplace(Independent.for_accuracy(1000).epsilon)
    assert allowed["independent noise, sum"] == pytest.approx(6 * noise.epsilon * apart, rel=0.01)
    accounted = level_of_reports(noise, reports=6, radius=apart, delta=1e-5)
    assert allowed["independent noise, accountant"] == pytest.approx(accounted, rel=0.01)


def test_a_person_who_stays_pays_least_with_the_sparse_vector(found: TraceEvaluation) -> None:
    refuted = found.audits.set_index("approach")["refuted"]
    levels = {name: of(found, name, 500)["level_per_hour"] for name in APPROACHES if not refuted[name]}
    assert min(levels, key=lambda name: levels[name]).startswith("sparse vector")
    assert levels["sparse vector"] < 0.2 * levels["independent noise, sum"]


def test_only_the_same_place_is_refuted_because_it_does_not_pay_for_repetitions(
    found: TraceEvaluation,
) -> None:
    audits = found.audits.set_index("approach")
    assert set(audits.index) == set(APPROACHES)
    assert audits.index[audits["refuted"]].tolist() == ["same place, same report"]
    assert ((audits["loss"] > audits["allowed"]) == audits["refuted"]).all()
    # Six reports of traces that are 0.4 of the accuracy apart.
    sum_of_levels = 6 * Independent.for_accuracy(1000).epsilon * 400
    assert audits["allowed"]["independent noise, sum"] == pytest.approx(sum_of_levels, rel=0.01)


def test_a_page_a_figure_and_json_are_written(found: TraceEvaluation, tmp_path: Path) -> None:
    page, numbers = found.write(tmp_path / "new" / "traces.html")
    assert "data:image/png" in page.read_text()
    assert "90 % error, m" in page.read_text()
    data = json.loads(numbers.read_text())
    assert len(data["table"]) == len(found.table)
    assert "sparse vector" in found.text()


@pytest.mark.slow
def test_the_command_reads_a_table_of_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geoind.traces.evaluate_traces", partial(evaluate_traces, draws=20))
    [(times, lonlat)] = commuters(persons=1, days=1, every=1200)
    table = pd.DataFrame(lonlat, columns=["lng", "lat"])
    table["datetime"], table["uid"] = pd.to_datetime(times, unit="s"), "001"
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


@pytest.mark.slow
def test_columns_with_other_names_and_times_in_seconds_are_read_when_they_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geoind.traces.evaluate_traces", partial(evaluate_traces, draws=20))
    path = tmp_path / "trips.csv"
    table = pd.DataFrame(
        {"driver": "ana", "when": range(1_700_000_000, 1_700_000_720, 60), "north": 48.86, "east": 2.3}
    )
    table.to_csv(path, index=False)
    named = ["--columns", "driver,when,north,east"]
    columns = {"person": "driver", "time": "when", "lat": "north", "lon": "east"}
    [(times, _)] = drives_of(read_traces(path, columns))
    assert times.tolist() == table["when"].tolist()
    assert main(["evaluate", "--traces", str(path), *named]) == 0
    assert "1 drive, 0.2 hours" in capsys.readouterr().err
    for options, said in (
        ([str(path)], "--columns PERSON,TIME,LAT,LON"),
        ([str(path), "--columns", "pilot,when,north,east"], "no column 'pilot'"),
        ([str(path), "--columns", "driver,when"], "--columns must be PERSON,TIME,LAT,LON"),
        ([str(path), "--columns", "driver,driver,north,east"], "must be different columns"),
        (["commuters", *named], "of a file of traces"),
    ):
        assert main(["evaluate", "--traces", *options]) == 2
        assert said in capsys.readouterr().err
    assert main(["evaluate", *named]) == 2
    assert "of a file of traces" in capsys.readouterr().err


Place = tuple[float, float]
METHODS: list[TraceMethod] = [
    Independent(0.004),
    Predictive(0.003, 0.004, 500.0),
    SparseVector(0.004, 0.005, 500.0),
    SparseVector(0.004, 0.005, 500.0, 0.003),
]


def walk(metres: list[float]) -> list[tuple[float, float, float]]:
    return [(60.0 * step, LON, LAT + METRE * north) for step, north in enumerate(metres)]


SILENT_THEN_YES = (walk([0, 0, 300, 300, 300, 900]), walk([0, 0, 100, 100, 100, 1100]))


def sessions(method: TraceMethod) -> Callable[[], TraceSession]:
    keys = (number.to_bytes(32) for number in itertools.count())
    return lambda: TraceSession(method, key=next(keys))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_an_audit_of_sequences_does_not_refute_a_session(method: TraceMethod) -> None:
    found = audit_traces(sessions(method), *SILENT_THEN_YES, draws=400)
    assert not found.refuted
    assert found.loss >= 0


@dataclass(frozen=True)
class Leaking(SparseVector):
    """Draws the limit's noise once and none for the tests."""

    def answer(self, history: History, place: GuardedPlace) -> tuple[History, Place]:
        original = GuardedPlace.has_left
        GuardedPlace.has_left = _without_noise  # type: ignore[method-assign]
        try:
            return super().answer(history, place)
        finally:
            GuardedPlace.has_left = original  # type: ignore[method-assign]


def _without_noise(self: GuardedPlace, limit: float) -> bool:
    run = self.run
    assert run is not None
    seed = self._words.runs(self._person, run.number, run.place)
    bar = laplace_noise(as_words(self._words.pairs(seed, run.epsilon, LIMIT)), 1 / shares(run.epsilon)[0])
    return bool(arc_length(*self._place, *run.place) >= limit + bar)


@pytest.mark.slow
def test_an_audit_of_sequences_refutes_tests_without_noise() -> None:
    # Silent where the second trace is farther than where its test says yes: impossible if only the limit is noisy.
    traces = (walk([0, 295, 305]), walk([0, 305, 295]))
    wrong, right = Leaking(0.03, 0.03, 300.0), SparseVector(0.03, 0.03, 300.0)
    assert audit_traces(sessions(wrong), *traces, draws=6000).refuted
    assert not audit_traces(sessions(right), *traces, draws=2000).refuted


@pytest.mark.parametrize("name", ["independent noise, accountant", "Gaussian noise, accountant"])
def test_nine_of_ten_fresh_reports_are_within_the_accuracy(name: str) -> None:
    noise = APPROACHES[name].noise
    assert noise is not None
    assert noise(500.0).reach(0.9) == pytest.approx(500, abs=1)
