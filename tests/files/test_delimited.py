import csv
import io
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import geoind
from geoind.cli import main
from geoind.errors import InvalidInputError
from geoind.files import Reading, obfuscate_file
from geoind.files.delimited import BATCH_BYTES
from geoind.files.scan import MISPLACED
from geoind.tables.promise import read_promise
from tests.goodness import p_value

SHARP = geoind.SphericalLaplace(1000.0)


"""So many per metre that a report is within some millimetres: the columns can be followed."""


def obfuscated(tmp_path: Path, text: bytes | str, name: str = "in.csv", **options: Any) -> bytes:
    source, target = tmp_path / name, tmp_path / f"out-{name}"
    source.write_bytes(text.encode() if isinstance(text, str) else text)
    if "epsilon" not in options and "level" not in options:
        options["mechanism"] = SHARP
    obfuscate_file(source, target, **with_reading(options))
    return target.read_bytes()


def with_reading(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with those of a `Reading` put into one."""
    names = [name for name in options if name in Reading.__dataclass_fields__]
    rest = {name: value for name, value in options.items() if name not in names}
    return rest | {"reading": Reading(**{name: options[name] for name in names})} if names else rest


def reason(tmp_path: Path, text: bytes | str, name: str = "in.csv", **options: Any) -> str:
    with pytest.raises(InvalidInputError) as caught:
        obfuscated(tmp_path, text, name, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name], "nothing may be left after an error"
    return str(caught.value)


def test_every_byte_but_the_coordinates_stays(tmp_path: Path) -> None:
    text = (
        b"\xef\xbb\xbfname,lat,lon,note\r\n"
        b'"Tour ""Eiffel""",48.8584000,2.2945,"a, b\nc"\r\n'
        b"\r\n"
        b"  M\xc3\xa9tro \xff,+48.8421, 2.3219 ,0.10\n"
        b'x,"48.5","2.5",'
    )
    assert obfuscated(tmp_path, text) == (
        b"\xef\xbb\xbfname,lat,lon,note\r\n"
        b'"Tour ""Eiffel""",48.85840,2.29450,"a, b\nc"\r\n'
        b"\r\n"
        b"  M\xc3\xa9tro \xff,48.84210,2.32190,0.10\n"
        b"x,48.50000,2.50000,"
    )


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "newline"])
def test_the_coordinates_may_be_the_last_columns(tmp_path: Path, ending: str, last: str) -> None:
    text = ending.join(["id,lat,lon", "1,1.0,2.0", "2,3.0,4.0"]) + (ending if last else "")
    expected = text.replace("1.0,2.0", "1.00000,2.00000").replace("3.0,4.0", "3.00000,4.00000")
    assert obfuscated(tmp_path, text).decode() == expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    notes=st.lists(st.text(alphabet='ab ,;"\n\t_é', max_size=8), min_size=1, max_size=6),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    ending=st.sampled_from(["\n", "\r\n"]),
    first=st.booleans(),
)
def test_what_another_csv_reader_sees_is_the_same_but_for_the_coordinates(
    tmp_path: Path, notes: list[str], quoting: Literal[0, 1], ending: str, first: bool
) -> None:
    rows = [["note", "lat", "lon"]] + [[note, f"{i}.25", f"-{i}.5"] for i, note in enumerate(notes)]
    order = [0, 1, 2] if first else [2, 1, 0]
    buffer = io.StringIO()
    csv.writer(buffer, quoting=quoting, lineterminator=ending).writerows([[row[i] for i in order] for row in rows])
    (tmp_path / "h").mkdir(exist_ok=True)
    result = obfuscated(tmp_path / "h", buffer.getvalue()).decode()
    read = list(csv.reader(io.StringIO(result, newline="")))
    assert len(read) == len(rows)
    for before, after in zip(rows[1:], read[1:], strict=True):
        after = [after[order.index(i)] for i in range(3)]
        assert after[0] == before[0]
        assert float(after[1]) == pytest.approx(float(before[1]), abs=2e-5)
        assert float(after[2]) == pytest.approx(float(before[2]), abs=2e-5)


