"""Tables of people who move: private zones, an allowance per hour, and coarse times."""

import json
import math
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoind import EACH_ROW, BudgetExceededError, InvalidInputError, Ledger, TraceSession, obfuscate_file
from geoind.cli import main
from geoind.files import read_zones
from geoind.tables import ReleaseRecord, obfuscate, read_promise
from geoind.tables.columns import floored, seconds_of
from geoind.traces import Independent, PrivateZone

ZONES_KEY, KEY, OTHER = bytes(31) + b"z", bytes(31) + b"a", bytes(31) + b"b"


def zone_of(
    person: str, *, lat: float = 48.8584, lon: float = 2.2945, key: bytes = ZONES_KEY, ledger: Ledger | None = None
) -> PrivateZone:
    return PrivateZone.around(lat=lat, lon=lon, epsilon=0.01, key=key, person_id=person, ledger=ledger)


TRACES = pa.table(
    {
        "person": ["ana", "ben"] * 12,
        "time": np.repeat(np.arange(12) * 1000 + 1_700_000_123, 2),
        "lat": [48.8584, 48.9] * 6 + [48.96, 48.9] * 6,
        "lon": [2.2945, 2.4] * 12,
        "speed": [3.5] * 24,
    }
)
ONE: dict[str, Any] = {
    "person": "person",
    "time": "time",
    "method": "independent",
    "epsilon": 0.01,
    "allow_total": 9.0,
}


def released(**options: Any) -> pa.Table:
    return obfuscate(TRACES, **(ONE | options)).read_all()


def record_of(table: pa.Table) -> ReleaseRecord:
    return ReleaseRecord.from_json(table.schema.metadata[b"geoind"])


def places_of(table: pa.Table, person: str) -> list[tuple[float, float]]:
    return [(row["lat"], row["lon"]) for row in table.to_pylist() if row["person"] == person]


# Private zones


def test_the_same_home_has_the_same_centre_in_every_release_and_is_charged_once() -> None:
    ledger = Ledger("sqlite://", budget=10)
    zone = zone_of("ana")
    made = [
        # A home that is measured again; a release with another key.
        released(zones=[zone_of("ana", lat=48.85841)], key=key, ledger=ledger)
        for key in (KEY, OTHER, OTHER)
    ]
    for table in made:
        assert places_of(table, "ana")[:3] == [(zone.lat, zone.lon)] * 3
        assert record_of(table).zones == 1
    assert places_of(made[0], "ben") != places_of(made[1], "ben")
    centres = [charge for charge in ledger.history("ana") if charge.mechanism.startswith("SphericalLaplace")]
    assert [(charge.reports, charge.epsilon) for charge in centres] == [(1, 0.01)]
    # The person's own call for the same home is the same centre, and is paid.
    before = ledger.spent("ana")
    assert (zone_of("ana", ledger=ledger), ledger.spent("ana")) == (zone, before)


def test_answers_and_costs_are_those_of_a_session_with_the_zone() -> None:
    zone = zone_of("ana")
    table = released(zones=[zone], key=KEY)
    session = TraceSession(Independent(0.01), key=KEY, person_id="ana", zone=zone)
    rows = [row for row in TRACES.to_pylist() if row["person"] == "ana"]
    answers = [tuple(session.report(lat=row["lat"], lon=row["lon"], time=row["time"])) for row in rows]
    assert places_of(table, "ana") == answers
    busiest, median = record_of(table).busiest, record_of(table).median
    assert busiest is not None
    assert median is not None
    totals = sorted([session.spent + 0.01, 12 * 0.01])
    assert [median.epsilon, busiest.epsilon] == pytest.approx(totals)


def test_a_budget_without_room_for_the_centre_is_charged_nothing() -> None:
    zones = [zone_of("ben", lat=10.0, lon=10.0)]
    ledger = Ledger("sqlite://", budget=0.125)
    with pytest.raises(BudgetExceededError):
        released(zones=zones, key=KEY, ledger=ledger)
    assert (ledger.spent("ana"), ledger.spent("ben"), ledger.history("ben")) == (0, 0, [])
    released(key=KEY, ledger=ledger)
    assert ledger.spent("ben") == pytest.approx(0.12)


