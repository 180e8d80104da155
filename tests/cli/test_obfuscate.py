import csv
import io
import json
import os
import pty
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from geoind import Ledger
from geoind.cli import main
from geoind.space import cell_centres, cell_names
from geoind.tables import read_promise

PLACES = "name,lat,lon\nEiffel,48.8584,2.2945\nMontparnasse,48.8421,2.3219\n"
EACH = ["--each-row-a-person"]
BARE = ["--epsilon", "1000", "--little-noise", *EACH]
SHARP = [*BARE, "--keep", "name"]
PLAIN = ["--level", "ln4", "--radius", "200"]


@pytest.fixture
def places(tmp_path: Path) -> Path:
    path = tmp_path / "places.csv"
    path.write_text(PLACES)
    return path


def in_words(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else ""


def refusal(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["obfuscate", *map(str, arguments)]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("geoind: ")
    assert err.count("\n") == 1
    return err


def test_noise_below_ten_metres_needs_an_option(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = places.with_name("out.csv")
    message = refusal(capfd, places, target, *EACH, "--level", "1.386", "--radius", "0.2")
    assert "moves reports by 0.29 m on average" in message
    assert "add --little-noise" in message
    assert not target.exists()
    assert main(["obfuscate", str(places), str(target), *EACH, "--epsilon", "5", "--little-noise", "--quiet"]) == 0


def test_a_file_becomes_a_file_of_reports_with_a_sidecar(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = places.with_name("reports.csv")
    assert main(["obfuscate", str(places), str(target), *EACH, "--level", "1.386", "--radius", "200"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    said = err.splitlines()
    assert said[0] == "2 reports, epsilon 0.00693 per metre: 290 m from the truth on average, 95 % within 692 m"
    assert said[1] == "no person has two rows, as declared"
    assert said[2].startswith("the reports lie between 2.")
    assert said[3] == "columns left out (to keep some: --keep name)"
    assert target.read_text().splitlines()[0] == "lat,lon"
    assert "Eiffel" not in target.read_text()
    assert "48.8584," not in target.read_text()
    assert read_promise(target).level == 1.386
    assert sorted(path.name for path in places.parent.iterdir()) == [
        "places.csv",
        "reports.csv",
        "reports.csv.geoind.json",
    ]


def test_only_the_named_columns_are_released_and_the_summary_has_an_option_for_the_others(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text('start_station_name,fare,lat,"a, b",lon,it\'s\nNation,007,48.85,7.50,2.39,x\n')
    run = ["obfuscate", str(source), str(target), *EACH, *PLAIN]
    assert main(run) == 0
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "left out" in line]
    options = shlex.split(line.partition("(to keep some: ")[2].removesuffix(")"))
    assert target.read_text().splitlines()[0] == "lat,lon"
    assert main([*run, *options]) == 0
    assert "left out" not in capfd.readouterr().err
    with target.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert list(row) == ["start_station_name", "fare", "lat", "a, b", "lon", "it's"]
    assert (row["fare"], row["a, b"], row["it's"]) == ("007", "7.50", "x")
    assert set(read_promise(target).kept) == {"start_station_name", "fare", "a, b", "it's"}
    assert main([*run, "--keep", "fare", "--keep", "it's"]) == 0
    assert target.read_text().splitlines()[0] == "fare,lat,lon,it's"


WHOSE = "--person COLUMN must say whose reports these are"
SOMEWHERE = np.random.default_rng(0).random((81, 2)).round(5).tolist()
TRIPS = "rider,at,lat,lon\n" + "".join(
    f"{'ben' if row % 2 else 'ana'},2024-05-01T08:00:{row // 2:02}.5,{48 + lat:.5f},{2 + lon:.5f}\n"
    for row, (lat, lon) in enumerate(SOMEWHERE)
)


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    path = tmp_path / "trips.csv"
    path.write_text(TRIPS)
    return path


def test_a_table_without_declared_persons_is_refused(trips: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert WHOSE in refusal(capfd, trips, trips.with_name("out.csv"), *PLAIN)
    assert WHOSE in refusal(capfd, trips, trips.parent, trips.with_name("out"), *PLAIN)
    assert [path.name for path in trips.parent.iterdir()] == ["trips.csv"]


@pytest.mark.parametrize(
    ("options", "reports", "persons"),
    [
        (["--person", "rider"], 81, (2, 41, 40)),
        (["--person", "rider", "--reports-per-person", "3"], 6, (2, 3, 3)),
        (["--person-per-file", "--reports-per-person", "7"], 7, (1, 7, 7)),
        (["--trace", "rider,at", "--method", "independent"], 81, (2, 41, 40)),
        (["--person", "rider", "--trace", "at", "--method", "independent"], 81, (2, 41, 40)),
        (["--each-row-a-person"], 81, (81, 1, 1)),
    ],
    ids=in_words,
)
def test_the_totals_of_the_release_follow_from_the_declared_persons(
    trips: Path,
    capfd: pytest.CaptureFixture[str],
    options: list[str],
    reports: int,
    persons: tuple[int, int, int],
) -> None:
    target = trips.with_name("out.csv")
    assert main(["obfuscate", str(trips), str(target), "--epsilon", "0.001", *options]) == 0
    said = capfd.readouterr().err
    record = read_promise(target)
    assert record.busiest is not None
    assert record.median is not None
    assert (record.persons, record.busiest.reports, record.median.reports) == persons
    assert len(target.read_text().splitlines()) == reports + 1
    if record.unit != "each row":
        assert f"the busiest has {record.busiest}" in said
    columns = "rider,at,lat,lon" if "--trace" in options else "lat,lon"
    assert target.read_text().splitlines()[0] == columns


def test_the_same_place_has_one_report(trips: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = trips.with_name("out.csv")
    trips.write_text("rider,lat,lon\n" + "ana,48.85,2.35\nben,48.85,2.35\n" * 50)
    run = ["obfuscate", str(trips), str(target), "--person", "rider", "--epsilon", "0.01", "--keep", "rider"]
    assert main([*run, "--same-place"]) == 0
    assert len(set(target.read_text().splitlines())) == 3
    assert "the busiest has 1 report, epsilon 0.01 per metre" in capfd.readouterr().err
    assert main([*run, "--same-place", "50"]) == 0
    assert read_promise(target).busiest == read_promise(target).median


def test_a_total_that_does_not_hide_the_person_is_refused_with_the_remedies(
    trips: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = trips.with_name("out.csv")
    run = [trips, target, "--epsilon", "0.1"]
    message = refusal(capfd, *run, "--person", "rider")
    assert "the busiest person has 41 reports that add up to epsilon 4.1 per metre" in message
    for remedy in ("--trace TIME", "--same-place", "--reports-per-person N", "--allow-total 4.1"):
        assert remedy in message
    traced = refusal(capfd, *run, "--trace", "rider,at")
    assert "add up to epsilon" in traced
    assert "--trace" not in traced
    assert "--reports-per-person" not in traced
    assert not target.exists()
    allowed = message.partition("--allow-total ")[2].split()[0]
    assert "--allow-total 4.1" in refusal(capfd, *run, "--person", "rider", "--allow-total", "4.09")
    assert main(["obfuscate", *map(str, run), "--person", "rider", "--allow-total", allowed]) == 0
    allowed = traced.partition("--allow-total ")[2].split()[0]
    assert main(["obfuscate", *map(str, run), "--trace", "rider,at", "--allow-total", allowed]) == 0


ROWS = "row 3: timestamps must increase for person 'ana': "


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (("08:00:00", "08:01:00", "08:01:00"), f"{ROWS}merge rows of the same time into one, such as the first"),
        (("08:00:00", "08:01:00.0003", "08:01:00"), f"{ROWS}sort the rows by time"),
        (("08:00:00", "", "08:01:00"), "row 2: time is missing in column 'at'"),
        (("08:00:00", "noon", "08:01:00"), "row 2: the time must be a date and time (ISO 8601)"),
    ],
)
def test_an_error_about_times_of_a_trace_names_the_remedy(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], times: tuple[str, ...], message: str
) -> None:
    source, target, rejects = (tmp_path / name for name in ("in.csv", "out.csv", "bad.ndjson"))
    moments = [f"2024-05-01T{time}" if ":" in time else time for time in times]
    rows = [f"ana,{at},48.{number},2.{number}" for number, at in enumerate(moments, 1)]
    source.write_text("\n".join(["who,at,lat,lon", *rows]))
    run = [source, target, "--trace", "who,at", "--epsilon", "0.01"]
    said = refusal(capfd, *run)
    assert message in said
    assert said.endswith("(use --rejects FILE)\n")
    assert main(["obfuscate", *map(str, run), "--rejects", str(rejects)]) == 0
    assert len(target.read_text().splitlines()) == 3
    assert message.partition(": ")[2] in json.loads(rejects.read_text())["reason"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (",2.1", "row 2: latitude is empty (use --missing keep or --rejects FILE)"),
        ("48.1,", "row 2: longitude is empty (use --missing keep or --rejects FILE)"),
        (
            "148.1,2.1",
            "row 2: latitude must be between -90 and 90: are lat and lon swapped? (use --rejects FILE)",
        ),
        ("48.1,east", "row 2: longitude must be a finite number (use --rejects FILE)"),
        ("48.1,2,3", "row 2: has 3 fields, the header has 2 (use --rejects FILE)"),
    ],
)
def test_an_error_about_a_record_names_the_remedy(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], row: str, message: str
) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(f"lat,lon\n1,2\n{row}\n")
    assert refusal(capfd, source, target, *EACH, *PLAIN) == f"geoind: {message}\n"
    kept = "--missing keep" in message
    assert main(["obfuscate", str(source), str(target), *EACH, *PLAIN, "--missing", "keep"]) == (0 if kept else 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lon", "x"], "--lon COLUMN and --lat COLUMN must be given together"),
        (["--lon", "x", "--lat", "lat"], "no column 'x': the columns are name, lat, lon"),
        (["--geometry", "lat", "--lat", "lat"], "give --lon COLUMN and --lat COLUMN, or --geometry COLUMN"),
        (["--geometry", "name"], "pass --crs"),
        (["--keep", "nome"], "no column 'nome'"),
        (["--keep", "lat"], "column 'lat' holds the true place: it cannot be kept"),
        (["--id", "lat"], "column 'lat' holds the true place"),
        (["--layer", "a"], "--layer NAME is not for csv files"),
        (["--method", "sparse"], "--method is for traces: give --trace PERSON,TIME"),
        (["--same-place"], "--same-place needs --person COLUMN"),
        (["--reports-per-person", "2"], "with --each-row-a-person each has one row"),
        (["--allow-total", "0"], "--allow-total must be positive"),
        (["--workers", "2"], "--workers is for a folder"),
        (["--ledger", "sqlite:///b.db", "--budget", "1"], "a ledger needs --person COLUMN"),
        (["--spreadsheet-safe", "--format", "tsv"], "column"),
        (["--rejects", "-"], "--rejects FILE holds true places: it needs a file, not standard output"),
    ],
    ids=in_words,
)
def test_messages_name_options(
    places: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(places.parent)
    said = refusal(capfd, places, places.with_name("out.csv"), *EACH, *PLAIN, *options)
    assert message in said
    assert "`" not in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--person", "name", "--same-place", "-5"], "--same-place must be positive and finite, got -5.0"),
        (["--person", "name", "--reports-per-person", "0"], "--reports-per-person must be a whole number from 1"),
        (
            ["--person", "name", "--same-place", "--reports-per-person", "1"],
            "goes without --trace PERSON,TIME and",
        ),
        (["--trace", "name"], "--trace must be PERSON,TIME"),
        (["--trace", "name,"], "--trace must be PERSON,TIME"),
        (["--person", "name", "--trace", "a,b"], "with --person or --person-per-file, TIME alone"),
        (["--each-row-a-person", "--trace", "time"], "a trace has several rows of a person"),
        (["--trace", "name,name"], "person and time of a trace must be two columns"),
        (["--trace", "name,time", "--id", "name"], "leave --id COLUMN out"),
        (["--trace", "name,time", "--order", "shuffle"], "cannot be shuffled"),
        (["--trace", "name,time", "--reports-per-person", "1"], "--reports-per-person are for single places"),
        (["--person", "nome"], "no column 'nome'"),
        (["--person", "lat"], "column 'lat' holds the true place"),
    ],
    ids=in_words,
)
def test_declarations_that_do_not_fit_together_are_refused(
    places: Path, capfd: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    said = refusal(capfd, places, places.with_name("out.csv"), *PLAIN, *options)
    assert message in said
    assert "`" not in said
    assert [path.name for path in places.parent.iterdir()] == ["places.csv"]


@pytest.mark.parametrize(
    "options",
    [
        ["--person", "name", *EACH],
        [*EACH, "--person-per-file"],
        [*EACH, "--drop", "name"],
        [*EACH, "--no-quoting"],
        [*EACH, "--order", "sorted"],
    ],
    ids=" ".join,
)
def test_options_that_exclude_each_other_or_do_not_exist_are_refused(
    places: Path, capfd: pytest.CaptureFixture[str], options: list[str]
) -> None:
    with pytest.raises(SystemExit) as exit_code:
        main(["obfuscate", str(places), str(places.with_name("out.csv")), *PLAIN, *options])
    assert exit_code.value.code == 2
    said = capfd.readouterr().err
    assert said.startswith("geoind: ")
    assert said.endswith("(geoind obfuscate --help lists the options)\n")
    assert said.count("\n") == 1


def test_rows_sorted_by_location_need_a_decision(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("n,lat,lon\n" + "".join(f"{n},{48 + n / 1000},{2 + n % 7 / 100}\n" for n in range(400)))
    run = ["obfuscate", str(source), str(target), *EACH, *PLAIN, "--keep", "n"]
    said = refusal(capfd, *run[1:])
    assert "give --order shuffle, or give --order keep" in said
    numbers = [str(n) for n in range(400)]
    for order, ordered in (("keep", True), ("shuffle", False)):
        assert main([*run, "--order", order]) == 0
        found = [row.split(",")[0] for row in target.read_text().splitlines()[1:]]
        assert (found == numbers) is ordered
        assert sorted(found, key=int) == numbers


@pytest.mark.parametrize(
    ("chosen", "mechanism"),
    [("gaussian", "SphericalGaussian"), ("laplace", "SphericalLaplace"), (None, "SphericalGaussian")],
)
def test_several_reports_keep_a_level_together_up_to_delta(
    trips: Path, capfd: pytest.CaptureFixture[str], chosen: str | None, mechanism: str
) -> None:
    target = trips.with_name("reports.csv")
    options = ["--level", "1.386", "--radius", "200", "--delta", "1e-5", "--person", "rider"]
    options += [] if chosen is None else ["--mechanism", chosen]
    said = refusal(capfd, trips, target, *options, "--reports", "20")
    assert "and one has 41: give --reports 41, or --reports-per-person 20" in said
    assert main(["obfuscate", str(trips), str(target), *options, "--reports", "41"]) == 0
    said = capfd.readouterr().err
    assert said.startswith("81 reports, level 1.386 within 200 m, 41 reports together, up to delta 1e-05: ")
    promise = read_promise(target)
    assert promise.busiest is not None
    assert (promise.mechanism, promise.level, promise.radius) == (mechanism, 1.386, 200)
    assert (promise.reports, promise.delta, promise.busiest.reports) == (41, 1e-5, 41)
    assert promise.busiest.level == pytest.approx(1.386, rel=0.02)
    assert "--reports is for several reports of a person" in refusal(
        capfd, trips, target, *options[:6], "--reports", "2", *EACH
    )


def test_a_ledger_lets_a_person_spend_the_level_up_to_delta(
    places: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    promise = ["--level", "1.386", "--radius", "200", "--reports", "4", "--delta", "1e-5"]
    ledger = ["--ledger", f"sqlite:///{tmp_path}/budgets.db", "--person", "name"]
    run = ["obfuscate", str(places), str(places.with_name("reports.csv")), "--quiet", *promise, *ledger]
    for _ in range(4):
        assert main(run) == 0
        Path(run[2]).unlink()
    assert "budget" in refusal(capfd, *run[1:])
    assert "--budget" in refusal(capfd, *run[1:], "--budget", "1")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--epsilon", "0.01", "--delta", "1e-5"], "--delta goes with --level (or --factor) and --radius"),
        (["--level", "1", "--radius", "200", "--reports", "5"], "--reports goes with --delta"),
        (["--epsilon", "0.01", "--mechanism", "gaussian"], "--mechanism needs --delta"),
        (["--level", "1", "--radius", "200", "--delta", "1"], "--delta must lie strictly between"),
        (["--level", "1", "--radius", "200", "--delta", "0.1", "--reports", "0"], "--reports must be"),
        (["--level", "1", "--radius", "0.2", "--delta", "0.1"], "add --little-noise"),
    ],
)
def test_promises_that_do_not_fit_together_are_refused(
    places: Path, capfd: pytest.CaptureFixture[str], options: list[str], reason: str
) -> None:
    assert reason in refusal(capfd, places, places.with_name("out.csv"), "--person", "name", *options)
    assert not places.with_name("out.csv").exists()


def test_quiet_prints_nothing(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["obfuscate", str(places), str(places.with_name("r.csv")), *SHARP, "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")


def test_every_option_has_its_effect(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, target, key, rejects = (tmp_path / name for name in ("in", "out.txt", "key", "rejects"))
    source.write_text("7;1;2\n8;;\n9;91;2\n")
    key.write_text(secrets.token_hex(32) + "\n")
    key.chmod(0o600)
    read = ["--format", "csv", "--delimiter", ";", "--no-header", "--lat", "2", "--lon", "3", "--missing", "keep"]
    keyed = ["--key-file", str(key), "--id", "1", "--keep", "1", "--rejects", str(rejects)]
    run = ["obfuscate", str(source), str(target), "--epsilon", "0.01", *EACH, *read, *keyed]
    assert main(run) == 0
    first = target.read_text()
    assert main(run) == 0
    assert target.read_text() == first
    assert [row.split(";")[0] for row in first.splitlines()] == ["1", "7", "8"]
    assert first.splitlines()[2] == "8;;"
    assert json.loads(rejects.read_text())["row"] == 3
    assert f"bad records are in {rejects}, with their true locations" in capfd.readouterr().err


def test_texts_that_a_spreadsheet_would_run_are_marked(tmp_path: Path) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("lat,lon,note\n1,2,=1+1\n")
    run = ["obfuscate", str(source), str(target), *EACH, *PLAIN, "--keep", "note", "--quiet"]
    for option, mark in (([], "=1+1"), (["--spreadsheet-safe"], "'=1+1")):
        assert main([*run, *option]) == 0
        assert target.read_text().splitlines()[1].endswith(f",{mark}")


def test_persons_pay_before_anything_is_drawn(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.csv").write_text("who,lat,lon\nana,1,2\nana,3,4\nbo,5,6\n")
    url = f"sqlite:///{tmp_path}/budgets.db"
    run = [
        "obfuscate",
        str(tmp_path / "in.csv"),
        str(tmp_path / "out.csv"),
        "--epsilon",
        "0.01",
        "--person",
        "who",
    ]
    paid = [*run, "--ledger", url, "--budget", "0.025"]
    assert main(paid) == 0
    said = capfd.readouterr().err
    assert "the busiest has 2 reports, epsilon 0.02 per metre together" in said
    assert "the ledger was charged" in said
    (tmp_path / "out.csv").unlink()
    assert "'ana'" in refusal(capfd, *paid[1:])
    assert not (tmp_path / "out.csv").exists()
    with Ledger(url, budget=1.0) as ledger:
        assert [charge.label for charge in ledger.history("ana")] == ["file out.csv"]
    assert main([*paid[:-1], "1", "--job", "weekly"]) == 0
    with Ledger(url, budget=1.0) as ledger:
        assert [charge.label for charge in ledger.history("ana")][-1] == "weekly"
    capfd.readouterr()
    assert "--budget" in refusal(capfd, *run[1:], "--ledger", url)
    assert "--ledger" in refusal(capfd, *run[1:], "--budget", "1")


def test_a_release_whose_cost_depends_on_its_noise_is_charged_under_a_key(
    trips: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    paid = ["--ledger", f"sqlite:///{trips.parent}/budgets.db", "--budget"]
    run = [trips, trips.with_name("out.csv"), "--trace", "rider,at", "--epsilon", "0.001"]
    assert "a ledger needs --key-file FILE for traces" in refusal(capfd, *run, *paid, "1")
    cells = ["--person", "rider", "--same-place", "--epsilon", "0.001"]
    assert "a ledger needs --key-file FILE for" in refusal(capfd, *run[:2], *cells, *paid, "1")
    key = trips.with_name("key")
    key.write_text(secrets.token_hex(32))
    key.chmod(0o600)
    keyed = [*run, "--key-file", key, *paid]
    assert refusal(capfd, *keyed, "0.01") == refusal(capfd, *keyed, "0.01")
    for _ in range(2):
        assert main(["obfuscate", *map(str, keyed), "1"]) == 0
    with Ledger(paid[1], budget=1.0) as ledger:
        record = read_promise(trips.with_name("out.csv"))
        assert record.busiest is not None
        assert max(map(ledger.spent, ("ana", "ben"))) == pytest.approx(record.busiest.epsilon)


def test_bad_key_files_are_refused_without_quoting_the_key(
    places: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key, target = places.with_name("key"), places.with_name("out.csv")
    key.write_text("secret")
    key.chmod(0o600)
    keyed = [places, target, *SHARP, "--id", "name", "--key-file"]
    message = refusal(capfd, *keyed, key)
    assert "64 hexadecimal digits" in message
    assert "secret" not in message
    assert "cannot be read" in refusal(capfd, *keyed, places.with_name("nowhere"))
    assert not target.exists()


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PLACES.encode())))
    assert main(["obfuscate", "-", "-", "--format", "csv", *SHARP]) == 0
    out, err = capfd.readouterr()
    assert out == PLACES.replace("48.8584,2.2945", "48.85840,2.29450").replace(
        "48.8421,2.3219", "48.84210,2.32190"
    )
    assert err.startswith("2 reports")


def test_a_stream_takes_its_format_from_the_other_file(
    places: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["obfuscate", str(places), "-", *SHARP]) == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"lat\tlon\tname\n1\t2\tx\n")))
    target = places.with_name("out.tsv")
    assert main(["obfuscate", "-", str(target), *SHARP]) == 0
    assert target.read_bytes() == b"lat\tlon\tname\n1.00000\t2.00000\tx\n"
    capfd.readouterr()
    assert "give --format" in refusal(capfd, "-", "-", *SHARP)


def test_no_input_is_overwritten(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    link, hard = places.with_name("link.csv"), places.with_name("hard.csv")
    link.symlink_to(places)
    os.link(places, hard)
    other = places.with_name("other.csv")
    for target in (places, places.parent / "." / places.name, link, hard):
        assert "would be overwritten" in refusal(capfd, places, target, *SHARP)
        assert "would be overwritten" in refusal(capfd, places, other, *SHARP, "--rejects", target)
    assert "would be overwritten" in refusal(capfd, places, other, *SHARP, "--rejects", other)
    assert places.read_text() == PLACES
    assert not other.exists()


def test_missing_files_and_folders_are_errors(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    message = refusal(capfd, places.with_name("no.csv"), places.with_name("out.csv"), *SHARP)
    assert "cannot read" in message
    assert "No such file" in message
    assert "cannot write" in refusal(capfd, places, places.parent / "no" / "out.csv", *SHARP)


def test_an_output_that_is_a_link_keeps_being_one(places: Path) -> None:
    real, link = places.with_name("real.csv"), places.with_name("link.csv")
    real.write_text("old")
    link.symlink_to(real)
    assert main(["obfuscate", str(places), str(link), *SHARP, "--quiet"]) == 0
    assert link.is_symlink()
    assert real.read_text().startswith("name,lat,lon\nEiffel,")


def test_a_full_disk_is_an_error_and_leaves_nothing(
    places: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in refusal(capfd, places, places.with_name("out.csv"), *SHARP)
    assert [path.name for path in places.parent.iterdir()] == ["places.csv"]


ENDING = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def long_job(folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """A job that has begun to write and is far from done."""
    source = folder.with_name("long.csv")
    source.write_bytes(b"lat,lon\n" + b"1,2\n" * 5_000_000)
    run = [sys.executable, "-m", "geoind", "obfuscate", str(source), str(folder / "out.csv"), "--epsilon", "0.1"]
    run += [*EACH, "--order", "keep"]
    with subprocess.Popen(run, preexec_fn=reset_signals) as job:
        limit = time.monotonic() + 60
        while not any(path.name.startswith(".out.csv.") for path in folder.iterdir()):
            assert time.monotonic() < limit, "the job did not begin to write"
            assert job.poll() is None
            time.sleep(0.05)
        yield job
    source.unlink()


def reset_signals() -> None:
    """Reset signals that a shell or nohup ignores, because child processes inherit this."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("number", ENDING)
def test_a_signal_to_end_leaves_no_file(folder: Path, number: int) -> None:
    with long_job(folder) as job:
        job.send_signal(number)
        assert job.wait(60) == 128 + number
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_only(places: Path) -> None:
    places.write_text("lat,lon\n" + "1,2\n" * 400_000)
    run = [sys.executable, "-m", "geoind", "obfuscate", str(places), str(places.with_name("o.csv")), *BARE]
    ours, theirs = pty.openpty()
    job = subprocess.Popen(run, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 4096):
            shown += data
    except OSError:
        pass  # What Linux says when the other end of a terminal is closed.
    os.close(ours)
    assert job.wait() == 0
    assert b"\r[####" in shown
    assert b" reports, " in shown
    places.write_text(PLACES)
    quiet = subprocess.run(run, stderr=subprocess.PIPE, check=True)
    assert quiet.stderr.startswith(b"2 reports, epsilon 1000 per metre: ")
    assert b"\r" not in quiet.stderr


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(places: Path) -> None:
    places.write_text("lat,lon\n" + "1,2\n" * 100_000)
    run = [sys.executable, "-m", "geoind", "obfuscate", str(places), "-", *BARE]
    job = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert job.stdout is not None
    assert job.stderr is not None
    assert job.stdout.readline() == b"lat,lon\n"
    job.stdout.close()
    assert job.stderr.read() == b""
    assert job.wait() == 141
    job.stderr.close()


@pytest.mark.slow
def test_a_full_standard_output_is_an_error_that_does_not_claim_that_nothing_was_written(places: Path) -> None:
    run = [sys.executable, "-m", "geoind", "obfuscate", str(places), "-", *SHARP]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"geoind: No space left on device\n"


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true"]
)
def test_a_ledger_in_memory_is_refused(places: Path, capfd: pytest.CaptureFixture[str], url: str) -> None:
    paid = ["--person", "name", "--ledger", url, "--budget", "1"]
    assert "a database in memory" in refusal(
        capfd, places, places.with_name("out.csv"), "--epsilon", "0.01", *paid
    )
    assert [path.name for path in places.parent.iterdir()] == ["places.csv"]


@pytest.mark.parametrize("days", ["nan", "inf", "1e30", "9e8", "0", "-1"])
def test_days_that_are_no_duration_are_refused(places: Path, capfd: pytest.CaptureFixture[str], days: str) -> None:
    paid = ["--person", "name", "--ledger", f"sqlite:///{places.parent}/l.db", "--budget", "1", f"--days={days}"]
    assert "--days must be positive" in refusal(
        capfd, places, places.with_name("out.csv"), "--epsilon", "0.01", *paid
    )


def closed(numbers: tuple[int, ...], *arguments: object) -> "subprocess.CompletedProcess[bytes]":
    """Run the command with some of its standard streams closed."""
    run = [sys.executable, "-m", "geoind", "obfuscate", *map(str, arguments), "--epsilon", "0.01"]
    run += [] if "--person" in run else EACH

    def close() -> None:
        for number in numbers:
            os.close(number)

    return subprocess.run(run, preexec_fn=close, capture_output=True, check=False)


@pytest.mark.slow
def test_a_closed_stream_is_one_sentence_and_no_person_is_charged(places: Path) -> None:
    url = f"sqlite:///{places.parent}/budgets.db"
    (key := places.with_name("key")).write_text("00" * 32)
    key.chmod(0o600)
    paid = ["--person", "name", "--ledger", url, "--budget", "1"]
    done = closed((1,), places, "-", *paid, "--key-file", key, "--id", "name")
    assert done.returncode == 2
    assert done.stderr == b"geoind: standard output is closed: nothing can be written there\n"
    done = closed((), places, "-", *paid)
    assert done.returncode == 2
    assert done.stderr.startswith(b"geoind: standard output with a ledger needs")
    done = closed((0,), "-", places.with_name("out.csv"))
    assert done.returncode == 2
    assert done.stderr == b"geoind: standard input is closed: nothing can be read there\n"
    with Ledger(url, budget=1.0) as ledger:
        assert ledger.history("Eiffel") == []


@pytest.mark.slow
def test_a_closed_standard_error_is_no_error(places: Path) -> None:
    done = closed((2,), places, "-")
    assert done.returncode == 0
    assert done.stdout.startswith(b"lat,lon\n")
    for numbers in ((2,), (1, 2), (0, 1, 2)):
        assert closed(numbers, places, places.with_name("out.csv")).returncode == 0
        rows = places.with_name("out.csv").read_text().splitlines()
        assert (rows[0], len(rows)) == ("lat,lon", 3)


@pytest.mark.slow
def test_no_true_location_reaches_standard_output(places: Path) -> None:
    places.write_text(PLACES + "bad,91.123,2\n")
    log = places.with_name("job.log")
    out = places.with_name("out.csv")
    for rejects in ("-", "/dev/stdout", str(log)):
        run = [sys.executable, "-m", "geoind", "obfuscate", str(places), str(out), *SHARP, "--rejects", rejects]
        with log.open("wb") as said:
            done = subprocess.run(run, stdout=said, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2
        assert log.read_bytes() == b""
    assert sorted(path.name for path in places.parent.iterdir()) == ["job.log", "places.csv"]


def test_too_little_memory_is_one_sentence(
    places: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("geoind.cli.obfuscate.obfuscate_file", full)
    assert "not enough memory" in refusal(capfd, places, places.with_name("out.csv"), *SHARP)


@pytest.mark.parametrize("system", ["geohash:6", "h3:9"])
@pytest.mark.parametrize("target", ["out.csv", "out.parquet", "out.geojson"])
def test_reports_are_written_as_cells(places: Path, target: str, system: str) -> None:
    out = places.with_name(target)
    main(["obfuscate", str(places), str(out), *PLAIN, *EACH, "--keep", "name", "--cells", system])
    rows = rows_of(out)
    assert [row["name"] for row in rows] == ["Eiffel", "Montparnasse"]
    lonlat = [[float(row["lon"]), float(row["lat"])] for row in rows]
    # The report is the centre of the cell, and nothing finer.
    assert [row["cell"] for row in rows] == cell_names(lonlat, system)
    assert np.allclose(lonlat, cell_centres([row["cell"] for row in rows]), atol=5.1e-6)
    assert read_promise(out).cells == system


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file of reports, with lon and lat."""
    if path.suffix == ".csv":
        return list(csv.DictReader(io.StringIO(path.read_text())))
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    found = json.loads(path.read_text())["features"]
    corners = [dict(zip(("lon", "lat"), each["geometry"]["coordinates"], strict=True)) for each in found]
    return [each["properties"] | corner for each, corner in zip(found, corners, strict=True)]


def test_a_kept_column_cannot_be_called_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.csv").write_text("cell,lat,lon\nx,1,2\n")
    command = ["obfuscate", str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), *PLAIN, *EACH]
    assert main([*command, "--keep", "cell", "--cells", "geohash:6"]) == 2
    assert "two columns 'cell'" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()
