"""Files of traces: a session per person, on the same path as any table."""

import csv
import json
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from geoind import EACH_ROW, BudgetExceededError, InvalidInputError, Ledger, TraceSession, obfuscate_file
from geoind.cli import main
from geoind.tables import EACH_FILE, Recipe, read_promise
from geoind.tables.recipe import METHODS

KEY = bytes(range(32))
HOME, WORK = (2.2945, 48.8584), (2.3522, 48.9)
Row = tuple[str, str, str, str]
TRACE: dict[str, Any] = {"epsilon": 0.01, "person": "who", "time": "when", "allow_total": 100}


def rows(persons: int = 3, steps: int = 40) -> list[Row]:
    """Return steps of people between home and work, mixed by time: person, time, lat, lon."""
    rng = np.random.default_rng(0)
    made: list[Row] = []
    for step in range(steps):
        for person in range(persons):
            lon, lat = np.add(WORK if 10 < step < 25 else HOME, rng.normal(0, 1e-4, 2) + 0.001 * person)
            made.append((f"p{person}", f"{1.7e9 + 300 * step}", f"{lat:.7f}", f"{lon:.7f}"))
    return made


def written(path: Path, table: list[Row]) -> Path:
    """Write rows as CSV, in an order of columns of its own."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["lat", "when", "fare", "who", "lon"])
        writer.writerows([lat, time, number, person, lon] for number, (person, time, lat, lon) in enumerate(table))
    return path


def reports(path: Path) -> list[tuple[float, float]]:
    with path.open(newline="") as file:
        return [(float(row["lon"]), float(row["lat"])) for row in csv.DictReader(file)]


def alone(table: list[Row], **options: Any) -> list[tuple[float, float]]:
    """Return what a session of each person answers, step by step."""
    method = Recipe.of(**{**TRACE, **options}).method
    assert method is not None
    sessions: dict[str, TraceSession] = {}
    answers = []
    for person, time, lat, lon in table:
        session = sessions.setdefault(person, TraceSession(method, key=KEY, person_id=person))
        answer = session.report(lat=float(lat), lon=float(lon), time=float(time))
        answers.append((answer.lon, answer.lat))
    return answers


@pytest.mark.parametrize("method", METHODS)
def test_every_row_gets_what_its_persons_own_session_answers(tmp_path: Path, method: Any) -> None:
    source = written(tmp_path / "in.csv", rows())
    summary = obfuscate_file(source, tmp_path / "out.csv", **TRACE, method=method, key=KEY)
    assert reports(tmp_path / "out.csv") == alone(rows(), method=method)
    assert summary.reports == len(rows())


def test_batches_change_nothing(tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(pyarrow.csv.read_csv(written(tmp_path / "in.csv", rows())), source, row_group_size=7)
    obfuscate_file(source, tmp_path / "out.csv", key=KEY, **TRACE)
    assert reports(tmp_path / "out.csv") == alone(rows())


@pytest.mark.parametrize("suffix", ["ndjson", "parquet", "to.parquet"])
def test_every_format_gives_the_same_answers(tmp_path: Path, suffix: str) -> None:
    table = rows()
    source = written(tmp_path / "in.csv", table)
    records = pyarrow.csv.read_csv(source)
    if suffix == "ndjson":
        source = tmp_path / "in.ndjson"
        source.write_text("".join(json.dumps(row) + "\n" for row in records.to_pylist()))
    elif suffix == "parquet":
        source = tmp_path / "in.parquet"
        pq.write_table(records, source)
    target = tmp_path / f"out.{suffix.removeprefix('to.')}"
    obfuscate_file(source, target, **TRACE, key=KEY)
    expected = alone(table)
    if suffix.endswith("parquet"):
        made = pq.read_table(target)
        assert list(zip(made["lon"].to_pylist(), made["lat"].to_pylist(), strict=True)) == expected
    elif suffix == "ndjson":
        lines = [json.loads(line) for line in target.read_text().splitlines()]
        assert [(line["lon"], line["lat"]) for line in lines] == expected
    assert read_promise(target).session is not None


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["geojson", "gpkg", "geo.parquet"])
def test_files_of_geometries_give_the_same_answers(tmp_path: Path, suffix: str) -> None:
    table = rows()
    records = pyarrow.csv.read_csv(written(tmp_path / "in.csv", table)).to_pandas()
    shapes = geopandas.points_from_xy(records["lon"], records["lat"], crs=4326)
    frame = geopandas.GeoDataFrame(records.drop(columns=["lon", "lat"]), geometry=shapes)
    source, target = tmp_path / f"in.{suffix}", tmp_path / f"out.{suffix}"
    frame.to_parquet(source) if suffix == "geo.parquet" else frame.to_file(source)
    obfuscate_file(source, target, **TRACE, key=KEY)
    made = geopandas.read_parquet(target) if suffix == "geo.parquet" else geopandas.read_file(target)
    assert list(zip(made.geometry.x, made.geometry.y, strict=True)) == alone(table)
    assert read_promise(target).epsilon < 1


@pytest.mark.parametrize("target", ["out.csv", "out.parquet"])
def test_the_promise_that_travels_says_what_a_persons_trace_cost_at_most(tmp_path: Path, target: str) -> None:
    source = written(tmp_path / "in.csv", rows())
    options: dict[str, Any] = {"level": 1.386, "radius": 200, "person": "who", "time": "when", "allow_total": 100}
    obfuscate_file(source, tmp_path / target, key=KEY, **options)
    method = Recipe.of(**options).method
    assert method is not None
    spent = []
    for person in ("p0", "p1", "p2"):
        session = TraceSession(method, key=KEY, person_id=person)
        for name, time, lat, lon in rows():
            if name == person:
                session.report(lat=float(lat), lon=float(lon), time=float(time))
        spent.append(session.spent)
    promise = read_promise(tmp_path / target)
    assert promise.epsilon == pytest.approx(max(spent), rel=1e-12)
    assert promise.busiest is not None
    assert promise.median is not None
    assert promise.busiest.epsilon == promise.epsilon
    assert promise.median.epsilon == pytest.approx(sorted(spent)[1], rel=1e-12)
    assert (promise.persons, promise.busiest.reports) == (3, 40)
    assert promise.fresh == 1.386 / 200
    assert promise.mechanism == "Switching"
    assert str(promise.session).startswith("Switching(stays=SparseVector(fresh=0.0069")


def bad(changed: dict[int, Row]) -> list[Row]:
    table = rows(2, 20)
    for number, row in changed.items():
        table[number] = row
    return table


BACK: Row = ("p1", f"{1.7e9 - 1}", "48.9", "2.3")
FLAWS: dict[str, tuple[Row, str]] = {
    "back": (BACK, "row 12: timestamps must increase for person 'p1': sort"),
    "two places": (
        ("p1", f"{1.7e9 + 300 * 4}", "48.9", "2.3"),
        "row 12: timestamps must increase for person 'p1': merge",
    ),
    "no person": (("", "1800000000", "48.9", "2.3"), "row 12: person must be a name"),
    "space": (("p1 ", "1800000000", "48.9", "2.3"), "row 12: person must be a name without space"),
    "no time": (("p1", "", "48.9", "2.3"), "row 12: time is missing"),
    "no date": (("p1", "yesterday", "48.9", "2.3"), "row 12: the time must be"),
    "milliseconds": (("p1", "1800000000000", "48.9", "2.3"), "row 12: the time must be"),
    "NaN time": (("p1", "nan", "48.9", "2.3"), "row 12: the time must be"),
    "NaN place": (("p1", "1800000000", "nan", "2.3"), "row 12: latitude must be a finite number"),
    "off the globe": (("p1", "1800000000", "91", "2.3"), "row 12"),
}


@pytest.mark.parametrize("case", FLAWS)
def test_a_bad_row_is_named_and_nothing_is_written_or_charged(tmp_path: Path, case: str) -> None:
    row, message = FLAWS[case]
    source = written(tmp_path / "in.csv", bad({11: row}))
    with Ledger("sqlite://", budget=1) as ledger:
        with pytest.raises(InvalidInputError, match=message):
            obfuscate_file(source, tmp_path / "out.csv", **TRACE, key=KEY, ledger=ledger)
        assert ledger.spent("p0") == ledger.spent("p1") == 0
    with pytest.raises(InvalidInputError, match=message):
        obfuscate_file(source, tmp_path / "out.csv", **TRACE)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize("case", FLAWS)
def test_with_rejects_a_bad_row_goes_there_and_no_other_is_lost(tmp_path: Path, case: str) -> None:
    table = bad({11: FLAWS[case][0]})
    source = written(tmp_path / "in.csv", table)
    rejects = tmp_path / "rejects.ndjson"
    summary = obfuscate_file(source, tmp_path / "out.csv", **TRACE, key=KEY, rejects=rejects)
    assert summary.rejected == 1
    [rejected] = map(json.loads, rejects.read_text().splitlines())
    assert rejected["row"] == 12
    others = [row for number, row in enumerate(table) if number != 11]
    assert reports(tmp_path / "out.csv") == alone(others)


def test_jumps_gaps_and_repeated_rows_are_answered(tmp_path: Path) -> None:
    table: list[Row] = [
        ("p", "1700000000", "48.8584", "2.2945"),
        ("p", "1700000000", "48.8584", "2.2945"),  # the same row again
        ("p", "1700000001", "-33.8688", "151.2093"),  # the other side of the Earth within a second
        ("p", "1900000000", "48.8584", "2.2945"),  # years later
    ]
    source = written(tmp_path / "in.csv", table)
    obfuscate_file(source, tmp_path / "out.csv", **TRACE, method="independent", key=KEY)
    made = reports(tmp_path / "out.csv")
    assert made[0] == made[1]
    assert made == alone(table, method="independent")
    assert read_promise(tmp_path / "out.csv").epsilon == pytest.approx(0.03)


def test_one_person_typed_in_two_ways_has_one_session(tmp_path: Path) -> None:
    table: list[Row] = [
        ("Zoe\u0308", "1700000000", "48.8584", "2.2945"),
        ("Zo\u00eb", "1700000060", "48.8584", "2.2946"),
        ("Zoe\u0308", "1700000030", "48.8584", "2.2946"),
    ]
    source = written(tmp_path / "in.csv", table)
    with pytest.raises(InvalidInputError, match="row 3: timestamps must increase"):
        obfuscate_file(source, tmp_path / "out.csv", **TRACE)
    source = written(tmp_path / "in.csv", table[:2])
    obfuscate_file(source, tmp_path / "out.csv", **TRACE, method="independent")
    assert read_promise(tmp_path / "out.csv").epsilon == pytest.approx(0.02)


def test_rows_without_a_place_stay_so_and_no_session_gets_them(tmp_path: Path) -> None:
    table = bad({11: ("p1", "1", "", "")})
    source = written(tmp_path / "in.csv", table)
    with pytest.raises(InvalidInputError, match="row 12: latitude is empty"):
        obfuscate_file(source, tmp_path / "out.csv", **TRACE)
    obfuscate_file(source, tmp_path / "out.csv", **TRACE, key=KEY, missing="keep")
    with (tmp_path / "out.csv").open(newline="") as file:
        made = [(row["lon"], row["lat"]) for row in csv.DictReader(file)]
    assert made.pop(11) == ("", "")
    others = [row for number, row in enumerate(table) if number != 11]
    assert [(float(lon), float(lat)) for lon, lat in made] == alone(others)


def test_persons_pay_what_their_traces_cost_all_of_them_or_none(tmp_path: Path) -> None:
    source = written(tmp_path / "in.csv", rows())
    options: dict[str, Any] = {**TRACE, "key": KEY, "method": "sparse"}
    with Ledger("sqlite://", budget=1) as ledger:
        obfuscate_file(source, tmp_path / "out.csv", ledger=ledger, **options)
        assert reports(tmp_path / "out.csv") == alone(rows(), method="sparse")
        spent = {person: ledger.spent(person) for person in ("p0", "p1", "p2")}
    assert read_promise(tmp_path / "out.csv").epsilon == pytest.approx(max(spent.values()))
    poorest = max(spent, key=lambda person: spent[person])
    (tmp_path / "out.csv").unlink()
    (tmp_path / "out.csv.geoind.json").unlink()
    with Ledger("sqlite://", budget=spent[poorest] - 0.001) as ledger:
        with pytest.raises(BudgetExceededError, match=poorest):
            obfuscate_file(source, tmp_path / "out.csv", ledger=ledger, **options)
        assert [ledger.spent(person) for person in spent] == [0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_a_trace_goes_on_in_the_next_file_of_a_folder(tmp_path: Path) -> None:
    table = rows()
    (tmp_path / "in").mkdir()
    written(tmp_path / "in" / "a.csv", table[:50])
    written(tmp_path / "in" / "b.csv", table[50:])
    summary = obfuscate_file([tmp_path / "in"], tmp_path / "out", key=KEY, **TRACE)
    made = [place for name in ("a.csv", "b.csv") for place in reports(tmp_path / "out" / name)]
    assert made == alone(table)
    # The record of each file is that of the whole trace.
    for name in ("a.csv", "b.csv"):
        assert read_promise(tmp_path / "out" / name) == summary.record
    written(tmp_path / "in" / "c.csv", table[:1])
    with pytest.raises(InvalidInputError, match=r"c\.csv: row 1: timestamps must increase for person 'p0'"):
        obfuscate_file([tmp_path / "in"], tmp_path / "other", key=KEY, **TRACE)
    assert not (tmp_path / "other").exists()


def test_each_file_may_be_the_trace_of_a_person(tmp_path: Path) -> None:
    table = rows(1)
    (tmp_path / "in").mkdir()
    for name in ("a.csv", "b.csv"):
        written(tmp_path / "in" / name, table)
    options: dict[str, Any] = {**TRACE, "person": EACH_FILE, "key": KEY}
    with Ledger("sqlite://", budget=100) as ledger:
        summary = obfuscate_file([tmp_path / "in"], tmp_path / "out", ledger=ledger, **options)
        spent = [ledger.spent(name) for name in ("a.csv", "b.csv")]
    assert summary.record.persons == 2
    assert summary.record.epsilon == pytest.approx(max(spent))
    assert (tmp_path / "out" / "a.csv").read_text().startswith("lat,when,lon\n")
    expected = alone([("a.csv", *row[1:]) for row in table])
    assert reports(tmp_path / "out" / "a.csv") == expected != reports(tmp_path / "out" / "b.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"person": "when"}, "two columns"),
        ({"person": EACH_ROW}, "must name the column"),
        ({"time": "at"}, "no column 'at'"),
        ({"method": "magic"}, "must be one of"),
        ({"time": None, "method": "sparse"}, "is for traces"),
        ({"id_column": "fare"}, "leave `id_column=` out"),
        ({"order": "shuffle"}, "cannot be shuffled"),
        ({"reports_per_person": 5}, "for single places"),
        ({"lon": ["lon", "fare"], "lat": ["lat", "when"]}, "one place"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: Any, message: str) -> None:
    source = written(tmp_path / "in.csv", rows(1, 3))
    with pytest.raises(InvalidInputError, match=message):
        obfuscate_file(source, tmp_path / "out.csv", **{**TRACE, **options})


def test_a_total_that_does_not_hide_the_person_is_refused_before_a_charge(tmp_path: Path) -> None:
    source = written(tmp_path / "in.csv", rows())
    options = {**TRACE, "allow_total": None, "method": "independent"}
    with Ledger("sqlite://", budget=100) as ledger:
        with pytest.raises(InvalidInputError, match=r"add up to epsilon 0\.4 .*`allow_total=0\.4`"):
            obfuscate_file(source, tmp_path / "out.csv", ledger=ledger, key=bytes(32), **options)
        assert ledger.history("p0") == []
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_person_and_time_leave_with_a_trace_and_nothing_else(tmp_path: Path) -> None:
    source = written(tmp_path / "in.csv", rows(1, 3))
    obfuscate_file(source, tmp_path / "out.csv", **TRACE)
    assert (tmp_path / "out.csv").read_text().startswith("lat,when,who,lon\n")


def test_the_command_says_what_a_trace_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path / "in.csv", rows())
    options = ["--trace", "who,when", "--level", "1.386", "--radius", "200", "--method", "sparse"]
    assert main(["obfuscate", str(source), str(tmp_path / "out.csv"), *options, "--allow-total", "10"]) == 0
    message = capsys.readouterr().err
    assert "for each person's whole trace (SparseVector): a fresh report is 290 m from the truth" in message