def test_zones_keep_and_show_no_home() -> None:
    zone = zone_of("ana")
    shown = f"{zone} {vars(zone)} {record_of(released(zones=[zone], key=KEY)).to_json()}"
    assert not re.search(r"48\.8584|2\.2945", shown)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zones": [zone_of("zoe")]}, "no person of `zones=` has a row"),
        ({"zones": [zone_of("ana")], "time": None, "method": None}, "`zones=` is for traces"),
        ({"zones": []}, "at least one zone"),
        ({"zones": [zone_of("ana"), zone_of("ana", lat=10.0)]}, "person 'ana' must have one zone"),
        ({"zones": [PrivateZone(2.0, 48.0, 300.0, person_id="ana")]}, "with `person_id=`"),
        (
            {"zones": [PrivateZone.around(lat=48.0, lon=2.0, epsilon=0.01, key=ZONES_KEY)]},
            "made by `PrivateZone.around`",
        ),
        ({"time_step": 0}, "`time_step=` must be positive"),
        ({"time_step": math.nan}, "`time_step=` must be positive"),
        ({"time_step": 0.5}, "whole number of seconds"),
        ({"time_step": {"speed": 900}}, "column 'speed' does not leave"),
        ({"time_step": {"speed": 900}, "keep": ["speed"], "allow_total": 0.001}, "add up"),
        ({"time_step": 900, "time": None, "method": None}, "must name the columns of times"),
    ],
)
def test_bad_options_are_errors_and_are_not_charged(options: dict[str, Any], message: str) -> None:
    ledger = Ledger("sqlite://", budget=1)
    given: dict[str, Any] = {**ONE, "epsilon": 0.02, "key": KEY, **options}
    with pytest.raises(InvalidInputError, match=message):
        obfuscate(TRACES, ledger=ledger, **given)
    assert ledger.history("ana") == []


GOOD = "person,lat,lon,margin,epsilon\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("person,lat,lon\n", "there must be at least one zone"),
        ("", "the file is empty"),
        ("who,lat,lon\nana,48.8584,2.2945\n", "one column for the person"),
        (f"{GOOD}ana,48.8584,2.2945,,\nana,48.8584,2.2945,,\n", "row 2: person 'ana' has a second zone"),
        (f"{GOOD}ana,98.8584,2.2945,,\n", "row 1: latitude"),
        (f"{GOOD}ana,,2.2945,,\n", "row 1: "),
        (f"{GOOD},48.8584,2.2945,,\n", "row 1: "),
        (f"{GOOD}ana,48.8584,2.2945,nan,\n", "row 1: margin must be positive"),
        (f"{GOOD}ana,48.8584,2.2945,-5,\n", "row 1: margin must be positive"),
        (f"{GOOD}ana,48.8584,2.2945,,2\n", "row 1: "),
        (f"{GOOD}ana,48.8584,2.2945,,=cmd\n", "row 1: epsilon must be positive"),
    ],
)
def test_a_bad_file_of_zones_is_an_error_that_quotes_no_home(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "zones.csv").write_text(text)
    with pytest.raises(InvalidInputError) as error:
        read_zones(tmp_path / "zones.csv", key=KEY, epsilon=0.01)
    assert f"zones of {tmp_path / 'zones.csv'}: " in str(error.value)
    assert message in str(error.value)
    assert "8584" not in str(error.value)
    assert len(str(error.value)) < 5000


# On the command line