def test_many_batches_with_and_without_quotes_are_like_one(tmp_path: Path) -> None:
    rows = [f"{i},{i % 80}.5,{i % 170}.25,{'x' * 40}" for i in range(3 * BATCH_BYTES // 50)]
    rows[len(rows) // 2] = '7,1.5,2.25,"a\nb"'
    text = "\n".join(["id,lat,lon,pad", *rows, ""])
    result = obfuscated(tmp_path, text, order="keep").decode().splitlines()
    expected = text.replace(".5,", ".50000,").replace(".25,", ".25000,").splitlines()
    assert result == expected


def test_the_noise_is_that_of_the_mechanism(tmp_path: Path) -> None:
    count = 100_000
    text = "lat,lon\n" + "48.8584,2.2945\n" * count
    result = obfuscated(tmp_path, text, epsilon=0.01)
    lat, lon = np.loadtxt(io.BytesIO(result), delimiter=",", skiprows=1).T
    import pyproj

    from geoind.distances import EARTH_RADIUS

    radius = pyproj.Geod(a=EARTH_RADIUS, f=0).inv(np.full(count, 2.2945), np.full(count, 48.8584), lon, lat)[2]
    # Fresh noise, not a seed: a false alarm once in a billion runs.
    assert p_value(radius, geoind.SphericalLaplace(0.01).radius_cdf) > 1e-9
    for wrong in (0.01 / 1.05, 0.01 * 1.05):
        assert p_value(radius, geoind.SphericalLaplace(wrong).radius_cdf) < 1e-9


def test_reports_are_on_the_lattice_and_coarser_for_wide_noise(tmp_path: Path) -> None:
    assert obfuscated(tmp_path, "lat,lon\n1,2\n", epsilon=0.01).split(b"\n")[1].count(b".") == 2
    line = obfuscated(tmp_path, "lat,lon\n1,2\n", name="wide.csv", epsilon=5e-6).split(b"\n")[1]
    decimals = geoind.SphericalLaplace(5e-6).decimals
    assert {len(number.split(b".")[1]) for number in line.split(b",")} == {decimals}


def test_columns_are_found_by_their_usual_names_or_chosen(tmp_path: Path) -> None:
    assert obfuscated(tmp_path, "Latitude,LONGITUDE\n1,2\n") == b"Latitude,LONGITUDE\n1.00000,2.00000\n"
    assert obfuscated(tmp_path, '"lng","lat"\n2,1\n') == b'"lng","lat"\n2.00000,1.00000\n'
    chosen = obfuscated(tmp_path, "a,b,c\n1,2,x\n", lat="a", lon="b")
    assert chosen == b"a,b,c\n1.00000,2.00000,x\n"


def test_several_places_of_a_row_have_noise_of_their_own(tmp_path: Path) -> None:
    text = "from_lat,from_lon,to_lat,to_lon,fare\n" + "48.85,2.35,48.85,2.35,7\n" * 50
    result = obfuscated(
        tmp_path, text, epsilon=0.01, lat=["from_lat", "to_lat"], lon=["from_lon", "to_lon"]
    ).decode()
    rows = [line.split(",") for line in result.splitlines()[1:]]
    assert all(row[:2] != row[2:4] for row in rows)
    assert {row[4] for row in rows} == {"7"}
    assert read_promise(tmp_path / "out-in.csv").places == (("from_lon", "from_lat"), ("to_lon", "to_lat"))


def test_a_header_alone_gives_a_header_alone(tmp_path: Path) -> None:
    assert obfuscated(tmp_path, "lat,lon\n") == b"lat,lon\n"
    assert obfuscated(tmp_path, "lat,lon") == b"lat,lon"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("a,12.345,", "line 3: there is no place"),
        ("a,,12.345", "line 3: there is no place"),
        ("a,nan,12.345", "line 3: the latitude must be a finite number"),
        ("a,inf,12.345", "line 3: the latitude must be a finite number"),
        ("a,12.345x,2", "line 3: the latitude must be a finite number"),
        ("a,1_2.345,2", "line 3: the latitude must be a finite number"),
        ("a,91,12.345", "line 3: |latitude| must be at most 90"),
        ("a,12.345,180.5", "line 3: |longitude| must be at most 180"),
        ("12.345", "line 3: 1 field, where the first line has 3"),
        ("a,b,12.345,1", "line 3: 4 fields, where the first line has 3"),
        ('a,"12.345,1', "line 3: a quote is never closed"),
        (",,", "line 3: there is no place"),
        ("a,12.345\r,2", "line 3: a carriage return without a line feed"),
        ("a\0,12.345,2", "line 3: a NUL byte: the text must be UTF-8"),
        ('5" pipe,12.345,2', f"line 3: {MISPLACED}"),
        ('"a"b,12.345,2', f"line 3: {MISPLACED}"),
        ('"a" ,12.345,2', f"line 3: {MISPLACED}"),
        ('a,12.345, "2"', f"line 3: {MISPLACED}"),
    ],
)
def test_a_bad_row_stops_with_its_line_and_the_reason_and_no_coordinate(
    tmp_path: Path, row: str, why: str
) -> None:
    message = reason(tmp_path, f"name,lat,lon\nok,1,2\n{row}\nok,3,4\n")
    assert message == why
    assert "12.345" not in message


def test_missing_coordinates_stay_when_asked_for(tmp_path: Path) -> None:
    text = 'n,lat,lon\na,,\nb, ," "\nc,1,2\nd,,2\n'
    assert reason(tmp_path, text) == "line 2: there is no place"
    # Half a place is none, and not a place that may stay.
    assert obfuscated(tmp_path, text, missing="keep") == b"n,lat,lon\na,,\nb,,\nc,1.00000,2.00000\nd,,\n"


def test_a_key_repeats_the_noise_of_a_record_wherever_it_stands(tmp_path: Path) -> None:
    rows = [f"trip {i},48.{i},2.{i}" for i in range(50)]
    options: dict[str, Any] = {"epsilon": 0.01, "key": bytes(range(32)), "id_column": "id", "order": "keep"}
    first = obfuscated(tmp_path, "\n".join(["id,lat,lon", *rows]), **options).decode().splitlines()
    again = (
        obfuscated(tmp_path, "\n".join(["id,lat,lon", '"x",1,1', *rows[::-1]]), **options).decode().splitlines()
    )
    assert again[2:] == first[1:][::-1]
    other = obfuscated(tmp_path, "\n".join(["id,lat,lon", *rows]), **options | {"key": bytes(32)}).decode()
    assert not set(other.splitlines()[1:]) & set(first[1:])


def test_columns_that_tell_are_refused_dropped_or_kept(tmp_path: Path) -> None:
    text = "dropoff_lat,lat,lon,home address,platform\n3,1,2,4,5\n"
    message = reason(tmp_path, text)
    assert "'dropoff_lat'" in message
    assert "'home address'" in message
    assert "platform" not in message
    dropped = obfuscated(tmp_path, text, drop=["home address"], keep=["dropoff_lat"])
    assert dropped == b"dropoff_lat,lat,lon,platform\n3,1.00000,2.00000,5\n"
    assert read_promise(tmp_path / "out-in.csv").kept == ("dropoff_lat",)
    assert (
        obfuscated(tmp_path, text, drop=["dropoff_lat", "platform", "home address"])
        == b"lat,lon\n1.00000,2.00000\n"
    )


def test_rows_sorted_by_place_are_shuffled_all_together(tmp_path: Path) -> None:
    count = 3 * BATCH_BYTES // 40
    rows = [f"{i},{i / count * 80:.6f},1.5,{'x' * 20}" for i in range(count)]
    text = "\n".join(["n,lat,lon,pad", *rows])
    assert "sorted by place" in reason(tmp_path, text)
    result = obfuscated(tmp_path, text, order="shuffle").decode().splitlines()
    numbers = [int(line.split(",")[0]) for line in result[1:]]
    assert sorted(numbers) == list(range(count))
    assert abs(np.corrcoef(numbers, np.arange(count))[0, 1]) < 0.02


FORMULAS = [
    "=1+1",
    "+A1",
    "-A1",
    "@SUM(A1)",
    "=cmd|' /C calc'!A0",
    " =1+1",
    "＝1+1",
    "-1+1|x",
    "\ufeff=1",
    "\u200b@A1",
    "\xa0=1",
    " \u3000\u2060-A1",
]
HARMLESS = ["-1.5", "+33", "-1e-05", "1,5", "a=b", "", "x-1", "ordinary"]


@pytest.mark.parametrize("target", ["csv", "tsv"])
@pytest.mark.parametrize("source", ["csv", "tsv", "ndjson", "parquet"])
def test_a_text_that_a_spreadsheet_would_run_gets_a_mark_if_that_is_asked_for(
    tmp_path: Path, source: str, target: str
) -> None:
    texts = [*FORMULAS, *HARMLESS]
    frame = pd.DataFrame({"=note": texts, "lat": -48.5, "lon": -2.5 - np.arange(len(texts)) % 3})
    path = tmp_path / f"in.{source}"
    if source == "parquet":
        frame.to_parquet(path)
    elif source == "ndjson":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="," if source == "csv" else "\t", quoting=csv.QUOTE_MINIMAL)
    for safe in (False, True):
        out = tmp_path / f"out-{source}-{safe}.{target}"
        obfuscate_file(path, out, epsilon=0.01, reading=Reading(spreadsheet_safe=safe))
        with out.open(newline="") as file:
            rows = list(csv.reader(file, delimiter="," if target == "csv" else "\t"))
        assert rows[0][0] == ("'=note" if safe else "=note")
        assert [row[0] for row in rows[1:]] == [
            f"'{text}" if safe and text in FORMULAS else text for text in texts
        ]
        assert all(float(row[1]) < 0 and float(row[2]) < 0 for row in rows[1:])


def test_a_quoted_formula_is_marked_inside_its_quotes(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b'"=HYPERLINK(""x"",1)",lat,lon\r\n"=1,2",48.5,2.5\r\n"\tx",48.6,2.4\r\n')
    options = ["--epsilon", "0.01", "--spreadsheet-safe", "--quiet"]
    assert main(["obfuscate", str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), *options]) == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ['\'=HYPERLINK("x",1)', "'=1,2", "'\tx"]


def test_the_mark_is_for_text_that_spreadsheets_open(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("lat,lon\n48.5,2.5\n")
    safe = Reading(spreadsheet_safe=True)
    with pytest.raises(InvalidInputError, match="is for CSV and TSV output, not ndjson"):
        obfuscate_file(tmp_path / "in.csv", tmp_path / "out.ndjson", epsilon=0.01, reading=safe)