PRIVACY = ["--trace", "person,time", "--epsilon", "0.01", "--allow-total", "9"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [",".join(map(str, row.values())) for row in TRACES.to_pylist()]
    Path("traces.csv").write_text("\n".join([",".join(TRACES.column_names), *rows]))
    Path("zones.csv").write_text("person,lat,lon,margin,epsilon\nana,48.8584,2.2945,300,\nben,48.9,2.4,,0.02\n")
    for name, key in (("zones.key", ZONES_KEY), ("release.key", KEY)):
        Path(name).write_text(key.hex())
        Path(name).chmod(0o600)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_zones_rate_and_steps_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    zones = ["--zones", "zones.csv", "--zones-key", "zones.key", "--time-step", "1h"]
    assert main(["obfuscate", "traces.csv", "out.csv", *PRIVACY, *zones, "--rate", "2/200/hour"]) == 0
    said = capsys.readouterr().err
    assert "2 persons with a private zone" in said
    assert "times in 'time' are rounded down to 3600 s" in said
    assert "exact times" not in said
    record = read_promise("out.csv")
    assert (record.zones, record.time_step) == (2, (("time", 3600.0),))
    assert record.session is not None
    assert record.session.startswith("Rationed(method=Switching(")
    assert "per_hour=0.01, saved=24.0" in record.session
    centre, _ = read_zones("zones.csv", key=ZONES_KEY, epsilon=0.01)
    header, *lines = Path("out.csv").read_text().splitlines()
    assert header == "person,time,lat,lon"
    assert f"{centre.lat},{centre.lon}" in "\n".join(lines)
    assert {int(line.split(",")[1]) % 3600 for line in lines} == {0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--zones", "zones.csv"], "--zones needs --zones-key"),
        (["--zones-key", "zones.key"], "--zones needs --zones-key"),
        (["--zones", "no.csv", "--zones-key", "zones.key"], "no.csv does not exist"),
        (["--zones", "zones.csv", "--zones-key", "no.key"], "no.key"),
        *(
            (["--rate", rate], "--rate must be LEVEL/RADIUS/hour")
            for rate in ("2", "2/200", "2/200/day", "0/200/hour", "2/0/hour", "nan/200/hour", "2/-1/hour", "/")
        ),
        (["--rate", "0.0001/200/hour"], "per_hour * saved must pay for one answer"),
        *((["--time-step", step], "--time-step must be") for step in ("", "15", "min", "5 years", "0.5h", "1e9s")),
        (["--time-step", "5min", "--time-step", "time=1h"], "once each"),
        (["--time-step", "0min"], "must be positive"),
        (["--time-step", "speed=5min"], "column 'speed' does not leave"),
    ],
)
def test_a_bad_option_is_one_sentence_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    before = sorted(folder.iterdir())
    assert main(["obfuscate", "traces.csv", "out.csv", *PRIVACY, *options]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
    assert sorted(folder.iterdir()) == before


@pytest.mark.usefixtures("folder")
def test_zones_and_their_key_are_not_written_over(capsys: pytest.CaptureFixture[str]) -> None:
    zones = ["--zones", "zones.csv", "--zones-key", "zones.key"]
    assert main(["obfuscate", "traces.csv", "zones.csv", *PRIVACY, *zones]) == 2
    assert "would overwrite" in capsys.readouterr().err


# Coarse times


MOMENTS = st.integers(-(10**9), 4 * 10**9)


@given(st.lists(MOMENTS, min_size=1, max_size=5), st.sampled_from([1, 60, 900, 3600, 86400, 7 * 86400]))
def test_times_of_every_kind_are_rounded_down_alike(seconds: list[int], step: int) -> None:
    wanted = [second // step * step for second in seconds]
    moments = [datetime.fromtimestamp(second, UTC) for second in seconds]
    columns = [
        pa.array(seconds, pa.int64()),
        pa.array([float(second) + 0.5 for second in seconds]),
        pa.array(moments, pa.timestamp("ns", "UTC")),
        pa.array([moment.replace(tzinfo=None) for moment in moments], pa.timestamp("ms")),
        pa.array([moment.isoformat() for moment in moments]),
        pa.array([moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in moments], pa.large_string()),
        pa.array([str(second) for second in seconds]).dictionary_encode(),
    ]
    for column in columns:
        made = floored(column, step)
        assert made.type == column.type
        assert seconds_of(made)[0].tolist() == wanted


def test_a_step_of_a_kept_column_of_points_and_missing_times() -> None:
    trips = pa.table(
        {"at": ["2024-05-01 08:14", None, ""], "day": ["2024-05-01"] * 3, "lon": [2.0] * 3, "lat": [48.0] * 3}
    )
    made = obfuscate(
        trips, person=EACH_ROW, epsilon=0.01, keep=["at", "day"], time_step={"at": 900}, order="keep"
    ).read_all()
    assert made["at"].to_pylist() == ["2024-05-01T08:00:00", None, None]
    assert made["day"].to_pylist() == ["2024-05-01"] * 3
    assert record_of(made).time_step == (("at", 900.0),)


def test_a_text_that_is_no_time_is_an_error_before_anything_is_drawn(tmp_path: Path) -> None:
    file = tmp_path / "trips.csv"
    file.write_text("at,lon,lat\n2024-05-01 08:14,2.0,48.0\nnoon,2.0,48.0\n")
    how: dict[str, Any] = {"person": EACH_ROW, "epsilon": 0.01, "keep": ["at"]}
    with pytest.raises(InvalidInputError, match="row 2: the time must be a date and time"):
        obfuscate_file(file, tmp_path / "out.csv", **how, time_step={"at": 900})
    assert not (tmp_path / "out.csv").exists()
    summary = obfuscate_file(file, tmp_path / "out.csv", **how, time_step={"at": 900}, rejects=tmp_path / "bad")
    assert (tmp_path / "out.csv").read_text().splitlines()[1].startswith("2024-05-01T08:00:00,")
    assert summary.exact_times == ()


def test_exact_times_of_traces_and_of_kept_columns_are_named(tmp_path: Path) -> None:
    file = tmp_path / "trips.csv"
    file.write_text("at,fare,lon,lat\n2024-05-01 08:14,7.5,2.0,48.0\n")
    summary = obfuscate_file(
        file, tmp_path / "out.csv", person=EACH_ROW, epsilon=0.01, keep=["at", "fare"], order="keep"
    )
    assert summary.exact_times == ("at",)
    assert "exact times are public: at" in str(summary)


@pytest.mark.parametrize(
    "changed",
    [{"zones": 0}, {"zones": "2"}, {"time_step": [["at", 0]]}, {"time_step": [["at", "900"]]}, {"time_step": 3}],
)
def test_a_record_with_bad_zones_or_steps_is_refused(changed: dict[str, Any]) -> None:
    table = released(zones=[zone_of("ana")], key=KEY, time_step=900)
    record = record_of(table)
    assert ReleaseRecord.from_json(record.to_json()) == record
    with pytest.raises(InvalidInputError, match=next(iter(changed))):
        ReleaseRecord.from_json(json.dumps(json.loads(record.to_json()) | changed))
